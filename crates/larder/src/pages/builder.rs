//! How a pool is made.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use super::block::BLOCK_PAGES;
use super::clusters::ClustersConfig;
use super::helper::HelperConfig;
use super::inner::{InnerConfig, PoolRef};
use super::pool::PagePool;
use super::space::Space;
use crate::magazine::StockConfig;
use crate::os::rseq::{Mode, mode};
use crate::os::zero::Zeroing;
use crate::os::{
    Decommit, HugeAdvice, HugePageSize, Linux, OsError, Span, System, cpu_caches, page_size,
    physical_memory,
};

/// Largest cluster: 2^20 pages, 4 GiB.
pub const MAX_CLUSTER_PAGES: usize = 1 << 20;

/// Pages of a magazine at first by default.
const MAGAZINE_PAGES: usize = 63;
/// Pages that a magazine may grow to by default: two of them are 1 MiB for each CPU, about what its L2 cache holds.
const MOST_MAGAZINE_PAGES: usize = 127;

/// Environment variable with a cluster size in pages, or `auto`.
const ENV_CLUSTER: &str = "LARDER_CLUSTER_PAGES";

/// Environment variable with the path of a settings file.
#[cfg(feature = "settings")]
const ENV_SETTINGS: &str = "LARDER_SETTINGS";

/// How many pages are populated and given back together.
///
/// ```
/// use larder::pages::ClusterSize;
/// assert_eq!("64".parse(), Ok(ClusterSize::pages(64)?));
/// assert_eq!("auto".parse(), Ok(ClusterSize::AUTO));
/// assert!(ClusterSize::pages(0).is_err());
/// # Ok::<(), larder::pages::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClusterSize(Option<usize>);

impl ClusterSize {
    /// Chosen from this machine's caches: the largest power of two that fills at most half of the L2 cache, between 64
    /// (above 33 pages the kernel flushes the TLB once instead of page by page) and 512 (2 MiB).
    pub const AUTO: Self = Self(None);

    /// A number of pages from 1 to [`MAX_CLUSTER_PAGES`].
    ///
    /// # Errors
    /// Names the number when it is out of range.
    pub fn pages(pages: usize) -> Result<Self, BuildError> {
        if (1..=MAX_CLUSTER_PAGES).contains(&pages) {
            Ok(Self(Some(pages)))
        } else {
            Err(BuildError::ClusterSize {
                given: pages.to_string(),
            })
        }
    }

    /// The number of pages.
    #[must_use]
    pub fn resolve(self) -> usize {
        self.0.unwrap_or_else(|| {
            let half_l2 = cpu_caches().l2.unwrap_or(512 << 10) / 2 / page_size();
            (1 << half_l2.max(1).ilog2()).clamp(64, 512)
        })
    }
}

impl FromStr for ClusterSize {
    type Err = BuildError;
    fn from_str(text: &str) -> Result<Self, BuildError> {
        if text == "auto" {
            return Ok(Self::AUTO);
        }
        text.parse()
            .map_err(|_: ParseIntError| BuildError::ClusterSize {
                given: text.to_owned(),
            })
            .and_then(Self::pages)
    }
}

impl fmt::Display for ClusterSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(pages) => pages.fmt(f),
            None => f.write_str("auto"),
        }
    }
}

/// Why a pool could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A cluster size that is none.
    #[error(
        "cluster size '{given}' is not 'auto' or a number of pages from 1 to {MAX_CLUSTER_PAGES}"
    )]
    ClusterSize {
        /// What was given.
        given: String,
    },
    /// A limit that does not fit one page.
    #[error("a limit of {bytes} bytes does not fit one page of {page} bytes")]
    Limit {
        /// What was given.
        bytes: usize,
        /// The page size.
        page: usize,
    },
    /// A reservation that is too small or too large.
    #[error(
        "a reservation of {bytes} bytes is not between one block ({least} bytes) and {most} bytes"
    )]
    Reserve {
        /// What was given.
        bytes: usize,
        /// The least.
        least: usize,
        /// The most.
        most: usize,
    },
    /// The environment variable `LARDER_SETTINGS` names a file that cannot be used.
    #[cfg(feature = "settings")]
    #[error("LARDER_SETTINGS: {0}")]
    Settings(#[from] crate::settings::SettingsError),
    /// The kernel would not give memory.
    #[error("{0}")]
    System(#[from] OsError),
    /// The helper thread could not be started.
    #[error("the helper thread could not be started: {0}")]
    Helper(String),
}

/// Where the pages' memory comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backing {
    Private,
    Huge,
    Hugetlb(HugePageSize),
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
/// # Ok::<(), larder::pages::BuildError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Builder {
    system: Arc<dyn System>,
    cluster: Option<ClusterSize>,
    limit_bytes: Option<usize>,
    reserve_bytes: Option<usize>,
    populate: bool,
    backing: Backing,
    decay: Duration,
    give_back: Decommit,
    zeroing: Option<Zeroing>,
    /// To find the best that works is dear, so it is left to those who build without a wish.
    mode: Option<Mode>,
    /// Pages of a magazine at first and at most.
    magazine: (usize, usize),
    helper: Option<HelperConfig>,
    environment: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            system: Arc::new(Linux),
            cluster: None,
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
        }
    }
}

