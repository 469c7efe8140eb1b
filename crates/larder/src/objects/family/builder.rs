//! How a family is made.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use core::time::Duration;
use std::sync::Arc;

use super::{Family, Inner};
use crate::magazine::Magazines;
use crate::objects::bound::Bound;
use crate::objects::error::Misuse;
use crate::objects::links::Links;
use crate::objects::map::{self, PageMap};
use crate::objects::meta::Meta;
use crate::objects::table::Table;
use crate::os::lock::Lock;
use crate::os::rseq::{Mode, mode};
use crate::os::{Due, HugePageSize, OsError, coarse_now, fork};
use crate::pages::{PagePool, PagePoolBuilder, PoolError};

/// Settings of a family that is to be.
///
/// ```
/// use std::time::Duration;
/// use larder::{objects::Family, pages::PagePool};
/// let family = Family::builder()
///     .pages(PagePool::builder().limit_bytes(16 << 20))
///     .interval(Duration::from_secs(5))
///     .build()?;
/// assert_eq!(family.pool().stats().limit_bytes, 16 << 20);
/// # Ok::<(), larder::pages::PoolError>(())
/// ```
#[derive(Debug, Clone)]
pub struct FamilyBuilder {
    pages: PagePoolBuilder,
    mode: Option<Mode>,
    interval: Duration,
    cached_bytes: Option<usize>,
    on_misuse: Option<fn(&Misuse)>,
    on_slow: Option<fn()>,
    on_shortage: Option<fn() -> bool>,
    marks: bool,
}

impl FamilyBuilder {
    pub(super) fn new() -> Self {
        Self {
            pages: PagePool::builder(),
            mode: None,
            interval: Duration::from_secs(1),
            cached_bytes: None,
            on_misuse: None,
            on_slow: None,
            on_shortage: None,
            marks: false,
        }
    }

