//! malloc's functions over the heap of the program.

use core::alloc::Layout;
use core::ptr::{NonNull, null_mut};
use core::time::Duration;

use super::state::{self, Global};
use super::{bootstrap, misuse, slot};
use crate::heap::{AllocError, GRAIN, SIZES, class_of};

#[inline(always)]
fn or_null(result: Result<NonNull<u8>, AllocError>) -> *mut u8 {
    result.map_or(null_mut(), NonNull::as_ptr)
}

/// At least `size` bytes at a multiple of `align`, a power of two; null when there are none, or no such alignment.
///
/// ```
/// use larder::heap::global;
/// let at = global::alloc(100, 16);
/// assert!(!at.is_null());
/// // SAFETY: taken above, put once.
/// unsafe { global::free(at) };
/// assert!(global::alloc(usize::MAX, 1).is_null());
/// ```
#[inline]
#[must_use]
pub fn alloc(size: usize, align: usize) -> *mut u8 {
    match (slot::heap(), class_of(size)) {
        (Some(heap), Some(class)) if align <= GRAIN && align.is_power_of_two() => {
            or_null(heap.get(class))
        }
        _ => alloc_odd(size, align, false),
    }
}

/// As [`alloc()`], with all bytes zero.
///
/// ```
/// use larder::heap::global;
/// let at = global::alloc_zeroed(100, 16);
/// // SAFETY: taken above, put once.
/// unsafe {
///     assert_eq!(at.add(99).read(), 0);
///     global::free(at);
/// }
/// ```
#[inline]
#[must_use]
pub fn alloc_zeroed(size: usize, align: usize) -> *mut u8 {
    match (slot::heap(), class_of(size)) {
        (Some(heap), Some(class)) if align <= GRAIN && align.is_power_of_two() => {
            let at = or_null(heap.get(class));
            if !at.is_null() {
                // SAFETY: just taken, with at least this size.
                unsafe { at.write_bytes(0, size) };
            }
            at
        }
        _ => alloc_odd(size, align, true),
    }
}

/// Gives back what one of these functions gave. Null is nothing.
///
/// # Safety
/// It is not used afterwards. An address that none of these functions gave is told to the standard error, and the
/// process ends: to go on would be worse.
///
/// ```
/// // SAFETY: null is nothing.
/// unsafe { larder::heap::global::free(std::ptr::null_mut()) };
/// ```
#[inline]
pub unsafe fn free(at: *mut u8) {
    let Some(object) = NonNull::new(at) else {
        return;
    };
    match slot::heap() {
        Some(heap) => match heap.class_at(object) {
            // SAFETY: the caller's promise.
            Some(class) => unsafe { heap.put(object, class) },
            // SAFETY: as above.
            None => unsafe { free_odd(object) },
        },
        // SAFETY: as above.
        None => unsafe { free_without_heap(object) },
    }
}

/// As [`free`], for a caller who knows what was asked for: the class need not be looked up.
///
/// # Safety
/// As for [`free`]; `size` and `align` are those of the request.
///
/// ```
/// use larder::heap::global;
/// let at = global::alloc(100, 16);
/// // SAFETY: taken above with this size and alignment, put once.
/// unsafe { global::free_sized(at, 100, 16) };
/// ```
#[inline]
pub unsafe fn free_sized(at: *mut u8, size: usize, align: usize) {
    match (slot::heap(), class_of(size), NonNull::new(at)) {
        (Some(heap), Some(class), Some(object)) if align <= GRAIN => {
            // SAFETY: the caller's promise. What the bootstrap gave is as good as an object of the class.
            unsafe { heap.put(object, class) };
        }
        // SAFETY: as above.
        _ => unsafe { free(at) },
    }
}

/// Makes a block larger or smaller; it may move. Null when there is no memory; then the block stays as it is.
///
/// # Safety
/// As for [`free`], unless the result is null.
///
/// ```
/// use larder::heap::global;
/// // SAFETY: each block is used once.
/// unsafe {
///     let at = global::realloc(global::alloc(10, 1), 100_000, 1);
///     assert!(global::usable_size(at) >= 100_000);
///     global::free(at);
/// }
/// ```
#[must_use]
pub unsafe fn realloc(at: *mut u8, size: usize, align: usize) -> *mut u8 {
    let Some(object) = NonNull::new(at) else {
        return alloc(size, align);
    };
    // SAFETY: the caller's promise.
    let has = unsafe { usable_size(at) };
    // SAFETY: as above, and it has this size.
    unsafe { resize(object, has, size, align) }
}