impl Builder {
    /// Pages that are populated and given back together. Can be changed later by
    /// [`PagePool::set_cluster`].
    #[must_use]
    pub fn cluster(mut self, size: ClusterSize) -> Self {
        self.cluster = Some(size);
        self
    }

    /// Most bytes that the pool may hold; past it a get is an error. At least one page.
    #[must_use]
    pub fn limit_bytes(mut self, bytes: usize) -> Self {
        self.limit_bytes = Some(bytes);
        self
    }

    /// Addresses to reserve. By default twice the limit, or as much as the machine has memory. Reserving costs nothing
    /// but addresses.
    #[must_use]
    pub fn reserve_bytes(mut self, bytes: usize) -> Self {
        self.reserve_bytes = Some(bytes);
        self
    }

    /// Whether a cluster is backed with memory when it is taken up, with one call (the default), or page by page at
    /// first touch, with a fault each.
    #[must_use]
    pub fn populate(mut self, populate: bool) -> Self {
        self.populate = populate;
        self
    }

    /// Asks for transparent huge pages: cheaper to back and to reach, for pools that grow large. Which sizes the kernel
    /// uses is the machine's setting. Combine it with clusters of 512 pages.
    #[must_use]
    pub fn huge_pages(mut self) -> Self {
        self.backing = Backing::Huge;
        self
    }

    /// Takes memory from the machine's reserved pool of huge pages. It is never given back before the pool is dropped.
    #[must_use]
    pub fn hugetlb(mut self, size: HugePageSize) -> Self {
        self.backing = Backing::Hugetlb(size);
        self
    }

    /// How long memory must be unused before it goes back; [`Duration::MAX`] keeps it.
    #[must_use]
    pub fn decay(mut self, decay: Duration) -> Self {
        self.decay = decay;
        self
    }

    /// How memory is given back. With [`Decommit::Free`] clusters are always populated.
    #[must_use]
    pub fn give_back(mut self, how: Decommit) -> Self {
        self.give_back = how;
        self
    }

    /// The routine that zeroes a page; by default the fastest of this machine, measured when the first page is zeroed.
    #[must_use]
    pub fn zeroing(mut self, zeroing: Zeroing) -> Self {
        self.zeroing = Some(zeroing);
        self
    }

    /// Per-CPU or locked stocks; by default the best that works here.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Pages of a magazine at first and at most (up to 255). A CPU holds at most two magazines.
    #[must_use]
    pub fn magazine(mut self, pages: usize, most: usize) -> Self {
        self.magazine = (pages, most);
        self
    }

    /// Starts the helper thread with the pool.
    #[must_use]
    pub fn helper(mut self, config: HelperConfig) -> Self {
        self.helper = Some(config);
        self
    }

    /// Puts another system underneath.
    #[must_use]
    pub fn system(mut self, system: Arc<dyn System>) -> Self {
        self.system = system;
        self
    }

    /// Does not look at the environment.
    #[must_use]
    pub fn ignore_environment(mut self) -> Self {
        self.environment = false;
        self
    }

    /// Takes over what a settings file says, where nothing was set by hand.
    #[cfg(feature = "settings")]
    #[must_use]
    pub fn settings(mut self, settings: &crate::settings::Settings) -> Self {
        let pages = settings.pages();
        self.cluster = self.cluster.or(pages.cluster_pages);
        self.zeroing = self.zeroing.or(pages.zeroing);
        if pages.prezero && self.helper.is_none() {
            let half_l2 = cpu_caches().l2.unwrap_or(512 << 10) / 2 / page_size();
            self.helper = Some(HelperConfig {
                prezero_pages: half_l2,
                ..HelperConfig::default()
            });
        }
        self
    }

