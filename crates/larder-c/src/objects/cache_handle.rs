//! A stock of objects of one's own.

use core::ffi::c_void;

use larder::objects::RawHandle;

use super::cache::{larder_cache, own_object};
use crate::busy::{Owned, on_owned};
use crate::call::{NO_ERROR, answer, ask, free, make};
use crate::error::{Failed, larder_error, larder_status};
use crate::mark::opaque;

/// A magazine of objects that only their owner uses: no lock, no atomic instruction. It may move between threads, but only one may
/// use it at a time, and no callback may use the handle that called it. It keeps its cache.
pub struct larder_cache_handle {
    _opaque: [u8; 0],
}

opaque!(
    larder_cache_handle,
    Owned<RawHandle>,
    b"ldrchan1",
    "cache handle",
    |own| own.busy.may_end()
);

/// Makes a handle over a cache. `out` gets it, or NULL after a failure.
///
/// # Safety
/// `cache` is NULL or a live cache; `out` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_cache_handle_new(
    cache: *const larder_cache,
    out: *mut *mut larder_cache_handle,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        make(cache, out, error, |cache| {
            Ok(Owned::new(cache.handle(), ()))
        })
    }
}

/// Ends a handle; NULL does nothing. Its stock goes back to the cache, in constant time.
///
/// # Safety
/// `handle` is NULL or a live cache handle, which no other thread uses, and which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_cache_handle_free(
    handle: *mut larder_cache_handle,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { free(handle) }
}

/// As larder_cache_get.
///
/// # Safety
/// `handle` is NULL or a live cache handle that no other thread uses meanwhile; `object` and `error` are NULL or can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_cache_handle_get(
    handle: *mut larder_cache_handle,
    object: *mut *mut c_void,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on_owned(handle, error, |handle| {
            answer(("object", object), || handle.get())
        })
    }
}

/// As larder_cache_put.
///
/// # Safety
/// `handle` is NULL or a live cache handle that no other thread uses meanwhile; what `object` points to, if it came from here,
/// is in the caller's hands and not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_cache_handle_put(
    handle: *mut larder_cache_handle,
    object: *mut c_void,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on_owned(handle, NO_ERROR, |handle| {
            let object = own_object(handle.cache(), object)?;
            handle.put(object);
            Ok::<_, Failed>(())
        })
    }
}

/// Gives the stock to the cache, where other threads find it. Call it before a long idle time.
///
/// # Safety
/// `handle` is NULL or a live cache handle that no other thread uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_cache_handle_flush(
    handle: *mut larder_cache_handle,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on_owned(handle, NO_ERROR, RawHandle::flush) }
}

/// Objects in the handle's stock; 0 for a pointer that is no handle.
///
/// # Safety
/// `handle` is NULL or a live cache handle that no other thread uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_cache_handle_len(handle: *const larder_cache_handle) -> usize {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { ask(handle, 0, |own| own.with(|own| Ok(own.len())).unwrap_or(0)) }
}