    /// The pool that slabs come from: its reservation, its limit, the system under it.
    ///
    /// ```
    /// use larder::{objects::Family, pages::PagePool};
    /// let family = Family::builder().pages(PagePool::builder().limit_bytes(1 << 20)).build()?;
    /// assert!(family.get_large(2 << 20, 1).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn pages(mut self, pages: PagePoolBuilder) -> Self {
        self.pages = pages;
        self
    }

    /// Per-CPU or locked stocks; by default the best that works here.
    ///
    /// ```
    /// use larder::{objects::Family, os::rseq::Mode};
    /// let family = Family::builder().mode(Mode::Locked("to compare")).build()?;
    /// assert_eq!(family.mode(), Mode::Locked("to compare"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// The working-set interval, a second by default: what a whole one did not need goes back. `Duration::ZERO` keeps no free
    /// memory beyond magazines, `Duration::MAX` knows no time.
    ///
    /// ```
    /// use std::time::Duration;
    /// use larder::objects::{Family, ObjectCache};
    /// let family = Family::builder().interval(Duration::from_millis(100)).build()?;
    /// let cache = ObjectCache::new(&family, || 0_u64)?;   // its slow paths look whether 100 ms have passed
    /// drop(cache.get()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Most bytes of free memory that the family keeps beside as much as is in use; `usize::MAX` for no bound. What is free
    /// beyond goes back when it is put, whatever the time. By default 64 MiB, and up to a sixteenth of the machine's memory
    /// when memory that went back is needed again within an interval.
    ///
    /// ```
    /// use larder::{objects::{Family, RawCache}, os::page_size};
    /// let family = Family::builder().cached_bytes(1 << 20).build()?;
    /// let run = family.get_large(32 << 20, 1)?;
    /// // SAFETY: taken above with so many bytes, put once.
    /// unsafe {
    ///     run.write_bytes(1, 32 << 20);
    ///     family.put_large(run)?;
    /// }
    /// assert!(family.pool().stats().held_bytes < 2 << 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn cached_bytes(mut self, bytes: usize) -> Self {
        self.cached_bytes = Some(bytes);
        self
    }

    /// What is called when a pointer is put that does not belong there. By default it is counted, and debug builds
    /// panic. It must not use the cache.
    ///
    /// ```
    /// use std::{alloc::Layout, sync::atomic::{AtomicU32, Ordering}};
    /// use larder::objects::{Family, RawCache};
    /// static TOLD: AtomicU32 = AtomicU32::new(0);
    /// let tell = |misuse: &larder::objects::Misuse| {
    ///     eprintln!("{misuse}");
    ///     TOLD.fetch_add(1, Ordering::Relaxed);
    /// };
    /// let family = Family::builder().on_misuse(tell).build()?;
    /// let cache = RawCache::new(&family, Layout::new::<u64>())?;
    /// let mut other = 0_u8;
    /// if cfg!(debug_assertions) {
    ///     // SAFETY: it is no object of the cache; a debug build looks, and does not take it.
    ///     unsafe { cache.put((&mut other).into()) };
    ///     assert_eq!(TOLD.load(Ordering::Relaxed), 1);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn on_misuse(mut self, f: fn(&Misuse)) -> Self {
        self.on_misuse = Some(f);
        self
    }

    /// What is called when memory is short, after all caches have given up what they could: it makes room, for instance drops a cache
    /// of its own, and returns true to have the allocation tried again, as often as it says so. False lets the allocation fail. It may
    /// not return at all, but end the program: then no allocation of this family ever fails. libumem has the same as
    /// `umem_nofail_callback`. It is not called for a run of more pages than the pool's limit or reservation has: that fails at once.
    ///
    /// It is called without any lock, by the thread that allocates, and may put objects of this family; if it takes some, it may be
    /// called again within itself.
    ///
    /// ```
    /// use std::sync::Mutex;
    /// use larder::{objects::{Family, ObjectCache, OwnedObject}, pages::PagePool};
    /// static SPARE: Mutex<Vec<OwnedObject<[u8; 4096]>>> = Mutex::new(Vec::new());
    /// let family = Family::builder()
    ///     .pages(PagePool::builder().limit_bytes(1 << 20))
    ///     .on_shortage(|| SPARE.lock().unwrap().pop().is_some())
    ///     .build()?;
    /// let cache = ObjectCache::new(&family, || [0_u8; 4096])?;
    /// for _ in 0..1000 {
    ///     let object = cache.get_owned()?;        // 4 MB in all, out of 1 MiB
    ///     SPARE.lock().unwrap().push(object);
    /// }
    /// # SPARE.lock().unwrap().clear();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn on_shortage(mut self, f: fn() -> bool) -> Self {
        self.on_shortage = Some(f);
        self
    }

    /// What slow calls begin with, where nothing is locked and the caches may be used.
    #[must_use]
    pub(crate) fn on_slow(mut self, f: Option<fn()>) -> Self {
        self.on_slow = f;
        self
    }

    /// Keeps a mark for each object, see [`View::mark_at`](crate::objects::View::mark_at).
    #[must_use]
    pub(crate) fn marks(mut self) -> Self {
        self.marks = true;
        self
    }

    /// Makes the family.
    ///
    /// ```
    /// use larder::{objects::Family, pages::{PagePool, PoolError}};
    /// let family = Family::builder().pages(PagePool::builder().limit_bytes(1)).build();
    /// assert!(matches!(family, Err(PoolError::LimitBytes { bytes: 1, .. })));
    /// ```
    ///
    /// # Errors
    /// See [`PagePoolBuilder::build`]; and no memory for the account of pages.
    pub fn build(self) -> Result<Family, PoolError> {
        let pages = if self.marks {
            self.pages.beside(map::marks_of_page(), map::PLACE)
        } else {
            self.pages
        };
        let pool = pages.build()?;
        let (span, system) = pool.ground();
        let mode = self.mode.unwrap_or_else(mode);
        let interval_ns = u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX);
        let inner = Arc::new(Inner {
            map: PageMap::new(&system, span, pool.beside())?,
            // A slab of one page and 512 objects needs 128 bytes for it, with constructors 256.
            meta: Meta::new(
                system.clone(),
                (span.len / 16 + (16 << 20)).next_multiple_of(HugePageSize::Mib2.bytes()),
            )?,
            table: Table::new(system.clone())?,
            pool,
            magazines: Arc::new(Magazines::new(system.clone())),
            system,
            mode,
            large_pages: AtomicUsize::new(0),
            outgrown: AtomicUsize::new(0),
            links: Lock::new(Links),
            claimed: AtomicBool::new(false),
            on_misuse: self.on_misuse,
            on_slow: self.on_slow,
            on_shortage: self.on_shortage,
            interval_ns,
            due: Due::after(interval_ns),
            began: AtomicU64::new(coarse_now()),
            bound: Bound::new(self.cached_bytes, interval_ns),
            intervals: AtomicU32::new(0),
            reclaiming: AtomicU32::new(0),
            reclaimer: AtomicUsize::new(0),
            reclaimed: AtomicUsize::new(0),
            reaper: Lock::new(None),
        });
        let locks: *const Inner = Arc::as_ptr(&inner);
        // SAFETY: the locks stay where they are until `drop` below unregisters them.
        if unsafe { fork::register(locks) } {
            Ok(Family { inner })
        } else {
            Err(OsError::new("fork handler", 0, rustix::io::Errno::NOMEM).into())
        }
    }
}
