//! Block caches: what is done with all of one, and its numbers.

use core::ffi::c_char;
use std::time::Duration;

use larder_cache::BlockCache;

use super::cache_options::larder_blocks_options;
use crate::call::{NO_ERROR, ask, free, guard, on};
use crate::error::{Failed, larder_error, larder_status};
use crate::mark::{give, opaque};
use crate::numbers::{self, numbers, text};
use crate::objects::cache_stats::LARDER_NAME_BYTES;
use crate::options::read_sized;

/// A cache of blocks of files: each is read once for all threads, kept by a replacement rule, and written back in order. A block
/// is a page of the system. Every function except larder_blocks_free may be called by many threads at once.
pub struct larder_blocks {
    _opaque: [u8; 0],
}

opaque!(larder_blocks, BlockCache, b"ldrblks1", "block cache");

/// Makes a block cache. `options` may be NULL for the defaults: files in memory. `out` gets it, or NULL after a failure.
///
/// # Safety
/// `options` is NULL or has as many bytes as its first field says, with pointers that are NULL or live; `out` and `error` are NULL
/// or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_new(
    options: *const larder_blocks_options,
    out: *mut *mut larder_blocks,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { guard(error, || give(out, || read_sized(options)?.build())) }
}

/// Ends a cache; NULL does nothing. Its helper ends with it; files and handles keep what they stand on. With the last of them dirty
/// blocks are written, but not synced, and errors are not reported: sync the files before.
///
/// # Safety
/// `blocks` is NULL or a live block cache, which no other thread uses, and which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_free(blocks: *mut larder_blocks) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { free(blocks) }
}

/// Bytes of a block; 0 for a pointer that is no block cache.
///
/// # Safety
/// `blocks` is NULL or a live block cache.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_block_bytes(blocks: *const larder_blocks) -> usize {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { ask(blocks, 0, BlockCache::block_size) }
}

/// Changes how many bytes of blocks there may be. Blocks that are too many leave, dirty ones after they were written; pinned ones
/// stay until they are unpinned.
///
/// # Safety
/// `blocks` is NULL or a live block cache; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_set_bytes(
    blocks: *const larder_blocks,
    bytes: usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(blocks, error, |blocks| blocks.set_bytes(bytes)) }
}

/// Gives back about `bytes` of memory now; the size stays. `given`, which may be NULL, gets how many it was.
///
/// # Safety
/// `blocks` is NULL or a live block cache; `given` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_trim(
    blocks: *const larder_blocks,
    bytes: usize,
    given: *mut usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(blocks, error, |blocks| put(given, blocks.trim(bytes)?)) }
}

/// # Safety
/// `place` is NULL or can be written.
unsafe fn put(place: *mut usize, value: usize) -> Result<(), Failed> {
    if !place.is_null() {
        // SAFETY: the caller's promise.
        unsafe { place.write(value) };
    }
    Ok(())
}

/// Upkeep, to be called about once a second: writes blocks that are dirty for too long or too many, and gives memory back when
/// programs wait for it. `given`, which may be NULL, gets the bytes given back.
///
/// # Safety
/// `blocks` is NULL or a live block cache; `given` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_maintain(
    blocks: *const larder_blocks,
    given: *mut usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(blocks, error, |blocks| put(given, blocks.maintain()?)) }
}

/// Starts a thread that calls larder_blocks_maintain every `interval_ms`, at least 1, or replaces it.
///
/// # Safety
/// `blocks` is NULL or a live block cache; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_start_helper(
    blocks: *const larder_blocks,
    interval_ms: u64,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(blocks, error, |blocks| {
            if interval_ms == 0 {
                let wrong = "is 0; it is at least 1";
                return Err(Failed::said(
                    larder_status::LARDER_ARGUMENT,
                    "interval_ms",
                    wrong,
                ));
            }
            let started = blocks.start_helper(Duration::from_millis(interval_ms));
            started.map_err(|e| Failed::io("block cache: the helper thread cannot be started", &e))
        })
    }
}

/// Stops the helper thread if there is one, and waits for it.
///
/// # Safety
/// `blocks` is NULL or a live block cache.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_stop_helper(blocks: *const larder_blocks) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(blocks, NO_ERROR, BlockCache::stop_helper) }
}

/// Writes all dirty blocks of all files, in order, and does not sync them. Waits for blocks that are pinned for writing.
///
/// # Safety
/// `blocks` is NULL or a live block cache; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_write_back(
    blocks: *const larder_blocks,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(blocks, error, BlockCache::write_back) }
}

/// Makes all that was written safe: writes the dirty blocks of all files, those that were freed too, and syncs each file. The first
/// failure is returned, and the other files are synced all the same.
///
/// # Safety
/// `blocks` is NULL or a live block cache; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_sync(
    blocks: *const larder_blocks,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(blocks, error, BlockCache::sync) }
}

/// Numbers of a block cache. Uses that handles have not reported yet, up to 192 each, are not in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct larder_blocks_stats {
    /// Bytes of this struct as the program knows it; set it before the call.
    pub size: usize,
    /// The rule; ends with a zero byte.
    pub policy: [c_char; LARDER_NAME_BYTES],
    /// Uses that found their block.
    pub hits: u64,
    /// Uses that did not.
    pub misses: u64,
    /// Misses of blocks that the rule still remembered.
    pub refaults: u64,
    /// Blocks read ahead.
    pub read_ahead: u64,
    /// Blocks read ahead that left without a use.
    pub wasted: u64,
    /// Blocks that left to make room.
    pub evictions: u64,
    /// Blocks written to the storage.
    pub written: u64,
    /// Changed blocks that were forgotten and never written.
    pub discarded: u64,
    /// Writes that failed.
    pub write_errors: u64,
    /// Reads that failed.
    pub read_errors: u64,
    /// Blocks in memory.
    pub resident: u64,
    /// Blocks in memory that the storage does not have yet.
    pub dirty: u64,
    /// Files that are open, or have blocks in memory yet.
    pub files: u64,
    /// Most blocks there may be now.
    pub capacity: u64,
    /// Bytes of the cache's tables and lists.
    pub table_bytes: u64,
}

numbers!(larder_blocks_stats, |blocks: &BlockCache| stats = blocks.stats();
    policy = text(stats.policy),
    hits, misses, refaults, read_ahead, wasted, evictions, written, discarded, write_errors, read_errors, resident, dirty, files,
    capacity, table_bytes,
);

/// Reads the numbers; as larder_pool_stats_read.
///
/// # Safety
/// `blocks` is NULL or a live block cache; `stats` is NULL or has as many writable bytes as its first field says; `error` is NULL or
/// can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_stats_read(
    blocks: *const larder_blocks,
    stats: *mut larder_blocks_stats,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { numbers::read(blocks, stats, error) }
}

/// Writes the numbers as one JSON object; as larder_pool_stats_json.
///
/// # Safety
/// `blocks` is NULL or a live block cache; `buffer` points to `bytes` writable bytes; `needed` and `error` are NULL or can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_stats_json(
    blocks: *const larder_blocks,
    buffer: *mut c_char,
    bytes: usize,
    needed: *mut usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { numbers::json::<_, larder_blocks_stats>(blocks, (buffer, bytes, needed), error) }
}
