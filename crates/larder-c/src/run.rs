//! Contiguous pages.

use core::ffi::c_void;

use larder::pages::PageRun;

use crate::error::{larder_error, larder_status};
use crate::guard::{guard, value};
use crate::mark::{Opaque, end, give, shared};
use crate::pool::larder_pool;

/// Neighbouring pages of a pool, for buffers that live long. It may outlive the pool.
#[derive(Debug)]
pub struct larder_run {
    _opaque: [u8; 0],
}

impl Opaque for larder_run {
    type Inside = PageRun;
    const MARK: u64 = 0x6c64_7272_756e_6e31;
    const NAME: &'static str = "run";
}

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
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            let pool = shared(pool)?;
            give(out, || {
                Ok(if zeroed {
                    pool.get_run_zeroed(pages)
                } else {
                    pool.get_run(pages)
                }?)
            })
        })
    }
}

/// The run's first byte; NULL for a pointer that is no run.
///
/// # Safety
/// `run` is NULL or a live run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_run_data(run: *mut larder_run) -> *mut c_void {
    value(core::ptr::null_mut(), || {
        // SAFETY: the caller of the C function promises what `shared` needs.
        Ok(unsafe { shared(run)? }.as_non_null().as_ptr().cast())
    })
}

/// The run's length in bytes; 0 for a pointer that is no run.
///
/// # Safety
/// `run` is NULL or a live run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_run_bytes(run: *const larder_run) -> usize {
    value(0, || {
        // SAFETY: the caller of the C function promises what `shared` needs.
        Ok(unsafe { shared(run)? }.len())
    })
}

/// Puts the run's pages back; NULL does nothing.
///
/// # Safety
/// `run` is NULL or a live run, which no other thread uses, and which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_run_free(run: *mut larder_run) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe { guard(core::ptr::null_mut(), || end(run)) }
}
