//! The supplier of pages: one large reservation, populated and given back in clusters.
//!
//! The lock guards bookkeeping only. A thread takes pages out of the account before it makes a system call for them, and
//! brings them back afterwards, so no thread waits for another one's system call. The exception is making addresses
//! accessible, once for every 64 MiB.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

use super::beside::Beside;
use super::block::BLOCK_PAGES;
use super::error::PoolError;
use super::moves::{Moves, Patience};
use super::round;
use super::space::{Age, Grid, NoRun, Space, Taken};
use crate::magazine::Supply;
use crate::os::lock::order::{Rank, Ranked};
use crate::os::lock::{Lock, RawLock};
use crate::os::{Decommit, OsError, Span, System, coarse_now, fork, page_size, usable_cpus};

#[path = "ahead.rs"]
mod ahead;
#[path = "give_back.rs"]
mod give_back;
#[path = "spans.rs"]
mod spans;

/// Addresses are made accessible in steps, because each step is a system call.
const COMMIT_STEP: usize = 64 << 20;

/// What the slow paths count.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) fetches: AtomicU64,
    pub(super) commits: AtomicU64,
    pub(super) populates: AtomicU64,
    pub(super) decommits: AtomicU64,
    pub(super) populated_pages: AtomicU64,
    pub(super) released_pages: AtomicU64,
    pub(super) fault_ahead_pages: AtomicU64,
}

