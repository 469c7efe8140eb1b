//! The bytes that stand where the program must not write, and in blocks that are new or free.

/// In the redzone before a block.
pub(super) const BEFORE: u8 = 0xfb;
/// In the redzone after a block.
pub(super) const AFTER: u8 = 0xfa;
/// In a block that was not written yet.
#[cfg(feature = "debug-heap")]
pub(super) const NEW: u8 = 0xca;
/// In a block that is free.
pub(super) const FREED: u8 = 0xde;

/// So many bytes of a large block are filled and looked at; the rest would only cost memory that the program did not touch.
#[cfg(feature = "debug-heap")]
pub(super) const MOST_FILLED: usize = 64 << 10;

/// # Safety
/// The bytes are the caller's to write.
pub(super) unsafe fn fill(at: usize, bytes: usize, with: u8) {
    // SAFETY: the caller's promise.
    unsafe { (at as *mut u8).write_bytes(with, bytes) };
}

/// Offset of the first byte that is not `with`. A mistaken writer may change the bytes meanwhile, so each is read once.
///
/// # Safety
/// The bytes can be read.
pub(super) unsafe fn changed(at: usize, bytes: usize, with: u8) -> Option<usize> {
    const WORD: usize = size_of::<u64>();
    let word = u64::from_ne_bytes([with; WORD]);
    let end = at + bytes;
    // SAFETY: the caller's promise, here and below.
    let other = |at: usize| unsafe { (at as *const u8).read_volatile() } != with;
    let mut i = at;
    while i < end {
        if i.is_multiple_of(WORD) {
            // SAFETY: as above, and it is aligned.
            while i + WORD <= end && unsafe { (i as *const u64).read_volatile() } == word {
                i += WORD;
            }
            if i == end {
                break;
            }
        }
        if other(i) {
            return Some(i - at);
        }
        i += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_changed_byte_is_found() {
        let mut bytes = [FREED; 100];
        let at = bytes.as_mut_ptr() as usize;
        // SAFETY: the array's own bytes.
        unsafe {
            assert_eq!(changed(at, 100, FREED), None);
            fill(at + 70, 2, 0xca);
            assert_eq!(changed(at, 100, FREED), Some(70));
            assert_eq!(changed(at, 70, FREED), None);
            assert_eq!(changed(at, 0, 0xfb), None);
        }
    }
}
