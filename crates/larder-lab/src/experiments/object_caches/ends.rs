//! The groups about preloaded mallocs, the end of a heap, and the end of a burst.

use std::time::Duration;

use super::plan::{PEERS, SIZES, group, pair_cell};
use crate::contestants::heaps::PRELOADED;
use crate::experiments::programs::{LARDER, found};
use crate::measure::Plan;
use crate::model::{Cell, Params, Skipped};

/// Names of the groups.
pub(super) const DESTROY: &str = "destroy";
pub(super) const HELD: &str = "held";

/// Name of the contestant that is larder's malloc, preloaded.
pub(super) const LARDER_PRELOADED: &str = "larder-preloaded";

/// Heaps that die whole, and what they are compared with.
pub(super) const ENDS: [&str; 5] = [
    "private-heap",
    "private-freed",
    "heap",
    "mimalloc-heap",
    "malloc",
];

/// The cell on which the goal is: classes and live objects.
pub(super) const MILLION: (i64, i64) = (30, 1_000_000);

/// The handles of object caches.
pub(super) const HANDLES: [i64; 3] = [1, 30, 300];

/// Classes and objects of the quick form.
const QUICK: [(i64, i64); 5] = [(1, 1), (30, 30), (40, 40), (30, 10_000), MILLION];

/// MiB of a burst.
pub(super) const BURST: i64 = 64;
/// Milliseconds of an interval, as by default.
pub(super) const INTERVAL: i64 = 1000;

/// Name of the group of a size.
pub(super) fn preloaded_group(bytes: i64) -> String {
    format!("preloaded-{bytes}")
}

fn destroy_cell(contestant: &str, (classes, objects): (i64, i64)) -> Cell {
    let params = Params::new()
        .with_text("shape", "destroy")
        .with("classes", classes)
        .with("objects", objects);
    Cell::new(contestant, params)
}

fn held_cell(contestant: &str, calls: &str, quick: bool) -> Cell {
    let params = Params::new()
        .with_text("shape", "held")
        .with("mb", if quick { BURST / 4 } else { BURST })
        .with("interval_ms", if quick { 10 } else { INTERVAL })
        .with_text("calls", calls);
    Cell::new(contestant, params)
}

/// Adds the groups. `names` are the contestants that this build has.
pub(super) fn add(plan: &mut Plan, quick: bool, names: &[&str]) {
    preloaded(plan, quick);
    destroy(plan, quick, names);
    held(plan, quick, names);
}

fn preloaded(plan: &mut Plan, quick: bool) {
    let (libraries, skipped) = found();
    // What the user named wrongly is told by the pairs of linked allocators.
    for line in skipped.into_iter().filter(|s| s.what != PRELOADED) {
        if !plan.skipped.iter().any(|said| said.what == line.what) {
            plan.skipped.push(line);
        }
    }
    if !libraries.iter().any(|library| library.contestant == LARDER) {
        return;
    }
    for bytes in SIZES {
        let reference = pair_cell("malloc", bytes, quick);
        let mut cells = vec![reference.clone()];
        cells.extend(libraries.iter().map(|library| {
            let contestant = match library.contestant.as_str() {
                LARDER => LARDER_PRELOADED,
                _ => PRELOADED,
            };
            let params = reference.params.clone();
            Cell::new(contestant, params.with_text("library", &library.path))
        }));
        let each = if quick { 0.01 } else { 0.12 };
        plan.groups.push(group(
            &preloaded_group(bytes),
            reference,
            "ns_per_pair",
            cells.clone(),
            if quick { (6, 8) } else { (15, 33) },
            Duration::from_secs_f64(each * (cells.len() + 1) as f64),
        ));
    }
}

fn destroy(plan: &mut Plan, quick: bool, names: &[&str]) {
    let mut shapes = QUICK.to_vec();
    if !quick {
        for classes in [1, 30, 40] {
            for objects in [1, 100, 10_000, 1_000_000] {
                if objects >= classes && !shapes.contains(&(classes, objects)) {
                    shapes.push((classes, objects));
                }
            }
        }
    }
    let mut cells = Vec::new();
    for shape in shapes {
        for name in ENDS.into_iter().filter(|name| names.contains(name)) {
            // The million takes most of the time.
            let needed = ["private-heap", "private-freed"].contains(&name);
            if shape != MILLION || !quick || needed {
                cells.push(destroy_cell(name, shape));
            }
        }
    }
    cells.extend(HANDLES.map(|n| destroy_cell("cache-handles", (n, n))));
    plan.groups.push(group(
        DESTROY,
        destroy_cell("malloc", (30, 10_000)),
        "destroy_ns",
        cells,
        if quick { (6, 6) } else { (10, 15) },
        Duration::from_secs_f64(if quick { 0.4 } else { 2.5 }),
    ));
}

fn held(plan: &mut Plan, quick: bool, names: &[&str]) {
    let mut cells = vec![
        held_cell("heap", "no", quick),
        held_cell("heap", "yes", quick),
    ];
    if quick {
        plan.skipped.push(Skipped {
            what: "memory held 10 s after a burst".to_owned(),
            why: "the quick form waits 0.1 s with intervals of 10 ms in place of 10 s with intervals of a second, and \
                  leaves the peers out, which have no such setting; run with --full --group held for them, some fifteen minutes"
                .to_owned(),
        });
    } else {
        cells.push(held_cell("global", "no", quick));
        cells.push(held_cell("global", "yes", quick));
        for peer in PEERS.into_iter().filter(|p| names.contains(p)) {
            for calls in ["no", "yes"] {
                cells.push(held_cell(peer, calls, quick));
            }
        }
    }
    let each = if quick { 0.15 } else { 10.3 };
    plan.groups.push(group(
        HELD,
        held_cell("heap", "no", quick),
        "returned_share",
        cells.clone(),
        (6, 6),
        Duration::from_secs_f64(each * (cells.len() + 1) as f64),
    ));
}
