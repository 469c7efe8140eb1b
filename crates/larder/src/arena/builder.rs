//! How an arena is made.

use core::sync::atomic::AtomicU64;
use std::sync::Arc;

use rustix::io::Errno;

use super::arena::Arena;
use super::core::{Core, Fit};
use super::error::{ArenaError, MOST_CACHES};
use super::import::Import;
use super::quantum::Quantum;
use super::ranges::{Guarded, Ranges};
use crate::magazine::{Magazines, Stock, StockConfig};
use crate::os::forked::ForkLock;
use crate::os::rseq::Mode;
use crate::os::{Linux, OsError, System};

/// Most spans and segments, where the system has addresses for so many. Each takes 36 bytes of them.
const MOST: u32 = 1 << 28;
/// Fewer than this are no use.
const LEAST: u32 = 1 << 20;

/// Segments of the largest cached size in an imported span, by default.
const UNIT: u64 = 64;

/// What an arena is to be. Made by [`Arena::builder`].
///
/// ```
/// use std::sync::Arc;
/// use larder::arena::{Arena, Fit};
///
/// let addresses = Arc::new(Arena::builder("addresses").quantum(1 << 16).build()?);
/// addresses.add(1 << 32, 1 << 32)?;
/// let pages = Arena::builder("pages")
///     .quantum(4096)
///     .quantum_max(4 * 4096)              // caches for 1, 2, 3 and 4 pages
///     .source(addresses.clone())
///     .import_unit(1 << 20)
///     .limit(1 << 30)
///     .fit(Fit::Best)
///     .build()?;
/// let page = pages.alloc(4096)?;
/// assert!(addresses.contains(page) && pages.contains(page));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct ArenaBuilder {
    name: &'static str,
    quantum: u64,
    quantum_max: u64,
    source: Option<Arc<dyn Import>>,
    unit: Option<u64>,
    limit: u64,
    fit: Fit,
    magazine: Option<(usize, usize)>,
    mode: Option<Mode>,
    system: Option<Arc<dyn System>>,
}

