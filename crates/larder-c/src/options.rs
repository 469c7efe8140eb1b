//! Settings of a pool that is to be.

use std::time::Duration;

use larder::os::Decommit;
use larder::os::rseq::Mode;
use larder::pages::{Builder, ClusterSize, PagePool};

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
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_pool_options_init(
    options: *mut larder_pool_options,
) -> larder_status {
    if options.is_null() {
        return larder_status::LARDER_NULL;
    }
    // SAFETY: the caller gives memory for the struct.
    unsafe { options.write(larder_pool_options::default()) };
    larder_status::LARDER_OK
}

/// A struct of C's that begins with its size. A program that knows fewer fields keeps the defaults of the others; one that
/// knows more must not have used them, which it could only have done on purpose.
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
    pub(crate) fn builder(&self) -> Result<Builder, Failed> {
        let wrong = |what, value: u32, text| {
            Failed::number(larder_status::LARDER_ARGUMENT, what, value.into(), text)
        };
        if self.flags & !ALL_FLAGS != 0 {
            return Err(wrong(
                "options.flags is",
                self.flags,
                ", with bits that this version does not know",
            ));
        }
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
        builder = self.magazine(builder)?;
        match self.mode {
            LARDER_MODE_AUTO => {}
            LARDER_MODE_LOCKED => builder = builder.mode(Mode::Locked("as the program asked")),
            other => return Err(wrong("options.mode is", other, ", which is no mode")),
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

    fn magazine(&self, builder: Builder) -> Result<Builder, Failed> {
        const MOST: usize = larder::magazine::MAX_ROUNDS;
        let (first, most) = (self.magazine_pages, self.magazine_most_pages);
        if (first, most) == (0, 0) {
            return Ok(builder);
        }
        let most = if most == 0 {
            MOST.min(127.max(first))
        } else {
            most
        };
        let first = if first == 0 { most.min(63) } else { first };
        if first > most || most > MOST {
            return Err(Failed::number(
                larder_status::LARDER_ARGUMENT,
                "options.magazine_most_pages is",
                most as u64,
                ": it is at most 255, and no fewer than options.magazine_pages",
            ));
        }
        Ok(builder.magazine(first, most))
    }
}
