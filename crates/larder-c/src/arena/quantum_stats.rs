//! What the quantum caches of an arena do.

use std::sync::Arc;

use super::{Named, larder_arena};
use crate::error::{Failed, larder_error, larder_status};
use crate::guard::value;
use crate::mark::shared;
use crate::numbers::{self, numbers};

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

numbers!(larder_quantum_stats {
    units,
    hits,
    misses,
    puts,
    full_magazines,
    magazine_segments
});

fn take(named: &Arc<Named>, cache: usize) -> Result<larder_quantum_stats, Failed> {
    let (units, stock) = named.arena.quantum_stats().nth(cache).ok_or_else(|| {
        Failed::argument(
            "the arena has no quantum cache number",
            cache as u64,
            "; they are counted from 0 to options.quantum_max / options.quantum - 1",
        )
    })?;
    Ok(larder_quantum_stats {
        size: size_of::<larder_quantum_stats>(),
        units,
        hits: stock.pops,
        misses: stock.misses,
        puts: stock.pushes,
        full_magazines: stock.full_magazines as u64,
        magazine_segments: stock.rounds as u64,
    })
}

/// Quantum caches of an arena; 0 for a pointer that is no arena.
///
/// # Safety
/// `arena` is NULL or a live arena.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_quantum_caches(arena: *const larder_arena) -> usize {
    value(0, || {
        // SAFETY: the caller of the C function promises what `shared` needs.
        Ok(unsafe { shared(arena)? }.arena.quantum_stats().count())
    })
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
    // SAFETY: the caller of the C function promises the same.
    unsafe { numbers::try_read(arena, stats, error, |named| take(named, cache)) }
}
