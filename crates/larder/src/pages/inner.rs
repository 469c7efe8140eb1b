//! What pools, handles and buffers share, and how long it lives.
//!
//! A buffer carries a pointer to this and no count, since counting would cost more than the whole get. While the pool
//! has an owner (itself or a handle), that is enough. When the last owner goes, the stocks are closed: from then on every
//! put takes the slow path, and `gate` counts what is still to come: one for every page that is out, one for every slow put
//! under way. The thread that brings it to zero frees everything.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::cluster_size::ClusterSize;
use super::clusters::{Clusters, ClustersConfig};
use super::error::PoolError;
use super::round;
use super::space::Age;
use super::stats::PoolStats;
use crate::magazine::{Magazines, Stock, StockConfig, Supply};
use crate::os::decided::Decided;
use crate::os::lock::Lock;
use crate::os::lock::order::{Rank, Ranked};
use crate::os::zero::{Routine, Zeroing};
use crate::os::{CLOCK_TICK, Due, HelperThread, OsError, coarse_now, fork};

/// Counters that threads add to without an atomic exchange, in separate cache lines by thread.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe {
    zeroed: AtomicU64,
    spared: AtomicU64,
}

const STRIPES: usize = 16;

/// The pre-zeroed stock has no supplier: the helper stocks it up, and when it is empty it is empty.
struct NoSupply<'a>(&'a Clusters);

impl Supply for NoSupply<'_> {
    type Error = ();
    fn fetch(&self, _: &mut [usize]) -> Result<usize, ()> {
        Err(())
    }
    fn accept(&self, rounds: &[usize]) {
        self.0.accept(rounds);
    }
}

impl Ranked for Option<HelperThread> {
    const RANK: Rank = Rank::PoolHelper;
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) stock: Stock,
    pub(super) zeroed: Stock,
    pub(super) clusters: Clusters,
    /// What [`ClusterSize::AUTO`] means to this pool.
    pub(super) measured: ClusterSize,
    /// Chosen when the first page is zeroed: measuring costs more than making the whole pool.
    routine: Decided<Routine>,
    pub(super) decay_ns: u64,
    pub(super) helper: Lock<Option<HelperThread>>,
    pub(super) helper_cpu_ns: AtomicU64,
    pub(super) zeroed_by_helper: AtomicU64,
    /// Set while the helper runs, so that gets know that there is a thread to wake.
    pub(super) helper_awake: AtomicU32,
    pub(super) descriptor: Option<OwnedFd>,
    /// When the next upkeep is due.
    due: Due,
    owners: AtomicUsize,
    gate: AtomicUsize,
    stripes: [Stripe; STRIPES],
}

/// Configuration that the builder has checked.
pub(super) struct InnerConfig {
    /// Of the memfd that the pages are in.
    pub(super) descriptor: Option<OwnedFd>,
    pub(super) clusters: ClustersConfig,
    pub(super) measured: ClusterSize,
    pub(super) stock: StockConfig,
    pub(super) routine: Option<Routine>,
    pub(super) decay_ns: u64,
}

/// A pointer to [`Inner`] that its owners and the buffers copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PoolRef(NonNull<Inner>);

// SAFETY: everything in `Inner` may be used from all threads at once (its parts are `Sync`), and how long it lives is
// decided by counts, not by a thread.
unsafe impl Send for PoolRef {}
// SAFETY: as above.
unsafe impl Sync for PoolRef {}

const fn assert_sync<T: Sync>() {}
const _: () = assert_sync::<Inner>();

