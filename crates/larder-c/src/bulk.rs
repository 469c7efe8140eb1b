//! Many pages or objects at once, in an array of C's: all of them, or none.

use core::ffi::c_void;
use core::ptr::NonNull;

use crate::error::Failed;

/// Fills `at[0]` to `at[n - 1]`. `take` fills a slice and counts what it has filled; after a failure `put` gets that, and the array
/// is NULL.
///
/// # Safety
/// `at` is NULL or has room for `n` pointers.
#[inline(always)]
pub(crate) unsafe fn fill<E>(
    (name, at): (&'static str, *mut *mut c_void),
    n: usize,
    take: impl FnOnce(&mut [NonNull<u8>], &mut usize) -> Result<(), E>,
    put: impl FnOnce(&[NonNull<u8>]),
) -> Result<(), Failed>
where
    Failed: From<E>,
{
    if n == 0 {
        return Ok(());
    }
    if at.is_null() {
        return Err(Failed::null(name));
    }
    let places = at.cast::<NonNull<u8>>();
    for i in 0..n {
        // SAFETY: room for n pointers is the caller's promise. The memory may not hold pointers yet.
        unsafe { places.add(i).write(NonNull::dangling()) };
    }
    // SAFETY: n pointers that are not NULL, in the caller's memory.
    let all = unsafe { core::slice::from_raw_parts_mut(places, n) };
    let mut got = 0;
    take(all, &mut got).map_err(|failed| {
        put(&all[..got]);
        // SAFETY: as above. The caller finds nothing there that it does not own.
        unsafe { core::ptr::write_bytes(at, 0, n) };
        failed.into()
    })
}

/// The pointers `at[0]` to `at[n - 1]`.
///
/// # Safety
/// `at` is NULL or has `n` pointers, which stay for `'a`.
pub(crate) unsafe fn pointers<'a>(
    (name, at): (&'static str, *const *mut c_void),
    n: usize,
) -> Result<&'a [*mut c_void], Failed> {
    match at.is_null() {
        _ if n == 0 => Ok(&[]),
        true => Err(Failed::null(name)),
        // SAFETY: the caller's promise.
        false => Ok(unsafe { core::slice::from_raw_parts(at, n) }),
    }
}
