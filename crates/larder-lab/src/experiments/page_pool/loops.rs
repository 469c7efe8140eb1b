//! The timed loops, one copy per supplier: no virtual call and no closure stands between the loop and the supplier.
//!
//! Each is its own function (`inline(never)`), so that its machine code can be read under its name. After every step
//! the supplier's state is forced into memory ([`keep`]): in a program other code runs between two calls, so a
//! supplier that stayed in registers over a million turns would not be measured as it is used.

use std::ptr::NonNull;

use crate::contestants::supply::Supplier;
use crate::contestants::timing::keep;

/// Writes the first 8 bytes of a page, which is aligned: one instruction that the compiler cannot drop.
///
/// # Safety
/// The page is ours.
#[inline(always)]
unsafe fn write(page: NonNull<u8>, value: u64) {
    // SAFETY: the caller's page is aligned to far more than 8 bytes.
    unsafe { page.as_ptr().cast::<u64>().write_volatile(value) };
}

/// `turns` times: get, write 8 bytes, put. False when the supplier has no page.
#[inline(never)]
pub(super) fn pair<S: Supplier>(supplier: &mut S, turns: u64) -> bool {
    for turn in 0..turns {
        let Some(page) = supplier.get() else {
            return false;
        };
        keep(supplier);
        // SAFETY: a page is ours until it is put back.
        unsafe {
            write(page, turn);
            supplier.put(page);
        }
        keep(supplier);
    }
    true
}

/// `turns` times: get and write 8 bytes for every slot of `pages`, then put all of them, the first taken first. The pages are
/// asked for as pages of zeros where `ZEROED` says so.
#[inline(never)]
pub(super) fn deep<S: Supplier, const ZEROED: bool>(
    supplier: &mut S,
    turns: u64,
    pages: &mut [NonNull<u8>],
) -> bool {
    for turn in 0..turns {
        for slot in pages.iter_mut() {
            let taken = if ZEROED {
                supplier.get_zeroed()
            } else {
                supplier.get()
            };
            let Some(page) = taken else {
                return false;
            };
            keep(supplier);
            // SAFETY: a page is ours until it is put back. The value is never zero, so that a supplier that
            // forgets to zero is seen by the check that follows the loop.
            unsafe { write(page, turn | 1 << 63) };
            *slot = page;
        }
        for &page in pages.iter() {
            // SAFETY: taken above and put back once.
            unsafe { supplier.put(page) };
            keep(supplier);
        }
    }
    true
}

/// The floor of pages of zeros: `turns` times, every one of `pages` is filled with zeros and 8 bytes of it are written.
#[inline(never)]
pub(super) fn fill(pages: &[NonNull<u8>], turns: u64, page_bytes: usize) {
    for turn in 0..turns {
        for &page in pages {
            // SAFETY: the caller's pages, of `page_bytes` bytes each.
            unsafe {
                page.as_ptr().write_bytes(0, page_bytes);
                keep(page.as_ptr());
                write(page, turn | 1 << 63);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::supply::{ArrayStack, Counting, page_size};

    fn counting(pages: usize) -> Counting<ArrayStack> {
        Counting::new(ArrayStack::new(pages).expect("pages"))
    }

    #[test]
    fn each_loop_takes_and_puts_what_it_says() {
        let mut supplier = counting(8);
        assert!(pair(&mut supplier, 5));
        assert_eq!(supplier.counts().gets, 5);
        assert_eq!(supplier.counts().most_out, 1);
        let mut pages = [NonNull::dangling(); 8];
        assert!(deep::<_, false>(&mut supplier, 3, &mut pages));
        assert_eq!(supplier.counts().gets, 5 + 24);
        assert_eq!(supplier.counts().most_out, 8);
        assert!(deep::<_, true>(&mut supplier, 2, &mut pages));
        assert_eq!(supplier.counts().zeroed, 16);
        assert_eq!(supplier.counts().puts, supplier.counts().gets);
    }

    #[test]
    fn the_writes_are_really_made() {
        let mut supplier = ArrayStack::new(4).expect("pages");
        let mut pages = [NonNull::dangling(); 4];
        assert!(deep::<_, false>(&mut supplier, 7, &mut pages));
        for page in pages {
            // SAFETY: a page of the stack.
            assert_eq!(unsafe { page.as_ptr().cast::<u64>().read() }, 6 | 1 << 63);
        }
        for page in pages {
            // SAFETY: as above.
            unsafe { page.as_ptr().write_bytes(0xa5, page_size()) };
        }
        fill(&pages, 2, page_size());
        for page in pages {
            // SAFETY: as above.
            unsafe {
                assert_eq!(page.as_ptr().cast::<u64>().read(), 1 | 1 << 63);
                assert_eq!(page.as_ptr().add(page_size() - 1).read(), 0);
            }
        }
    }

    #[test]
    fn a_dry_supplier_is_told() {
        let mut pages = [NonNull::dangling(); 4];
        assert!(!deep::<_, false>(&mut counting(3), 1, &mut pages));
    }
}
