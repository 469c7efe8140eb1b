//! Processor, caches, frequency, affinity.

use super::Root;
use super::fields::{Fields, Reading};
use super::root::line_value;

const CPUINFO: &str = "proc/cpuinfo";
const CPU0: &str = "sys/devices/system/cpu/cpu0";

/// Features that the lab's contestants and the zeroing routines choose by.
const FEATURES: [&str; 8] = [
    "sse2", "avx2", "avx512f", "erms", "fsrm", "clzero", "la57", "pcid",
];

pub(super) fn read(root: &Root, fields: &mut Fields) {
    let info = root.read(CPUINFO);
    let from_info = |key: &str| line_value(info.as_ref()?, CPUINFO, key);
    for (name, key) in [
        ("cpu.vendor", "vendor_id"),
        ("cpu.model", "model name"),
        ("cpu.family", "cpu family"),
        ("cpu.model_number", "model"),
        ("cpu.stepping", "stepping"),
        ("cpu.microcode", "microcode"),
    ] {
        fields.put(name, from_info(key));
    }
    let flags = from_info("flags");
    let has = |flags: &str, flag: &str| flags.split_whitespace().any(|f| f == flag);
    let features = flags.as_ref().map(|flags| {
        let known = FEATURES.into_iter().filter(|f| has(flags, f));
        known.collect::<Vec<_>>().join(" ")
    });
    fields.put("cpu.features", features.map_err(Clone::clone));
    fields.put_files(
        root,
        &[
            ("cpu.online", "sys/devices/system/cpu/online"),
            ("cpu.smt", "sys/devices/system/cpu/smt/active"),
            ("numa.nodes", "sys/devices/system/node/online"),
        ],
    );
    caches(root, fields);
    frequency(root, fields);
    let status = "proc/self/status";
    let affinity = root.read(status);
    let affinity = affinity.and_then(|text| line_value(&text, status, "Cpus_allowed_list"));
    fields.put("cpu.affinity", affinity);
    let hypervisor = flags.ok().map(|flags| has(&flags, "hypervisor"));
    fields.put("virtualisation", virtualisation(root, hypervisor));
}

fn caches(root: &Root, fields: &mut Fields) {
    for name in ["cache.l1d", "cache.l1i", "cache.l2", "cache.l3"] {
        fields.put(name, Err(format!("/{CPU0}/cache does not list it")));
    }
    for index in root.names(&format!("{CPU0}/cache")) {
        let dir = format!("{CPU0}/cache/{index}");
        let (Ok(level), Ok(kind), size) = (
            root.read(&format!("{dir}/level")),
            root.read(&format!("{dir}/type")),
            root.value(&format!("{dir}/size")),
        ) else {
            continue;
        };
        let name = match (level.as_str(), kind.as_str()) {
            ("1", "Data") => "cache.l1d".to_owned(),
            ("1", "Instruction") => "cache.l1i".to_owned(),
            (level, _) => format!("cache.l{level}"),
        };
        fields.put(&name, size);
    }
}

fn frequency(root: &Root, fields: &mut Fields) {
    for (name, file) in [
        ("frequency.governor", "scaling_governor"),
        ("frequency.driver", "scaling_driver"),
        ("frequency.min_khz", "scaling_min_freq"),
        ("frequency.max_khz", "scaling_max_freq"),
    ] {
        fields.put(name, root.value(&format!("{CPU0}/cpufreq/{file}")));
    }
    // Intel's driver says when turbo is off, the others when it is on.
    let on_off = |on: bool| if on { "on" } else { "off" }.to_owned();
    let no_turbo = root.read("sys/devices/system/cpu/intel_pstate/no_turbo");
    let turbo = no_turbo.map(|no| on_off(no == "0")).or_else(|why| {
        let boost = root.read("sys/devices/system/cpu/cpufreq/boost");
        boost.map(|yes| on_off(yes != "0")).map_err(|_| why)
    });
    fields.put("frequency.turbo", turbo);
}

fn virtualisation(root: &Root, hypervisor: Option<bool>) -> Reading {
    if let Ok(kind) = root.read("sys/hypervisor/type") {
        return Ok(kind);
    }
    let vendor = root.read("sys/class/dmi/id/sys_vendor").ok();
    match (hypervisor, vendor) {
        (Some(true), Some(vendor)) => Ok(format!("virtual machine ({vendor})")),
        (Some(true), None) => Ok("virtual machine".to_owned()),
        (Some(false), _) => Ok("none".to_owned()),
        (None, _) => Err("/proc/cpuinfo has no 'flags' to tell it by".to_owned()),
    }
}
