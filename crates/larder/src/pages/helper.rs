//! The helper thread: upkeep, a pre-zeroed stock and pages populated ahead of need.
//!
//! None of it is free work: it runs at idle priority within a CPU budget, and its CPU time, the bytes that it zeroed
//! and the pages that it populated are in the pool's stats. Whether it pays is the lab's question (`larder measure
//! zero-fill`), so everything but the upkeep is off unless asked for.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io;
use std::time::Instant;

use super::inner::PoolRef;
use super::round;
use crate::os::{HelperThread, lower_priority, thread_cpu_time};

/// Pages that are zeroed before the helper looks at its budget again.
const ZERO_BATCH: usize = 32;

/// Pages that are populated with one call: steps of 16 did not keep up with a toucher, 512 did (pages.md 6.3).
const POPULATE_STEP: usize = 512;

/// What the helper does.
///
/// ```
/// use larder::pages::{HelperConfig, PagePool};
/// let pool = PagePool::new()?;
/// pool.start_helper(HelperConfig { prezero_pages: 128, ..HelperConfig::default() })?;
/// let page = pool.get_zeroed_sparse()?;
/// assert!(page.iter().all(|&b| b == 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct HelperConfig {
    /// High-water mark of the pre-zeroed stock in pages; 0 is off. Zeroing starts below half of it, with pages of blocks in
    /// which no page is in use, never from the warm stock. At most half of the L2 cache is sensible.
    pub prezero_pages: usize,
    /// Pages that are kept populated ahead of need; 0 is off.
    pub ahead_pages: usize,
    /// Share of one CPU that the helper may use, above 0 and at most 1.
    pub cpu_budget: f64,
    /// How often it looks when no get wakes it.
    pub interval: Duration,
}

impl Default for HelperConfig {
    /// Upkeep only, every 100 ms, within 1 % of a CPU (the share that Go's scavenger takes).
    fn default() -> Self {
        Self {
            prezero_pages: 0,
            ahead_pages: 0,
            cpu_budget: 0.01,
            interval: Duration::from_millis(100),
        }
    }
}

/// Starts the thread, in place of a former one.
pub(super) fn start(pool: PoolRef, config: HelperConfig) -> io::Result<()> {
    if !(config.cpu_budget > 0.0 && config.cpu_budget <= 1.0) {
        // Without the number: its text would bring the printing of numbers with fractions into each program, and the malloc.
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "helper: the CPU budget must be above 0 and at most 1",
        ));
    }
    pool.stop_helper();
    let mut worker = Worker {
        pool,
        config,
        maintained: Instant::now(),
    };
    let new = HelperThread::start("larder-helper", move |stop| worker.run(stop))?;
    let another = {
        let mut helper = pool.helper.lock();
        pool.helper_awake.store(1, Ordering::Relaxed);
        helper.replace(new)
    };
    // Two starts at once: the pool keeps one thread, and the other would outlive it.
    if let Some(another) = another {
        another.end();
    }
    Ok(())
}

/// Sleeps; a wake-up ends it early only when there is no debt to work off.
fn rest(pause: Duration, in_debt: bool, stop: &AtomicBool) {
    let begin = Instant::now();
    loop {
        let left = pause.saturating_sub(begin.elapsed());
        if left.is_zero() || stop.load(Ordering::Relaxed) {
            return;
        }
        std::thread::park_timeout(left);
        if !in_debt {
            return;
        }
    }
}

struct Worker {
    pool: PoolRef,
    config: HelperConfig,
    maintained: Instant,
}

impl Worker {
    fn run(&mut self, stop: &AtomicBool) {
        lower_priority();
        let begin = Instant::now();
        let cpu_begin = thread_cpu_time();
        while !stop.load(Ordering::Relaxed) {
            let worked = self.step(stop);
            let used = thread_cpu_time().saturating_sub(cpu_begin);
            self.pool.helper_cpu_ns.store(
                u64::try_from(used.as_nanos()).unwrap_or(u64::MAX),
                Ordering::Relaxed,
            );
            // Sleep until the time used is within the budget of the time passed; without work, a whole interval.
            // A tiny budget may ask for a longer pause than a `Duration` holds.
            let earned = Duration::try_from_secs_f64(used.as_secs_f64() / self.config.cpu_budget)
                .unwrap_or(Duration::MAX);
            let owed = earned.saturating_sub(begin.elapsed());
            let pause = if worked {
                owed
            } else {
                owed.max(self.config.interval)
            };
            rest(pause, !owed.is_zero(), stop);
        }
    }

    /// Does one piece of work; false when there is none.
    fn step(&mut self, stop: &AtomicBool) -> bool {
        if self.maintained.elapsed().as_nanos() >= u128::from(self.pool.decay_ns) {
            self.maintained = Instant::now();
            self.pool.maintain();
        }
        self.zero_some(stop) | self.populate_some()
    }

    fn zero_some(&self, stop: &AtomicBool) -> bool {
        let high = self.config.prezero_pages;
        let stock = self.pool.zeroed_in_depot();
        if high == 0 || stock > high / 2 {
            return false;
        }
        let mut done = 0;
        while stock + done < high && !stop.load(Ordering::Relaxed) {
            let mut rounds = [0; ZERO_BATCH];
            let want = ZERO_BATCH.min(high - stock - done);
            let _moving = self.pool.clusters.moving();
            let n = self.pool.clusters.take_unused(&mut rounds[..want]);
            if n == 0 {
                break;
            }
            let size = self.pool.clusters.page_size();
            let mut bytes = 0;
            for round in rounds[..n]
                .iter_mut()
                .filter(|round| !round::is_zero(**round))
            {
                // SAFETY: the page was taken out of the account and is in no other hands.
                unsafe { self.pool.routine().zero(round::page(*round).as_ptr(), size) };
                *round = round::pack(round::addr(*round), true);
                bytes += size as u64;
            }
            self.pool
                .zeroed_by_helper
                .fetch_add(bytes, Ordering::Relaxed);
            self.pool.stock_up_zeroed(&rounds[..n]);
            done += n;
        }
        done > 0
    }

    fn populate_some(&self) -> bool {
        let ahead = self.config.ahead_pages;
        if ahead == 0 || self.pool.clusters.ready_up_to(ahead) > ahead / 2 {
            return false;
        }
        // At the limit or without memory there is nothing to do ahead. A get that needs a page returns the error.
        self.pool
            .clusters
            .fault_ahead(1, POPULATE_STEP.min(ahead))
            .is_ok()
    }
}
