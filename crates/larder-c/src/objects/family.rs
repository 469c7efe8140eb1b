//! Families: what object caches and heaps share, with the objects that are runs of pages by themselves.

use core::ffi::{c_char, c_void};
use core::ptr::NonNull;
use std::time::Duration;

use larder::objects::{Family, FamilyBuilder, Misuse};
use larder::pages::PoolError;

use crate::call::{NO_ERROR, ask, free, give_back, guard, make, not_null, on, take};
use crate::error::{Failed, larder_error, larder_status};
use crate::mark::{give, opaque};
use crate::numbers::{self, numbers};
use crate::options::{SizeFirst, alignment, blank, check_flags, init, mode, read_sized};
use crate::pool::{larder_pool, larder_pool_options};

/// Settings of a family. `larder_family_options_init` fills in the defaults.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct larder_family_options {
    /// Bytes of this struct, as the program knows it: `sizeof(larder_family_options)`.
    pub size: usize,
    /// Settings of the pool that slabs come from, its limit and reservation among them; NULL for the defaults.
    pub pages: *const larder_pool_options,
    /// The working-set interval in milliseconds: memory that a whole interval did not need goes back. 0 keeps no free memory
    /// beyond magazines.
    pub interval_ms: u64,
    /// LARDER_MODE_AUTO or LARDER_MODE_LOCKED, for the magazines of caches; the pool has its own.
    pub mode: u32,
    /// 0.
    pub flags: u32,
    /// Most bytes of free memory that the family keeps beside as much as is in use; SIZE_MAX for no bound. 0 is 64 MiB, and up to a
    /// sixteenth of the machine's memory when memory that went back is needed again within an interval.
    pub cached_bytes: usize,
}

// SAFETY: the size, then numbers and a pointer.
unsafe impl SizeFirst for larder_family_options {}

impl Default for larder_family_options {
    fn default() -> Self {
        Self {
            interval_ms: 1000,
            ..blank()
        }
    }
}

/// Fills in the defaults. `options` points to a `larder_family_options`; NULL is an error.
///
/// # Safety
/// `options` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_family_options_init(
    options: *mut larder_family_options,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { init(options) }
}

impl larder_family_options {
    /// # Safety
    /// `pages` is NULL or points to options that begin with their size.
    pub(super) unsafe fn builder(&self) -> Result<FamilyBuilder, Failed> {
        check_flags(self.flags, 0)?;
        // SAFETY: the caller's promise.
        let pages = unsafe { read_sized(self.pages)? };
        let mut builder = counted(Family::builder())
            .pages(pages.builder()?)
            .interval(Duration::from_millis(self.interval_ms));
        if let Some(mode) = mode(self.mode)? {
            builder = builder.mode(mode);
        }
        if self.cached_bytes > 0 {
            builder = builder.cached_bytes(self.cached_bytes);
        }
        Ok(builder)
    }
}

/// A wrong pointer that is found only when it reaches its slab is counted (`refused` in the statistics of its cache) and
/// not taken: no call is there to which an error could be returned.
pub(crate) fn counted(builder: FamilyBuilder) -> FamilyBuilder {
    fn nothing_more(_: &Misuse) {}
    builder.on_misuse(nothing_more)
}

/// Caches and heaps over one pool of pages, and the table of which cache owns which page. A program usually has one. Every function
/// except larder_family_free may be called by many threads at once.
pub struct larder_family {
    _opaque: [u8; 0],
}

opaque!(larder_family, Family, b"ldrfami1", "family");

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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        guard(error, || {
            give(out, || Ok(read_sized(options)?.builder()?.build()?))
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { free(family) }
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { make(family, out, error, |family| Ok(family.pool().clone())) }
}

/// The owner of the page at an address: the number of a cache (see larder_cache_number), 65535 for a large object, 0 for any
/// address that is not this family's, and beyond the first page of a large object or of one above 1 MiB. Nothing is read at the address.
///
/// # Safety
/// `family` is NULL or a live family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_family_owner(
    family: *const larder_family,
    address: *const c_void,
) -> u16 {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { ask(family, 0, |family| family.owner_number(address.cast())) }
}

