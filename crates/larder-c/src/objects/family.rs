//! Families: what object caches and heaps share.

use core::ffi::c_void;
use std::time::Duration;

use larder::objects::Family;
use larder::pages::PoolError;

use super::family_options::larder_family_options;
use crate::error::{Failed, larder_error, larder_status};
use crate::guard::{guard, value};
use crate::mark::{Opaque, end, give, shared};
use crate::pool::larder_pool;

/// Caches and heaps over one pool of pages, and the table of which cache owns which page. A program usually has one. Every function
/// except larder_family_free may be called by many threads at once.
#[derive(Debug)]
pub struct larder_family {
    _opaque: [u8; 0],
}

impl Opaque for larder_family {
    type Inside = Family;
    const MARK: u64 = 0x6c64_7266_616d_6931;
    const NAME: &'static str = "family";
}

/// Makes a family. `options` may be NULL for the defaults. `out` gets the family, or NULL after a failure.
///
/// # Safety
/// `options` is NULL or has as many bytes as its first field says, and so has its `pages`; `out` and `error` are NULL or can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_family_new(
    options: *const larder_family_options,
    out: *mut *mut larder_family,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            give(out, || {
                let options = crate::options::read_sized(options)?;
                Ok(options.builder()?.build()?)
            })
        })
    }
}

/// Ends a family; NULL does nothing. Its caches, classes and heaps keep what they need of it; with the last of them its memory
/// goes. Large objects in use stay valid and keep their pool's memory for ever, since no family is left to take them: put
/// them before.
///
/// # Safety
/// `family` is NULL or a live family, which no other thread uses, and which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_family_free(family: *mut larder_family) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe { guard(core::ptr::null_mut(), || end(family)) }
}

/// The pool that slabs come from, for its limit and its numbers. `out` gets a handle that larder_pool_free ends, or NULL after a
/// failure.
///
/// # Safety
/// `family` is NULL or a live family; `out` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_family_pool(
    family: *const larder_family,
    out: *mut *mut larder_pool,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            let family = shared(family)?;
            give(out, || Ok(family.pool().clone()))
        })
    }
}

/// The owner of the page at an address: the number of a cache (see larder_cache_number), 65535 for a large object, 0 for any
/// address that is not this family's. Nothing is read at the address.
///
/// # Safety
/// `family` is NULL or a live family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_family_owner(
    family: *const larder_family,
    address: *const c_void,
) -> u16 {
    value(0, || {
        // SAFETY: the caller of the C function promises what `shared` needs.
        Ok(unsafe { shared(family)? }.owner_number(address.cast()))
    })
}

/// # Safety
/// `bytes` is NULL or can be written.
unsafe fn give_back(
    family: *const larder_family,
    bytes: *mut usize,
    how: fn(&Family) -> usize,
) -> larder_status {
    // SAFETY: the caller's promises.
    unsafe {
        guard(core::ptr::null_mut(), || {
            let given = how(shared(family)?);
            if !bytes.is_null() {
                bytes.write(given);
            }
            Ok(())
        })
    }
}

/// Ends a working-set interval of all caches: memory that it did not need goes one step back. `bytes`, which may be NULL, gets the bytes of
/// slabs that went to the pool.
///
/// # Safety
/// `family` is NULL or a live family; `bytes` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_family_reap(
    family: *const larder_family,
    bytes: *mut usize,
) -> larder_status {
    // SAFETY: the same promises.
    unsafe { give_back(family, bytes, Family::maintain) }
}

/// Gives back, now, everything that is neither in use nor in a handle or heap. `bytes`, which may be NULL, gets the bytes of slabs
/// that went to the pool.
///
/// # Safety
/// `family` is NULL or a live family; `bytes` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_family_drain(
    family: *const larder_family,
    bytes: *mut usize,
) -> larder_status {
    // SAFETY: the same promises.
    unsafe { give_back(family, bytes, Family::trim) }
}

/// Starts a thread of lowest priority that reaps every `interval_ms` milliseconds, or replaces it: memory goes back while
/// the program makes no calls.
///
/// # Safety
/// `family` is NULL or a live family; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_family_start_reaper(
    family: *const larder_family,
    interval_ms: u64,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            let family = shared(family)?;
            if interval_ms == 0 {
                return Err(Failed::said(
                    larder_status::LARDER_ARGUMENT,
                    "interval_ms",
                    "is 0; it is at least 1",
                ));
            }
            family
                .start_reaper(Duration::from_millis(interval_ms))
                .map_err(|e| Failed::from(PoolError::Helper(e.to_string().into())))
        })
    }
}

/// Stops that thread if there is one, and waits for it. A callback must not call it.
///
/// # Safety
/// `family` is NULL or a live family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_family_stop_reaper(family: *const larder_family) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(core::ptr::null_mut(), || {
            shared(family)?.stop_reaper();
            Ok(())
        })
    }
}
