//! Page pools.

use core::ffi::c_void;
use core::ptr::NonNull;

use larder::pages::{ClusterSize, PagePool};

use crate::error::{Failed, larder_error, larder_status};
use crate::guard::{guard, value};
use crate::mark::{Opaque, end, give, shared};
use crate::options::{larder_pool_options, read_sized};

/// A pool of pages. Every function except larder_pool_free may be called by many threads at once.
#[derive(Debug)]
pub struct larder_pool {
    _opaque: [u8; 0],
}

impl Opaque for larder_pool {
    type Inside = PagePool;
    const MARK: u64 = 0x6c64_7270_6f6f_6c31;
    const NAME: &'static str = "pool";
}

/// Makes a pool. `options` may be NULL for the defaults. `out` gets the pool, or NULL after a failure.
///
/// # Safety
/// `options` is NULL or has as many bytes as its first field says; `out` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_new(
    options: *const larder_pool_options,
    out: *mut *mut larder_pool,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            give(out, || {
                let options = read_sized(options)?;
                Ok(options.builder()?.build()?)
            })
        })
    }
}

/// Ends a pool; NULL does nothing. Pages and runs in use stay usable, but pages can no longer be put: put them before.
/// Page handles keep their pool open. No other thread may use it meanwhile.
///
/// # Safety
/// `pool` is NULL or a live pool, which no other thread uses, and which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_free(pool: *mut larder_pool) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe { guard(core::ptr::null_mut(), || end(pool)) }
}

/// How a page is taken.
type Get = fn(&PagePool) -> Result<NonNull<u8>, larder::pages::PoolError>;

/// # Safety
/// As for the C functions: `page` is NULL or can be written, `error` likewise.
#[inline]
unsafe fn get(
    pool: *const larder_pool,
    page: *mut *mut c_void,
    error: *mut larder_error,
    how: Get,
) -> larder_status {
    // SAFETY: the caller's promises.
    unsafe {
        guard(error, || {
            let pool = shared(pool)?;
            if page.is_null() {
                return Err(Failed::null("page"));
            }
            page.write(core::ptr::null_mut());
            page.write(how(pool)?.as_ptr().cast());
            Ok(())
        })
    }
}

/// A page with an earlier owner's contents: the cheapest, for callers that overwrite it. `page` gets it, or NULL after a failure.
///
/// # Safety
/// `pool` is NULL or a live pool; `page` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_get(
    pool: *const larder_pool,
    page: *mut *mut c_void,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the same promises.
    unsafe { get(pool, page, error, PagePool::get_raw) }
}

/// A page of zeroes, zeroed now if it is not known to be zero: warm, for callers that write most of it.
///
/// # Safety
/// `pool` is NULL or a live pool; `page` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_get_zeroed(
    pool: *const larder_pool,
    page: *mut *mut c_void,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the same promises.
    unsafe { get(pool, page, error, PagePool::get_zeroed_raw) }
}

/// A page of zeroes, from the pre-zeroed stock if there is one: for callers that write little of it or only read.
///
/// # Safety
/// `pool` is NULL or a live pool; `page` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_get_zeroed_sparse(
    pool: *const larder_pool,
    page: *mut *mut c_void,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the same promises.
    unsafe {
        get(pool, page, error, |pool| {
            pool.get_zeroed_sparse()
                .map(larder::pages::PageBuf::into_raw)
        })
    }
}

/// Puts a page back. The caller must own it and not use it afterwards. An address that is not the beginning of a page of this
/// pool is LARDER_FOREIGN; a page that is put twice is not detected.
///
/// # Safety
/// `pool` is NULL or a live pool; what `page` points to, if it came from here, is in the caller's hands and not used
/// afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_put(
    pool: *const larder_pool,
    page: *mut c_void,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(core::ptr::null_mut(), || {
            let pool = shared(pool)?;
            let page = own_page(pool, page)?;
            // SAFETY: a page of this pool, which the caller gives up.
            pool.put_raw(page);
            Ok(())
        })
    }
}

/// The page behind a pointer of C's, if it is one of this pool's.
#[inline]
pub(crate) fn own_page(pool: &PagePool, page: *mut c_void) -> Result<NonNull<u8>, Failed> {
    let page = NonNull::new(page.cast::<u8>()).ok_or_else(|| Failed::null("page"))?;
    if pool.owns(page) {
        Ok(page)
    } else {
        Err(Failed::number(
            larder_status::LARDER_FOREIGN,
            "the address",
            page.as_ptr() as u64,
            " is not the beginning of a page of this pool",
        ))
    }
}

