//! What a cache has done and holds.

use core::ffi::c_char;

use larder::objects::RawCache;

use super::cache::larder_cache;
use crate::error::{larder_error, larder_status};
use crate::numbers::{self, numbers, text};

/// Bytes of the name in larder_cache_stats, its end included.
pub const LARDER_NAME_BYTES: usize = 32;

/// Numbers of a cache, read while threads go on: they belong to slightly different moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct larder_cache_stats {
    /// Bytes of this struct as the program knows it; set it before the call.
    pub size: usize,
    /// Its name; ends with a zero byte.
    pub name: [c_char; LARDER_NAME_BYTES],
    /// Bytes of an object, as requested.
    pub object_bytes: u64,
    /// Bytes from one object to the next.
    pub stride_bytes: u64,
    /// Objects of a slab.
    pub objects_per_slab: u64,
    /// Slabs.
    pub slabs: u64,
    /// Bytes of these slabs.
    pub held_bytes: u64,
    /// Most bytes of slabs; UINT64_MAX without a limit.
    pub limit_bytes: u64,
    /// Free objects in slabs.
    pub in_slabs: u64,
    /// Objects in use, in handles and in stock.
    pub out: u64,
    /// Gets served from a CPU's magazines. Gets of handles are not counted here.
    pub hits: u64,
    /// Gets that found their CPU's magazines empty.
    pub misses: u64,
    /// Objects that the constructor made.
    pub constructed: u64,
    /// Objects that the destructor destroyed.
    pub destroyed: u64,
    /// Pointers that were put but did not belong here; they were not taken.
    pub refused: u64,
    /// Objects that a magazine may hold now.
    pub magazine_objects: u64,
    /// Magazines that exist in the family.
    pub magazines: u64,
}

numbers!(larder_cache_stats, |cache: &RawCache| stats = cache.stats();
    name = text(stats.name.as_str()),
    object_bytes = stats.size as u64,
    stride_bytes = stats.stride as u64,
    objects_per_slab, slabs, held_bytes,
    limit_bytes = numbers::limit(stats.limit_bytes),
    in_slabs, out, hits, misses, constructed, destroyed, refused,
    magazine_objects = stats.magazine_rounds as u64,
    magazines,
);

/// Reads the numbers; as larder_pool_stats_read.
///
/// # Safety
/// `cache` is NULL or a live cache; `stats` is NULL or has as many writable bytes as its first field says; `error` is NULL or
/// can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_cache_stats_read(
    cache: *const larder_cache,
    stats: *mut larder_cache_stats,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { numbers::read(cache, stats, error) }
}

/// Writes the numbers as one JSON object; as larder_pool_stats_json.
///
/// # Safety
/// `cache` is NULL or a live cache; `buffer` points to `bytes` writable bytes; `needed` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_cache_stats_json(
    cache: *const larder_cache,
    buffer: *mut c_char,
    bytes: usize,
    needed: *mut usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { numbers::json::<_, larder_cache_stats>(cache, (buffer, bytes, needed), error) }
}