impl PoolRef {
    /// Makes the shared part, with one owner.
    pub(super) fn new(config: InnerConfig) -> Result<Self, OsError> {
        let system = Arc::clone(&config.clusters.system);
        let clusters = Clusters::new(config.clusters)?;
        let made = (|| {
            let magazines = Arc::new(Magazines::new(system.clone()));
            let stock = Stock::sharing(magazines.clone(), system.clone(), config.stock.clone());
            let zeroed = Stock::sharing(magazines, system, config.stock);
            let layout = std::alloc::Layout::new::<Inner>();
            // SAFETY: the layout has a size.
            let at = NonNull::new(unsafe { std::alloc::alloc(layout) }.cast::<Inner>()).ok_or(
                OsError::new("alloc(pool)", layout.size(), rustix::io::Errno::NOMEM),
            )?;
            Ok((stock, zeroed, at))
        })();
        let (stock, zeroed, at) = match made {
            Ok(parts) => parts,
            Err(error) => {
                // SAFETY: no page was ever handed out.
                unsafe { clusters.release_all() };
                return Err(error);
            }
        };
        let inner = Inner {
            stock,
            zeroed,
            clusters,
            measured: config.measured,
            routine: config.routine.map_or_else(Decided::new, Decided::of),
            decay_ns: config.decay_ns,
            helper: Lock::new(None),
            helper_cpu_ns: AtomicU64::new(0),
            zeroed_by_helper: AtomicU64::new(0),
            helper_awake: AtomicU32::new(0),
            descriptor: config.descriptor,
            due: Due::after(config.decay_ns),
            owners: AtomicUsize::new(1),
            gate: AtomicUsize::new(1),
            stripes: Default::default(),
        };
        // SAFETY: fresh memory of the right layout.
        unsafe { at.as_ptr().write(inner) };
        let this = Self(at);
        // Without memory to remember them, a fork while another thread holds a lock would leave the child's pool stuck;
        // so refuse.
        // SAFETY: `inner` stays where it is until `free`, which unregisters the locks.
        let registered = unsafe {
            fork::register(this.clusters.raw_lock()) && fork::register(this.helper.raw())
        };
        if registered {
            Ok(this)
        } else {
            // SAFETY: nothing was handed out.
            unsafe { this.free() };
            Err(OsError::new("fork handler", 0, rustix::io::Errno::NOMEM))
        }
    }

    /// Adds an owner.
    pub(super) fn own(self) -> Self {
        self.owners.fetch_add(1, Ordering::Relaxed);
        self
    }

    /// Removes an owner; the last one closes the pool.
    pub(super) fn disown(self) {
        if self.owners.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        self.stop_helper();
        self.zeroed.close(&NoSupply(&self.clusters));
        self.stock.close(&self.clusters);
        // Every page that is out now comes back through a slow put, which takes it off the gate.
        self.clusters.settle(|out| {
            self.gate.fetch_add(out, Ordering::Relaxed);
        });
        self.leave(1);
    }

    /// Takes `n` off the gate and frees everything when nothing is left to come. The last thing that a thread does
    /// with this pointer.
    fn leave(self, n: usize) {
        if self.gate.fetch_sub(n, Ordering::AcqRel) == n {
            // SAFETY: no owner, no page out, no slow put under way: this thread is the last.
            unsafe { self.free() };
        }
    }

    /// # Safety
    /// No other code uses the pointer, now or later, and no page is out.
    unsafe fn free(self) {
        fork::unregister(self.clusters.raw_lock());
        fork::unregister(self.helper.raw());
        // SAFETY: the caller's promise; `inner` was written in `new`.
        unsafe {
            self.clusters.release_all();
            core::ptr::drop_in_place(self.0.as_ptr());
            std::alloc::dealloc(self.0.as_ptr().cast(), std::alloc::Layout::new::<Inner>());
        }
    }

    /// Puts a page back.
    ///
    /// # Safety
    /// The page is this pool's, in the caller's hands alone, and given up. The pointer may be dangling afterwards.
    #[inline]
    pub(super) unsafe fn put(self, page: NonNull<u8>) {
        debug_assert!(self.clusters.contains(page.as_ptr() as usize));
        let round = round::pack(page.as_ptr() as usize, false);
        if !self.stock.try_put(round) {
            self.put_slow(|inner| inner.stock.put(round, &inner.clusters));
        }
    }

