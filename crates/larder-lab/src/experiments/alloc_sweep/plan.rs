//! The loops and their sizes: a coarse grid, the neighbours of its worst cells, and the worst of both once more.

use larder::internal::heap::SIZES;

use super::report::{once_more, worst_of_heap};
use super::{LARDER_PRELOADED, NS, OURS, WALL};
use crate::contestants::heaps::PRELOADED;
use crate::contestants::heaps::found::{LARDER, Library, found};
use crate::experiments::allocators::{PEERS, preloaded_cells};
use crate::frame::{At, Planner, Results, cross};
use crate::measure::{Contestant, Plan, PlanRequest};
use crate::model::{self, Cell, MachineRecord, Params};

/// The group of the neighbours of the worst cells.
pub(super) const AROUND: &str = "around";
/// The group of the worst cells, measured once more.
pub(super) const WORST_CELLS: &str = "worst";

/// The smallest and the largest block.
const SIZE: (i64, i64) = (16, 64 << 20);

/// Most bytes that a cell may have live, where the machine has four times as many.
const MOST_LIVE: i64 = 1 << 30;

/// Worst cells whose neighbours are measured, and cells that are measured once more.
const LOOKED_AROUND: usize = 12;
const ONCE_MORE: usize = 24;

/// The shares of a time cap after which the grid and the neighbours end, at the quick depth and in full: how much worse the worst cell is
/// than the others is known only when it was measured once more.
const GRID_ENDS: (f64, f64) = (0.8, 0.7);
const AROUND_ENDS: f64 = 0.8;

/// What is done at each of some sizes: a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loop {
    /// Its group.
    pub(super) group: &'static str,
    /// Its heading; those with the same one are beside each other.
    pub(super) family: &'static str,
    /// Live blocks of a thread.
    live: i64,
    threads: i64,
    /// Other factors than these, by name.
    more: &'static [(&'static str, Factor)],
    /// Sizes of the full form, without a bound.
    sizes: fn() -> Vec<i64>,
    /// Sizes of the quick form.
    quick: &'static [i64],
}

#[derive(Debug, Clone, Copy)]
enum Factor {
    Int(i64),
    Text(&'static str),
}

const ONE_THREAD: &str = "One thread";
const THREADS: &str = "Several threads";
const GROWN: &str = "Blocks that grow by realloc";
const ZEROED: &str = "Blocks of zeros from calloc";
const ALIGNED: &str = "Aligned blocks";

const FIFO: (&str, Factor) = ("order", Factor::Text("fifo"));
const MIXED: (&str, Factor) = ("sizes", Factor::Text("mixed"));
const ELSEWHERE: (&str, Factor) = ("freed", Factor::Text("elsewhere"));
const CALLOC: (&str, Factor) = ("zeroed", Factor::Int(1));

const fn one(group: &'static str, live: i64) -> Loop {
    Loop {
        group,
        family: ONE_THREAD,
        live,
        threads: 1,
        more: &[],
        sizes: powers,
        quick: &[],
    }
}

const fn fifo(group: &'static str, live: i64) -> Loop {
    Loop {
        more: &[FIFO],
        ..one(group, live)
    }
}

const fn mixed(group: &'static str, live: i64) -> Loop {
    Loop {
        more: &[MIXED],
        sizes: || vec![1 << 10, 8 << 10, 40_000, 100_000, 1 << 20, 8 << 20],
        ..one(group, live)
    }
}

const fn threads(
    group: &'static str,
    live: i64,
    threads: i64,
    more: &'static [(&'static str, Factor)],
) -> Loop {
    Loop {
        family: THREADS,
        threads,
        more,
        sizes: || [edges(), vec![16, 64, 256, 1 << 10, 1 << 20, 4 << 20]].concat(),
        ..one(group, live)
    }
}

