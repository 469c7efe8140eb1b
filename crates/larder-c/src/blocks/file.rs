//! Open files of a block cache, and the tenants to which they belong.

use core::ffi::c_char;

use larder_cache::{BlockCache, CachedFile, FileId, FileStats, TenantId};

use super::cache::larder_blocks;
use crate::call::{ask, free, make, on};
use crate::error::{Failed, larder_error, larder_status};
use crate::mark::opaque;
use crate::numbers::{self, numbers};
use crate::options::text;

/// Where a file ends that did not say so.
pub const LARDER_BLOCKS_NO_END: u64 = u64::MAX;

/// An open file of a block cache. Each opening reports failed writes separately. Many threads may use it at once.
pub struct larder_blocks_file {
    _opaque: [u8; 0],
}

opaque!(larder_blocks_file, CachedFile, b"ldrbfil1", "file");

/// Opens file number `id` of the storage, of which the storage has `size` bytes: nothing behind is read, the storage's file is never
/// longer than the file, and grows in order. With LARDER_BLOCKS_NO_END files end with their blocks. A file that is open or has
/// blocks in memory keeps the end that was said. `tenant` is 0 or a number of the program's: larder_blocks_tenant_stats_read sums the
/// files of one, and larder_blocks_tenant_limit gives it a part of the cache. `out` gets the file, or NULL after a failure.
///
/// # Safety
/// `blocks` is NULL or a live block cache; `out` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_file_open(
    blocks: *const larder_blocks,
    id: u64,
    size: u64,
    tenant: u32,
    out: *mut *mut larder_blocks_file,
    error: *mut larder_error,
) -> larder_status {
    let (id, tenant) = (FileId(id), TenantId(tenant));
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        make(blocks, out, error, |blocks| {
            Ok(match size {
                LARDER_BLOCKS_NO_END => blocks.file_of(id, tenant)?,
                size => blocks.open_at_of(id, size, tenant)?,
            })
        })
    }
}

/// Closes a file; NULL does nothing. Its blocks stay in the cache, dirty ones too. Unpin all blocks of this opening before.
///
/// # Safety
/// `file` is NULL or a live file, which no other thread uses, of which no block is pinned, and which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_file_free(file: *mut larder_blocks_file) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { free(file) }
}

/// Writes the file's dirty blocks and syncs the storage: after LARDER_OK all that was written before is safe. Waits for blocks that
/// are pinned for writing.
///
/// # Safety
/// `file` is NULL or a live file; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_file_sync(
    file: *const larder_blocks_file,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(file, error, CachedFile::sync) }
}

/// Writes the file's dirty blocks and does not sync the storage. Waits for blocks that are pinned for writing.
///
/// # Safety
/// `file` is NULL or a live file; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_file_write_back(
    file: *const larder_blocks_file,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(file, error, CachedFile::write_back) }
}

/// Where the file ends, in bytes; LARDER_BLOCKS_NO_END as long as that was not said, or for a pointer that is no file.
///
/// # Safety
/// `file` is NULL or a live file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_file_end(file: *const larder_blocks_file) -> u64 {
    let end = |file: &CachedFile| file.end().unwrap_or(LARDER_BLOCKS_NO_END);
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { ask(file, LARDER_BLOCKS_NO_END, end) }
}

/// Says where the file ends: what lies behind is not written back, and reads as zeroes. Blocks stay in memory. Waits for blocks
/// there that are pinned.
///
/// # Safety
/// `file` is NULL or a live file; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_file_set_end(
    file: *const larder_blocks_file,
    end: u64,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(file, error, |file| file.set_end(end)) }
}

/// The file ends at `end`: blocks behind are forgotten, the rest of its last block is zeroed. The storage's file is the caller's to
/// truncate, afterwards. A file that is LARDER_LOST and truncated to 0 begins anew.
///
/// # Safety
/// `file` is NULL or a live file; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_file_truncate(
    file: *const larder_blocks_file,
    end: u64,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(file, error, |file| file.truncate(end)) }
}

/// Forgets `blocks` blocks from number `first` on, dirty or not, without writing them: what lies under the cache has changed.
/// LARDER_BUSY if one of them is pinned; none is forgotten then.
///
/// # Safety
/// `file` is NULL or a live file; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_file_invalidate(
    file: *const larder_blocks_file,
    first: u64,
    blocks: u64,
    error: *mut larder_error,
) -> larder_status {
    let all = first..first.saturating_add(blocks);
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(file, error, |file| file.invalidate(all)) }
}

/// Forgets all of a file that no longer exists: nothing of it is written. Waits for blocks that are pinned.
///
/// # Safety
/// `file` is NULL or a live file; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_file_discard(
    file: *const larder_blocks_file,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(file, error, CachedFile::discard) }
}

/// Numbers of a file since it was opened, by all its openings, or of all files of a tenant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct larder_blocks_file_stats {
    /// Bytes of this struct as the program knows it; set it before the call.
    pub size: usize,
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
    /// Blocks in memory.
    pub resident: u64,
    /// Blocks in memory that the storage does not have yet.
    pub dirty: u64,
}

numbers!(larder_blocks_file_stats, |taken: FileStats| stats = taken;
    hits, misses, refaults, read_ahead, wasted, evictions, written, discarded, resident, dirty,
);

/// Reads the numbers; as larder_pool_stats_read.
///
/// # Safety
/// `file` is NULL or a live file; `stats` is NULL or has as many writable bytes as its first field says; `error` is NULL or can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_file_stats_read(
    file: *const larder_blocks_file,
    stats: *mut larder_blocks_file_stats,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { numbers::try_read(file, stats, error, |file| Ok(file.stats().into())) }
}

/// Reads the sums of all files that were opened for a tenant, also of those that are closed; as larder_pool_stats_read. Looks at each
/// file. Of a tenant without files all are 0.
///
/// # Safety
/// `blocks` is NULL or a live block cache; `stats` is NULL or has as many writable bytes as its first field says; `error` is NULL or
/// can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_tenant_stats_read(
    blocks: *const larder_blocks,
    tenant: u32,
    stats: *mut larder_blocks_file_stats,
    error: *mut larder_error,
) -> larder_status {
    let sum = |blocks: &BlockCache| Ok(blocks.tenant_stats(TenantId(tenant)).into());
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { numbers::try_read(blocks, stats, error, sum) }
}

/// Gives a tenant `bytes` of the cache for itself, and the others what is left; with 0 it shares the cache with the others again.
/// `policy` is a rule of its own, or NULL for the one that it has, at first the cache's. Blocks that are too many leave as after
/// larder_blocks_set_bytes.
///
/// # Safety
/// `blocks` is NULL or a live block cache; `policy` is NULL or a text that ends with a zero byte; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_tenant_limit(
    blocks: *const larder_blocks,
    tenant: u32,
    bytes: usize,
    policy: *const c_char,
    error: *mut larder_error,
) -> larder_status {
    let tenant = TenantId(tenant);
    let limit = |blocks: &BlockCache| -> Result<(), Failed> {
        // SAFETY: the caller of the C function promises what this needs.
        let policy = unsafe { text(policy, "policy")? };
        let changed = match bytes {
            0 => blocks.unlimit_tenant(tenant),
            bytes => blocks.limit_tenant(tenant, bytes, policy),
        };
        Ok(changed?)
    };
    // SAFETY: as above.
    unsafe { on(blocks, error, limit) }
}
