//! Objects that are runs of pages by themselves.

use core::ffi::c_void;
use core::ptr::NonNull;

use super::family::larder_family;
use crate::error::{Failed, larder_error, larder_status};
use crate::guard::{guard, value};
use crate::mark::shared;

/// Takes at least `bytes` bytes in whole pages, aligned to `align`, a power of two; 0 is a page. Zeroed, or with what a former owner
/// left. `object` gets it, or NULL after a failure. It takes a lock: not for a fast path.
///
/// # Safety
/// `family` is NULL or a live family; `object` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_family_get_large(
    family: *const larder_family,
    bytes: usize,
    align: usize,
    zeroed: bool,
    object: *mut *mut c_void,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            let family = shared(family)?;
            answer(object, || {
                if bytes == 0 {
                    return Err(Failed::said(
                        larder_status::LARDER_ARGUMENT,
                        "bytes",
                        "is 0; a large object has at least 1",
                    ));
                }
                let align = alignment(align, 1)?;
                Ok(if zeroed {
                    family.get_large_zeroed(bytes, align)
                } else {
                    family.get_large(bytes, align)
                }?)
            })
        })
    }
}

/// Puts a large object back. An address that is not the beginning of one is LARDER_FOREIGN.
///
/// # Safety
/// `family` is NULL or a live family; what `object` points to, if it came from here, is in the caller's hands and not used
/// afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_family_put_large(
    family: *const larder_family,
    object: *mut c_void,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need, and gives the object up.
    unsafe {
        guard(core::ptr::null_mut(), || {
            let family = shared(family)?;
            Ok(family.put_large(not_null(object)?)?)
        })
    }
}

/// Bytes of the large object that begins at an address; 0 where none does.
///
/// # Safety
/// `family` is NULL or a live family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_family_large_bytes(
    family: *const larder_family,
    object: *const c_void,
) -> usize {
    value(0, || {
        // SAFETY: the caller of the C function promises what `shared` needs.
        let family = unsafe { shared(family)? };
        Ok(family.large_bytes(not_null(object.cast_mut())?)?)
    })
}

/// An object that C hands in.
#[inline]
pub(crate) fn not_null(object: *mut c_void) -> Result<NonNull<u8>, Failed> {
    NonNull::new(object.cast()).ok_or_else(|| Failed::null("object"))
}

/// An alignment that C asks for; 0 is `otherwise`.
#[inline]
pub(crate) fn alignment(align: usize, otherwise: usize) -> Result<usize, Failed> {
    match align {
        0 => Ok(otherwise),
        n if n.is_power_of_two() => Ok(n),
        n => Err(Failed::argument(
            "align is",
            n as u64,
            "; it must be a power of two",
        )),
    }
}

/// Writes an object, or NULL when there is none.
///
/// # Safety
/// `object` is NULL or can be written.
#[inline]
pub(crate) unsafe fn answer(
    object: *mut *mut c_void,
    take: impl FnOnce() -> Result<NonNull<u8>, Failed>,
) -> Result<(), Failed> {
    if object.is_null() {
        return Err(Failed::null("object"));
    }
    // SAFETY: the caller's promise. NULL first, so that a failure leaves no garbage.
    unsafe {
        object.write(core::ptr::null_mut());
        object.write(take()?.as_ptr().cast());
    }
    Ok(())
}
