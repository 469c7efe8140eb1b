//! What a workload needed at its peak, and what is held when all is freed.

use crate::contestants::timing::resident_bytes;

/// Watches this process's memory.
#[derive(Debug)]
pub(super) struct Memory {
    before: u64,
    /// Whether the kernel forgot the peak so far.
    fresh: bool,
}

impl Memory {
    /// From now on.
    pub(super) fn watch() -> Self {
        // "5" resets the peak of resident memory (proc(5), /proc/pid/clear_refs).
        let fresh = std::fs::write("/proc/self/clear_refs", "5").is_ok();
        Self {
            before: resident_bytes(),
            fresh,
        }
    }

    /// Growth of resident memory at its highest; `None` where the kernel does not forget earlier peaks.
    ///
    /// The kernel counts in batches for each CPU: a quarter of a MiB may be missing.
    pub(super) fn peak(&self) -> Option<u64> {
        if !self.fresh {
            return None;
        }
        let text = std::fs::read_to_string("/proc/self/status").ok()?;
        Some(peak_of(&text)?.saturating_sub(self.before))
    }

    /// Growth of resident memory now.
    pub(super) fn held(&self) -> u64 {
        resident_bytes().saturating_sub(self.before)
    }
}

/// The `VmHWM` line in bytes.
fn peak_of(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_peak_is_read() {
        assert_eq!(
            peak_of("VmPeak:\t 9 kB\nVmHWM:\t   12 kB\n"),
            Some(12 * 1024)
        );
        assert_eq!(peak_of("VmHWM: many kB"), None);
        assert_eq!(peak_of(""), None);
    }

    #[test]
    fn a_peak_that_is_over_is_remembered() {
        let memory = Memory::watch();
        let bytes = 32 << 20;
        let block = vec![1_u8; bytes];
        std::hint::black_box(&block);
        drop(block);
        if let Some(peak) = memory.peak() {
            assert!(peak > bytes as u64 / 2, "{peak}");
        }
    }
}
