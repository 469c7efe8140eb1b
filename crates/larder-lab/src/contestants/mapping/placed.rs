//! `mmap`, touch, `munmap` at chosen addresses, so that the number of new page tables is known.
//!
//! A page table covers 2 MiB (where a page is 4 KiB). A block beside a page that stays mapped needs no new
//! table, a block alone in its 2 MiB needs one, a block across an empty 2 MiB boundary needs two. Without this
//! control the cost of a page table hides in the cost of the first page, as it did in 2003.

use std::fs;
use std::io;
use std::time::Duration;

use anyhow::Context;
use rustix::mm::{MapFlags, mmap_anonymous, munmap};

use super::area::{Area, READ_WRITE, page_size, refused, table_span};
use super::ways::touch_all;
use crate::contestants::timing::{Stopwatch, ns_per_op, touch, warm_up};
use crate::measure::Contestant;
use crate::model::{Measures, Params};

/// Address space taken to find a quiet place in, in page-table spans.
const SPANS: usize = 64;
/// Pages between the anchor and a block beside it, so that the two mappings do not merge.
const GAP: usize = 16;

/// The contestant. Factors: `pages` (1 to a quarter of a span), `tables` (0, 1, 2), `ops`.
pub struct Placed;

impl Contestant for Placed {
    fn name(&self) -> &'static str {
        "mmap-placed"
    }

    fn about(&self) -> &'static str {
        "mmap, touch, munmap at an address that needs 0, 1 or 2 new page tables"
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        let pages = params.count("pages")?;
        let tables = params.count("tables")?;
        let ops = params.count("ops")? as u64;
        let most = table_span() / page_size() / 4;
        anyhow::ensure!(
            (1..=most).contains(&pages),
            "factor 'pages' is {pages}; this contestant takes 1 to {most}"
        );
        anyhow::ensure!(
            tables <= 2,
            "factor 'tables' is {tables}; it is 0, 1 or 2 new page tables"
        );
        anyhow::ensure!(
            tables < 2 || pages >= 2,
            "one page cannot lie across two page tables; ask for 2 pages or more"
        );
        anyhow::ensure!(ops > 0, "factor 'ops' is 0; ask for at least one");
        run(pages, tables, ops).with_context(|| format!("mmap-placed with {params}"))
    }
}

/// A touched page that keeps the upper tables of its neighbourhood alive, and the block's place near it.
struct Site {
    /// Held for its drop.
    _anchor: Area,
    block: *mut u8,
}

impl Site {
    fn find(pages: usize, tables: usize) -> io::Result<Self> {
        let (page, span) = (page_size(), table_span());
        let wide = Area::map(SPANS * span, MapFlags::NORESERVE)?;
        let mut base = wide.start().addr().next_multiple_of(span);
        // All places must hang under one table of the next level, whose span is this many times wider.
        let above = span * (page / 8);
        if base / above != (base + 16 * span) / above {
            base = base.next_multiple_of(above);
        }
        let home = wide.start().with_addr(base);
        drop(wide);
        let anchor = Area::at(home, page)?;
        // SAFETY: the anchor's own page.
        unsafe { touch(anchor.start(), 1) };
        let offset = match tables {
            0 => GAP * page,
            1 => 4 * span + GAP * page,
            _ => 9 * span - pages.div_ceil(2) * page,
        };
        Ok(Self {
            block: home.with_addr(base + offset),
            _anchor: anchor,
        })
    }
}

/// Bytes of page tables of this process, from `/proc/self/status`; `None` where it is not told.
fn table_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmPTE:"))?;
    line.split_whitespace()
        .next()?
        .parse()
        .ok()
        .map(|kib: u64| kib * 1024)
}

/// Maps and touches the block, runs `between`, unmaps.
#[inline(always)]
fn cycle<T>(at: *mut u8, pages: usize, page: usize, between: impl FnOnce() -> T) -> io::Result<T> {
    let bytes = pages * page;
    let flags = MapFlags::PRIVATE.union(MapFlags::FIXED_NOREPLACE);
    // SAFETY: FIXED_NOREPLACE fails rather than replace a mapping; the block is unmapped below.
    unsafe {
        let at = mmap_anonymous(at.cast(), bytes, READ_WRITE, flags)
            .map_err(|e| refused("mmap at a fixed address", bytes, e))?;
        touch_all(at.cast(), pages, page);
        let got = between();
        munmap(at, bytes).map_err(|e| refused("munmap", bytes, e))?;
        Ok(got)
    }
}

fn run(pages: usize, tables: usize, ops: u64) -> io::Result<Measures> {
    let page = page_size();
    let site = Site::find(pages, tables)?;
    warm_up(Duration::from_millis(2), 1, || {
        cycle(site.block, pages, page, || ())
    })?;
    // Reading the counter allocates nothing new after its first time.
    let _ = table_bytes();
    let before = table_bytes();
    let within = cycle(site.block, pages, page, table_bytes)?;

    let watch = Stopwatch::start();
    for _ in 0..ops {
        cycle(site.block, pages, page, || ())?;
    }
    let spent = watch.stop();
    let mut measures = Measures::new()
        .with("ns_per_op", ns_per_op(spent.wall_ns, ops))
        .with("cpu_ns_per_op", ns_per_op(spent.cpu_ns, ops))
        .with(
            "faults_per_op",
            spent.usage.minor_faults as f64 / ops as f64,
        );
    if let (Some(before), Some(within)) = (before, within) {
        let new = within.saturating_sub(before) / page as u64;
        measures = measures.with("tables_per_op", new as f64);
    }
    Ok(measures)
}
