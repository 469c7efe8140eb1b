//! What nearly every malloc and free needs, and nothing else: a block of the thread's own magazines.
//!
//! malloc and free are called from outside, so their code is run as it stands. What these two leave to the whole
//! functions needs registers to be saved, errors to be reported and a stack frame, and all that stays out of these two.

use core::ptr::NonNull;

use super::slot;
use crate::heap::class::{computed_class, small_class};

/// As [`alloc`](super::alloc()) with an alignment of 16, if the thread's magazines have a block of this size. If they
/// have none, nothing is changed.
///
/// ```
/// use larder::heap::global;
/// let at = global::try_alloc(100).map_or_else(|| global::alloc(100, 16), |at| at.as_ptr());
/// assert!(!at.is_null());
/// // SAFETY: taken above, put once.
/// unsafe { global::free(at) };
/// assert!(global::try_alloc(usize::MAX).is_none());
/// ```
#[inline(always)]
#[must_use]
pub fn try_alloc(size: usize) -> Option<NonNull<u8>> {
    slot::heap()?.try_get(small_class(size)?)
}

/// As [`try_alloc`], for sizes whose class is computed: above 32 KiB, up to 1 MiB. They are a step away from `malloc`, whose
/// own code is for the smaller ones.
///
/// ```
/// use larder::heap::global;
/// assert!(global::try_alloc_computed(100).is_none());
/// ```
#[inline(always)]
#[must_use]
pub fn try_alloc_computed(size: usize) -> Option<NonNull<u8>> {
    slot::heap()?.try_get(computed_class(size)?)
}

/// As [`free`](super::free), if the thread's magazines have room for the block. False where nothing was done: for null,
/// for large blocks, and for addresses whose page holds no blocks.
///
/// # Safety
/// As for [`free`](super::free) where the result is true.
///
/// ```
/// use larder::heap::global;
/// let at = global::alloc(100, 16);
/// // SAFETY: taken above, put once.
/// unsafe {
///     if !global::try_free(at) {
///         global::free(at);
///     }
///     assert!(!global::try_free(std::ptr::null_mut()));
/// }
/// ```
#[inline(always)]
#[must_use]
pub unsafe fn try_free(at: *mut u8) -> bool {
    // SAFETY: the caller's promise.
    slot::heap().is_some_and(|heap| unsafe { heap.try_put(at) })
}
