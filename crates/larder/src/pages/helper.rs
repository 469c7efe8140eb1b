//! The helper thread: upkeep, a pre-zeroed stock and pages populated ahead of need.
//!
//! None of it is free work: it runs at idle priority within a CPU budget, and its CPU time, the bytes that it zeroed
//! and the pages that it populated are in the pool's stats. Whether it pays is the lab's question (`larder measure
//! zero-fill`), so everything but the upkeep is off unless asked for.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io;
use std::sync::Arc;
use std::thread::{JoinHandle, Thread};
use std::time::Instant;

use super::inner::PoolRef;
use super::round;
use crate::os::lock::order::sleeps;
use crate::os::{fork, lower_priority, thread_cpu_time};

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

/// The thread, as the pool holds it.
#[derive(Debug)]
pub(super) struct HelperThread {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
    generation: u32,
}

impl HelperThread {
    pub(super) fn start(pool: PoolRef, config: HelperConfig) -> io::Result<()> {
        if !(config.cpu_budget > 0.0 && config.cpu_budget <= 1.0) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "helper: a CPU budget of {} is not above 0 and at most 1",
                    config.cpu_budget
                ),
            ));
        }
        Self::stop(pool);
        let stop = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            pool,
            config,
            stop: stop.clone(),
            maintained: Instant::now(),
        };
        let thread = std::thread::Builder::new()
            .name("larder-helper".to_owned())
            .spawn(move || worker.run())?;
        let new = Self {
            stop,
            thread,
            generation: fork::generation(),
        };
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

    pub(super) fn stop(pool: PoolRef) {
        let helper = {
            let mut helper = pool.helper.lock();
            pool.helper_awake.store(0, Ordering::Relaxed);
            helper.take()
        };
        if let Some(helper) = helper {
            helper.end();
        }
    }

    /// Tells the thread to stop, and waits for it.
    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake();
        // In the child of a fork the thread does not exist, and waiting for it would never end.
        if self.generation == fork::generation() {
            sleeps("a helper");
            let _ = self.thread.join();
        } else {
            core::mem::forget(self.thread);
        }
    }

    pub(super) fn wake(&self) {
        let thread: &Thread = self.thread.thread();
        thread.unpark();
    }
}

struct Worker {
    pool: PoolRef,
    config: HelperConfig,
    stop: Arc<AtomicBool>,
    maintained: Instant,
}

impl Worker {
    fn run(mut self) {
        lower_priority();
        let begin = Instant::now();
        let cpu_begin = thread_cpu_time();
        while !self.stop.load(Ordering::Relaxed) {
            let worked = self.step();
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
            self.rest(pause, !owed.is_zero());
        }
    }

    /// Sleeps; a wake-up ends it early only when there is no debt to work off.
    fn rest(&self, pause: Duration, in_debt: bool) {
        let begin = Instant::now();
        loop {
            let left = pause.saturating_sub(begin.elapsed());
            if left.is_zero() || self.stop.load(Ordering::Relaxed) {
                return;
            }
            std::thread::park_timeout(left);
            if !in_debt {
                return;
            }
        }
    }

    /// Does one piece of work; false when there is none.
    fn step(&mut self) -> bool {
        if self.maintained.elapsed().as_nanos() >= u128::from(self.pool.decay_ns) {
            self.maintained = Instant::now();
            self.pool.maintain();
        }
        self.zero_some() | self.populate_some()
    }

    fn zero_some(&self) -> bool {
        let high = self.config.prezero_pages;
        let stock = self.pool.zeroed_in_depot();
        if high == 0 || stock > high / 2 {
            return false;
        }
        let mut done = 0;
        while stock + done < high && !self.stop.load(Ordering::Relaxed) {
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
