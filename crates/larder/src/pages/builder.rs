//! How a pool is made.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use super::block::BLOCK_PAGES;
use super::block::MAX_CLUSTER_PAGES;
use super::cluster_size::ClusterSize;
use super::clusters::ClustersConfig;
use super::error::PoolError;
use super::helper::HelperConfig;
use super::inner::{InnerConfig, PoolRef};
use super::pool::PagePool;
use super::space::Space;
use crate::magazine::StockConfig;
use crate::os::rseq::{Mode, mode};
use crate::os::zero::Zeroing;
use crate::os::{
    Decommit, HugeAdvice, HugePageSize, Linux, Span, System, page_size, physical_memory,
};

/// Pages of a magazine at first by default.
const MAGAZINE_PAGES: usize = 63;
/// Pages that a magazine may grow to by default: two of them are 1 MiB for each CPU, about what its L2 cache holds.
const MOST_MAGAZINE_PAGES: usize = 127;

/// Environment variable with a cluster size in pages, or `auto`.
const ENV_CLUSTER: &str = "LARDER_CLUSTER_PAGES";

/// Environment variable with the path of a settings file.
#[cfg(feature = "settings")]
const ENV_SETTINGS: &str = "LARDER_SETTINGS";

/// Where the pages' memory comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backing {
    Private,
    Huge,
    Hugetlb(HugePageSize),
    Shared,
}

/// Settings of a pool that is to be. What is not set comes from the environment (`LARDER_CLUSTER_PAGES`, a settings
/// file named by `LARDER_SETTINGS`), and what is not there either is chosen for this machine.
///
/// ```
/// use std::time::Duration;
/// use larder::pages::PagePool;
/// let pool = PagePool::builder()
///     .limit_bytes(16 << 20)
///     .decay(Duration::from_secs(5))
///     .populate(false)
///     .build()?;
/// assert_eq!(pool.stats().limit_bytes, 16 << 20);
/// # Ok::<(), larder::pages::PoolError>(())
/// ```
#[derive(Debug, Clone)]
pub struct PagePoolBuilder {
    system: Arc<dyn System>,
    cluster: Option<ClusterSize>,
    /// What a settings file says, and `auto` means.
    measured: Option<ClusterSize>,
    limit_bytes: Option<usize>,
    reserve_bytes: Option<usize>,
    populate: bool,
    backing: Backing,
    decay: Duration,
    give_back: Decommit,
    zeroing: Option<Zeroing>,
    /// `None` is the best that works, which is expensive to find out: only `build` does so, when no mode was set.
    mode: Option<Mode>,
    /// Pages of a magazine at first and at most.
    magazine: (usize, usize),
    helper: Option<HelperConfig>,
    environment: bool,
    /// Bytes beside each page, that go with it and that stay.
    beside: Option<(usize, usize)>,
}

impl Default for PagePoolBuilder {
    fn default() -> Self {
        Self {
            system: Arc::new(Linux),
            cluster: None,
            measured: None,
            limit_bytes: None,
            reserve_bytes: None,
            populate: true,
            backing: Backing::Private,
            decay: Duration::from_secs(1),
            give_back: Decommit::DontNeed,
            zeroing: None,
            mode: None,
            magazine: (MAGAZINE_PAGES, MOST_MAGAZINE_PAGES),
            helper: None,
            environment: true,
            beside: None,
        }
    }
}

impl PagePool {
    /// A pool with default settings: no limit, cluster size chosen from this machine's caches, memory unused for a
    /// second goes back.
    ///
    /// ```
    /// let pool = larder::pages::PagePool::new()?;
    /// assert_eq!(pool.stats().limit_bytes, usize::MAX);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`PagePoolBuilder::build`].
    pub fn new() -> Result<Self, PoolError> {
        Self::builder().build()
    }

