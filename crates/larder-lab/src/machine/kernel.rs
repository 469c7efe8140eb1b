//! Kernel, mitigations, clocks, load.

use super::Root;
use super::fields::{Fields, Reading};

const VULNERABILITIES: &str = "sys/devices/system/cpu/vulnerabilities";

pub(super) fn read(root: &Root, fields: &mut Fields) {
    fields.put_files(
        root,
        &[
            ("kernel.release", "proc/sys/kernel/osrelease"),
            ("aslr", "proc/sys/kernel/randomize_va_space"),
            (
                "clock.source",
                "sys/devices/system/clocksource/clocksource0/current_clocksource",
            ),
            ("load", "proc/loadavg"),
        ],
    );
    fields.put("kernel.preemption", preemption(root));
    fields.put("init_on_alloc", init_on_alloc(root));
    let names = root.names(VULNERABILITIES);
    if names.is_empty() {
        fields.put("mitigations", Err(format!("/{VULNERABILITIES} lists none")));
    }
    for name in names {
        let value = root.value(&format!("{VULNERABILITIES}/{name}"));
        fields.put(&format!("mitigation.{name}"), value);
    }
    fields.put("boot.time", boot_time(root));
}

/// What the kernel was built with, and what was chosen at boot where debugfs may be read.
fn preemption(root: &Root) -> Reading {
    // `none voluntary (full)`.
    let mode = root
        .read("sys/kernel/debug/sched/preempt")
        .unwrap_or_default();
    if let Some((_, rest)) = mode.split_once('(')
        && let Some((chosen, _)) = rest.split_once(')')
    {
        return Ok(chosen.to_owned());
    }
    let text = root.read("proc/sys/kernel/version")?;
    let built = text.split_whitespace().find(|w| w.starts_with("PREEMPT"));
    Ok(built.unwrap_or("none or voluntary").to_owned())
}

/// Whether the kernel zeroes pages once more when they are allocated: from the boot option (the rest of the
/// command line is private and not recorded) or the kernel's configuration.
fn init_on_alloc(root: &Root) -> Reading {
    let on_off = |on: bool| Ok(if on { "on" } else { "off" }.to_owned());
    if let Ok(line) = root.read("proc/cmdline") {
        for word in line.split_whitespace() {
            if let Some(value) = word.strip_prefix("init_on_alloc=") {
                return on_off(value == "1" || value == "on");
            }
        }
    }
    let release = root.read("proc/sys/kernel/osrelease").unwrap_or_default();
    match root.read(&format!("boot/config-{release}")) {
        Ok(config) => on_off(
            config
                .lines()
                .any(|l| l == "CONFIG_INIT_ON_ALLOC_DEFAULT_ON=y"),
        ),
        Err(why) => Err(format!(
            "neither a boot option nor the kernel's configuration says it ({why})"
        )),
    }
}

fn boot_time(root: &Root) -> Reading {
    let text = root.read("proc/stat")?;
    let seconds = text.lines().find_map(|l| l.strip_prefix("btime "));
    let seconds = seconds.and_then(|s| s.trim().parse().ok());
    let time = seconds.and_then(|s| jiff::Timestamp::from_second(s).ok());
    time.map(|t| t.to_string())
        .ok_or_else(|| "/proc/stat has no 'btime'".to_owned())
}
