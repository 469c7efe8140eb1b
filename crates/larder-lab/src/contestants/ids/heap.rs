//! Bytes that the C library's heap holds, independent of what a structure reports.

/// Bytes in use of all arenas and of the blocks that have a mapping of their own, headers and rounding included.
/// `None` where the C library does not say.
#[must_use]
pub fn in_use() -> Option<u64> {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: mallinfo2 takes no argument and reads the heap's counters under its locks.
        let info = unsafe { libc::mallinfo2() };
        Some(info.uordblks as u64 + info.hblkhd as u64)
    }
    #[cfg(not(target_env = "gnu"))]
    {
        None
    }
}
