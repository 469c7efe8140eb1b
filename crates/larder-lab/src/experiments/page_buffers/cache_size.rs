//! Cache sizes of the machine record, in pages.

use crate::contestants::supply::page_size;
use crate::model::MachineRecord;

/// Pages that fit the cache of this level, where the machine's record says its size.
pub(super) fn pages(machine: &MachineRecord, level: u32) -> Option<u64> {
    let bytes = bytes(machine.text(&format!("cache.l{level}")))?;
    Some(bytes / u64::try_from(page_size()).ok()?)
}

/// Bytes of a size as the kernel writes it: `1024K`, `32M`, `1 MiB`, `65536`.
fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..end].parse().ok()?;
    let unit = match text[end..].trim_start().chars().next() {
        None | Some('B') => 1,
        Some('K' | 'k') => 1 << 10,
        Some('M') => 1 << 20,
        Some('G') => 1 << 30,
        Some(_) => return None,
    };
    number.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        assert_eq!(bytes("1024K"), Some(1 << 20));
        assert_eq!(bytes("32M"), Some(32 << 20));
        assert_eq!(bytes("1 MiB"), Some(1 << 20));
        assert_eq!(bytes("65536"), Some(65_536));
        assert_eq!(bytes("unknown"), None);
        assert_eq!(bytes("12 parsecs"), None);
        assert_eq!(pages(&MachineRecord::default(), 2), None);
    }
}
