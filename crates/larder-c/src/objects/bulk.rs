//! Many objects of a cache at once.

use core::ffi::c_void;
use core::ptr::NonNull;

use super::cache::{larder_cache, own_object};
use crate::error::{Failed, larder_error, larder_status};
use crate::guard::guard;
use crate::mark::shared;

/// Fills `objects[0]` to `objects[n - 1]`: all of them, or NULL and an error.
///
/// # Safety
/// `cache` is NULL or a live cache; `objects` has room for `n` pointers; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_cache_get_many(
    cache: *const larder_cache,
    objects: *mut *mut c_void,
    n: usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need: room for n pointers.
    unsafe {
        guard(error, || {
            let cache = shared(cache)?;
            if n == 0 {
                return Ok(());
            }
            if objects.is_null() {
                return Err(Failed::null("objects"));
            }
            // The memory may not hold pointers yet.
            for i in 0..n {
                objects
                    .add(i)
                    .cast::<NonNull<u8>>()
                    .write(NonNull::dangling());
            }
            // SAFETY: n pointers that are not NULL, in the caller's memory.
            let all = core::slice::from_raw_parts_mut(objects.cast::<NonNull<u8>>(), n);
            let mut got = 0;
            while got < n {
                match cache.get_many(&mut all[got..]) {
                    Ok(more) => got += more,
                    Err(failed) => {
                        // SAFETY: taken above; no caller has seen them yet.
                        cache.put_many(&all[..got]);
                        // The caller finds no object there that it does not own.
                        core::ptr::write_bytes(objects, 0, n);
                        return Err(failed.into());
                    }
                }
            }
            Ok(())
        })
    }
}

/// Puts `objects[0]` to `objects[n - 1]` back: all of them; or, when one of them is NULL or not of this cache, none and an error.
///
/// # Safety
/// `cache` is NULL or a live cache; `objects` has `n` pointers, of what is in the caller's hands and not used afterwards;
/// `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_cache_put_many(
    cache: *const larder_cache,
    objects: *const *mut c_void,
    n: usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need: n pointers to read.
    unsafe {
        guard(error, || {
            let cache = shared(cache)?;
            if n == 0 {
                return Ok(());
            }
            if objects.is_null() {
                return Err(Failed::null("objects"));
            }
            for i in 0..n {
                own_object(cache, *objects.add(i))?;
            }
            // SAFETY: n pointers, none of them NULL as was just seen, which the caller gives up.
            cache.put_many(core::slice::from_raw_parts(objects.cast(), n));
            Ok(())
        })
    }
}
