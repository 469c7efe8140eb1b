//! What an arena has done and holds.

use core::ffi::c_char;
use std::sync::Arc;

use super::{Named, larder_arena};
use crate::error::{larder_error, larder_status};
use crate::numbers::{self, numbers};

/// Numbers of an arena, all of one moment. Units are the arena's: bytes, pages or identifiers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct larder_arena_stats {
    /// Bytes of this struct as the program knows it; set it before the call.
    pub size: usize,
    /// Units in all spans.
    pub total_units: u64,
    /// Units in free segments.
    pub free_units: u64,
    /// Units that were cut from free segments: with consumers, and in the magazines of quantum caches.
    pub allocated_units: u64,
    /// Units in spans that came from the source.
    pub imported_units: u64,
    /// Units in spans from the source that are free as a whole.
    pub idle_units: u64,
    /// Most units that all spans may have; UINT64_MAX without a limit.
    pub limit_units: u64,
    /// Spans.
    pub spans: u64,
    /// Segments, free and allocated.
    pub segments: u64,
    /// Segments cut from free ones. What a quantum cache recycles is not counted.
    pub allocs: u64,
    /// Segments given back to free ones, without those that a quantum cache recycles.
    pub frees: u64,
    /// Calls that failed.
    pub fails: u64,
    /// Spans imported.
    pub imports: u64,
    /// Spans given back to the source.
    pub releases: u64,
    /// Bytes of memory that the arena's metadata may use, without magazines.
    pub bookkeeping_bytes: u64,
}

numbers!(larder_arena_stats {
    total_units,
    free_units,
    allocated_units,
    imported_units,
    idle_units,
    limit_units,
    spans,
    segments,
    allocs,
    frees,
    fails,
    imports,
    releases,
    bookkeeping_bytes,
});

fn take(named: &Arc<Named>) -> larder_arena_stats {
    let stats = named.arena.stats();
    larder_arena_stats {
        size: size_of::<larder_arena_stats>(),
        total_units: stats.total,
        free_units: stats.free,
        allocated_units: stats.allocated,
        imported_units: stats.imported,
        idle_units: stats.idle,
        // A number of units may be as large as it likes, so only the largest is no limit.
        limit_units: named.arena.limit(),
        spans: stats.spans,
        segments: stats.segments,
        allocs: stats.allocs,
        frees: stats.frees,
        fails: stats.fails,
        imports: stats.imports,
        releases: stats.releases,
        bookkeeping_bytes: stats.bookkeeping_bytes as u64,
    }
}

/// Reads the numbers; as larder_pool_stats_read.
///
/// # Safety
/// `arena` is NULL or a live arena; `stats` is NULL or has as many writable bytes as its first field says; `error` is NULL or
/// can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_stats_read(
    arena: *const larder_arena,
    stats: *mut larder_arena_stats,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises the same.
    unsafe { numbers::read(arena, stats, error, take) }
}

/// Writes the numbers as one JSON object; as larder_pool_stats_json.
///
/// # Safety
/// `arena` is NULL or a live arena; `buffer` points to `bytes` writable bytes; `needed` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_stats_json(
    arena: *const larder_arena,
    buffer: *mut c_char,
    bytes: usize,
    needed: *mut usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises the same.
    unsafe { numbers::json(arena, (buffer, bytes, needed), error, take) }
}
