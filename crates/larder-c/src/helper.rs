//! The pool's helper thread.

use std::time::Duration;

use larder::pages::{HelperConfig, PagePool};

use crate::call::{NO_ERROR, on};
use crate::error::{Failed, larder_error, larder_status};
use crate::options::{SizeFirst, init, read_sized};
use crate::pool::larder_pool;

/// Settings of the helper. `larder_helper_options_init` fills in the defaults: upkeep only.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct larder_helper_options {
    /// Bytes of this struct, as the program knows it.
    pub size: usize,
    /// High-water mark of the pre-zeroed stock in pages; 0 is off.
    pub prezero_pages: usize,
    /// Pages that are kept populated ahead of need; 0 is off.
    pub ahead_pages: usize,
    /// Share of one CPU that the helper may use, above 0 and at most 1.
    pub cpu_budget: f64,
    /// Milliseconds between two passes when no thread wakes it; at least 1.
    pub interval_ms: u64,
}

// SAFETY: the size, then numbers.
unsafe impl SizeFirst for larder_helper_options {}

impl Default for larder_helper_options {
    fn default() -> Self {
        let config = HelperConfig::default();
        Self {
            size: size_of::<Self>(),
            prezero_pages: config.prezero_pages,
            ahead_pages: config.ahead_pages,
            cpu_budget: config.cpu_budget,
            interval_ms: u64::try_from(config.interval.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// Fills in the defaults. `options` points to a `larder_helper_options`; NULL is an error.
///
/// # Safety
/// `options` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_helper_options_init(
    options: *mut larder_helper_options,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { init(options) }
}

impl larder_helper_options {
    fn config(&self) -> Result<HelperConfig, Failed> {
        let wrong = |what, wrong| Failed::said(larder_status::LARDER_ARGUMENT, what, wrong);
        if !(self.cpu_budget > 0.0 && self.cpu_budget <= 1.0) {
            return Err(wrong("options.cpu_budget", "is not above 0 and at most 1"));
        }
        if self.interval_ms == 0 {
            return Err(wrong("options.interval_ms", "is 0; it is at least 1"));
        }
        Ok(HelperConfig {
            prezero_pages: self.prezero_pages,
            ahead_pages: self.ahead_pages,
            cpu_budget: self.cpu_budget,
            interval: Duration::from_millis(self.interval_ms),
        })
    }
}

/// Starts the helper thread, or replaces it. `options` may be NULL: upkeep only, every 100 ms, within 1 % of a CPU.
///
/// # Safety
/// `pool` is NULL or a live pool; `options` is NULL or has as many bytes as its first field says; `error` is NULL or can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_start_helper(
    pool: *const larder_pool,
    options: *const larder_helper_options,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(pool, error, |pool| {
            let config = read_sized(options)?.config()?;
            pool.start_helper(config)
                .map_err(|e| Failed::io("page pool: the helper thread cannot be started", &e))
        })
    }
}

/// Stops the helper thread if there is one, and waits for it.
///
/// # Safety
/// `pool` is NULL or a live pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_stop_helper(pool: *const larder_pool) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(pool, NO_ERROR, PagePool::stop_helper) }
}