    /// Settings first.
    ///
    /// ```
    /// use larder::pages::{ClusterSize, PagePool};
    /// let pool = PagePool::builder().cluster(ClusterSize::pages(128)?).limit_bytes(64 << 20).build()?;
    /// assert_eq!(pool.cluster_pages(), 128);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn builder() -> PagePoolBuilder {
        PagePoolBuilder::default()
    }
}

impl PagePoolBuilder {
    /// Pages that are populated and given back together. Can be changed later by
    /// [`PagePool::set_cluster`].
    ///
    /// ```
    /// # use larder::pages::{ClusterSize, PagePool};
    /// let pool = PagePool::builder().cluster(ClusterSize::pages(100)?).build()?;
    /// assert_eq!(pool.cluster_pages(), 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn cluster(mut self, size: ClusterSize) -> Self {
        self.cluster = Some(size);
        self
    }

    /// Most bytes that the pool may hold; past it a get is an error. At least one page.
    ///
    /// ```
    /// # use larder::{os::page_size, pages::{PagePool, PoolError}};
    /// let pool = PagePool::builder().limit_bytes(page_size()).build()?;
    /// let page = pool.get()?;
    /// assert!(matches!(pool.get(), Err(PoolError::Limit { .. })));
    /// # drop(page);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn limit_bytes(mut self, bytes: usize) -> Self {
        self.limit_bytes = Some(bytes);
        self
    }

    /// Addresses to reserve. By default twice the limit, or as much as the machine has memory. Reserving costs nothing
    /// but addresses.
    ///
    /// ```
    /// # use larder::pages::{PagePool, PoolError};
    /// let pool = PagePool::builder().reserve_bytes(1 << 20).build()?;
    /// assert!(matches!(pool.get_run(1000), Err(PoolError::Exhausted { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn reserve_bytes(mut self, bytes: usize) -> Self {
        self.reserve_bytes = Some(bytes);
        self
    }

    /// Whether a cluster is backed with memory when it is taken up, with one call (the default), or page by page at
    /// first touch, with a fault each.
    ///
    /// ```
    /// # use larder::pages::PagePool;
    /// let pool = PagePool::builder().populate(false).build()?;
    /// pool.get()?.fill(1);
    /// assert_eq!(pool.stats().populate_calls, 0, "the page came with a fault");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn populate(mut self, populate: bool) -> Self {
        self.populate = populate;
        self
    }

    /// Asks for transparent huge pages: cheaper to back and to reach, for pools that grow large. Which sizes the kernel
    /// uses is the machine's setting. Combine it with clusters of 512 pages.
    ///
    /// ```
    /// # use larder::pages::{ClusterSize, PagePool};
    /// let pool = PagePool::builder().huge_pages().cluster(ClusterSize::pages(512)?).build()?;
    /// pool.get()?.fill(1);
    /// assert_eq!(pool.stats().held_bytes, 512 * pool.page_size());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn huge_pages(mut self) -> Self {
        self.backing = Backing::Huge;
        self
    }

    /// Takes memory from the machine's reserved pool of huge pages. It is never given back before the pool is dropped.
    ///
    /// ```
    /// # use larder::{os::HugePageSize, pages::{PagePool, PoolError}};
    /// match PagePool::builder().hugetlb(HugePageSize::Mib2).limit_bytes(2 << 20).build() {
    ///     Ok(pool) => pool.get()?.fill(1),
    ///     Err(PoolError::System(error)) => println!("{error}; see /proc/sys/vm/nr_hugepages"),
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn hugetlb(mut self, size: HugePageSize) -> Self {
        self.backing = Backing::Hugetlb(size);
        self
    }

    /// Takes memory from a memfd, so that another process can read the pages in place: see
    /// [`SharedPages`](super::SharedPages). A page that goes back leaves the memfd, too.
    ///
    /// The child of a fork does not have these pages. It may only drop its copies of the pool and of the buffers.
    ///
    /// ```
    /// # use larder::pages::PagePool;
    /// let pool = PagePool::builder().shared().limit_bytes(1 << 20).build()?;
    /// assert!(pool.descriptor().is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn shared(mut self) -> Self {
        self.backing = Backing::Shared;
        self
    }

    /// How long memory must be unused before it goes back; [`Duration::MAX`] keeps it.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use larder::pages::PagePool;
    /// let pool = PagePool::builder().decay(Duration::ZERO).build()?;
    /// drop(pool.get_run(64)?);
    /// assert!(pool.maintain() + pool.maintain() > 0, "by default it would be kept for a second");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn decay(mut self, decay: Duration) -> Self {
        self.decay = decay;
        self
    }

    /// How memory is given back. With [`Decommit::Free`] clusters are always populated.
    ///
    /// ```
    /// # use larder::{os::Decommit, pages::PagePool};
    /// let pool = PagePool::builder().give_back(Decommit::Free).build()?;
    /// pool.get()?.fill(1);
    /// pool.trim();                                // the kernel takes the memory when it needs it
    /// assert!(pool.get_zeroed()?.iter().all(|&byte| byte == 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn give_back(mut self, how: Decommit) -> Self {
        self.give_back = how;
        self
    }

    /// The routine that zeroes a page; by default the fastest of this machine, measured when the first page is zeroed.
    ///
    /// ```
    /// # use larder::{os::zero::Zeroing, pages::PagePool};
    /// let pool = PagePool::builder().zeroing(Zeroing::Portable).build()?;
    /// pool.get()?.fill(1);
    /// assert!(pool.get_zeroed()?.iter().all(|&byte| byte == 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn zeroing(mut self, zeroing: Zeroing) -> Self {
        self.zeroing = Some(zeroing);
        self
    }

    /// Per-CPU or locked stocks; by default the best that works here.
    ///
    /// ```
    /// # use larder::{os::rseq::Mode, pages::PagePool};
    /// let pool = PagePool::builder().mode(Mode::Locked("to compare")).build()?;
    /// drop(pool.get()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Pages of a magazine at first and at most (up to 255). A CPU holds at most two magazines.
    ///
    /// ```
    /// # use larder::pages::PagePool;
    /// let pool = PagePool::builder().magazine(16, 32).build()?;
    /// assert_eq!(pool.stats().magazine_pages, 16);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn magazine(mut self, pages: usize, most: usize) -> Self {
        self.magazine = (pages, most);
        self
    }

    /// Starts the helper thread with the pool.
    ///
    /// ```
    /// # use larder::pages::{HelperConfig, PagePool};
    /// let pool = PagePool::builder().helper(HelperConfig::default()).build()?;
    /// pool.stop_helper();
    /// let greedy = HelperConfig { cpu_budget: 2.0, ..HelperConfig::default() };
    /// assert!(PagePool::builder().helper(greedy).build().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn helper(mut self, config: HelperConfig) -> Self {
        self.helper = Some(config);
        self
    }

    /// Puts another system underneath.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use larder::pages::PagePool;
    /// use larder::os::{Linux, testing::{Call, Failing, Hooked}};
    /// let system = Arc::new(Hooked::new(Linux, Failing::only(Call::Populate, 1, 1)));
    /// let pool = PagePool::builder().system(system.clone()).build()?;
    /// drop(pool.get()?);
    /// assert_eq!(system.hook().seen(), 1, "the next would fail");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn system(mut self, system: Arc<dyn System>) -> Self {
        self.system = system;
        self
    }

    /// Does not look at the environment.
    ///
    /// ```
    /// # use larder::pages::{ClusterSize, PagePool};
    /// let pool = PagePool::builder().ignore_environment().build()?;
    /// assert_eq!(pool.cluster_pages(), ClusterSize::AUTO.resolve(), "whatever LARDER_CLUSTER_PAGES says");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn ignore_environment(mut self) -> Self {
        self.environment = false;
        self
    }

    /// Keeps so many bytes beside each page, and behind all of them `more` for each. They read as zero, and the pool's owner makes them
    /// writable. The memory of the former goes back with that of the pages; so they must be 0 when the pages are put.
    #[must_use]
    pub(crate) fn beside(mut self, bytes: usize, more: usize) -> Self {
        self.beside = Some((bytes, more));
        self
    }

    /// Takes over what a settings file says, where nothing was set by hand. Its size of clusters is then what
    /// [`ClusterSize::AUTO`] means to this pool.
    ///
    /// ```
    /// # use larder::{pages::{ClusterSize, PagePool}, settings::Settings};
    /// let settings: Settings = "version = 1\n[pages]\ncluster_pages = 64\n".parse()?;
    /// let by_hand = PagePool::builder().cluster(ClusterSize::pages(32)?).settings(&settings).build()?;
    /// assert_eq!(PagePool::builder().settings(&settings).build()?.cluster_pages(), 64);
    /// assert_eq!(by_hand.cluster_pages(), 32);
    /// by_hand.set_cluster(ClusterSize::AUTO);
    /// assert_eq!(by_hand.cluster_pages(), 64);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "settings")]
    #[must_use]
    pub fn settings(mut self, settings: &crate::settings::Settings) -> Self {
        let pages = settings.pages();
        self.measured = self.measured.or(pages.cluster_pages);
        self.zeroing = self.zeroing.or(pages.zeroing);
        if pages.prezero && self.helper.is_none() {
            self.helper = Some(HelperConfig {
                prezero_pages: crate::os::half_l2_pages(),
                ..HelperConfig::default()
            });
        }
        self
    }

    /// Makes the pool.
    ///
    /// ```
    /// # use larder::pages::{PagePool, PoolError};
    /// assert!(matches!(PagePool::builder().reserve_bytes(1).build(), Err(PoolError::ReserveBytes { .. })));
    /// ```
    ///
    /// # Errors
    /// Values out of range, an environment variable that makes no sense, no memory or addresses, no thread.
    pub fn build(mut self) -> Result<PagePool, PoolError> {
        if self.environment {
            self = self.read_environment()?;
        }
        let measured = self.measured.unwrap_or_default();
        let page = page_size();
        let limit_pages = match self.limit_bytes {
            None => usize::MAX,
            Some(bytes) if bytes >= page => bytes / page,
            Some(bytes) => return Err(PoolError::LimitBytes { bytes, page }),
        };
        let (span, descriptor) = self.reserve(page)?;
        let give_back = match self.backing {
            // Pieces of a huge page cannot go back, and the whole is what the pool was given for.
            Backing::Hugetlb(_) => None,
            Backing::Shared => Some(Decommit::Remove),
            Backing::Private | Backing::Huge => Some(self.give_back),
        };
        let inner = PoolRef::new(InnerConfig {
            clusters: ClustersConfig {
                system: self.system,
                span,
                committed: matches!(self.backing, Backing::Hugetlb(_) | Backing::Shared),
                cluster_pages: self.cluster.unwrap_or_default().or(measured).resolve(),
                limit_pages,
                // Memory that was freed lazily may still go from under a reader; a write per page ends that.
                populate: self.populate || give_back == Some(Decommit::Free),
                give_back,
                // A piece of a transparent huge page would split it.
                in_part: self.backing != Backing::Huge,
                beside: self.beside,
                shared: self.backing == Backing::Shared,
            },
            stock: StockConfig {
                rounds: self.magazine.0,
                most_rounds: self.magazine.1,
                mode: self.mode.unwrap_or_else(mode),
            },
            measured,
            routine: self.zeroing.map(Zeroing::routine),
            decay_ns: u64::try_from(self.decay.as_nanos()).unwrap_or(u64::MAX),
            descriptor,
        })?;
        let pool = PagePool::from_inner(inner);
        if let Some(config) = self.helper {
            pool.start_helper(config)
                .map_err(|e| PoolError::Helper(e.kind()))?;
        }
        Ok(pool)
    }

    fn read_environment(mut self) -> Result<Self, PoolError> {
        if self.cluster.is_none()
            && self.measured.is_none()
            && let Some(text) = std::env::var_os(ENV_CLUSTER)
        {
            self.cluster = Some(text.to_string_lossy().parse()?);
        }
        #[cfg(feature = "settings")]
        if let Some(path) = std::env::var_os(ENV_SETTINGS) {
            let settings = crate::settings::Settings::read(path.as_ref())
                .map_err(|error| PoolError::Settings(kept(error)))?;
            self = self.settings(&settings);
        }
        Ok(self)
    }

    /// The reservation, and the descriptor of its memfd if it is one.
    fn reserve(&self, page: usize) -> Result<(Span, Option<OwnedFd>), PoolError> {
        let block = BLOCK_PAGES * page;
        let most = (Space::MOST_PAGES * page).min(1 << 46);
        let wanted = match (self.reserve_bytes, self.limit_bytes) {
            (Some(bytes), _) if (block..=most).contains(&bytes) => bytes,
            (Some(bytes), _) => {
                return Err(PoolError::ReserveBytes {
                    bytes,
                    least: block,
                    most,
                });
            }
            // Twice the limit, so that runs find neighbours among pages that are free but scattered.
            (None, Some(limit)) => limit
                .saturating_mul(2)
                .saturating_add(MAX_CLUSTER_PAGES.min(512) * page),
            (None, None) => physical_memory().max(1 << 30),
        };
        let mut bytes = wanted.min(most).next_multiple_of(block);
        if let Backing::Hugetlb(size) = self.backing {
            // The kernel takes the whole from its pool at once, so the limit is what is meant.
            let bytes = self
                .reserve_bytes
                .or(self.limit_bytes)
                .unwrap_or(64 << 20)
                .min(most)
                .next_multiple_of(size.bytes());
            return Ok((self.system.reserve_hugetlb(bytes, size)?, None));
        }
        let align = HugePageSize::Mib2.bytes();
        let (span, descriptor) = loop {
            let reserved = if self.backing == Backing::Shared {
                let shared = self.system.reserve_shared(bytes);
                shared.map(|(span, descriptor)| (span, Some(descriptor)))
            } else {
                self.system.reserve(bytes, align).map(|span| (span, None))
            };
            match reserved {
                Ok(reserved) => break reserved,
                // Less will do where addresses are limited (ulimit -v), if the caller did not set the size.
                Err(_)
                    if self.reserve_bytes.is_none()
                        && bytes / 2 >= MIN_RESERVE.max(self.limit_bytes.unwrap_or(0)) =>
                {
                    bytes = (bytes / 2).next_multiple_of(block);
                }
                Err(error) => return Err(error.into()),
            }
        };
        let advice = match self.backing {
            Backing::Huge => HugeAdvice::Want,
            // What a memfd gets is the machine's setting.
            Backing::Shared => return Ok((span, descriptor)),
            Backing::Private | Backing::Hugetlb(_) => HugeAdvice::Refuse,
        };
        // Advice that is not taken (a kernel without huge pages) costs speed and nothing else.
        // SAFETY: the span was just reserved and is not known to other code.
        let _ = unsafe { self.system.advise_huge(span, advice) };
        Ok((span, descriptor))
    }
}

/// Below this a pool without limit is not worth having: report the error instead.
const MIN_RESERVE: usize = 64 << 20;

/// Keeps an error of the settings for as long as the process runs, so that an error of the pool need not own it. The same one
/// again is kept once.
#[cfg(feature = "settings")]
fn kept(error: crate::settings::SettingsError) -> &'static crate::settings::SettingsError {
    use core::sync::atomic::{AtomicPtr, Ordering};
    static LAST: AtomicPtr<crate::settings::SettingsError> = AtomicPtr::new(core::ptr::null_mut());
    // SAFETY: null, or one that was leaked below.
    match unsafe { LAST.load(Ordering::Acquire).as_ref() } {
        Some(last) if *last == error => last,
        _ => {
            let kept = Box::leak(Box::new(error));
            LAST.store(kept, Ordering::Release);
            kept
        }
    }
}
