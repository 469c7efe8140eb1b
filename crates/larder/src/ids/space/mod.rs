//! Identifiers for many threads.

mod bulk;
mod front;
mod gate;
mod give;
mod ledger;
mod look;
mod marks;
mod place;
mod queue;
mod states;
mod stats;
mod sweep;
mod sync;
mod take;
mod wait;

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(shuttle)]
mod model;
#[cfg(all(test, shuttle))]
mod shuttle_tests;

use core::ops::RangeBounds;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

use front::{Config, Front};
use ledger::{Ledger, Mark};
use sync::{Guard, Lock};

use super::rule::{Order, Rule, Shape};
use super::{Id, IdError, IdRange};
use crate::os::rseq::Mode;
use crate::os::{System, fork};

pub use ledger::Crossing;
pub use stats::SpaceStats;

/// Spaces with more identifiers have no cells: a byte each would cost more than a lock.
const MOST_CELLS: u64 = 1 << 24;
/// Spaces with fewer identifiers have nothing to lay ready.
const FEWEST_CELLS: u64 = if cfg!(shuttle) { 4 } else { 64 };
/// Identifiers that are taken from the map before magazines are made, which takes as long as some hundred of them.
const EARLY: usize = if cfg!(shuttle) { 2 } else { 64 };

/// A space to be: see [`IdSpace::builder`].
///
/// ```
/// use larder::ids::{IdSpace, rule::Any};
/// use larder::os::rseq::Mode;
///
/// // As on a machine without restartable sequences.
/// let tags = IdSpace::builder(0u16..4096, Any).mode(Mode::Locked("to compare")).build()?;
/// tags.free(tags.alloc()?)?;
/// # Ok::<(), larder::ids::IdError>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct IdSpaceBuilder<R, T = u64> {
    range: Result<IdRange, IdError>,
    rule: R,
    config: Config,
    integer: PhantomData<fn() -> T>,
}

impl<R: Rule<Order: Send>, T: Id> IdSpaceBuilder<R, T> {
    /// Per CPU or locked; the best of this machine by default.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.config.mode = Some(mode);
        self
    }

    /// Where memory comes from; Linux by default.
    pub fn system(mut self, system: Arc<dyn System>) -> Self {
        self.config.system = Some(system);
        self
    }

    /// An empty space. Takes constant time.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for an empty range or a rule with absurd parameters, [`IdError::OutOfMemory`].
    pub fn build(self) -> Result<IdSpace<R, T>, IdError> {
        IdSpace::over(self.range?, self.rule, self.config)
    }
}

/// Identifiers of a range, handed out by a rule, for many threads.
///
/// What a rule becomes when it is shared is its [`Shape`]. Identifiers lie ready for each CPU where the rule allows it, and
/// then taking and freeing one takes no lock: a restartable section each, a store, and one exchange that makes a second free
/// of the same identifier an error, also when two threads free it at the same moment. Such a space holds a byte for each
/// identifier that was ever used; ranges of more than 2^24 identifiers use the map alone, under its lock.
///
/// [`IdError::Full`] is returned only when at some moment of the call no identifier was free, wherever it lay: magazines of
/// other CPUs are emptied first, and the verdict is read from the identifiers' own bytes. Threads that end lose nothing,
/// since magazines belong to CPUs.
///
/// Creation takes constant time and memory follows use: the first 64 identifiers come straight from the map, and the bytes
/// and what lies ready for CPUs are made after these. A child of `fork` may go on with its copy: the locks are taken
/// around the fork. Only what another thread of the parent held in the very middle of an operation (128 identifiers each at
/// most) stays allocated in the child. Nothing here may be called from a signal handler.
///
/// ```
/// use larder::ids::{IdSpace, rule::Lowest};
///
/// let ports = IdSpace::new(1024u16..=65535, Lowest)?;
/// std::thread::scope(|s| {
///     for _ in 0..4 {
///         s.spawn(|| {
///             let port = ports.alloc().unwrap();
///             ports.free(port).unwrap();
///             assert!(ports.free(port).is_err() || ports.is_allocated(port), "freed twice, or another thread's by now");
///         });
///     }
/// });
/// assert_eq!(ports.allocated(), 0);
/// # Ok::<(), larder::ids::IdError>(())
/// ```
pub struct IdSpace<R: Rule<Order: Send>, T: Id = u64> {
    range: IdRange,
    integer: PhantomData<fn() -> T>,
    /// Made under the lock when some identifiers have been taken; before that everything goes to the map.
    front: OnceLock<Front>,
    /// Whether there is to be one.
    fronted: bool,
    /// Boxed, since the handlers of a fork know its address.
    ledger: Box<[Lock<Ledger<R::Order>>; 1]>,
    marks: Vec<Mark>,
    config: Config,
}

