//! A static buffer for allocations that come before there is a heap. Nothing of it is given back.
//!
//! Its blocks have the sizes and alignments of their classes: a caller that frees one as an object of its class, without
//! looking, does no harm. The block is then used as such an object. When it would go back to a slab, it is forgotten.

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::heap::{SIZES, class_of, class_of_layout};
use crate::os::page_size;

/// Enough for what the making of the heap asks of the allocator that it will be (files that it reads, the fork
/// handlers' list), many times over.
const BYTES: usize = 320 << 10;
/// What of it only the making of the heap may have. A process that the system refuses a heap uses up the rest, and the
/// standard library, which is called on the way, ends the process when it gets no memory.
const KEPT: usize = 64 << 10;
/// Most that one trial uses: 18 KiB were seen where it succeeds at once, and less than 1 KiB each time the system refuses.
const TRIAL: usize = 32 << 10;
/// Before each block lies its size; blocks begin at multiples of this.
const HEADER: usize = 16;

struct Buffer(UnsafeCell<[u8; BYTES]>);

// SAFETY: parts of it are given out by an atomic counter, each once.
unsafe impl Sync for Buffer {}

static BUFFER: Buffer = Buffer(UnsafeCell::new([0; BYTES]));
touched_at_start! {
    static USED: AtomicUsize = AtomicUsize::new(0);
}

fn base() -> usize {
    BUFFER.0.get() as usize
}

/// Whether there is enough left to try to make the heap.
pub(super) fn allows_trial() -> bool {
    used() + TRIAL <= BYTES
}

/// Zeroed bytes of the buffer, or null when it is used up; `making`: for the making of the heap.
pub(super) fn alloc(layout: Layout, making: bool) -> *mut u8 {
    let most = if making { BYTES } else { BYTES - KEPT };
    // More alignment than any class has does no harm to one.
    let class = class_of_layout(layout).or_else(|| class_of(layout.size()));
    let size = class.map_or(layout.size(), |class| SIZES[class]);
    // As aligned as the class is: as much as its size allows.
    let natural = (1 << size.max(1).trailing_zeros()).min(page_size());
    let align = layout.align().max(HEADER).max(natural);
    let next = |used: usize| {
        let at = (base() + used + HEADER).checked_next_multiple_of(align)? - base();
        let end = at.checked_add(size)?;
        (end <= most).then_some((at, end))
    };
    let taken = USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
        next(used).map(|(_, end)| end)
    });
    let Some((at, _)) = taken.ok().and_then(next) else {
        return null_mut();
    };
    // SAFETY: `at` lies inside of the buffer, with the header before it; the exchange made the part this caller's.
    unsafe {
        let block = BUFFER.0.get().cast::<u8>().add(at);
        block
            .sub(size_of::<usize>())
            .cast::<usize>()
            .write_unaligned(size);
        block
    }
}

/// Whether an address lies in the buffer.
#[inline(always)]
pub(super) fn has(at: NonNull<u8>) -> bool {
    (at.as_ptr() as usize).wrapping_sub(base()) < BYTES
}

/// Bytes of the block at `at`; `None` when it is not of this buffer.
pub(super) fn size_of_block(at: NonNull<u8>) -> Option<usize> {
    let offset = (at.as_ptr() as usize).wrapping_sub(base());
    (HEADER..BYTES).contains(&offset).then(|| {
        // SAFETY: inside of the buffer, where the size was written before the block was given out.
        unsafe {
            at.as_ptr()
                .sub(size_of::<usize>())
                .cast::<usize>()
                .read_unaligned()
        }
    })
}

/// Bytes given out.
pub(super) fn used() -> usize {
    USED.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_disjoint_aligned_and_end() {
        let mut last = base();
        for (size, align, bytes) in [
            (1, 1, 16),
            (0, 16, 16),
            (100, 64, 128),
            (24, 8, 32),
            (3, 4096, 4096),
            (129, 8192, 160),
        ] {
            let at = alloc(Layout::from_size_align(size, align).unwrap(), false);
            assert!(at as usize >= last + HEADER && (at as usize).is_multiple_of(align.max(16)));
            assert_eq!(size_of_block(NonNull::new(at).unwrap()), Some(bytes));
            let natural = 1 << bytes.trailing_zeros();
            assert!((at as usize).is_multiple_of(natural), "{size} {align}");
            last = at as usize + size;
        }
        let too_much = Layout::from_size_align(BYTES, 1).unwrap();
        assert!(alloc(too_much, true).is_null());
        assert!(
            !alloc(Layout::new::<u64>(), false).is_null(),
            "a refusal takes nothing"
        );
        assert_eq!(size_of_block(NonNull::<u64>::dangling().cast()), None);
    }
}
