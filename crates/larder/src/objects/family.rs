//! What caches share: the pages, the record of which cache owns each page, the upkeep.

mod builder;

pub use builder::FamilyBuilder;

use core::num::NonZeroU16;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::cache::{Cache, CacheRef};
use super::error::Misuse;
use super::large_list::Links;
use super::map::{self, PageMap};
use super::meta::{BlockNumber, Meta};
use super::reaper::Reaper;
use super::table::Table;
use crate::magazine::{Magazines, StockConfig, thread_number};
use crate::os::lock::Lock;
use crate::os::lock::order::{Rank, Ranked, calls};
use crate::os::rseq::Mode;
use crate::os::{System, coarse_now, fork, turns, wait_turn};
use crate::pages::{PagePool, PoolError};

/// Looks at another thread that reclaims memory, without a cache more that it has visited, before it is not waited for any
/// more: it may be descheduled, and a callback of its may wait for this thread.
const PATIENCE: u32 = turns(Duration::from_secs(1));

/// Caches over one pool of pages. Cloning it makes a second owner of the same family.
///
/// A family keeps, out of line, the owner of each page of its pool's reservation, so an address alone leads to its cache.
///
/// ```
/// use std::alloc::Layout;
/// use larder::objects::{Family, Owner, RawCache};
/// let family = Family::new()?;
/// let cache = RawCache::new(&family, Layout::new::<[u64; 4]>())?;
/// let object = cache.get()?;
/// assert_eq!(family.owner(object.as_ptr()), Some(Owner::Cache(cache.number())));
/// assert_eq!(family.owner(std::ptr::null()), None);
/// // SAFETY: taken above, put once.
/// unsafe { cache.put(object) };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Family {
    pub(super) inner: Arc<Inner>,
}

/// The owner of a page.
///
/// ```
/// use larder::objects::{Family, Owner};
/// let family = Family::new()?;
/// let run = family.get_large(100_000, 1)?;
/// assert_eq!(family.owner(run.as_ptr()), Some(Owner::Large));
/// // SAFETY: taken above, put once.
/// unsafe { family.put_large(run) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The cache with this number.
    Cache(NonZeroU16),
    /// A large object: see [`Family::get_large`].
    Large,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) map: PageMap,
    pub(super) meta: Meta,
    pub(super) table: Table,
    pub(super) pool: PagePool,
    pub(super) system: Arc<dyn System>,
    /// Of all caches: an empty one serves whichever needs it next.
    pub(super) magazines: Arc<Magazines>,
    pub(super) mode: Mode,
    pub(super) large_pages: AtomicUsize,
    /// Objects that are larger than their owners know.
    pub(super) outgrown: AtomicUsize,
    /// Of the lists of large objects that have an owner.
    pub(super) links: Lock<Links>,
    /// Whether an owner has claimed the kept numbers.
    claimed: AtomicBool,
    on_misuse: Option<fn(&Misuse)>,
    on_slow: Option<fn()>,
    interval_ns: u64,
    next_upkeep: AtomicU64,
    /// Intervals that have ended.
    intervals: AtomicU32,
    /// Fork generation of the thread that asks all caches for memory, or 0 when no thread does. And that thread's number.
    reclaiming: AtomicU32,
    reclaimer: AtomicUsize,
    /// Caches that were visited for it.
    reclaimed: AtomicUsize,
    pub(super) reaper: Lock<Option<Reaper>>,
}

const fn assert_sync<T: Send + Sync>() {}
const _: () = assert_sync::<Inner>();

impl Ranked for Links {
    const RANK: Rank = Rank::LargeList;
}

impl Ranked for Option<Reaper> {
    const RANK: Rank = Rank::Reaper;
}

impl Family {
    /// A family with default settings: no limit, addresses for as much as the machine has memory.
    ///
    /// ```
    /// let family = larder::objects::Family::new()?;
    /// assert_eq!(family.pool().stats().limit_bytes, usize::MAX);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`FamilyBuilder::build`].
    pub fn new() -> Result<Self, PoolError> {
        Self::builder().build()
    }