impl<R: Rule<Order: Send>, T: Id> IdSpace<R, T> {
    /// An empty space. Takes constant time.
    ///
    /// ```
    /// # use larder::ids::{IdSpace, rule::Lowest};
    /// let ports = IdSpace::new(1024u16..=65535, Lowest)?;
    /// assert_eq!(ports.alloc()?, 1024);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::Invalid`] for an empty range or a rule with absurd parameters, [`IdError::OutOfMemory`].
    pub fn new(range: impl RangeBounds<T>, rule: R) -> Result<Self, IdError> {
        Self::builder(range, rule).build()
    }

    /// An empty space with settings of its own.
    pub fn builder(range: impl RangeBounds<T>, rule: R) -> IdSpaceBuilder<R, T> {
        IdSpaceBuilder {
            range: IdRange::of(&range),
            rule,
            config: Config::default(),
            integer: PhantomData,
        }
    }

    fn over(range: IdRange, rule: R, config: Config) -> Result<Self, IdError> {
        let last = range.last() - range.first();
        let ledger = Ledger::new(rule.order(last)?, last);
        let mut boxed = Vec::new();
        boxed
            .try_reserve_exact(1)
            .map_err(|_| IdError::OutOfMemory)?;
        boxed.push(Lock::new(ledger));
        let ledger = boxed
            .into_boxed_slice()
            .try_into()
            .map_err(|_| IdError::OutOfMemory)?;
        let space = Self {
            range,
            integer: PhantomData,
            front: OnceLock::new(),
            fronted: R::SHAPE != Shape::Exact && (FEWEST_CELLS..MOST_CELLS).contains(&last),
            ledger,
            marks: Vec::new(),
            config,
        };
        // Without memory to remember the lock, a fork while another thread holds it would leave the child stuck.
        // SAFETY: the lock is boxed and stays where it is until `drop`, which unregisters it.
        #[cfg(not(shuttle))]
        if !unsafe { fork::register(space.ledger[0].raw()) } {
            return Err(IdError::OutOfMemory);
        }
        Ok(space)
    }

    /// Takes the identifier that the rule says is next.
    ///
    /// Constant time but for the search in the map, once for each batch of up to 64 identifiers.
    ///
    /// ```
    /// # use larder::ids::{IdError, IdSpace, rule::Any};
    /// let tags = IdSpace::new(0u8..2, Any)?;
    /// assert_ne!(tags.alloc()?, tags.alloc()?);
    /// assert_eq!(tags.alloc(), Err(IdError::Full { allocated: 2 }));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::Full`] when at some moment of the call none was free, [`IdError::Resting`] when all free ones rested,
    /// [`IdError::OutOfMemory`].
    #[inline]
    pub fn alloc(&self) -> Result<T, IdError> {
        if let Some(front) = self.front.get()
            && let Some(at) = front.ready.try_get()
            && front.states.enter(at)
        {
            return Ok(self.id(at as u64));
        }
        self.alloc_slow()
    }

    /// Gives an identifier back.
    ///
    /// ```
    /// # use larder::ids::{IdError, IdSpace, rule::Any};
    /// let tags = IdSpace::new(0u16..4096, Any)?;
    /// let id = tags.alloc()?;
    /// tags.free(id)?;
    /// assert_eq!(tags.free(id), Err(IdError::NotAllocated { id: id.into() }));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::OutOfRange`], and [`IdError::NotAllocated`] for one that was freed before, be it by another thread at
    /// the same moment. [`IdError::OutOfMemory`]: it stays allocated.
    #[inline]
    pub fn free(&self, id: T) -> Result<(), IdError> {
        let at = self.offset(id)?;
        let Some(front) = self.front.get() else {
            return self.free_exact(at);
        };
        // The range has no more offsets than cells, and they fit a word.
        let cell = at as usize;
        if !front.states.leave(cell, front.vacated) {
            return Err(IdError::NotAllocated { id: id.to_u64() });
        }
        if front.gate.is_down() && (front.in_place() || front.returns().try_put(cell)) {
            return Ok(());
        }
        self.free_slow(front, cell)
    }

