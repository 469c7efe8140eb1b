//! larder's own pool in the places of the kernel's ways: blocks, large regions and the consumer's bill.

use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

use larder::pages::{ClusterSize, HelperConfig, PageBuf, PagePool};

use super::area::page_size;
use super::bill::{self, Use, WARM_UP};
use super::factors;
use super::tally::Tally;
use super::zeroing::BATCH;
use crate::contestants::timing::{Spent, Stopwatch, keep, resident_bytes, touch};
use crate::model::{Measures, Params};

/// A pool as it comes, whatever the user's environment says: the lab measures the defaults.
fn pool() -> io::Result<PagePool> {
    PagePool::builder()
        .ignore_environment()
        .build()
        .map_err(io::Error::other)
}

/// Blocks of pages from a pool, for [`cycle`](super::cycle); `ZEROED` says by which get.
pub(super) fn blocks<const ZEROED: bool>(
    pages: usize,
) -> io::Result<impl FnMut(bool) -> io::Result<()>> {
    let pool = pool()?;
    let mut block = Vec::with_capacity(pages);
    Ok(move |touched| {
        for i in 0..pages {
            let page = if ZEROED {
                pool.get_zeroed()
            } else {
                pool.get()
            };
            let mut page = page.map_err(io::Error::other)?;
            if touched {
                // SAFETY: a page buffer is a whole page, and its owner is here.
                unsafe { touch(page.as_mut_ptr(), i as u64 | 1) };
            } else {
                keep(page.as_ptr());
            }
            block.push(page);
        }
        block.clear();
        Ok(())
    })
}

/// A large region of single pages from a fresh pool, for [`region`](super::region).
pub(super) fn region(bytes: usize, huge: bool) -> io::Result<impl FnMut(Range<usize>)> {
    let pages = bytes / page_size();
    let mut builder = PagePool::builder().ignore_environment();
    if huge {
        let cluster = ClusterSize::pages(512).map_err(io::Error::other)?;
        builder = builder.huge_pages().cluster(cluster);
    }
    let pool = builder.build().map_err(io::Error::other)?;
    let mut all = Vec::with_capacity(pages);
    pool.get_many(&mut all, pages).map_err(io::Error::other)?;
    // The pages go back before the pool goes.
    let mut region = (all, pool);
    Ok(move |pages: Range<usize>| {
        let (all, _) = &mut region;
        for (i, page) in all[pages].iter_mut().enumerate() {
            // SAFETY: a page buffer is a whole page, and its owner is here.
            unsafe { touch(page.as_mut_ptr(), i as u64 | 1) };
        }
    })
}

/// How the consumer of the bill asks the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    /// `get`.
    Dirty,
    /// `get_zeroed`.
    Zeroed,
    /// `get_zeroed_sparse`, with a helper that zeroes ahead.
    Sparse,
}

impl Ask {
    /// All, with the contestant's name and what it is.
    pub(super) const ALL: [(Self, &'static str, &'static str); 3] = [
        (
            Self::Zeroed,
            "bill-pool",
            "PagePool get_zeroed: a warm page, zeroed when it is handed out",
        ),
        (
            Self::Sparse,
            "bill-pool-sparse",
            "PagePool get_zeroed_sparse with a helper that zeroes cold pages ahead",
        ),
        (
            Self::Dirty,
            "bill-pool-dirty",
            "PagePool get: a former owner's contents, no zeroing",
        ),
    ];
}

/// Pages that the helper keeps zeroed: what half of a small second-level cache holds.
const AHEAD: usize = 2 * BATCH;
/// Longest wait for the helper before a batch; then the pool zeroes by itself, as it would for any consumer.
const PATIENCE: Duration = Duration::from_millis(2);

/// Factors: `use`, `batches` of 64 pages.
pub(super) fn bill(ask: Ask, params: &Params) -> anyhow::Result<Measures> {
    let usage: Use = params.text("use")?.parse()?;
    let turns = factors::counted(params, "batches")? + WARM_UP;
    let before = resident_bytes();
    let pool = pool()?;
    if ask == Ask::Sparse {
        // The helper zeroes what lies in the clusters and was used before, never the warm stock.
        let mut cold = pool.get_run(turns * BATCH)?;
        cold.fill(0xA5);
        drop(cold);
        pool.start_helper(HelperConfig {
            prezero_pages: AHEAD,
            cpu_budget: 1.0,
            interval: Duration::from_micros(200),
            ..HelperConfig::default()
        })?;
    }
    let mut held = Vec::with_capacity(BATCH);
    let mut tally = Tally::new(BATCH);
    let helped = pool.stats();
    for turn in 0..turns {
        if ask == Ask::Sparse {
            await_helper(&pool);
        }
        let spent = batch(&pool, ask, usage, &mut held)?;
        if turn >= WARM_UP {
            tally.add(spent);
        }
        for page in &mut held {
            page.fill(0xA5);
        }
        pool.put_many(held.drain(..));
    }
    pool.stop_helper();
    let stats = pool.stats();
    let pages = (turns * BATCH) as f64;
    let helper = stats.helper_cpu_ns.saturating_sub(helped.helper_cpu_ns) as f64 / pages;
    let avoided = stats
        .zeroing_avoided_bytes
        .saturating_sub(helped.zeroing_avoided_bytes) as f64;
    let resident = resident_bytes().saturating_sub(before);
    Ok(bill::bill(&tally, helper, 0.0)
        .with("prezeroed_share", avoided / page_size() as f64 / pages)
        .with("held_bytes", resident as f64))
}

/// Gets and uses one batch; the buffers stay in `held`.
fn batch(pool: &PagePool, ask: Ask, usage: Use, held: &mut Vec<PageBuf>) -> io::Result<Spent> {
    let page = page_size();
    let watch = Stopwatch::start();
    for _ in 0..BATCH {
        let mut buffer = match ask {
            Ask::Dirty => pool.get(),
            Ask::Zeroed => pool.get_zeroed(),
            Ask::Sparse => pool.get_zeroed_sparse(),
        }
        .map_err(io::Error::other)?;
        // SAFETY: a page buffer is a whole aligned page, and its owner is here.
        unsafe { usage.of(buffer.as_mut_ptr(), page) };
        held.push(buffer);
    }
    Ok(watch.stop())
}

/// Waits until a batch is ready, or long enough.
fn await_helper(pool: &PagePool) {
    let until = Instant::now() + PATIENCE;
    while pool.stats().prezeroed_bytes < BATCH * page_size() && Instant::now() < until {
        std::thread::yield_now();
    }
}
