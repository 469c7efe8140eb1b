//! Which cells run, how often, and how long that may take.

use std::time::Duration;

use larder::os::zero::Zeroing;

use super::cells::{self, BLOCKS, MMAP, POPULATE};
use super::contestants;
use crate::contestants::mapping::bill::Use;
use crate::contestants::mapping::region::REGION_MIB;
use crate::contestants::mapping::zeroing::{BATCH, cold_pages};
use crate::measure::{Contestant, Depth, Group, Plan, PlanRequest};
use crate::model::{Cell, Skipped};

/// What a process costs beside its work.
const START: Duration = Duration::from_millis(4);

/// What depends on the depth.
struct Sizes {
    depth: Depth,
    min_rounds: u32,
    max_rounds: u32,
    target: f64,
}

impl Sizes {
    fn of(depth: Depth) -> Self {
        match depth {
            Depth::Quick => Self {
                depth,
                min_rounds: 6,
                max_rounds: 6,
                target: 0.05,
            },
            Depth::Full => Self {
                depth,
                min_rounds: 10,
                max_rounds: 22,
                target: 0.01,
            },
        }
    }

    fn pick(&self, quick: i64, full: i64) -> i64 {
        match self.depth {
            Depth::Quick => quick,
            Depth::Full => full,
        }
    }

    /// Operations of a block. The document's million where it is his own loop; elsewhere as many as
    /// the same time allows.
    fn ops(&self, way: &str, pages: i64, touch: i64) -> i64 {
        // Rough nanoseconds of one operation, for planning only: nothing is computed from them.
        let guess = match way {
            "thp" if touch == 1 => 400_000,
            "mthp" if touch == 1 => 18_000,
            "pool-zeroed" | "pool-dirty" => 100 * pages,
            "madv-free" | "dontneed" => 1_000 + 1_000 * pages * touch,
            POPULATE | "dontneed-populate" => 2_500 + 700 * pages,
            _ => 2_500 + 1_500 * pages * touch,
        };
        let budget = self.pick(8_000_000, 400_000_000);
        let ops = (budget / guess).clamp(16, 1_000_000);
        match (self.depth, way) {
            (Depth::Full, MMAP) if pages <= 2 => 1_000_000,
            _ => ops,
        }
    }

    fn group(&self, name: &str, reference: Cell, cells: Vec<Cell>, each: Duration) -> Group {
        let count = u32::try_from(cells.len() + 1).unwrap_or(u32::MAX);
        Group {
            name: name.to_owned(),
            reference,
            metric: cells::CPU,
            cells,
            min_rounds: self.min_rounds,
            max_rounds: self.max_rounds,
            target: self.target,
            round_guess: (START + each).saturating_mul(count),
        }
    }
}

/// The names of those that can run; the others go to `skipped` with their sentence.
fn available(contestants: &[Box<dyn Contestant>], skipped: &mut Vec<Skipped>) -> Vec<&'static str> {
    contestants
        .iter()
        .filter_map(|c| match c.available() {
            Ok(()) => Some(c.name()),
            Err(why) => {
                skipped.push(Skipped {
                    what: c.name().to_owned(),
                    why,
                });
                None
            }
        })
        .collect()
}

/// The plan.
pub(super) fn plan(request: &PlanRequest<'_>) -> Plan {
    let sizes = Sizes::of(request.depth);
    let mut skipped = Vec::new();
    let mut groups = vec![
        timings(&sizes, &mut skipped),
        blocks(&sizes),
        tables(&sizes),
    ];
    groups.push(steps(&sizes, &mut skipped));
    groups.extend(zeroing(&sizes));
    groups.extend(bills(&sizes, &mut skipped));
    groups.extend(first_touch(&sizes, &mut skipped));
    Plan { groups, skipped }
}

fn block(sizes: &Sizes, way: &str, pages: i64, touch: i64) -> Cell {
    cells::block(way, pages, touch, sizes.ops(way, pages, touch))
}

fn timings(sizes: &Sizes, skipped: &mut Vec<Skipped>) -> Group {
    let cell = |way: &str| {
        // The dearest of the four loops decides; his own million is his own.
        let ops = sizes.ops(way, 2, 1);
        cells::four(way, ops)
    };
    let ways = available(&contestants::ways(), skipped);
    let all = ways.iter().map(|way| cell(way)).collect();
    let each = Duration::from_millis(if sizes.depth == Depth::Quick {
        35
    } else {
        3000
    });
    sizes.group(cells::TIMINGS, cell(MMAP), all, each)
}

