//! Processor, caches, frequency, affinity.

use super::Root;
use super::capture::Fields;
use super::root::{known, line_value};
use crate::model::Field;

const CPU0: &str = "sys/devices/system/cpu/cpu0";

/// Features that the lab's contestants and the zeroing routines choose by.
const FEATURES: [&str; 8] = [
    "sse2", "avx2", "avx512f", "erms", "fsrm", "clzero", "la57", "pcid",
];

pub(super) fn read(root: &Root, fields: &mut Fields) {
    let info = root.read("proc/cpuinfo");
    let mut from_info = |name: &str, key: &str| {
        let field = match &info {
            Ok(text) => known(
                line_value(text, key),
                &format!("/proc/cpuinfo has no '{key}'"),
            ),
            Err(why) => Field::Unknown(why.clone()),
        };
        fields.insert(name.to_owned(), field);
    };
    from_info("cpu.vendor", "vendor_id");
    from_info("cpu.model", "model name");
    from_info("cpu.family", "cpu family");
    from_info("cpu.model_number", "model");
    from_info("cpu.stepping", "stepping");
    from_info("cpu.microcode", "microcode");
    let flags = info.ok().and_then(|text| line_value(&text, "flags"));
    fields.insert("cpu.features".to_owned(), features(flags.as_deref()));
    for (name, path) in [
        ("cpu.online", "sys/devices/system/cpu/online"),
        ("cpu.smt", "sys/devices/system/cpu/smt/active"),
        ("numa.nodes", "sys/devices/system/node/online"),
    ] {
        fields.insert(name.to_owned(), root.field(path));
    }
    caches(root, fields);
    frequency(root, fields);
    let status = root.read("proc/self/status");
    fields.insert(
        "cpu.affinity".to_owned(),
        match status {
            Ok(text) => known(
                line_value(&text, "Cpus_allowed_list"),
                "/proc/self/status has no 'Cpus_allowed_list'",
            ),
            Err(why) => Field::Unknown(why),
        },
    );
    let hypervisor = flags
        .as_deref()
        .map(|f| f.split_whitespace().any(|f| f == "hypervisor"));
    fields.insert(
        "virtualisation".to_owned(),
        virtualisation(root, hypervisor),
    );
}

fn features(flags: Option<&str>) -> Field {
    let Some(flags) = flags else {
        return Field::Unknown("/proc/cpuinfo has no 'flags'".to_owned());
    };
    let has: Vec<&str> = FEATURES
        .into_iter()
        .filter(|f| flags.split_whitespace().any(|flag| flag == *f))
        .collect();
    Field::Known(has.join(" "))
}

fn caches(root: &Root, fields: &mut Fields) {
    for name in ["cache.l1d", "cache.l1i", "cache.l2", "cache.l3"] {
        fields.insert(
            name.to_owned(),
            Field::Unknown(format!("/{CPU0}/cache does not list it")),
        );
    }
    for index in root.names(&format!("{CPU0}/cache")) {
        let dir = format!("{CPU0}/cache/{index}");
        let (Ok(level), Ok(kind), size) = (
            root.read(&format!("{dir}/level")),
            root.read(&format!("{dir}/type")),
            root.field(&format!("{dir}/size")),
        ) else {
            continue;
        };
        let name = match (level.as_str(), kind.as_str()) {
            ("1", "Data") => "cache.l1d".to_owned(),
            ("1", "Instruction") => "cache.l1i".to_owned(),
            (level, _) => format!("cache.l{level}"),
        };
        fields.insert(name, size);
    }
}

fn frequency(root: &Root, fields: &mut Fields) {
    for (name, file) in [
        ("frequency.governor", "scaling_governor"),
        ("frequency.driver", "scaling_driver"),
        ("frequency.min_khz", "scaling_min_freq"),
        ("frequency.max_khz", "scaling_max_freq"),
    ] {
        fields.insert(
            name.to_owned(),
            root.field(&format!("{CPU0}/cpufreq/{file}")),
        );
    }
    // Intel's driver says when turbo is off, the others when it is on.
    let turbo = match root.read("sys/devices/system/cpu/intel_pstate/no_turbo") {
        Ok(no) => Field::Known(if no == "0" { "on" } else { "off" }.to_owned()),
        Err(why) => match root.read("sys/devices/system/cpu/cpufreq/boost") {
            Ok(yes) => Field::Known(if yes == "0" { "off" } else { "on" }.to_owned()),
            Err(_) => Field::Unknown(why),
        },
    };
    fields.insert("frequency.turbo".to_owned(), turbo);
}

fn virtualisation(root: &Root, hypervisor: Option<bool>) -> Field {
    if let Ok(kind) = root.read("sys/hypervisor/type") {
        return Field::Known(kind);
    }
    let vendor = root.read("sys/class/dmi/id/sys_vendor").ok();
    match (hypervisor, vendor) {
        (Some(true), Some(vendor)) => Field::Known(format!("virtual machine ({vendor})")),
        (Some(true), None) => Field::Known("virtual machine".to_owned()),
        (Some(false), _) => Field::Known("none".to_owned()),
        (None, _) => Field::Unknown("/proc/cpuinfo has no 'flags' to tell it by".to_owned()),
    }
}
