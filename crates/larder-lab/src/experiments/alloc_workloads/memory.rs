//! What a workload needed at its peak, and what is held when all is freed.

use crate::contestants::timing::{bytes_of, resident_bytes};

/// Watches this process's memory.
#[derive(Debug)]
pub(in crate::experiments) struct Memory {
    before: u64,
    /// Whether the kernel forgot the peak so far.
    fresh: bool,
}

impl Memory {
    /// From now on.
    pub(in crate::experiments) fn watch() -> Self {
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
    pub(in crate::experiments) fn peak(&self) -> Option<u64> {
        if !self.fresh {
            return None;
        }
        let text = std::fs::read_to_string("/proc/self/status").ok()?;
        Some(bytes_of(&text, "VmHWM")?.saturating_sub(self.before))
    }

    /// Growth of resident memory now.
    pub(super) fn held(&self) -> u64 {
        resident_bytes().saturating_sub(self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
