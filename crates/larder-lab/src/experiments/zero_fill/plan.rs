//! Which cells run, how often, and how long that takes.

use larder::os::zero::Zeroing;

use super::ZERO_FILL;
use super::cells::*;
use crate::contestants::mapping::region::{HUGE_KIB, REGION_MIB, small_sizes};
use crate::contestants::mapping::zeroing::{BATCH, cold_pages};
use crate::frame::{Planner, cross};
use crate::measure::{Experiment, Plan, PlanRequest};
use crate::model::{Cell, Params};

/// Seconds that a process takes beside its work.
const START: f64 = 0.004;

/// Operations of a block: the document's million where the loop is its own, elsewhere as many as the same time allows.
fn ops(quick: bool, way: &str, pages: i64, touch: i64) -> i64 {
    // Rough nanoseconds of one operation, for planning only: nothing is computed from them.
    let guess = match way {
        "thp" if touch == 1 => 400_000,
        "mthp" if touch == 1 => 18_000,
        POOL | "pool-dirty" => 100 * pages,
        "madv-free" | "dontneed" => 1_000 + 1_000 * pages * touch,
        POPULATE | "dontneed-populate" => 2_500 + 700 * pages,
        _ => 2_500 + 1_500 * pages * touch,
    };
    let budget = if quick { 8_000_000 } else { 400_000_000 };
    match way {
        MMAP if !quick && pages <= 2 => 1_000_000,
        _ => (budget / guess).clamp(16, 1_000_000),
    }
}

pub(super) fn plan(request: &PlanRequest<'_>) -> Plan {
    let contestants = ZERO_FILL.contestants();
    let mut plan = Planner::new(request, &contestants, (6, 6, 0.05), (10, 22, 0.01));
    let quick = plan.quick();
    let mut missing = Vec::new();
    for contestant in &contestants {
        if let Err(why) = contestant.available() {
            plan.skip(contestant.name(), why);
            missing.push(contestant.name());
        }
    }
    let here = |cells: Vec<Cell>| -> Vec<Cell> {
        let runs = |cell: &Cell| !missing.contains(&cell.contestant.as_str());
        cells.into_iter().filter(runs).collect()
    };
    let mut group = |name: &str, metric, reference: &str, each: (f64, f64), cells: Vec<Cell>| {
        let cells = here(cells);
        let seconds = (START + plan.either(each.0, each.1)) * (cells.len() + 1) as f64;
        plan.group(name, metric, reference, seconds, cells);
    };

    let four = |way: &str| {
        // The dearest of the four loops decides on their number.
        let params = Params::new().with_text("loops", "four");
        Cell::new(way, params.with("ops", ops(quick, way, 2, 1)))
    };
    let ways = WAYS.map(four).to_vec();
    group(TIMINGS, CPU, MMAP, (0.025, 3.0), ways);

    let block = |way: &str, pages, touch| {
        let params = Params::new().with("pages", pages).with("touch", touch);
        Cell::new(way, params.with("ops", ops(quick, way, pages, touch)))
    };
    // The first is the reference.
    let mut blocks = vec![block(MMAP, 1, 1), block(MMAP, 1, 0), block(POPULATE, 1, 1)];
    for pages in &BLOCKS[1..] {
        blocks.extend([(MMAP, 0), (MMAP, 1), (POPULATE, 1)].map(|(way, t)| block(way, *pages, t)));
    }
    group(SIZES, CPU, MMAP, (0.009, 0.6), blocks);

    let placed = |pages, tables| {
        let params = Params::new().with("pages", pages).with("tables", tables);
        let ops = ops(quick, "mmap-placed", pages, 1);
        Cell::new("mmap-placed", params.with("ops", ops))
    };
    let mut tables = vec![placed(1, 1), placed(1, 0)];
    let sizes: &[i64] = if quick { &[4, 16, 64] } else { &BLOCKS[1..] };
    tables.extend(sizes.iter().flat_map(|n| [0, 1, 2].map(|t| placed(*n, t))));
    group(TABLES, CPU, "mmap-placed", (0.01, 0.4), tables);

    let step = |name: &str, pages: usize, batches: i64| {
        let params = Params::new().with("pages", pages as i64);
        Cell::new(name, params.with("batches", batches))
    };
    let many = if quick { 100 } else { 1000 };
    let mut steps = Vec::new();
    for (name, _) in STEPS_OF_A_FAULT {
        let cell = step(name, BATCH, many);
        if !steps.contains(&cell) {
            steps.push(cell);
        }
    }
    let few = if quick { 1 } else { 3 };
    steps.extend(["step-write-fault", ZEROING].map(|name| step(name, cold_pages(), few)));
    steps.extend([1, 4, 64].map(|pages| block(MMAP, pages, 1)));
    let zeroing = |routine: &str, set, passes: i64| {
        let params = Params::new()
            .with_text("routine", routine)
            .with_text("set", set);
        Cell::new("zero-in-place", params.with("passes", passes))
    };
    let routines = Zeroing::ALL.into_iter().filter(|z| z.is_available());
    let routines: Vec<&str> = routines.map(Zeroing::name).collect();
    let bounds = ["portable", "stosb"].into_iter();
    let bounds = bounds.filter(|routine| routines.contains(routine));
    steps.extend(bounds.map(|routine| zeroing(routine, "warm", many)));
    group(STEPS, CPU, "step-write-fault", (0.08, 0.3), steps);

    // The portable routine is first of all, so it is the reference.
    for (name, set, passes, each) in [
        (ZERO_WARM, "warm", (400, 4000), (0.005, 0.05)),
        (ZERO_COLD, "cold", (1, 4), (0.27, 0.6)),
    ] {
        let passes = if quick { passes.0 } else { passes.1 };
        let cells = routines.iter().map(|r| zeroing(r, set, passes)).collect();
        group(name, CPU, "zero-in-place", each, cells);
    }

    for (name, usage) in USES {
        let params = Params::new()
            .with_text("use", usage.name())
            .with_text("routine", "fastest")
            .with("batches", if quick { 110 } else { 600 });
        let cells = cross(&SUPPLIES, &[params]);
        group(name, TOTAL, WARM, (0.065, 0.35), cells);
    }

    // Without the plain way there is nothing to compare with.
    let params = Params::new().with("mib", REGION_MIB as i64);
    let (sizes, off) = small_sizes();
    let each = |way| match way {
        SMALL_HUGE_REGION => sizes
            .iter()
            .map(|kib| Cell::new(way, params.clone().with(HUGE_KIB, *kib)))
            .collect(),
        way => vec![Cell::new(way, params.clone())],
    };
    let regions = here(REGIONS.into_iter().flat_map(each).collect());
    if regions.iter().any(|cell| cell.contestant == PLAIN_REGION) {
        group(FIRST_TOUCH, CPU, PLAIN_REGION, (0.22, 0.22), regions);
    }
    // Where all are off, the contestant has said so.
    if let Some(off) = off.filter(|_| !sizes.is_empty()) {
        plan.skip(SMALL_HUGE_REGION, off);
    }
    plan.finish()
}
