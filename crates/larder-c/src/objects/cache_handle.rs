//! A stock of objects of one's own.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::fmt;

use larder::objects::{RawCache, RawHandle};

use super::cache::{larder_cache, own_object};
use super::large::answer;
use crate::busy::Busy;
use crate::error::{Failed, larder_error, larder_status};
use crate::guard::{guard, value};
use crate::mark::{Opaque, end, give, shared};

/// Two magazines of objects that only their owner uses: no lock, no atomic instruction. It may move between threads, but only one may
/// use it at a time, and no callback may use the handle that called it. It keeps its cache.
#[derive(Debug)]
pub struct larder_cache_handle {
    _opaque: [u8; 0],
}

/// A handle, and whether a call is inside.
pub(crate) struct Own {
    handle: UnsafeCell<RawHandle>,
    busy: Busy,
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a cache's handle")
    }
}

impl Own {
    fn new(cache: &RawCache) -> Self {
        Self {
            handle: UnsafeCell::new(cache.handle()),
            busy: Busy::default(),
        }
    }

    /// # Safety
    /// No other thread uses the handle.
    #[inline]
    unsafe fn with<T>(
        &self,
        f: impl FnOnce(&mut RawHandle) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        let _here = self.busy.alone()?;
        // SAFETY: of one thread at a time (the caller's promise), and not from within a call of itself (`busy`).
        f(unsafe { &mut *self.handle.get() })
    }
}

impl Opaque for larder_cache_handle {
    type Inside = Own;
    const MARK: u64 = 0x6c64_7263_6861_6e31;
    const NAME: &'static str = "cache handle";

    fn may_end(inside: &Own) -> Result<(), Failed> {
        inside.busy.alone().map(drop)
    }
}

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
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            let cache = shared(cache)?;
            give(out, || Ok(Own::new(cache)))
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
    // SAFETY: the caller of the C function promises what these need.
    unsafe { guard(core::ptr::null_mut(), || end(handle)) }
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
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            shared(handle)?.with(|handle| answer(object, || Ok(handle.get()?)))
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
    // SAFETY: the caller of the C function promises what these need, and gives the object up.
    unsafe {
        guard(core::ptr::null_mut(), || {
            shared(handle)?.with(|handle| {
                let object = own_object(handle.cache(), object)?;
                handle.put(object);
                Ok(())
            })
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
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(core::ptr::null_mut(), || {
            shared(handle)?.with(|handle| {
                handle.flush();
                Ok(())
            })
        })
    }
}

/// Objects in the handle's stock; 0 for a pointer that is no handle.
///
/// # Safety
/// `handle` is NULL or a live cache handle that no other thread uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_cache_handle_len(handle: *const larder_cache_handle) -> usize {
    value(0, || {
        // SAFETY: the caller of the C function promises what these need.
        unsafe { shared(handle)?.with(|handle| Ok(handle.len())) }
    })
}
