//! Contiguous pages.

use core::ffi::c_void;
use core::ptr::null_mut;

use larder::pages::PageRun;

use crate::call::{ask, free, make};
use crate::error::{larder_error, larder_status};
use crate::mark::opaque;
use crate::pool::larder_pool;

/// Neighbouring pages of a pool, for buffers that live long. It may outlive the pool.
pub struct larder_run {
    _opaque: [u8; 0],
}

opaque!(larder_run, PageRun, b"ldrrunn1", "run");

/// Takes `pages` contiguous pages, zeroed or with a former owner's contents. `out` gets the run, or NULL after a failure.
///
/// # Safety
/// `pool` is NULL or a live pool; `out` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_get_run(
    pool: *const larder_pool,
    pages: usize,
    zeroed: bool,
    out: *mut *mut larder_run,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        make(pool, out, error, |pool| {
            Ok(match zeroed {
                true => pool.get_run_zeroed(pages),
                false => pool.get_run(pages),
            }?)
        })
    }
}

/// The run's first byte; NULL for a pointer that is no run.
///
/// # Safety
/// `run` is NULL or a live run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_run_data(run: *mut larder_run) -> *mut c_void {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { ask(run, null_mut(), |run| run.as_non_null().as_ptr().cast()) }
}

/// The run's length in bytes; 0 for a pointer that is no run.
///
/// # Safety
/// `run` is NULL or a live run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_run_bytes(run: *const larder_run) -> usize {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { ask(run, 0, |run| run.len()) }
}

/// Puts the run's pages back; NULL does nothing.
///
/// # Safety
/// `run` is NULL or a live run, which no other thread uses, and which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_run_free(run: *mut larder_run) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { free(run) }
}