    /// The range that identifiers are taken from.
    ///
    /// ```
    /// # use larder::ids::{IdRange, IdSpace, rule::Any};
    /// assert_eq!(IdSpace::new(0u16..4096, Any)?.range(), IdRange::new(0, 4095)?);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn range(&self) -> IdRange {
        self.range
    }

    /// The lock, after what a child of a fork must put right.
    fn lock(&self) -> Guard<'_, Ledger<R::Order>> {
        let mut ledger = self.ledger[0].lock();
        if ledger.generation != fork::generation() {
            self.after_fork(&mut ledger);
        }
        ledger
    }

    /// In the child the threads that waited or held the gate up are gone.
    #[cold]
    fn after_fork(&self, ledger: &mut Ledger<R::Order>) {
        ledger.generation = fork::generation();
        ledger.holders = 0;
        ledger.forked = true;
        for (_, at) in ledger.queue.forget() {
            if let Some(front) = self.front.get() {
                front.states.end_leaving(at as usize, gate::FREE);
            }
            self.give_back(ledger, at);
        }
    }

    /// Whether enough identifiers were taken from the map that the part without a lock pays.
    fn is_due(&self, ledger: &Ledger<R::Order>) -> bool {
        self.fronted && ledger.early >= EARLY && ledger.queue.is_empty()
    }

    /// Makes the part that works without a lock once enough identifiers were taken from the map. Whether there is one
    /// now. Under the lock: a thread that frees looks for the front there, and no fork comes in the middle.
    fn open(&self, ledger: &mut Ledger<R::Order>) -> bool {
        if !self.is_due(ledger) {
            return false;
        }
        // What fails now is tried again after as many more; the map serves on.
        ledger.early = 0;
        let shape = match R::SHAPE {
            Shape::InPlace if !self.marks.is_empty() => Shape::InOrder,
            shape => shape,
        };
        let Ok(front) = Front::new(&self.config, shape, ledger.last as usize + 1) else {
            return false;
        };
        let mut from = Some(0);
        while let Some(at) = from.and_then(|from| ledger.order.next_taken(from)) {
            front.states.touch(at);
            front.states.enter(at as usize);
            from = (at < ledger.last).then_some(at + 1);
        }
        // No other thread sets it: the lock is held.
        self.front.set(front).is_ok()
    }

    /// The lock of a space without cells; `None` where they were made meanwhile: then they decide, for what the map calls taken
    /// may lie in a magazine.
    fn lock_exact(&self) -> Option<Guard<'_, Ledger<R::Order>>> {
        let ledger = self.lock();
        self.front.get().is_none().then_some(ledger)
    }

    /// Looks at the cells, or at the map as long as there are none.
    fn look<V>(
        &self,
        at_cells: impl FnOnce(&Front) -> V,
        at_map: impl FnOnce(&Ledger<R::Order>) -> V,
    ) -> V {
        loop {
            if let Some(front) = self.front.get() {
                return at_cells(front);
            }
            if let Some(ledger) = self.lock_exact() {
                return at_map(&ledger);
            }
        }
    }

    #[inline]
    fn id(&self, at: u64) -> T {
        T::from_u64(self.range.first() + at)
    }

    #[inline]
    fn offset(&self, id: T) -> Result<u64, IdError> {
        self.range.offset(id.to_u64())
    }
}

impl<R: Rule<Order: Send>, T: Id> Drop for IdSpace<R, T> {
    fn drop(&mut self) {
        #[cfg(not(shuttle))]
        fork::unregister(self.ledger[0].raw());
    }
}

impl<R: Rule<Order: Send>, T: Id> fmt::Debug for IdSpace<R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdSpace")
            .field("range", &self.range)
            .field("shape", &R::SHAPE)
            .field("stats", &self.stats())
            .finish()
    }
}
