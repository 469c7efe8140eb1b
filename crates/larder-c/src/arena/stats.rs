//! What an arena has done and holds.

use core::ffi::c_char;
use std::sync::Arc;

use larder::arena::StockStats;

use super::named::{Named, larder_arena};
use crate::call::ask;
use crate::error::{Failed, larder_error, larder_status};
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

numbers!(larder_arena_stats, |named: &Arc<Named>| stats = named.arena.stats();
    total_units = stats.total,
    free_units = stats.free,
    allocated_units = stats.allocated,
    imported_units = stats.imported,
    idle_units = stats.idle,
    // A number of units may be as large as it likes, so only the largest is no limit.
    limit_units = named.arena.limit(),
    spans, segments, allocs, frees, fails, imports, releases, bookkeeping_bytes,
);

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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { numbers::read(arena, stats, error) }
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { numbers::json::<_, larder_arena_stats>(arena, (buffer, bytes, needed), error) }
}

/// Numbers of one quantum cache, read while threads go on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct larder_quantum_stats {
    /// Bytes of this struct as the program knows it; set it before the call.
    pub size: usize,
    /// Units of each of its segments.
    pub units: u64,
    /// Segments taken from a CPU's magazines.
    pub hits: u64,
    /// Takes that found their CPU's magazines empty.
    pub misses: u64,
    /// Segments given to a CPU's magazines.
    pub puts: u64,
    /// Full magazines in the depot.
    pub full_magazines: u64,
    /// Segments that a magazine may hold now.
    pub magazine_segments: u64,
}

numbers!(larder_quantum_stats, |quantum: (u64, StockStats)| stock = quantum.1;
    units = quantum.0,
    hits = stock.pops,
    misses,
    puts = stock.pushes,
    full_magazines,
    magazine_segments = stock.rounds as u64,
);

fn quantum_stats(named: &Named, cache: usize) -> Result<larder_quantum_stats, Failed> {
    let stats = named.arena.quantum_stats().nth(cache);
    stats.map(larder_quantum_stats::from).ok_or_else(|| {
        Failed::argument(
            "the arena has no quantum cache number",
            cache as u64,
            "; they are counted from 0 to options.quantum_max / options.quantum - 1",
        )
    })
}

/// Quantum caches of an arena; 0 for a pointer that is no arena.
///
/// # Safety
/// `arena` is NULL or a live arena.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_quantum_caches(arena: *const larder_arena) -> usize {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { ask(arena, 0, |named| named.arena.quantum_stats().count()) }
}

/// Reads the numbers of quantum cache number `cache`, counted from 0, whose segments have `cache + 1` quanta; as
/// larder_pool_stats_read. What is taken by handles is not counted.
///
/// # Safety
/// `arena` is NULL or a live arena; `stats` is NULL or has as many writable bytes as its first field says; `error` is NULL or can
/// be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_quantum_stats_read(
    arena: *const larder_arena,
    cache: usize,
    stats: *mut larder_quantum_stats,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { numbers::try_read(arena, stats, error, |named| quantum_stats(named, cache)) }
}