    /// Settings first.
    ///
    /// ```
    /// use larder::{objects::Family, pages::PagePool};
    /// let family = Family::builder().pages(PagePool::builder().limit_bytes(1 << 20)).build()?;
    /// assert_eq!(family.pool().stats().limit_bytes, 1 << 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn builder() -> FamilyBuilder {
        FamilyBuilder::new()
    }

    /// The pages that slabs come from.
    ///
    /// ```
    /// let family = larder::objects::Family::new()?;
    /// assert_eq!(family.pool().stats().out_bytes, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn pool(&self) -> &PagePool {
        &self.inner.pool
    }

    /// How the CPUs' magazines of all its caches are reached.
    ///
    /// ```
    /// use larder::objects::Family;
    /// use larder::os::rseq::Mode;
    /// let family = Family::builder().mode(Mode::Locked("to show it")).build()?;
    /// assert_eq!(family.mode(), Mode::Locked("to show it"));
    /// # Ok::<(), larder::pages::PoolError>(())
    /// ```
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.inner.mode
    }

    /// The owner of the page that holds an address; `None` for any address that is no object's, wherever it is.
    ///
    /// A subtract, a shift, a compare and a load.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::objects::{Family, RawCache};
    /// let family = Family::new()?;
    /// let cache = RawCache::new(&family, Layout::new::<[u64; 4]>())?;
    /// use larder::objects::Owner;
    /// let object = cache.get()?;
    /// assert!(matches!(family.owner(object.as_ptr()), Some(Owner::Cache(_))));
    /// assert_eq!(family.owner(std::ptr::null()), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn owner(&self, at: *const u8) -> Option<Owner> {
        let owner = NonZeroU16::new(self.inner.map.owner(at as usize))?;
        Some(if owner.get() == map::LARGE {
            Owner::Large
        } else {
            Owner::Cache(owner)
        })
    }

    /// The same as a bare number: 0 is no owner, 65535 a large object, and everything else a cache.
    ///
    /// ```
    /// use larder::objects::Family;
    /// let family = Family::new()?;
    /// let run = family.get_large(100_000, 1)?;
    /// assert_eq!(family.owner_number(run.as_ptr()), 65535);
    /// assert_eq!(family.owner_number(std::ptr::null()), 0);
    /// // SAFETY: taken above, put once.
    /// unsafe { family.put_large(run) }?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn owner_number(&self, at: *const u8) -> u16 {
        self.inner.map.owner(at as usize)
    }

    /// Whether the caller alone creates caches with the [kept numbers](super::KEPT) from now on, until it [leaves](Self::leave_numbers) them.
    pub(crate) fn claim_numbers(&self) -> bool {
        !self.inner.claimed.swap(true, Ordering::AcqRel)
    }

    /// The owner that had claimed the kept numbers creates no such cache any more.
    pub(crate) fn leave_numbers(&self) {
        self.inner.claimed.store(false, Ordering::Release);
    }

    /// Whether two values are the same family.
    ///
    /// ```
    /// use larder::objects::Family;
    /// let family = Family::new()?;
    /// assert!(family.is_same(&family.clone()));
    /// assert!(!family.is_same(&Family::new()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Ends a working-set interval of all caches: objects, slabs and pages that it did not need go one step back, the
    /// objects to their slabs, the slabs to the pool, the pages to the system. Returns bytes of slabs that went.
    ///
    /// Unused memory is gone after three calls and the pool's decay time. Slow paths call it by themselves when the
    /// interval is over; see also [`start_reaper`](Self::start_reaper).
    ///
    /// ```
    /// use larder::objects::{Family, ObjectCache};
    /// let family = Family::new()?;
    /// let cache = ObjectCache::new(&family, || 0_u64)?;
    /// drop(cache.get()?);
    /// let bytes: usize = (0..4).map(|_| family.maintain()).sum();
    /// assert!(bytes > 0, "unused for four intervals");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn maintain(&self) -> usize {
        self.inner.maintain()
    }

    /// Gives everything back that is not in use and not in a handle, now. Returns bytes of slabs that went.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::objects::{Family, RawCache};
    /// let family = Family::new()?;
    /// let cache = RawCache::new(&family, Layout::new::<[u64; 4]>())?;
    /// let object = cache.get()?;
    /// // SAFETY: taken above, put once.
    /// unsafe { cache.put(object) };
    /// assert!(family.trim() > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn trim(&self) -> usize {
        let bytes = self.inner.each_cache(|cache| cache.trim());
        self.inner.pool.trim();
        bytes
    }

    /// Bytes that are in use for what is known of caches and slabs.
    ///
    /// ```
    /// use larder::objects::{Family, ObjectCache};
    /// let family = Family::new()?;
    /// let before = family.metadata_bytes();
    /// let cache = ObjectCache::new(&family, || 0_u64)?;
    /// assert!(family.metadata_bytes() > before);
    /// # drop(cache);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn metadata_bytes(&self) -> usize {
        self.inner.meta.live()
    }
}

impl Inner {
    /// The cache that lies in a block.
    pub(super) fn cache(&self, block: BlockNumber) -> NonNull<Cache> {
        self.meta.at(block).cast()
    }

    pub(super) fn stock_config(&self, rounds: usize, most_rounds: usize) -> StockConfig {
        StockConfig {
            rounds,
            most_rounds,
            mode: self.mode,
        }
    }

