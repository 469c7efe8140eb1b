//! Kernel, mitigations, clocks, load.

use super::Root;
use super::capture::Fields;
use crate::model::Field;

const VULNERABILITIES: &str = "sys/devices/system/cpu/vulnerabilities";

pub(super) fn read(root: &Root, fields: &mut Fields) {
    for (name, path) in [
        ("kernel.release", "proc/sys/kernel/osrelease"),
        ("aslr", "proc/sys/kernel/randomize_va_space"),
        (
            "clock.source",
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
        ),
    ] {
        fields.insert(name.to_owned(), root.field(path));
    }
    fields.insert("kernel.preemption".to_owned(), preemption(root));
    fields.insert("init_on_alloc".to_owned(), init_on_alloc(root));
    let names = root.names(VULNERABILITIES);
    if names.is_empty() {
        fields.insert(
            "mitigations".to_owned(),
            Field::Unknown(format!("/{VULNERABILITIES} lists none")),
        );
    }
    for name in names {
        let field = root.field(&format!("{VULNERABILITIES}/{name}"));
        fields.insert(format!("mitigation.{name}"), field);
    }
    fields.insert("load".to_owned(), root.field("proc/loadavg"));
    fields.insert("boot.time".to_owned(), boot_time(root));
}

/// What the kernel was built with, and what was chosen at boot where debugfs may be read.
fn preemption(root: &Root) -> Field {
    if let Ok(mode) = root.read("sys/kernel/debug/sched/preempt") {
        // `none voluntary (full)`.
        if let Some((_, rest)) = mode.split_once('(')
            && let Some((chosen, _)) = rest.split_once(')')
        {
            return Field::Known(chosen.to_owned());
        }
    }
    match root.read("proc/sys/kernel/version") {
        Err(why) => Field::Unknown(why),
        Ok(text) => Field::Known(
            text.split_whitespace()
                .find(|w| w.starts_with("PREEMPT"))
                .unwrap_or("none or voluntary")
                .to_owned(),
        ),
    }
}

/// Whether the kernel zeroes pages once more when they are allocated: from the boot option (the rest of the
/// command line is nobody's business) or the kernel's configuration.
fn init_on_alloc(root: &Root) -> Field {
    let on_off = |on: bool| Field::Known(if on { "on" } else { "off" }.to_owned());
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
        Err(why) => Field::Unknown(format!(
            "neither a boot option nor the kernel's configuration says it ({why})"
        )),
    }
}

fn boot_time(root: &Root) -> Field {
    let text = match root.read("proc/stat") {
        Ok(text) => text,
        Err(why) => return Field::Unknown(why),
    };
    let seconds: Option<i64> = text
        .lines()
        .find_map(|l| l.strip_prefix("btime "))
        .and_then(|s| s.trim().parse().ok());
    match seconds.and_then(|s| jiff::Timestamp::from_second(s).ok()) {
        Some(t) => Field::Known(t.to_string()),
        None => Field::Unknown("/proc/stat has no 'btime'".to_owned()),
    }
}