impl Counters {
    fn add(counter: &AtomicU64, n: usize) {
        counter.fetch_add(n as u64, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct State {
    space: Space,
    /// Bytes from the start of the reservation that are accessible.
    committed: usize,
    /// Pages that came back since the last [`take_homed`](Clusters::take_homed).
    homed: usize,
    moves: Moves,
    /// Block where the next look for idle pages of used blocks begins.
    looked: usize,
}

impl Ranked for State {
    const RANK: Rank = Rank::PoolPages;
}

#[derive(Debug)]
pub(super) struct Clusters {
    system: Arc<dyn System>,
    span: Span,
    page: usize,
    state: Lock<State>,
    /// The pool is closed, and pages that come back are counted; see `inner`. Changes under the lock.
    settled: AtomicBool,
    cluster_pages: AtomicUsize,
    limit_pages: AtomicUsize,
    populate: bool,
    /// How idle blocks go back to the kernel; `None` keeps them.
    give_back: Option<Decommit>,
    /// Idle pages of used blocks go, too.
    in_part: bool,
    /// What goes back with the pages.
    beside: Option<Beside>,
    /// The fork generation that has the pages, where its children do not.
    only_in: Option<u32>,
    pub(super) counters: Counters,
}

/// What [`Clusters::new`] needs to know.
#[derive(Debug)]
pub(super) struct ClustersConfig {
    pub(super) system: Arc<dyn System>,
    /// An own reservation; accessible already when `committed`.
    pub(super) span: Span,
    pub(super) committed: bool,
    pub(super) cluster_pages: usize,
    pub(super) limit_pages: usize,
    pub(super) populate: bool,
    pub(super) give_back: Option<Decommit>,
    /// Whether less than a block may go back.
    pub(super) in_part: bool,
    /// Bytes beside each page, that go with it and that stay.
    pub(super) beside: Option<(usize, usize)>,
    /// The child of a fork does not have the pages.
    pub(super) shared: bool,
}

impl Clusters {
    /// On error the reservation is returned to the system.
    pub(super) fn new(config: ClustersConfig) -> Result<Self, OsError> {
        let page = page_size();
        let pages = config.span.len / page;
        let made = Space::new(&config.system, pages).and_then(|space| {
            let beside = config
                .beside
                .map(|bytes| Beside::new(&config.system, pages, bytes));
            Ok((space, beside.transpose()?))
        });
        match made {
            Ok((space, beside)) => Ok(Self {
                system: config.system,
                span: config.span,
                page,
                state: Lock::new(State {
                    space,
                    committed: if config.committed { config.span.len } else { 0 },
                    homed: 0,
                    moves: Moves::default(),
                    looked: 0,
                }),
                settled: AtomicBool::new(false),
                cluster_pages: AtomicUsize::new(config.cluster_pages),
                limit_pages: AtomicUsize::new(config.limit_pages),
                populate: config.populate,
                give_back: config.give_back,
                in_part: config.in_part,
                beside,
                only_in: config.shared.then(fork::generation),
                counters: Counters::default(),
            }),
            Err(error) => {
                // SAFETY: the reservation is ours and no other code knows it.
                let _ = unsafe { config.system.release(config.span) };
                Err(error)
            }
        }
    }

    pub(super) fn raw_lock(&self) -> &RawLock {
        self.state.raw()
    }

    pub(super) fn cluster_pages(&self) -> usize {
        self.cluster_pages.load(Ordering::Relaxed)
    }

    pub(super) fn set_cluster_pages(&self, pages: usize) {
        self.cluster_pages.store(pages, Ordering::Relaxed);
    }

    pub(super) fn limit_pages(&self) -> usize {
        self.limit_pages.load(Ordering::Relaxed)
    }

    pub(super) fn set_limit_pages(&self, pages: usize) {
        self.limit_pages.store(pages, Ordering::Relaxed);
    }

    pub(super) fn page_size(&self) -> usize {
        self.page
    }

    /// Whether an address lies in the reservation.
    pub(super) fn contains(&self, addr: usize) -> bool {
        addr.wrapping_sub(self.span.addr()) < self.span.len
    }

    /// Pages backed, and pages out: in stock, in use or being worked on.
    pub(super) fn pages(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.space.resident(), state.space.out())
    }

    /// Begins to count the pages that come back. `f` gets the number that is still out, before any of them is counted.
    pub(super) fn settle(&self, f: impl FnOnce(usize)) {
        let state = self.state.lock();
        self.settled.store(true, Ordering::Release);
        f(state.space.out());
    }

    /// Number of pages that came back since the last call; 0 before [`settle`](Self::settle).
    pub(super) fn take_homed(&self) -> usize {
        // Set under the lock: a thread that brought a page back afterwards, under the same lock, sees it.
        if !self.settled.load(Ordering::Acquire) {
            return 0;
        }
        core::mem::take(&mut self.state.lock().homed)
    }

    fn count_home(&self, state: &mut State, n: usize) {
        if self.settled.load(Ordering::Relaxed) {
            state.homed += n;
        }
    }

    /// Address of a page.
    pub(super) fn addr(&self, page: usize) -> usize {
        self.span.addr() + page * self.page
    }

    fn number(&self, addr: usize) -> usize {
        (addr - self.span.addr()) / self.page
    }

    fn span_of(&self, pages: &Range<usize>) -> Span {
        self.span
            .part(pages.start * self.page, pages.len() * self.page)
    }

    /// Takes `n` neighbouring pages: the first page's number, and whether all are zero.
    pub(super) fn take_run(&self, n: usize) -> Result<Taken, PoolError> {
        let taken = self.find_run(n, self.page)?;
        if !taken.resident {
            self.back(&taken, true)?;
        }
        Ok(taken)
    }

    /// Takes `n` neighbouring pages out, of which some may have to be backed, from a multiple of `align` bytes on, a power of two.
    fn find_run(&self, n: usize, align: usize) -> Result<Taken, PoolError> {
        let grid = match align <= self.page {
            true => Grid::ALL,
            false => Grid {
                first: (self.span.addr().wrapping_neg() & (align - 1)) / self.page,
                step: align / self.page,
            },
        };
        self.patiently(|state| {
            let room = self.limit_pages().saturating_sub(state.space.resident());
            state
                .space
                .take_run(n, grid, room)
                .map_err(|why| match why {
                    NoRun::Place => self.exhausted(n),
                    NoRun::Room => self.limit(n),
                })
        })
    }

    /// Records, until the value is dropped, that this thread has pages in hand that it will bring back.
    pub(super) fn moving(&self) -> Moving<'_> {
        self.state.lock().moves.begin();
        Moving(self)
    }

    /// Calls `f` with the account until it succeeds. Gives up when no other thread has pages in hand that will come back, or
    /// after a bounded wait for them.
    fn patiently<T>(
        &self,
        mut f: impl FnMut(&mut State) -> Result<T, PoolError>,
    ) -> Result<T, PoolError> {
        let mut patience = Patience::default();
        loop {
            let mut state = self.state.lock();
            match f(&mut state) {
                Err(_) if state.moves.under_way() => {
                    drop(state);
                    if !patience.wait() {
                        return f(&mut self.state.lock());
                    }
                }
                result => return result,
            }
        }
    }

    /// Brings a run back.
    pub(super) fn put_run(&self, addr: usize, n: usize) {
        let first = self.number(addr);
        let mut state = self.state.lock();
        self.count_home(&mut state, n);
        state.space.put(first..first + n, false, coarse_now());
    }

    /// Fills `rounds` with pages that `take` finds, and says how many.
    fn take_rounds(
        &self,
        state: &mut State,
        rounds: &mut [usize],
        take: impl FnOnce(&mut Space, usize, &mut dyn FnMut(usize, bool)) -> usize,
    ) -> usize {
        let mut out = rounds.iter_mut();
        take(&mut state.space, out.len(), &mut |page, zero| {
            if let Some(slot) = out.next() {
                *slot = round::pack(self.addr(page), zero);
            }
        })
    }

    /// Returns the reservation to the system.
    ///
    /// # Safety
    /// No page is in any caller's hands.
    pub(super) unsafe fn release_all(&self) {
        if self.is_here() {
            // SAFETY: the span is the whole reservation; the caller's promise. A refusal leaks addresses.
            let _ = unsafe { self.system.release(self.span) };
        }
    }

    /// Whether this process has the pages. What the child of a fork has mapped in place of shared ones is its own.
    fn is_here(&self) -> bool {
        self.only_in
            .is_none_or(|generation| generation == fork::generation())
    }

    /// Pages that a fetch of `wanted` backs: a cluster. When as many threads as there are CPUs have pages in hand already,
    /// some of them are descheduled, and the pages that they will bring back are enough for the next ones. So the next fetch
    /// backs only what it needs; otherwise there would be as many clusters as threads.
    fn cluster_for(&self, state: &State, wanted: usize) -> usize {
        if state.moves.at_least(usable_cpus()) {
            wanted
        } else {
            self.cluster_pages()
        }
    }

    /// Takes pages that have to be backed, `least` neighbours if the limit and the reservation have them. They count as
    /// moving: a thread that takes a cluster keeps only a part of it.
    fn take_cold(&self, state: &mut State, least: usize, most: usize) -> Result<Taken, PoolError> {
        let room = self.limit_pages().saturating_sub(state.space.resident());
        if room == 0 {
            return Err(self.limit(1));
        }
        let taken = state.space.take_cold_run(least, most.min(room));
        if taken.is_some() {
            state.moves.begin();
        }
        taken.ok_or_else(|| self.exhausted(1))
    }

    /// Makes pages accessible that were taken out, and populates them if that is wanted and the pool does so. On error
    /// they are back in the account.
    fn back(&self, taken: &Taken, populate: bool) -> Result<(), PoolError> {
        let result = self
            .commit_up_to(taken.pages.end * self.page)
            .and_then(|()| {
                if !(populate && self.populate) {
                    return Ok(());
                }
                Counters::add(&self.counters.populates, 1);
                Counters::add(&self.counters.populated_pages, taken.pages.len());
                // SAFETY: the pages are committed and in this thread's hands alone; populating keeps their contents.
                unsafe { self.system.populate(self.span_of(&taken.pages)) }
            });
        result.map_err(|error| {
            // A run may mix backed and cold pages; what is backed already is not given back here, but the account
            // calls it cold, so that the next taker populates it again, which is harmless. Its contents are as before.
            self.state
                .lock()
                .space
                .put_cold(taken.pages.clone(), taken.zero, coarse_now());
            PoolError::System(error)
        })
    }

    /// Makes the reservation accessible up to `end` bytes. Under the lock, so that steps do not overtake one another.
    fn commit_up_to(&self, end: usize) -> Result<(), OsError> {
        let mut state = self.state.lock();
        if end <= state.committed {
            return Ok(());
        }
        let mut commit = |upper: usize| {
            Counters::add(&self.counters.commits, 1);
            let span = self.span.part(state.committed, upper - state.committed);
            // SAFETY: the range was never accessible, so nothing uses it.
            unsafe { self.system.commit(span)? };
            state.committed = upper;
            Ok(())
        };
        // A machine that counts every accessible byte (vm.overcommit_memory=2) may refuse the step and grant the need.
        let step = end.next_multiple_of(COMMIT_STEP).min(self.span.len);
        commit(step).or_else(|_: OsError| commit(end))
    }

    fn limit(&self, pages: usize) -> PoolError {
        PoolError::Limit {
            pages,
            limit: self.limit_pages().saturating_mul(self.page),
        }
    }

    fn exhausted(&self, pages: usize) -> PoolError {
        PoolError::Exhausted {
            pages,
            reserved: self.span.len,
        }
    }
}

/// Where a fetch finds pages.
enum Found {
    /// So many are ready and taken.
    Ready(usize),
    /// These have to be backed.
    Cold(Taken),
}

/// While it lives, this thread has pages in hand that it will bring back.
#[derive(Debug)]
pub(super) struct Moving<'a>(&'a Clusters);

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        self.0.state.lock().moves.end();
    }
}

