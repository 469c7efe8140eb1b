//! Settings of a pool that is to be.

use core::ffi::{CStr, c_char};
use std::time::Duration;

use larder::os::Decommit;
use larder::os::rseq::Mode;
use larder::pages::{ClusterSize, PagePool, PagePoolBuilder};

use crate::error::{Failed, larder_status};

/// The best mode that works here.
pub const LARDER_MODE_AUTO: u32 = 0;
/// A lock per stock, tried and never waited for.
pub const LARDER_MODE_LOCKED: u32 = 1;

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

impl Default for larder_pool_options {
    fn default() -> Self {
        Self {
            size: size_of::<Self>(),
            cluster_pages: 0,
            limit_bytes: 0,
            reserve_bytes: 0,
            decay_ms: 1000,
            magazine_pages: 0,
            magazine_most_pages: 0,
            mode: LARDER_MODE_AUTO,
            flags: 0,
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
    // SAFETY: the caller gives memory for the struct.
    unsafe { init(options) }
}

/// A struct of C's that begins with its size. A program that knows fewer fields keeps the defaults of the others; one that
/// knows more must not have used the additional ones.
///
/// # Safety
/// The pointer is NULL, or to a struct that begins with a `usize` that says how many bytes it has; `T` is plain data in
/// which every bit pattern is a value.
pub(crate) unsafe fn read_sized<T: Copy + Default>(given: *const T) -> Result<T, Failed> {
    let mut own = T::default();
    if given.is_null() {
        return Ok(own);
    }
    // SAFETY: the struct begins with its size.
    let size = unsafe { given.cast::<usize>().read_unaligned() };
    // Never smaller than the first version's first two words; never absurd.
    if size < 2 * size_of::<usize>() || size > 4096 {
        return Err(Failed::number(
            larder_status::LARDER_ARGUMENT,
            "options.size is",
            size as u64,
            "; fill the struct in with its init function",
        ));
    }
    let known = size.min(size_of::<T>());
    // SAFETY: both have `known` bytes, and they do not overlap: `own` is on this stack.
    unsafe {
        core::ptr::copy_nonoverlapping(given.cast::<u8>(), (&raw mut own).cast::<u8>(), known);
    }
    Ok(own)
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
        if self.flags & LARDER_POOL_NO_POPULATE != 0 {
            builder = builder.populate(false);
        }
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

/// How magazines are kept, where the program chose.
pub(crate) fn mode(mode: u32) -> Result<Option<Mode>, Failed> {
    match mode {
        LARDER_MODE_AUTO => Ok(None),
        LARDER_MODE_LOCKED => Ok(Some(Mode::Locked("as the program asked"))),
        other => Err(Failed::argument(
            "options.mode is",
            other.into(),
            ", which is no mode",
        )),
    }
}

/// Rounds of a magazine at first and at most, where the program chose; 0 leaves the choice of one of them.
pub(crate) fn magazine(first: usize, most: usize) -> Result<Option<(usize, usize)>, Failed> {
    const MOST: usize = larder::magazine::MAX_ROUNDS;
    if (first, most) == (0, 0) {
        return Ok(None);
    }
    let highest = if most == 0 {
        MOST.min(127.max(first))
    } else {
        most
    };
    let lowest = if first == 0 { highest.min(63) } else { first };
    if lowest > highest || highest > MOST {
        return Err(Failed::argument(
            "options: magazines of",
            if lowest > MOST { lowest } else { highest } as u64,
            " were asked for; they have at most 255, and at first no more than at most",
        ));
    }
    Ok(Some((lowest, highest)))
}

/// Refuses flags that this version does not know.
pub(crate) fn check_flags(flags: u32, known: u32) -> Result<(), Failed> {
    if flags & !known != 0 {
        return Err(Failed::argument(
            "options.flags is",
            flags.into(),
            ", with bits that this version does not know",
        ));
    }
    Ok(())
}

/// A name that C gives.
///
/// # Safety
/// The pointer is NULL, or to bytes that end with a zero byte and stay for `'a`.
pub(crate) unsafe fn name<'a>(given: *const c_char) -> Result<Option<&'a str>, Failed> {
    if given.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(given) }.to_str().map_err(|_| {
        Failed::said(
            larder_status::LARDER_ARGUMENT,
            "options.name",
            "is no UTF-8",
        )
    })?;
    Ok(Some(text))
}

/// Fills in defaults.
///
/// # Safety
/// The pointer is NULL, or to memory for a `T`.
pub(crate) unsafe fn init<T: Default>(options: *mut T) -> larder_status {
    if options.is_null() {
        return larder_status::LARDER_NULL;
    }
    // SAFETY: the caller's promise.
    unsafe { options.write(T::default()) };
    larder_status::LARDER_OK
}
