//! Zeroing pages in place, by routine: the work that remains when the kernel is out of the way.

use std::fs;
use std::str::FromStr;

use larder::os::zero::{Routine, Zeroing};

use super::area::{Area, page_size};
use super::factors;
use super::tally::{Tally, timed};
use crate::contestants::timing::keep;
use crate::model::{Measures, Params};

/// Pages that are timed together; as a working set, 256 KiB, they stay in the second-level cache.
pub const BATCH: usize = 64;
/// The smallest working set that counts as cold.
const COLD_AT_LEAST: usize = 64 << 20;
/// The largest, so that machines with very large caches stay quick; the record tells the size.
const COLD_AT_MOST: usize = 256 << 20;

/// Bytes of the largest cache of the first CPU, from sysfs; `None` where it is not available.
fn largest_cache() -> Option<usize> {
    fs::read_dir("/sys/devices/system/cpu/cpu0/cache")
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let text = fs::read_to_string(entry.path().join("size")).ok()?;
            let kib: usize = text.trim().strip_suffix('K')?.parse().ok()?;
            Some(kib * 1024)
        })
        .max()
}

/// Pages of a working set in which every page is cold when its turn comes: twice the largest cache, 64 to 256 MiB.
#[must_use]
pub fn cold_pages() -> usize {
    let bytes = (2 * largest_cache().unwrap_or(0)).clamp(COLD_AT_LEAST, COLD_AT_MOST);
    (bytes / page_size()).next_multiple_of(BATCH)
}

/// Factors: `routine`, `set` (`warm` or `cold`), `passes` over the set.
pub(super) fn run(params: &Params) -> anyhow::Result<Measures> {
    let routine = Zeroing::from_str(params.text("routine")?)?;
    anyhow::ensure!(
        routine.is_available(),
        "this CPU does not have the routine '{routine}'"
    );
    let pages = match params.text("set")? {
        "warm" => BATCH,
        "cold" => cold_pages(),
        other => anyhow::bail!("factor 'set' is '{other}'; choose warm or cold"),
    };
    let passes = factors::counted(params, "passes")?;
    let page = page_size();
    let area = Area::small_pages(pages * page)?;
    let routine = routine.routine();
    let mut tally = Tally::new(BATCH);
    // The first pass brings the pages in and is not counted.
    for pass in 0..=passes {
        area.dirty();
        for batch in 0..pages / BATCH {
            let spent = timed(|| zero_batch(&area, batch, routine));
            if pass > 0 {
                tally.add(spent);
            }
        }
    }
    let bytes = (pages * page) as f64;
    Ok(tally.measures().with("working_set_bytes", bytes))
}

/// Zeroes one batch of an area.
#[inline(always)]
pub(super) fn zero_batch(area: &Area, batch: usize, routine: Routine) {
    for i in 0..BATCH {
        // SAFETY: a page of the area; pages are aligned to far more than 64 bytes and their size is a multiple of 256.
        // A batch that a helper zeroes is used by nothing else until the helper says that it is done.
        unsafe { routine.zero(area.page(batch * BATCH + i), page_size()) };
    }
    keep(area.start());
}
