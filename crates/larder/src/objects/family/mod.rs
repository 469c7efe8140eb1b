//! What caches share: the pages, the record of which cache owns each page, the upkeep.

mod builder;

pub use builder::FamilyBuilder;

use core::num::NonZeroU16;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

use super::bound::Bound;
use super::error::Misuse;
use super::links::Links;
use super::map::{self, PageMap};
use super::meta::Meta;
use super::table::Table;
use crate::magazine::{Magazines, StockConfig};
use crate::os::lock::Lock;
use crate::os::lock::order::{Rank, Ranked, calls};
use crate::os::rseq::Mode;
use crate::os::{Due, HelperThread, System, fork};
use crate::pages::{PagePool, PoolError};

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
    pub(super) on_slow: Option<fn()>,
    pub(super) on_shortage: Option<fn() -> bool>,
    pub(super) interval_ns: u64,
    /// When the interval ends.
    pub(super) due: Due,
    /// When it began.
    pub(super) began: AtomicU64,
    pub(super) bound: Bound,
    /// Intervals that have ended.
    pub(super) intervals: AtomicU32,
    /// Fork generation of the thread that asks all caches for memory, or 0 when no thread does. And that thread's number.
    pub(super) reclaiming: AtomicU32,
    pub(super) reclaimer: AtomicUsize,
    /// Caches that were visited for it.
    pub(super) reclaimed: AtomicUsize,
    pub(super) reaper: Lock<Option<Reaper>>,
}

/// The thread that maintains the family, if it has one.
#[derive(Debug)]
pub(super) struct Reaper(pub(super) HelperThread);

const fn assert_sync<T: Send + Sync>() {}
const _: () = assert_sync::<Inner>();

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

    /// The owner of the page that holds an address; `None` for any address that is no object's, wherever it is, and for all but the first
    /// page of large objects and of those above 1 MiB.
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
    pub(super) fn stock_config(&self, rounds: usize, most_rounds: usize) -> StockConfig {
        StockConfig {
            rounds,
            most_rounds,
            mode: self.mode,
        }
    }

    /// How many working-set intervals have ended.
    pub(super) fn intervals(&self) -> u32 {
        self.intervals.load(Ordering::Relaxed)
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

impl Drop for Inner {
    fn drop(&mut self) {
        fork::unregister(core::ptr::from_ref(self));
        if let Some(Reaper(reaper)) = self.reaper.lock().take() {
            reaper.leave();
        }
    }
}
