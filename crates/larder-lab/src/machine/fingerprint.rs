//! When two runs come from the same machine.

use super::fnv1a;
use crate::model::MachineRecord;

/// The fields that a time depends on and that do not change from day to day.
///
/// Memory enters in steps of 256 MiB, because what the kernel reserves at boot varies by some pages.
const STABLE: [&str; 13] = [
    "build.target",
    "cache.l1d",
    "cache.l2",
    "cache.l3",
    "cpu.family",
    "cpu.model",
    "cpu.model_number",
    "cpu.online",
    "cpu.stepping",
    "cpu.vendor",
    "kernel.release",
    "memory.page_size",
    "virtualisation",
];

/// A hash of the stable hardware and kernel fields, 16 hexadecimal digits.
///
/// Times are compared only between runs with the same fingerprint; ratios within a run may be compared across.
#[must_use]
pub fn fingerprint(record: &MachineRecord) -> String {
    let mut text = String::new();
    for name in STABLE {
        text.push_str(name);
        text.push('=');
        text.push_str(record.text(name));
        text.push('\n');
    }
    let bytes: Option<u64> = record
        .text("memory.total")
        .split_whitespace()
        .next()
        .and_then(|n| n.parse().ok());
    let steps = bytes.map(|b| (b + (128 << 20)) / (256 << 20));
    text.push_str(&format!("memory.steps={steps:?}\n"));
    format!("{:016x}", fnv1a(text.as_bytes()))
}