    /// Does a put that may be one of the last, under the gate.
    #[cold]
    pub(super) fn put_slow(self, f: impl FnOnce(&Inner)) {
        // The page in hand keeps the pool alive up to here: it is still out.
        self.gate.fetch_add(1, Ordering::Relaxed);
        f(&self);
        let homed = self.clusters.take_homed();
        self.leave(1 + homed);
    }
}

impl core::ops::Deref for PoolRef {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        // SAFETY: alive as long as an owner exists, a page is out or a slow put is under way; holders of the pointer
        // are one of these.
        unsafe { self.0.as_ref() }
    }
}

impl Inner {
    /// A round from the stock, or from the pre-zeroed one when there is no other page in the pool.
    #[inline]
    pub(super) fn get_round(&self) -> Result<usize, PoolError> {
        match self.stock.try_get() {
            Some(round) => Ok(round),
            None => self.get_slow(),
        }
    }

    /// Rounds for all of `out`, or as many as there are.
    pub(super) fn get_rounds(&self, out: &mut [usize]) -> Result<usize, PoolError> {
        self.upkeep_if_due(coarse_now());
        self.stock.get_many(out, &self.clusters).or_else(|_| {
            out[0] = self.get_slow()?;
            Ok(1)
        })
    }

    /// Rounds in the pre-zeroed stock's depot.
    pub(super) fn zeroed_in_depot(&self) -> usize {
        self.zeroed.stats().full_rounds
    }

    #[cold]
    fn get_slow(&self) -> Result<usize, PoolError> {
        self.upkeep_if_due(coarse_now());
        self.wake_helper();
        self.retry(|| self.stock.get(&self.clusters))
    }

    /// What zeroes a page.
    #[inline]
    pub(super) fn routine(&self) -> Routine {
        self.routine.get_or_decide(|| Zeroing::fastest().routine())
    }

    /// Zeroes a round's page unless it is known to be zero.
    #[inline]
    pub(super) fn zero(&self, round: usize) -> NonNull<u8> {
        let page = round::page(round);
        let size = self.clusters.page_size();
        let stripe = &self.stripes[crate::magazine::thread_number() % STRIPES];
        // Load and store instead of an exchange: a lost count now and then is cheaper than a locked instruction.
        let count =
            |c: &AtomicU64| c.store(c.load(Ordering::Relaxed) + size as u64, Ordering::Relaxed);
        if round::is_zero(round) {
            count(&stripe.spared);
            debug_assert!(
                // SAFETY: the page is in the caller's hands and has `size` bytes.
                unsafe { core::slice::from_raw_parts(page.as_ptr(), size) }
                    .iter()
                    .all(|&b| b == 0),
                "a page that is known to be zero is not"
            );
        } else {
            count(&stripe.zeroed);
            // SAFETY: the page is in the caller's hands; pages are aligned and long enough for every routine.
            unsafe { self.routine().zero(page.as_ptr(), size) };
        }
        page
    }

    /// Calls `get`, and again after a failure, with the pre-zeroed pages put back among the others: they are as good.
    pub(super) fn retry<T>(
        &self,
        mut get: impl FnMut() -> Result<T, PoolError>,
    ) -> Result<T, PoolError> {
        get().or_else(|error| {
            let moving = self.clusters.moving();
            self.zeroed.drain(&NoSupply(&self.clusters));
            drop(moving);
            get().map_err(|_| error)
        })
    }

    /// A round from the pre-zeroed stock.
    #[inline]
    pub(super) fn get_prezeroed(&self) -> Option<usize> {
        let round = self.zeroed.get_stocked();
        if round.is_none() {
            self.wake_helper();
        }
        round
    }

    /// Puts zeroed rounds into the pre-zeroed stock.
    pub(super) fn stock_up_zeroed(&self, rounds: &[usize]) {
        self.zeroed.stock_up(rounds, &NoSupply(&self.clusters));
    }

    /// Does what is due, and gives everything back that is not in use when the machine is short of memory. Returns bytes
    /// given back.
    pub(super) fn maintain(&self) -> usize {
        if crate::os::pressure::memory_some_avg10()
            .is_some_and(|percent| percent > PRESSURE_PERCENT)
        {
            return self.trim();
        }
        self.upkeep(coarse_now(), usize::MAX)
    }