/// Fills `pages[0]` to `pages[n - 1]` with pages as from larder_pool_get: all of them, or none and an error.
///
/// # Safety
/// `pool` is NULL or a live pool; `pages` has room for `n` pointers; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_get_many(
    pool: *const larder_pool,
    pages: *mut *mut c_void,
    n: usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need: room for n pointers.
    unsafe {
        guard(error, || {
            let pool = shared(pool)?;
            if n == 0 {
                return Ok(());
            }
            if pages.is_null() {
                return Err(Failed::null("pages"));
            }
            for i in 0..n {
                match pool.get_raw() {
                    Ok(page) => pages.add(i).write(page.as_ptr().cast()),
                    Err(error) => {
                        for j in 0..i {
                            // SAFETY: written above; it came from this pool and no caller has seen it yet.
                            pool.put_raw(NonNull::new_unchecked((*pages.add(j)).cast()));
                        }
                        // The caller finds no page there that it does not own.
                        core::ptr::write_bytes(pages, 0, n);
                        return Err(error.into());
                    }
                }
            }
            Ok(())
        })
    }
}

/// Puts `pages[0]` to `pages[n - 1]` back: all of them; or, when one of them is NULL or not of this pool, none and an error.
///
/// # Safety
/// `pool` is NULL or a live pool; `pages` has `n` pointers, of what is in the caller's hands and not used afterwards; `error`
/// is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_put_many(
    pool: *const larder_pool,
    pages: *const *mut c_void,
    n: usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need: n pointers to read.
    unsafe {
        guard(error, || {
            let pool = shared(pool)?;
            if n == 0 {
                return Ok(());
            }
            if pages.is_null() {
                return Err(Failed::null("pages"));
            }
            for i in 0..n {
                own_page(pool, *pages.add(i))?;
            }
            for i in 0..n {
                // SAFETY: checked above; the caller gives them up.
                pool.put_raw(NonNull::new_unchecked((*pages.add(i)).cast()));
            }
            Ok(())
        })
    }
}

/// Gives back memory that an interval did not need: call it now and then where no helper runs and gets are rare. `bytes`, which may
/// be NULL, gets the bytes given back.
///
/// # Safety
/// `pool` is NULL or a live pool; `bytes` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_maintain(
    pool: *const larder_pool,
    bytes: *mut usize,
) -> larder_status {
    // SAFETY: the same promises.
    unsafe { give_back(pool, bytes, PagePool::maintain) }
}

/// Gives back everything that is not in use, now. `bytes`, which may be NULL, gets the bytes given back.
///
/// # Safety
/// `pool` is NULL or a live pool; `bytes` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_trim(
    pool: *const larder_pool,
    bytes: *mut usize,
) -> larder_status {
    // SAFETY: the same promises.
    unsafe { give_back(pool, bytes, PagePool::trim) }
}

/// # Safety
/// `bytes` is NULL or can be written.
unsafe fn give_back(
    pool: *const larder_pool,
    bytes: *mut usize,
    how: fn(&PagePool) -> usize,
) -> larder_status {
    // SAFETY: the caller's promises.
    unsafe {
        guard(core::ptr::null_mut(), || {
            let given = how(shared(pool)?);
            if !bytes.is_null() {
                bytes.write(given);
            }
            Ok(())
        })
    }
}

/// Changes the limit on held bytes; 0 is none. A pool above its limit keeps what it holds until that goes back, and takes nothing new.
///
/// # Safety
/// `pool` is NULL or a live pool; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_set_limit(
    pool: *const larder_pool,
    bytes: usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            let pool = shared(pool)?;
            let page = pool.page_size();
            if bytes != 0 && bytes < page {
                return Err(larder::pages::PoolError::LimitBytes { bytes, page }.into());
            }
            pool.set_limit_bytes(if bytes == 0 { usize::MAX } else { bytes });
            Ok(())
        })
    }
}

/// Changes the pages of future clusters: 1 to 2^20, or 0 to choose by the caches.
///
/// # Safety
/// `pool` is NULL or a live pool; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_set_cluster(
    pool: *const larder_pool,
    pages: usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            let pool = shared(pool)?;
            pool.set_cluster(match pages {
                0 => ClusterSize::AUTO,
                n => ClusterSize::pages(n)?,
            });
            Ok(())
        })
    }
}

/// Pages of a cluster from now on; 0 for a pointer that is no pool.
///
/// # Safety
/// `pool` is NULL or a live pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_cluster_pages(pool: *const larder_pool) -> usize {
    value(0, || {
        // SAFETY: the caller of the C function promises what `shared` needs.
        Ok(unsafe { shared(pool)? }.cluster_pages())
    })
}

/// Bytes of a page; 0 for a pointer that is no pool.
///
/// # Safety
/// `pool` is NULL or a live pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_page_size(pool: *const larder_pool) -> usize {
    value(0, || {
        // SAFETY: the caller of the C function promises what `shared` needs.
        Ok(unsafe { shared(pool)? }.page_size())
    })
}