impl Supply for Clusters {
    type Error = PoolError;

    fn fetch(&self, rounds: &mut [usize]) -> Result<usize, PoolError> {
        Counters::add(&self.counters.fetches, 1);
        let found =
            self.patiently(
                |state| match self.take_rounds(state, rounds, Space::take_ready) {
                    0 => {
                        let most = self.cluster_for(state, rounds.len());
                        self.take_cold(state, 1, most).map(Found::Cold)
                    }
                    n => Ok(Found::Ready(n)),
                },
            )?;
        let taken = match found {
            Found::Ready(n) => return Ok(n),
            Found::Cold(taken) => taken,
        };
        let _moving = Moving(self);
        self.back(&taken, true)?;
        let Taken { pages, zero, .. } = taken;
        let n = pages.len().min(rounds.len());
        for (slot, page) in rounds.iter_mut().zip(pages.clone()) {
            *slot = round::pack(self.addr(page), zero);
        }
        if n < pages.len() {
            self.state
                .lock()
                .space
                .put(pages.start + n..pages.end, zero, coarse_now());
        }
        Ok(n)
    }

    fn accept(&self, rounds: &[usize]) {
        let now = coarse_now();
        let mut state = self.state.lock();
        self.count_home(&mut state, rounds.len());
        for &round in rounds {
            let page = self.number(round::addr(round));
            state.space.put(page..page + 1, round::is_zero(round), now);
        }
    }
}
