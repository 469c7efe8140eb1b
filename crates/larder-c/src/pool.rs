//! Page pools.

use core::ffi::c_void;
use core::ptr::NonNull;
use std::time::Duration;

use larder::os::Decommit;
use larder::pages::{ClusterSize, PageBuf, PagePool, PagePoolBuilder, PoolError};

use crate::bulk;
use crate::call::{NO_ERROR, ask, free, give_back, guard, not_null, on, take};
use crate::error::{Failed, larder_error, larder_status};
use crate::mark::{give, opaque};
use crate::options::{SizeFirst, blank, check_flags, init, magazine, mode, read_sized};

/// Pages are backed at first touch, with a fault each, and not by the cluster.
pub const LARDER_POOL_NO_POPULATE: u32 = 1;
/// Asks for transparent huge pages.
pub const LARDER_POOL_HUGE_PAGES: u32 = 2;
/// Gives memory back by MADV_FREE: the kernel takes it when it needs it.
pub const LARDER_POOL_FREE_LAZILY: u32 = 4;
/// Does not look at LARDER_CLUSTER_PAGES and LARDER_SETTINGS.
pub const LARDER_POOL_IGNORE_ENVIRONMENT: u32 = 8;

const ALL_FLAGS: u32 = 15;

/// Settings of a pool. `larder_pool_options_init` fills in the defaults.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct larder_pool_options {
    /// Bytes of this struct, as the program knows it: `sizeof(larder_pool_options)`.
    pub size: usize,
    /// Pages that are populated and given back together, 1 to 2^20; 0 chooses by the caches.
    pub cluster_pages: usize,
    /// Most bytes that the pool may hold; 0 is no limit.
    pub limit_bytes: usize,
    /// Addresses to reserve; 0 chooses.
    pub reserve_bytes: usize,
    /// Milliseconds that memory must be unused before it goes back; UINT64_MAX keeps it.
    pub decay_ms: u64,
    /// Pages of a magazine at first, 1 to 255; 0 chooses.
    pub magazine_pages: usize,
    /// Pages of a magazine at most, up to 255; 0 chooses.
    pub magazine_most_pages: usize,
    /// LARDER_MODE_AUTO or LARDER_MODE_LOCKED.
    pub mode: u32,
    /// LARDER_POOL_* flags, or 0.
    pub flags: u32,
}

// SAFETY: the size, then numbers.
unsafe impl SizeFirst for larder_pool_options {}

impl Default for larder_pool_options {
    fn default() -> Self {
        Self {
            decay_ms: 1000,
            ..blank()
        }
    }
}

/// Fills in the defaults. `options` points to a `larder_pool_options`; NULL is an error.
///
/// # Safety
/// `options` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_options_init(
    options: *mut larder_pool_options,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { init(options) }
}

impl larder_pool_options {
    pub(crate) fn builder(&self) -> Result<PagePoolBuilder, Failed> {
        check_flags(self.flags, ALL_FLAGS)?;
        let mut builder = PagePool::builder();
        if self.cluster_pages != 0 {
            builder = builder.cluster(ClusterSize::pages(self.cluster_pages)?);
        }
        if self.limit_bytes != 0 {
            builder = builder.limit_bytes(self.limit_bytes);
        }
        if self.reserve_bytes != 0 {
            builder = builder.reserve_bytes(self.reserve_bytes);
        }
        builder = builder.decay(match self.decay_ms {
            u64::MAX => Duration::MAX,
            ms => Duration::from_millis(ms),
        });
        if let Some((first, most)) = magazine(self.magazine_pages, self.magazine_most_pages)? {
            builder = builder.magazine(first, most);
        }
        if let Some(mode) = mode(self.mode)? {
            builder = builder.mode(mode);
        }
        builder = builder.populate(self.flags & LARDER_POOL_NO_POPULATE == 0);
        if self.flags & LARDER_POOL_HUGE_PAGES != 0 {
            builder = builder.huge_pages();
        }
        if self.flags & LARDER_POOL_FREE_LAZILY != 0 {
            builder = builder.give_back(Decommit::Free);
        }
        if self.flags & LARDER_POOL_IGNORE_ENVIRONMENT != 0 {
            builder = builder.ignore_environment();
        }
        Ok(builder)
    }
}

/// A pool of pages. Every function except larder_pool_free may be called by many threads at once.
pub struct larder_pool {
    _opaque: [u8; 0],
}

opaque!(larder_pool, PagePool, b"ldrpool1", "pool");

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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        guard(error, || {
            give(out, || Ok(read_sized(options)?.builder()?.build()?))
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { free(pool) }
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { take(pool, ("page", page), error, PagePool::get_raw) }
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { take(pool, ("page", page), error, PagePool::get_zeroed_raw) }
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        take(pool, ("page", page), error, |pool| {
            pool.get_zeroed_sparse().map(PageBuf::into_raw)
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(pool, NO_ERROR, |pool| {
            own_page(pool, page).map(|page| pool.put_raw(page))
        })
    }
}

/// The page behind a pointer of C's, if it is one of this pool's.
#[inline]
pub(crate) fn own_page(pool: &PagePool, page: *mut c_void) -> Result<NonNull<u8>, Failed> {
    let page = not_null("page", page)?;
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(pool, error, |pool| {
            bulk::fill(
                ("pages", pages),
                n,
                |pages, got| {
                    pages.iter_mut().try_for_each(|page| {
                        *page = pool.get_raw()?;
                        *got += 1;
                        Ok::<_, PoolError>(())
                    })
                },
                |got| got.iter().for_each(|page| pool.put_raw(*page)),
            )
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(pool, error, |pool| -> Result<(), Failed> {
            let pages = bulk::pointers(("pages", pages), n)?;
            for page in pages {
                own_page(pool, *page)?;
            }
            for page in pages {
                pool.put_raw(NonNull::new_unchecked(page.cast()));
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
    // SAFETY: the caller of the C function promises what this needs.
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { give_back(pool, bytes, PagePool::trim) }
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(pool, error, |pool| {
            let page = pool.page_size();
            if bytes != 0 && bytes < page {
                return Err(PoolError::LimitBytes { bytes, page });
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(pool, error, |pool| {
            let cluster = match pages {
                0 => Ok(ClusterSize::AUTO),
                n => ClusterSize::pages(n),
            };
            cluster.map(|cluster| pool.set_cluster(cluster))
        })
    }
}

/// Pages of a cluster from now on; 0 for a pointer that is no pool.
///
/// # Safety
/// `pool` is NULL or a live pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_cluster_pages(pool: *const larder_pool) -> usize {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { ask(pool, 0, PagePool::cluster_pages) }
}

/// Bytes of a page; 0 for a pointer that is no pool.
///
/// # Safety
/// `pool` is NULL or a live pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_page_size(pool: *const larder_pool) -> usize {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { ask(pool, 0, PagePool::page_size) }
}
