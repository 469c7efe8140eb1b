//! Size classes: a front for all threads, and what heaps share.

use core::ffi::c_void;
use core::ops::Deref;

use larder::heap::Classes;

use super::front::{self, Enter};
use crate::call::{NO_ERROR, ask, free, make, on};
use crate::error::{larder_error, larder_status};
use crate::mark::opaque;
use crate::objects::family::larder_family;

/// A cache of objects for every size class, made when it is first needed. It hands out memory to all threads at once, from the
/// magazines of their CPUs, and heaps are made from it. Every function except larder_classes_free may be called by many threads.
pub struct larder_classes {
    _opaque: [u8; 0],
}

opaque!(larder_classes, Classes, b"ldrclas1", "classes");

impl Enter for Classes {
    type Front = Self;
    #[inline(always)]
    fn enter(&self) -> impl Deref<Target = Self> {
        self
    }
}

/// Makes classes over a family. `out` gets them, or NULL after a failure.
///
/// # Safety
/// `family` is NULL or a live family; `out` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_classes_new(
    family: *const larder_family,
    out: *mut *mut larder_classes,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { make(family, out, error, |family| Ok(Classes::new(family))) }
}

/// Ends classes; NULL does nothing. Their heaps keep them; with the last of these all their objects are gone, but for large ones
/// (more than 4 MiB, or aligned to more than a page): these are the family's, and go back by larder_family_put_large.
///
/// # Safety
/// `classes` is NULL or live classes, which no other thread uses, and which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_classes_free(classes: *mut larder_classes) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { free(classes) }
}

/// Takes `bytes` bytes, aligned to 16, with what a former owner left; 0 bytes are an object as well. `object` gets it, or NULL
/// after a failure.
///
/// # Safety
/// `classes` is NULL or live classes; `object` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_classes_alloc(
    classes: *const larder_classes,
    bytes: usize,
    object: *mut *mut c_void,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(classes, error, |own| front::alloc(own, (bytes, 0), object)) }
}

/// As larder_classes_alloc, with all bytes zero.
///
/// # Safety
/// `classes` is NULL or live classes; `object` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_classes_alloc_zeroed(
    classes: *const larder_classes,
    bytes: usize,
    object: *mut *mut c_void,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(classes, error, |own| {
            front::alloc_zeroed(own, bytes, object)
        })
    }
}

/// As larder_classes_alloc, aligned to `align`, a power of two; 0 is 16.
///
/// # Safety
/// `classes` is NULL or live classes; `object` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_classes_alloc_aligned(
    classes: *const larder_classes,
    bytes: usize,
    align: usize,
    object: *mut *mut c_void,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(classes, error, |own| {
            front::alloc(own, (bytes, align), object)
        })
    }
}

/// Makes `*object` larger or smaller. It may move, and is then aligned to 16, whatever it was before. NULL in `*object` begins a new
/// one. After a failure the object is where and what it was.
///
/// # Safety
/// `classes` is NULL or live classes; `object` is NULL or can be read and written, and what is in it is in the caller's hands;
/// `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_classes_realloc(
    classes: *const larder_classes,
    object: *mut *mut c_void,
    bytes: usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(classes, error, |own| front::realloc(own, object, bytes)) }
}

/// Gives an object back; NULL does nothing. It must come from these classes or from a heap that is made from them, else it is
/// LARDER_FOREIGN. An address inside an object, or an object that is given back twice, is not detected.
///
/// # Safety
/// `classes` is NULL or live classes; what `object` points to, if it came from here, is in the caller's hands and not used
/// afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_classes_dealloc(
    classes: *const larder_classes,
    object: *mut c_void,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(classes, NO_ERROR, |own| front::dealloc(own, object)) }
}

/// As larder_classes_dealloc, for an object that was allocated with `bytes` bytes and no alignment. LARDER_SIZE when it was not; then
/// nothing has changed.
///
/// # Safety
/// `classes` is NULL or live classes; what `object` points to, if it came from here, is in the caller's hands and not used
/// afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_classes_dealloc_sized(
    classes: *const larder_classes,
    object: *mut c_void,
    bytes: usize,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(classes, NO_ERROR, |own| {
            front::dealloc_sized(own, object, (bytes, 0))
        })
    }
}

/// As larder_classes_dealloc_sized, for an object that was allocated with an alignment.
///
/// # Safety
/// `classes` is NULL or live classes; what `object` points to, if it came from here, is in the caller's hands and not used
/// afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_classes_dealloc_aligned(
    classes: *const larder_classes,
    object: *mut c_void,
    bytes: usize,
    align: usize,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(classes, NO_ERROR, |own| {
            front::dealloc_sized(own, object, (bytes, align))
        })
    }
}

/// Bytes of an object that may be used, at least those requested; 0 for a pointer that is no object.
///
/// # Safety
/// `classes` is NULL or live classes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_classes_usable_bytes(
    classes: *const larder_classes,
    object: *const c_void,
) -> usize {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { ask(classes, 0, |own| front::usable_bytes(own, object)) }
}