impl ArenaBuilder {
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            name,
            quantum: 1,
            quantum_max: 0,
            source: None,
            unit: None,
            limit: u64::MAX,
            fit: Fit::default(),
            magazine: None,
            mode: None,
            system: None,
        }
    }

    /// What all sizes and addresses are multiples of: a power of two; 1 by default.
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// let pages = Arena::builder("pages").quantum(4096).build()?;
    /// pages.add(0, 1 << 20)?;
    /// pages.alloc(1)?;
    /// assert_eq!(pages.stats().allocated, 4096);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn quantum(mut self, units: u64) -> Self {
        self.quantum = units;
        self
    }

    /// Largest size with a quantum cache, at most 16 quanta; 0, none, by default.
    ///
    /// Each multiple of the quantum up to here has magazines for each CPU, so that it is taken and freed without a lock, in
    /// constant time whatever the arena looks like. Segments in magazines are not joined with their neighbours.
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// let ids = Arena::builder("ids").quantum_max(2).build()?;
    /// ids.add(0, 1000)?;
    /// ids.alloc(2)?;
    /// assert!(ids.stats().allocated > 2, "more of the size were cut, and lie in a magazine");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn quantum_max(mut self, units: u64) -> Self {
        self.quantum_max = units;
        self
    }

    /// Where spans come from when no free segment will do; nowhere by default.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use larder::arena::Arena;
    /// let all = Arc::new(Arena::builder("all").build()?);
    /// all.add(0, 1 << 20)?;
    /// let mine = Arena::builder("mine").source(all.clone()).build()?;
    /// assert!(all.contains(mine.alloc(1)?));
    /// assert_eq!(mine.stats().imports, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn source(mut self, source: Arc<dyn Import>) -> Self {
        self.source = Some(source);
        self
    }

    /// Spans are imported in multiples of this, or as small as the need if that is refused. By default 64 times the largest
    /// size with a quantum cache, or the quantum.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use larder::arena::Arena;
    /// # let all = Arc::new(Arena::builder("all").build()?);
    /// # all.add(0, 1 << 20)?;
    /// let mine = Arena::builder("mine").source(all).import_unit(256).build()?;
    /// mine.alloc(1)?;
    /// assert_eq!(mine.stats().imported, 256);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn import_unit(mut self, units: u64) -> Self {
        self.unit = Some(units);
        self
    }

    /// Most units that all spans together may have; no limit by default.
    ///
    /// ```
    /// # use larder::arena::{Arena, ArenaError};
    /// let ids = Arena::builder("ids").limit(10).build()?;
    /// assert!(matches!(ids.add(0, 11), Err(ArenaError::Limit { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn limit(mut self, units: u64) -> Self {
        self.limit = units;
        self
    }

    /// By which rule a free segment is chosen; instant fit by default.
    ///
    /// ```
    /// # use larder::arena::{Arena, Fit};
    /// let ids = Arena::builder("ids").fit(Fit::Next).build()?;
    /// ids.add(0, 10)?;
    /// ids.free(ids.alloc(1)?, 1)?;
    /// assert_eq!(ids.alloc(1)?, 1, "what was freed is not soon handed out again");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit(mut self, fit: Fit) -> Self {
        self.fit = fit;
        self
    }

    /// Segments of a magazine, at first and at most (255); 63 and 255 by default.
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// let ids = Arena::builder("ids").quantum_max(1).magazine(8, 8).build()?;
    /// let rounds: Vec<_> = ids.quantum_stats().map(|(_, cache)| cache.rounds).collect();
    /// assert_eq!(rounds, [8]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn magazine(mut self, rounds: usize, most: usize) -> Self {
        self.magazine = Some((rounds, most));
        self
    }

    /// Per CPU or locked magazines; the best of this machine by default.
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// use larder::os::rseq::Mode;
    /// let ids = Arena::builder("ids").quantum_max(1).mode(Mode::Locked("to compare")).build()?;
    /// ids.add(0, 10)?;
    /// ids.free(ids.alloc(1)?, 1)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Where memory for tags and magazines comes from; Linux by default.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use larder::arena::Arena;
    /// use larder::os::{Linux, testing::{Failing, Hooked}};
    /// let system = Arc::new(Hooked::new(Linux, Failing::from(1000, 1)));
    /// let ids = Arena::builder("ids").system(system.clone()).build()?;
    /// assert!(system.hook().seen() > 0);
    /// # drop(ids);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn system(mut self, system: Arc<dyn System>) -> Self {
        self.system = Some(system);
        self
    }

    /// Makes the arena. It has no spans yet.
    ///
    /// This is the only call that uses the global allocator. Takes two pages, and addresses for segments and for the magazines of
    /// each quantum cache.
    ///
    /// ```
    /// # use larder::arena::{Arena, ArenaError};
    /// assert!(matches!(Arena::builder("ids").quantum(3).build(), Err(ArenaError::Quantum { quantum: 3, .. })));
    /// ```
    ///
    /// # Errors
    /// [`ArenaError::Quantum`], [`ArenaError::QuantumMax`], [`ArenaError::Memory`].
    pub fn build(self) -> Result<Arena, ArenaError> {
        let arena = self.name;
        if !self.quantum.is_power_of_two() {
            return Err(ArenaError::Quantum {
                arena,
                quantum: self.quantum,
            });
        }
        let shift = self.quantum.trailing_zeros();
        let caches = self.quantum_max.div_ceil(self.quantum);
        let cached = caches
            .checked_mul(self.quantum)
            .filter(|_| caches <= MOST_CACHES);
        let Some(cached) = cached else {
            return Err(ArenaError::QuantumMax {
                arena,
                max: self.quantum_max,
                quantum: self.quantum,
            });
        };
        let unit = self
            .unit
            .unwrap_or_else(|| cached.saturating_mul(UNIT))
            .max(self.quantum);
        let memory = |cause| ArenaError::Memory { arena, cause };
        let system = self
            .system
            .clone()
            .unwrap_or_else(|| Arc::new(Linux) as Arc<dyn System>);
        let core = core(&system, self.quantum).map_err(memory)?;
        Ok(Arena {
            quanta: self.quanta(&system, caches).map_err(memory)?,
            ranges: Ranges {
                name: arena,
                table: core.table,
                guarded: ForkLock::new(Guarded::new(core.state)).map_err(memory)?,
                fit: self.fit,
                source: self.source,
                unit: unit & !(self.quantum - 1),
                limit: AtomicU64::new(self.limit),
            },
            shift,
        })
    }

    fn quanta(&self, system: &Arc<dyn System>, caches: u64) -> Result<Vec<Quantum>, OsError> {
        let mut config = StockConfig::default();
        if let Some((rounds, most)) = self.magazine {
            (config.rounds, config.most_rounds) = (rounds, most);
        }
        if let Some(mode) = self.mode {
            config.mode = mode;
        }
        let mut quanta = Vec::new();
        quanta
            .try_reserve_exact(caches as usize)
            .map_err(|_| OsError::new("alloc(quantum caches)", caches as usize, Errno::NOMEM))?;
        let magazines = Arc::new(Magazines::new(system.clone()));
        for n in 1..=caches {
            quanta.push(Quantum {
                size: n * self.quantum,
                stock: Stock::sharing(magazines.clone(), system.clone(), config.clone()),
            });
        }
        Ok(quanta)
    }
}

/// A core for as many segments as the system has addresses for: a limit (`ulimit -v`) may leave few.
fn core(system: &Arc<dyn System>, quantum: u64) -> Result<Core, OsError> {
    let mut most = MOST;
    loop {
        match Core::new(system.clone(), quantum, most) {
            Err(_) if most > LEAST => most >>= 4,
            made => return made,
        }
    }
}

impl Arena {
    /// An arena with the defaults.
    ///
    /// # Errors
    /// [`ArenaError::Memory`].
    pub fn new(name: &'static str) -> Result<Self, ArenaError> {
        Self::builder(name).build()
    }

    /// Begins an arena: quantum 1, no quantum caches, no source, no limit, instant fit.
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// let pages = Arena::builder("pages").quantum(4096).build()?;
    /// pages.add(1 << 30, 1 << 20)?;
    /// assert_eq!(pages.alloc(1)? % 4096, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(name: &'static str) -> ArenaBuilder {
        ArenaBuilder::new(name)
    }
}