/// As [`realloc`], for a caller who knows what was asked for.
///
/// # Safety
/// As for [`free_sized`], unless the result is null; the alignment stays.
///
/// ```
/// use larder::heap::global;
/// let at = global::alloc(10, 8);
/// // SAFETY: each block is used once.
/// unsafe { global::free_sized(global::realloc_sized(at, 10, 20, 8), 20, 8) };
/// ```
#[inline]
#[must_use]
pub unsafe fn realloc_sized(at: *mut u8, old: usize, size: usize, align: usize) -> *mut u8 {
    match (NonNull::new(at), class_of(old)) {
        // SAFETY: the caller's promise; the class's size is what it has.
        (Some(object), Some(class)) if align <= GRAIN => unsafe {
            resize(object, SIZES[class], size, align)
        },
        // SAFETY: as above.
        _ => unsafe { realloc(at, size, align) },
    }
}

/// # Safety
/// As for [`realloc`]; the block has `has` bytes.
unsafe fn resize(object: NonNull<u8>, has: usize, size: usize, align: usize) -> *mut u8 {
    // A block must be what a request of its size would give: who frees it by size looks no further.
    let stays = match (class_of(size), class_of(has)) {
        (Some(new), Some(old)) => new == old,
        // Large ones are found by their address. More than half is in use.
        (None, None) => size <= has && size > has / 2,
        _ => false,
    };
    if stays && (object.as_ptr() as usize).is_multiple_of(align) {
        return object.as_ptr();
    }
    let to = alloc(size, align);
    if !to.is_null() {
        // SAFETY: both have at least this many bytes, and one of them is new.
        unsafe {
            to.copy_from_nonoverlapping(object.as_ptr(), has.min(size));
            free(object.as_ptr());
        }
    }
    to
}

/// Bytes that may be used of a block: at least what was asked for. 0 for null and for what is not in use.
///
/// # Safety
/// None of these functions has got the block back yet.
///
/// ```
/// use larder::heap::global;
/// let at = global::alloc(100, 1);
/// // SAFETY: taken above, put once.
/// unsafe {
///     assert_eq!(global::usable_size(at), 112);
///     global::free(at);
/// }
/// ```
#[must_use]
pub unsafe fn usable_size(at: *mut u8) -> usize {
    let Some(object) = NonNull::new(at) else {
        return 0;
    };
    let size = state::global().and_then(|global| global.classes.usable_size(object));
    size.or_else(|| bootstrap::size_of_block(object))
        .unwrap_or(0)
}

/// Gives everything back to the system that is not in use, but for what other threads have in their magazines. Returns
/// bytes of slabs that went.
///
/// ```
/// larder::heap::global::trim();
/// ```
pub fn trim() -> usize {
    if let Some(heap) = slot::heap() {
        heap.trim();
    }
    state::global().map_or(0, |global| global.classes.family().drain())
}

/// Starts a thread that gives back what was not used for an interval, while nobody calls.
///
/// ```
/// larder::heap::global::start_reaper(std::time::Duration::from_secs(1))?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// When no thread can be started, or there is no heap.
pub fn start_reaper(interval: Duration) -> std::io::Result<()> {
    state::global_or_make()
        .ok_or(std::io::ErrorKind::OutOfMemory)?
        .classes
        .family()
        .start_reaper(interval)
}

/// What is large, or aligned to more than usual, or asked for by a thread without a heap; or cannot be.
#[cold]
#[inline(never)]
fn alloc_odd(size: usize, align: usize, zeroed: bool) -> *mut u8 {
    let Ok(layout) = Layout::from_size_align(size, align) else {
        return null_mut();
    };
    if let Some(heap) = slot::heap() {
        return or_null(if zeroed {
            heap.alloc_zeroed(layout)
        } else {
            heap.alloc(layout)
        });
    }
    let Some(global) = state::global_or_make() else {
        return bootstrap::alloc(layout);
    };
    match global.start_thread() {
        Some(heap) if zeroed => or_null(heap.alloc_zeroed(layout)),
        Some(heap) => or_null(heap.alloc(layout)),
        None if zeroed => or_null(global.classes.alloc_zeroed(layout)),
        None => or_null(global.classes.alloc(layout)),
    }
}

/// # Safety
/// As for [`free`].
#[cold]
#[inline(never)]
unsafe fn free_without_heap(object: NonNull<u8>) {
    match state::global() {
        Some(global) if global.classes.class_at(object).is_some() => {
            // SAFETY: the caller's promise.
            unsafe { global.classes.free(object) };
        }
        // SAFETY: as above.
        _ => unsafe { free_odd(object) },
    }
}

/// What is no object of a size class: a large one, one of the bootstrap, or nobody's.
///
/// # Safety
/// As for [`free`].
#[cold]
#[inline(never)]
unsafe fn free_odd(object: NonNull<u8>) {
    if bootstrap::has(object) {
        return;
    }
    let put = |global: &Global| match slot::heap() {
        // SAFETY: the caller's promise.
        Some(heap) => unsafe { heap.put_large(object) },
        // SAFETY: as above.
        None => unsafe { global.classes.family().put_large(object) },
    };
    if state::global().is_none_or(|global| put(global).is_err()) {
        misuse::end(object.as_ptr() as usize);
    }
}
