//! Settings of a block cache that is to be.

use core::ffi::{c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use larder_cache::{BlockCache, MemoryStorage};

use super::storage::{
    Functions, larder_blocks_end_fn, larder_blocks_read_fn, larder_blocks_sync_fn,
    larder_blocks_write_fn,
};
use crate::error::{Failed, larder_status};
use crate::mark::shared;
use crate::options::{SizeFirst, blank, init, settings, text};
use crate::pool::larder_pool;

/// Settings of a block cache. `larder_blocks_options_init` fills in the defaults.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct larder_blocks_options {
    /// Bytes of this struct, as the program knows it: `sizeof(larder_blocks_options)`.
    pub size: usize,
    /// Bytes of blocks in memory; 64 MiB by default.
    pub bytes: usize,
    /// Most that larder_blocks_set_bytes may ask for; 0 is `bytes`.
    pub most_bytes: usize,
    /// Most blocks read ahead of a sequential reader; 32 by default, 0 is off.
    pub read_ahead: usize,
    /// Milliseconds that a block may be dirty until larder_blocks_maintain writes it; 30,000 by default.
    pub dirty_age_ms: u64,
    /// Percent of the cache that may be dirty; 50 by default.
    pub dirty_percent: u32,
    /// 0.
    pub reserved: u32,
    /// The replacement rule; NULL is `adaptive`.
    pub policy: *const c_char,
    /// Where pages come from; NULL is a pool of its own. The cache keeps it open.
    pub pool: *const larder_pool,
    /// NULL, with `write` NULL too: files are kept in memory.
    pub read: larder_blocks_read_fn,
    /// NULL with `read`: nothing can be written.
    pub write: larder_blocks_write_fn,
    /// NULL: what was written is safe.
    pub sync: larder_blocks_sync_fn,
    /// Handed to the functions. It must live until `end` is called, or without one until the cache and all that is of it are gone.
    pub user: *mut c_void,
    /// NULL: no function is called when `user` is no longer needed. Not called where `read` and `write` are NULL.
    pub end: larder_blocks_end_fn,
    /// NULL, or the path of a settings file (`larder sim --settings`): the policy and the bytes that it has for a block cache count in
    /// place of `policy` and `bytes`.
    pub settings: *const c_char,
}

// SAFETY: the size, then numbers, pointers and functions that may be NULL.
unsafe impl SizeFirst for larder_blocks_options {}

impl Default for larder_blocks_options {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            read_ahead: 32,
            dirty_age_ms: 30_000,
            dirty_percent: 50,
            ..blank()
        }
    }
}

/// Fills in the defaults. `options` points to a `larder_blocks_options`; NULL is an error.
///
/// # Safety
/// `options` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_options_init(
    options: *mut larder_blocks_options,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { init(options) }
}

impl larder_blocks_options {
    /// # Safety
    /// What the pointers name is there, and the functions are as the header says.
    pub(super) unsafe fn build(&self) -> Result<BlockCache, Failed> {
        crate::options::check_reserved("options.reserved is", self.reserved)?;
        if self.dirty_percent > 100 {
            let percent = self.dirty_percent.into();
            let wrong = "; it is 0 to 100";
            return Err(Failed::argument("options.dirty_percent is", percent, wrong));
        }
        // SAFETY: the caller's promise.
        let (policy, settings, pool) = unsafe {
            let pool = match self.pool.is_null() {
                true => None,
                false => Some(shared(self.pool)?.clone()),
            };
            let policy = text(self.policy, "options.policy")?;
            (policy, settings(self.settings)?, pool)
        };
        let functions = self.read.is_some() || self.write.is_some();
        let storage = Arc::new(Functions {
            read: self.read,
            write: self.write,
            sync: self.sync,
            end: self.end,
            user: self.user,
            is_made: AtomicBool::new(false),
        });
        let mut builder = match functions {
            false => BlockCache::builder(MemoryStorage::default()),
            true => BlockCache::builder(Arc::clone(&storage)),
        };
        builder = builder
            .bytes(self.bytes)
            .read_ahead(self.read_ahead)
            .dirty_age(Duration::from_millis(self.dirty_age_ms))
            .dirty_share(f64::from(self.dirty_percent) / 100.0);
        if self.most_bytes != 0 {
            builder = builder.most_bytes(self.most_bytes);
        }
        if let Some(policy) = policy {
            builder = builder.policy(policy);
        }
        if let Some(settings) = &settings {
            builder = builder.settings(settings);
        }
        if let Some(pool) = pool {
            builder = builder.pool(pool);
        }
        let cache = builder.build()?;
        storage.is_made.store(functions, Ordering::Relaxed);
        Ok(cache)
    }
}
