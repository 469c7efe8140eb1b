//! larder's own pool in the places of the kernel's ways: blocks, large regions and the consumer's bill.

use std::io;
use std::time::{Duration, Instant};

use anyhow::Context;
use larder::pages::{ClusterSize, HelperConfig, PageBuf, PagePool};

use super::area::page_size;
use super::bill::{Use, bill};
use super::cycle::Supply;
use super::huge::HugePages;
use super::region::{Bulk, REGION_MIB, room};
use super::tally::Tally;
use super::zeroing::BATCH;
use crate::contestants::timing::{Spent, Stopwatch, keep, resident_bytes, touch};
use crate::measure::Contestant;
use crate::model::{Measures, Params};

/// A pool as it comes, whatever the user's environment says: the lab measures the defaults.
fn pool() -> io::Result<PagePool> {
    PagePool::builder()
        .ignore_environment()
        .build()
        .map_err(io::Error::other)
}

/// Blocks of pages from a pool; `ZEROED` says by which get.
pub struct PoolBlocks<const ZEROED: bool> {
    pool: PagePool,
    block: Vec<PageBuf>,
    pages: usize,
}

impl<const ZEROED: bool> Supply for PoolBlocks<ZEROED> {
    const NAME: &'static str = if ZEROED { "pool-zeroed" } else { "pool-dirty" };
    const ABOUT: &'static str = if ZEROED {
        "PagePool: get_zeroed, touch, put back by drop"
    } else {
        "PagePool: get (contents stay), touch, put back by drop"
    };

    fn open(pages: usize) -> io::Result<Self> {
        Ok(Self {
            pool: pool()?,
            block: Vec::with_capacity(pages),
            pages,
        })
    }

    #[inline(always)]
    fn cycle<const TOUCH: bool>(&mut self) -> io::Result<()> {
        for i in 0..self.pages {
            let mut page = get::<ZEROED>(&self.pool)?;
            if TOUCH {
                // SAFETY: a page buffer is a whole page, and ours.
                unsafe { touch(page.as_mut_ptr(), i as u64 | 1) };
            } else {
                keep(page.as_ptr());
            }
            self.block.push(page);
        }
        self.block.clear();
        Ok(())
    }
}

#[inline(always)]
fn get<const ZEROED: bool>(pool: &PagePool) -> io::Result<PageBuf> {
    if ZEROED {
        pool.get_zeroed()
    } else {
        pool.get()
    }
    .map_err(io::Error::other)
}

/// A large region of single pages from a fresh pool; `HUGE` asks for huge pages.
pub struct PoolRegion<const HUGE: bool> {
    /// Before the pool, so that the pages are back when it goes.
    pages: Vec<PageBuf>,
    /// Held for its drop.
    _pool: PagePool,
}

impl<const HUGE: bool> Bulk for PoolRegion<HUGE> {
    const NAME: &'static str = if HUGE {
        "region-pool"
    } else {
        "region-pool-small"
    };
    const ABOUT: &'static str = if HUGE {
        "every page of the region from a fresh PagePool with huge pages allowed and clusters of 512 pages"
    } else {
        "every page of the region from a fresh PagePool with its defaults"
    };

    fn available() -> Result<(), String> {
        room(REGION_MIB)?;
        if HUGE {
            let here = HugePages::here();
            // Either size will do; the sentence about the largest is the one to give.
            here.large()
                .map(drop)
                .or_else(|why| here.small().map(drop).map_err(|_| why))?;
        }
        Ok(())
    }

    fn get(pages: usize) -> io::Result<Self> {
        let mut builder = PagePool::builder().ignore_environment();
        if HUGE {
            let cluster = ClusterSize::pages(512).map_err(io::Error::other)?;
            builder = builder.huge_pages().cluster(cluster);
        }
        let pool = builder.build().map_err(io::Error::other)?;
        let mut all = Vec::with_capacity(pages);
        pool.get_many(&mut all, pages).map_err(io::Error::other)?;
        Ok(Self {
            pages: all,
            _pool: pool,
        })
    }

    fn touch(&mut self, from: usize, to: usize) {
        for (i, page) in self.pages[from..to].iter_mut().enumerate() {
            // SAFETY: a page buffer is a whole page, and ours.
            unsafe { touch(page.as_mut_ptr(), i as u64 | 1) };
        }
    }
}

/// How the consumer of the bill asks the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// `get`.
    Dirty,
    /// `get_zeroed`.
    Zeroed,
    /// `get_zeroed_sparse`, with a helper that zeroes ahead.
    Sparse,
}

/// The pool in the consumer's bill. Factors: `use`, `batches` of 64 pages.
pub struct PoolBill(pub Ask);

impl Contestant for PoolBill {
    fn name(&self) -> &'static str {
        match self.0 {
            Ask::Dirty => "bill-pool-dirty",
            Ask::Zeroed => "bill-pool",
            Ask::Sparse => "bill-pool-sparse",
        }
    }

    fn about(&self) -> &'static str {
        match self.0 {
            Ask::Dirty => "PagePool get: a former owner's contents, no zeroing",
            Ask::Zeroed => "PagePool get_zeroed: a warm page, zeroed when it is handed out",
            Ask::Sparse => "PagePool get_zeroed_sparse with a helper that zeroes cold pages ahead",
        }
    }

    fn available(&self) -> Result<(), String> {
        match self.0 {
            Ask::Sparse => super::pin::two_cpus().map(drop),
            _ => Ok(()),
        }
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        let usage: Use = params.text("use")?.parse()?;
        let batches = params.count("batches")?;
        anyhow::ensure!(batches > 0, "factor 'batches' is 0; ask for at least one");
        consume(self.0, usage, batches).with_context(|| format!("{} with {params}", self.name()))
    }
}

/// Batches before the first that counts.
const WARM_UP: usize = 4;
/// Pages that the helper keeps zeroed: what half of a small second-level cache holds.
const AHEAD: usize = 2 * BATCH;
/// Longest wait for the helper before a batch; then the pool zeroes by itself, as it would for any consumer.
const PATIENCE: Duration = Duration::from_millis(2);

fn consume(ask: Ask, usage: Use, batches: usize) -> io::Result<Measures> {
    let before = resident_bytes();
    let pool = pool()?;
    if ask == Ask::Sparse {
        // The helper zeroes what lies in the clusters and was used before, never the warm stock.
        let mut cold = pool
            .get_run((batches + WARM_UP) * BATCH)
            .map_err(io::Error::other)?;
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
    for turn in 0..batches + WARM_UP {
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
    let pages = ((batches + WARM_UP) * BATCH) as f64;
    let helper = stats.helper_cpu_ns.saturating_sub(helped.helper_cpu_ns) as f64 / pages;
    let avoided = stats
        .zeroing_avoided_bytes
        .saturating_sub(helped.zeroing_avoided_bytes) as f64;
    let resident = resident_bytes().saturating_sub(before);
    Ok(bill(&tally, helper, 0.0)
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
        // SAFETY: a page buffer is a whole aligned page, and ours.
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