/// Ends a working-set interval of all caches: memory that it did not need goes back. `bytes`, which may be NULL, gets the bytes of
/// slabs that went to the pool.
///
/// # Safety
/// `family` is NULL or a live family; `bytes` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_family_maintain(
    family: *const larder_family,
    bytes: *mut usize,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { give_back(family, bytes, Family::maintain) }
}

/// Gives back, now, everything that is neither in use nor in a handle or heap. `bytes`, which may be NULL, gets the bytes of pages
/// that went to the system.
///
/// # Safety
/// `family` is NULL or a live family; `bytes` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_family_trim(
    family: *const larder_family,
    bytes: *mut usize,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { give_back(family, bytes, Family::trim) }
}

/// Starts a thread of lowest priority that reaps every `interval_ms` milliseconds, or replaces it: memory goes back while
/// the program makes no calls.
///
/// # Safety
/// `family` is NULL or a live family; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_family_start_helper(
    family: *const larder_family,
    interval_ms: u64,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(family, error, |family| {
            if interval_ms == 0 {
                return Err(Failed::said(
                    larder_status::LARDER_ARGUMENT,
                    "interval_ms",
                    "is 0; it is at least 1",
                ));
            }
            family
                .start_helper(Duration::from_millis(interval_ms))
                .map_err(|e| PoolError::Helper(e.kind()).into())
        })
    }
}

/// Stops that thread if there is one, and waits for it. A callback must not call it.
///
/// # Safety
/// `family` is NULL or a live family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_family_stop_helper(family: *const larder_family) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(family, NO_ERROR, Family::stop_helper) }
}

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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        take(
            family,
            ("object", object),
            error,
            |family| -> Result<_, Failed> {
                if bytes == 0 {
                    return Err(Failed::said(
                        larder_status::LARDER_ARGUMENT,
                        "bytes",
                        "is 0; a large object has at least 1",
                    ));
                }
                let align = alignment(align, 1)?;
                Ok(match zeroed {
                    true => family.get_large_zeroed(bytes, align),
                    false => family.get_large(bytes, align),
                }?)
            },
        )
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(family, NO_ERROR, |family| -> Result<(), Failed> {
            Ok(family.put_large(not_null("object", object)?)?)
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        ask(family, 0, |family| {
            let object = NonNull::new(object.cast_mut().cast());
            object.map_or(0, |object| family.large_bytes(object).unwrap_or(0))
        })
    }
}

/// Numbers of a family. See also those of its caches, and those of its pool (larder_family_pool).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct larder_family_stats {
    /// Bytes of this struct as the program knows it; set it before the call.
    pub size: usize,
    /// Bytes backed by memory: slabs, large objects, and free pages.
    pub held_bytes: u64,
    /// Most of these; UINT64_MAX without a limit.
    pub limit_bytes: u64,
    /// Bytes in large objects.
    pub large_bytes: u64,
    /// Bytes of metadata of caches and slabs, in addition.
    pub metadata_bytes: u64,
}

numbers!(larder_family_stats, |family: &Family| pool = family.pool().stats();
    held_bytes,
    limit_bytes = numbers::limit(pool.limit_bytes),
    large_bytes = family.large_held_bytes() as u64,
    metadata_bytes = family.metadata_bytes() as u64,
);

/// Reads the numbers; as larder_pool_stats_read.
///
/// # Safety
/// `family` is NULL or a live family; `stats` is NULL or has as many writable bytes as its first field says; `error` is NULL or
/// can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_family_stats_read(
    family: *const larder_family,
    stats: *mut larder_family_stats,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { numbers::read(family, stats, error) }
}

/// Writes the numbers as one JSON object; as larder_pool_stats_json.
///
/// # Safety
/// `family` is NULL or a live family; `buffer` points to `bytes` writable bytes; `needed` and `error` are NULL or can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_family_stats_json(
    family: *const larder_family,
    buffer: *mut c_char,
    bytes: usize,
    needed: *mut usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { numbers::json::<_, larder_family_stats>(family, (buffer, bytes, needed), error) }
}
