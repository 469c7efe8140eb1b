//! The round of a page: its address, and in the lowest bit whether the page is known to be zero.
//!
//! The bit rides along for free, because a page's address ends in zeroes. It exists only while the page is in stock:
//! handing out clears it.

use core::ptr::NonNull;

const ZERO: usize = 1;

/// The round of the page at `addr`.
#[inline]
pub(super) fn pack(addr: usize, zero: bool) -> usize {
    addr | usize::from(zero)
}

/// Address of a round's page.
#[inline]
pub(super) fn addr(round: usize) -> usize {
    round & !ZERO
}

/// Whether the page is known to be zero.
#[inline]
pub(super) fn is_zero(round: usize) -> bool {
    round & ZERO != 0
}

/// Pointer to a round's page.
#[inline]
pub(super) fn page(round: usize) -> NonNull<u8> {
    // SAFETY: rounds are made of addresses inside the pool's reservation, which are not null.
    unsafe { NonNull::new_unchecked(addr(round) as *mut u8) }
}