    /// Visits every cache, without a lock, and adds up what `f` returns. A cache whose last owner goes meanwhile ends
    /// with the visit.
    fn each_cache(&self, f: impl Fn(&Cache) -> usize) -> usize {
        let mut sum = 0;
        let mut from = 1;
        while let Some(number) = self.table.visit(
            from,
            // SAFETY: a cache in the table is whole, and stays as long as it is visited.
            |block| sum += f(unsafe { self.cache(block).as_ref() }),
            // SAFETY: the table has let go of it, so no other thread ends it.
            |block| unsafe { CacheRef::in_block(self, block) }.end(),
        ) {
            from = number + 1;
        }
        sum
    }

    /// How many working-set intervals have ended.
    pub(super) fn intervals(&self) -> u32 {
        self.intervals.load(Ordering::Relaxed)
    }

    pub(super) fn maintain(&self) -> usize {
        self.next_upkeep.store(
            coarse_now().saturating_add(self.interval_ns),
            Ordering::Relaxed,
        );
        self.intervals.fetch_add(1, Ordering::Relaxed);
        let bytes = self.each_cache(|cache| cache.maintain());
        self.pool.upkeep_if_due();
        bytes
    }

    /// For paths that are slow anyway. They serve some object, so a destructor of another one that panics must not end
    /// them: its message was printed.
    pub(super) fn upkeep_if_due(&self) {
        if let Some(f) = self.on_slow {
            let _outside = calls("what slow calls begin with", Rank::Reaper);
            f();
        }
        let due = self.next_upkeep.load(Ordering::Relaxed);
        let now = coarse_now();
        if now >= due
            && self
                .next_upkeep
                .compare_exchange(
                    due,
                    now.saturating_add(self.interval_ns),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                )
                .is_ok()
        {
            let _ = catch_unwind(AssertUnwindSafe(|| self.maintain()));
        }
    }

    /// Memory is short: asks the users of all caches for objects, and all caches for slabs. While one thread does that,
    /// other callers wait a while for what it finds. False when it makes no sense to try again: within a callback.
    pub(super) fn reclaim(&self) -> bool {
        let now = fork::generation();
        let me = thread_number();
        let (mut turns, mut visits) = (0, 0);
        loop {
            let seen = self.reclaiming.load(Ordering::Relaxed);
            if seen != now
                && self
                    .reclaiming
                    .compare_exchange(seen, now, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                break;
            }
            if self.reclaimer.load(Ordering::Relaxed) == me {
                return false;
            }
            let visited = self.reclaimed.load(Ordering::Relaxed);
            turns = if visited == visits { turns + 1 } else { 0 };
            visits = visited;
            if turns > PATIENCE {
                return true;
            }
            wait_turn(turns);
        }
        self.reclaimer.store(me, Ordering::Relaxed);
        /// Ends it also when a callback panics.
        struct End<'a>(&'a Inner);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.reclaimer.store(0, Ordering::Relaxed);
                self.0.reclaiming.store(0, Ordering::Release);
            }
        }
        let _end = End(self);
        let visited = || self.reclaimed.fetch_add(1, Ordering::Relaxed);
        self.each_cache(|cache| {
            cache.ask_users();
            visited();
            0
        });
        self.each_cache(|cache| {
            visited();
            cache.trim()
        });
        self.pool.trim();
        true
    }

    #[cold]
    pub(super) fn misuse(&self, misuse: &Misuse) {
        match self.on_misuse {
            Some(f) => {
                let _outside = calls("what hears of misuse", Rank::Reaper);
                f(misuse);
            }
            None => debug_assert!(false, "{misuse}"),
        }
    }
}

impl fork::Around for Inner {
    /// The table first, so that caches neither come nor go until `after`; then the caches' locks, by number; then those
    /// of the lists and of the metadata: no thread that holds one of these takes another.
    fn before(&self) {
        self.reaper.raw().lock_around_fork();
        self.table.raw_lock().lock_around_fork();
        for (_, block) in self.table.filled(1) {
            // SAFETY: caches in the table are whole, and the table's lock is held.
            unsafe { self.cache(block).as_ref() }
                .raw_lock()
                .lock_around_fork();
        }
        self.links.raw().lock_around_fork();
        self.meta.raw_lock().lock_around_fork();
    }

    fn after(&self) {
        self.table.after_fork();
        self.meta.raw_lock().unlock();
        self.links.raw().unlock();
        for (_, block) in self.table.filled(1) {
            // SAFETY: as above.
            unsafe { self.cache(block).as_ref() }.raw_lock().unlock();
        }
        self.table.raw_lock().unlock();
        self.reaper.raw().unlock();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        fork::unregister(core::ptr::from_ref(self));
        if let Some(reaper) = self.reaper.lock().take() {
            reaper.leave();
        }
    }
}