const fn grown(group: &'static str, more: &'static [(&'static str, Factor)]) -> Loop {
    Loop {
        family: GROWN,
        more,
        sizes: || vec![64 << 10, 1 << 20, 4 << 20, 16 << 20, 32 << 20],
        ..one(group, 1)
    }
}

const fn aligned(group: &'static str, more: &'static [(&'static str, Factor)]) -> Loop {
    Loop {
        family: ALIGNED,
        more,
        sizes: || vec![100, 4 << 10, 40_000, 256 << 10, 2 << 20, 5 << 20],
        ..one(group, 16)
    }
}

const fn zeroed(group: &'static str, live: i64) -> Loop {
    Loop {
        family: ZEROED,
        more: &[CALLOC],
        sizes: || fours().collect(),
        ..one(group, live)
    }
}

/// The size of the summary's row.
pub(super) const SHOWN: i64 = 64 << 10;

/// Sizes at which several threads are compared with the best peer.
pub(super) const SHARED: (i64, i64) = (4 << 10, 200 << 10);

/// The coarse grid.
pub(super) const LOOPS: [Loop; 31] = [
    Loop {
        sizes: classes,
        quick: &[SHOWN],
        ..one("pair", 1)
    },
    Loop {
        sizes: halves,
        quick: &[4 << 20],
        ..one("churn-64", 64)
    },
    one("churn-1024", 1 << 10),
    one("churn-16384", 1 << 14),
    one("churn-262144", 1 << 18),
    fifo("fifo-64", 64),
    fifo("fifo-1024", 1 << 10),
    fifo("fifo-16384", 1 << 14),
    fifo("fifo-262144", 1 << 18),
    mixed("mixed-64", 64),
    mixed("mixed-4096", 1 << 12),
    mixed("mixed-65536", 1 << 16),
    threads("pair-x2", 1, 2, &[]),
    threads("pair-x8", 1, 8, &[]),
    threads("churn-x2", 64, 2, &[]),
    Loop {
        quick: &[40 << 10],
        ..threads("churn-x8", 64, 8, &[])
    },
    threads("fifo-x2", 64, 2, &[FIFO]),
    threads("fifo-x8", 64, 8, &[FIFO]),
    threads("churn-x2-elsewhere", 64, 2, &[ELSEWHERE]),
    Loop {
        quick: &[256],
        ..threads("churn-x8-elsewhere", 64, 8, &[ELSEWHERE])
    },
    threads("fifo-x2-elsewhere", 64, 2, &[FIFO, ELSEWHERE]),
    threads("fifo-x8-elsewhere", 64, 8, &[FIFO, ELSEWHERE]),
    grown("realloc-half", &[("step", Factor::Int(0))]),
    grown("realloc-4k", &[("step", Factor::Int(4 << 10))]),
    Loop {
        quick: &[32 << 20],
        ..grown("realloc-64k", &[("step", Factor::Int(64 << 10))])
    },
    grown("realloc-1m", &[("step", Factor::Int(1 << 20))]),
    zeroed("calloc-pair", 1),
    zeroed("calloc-64", 64),
    aligned("align-64", &[("align", Factor::Int(64))]),
    aligned("align-4k", &[("align", Factor::Int(4 << 10))]),
    aligned("align-2m", &[("align", Factor::Int(2 << 20))]),
];

/// Each class of larder's, and the size after it, which the next class serves; beyond the classes four sizes for each doubling.
fn classes() -> Vec<i64> {
    let classes = SIZES.iter().filter_map(|bytes| i64::try_from(*bytes).ok());
    let large = doublings().filter(|n| *n >= SIZES[SIZES.len() - 1] as i64);
    let large = large.flat_map(|n| [n + n / 4, n + n / 2, n + n / 4 * 3, 2 * n]);
    classes.chain(large).flat_map(|n| [n, n + 1]).collect()
}

fn doublings() -> impl Iterator<Item = i64> {
    (SIZE.0.ilog2()..=SIZE.1.ilog2()).map(|n| 1 << n)
}

fn powers() -> Vec<i64> {
    doublings().collect()
}

fn fours() -> impl Iterator<Item = i64> {
    doublings().step_by(2)
}

fn halves() -> Vec<i64> {
    doublings().flat_map(|n| [n, n + n / 2]).collect()
}

fn edges() -> Vec<i64> {
    let (low, high) = SHARED;
    vec![low, 10 << 10, 32 << 10, 40 << 10, 100 << 10, high]
}

impl Loop {
    /// The sizes at which its blocks fit into `most` bytes.
    fn sizes(&self, quick: bool, most: i64) -> Vec<i64> {
        let mut all = if quick {
            self.quick.to_vec()
        } else {
            (self.sizes)()
        };
        all.retain(|bytes| fits(&self.params(*bytes, quick), most));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The factors of a cell.
    fn params(&self, bytes: i64, quick: bool) -> Params {
        let params = Params::new().with("bytes", bytes).with("live", self.live);
        let params = match self.threads {
            1 => params,
            threads => params.with("threads", threads),
        };
        let add = |params: Params, (name, factor): &(&str, Factor)| match factor {
            Factor::Int(n) => params.with(name, *n),
            Factor::Text(text) => params.with_text(name, text),
        };
        let params = self.more.iter().fold(params, add);
        let turns = turns(&params, quick);
        params.with("turns", turns)
    }
}

/// Turns of a thread: some milliseconds, also of one of several, so that most of their time is work together. Only large blocks take so
/// long that the threads share out the turns.
fn turns(params: &Params, quick: bool) -> i64 {
    let or = |name: &str, default| params.int(name).unwrap_or(default);
    let bytes = or("bytes", 1);
    let full = if params.int("step").is_ok() {
        // Each page is written.
        ((64 << 20) / bytes).clamp(2, 1000)
    } else if or("zeroed", 0) > 0 {
        // So is each byte, by some.
        ((1 << 30) / bytes).clamp(16, 100_000)
    } else {
        // From 8 MiB on a turn is a walk in an arena or a system call. With fewer turns than this the first faults of each page are most
        // of the time.
        match bytes.max(or("align", 1)) >> 20 {
            0 => 100_000,
            1..8 => 20_000 / or("threads", 1),
            _ => 3000 / or("threads", 1),
        }
    };
    let share = if quick { 5 } else { 1 };
    (full / share).max(2)
}

/// Whether all blocks of a cell are within `most` bytes, and each within the sizes that are looked at; one that grows begins with a step.
fn fits(params: &Params, most: i64) -> bool {
    let or = |name: &str| params.int(name).unwrap_or(1);
    let bytes = or("bytes").max(or("align"));
    let stays = params.int("step").is_ok_and(|step| step >= bytes);
    (SIZE.0..=SIZE.1).contains(&bytes) && !stays && bytes * or("live") * or("threads") <= most
}

/// A quarter of the memory that this machine gives, and a GiB at most.
fn most_live(machine: &MachineRecord) -> i64 {
    let bytes = |field| {
        let mut words = machine.text(field).split_whitespace();
        words.next()?.parse::<i64>().ok()
    };
    let all = [bytes("memory.total"), bytes("cgroup.memory_max")];
    let all = all.into_iter().flatten().map(|bytes| bytes / 4);
    all.fold(MOST_LIVE, i64::min)
}

fn planner(request: &PlanRequest<'_>, contestants: &[Box<dyn Contestant>]) -> Planner {
    Planner::new(request, contestants, (6, 6, 0.1), (6, 8, 0.1))
}

/// The same cell of each contestant.
fn cells(plan: &Planner, libraries: &[Library], params: &Params) -> Vec<Cell> {
    let ours = &OURS[..plan.either(1, OURS.len())];
    // Without snmalloc's crate it is a preloaded library, and not lacking.
    let peers = PEERS
        .iter()
        .filter(|name| **name != "snmalloc" || plan.has(name));
    let linked: Vec<&str> = ours.iter().chain(peers).copied().collect();
    let mut cells = cross(&linked, std::slice::from_ref(params));
    let like = Cell::new("malloc", params.clone());
    let (own, others): (Vec<&Library>, Vec<&Library>) = libraries
        .iter()
        .partition(|library| library.contestant == LARDER);
    for (name, libraries) in [(LARDER_PRELOADED, own), (PRELOADED, others)] {
        let paths: Vec<String> = libraries.iter().map(|l| l.path.clone()).collect();
        let preloaded = preloaded_cells(&like, &paths).into_iter();
        cells.extend(preloaded.map(|cell| Cell::new(name, cell.params)));
    }
    cells
}

/// The coarse grid.
pub(super) fn coarse(request: &PlanRequest<'_>, contestants: &[Box<dyn Contestant>]) -> Plan {
    let mut plan = planner(request, contestants);
    let (mut libraries, skipped) = found();
    if plan.quick() {
        libraries.clear();
        plan.skip(
            "most loops and sizes, `global`, and preloaded mallocs",
            "the quick form looks at five cells; `larder measure alloc-sweep --full` sweeps from 16 B to 64 MiB",
        );
    }
    for line in skipped {
        plan.skip(line.what, line.why);
    }
    let most = most_live(request.machine);
    for own in &LOOPS {
        let sizes = own.sizes(plan.quick(), most).into_iter();
        let params = sizes.map(|bytes| own.params(bytes, plan.quick()));
        let all = params.flat_map(|params| cells(&plan, &libraries, &params));
        let all: Vec<Cell> = all.collect();
        let metric = if own.threads > 1 { WALL } else { NS };
        add(&mut plan, own.group, metric, all);
    }
    plan.until(plan.either(GRID_ENDS.0, GRID_ENDS.1));
    plan.finish()
}

fn add(plan: &mut Planner, group: &str, metric: &'static str, cells: Vec<Cell>) {
    // Each thread works, and there may be fewer CPUs than threads.
    let threads = cells
        .iter()
        .map(|cell| cell.params.int("threads").unwrap_or(1));
    let threads = threads.max().unwrap_or(1) as f64;
    let each = plan.either(0.05, 0.04) + 0.005 * (threads - 1.0);
    let seconds = each * (cells.len() + 1) as f64;
    plan.group(group, metric, "heap", seconds, cells);
}

/// The planned groups that a run has.
pub(super) fn planned() -> Vec<&'static str> {
    LOOPS.iter().map(|own| own.group).collect()
}

/// After the grid: the neighbours of its worst cells in the full form, and the worst of all once more.
pub(super) fn stage(
    request: &PlanRequest<'_>,
    contestants: &[Box<dyn Contestant>],
    results: &Results<'_>,
    stage: usize,
) -> Plan {
    let mut plan = planner(request, contestants);
    let stages: &[_] = if plan.quick() {
        &[WORST_CELLS]
    } else {
        &[AROUND, WORST_CELLS]
    };
    match stages.get(stage) {
        Some(&AROUND) => {
            let most = most_live(request.machine);
            let groups = planned();
            let worst = worst_of_heap(results, &groups).take(LOOKED_AROUND);
            let mut all: Vec<Cell> = worst.flat_map(|at| around(results, &at, most)).collect();
            all.sort_unstable();
            all.dedup();
            add(&mut plan, AROUND, NS, all);
            // Their blocks are large, and each round takes long.
            plan.rounds((6, 6, 0.1));
            plan.until(AROUND_ENDS);
        }
        Some(_) => {
            let groups: Vec<&str> = planned().into_iter().chain([AROUND]).collect();
            let most = plan.either(1, ONCE_MORE);
            let worst = once_more(results, &groups, most).into_iter();
            let cells = worst.flat_map(|at| beside(results, &at));
            let cells = cells.map(|at| at.cell.clone()).collect();
            add(&mut plan, WORST_CELLS, NS, cells);
            let rounds = plan.either((6, 8, 0.1), (15, 21, 0.03));
            plan.rounds(rounds);
        }
        None => {}
    }
    plan.finish()
}

/// Every contestant at the factors of a cell.
fn beside<'r, 'a>(results: &'r Results<'a>, of: &At<'r, 'a>) -> Vec<At<'r, 'a>> {
    let wanted = factors(of.cell);
    let all = results.all(of.group);
    all.filter(|at| factors(at.cell) == wanted).collect()
}

/// The factors of a cell without that of its library.
pub(super) fn factors(cell: &Cell) -> Vec<(&str, &model::Factor)> {
    let all = cell.params.iter();
    all.filter(|(name, _)| *name != "library").collect()
}

/// The cells of all contestants half a step below a size and above it, a quarter above, and just above.
fn around(results: &Results<'_>, of: &At<'_, '_>, most: i64) -> Vec<Cell> {
    let Some(bytes) = of.int("bytes") else {
        return Vec::new();
    };
    let sizes = [
        bytes / 4 * 3,
        bytes + 1,
        bytes + bytes / 4,
        bytes + bytes / 2,
    ];
    let known: Vec<Cell> = results.all(of.group).map(|at| at.cell.clone()).collect();
    let like = beside(results, of);
    let cells = sizes.into_iter().flat_map(|bytes| {
        let at = |at: &At<'_, '_>| {
            let params = at.cell.params.clone().with("bytes", bytes);
            let turns = turns(&params, false);
            Cell::new(at.name(), params.with("turns", turns))
        };
        like.iter().map(at).collect::<Vec<_>>()
    });
    let fits = |cell: &Cell| fits(&cell.params, most);
    cells
        .filter(fits)
        .filter(|cell| !known.contains(cell))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::ALLOC_SWEEP;
    use super::*;
    use crate::experiments::tests::plan_of;
    use crate::measure::Depth;

    #[test]
    fn a_peer_that_this_build_lacks_is_named_once() {
        let plan = plan_of(&ALLOC_SWEEP, Depth::Quick);
        let lines = plan.skipped.iter().filter(|s| s.what.contains("snmalloc"));
        assert!(lines.count() <= 1, "{:?}", plan.skipped);
        let built = |s: &&model::Skipped| s.why.contains("this program was built without");
        let lacks = !cfg!(feature = "peers");
        assert_eq!(plan.skipped.iter().any(|s| built(&s)), lacks);
    }

    #[test]
    fn quick_is_short_and_full_has_every_class_and_its_neighbour() {
        let plan = plan_of(&ALLOC_SWEEP, Depth::Quick);
        let cells: usize = plan.groups.iter().map(|g| g.cells.len()).sum();
        // The worst one runs once more.
        assert!(cells / 5 * 6 <= 40, "{cells} cells");
        let sizes = LOOPS[0].sizes(false, MOST_LIVE);
        assert_eq!((sizes[0], sizes.last()), (16, Some(&(64 << 20))));
        for class in SIZES {
            let class = class as i64;
            assert!(sizes.contains(&class) && sizes.contains(&(class + 1)));
        }
    }

    #[test]
    fn no_cell_has_more_live_than_the_machine_bears() {
        let machine = |bytes: &str| {
            let field = model::Field::Known(bytes.to_owned());
            MachineRecord {
                fields: [("memory.total".to_owned(), field)].into(),
                ..MachineRecord::default()
            }
        };
        assert_eq!(most_live(&machine("4194304 bytes")), 1 << 20);
        assert_eq!(most_live(&machine("nothing")), MOST_LIVE);
        for own in &LOOPS {
            assert!(!own.sizes(false, MOST_LIVE).is_empty(), "{}", own.group);
            for bytes in own.sizes(false, 1 << 20) {
                assert!(bytes * own.live * own.threads <= 1 << 20);
            }
        }
    }

    #[test]
    fn factors_name_a_cell_of_one_loop() {
        let mut all: Vec<Params> = LOOPS.iter().map(|own| own.params(64, false)).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), LOOPS.len());
    }
}
