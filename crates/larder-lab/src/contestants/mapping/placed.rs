//! `mmap`, touch, `munmap` at chosen addresses, so that the number of new page tables is known.
//!
//! A page table covers 2 MiB (where a page is 4 KiB). A block beside a page that stays mapped needs no new
//! table, a block alone in its 2 MiB needs one, a block across an empty 2 MiB boundary needs two. Without this
//! control the cost of a page table hides in the cost of the first page, as it did in 2003.

use std::fs;
use std::io;
use std::time::Duration;

use rustix::mm::MapFlags;

use super::area::{Area, page_size, table_span};
use super::factors;
use super::tally::per_op;
use crate::contestants::timing::{Stopwatch, warm_up};
use crate::model::{Measures, Params};

/// Address space taken to find a quiet place in, in page-table spans.
const SPANS: usize = 64;
/// Pages between the anchor and a block beside it, so that the two mappings do not merge.
const GAP: usize = 16;

/// Factors: `pages` (1 to a quarter of a span), `tables` (0, 1, 2), `ops`.
pub(super) fn run(params: &Params) -> anyhow::Result<Measures> {
    let pages = params.count("pages")?;
    let tables = params.count("tables")?;
    let ops = factors::counted(params, "ops")? as u64;
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
    Ok(timed(pages, tables, ops)?)
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
        anchor.touch();
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

/// Bytes of page tables of this process, from `/proc/self/status`; `None` where it is not available.
fn table_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmPTE:"))?;
    line.split_whitespace()
        .next()?
        .parse()
        .ok()
        .map(|kib: u64| kib * 1024)
}

fn timed(pages: usize, tables: usize, ops: u64) -> io::Result<Measures> {
    let bytes = pages * page_size();
    let site = Site::find(pages, tables)?;
    let block = || {
        let area = Area::at(site.block, bytes)?;
        area.touch();
        io::Result::Ok(area)
    };
    warm_up(Duration::from_millis(2), 1, || block().map(drop))?;
    // Reading the counter allocates nothing new after its first time.
    let _ = table_bytes();
    let before = table_bytes();
    let area = block()?;
    let within = table_bytes();
    drop(area);
    let watch = Stopwatch::start();
    for _ in 0..ops {
        block()?;
    }
    let mut measures = per_op(&watch.stop(), ops);
    if let (Some(before), Some(within)) = (before, within) {
        let new = within.saturating_sub(before) / page_size() as u64;
        measures = measures.with("tables_per_op", new as f64);
    }
    Ok(measures)
}
