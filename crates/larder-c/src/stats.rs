//! What a pool has done and holds.

use core::ffi::c_char;

use larder::pages::PagePool;

use crate::error::{larder_error, larder_status};
use crate::numbers::{self, numbers};
use crate::pool::larder_pool;

/// Numbers of a pool, read while threads go on: they belong to slightly different moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct larder_pool_stats {
    /// Bytes of this struct as the program knows it; set it before the call.
    pub size: usize,
    /// Pages taken from a CPU's magazines.
    pub hits: u64,
    /// Gets that found their CPU's magazines empty, in magazines.
    pub misses: u64,
    /// Pages put onto a CPU's magazines.
    pub puts: u64,
    /// Bytes backed by memory: in use, in stock and free.
    pub held_bytes: u64,
    /// Bytes in use or in stock.
    pub out_bytes: u64,
    /// Most that may be held; UINT64_MAX without a limit.
    pub limit_bytes: u64,
    /// Calls that made addresses accessible.
    pub commit_calls: u64,
    /// Calls that populated a cluster.
    pub populate_calls: u64,
    /// Calls that gave memory back.
    pub decommit_calls: u64,
    /// Page faults that consumers were spared.
    pub faults_avoided: u64,
    /// Bytes given back to the kernel.
    pub released_bytes: u64,
    /// Bytes that a get zeroed on the caller's thread.
    pub zeroed_by_caller_bytes: u64,
    /// Bytes that were zero when they were taken.
    pub zeroing_avoided_bytes: u64,
    /// Bytes that the helper zeroed.
    pub zeroed_by_helper_bytes: u64,
    /// Bytes that the helper populated ahead of need.
    pub fault_ahead_bytes: u64,
    /// CPU time of the helper in nanoseconds.
    pub helper_cpu_ns: u64,
    /// Bytes in the pre-zeroed stock's depot, at least.
    pub prezeroed_bytes: u64,
    /// Pages that a magazine may hold now.
    pub magazine_pages: u64,
    /// Magazines that exist.
    pub magazines: u64,
}

numbers!(larder_pool_stats, |pool: &PagePool| stats = pool.stats();
    hits, misses, puts, held_bytes, out_bytes,
    limit_bytes = numbers::limit(stats.limit_bytes),
    commit_calls, populate_calls, decommit_calls, faults_avoided, released_bytes, zeroed_by_caller_bytes, zeroing_avoided_bytes,
    zeroed_by_helper_bytes, fault_ahead_bytes, helper_cpu_ns, prezeroed_bytes, magazine_pages, magazines,
);

/// Reads the numbers. `stats->size` is the size that the program knows; it is set to the bytes written.
///
/// # Safety
/// `pool` is NULL or a live pool; `stats` is NULL or points to as many writable bytes as its first field says; `error` is NULL or can
/// be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_stats_read(
    pool: *const larder_pool,
    stats: *mut larder_pool_stats,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { numbers::read(pool, stats, error) }
}

/// Writes the numbers as one JSON object. `needed`, which may be NULL, gets the bytes of the whole text, its end included;
/// a buffer that is too small is LARDER_BUFFER and holds the beginning. `buffer` may be NULL when `bytes` is 0.
///
/// # Safety
/// `pool` is NULL or a live pool; `buffer` points to `bytes` writable bytes; `needed` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_stats_json(
    pool: *const larder_pool,
    buffer: *mut c_char,
    bytes: usize,
    needed: *mut usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { numbers::json::<_, larder_pool_stats>(pool, (buffer, bytes, needed), error) }
}