    /// Ends an interval, and gives back what it did not need, about `most` pages. If there may be more, the next upkeep is due
    /// at once. Returns bytes given back.
    pub(super) fn upkeep(&self, now: u64, most: usize) -> usize {
        self.due.begin(now, self.decay_ns);
        let _moving = self.clusters.moving();
        self.stock.reap(usize::MAX, &self.clusters);
        self.zeroed.reap(usize::MAX, &NoSupply(&self.clusters));
        // What came just after a pass must not wait for a third one because the clock counts in ticks.
        let age = Age::of(self.decay_ns.saturating_sub(CLOCK_TICK), now);
        let pages = self.clusters.release_idle(age, most);
        if pages >= most {
            self.due.begin(now, 0);
        }
        pages * self.clusters.page_size()
    }

    /// Gives everything back that is not in use.
    pub(super) fn trim(&self) -> usize {
        let _moving = self.clusters.moving();
        self.stock.drain(&self.clusters);
        self.zeroed.drain(&NoSupply(&self.clusters));
        self.clusters.release_free(usize::MAX) * self.clusters.page_size()
    }

    /// The pool's upkeep, for gets that are slow anyway. It looks at the clock, not at the machine's memory: that takes
    /// system calls, and what follows has no bound.
    pub(super) fn upkeep_if_due(&self, now: u64) {
        if self.due.claim(now, self.decay_ns) {
            self.upkeep(now, UPKEEP_PAGES);
        }
    }

    /// Ends the helper thread if there is one, and waits for it.
    pub(super) fn stop_helper(&self) {
        let helper = {
            let mut helper = self.helper.lock();
            self.helper_awake.store(0, Ordering::Relaxed);
            helper.take()
        };
        if let Some(helper) = helper {
            helper.end();
        }
    }

    fn wake_helper(&self) {
        if self.helper_awake.load(Ordering::Relaxed) != 0
            && let Some(helper) = self.helper.try_lock()
            && let Some(thread) = &*helper
        {
            thread.wake();
        }
    }

    pub(super) fn stats(&self) -> PoolStats {
        let page = self.clusters.page_size();
        let (resident, out) = self.clusters.pages();
        let stock = self.stock.stats();
        let zeroed = self.zeroed.stats();
        let counters = &self.clusters.counters;
        let get = |c: &AtomicU64| c.load(Ordering::Relaxed);
        let sum = |f: fn(&Stripe) -> &AtomicU64| self.stripes.iter().map(|s| get(f(s))).sum();
        PoolStats {
            hits: stock.pops + zeroed.pops,
            misses: stock.misses,
            puts: stock.pushes,
            held_bytes: resident * page,
            out_bytes: out * page,
            limit_bytes: self.clusters.limit_pages().saturating_mul(page),
            commit_calls: get(&counters.commits),
            populate_calls: get(&counters.populates),
            decommit_calls: get(&counters.decommits),
            faults_avoided: get(&counters.populated_pages),
            released_bytes: get(&counters.released_pages) * page as u64,
            zeroed_by_caller_bytes: sum(|s| &s.zeroed),
            zeroing_avoided_bytes: sum(|s| &s.spared),
            zeroed_by_helper_bytes: get(&self.zeroed_by_helper),
            fault_ahead_bytes: get(&counters.fault_ahead_pages) * page as u64,
            helper_cpu_ns: get(&self.helper_cpu_ns),
            prezeroed_bytes: zeroed.full_rounds * page,
            magazine_pages: stock.rounds,
            magazines: stock.magazines,
        }
    }
}

/// Share of time with memory stalls from which on the pool gives everything back that it does not use.
const PRESSURE_PERCENT: f64 = 10.0;

/// Pages that one upkeep within a get gives back: 16 MiB, about a millisecond of system time. The next get goes on.
pub(super) const UPKEEP_PAGES: usize = 4096;