    /// Makes the pool.
    ///
    /// # Errors
    /// Values out of range, an environment variable that makes no sense, no memory or addresses, no thread.
    pub fn build(mut self) -> Result<PagePool, BuildError> {
        if self.environment {
            self = self.read_environment()?;
        }
        let page = page_size();
        let limit_pages = match self.limit_bytes {
            None => usize::MAX,
            Some(bytes) if bytes >= page => bytes / page,
            Some(bytes) => return Err(BuildError::Limit { bytes, page }),
        };
        let (span, committed) = self.reserve(page)?;
        let inner = PoolRef::new(InnerConfig {
            clusters: ClustersConfig {
                system: self.system,
                span,
                committed,
                cluster_pages: self.cluster.unwrap_or_default().resolve(),
                limit_pages,
                // Memory that was freed lazily may still go from under a reader; a write per page ends that.
                populate: self.populate || self.give_back == Decommit::Free,
                // Pieces of a huge page cannot go back, and the whole is what the pool was given for.
                give_back: (!matches!(self.backing, Backing::Hugetlb(_))).then_some(self.give_back),
                // A piece of a transparent huge page would split it.
                in_part: self.backing == Backing::Private,
            },
            stock: StockConfig {
                rounds: self.magazine.0,
                most_rounds: self.magazine.1,
                mode: self.mode.unwrap_or_else(mode),
            },
            routine: self.zeroing.map(Zeroing::routine),
            decay_ns: u64::try_from(self.decay.as_nanos()).unwrap_or(u64::MAX),
        })?;
        let pool = PagePool::from_inner(inner);
        if let Some(config) = self.helper {
            pool.start_helper(config)
                .map_err(|e| BuildError::Helper(e.to_string()))?;
        }
        Ok(pool)
    }

    fn read_environment(mut self) -> Result<Self, BuildError> {
        if self.cluster.is_none()
            && let Some(text) = std::env::var_os(ENV_CLUSTER)
        {
            self.cluster = Some(text.to_string_lossy().parse()?);
        }
        #[cfg(feature = "settings")]
        if let Some(path) = std::env::var_os(ENV_SETTINGS) {
            let settings = crate::settings::Settings::read(path.as_ref())?;
            self = self.settings(&settings);
        }
        Ok(self)
    }

    /// The reservation, and whether it is accessible already.
    fn reserve(&self, page: usize) -> Result<(Span, bool), BuildError> {
        let block = BLOCK_PAGES * page;
        let most = (Space::MOST_PAGES * page).min(1 << 46);
        let wanted = match (self.reserve_bytes, self.limit_bytes) {
            (Some(bytes), _) if (block..=most).contains(&bytes) => bytes,
            (Some(bytes), _) => {
                return Err(BuildError::Reserve {
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
        match self.backing {
            Backing::Hugetlb(size) => {
                // The kernel takes the whole from its pool at once, so the limit is what is meant.
                let bytes = self
                    .reserve_bytes
                    .or(self.limit_bytes)
                    .unwrap_or(64 << 20)
                    .min(most)
                    .next_multiple_of(size.bytes());
                return Ok((self.system.reserve_hugetlb(bytes, size)?, true));
            }
            Backing::Private | Backing::Huge => {}
        }
        let align = HugePageSize::Mib2.bytes();
        let span = loop {
            match self.system.reserve(bytes, align) {
                Ok(span) => break span,
                // Less will do where addresses are limited (ulimit -v), if the size was ours to choose.
                Err(_)
                    if self.reserve_bytes.is_none()
                        && bytes / 2 >= MIN_RESERVE.max(self.limit_bytes.unwrap_or(0)) =>
                {
                    bytes = (bytes / 2).next_multiple_of(block);
                }
                Err(error) => return Err(error.into()),
            }
        };
        let advice = if self.backing == Backing::Huge {
            HugeAdvice::Want
        } else {
            HugeAdvice::Refuse
        };
        // Advice that is not taken (a kernel without huge pages) costs speed and nothing else.
        // SAFETY: the span was just reserved and is not known to anybody else.
        let _ = unsafe { self.system.advise_huge(span, advice) };
        Ok((span, false))
    }
}

/// Below this a pool without limit is not worth having: report the error instead.
const MIN_RESERVE: usize = 64 << 20;
