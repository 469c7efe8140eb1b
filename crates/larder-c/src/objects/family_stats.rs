//! What a family holds.

use core::ffi::c_char;

use larder::objects::Family;

use super::family::larder_family;
use crate::error::{larder_error, larder_status};
use crate::numbers::{self, numbers};

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

numbers!(larder_family_stats {
    held_bytes,
    limit_bytes,
    large_bytes,
    metadata_bytes
});

fn take(family: &Family) -> larder_family_stats {
    let pool = family.pool().stats();
    larder_family_stats {
        size: size_of::<larder_family_stats>(),
        held_bytes: pool.held_bytes as u64,
        limit_bytes: numbers::limit(pool.limit_bytes as u64),
        large_bytes: family.large_held_bytes() as u64,
        metadata_bytes: family.metadata_bytes() as u64,
    }
}

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
    // SAFETY: the caller of the C function promises the same.
    unsafe { numbers::read(family, stats, error, take) }
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
    // SAFETY: the caller of the C function promises the same.
    unsafe { numbers::json(family, (buffer, bytes, needed), error, take) }
}
