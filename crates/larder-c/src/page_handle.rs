//! A stock of pages of one's own.

use core::ffi::c_void;

use larder::pages::{PageBuf, PageHandle, PagePool};

use crate::call::{NO_ERROR, answer, ask, free, guard, make};
use crate::error::{Failed, larder_error, larder_status};
use crate::mark::{alone, opaque};
use crate::pool::{larder_pool, own_page};

/// A magazine of pages that only their owner uses: no lock, no atomic instruction. It may move between threads, but only one
/// may use it at a time. It keeps its pool open.
pub struct larder_page_handle {
    _opaque: [u8; 0],
}

/// A handle, and a second owner of its pool, which recognises the pool's pages.
#[derive(Debug)]
pub(crate) struct Stocked {
    handle: PageHandle,
    pool: PagePool,
}

opaque!(larder_page_handle, Stocked, b"ldrhand1", "handle");

/// Makes a handle over a pool. `out` gets it, or NULL after a failure.
///
/// # Safety
/// `pool` is NULL or a live pool; `out` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_page_handle_new(
    pool: *const larder_pool,
    out: *mut *mut larder_page_handle,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        make(pool, out, error, |pool| {
            Ok(Stocked {
                handle: pool.handle()?,
                pool: pool.clone(),
            })
        })
    }
}

/// Ends a handle; NULL does nothing. Its stock goes back to the pool.
///
/// # Safety
/// `handle` is NULL or a live page handle, which no other thread uses, and which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_page_handle_free(handle: *mut larder_page_handle) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { free(handle) }
}

/// A page with a former owner's contents. `page` gets it, or NULL after a failure.
///
/// # Safety
/// `handle` is NULL or a live page handle that no other thread uses meanwhile; `page` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_page_handle_get(
    handle: *mut larder_page_handle,
    page: *mut *mut c_void,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        guard(error, || {
            let handle = &mut alone(handle)?.handle;
            answer(("page", page), || handle.get_raw())
        })
    }
}

/// A page of zeroes. `page` gets it, or NULL after a failure.
///
/// # Safety
/// `handle` is NULL or a live page handle that no other thread uses meanwhile; `page` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_page_handle_get_zeroed(
    handle: *mut larder_page_handle,
    page: *mut *mut c_void,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        guard(error, || {
            let handle = &mut alone(handle)?.handle;
            answer(("page", page), || {
                handle.get_zeroed().map(PageBuf::into_raw)
            })
        })
    }
}

/// Puts a page of the handle's pool into the handle. As larder_pool_put otherwise.
///
/// # Safety
/// `handle` is NULL or a live page handle that no other thread uses meanwhile; what `page` points to, if it came from here, is
/// in the caller's hands and not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_page_handle_put(
    handle: *mut larder_page_handle,
    page: *mut c_void,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        guard(NO_ERROR, || -> Result<(), Failed> {
            let handle = alone(handle)?;
            let page = own_page(&handle.pool, page)?;
            handle.handle.put_raw(page);
            Ok(())
        })
    }
}

/// Pages in the handle's stock; 0 for a pointer that is no handle.
///
/// # Safety
/// `handle` is NULL or a live page handle that no other thread uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_page_handle_len(handle: *const larder_page_handle) -> usize {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { ask(handle, 0, |stocked| stocked.handle.len()) }
}
