//! Caches of objects of one size.

use core::ffi::c_void;
use core::ptr::NonNull;

use larder::objects::{ObjectError, RawCache};

use super::cache_options::larder_cache_options;
use super::family::larder_family;
use crate::bulk;
use crate::call::{NO_ERROR, ask, destroy, free, give_back, make, not_null, on, take};
use crate::error::{Failed, larder_error, larder_status};
use crate::mark::opaque;
use crate::options::read_sized;

/// A cache of objects of one size, which stay constructed while they are free. Every function except larder_cache_free
/// and larder_cache_destroy may be called by many threads at once.
pub struct larder_cache {
    _opaque: [u8; 0],
}

opaque!(larder_cache, RawCache, b"ldrcach1", "cache");

/// Makes a cache of objects of `bytes` bytes, 1 to 4 MiB, aligned to `align`, a power of two up to a page; 0 is the alignment that a C type
/// of that size needs. `options` may be NULL for the defaults. `out` gets the cache, or NULL after a failure. Memory comes with the first get.
///
/// # Safety
/// `family` is NULL or a live family; `options` is NULL or has as many bytes as its first field says, and what it points to
/// lives and does what its documentation asks for; `out` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_cache_new(
    family: *const larder_family,
    bytes: usize,
    align: usize,
    options: *const larder_cache_options,
    out: *mut *mut larder_cache,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        make(family, out, error, |family| {
            read_sized(options)?.build(family, bytes, align)
        })
    }
}

/// Ends a cache; NULL does nothing. Its handles keep it; with the last of them all its objects are gone, also those in use, and the
/// destructor has been called for each that was constructed: when this returns, or, where a callback of the cache runs in this thread or
/// a callback of another one calls this, when that has returned. `end` in its options says when. A callback of the cache that
/// serves one of its gets, puts or drains must not call it.
///
/// # Safety
/// `cache` is NULL or a live cache, which no other thread uses, and which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_cache_free(cache: *mut larder_cache) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { free(cache) }
}

/// Ends a cache of which no object is in use or in a handle; NULL does nothing. Otherwise LARDER_BUSY says how many are; the cache
/// stays, with its stock given back.
///
/// # Safety
/// `cache` is NULL or a live cache, which no other thread uses, and which is not used afterwards; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_cache_destroy(
    cache: *mut larder_cache,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        destroy(
            cache,
            error,
            |cache| {
                cache.trim();
                // With the stock back in the slabs, the objects that are missing there are with users and in handles.
                cache.stats().out as u64
            },
            [
                "the cache is not ended:",
                " objects are in use or in handles; put them back, or end it by larder_cache_free",
            ],
        )
    }
}

/// Takes an object: constructed where there is a constructor, else with what a former user left. `object` gets it, or NULL after a
/// failure.
///
/// # Safety
/// `cache` is NULL or a live cache; `object` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_cache_get(
    cache: *const larder_cache,
    object: *mut *mut c_void,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { take(cache, ("object", object), error, RawCache::get) }
}

/// Puts an object back, constructed if there is a destructor. An address in no slab of this cache is LARDER_FOREIGN. An address inside
/// an object, or one that was put twice, is found when it comes to its slab: then it is not taken, and counted as refused.
///
/// # Safety
/// `cache` is NULL or a live cache; what `object` points to, if it came from here, is in the caller's hands and not used
/// afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_cache_put(
    cache: *const larder_cache,
    object: *mut c_void,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(cache, NO_ERROR, |cache| {
            own_object(cache, object).map(|object| cache.put(object))
        })
    }
}

/// The object behind a pointer of C's, if it lies in a slab of the cache.
#[inline]
pub(super) fn own_object(cache: &RawCache, object: *mut c_void) -> Result<NonNull<u8>, Failed> {
    let object = not_null("object", object)?;
    if cache.family().owner_number(object.as_ptr()) == cache.number().get() {
        Ok(object)
    } else {
        Err(Failed::number(
            larder_status::LARDER_FOREIGN,
            "the address",
            object.as_ptr() as u64,
            " is no object of this cache",
        ))
    }
}

/// As larder_cache_put, after looking under a lock whether an object begins there.
///
/// # Safety
/// `cache` is NULL or a live cache; `error` is NULL or can be written; what `object` points to, if it came from here, is in the
/// caller's hands and not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_cache_put_checked(
    cache: *const larder_cache,
    object: *mut c_void,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(cache, error, |cache| -> Result<(), Failed> {
            Ok(cache.put_checked(not_null("object", object)?)?)
        })
    }
}

/// The number that larder_family_owner returns for this cache's objects, 1 to 65534; 0 for a pointer that is no cache. Numbers are used again.
///
/// # Safety
/// `cache` is NULL or a live cache.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_cache_number(cache: *const larder_cache) -> u16 {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { ask(cache, 0, |cache| cache.number().get()) }
}

/// Bytes from one object to the next; 0 for a pointer that is no cache.
///
/// # Safety
/// `cache` is NULL or a live cache.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_cache_stride(cache: *const larder_cache) -> usize {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { ask(cache, 0, RawCache::stride) }
}

/// Ends a working-set interval of this cache; as larder_family_maintain.
///
/// # Safety
/// `cache` is NULL or a live cache; `bytes` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_cache_maintain(
    cache: *const larder_cache,
    bytes: *mut usize,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { give_back(cache, bytes, RawCache::maintain) }
}

/// Gives back everything of this cache that is neither in use nor in a handle; as larder_family_trim.
///
/// # Safety
/// `cache` is NULL or a live cache; `bytes` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_cache_trim(
    cache: *const larder_cache,
    bytes: *mut usize,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { give_back(cache, bytes, RawCache::trim) }
}

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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(cache, error, |cache| {
            bulk::fill(
                ("objects", objects),
                n,
                |objects, got| {
                    while *got < n {
                        *got += cache.get_many(&mut objects[*got..])?;
                    }
                    Ok::<_, ObjectError>(())
                },
                |got| cache.put_many(got),
            )
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(cache, error, |cache| -> Result<(), Failed> {
            let objects = bulk::pointers(("objects", objects), n)?;
            for object in objects {
                own_object(cache, *object)?;
            }
            // None of them is NULL, as was just seen.
            cache.put_many(core::slice::from_raw_parts(
                objects.as_ptr().cast(),
                objects.len(),
            ));
            Ok(())
        })
    }
}