fn blocks(sizes: &Sizes) -> Group {
    let mut all = Vec::new();
    for pages in BLOCKS {
        all.push(block(sizes, MMAP, pages, 0));
        all.push(block(sizes, MMAP, pages, 1));
        all.push(block(sizes, POPULATE, pages, 1));
    }
    let each = Duration::from_millis(if sizes.depth == Depth::Quick { 9 } else { 600 });
    sizes.group(cells::SIZES, block(sizes, MMAP, 1, 1), all, each)
}

fn tables(sizes: &Sizes) -> Group {
    let pages: &[i64] = match sizes.depth {
        Depth::Quick => &[1, 4, 16, 64],
        Depth::Full => &BLOCKS,
    };
    let placed = |pages, tables| cells::placed(pages, tables, sizes.ops("mmap-placed", pages, 1));
    let mut all = Vec::new();
    for &pages in pages {
        for tables in 0..=i64::min(2, pages) {
            all.push(placed(pages, tables));
        }
    }
    let each = Duration::from_millis(if sizes.depth == Depth::Quick { 10 } else { 400 });
    sizes.group(cells::TABLES, placed(1, 1), all, each)
}

fn steps(sizes: &Sizes, skipped: &mut Vec<Skipped>) -> Group {
    let batch = BATCH as i64;
    let warm = sizes.pick(100, 1000);
    let cold = cold_pages() as i64;
    let names = available(&contestants::steps(), skipped);
    let mut all: Vec<Cell> = names.iter().map(|n| cells::step(n, batch, warm)).collect();
    for name in [
        "step-write-fault",
        "step-shared-clear",
        "step-shared-present",
    ] {
        if names.contains(&name) {
            all.push(cells::step(name, cold, sizes.pick(1, 3)));
        }
    }
    for pages in [1, 4, 64] {
        all.push(block(sizes, MMAP, pages, 1));
    }
    for routine in ["portable", "stosb"] {
        if routine.parse::<Zeroing>().is_ok_and(Zeroing::is_available) {
            all.push(cells::zeroing(routine, "warm", sizes.pick(100, 1000)));
        }
    }
    let reference = cells::step("step-write-fault", batch, warm);
    let each = Duration::from_millis(if sizes.depth == Depth::Quick { 25 } else { 200 });
    sizes.group(cells::STEPS, reference, all, each)
}

fn zeroing(sizes: &Sizes) -> [Group; 2] {
    let routines: Vec<&str> = Zeroing::ALL
        .into_iter()
        .filter(|z| z.is_available())
        .map(Zeroing::name)
        .collect();
    let group = |name, set: &str, passes, each| {
        let cell = |routine: &str| cells::zeroing(routine, set, passes);
        let all = routines.iter().map(|r| cell(r)).collect();
        sizes.group(name, cell("portable"), all, Duration::from_millis(each))
    };
    [
        group(cells::ZERO_WARM, "warm", sizes.pick(400, 4000), 5),
        group(cells::ZERO_COLD, "cold", sizes.pick(1, 4), 120),
    ]
}

fn bills(sizes: &Sizes, skipped: &mut Vec<Skipped>) -> Vec<Group> {
    let names = available(&contestants::supplies(), skipped);
    let batches = sizes.pick(150, 600);
    Use::ALL
        .into_iter()
        .map(|usage| {
            let cell = |name: &str| cells::bill(name, usage.name(), batches);
            let all = names.iter().map(|name| cell(name)).collect();
            let group = sizes.group(
                &cells::bill_group(usage.name()),
                cell("bill-warm"),
                all,
                Duration::from_millis(60),
            );
            Group {
                metric: cells::TOTAL,
                ..group
            }
        })
        .collect()
}

fn first_touch(sizes: &Sizes, skipped: &mut Vec<Skipped>) -> Option<Group> {
    let names = available(&contestants::regions(), skipped);
    let mib = i64::try_from(REGION_MIB).unwrap_or(256);
    // Without the plain way there is nothing to compare with.
    names.contains(&"region-touch").then(|| {
        let all = names.iter().map(|n| cells::region(n, mib)).collect();
        let reference = cells::region("region-touch", mib);
        sizes.group(
            cells::FIRST_TOUCH,
            reference,
            all,
            Duration::from_millis(220),
        )
    })
}
