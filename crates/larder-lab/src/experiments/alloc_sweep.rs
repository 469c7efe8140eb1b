//! Blocks of every size: what one costs, there and back, from 16 bytes to 64 MiB, and where larder is furthest behind.
//!
//! The rows of other tables have a few chosen sizes. This experiment runs the same two loops at every size and shows the worst size
//! first.

use std::hint::black_box;
use std::ptr::NonNull;

use anyhow::Context;

use super::allocators::{PEERS, Work, peers, preloaded_cells};
use crate::contestants::heaps::{Heap, Heaps, LarderGlobal, LarderHeaps, PRELOADED, libraries};
use crate::contestants::timing::{resident_bytes, thread_cpu_ns};
use crate::frame::words::{Bound, ratio, with_absent};
use crate::frame::{
    self, At, Column, Declared, Planner, Results, bench, cost, cross, each, finding, goal, line,
    lines, listing, median_of, shown, text, together, versus,
};
use crate::measure::{Contestant, Plan, PlanRequest};
use crate::model::{
    Analysis, Block, Cell, Finding, Goal, Measures, Metric, Params, Scale, Section, Value,
};
use crate::stats::Estimate;

const NS: &str = "ns_per_op";
const RESIDENT: &str = "resident_bytes";

const METRICS: &[Metric] = &[
    Metric::cost(
        NS,
        "ns",
        "a block taken and one put back by one thread, CPU time",
    ),
    Metric::cost(
        RESIDENT,
        "B",
        "growth of resident memory by the loop, its live blocks included",
    ),
];

/// Larder's.
const OURS: [&str; 2] = ["heap", "global"];

/// A group each: its name, its title, and the blocks that are live.
const LOOPS: [(&str, &str, i64); 3] = [
    ("pair", "One block, taken and put back at once", 1),
    (
        "churn-64",
        "Random sizes up to this one, 64 blocks live",
        64,
    ),
    (
        "churn-1024",
        "Random sizes up to this one, 1024 blocks live",
        1024,
    ),
];

/// The groups of the plan.
const PLANNED: [&str; 3] = [LOOPS[0].0, LOOPS[1].0, LOOPS[2].0];

/// The group of the worst cells, measured once more.
const WORST_CELLS: &str = "worst";

/// Bytes from which on most allocators leave their size classes.
const LARGE: i64 = 32 << 10;

/// The size of the summary's row, and what it is called.
const SHOWN: (i64, &str) = (64 << 10, "block of 64 KiB");

/// Most bytes that a loop may have live.
const MOST_LIVE: i64 = 256 << 20;

/// What the goals allow.
const MEAN: Bound = Bound::AtMost(0.9);
const WORST: Bound = Bound::AtMost(1.3);

/// The experiment `alloc-sweep`.
pub const ALLOC_SWEEP: Declared = Declared {
    name: "alloc-sweep",
    title: "Blocks of every size: where is an allocator slow?",
    source: "Bonwick and Adams, Magazines and Vmem, USENIX 2001: quantum caches make every size cost what a small one costs",
    question: "At which sizes does a block cost more than the best allocator asks, and how much more?",
    metrics: METRICS,
    contestants,
    brief: None,
    plan,
    afresh: Some(afresh),
    analyse,
};

/// Every contestant, in the order of the tables.
fn contestants() -> Vec<Box<dyn Contestant>> {
    let ours = [
        bench(
            "heap",
            "larder's explicit heap of the thread's own",
            |params| Loop::run(&LarderHeaps::new()?, params),
        ),
        bench(
            "global",
            "larder as Rust's global allocator: sized and aligned",
            |params| Loop::run(&LarderGlobal, params),
        ),
    ];
    ours.into_iter().chain(peers::<Loop>()).collect()
}

fn planner(request: &PlanRequest<'_>, contestants: &[Box<dyn Contestant>]) -> Planner {
    Planner::new(request, contestants, (6, 8, 0.1), (10, 15, 0.05))
}

fn plan(request: &PlanRequest<'_>, contestants: &[Box<dyn Contestant>]) -> Plan {
    let mut plan = planner(request, contestants);
    let names: Vec<&str> = contestants.iter().map(|c| c.name()).collect();
    // What is lacking here has a line of its own, with the remedy.
    let linked = OURS.into_iter().chain(PEERS);
    let linked: Vec<&str> = linked.filter(|name| names.contains(name)).collect();
    let (mut named, skipped) = libraries(&names);
    if plan.quick() {
        named.clear();
    }
    for (group, _, live) in LOOPS {
        let sizes: Vec<i64> = match (plan.quick(), live) {
            (true, 1) => vec![SHOWN.0, 1 << 20],
            (true, 64) => vec![100_000, 4 << 20],
            (true, _) => Vec::new(),
            (false, _) => sizes().filter(|bytes| bytes * live <= MOST_LIVE).collect(),
        };
        let cells: Vec<Cell> = sizes
            .iter()
            .flat_map(|bytes| {
                let turns = match (plan.quick(), *bytes < 1 << 20) {
                    (_, false) => 3000,
                    (true, true) => 20_000,
                    (false, true) => 100_000,
                };
                let params = Params::new()
                    .with("bytes", *bytes)
                    .with("live", live)
                    .with("turns", turns);
                let mut cells = cross(&linked, std::slice::from_ref(&params));
                cells.extend(preloaded_cells(&Cell::new("malloc", params), &named));
                cells
            })
            .collect();
        add(&mut plan, group, cells);
    }
    for line in skipped {
        plan.skip(line.what, line.why);
    }
    if plan.quick() {
        plan.skip(
            "most sizes, 1024 live blocks, and preloaded mallocs",
            "the quick form looks at four sizes; `larder measure alloc-sweep --full` sweeps from 16 B to 64 MiB",
        );
    }
    plan.finish()
}

fn add(plan: &mut Planner, group: &str, cells: Vec<Cell>) {
    let seconds = plan.either(0.03, 0.05) * (cells.len() + 1) as f64;
    plan.group(group, NS, "heap", seconds, cells);
}

/// The worst sizes once more, with every contestant that ran there.
fn afresh(
    request: &PlanRequest<'_>,
    contestants: &[Box<dyn Contestant>],
    results: &Results<'_>,
) -> Plan {
    let mut plan = planner(request, contestants);
    let most = plan.either(2, 20);
    let worst = worst_first(results, &PLANNED).into_iter().take(most);
    let cells = worst.flat_map(|(_, ours, _)| {
        let same = move |at: &At<'_, '_>| at.int("bytes") == ours.int("bytes");
        let cells = results.all(ours.group).filter(same);
        cells
            .filter(|at| at.name() != PRELOADED)
            .map(|at| at.cell.clone())
    });
    add(&mut plan, WORST_CELLS, cells.collect());
    plan.finish()
}

fn analyse(results: &Results<'_>) -> Analysis {
    let pair = |name: &'static str| results.find("pair", name, &[("bytes", SHOWN.0)]);
    let best = results.best("pair", &PEERS, &[("bytes", SHOWN.0)], NS);
    let row = cost(SHOWN.1, "ns", NS, pair("heap"), best, None);
    let one = pair("heap").zip(best).and_then(|(ours, peer)| {
        let question = "What does a block of 64 KiB cost, taken and put back at once?";
        versus(question, "larder's heap", &ours, &peer, NS, "ns")
    });
    Analysis {
        costs: row.into_iter().collect(),
        findings: one.into_iter().chain(furthest(results)).collect(),
        goals: goals(results),
        sections: LOOPS
            .into_iter()
            .map(|(group, title, _)| section(results, group, title))
            .collect(),
        ..Analysis::default()
    }
}

/// The sizes of the full form: each power of two and the size between it and the next, and the neighbours of the edges at which
/// allocators change their ways.
fn sizes() -> impl Iterator<Item = i64> {
    let doublings = (4..=26).map(|n| 1_i64 << n);
    let all = doublings.flat_map(|n| [n, n + n / 2]);
    let edges = [LARGE, 1 << 20].map(|edge| edge + 1);
    let mut all: Vec<i64> = all.filter(|n| *n <= 64 << 20).chain(edges).collect();
    all.sort_unstable();
    all.into_iter()
}

/// The loop that is timed.
struct Loop;

impl Work for Loop {
    fn run<H: Heaps>(heaps: &H, params: &Params) -> anyhow::Result<Measures> {
        let (bytes, live) = (params.count("bytes")?, params.count("live")?);
        let turns = params.count("turns")?;
        let before = resident_bytes();
        let mut heap = heaps.local()?;
        let mut blocks = Blocks::new(&mut heap, live, bytes)?;
        blocks.turn(turns / 8 + live)?;
        let begin = thread_cpu_ns();
        blocks.turn(turns)?;
        let spent = thread_cpu_ns() - begin;
        let resident = resident_bytes().saturating_sub(before);
        Ok(Measures::new()
            .with(NS, spent as f64 / turns as f64)
            .with(RESIDENT, resident as f64))
    }
}

/// Live blocks, each of a random size above half of the largest; a single one always has the largest.
struct Blocks<'h, H: Heap> {
    heap: &'h mut H,
    live: Vec<(NonNull<u8>, usize)>,
    most: usize,
    random: u64,
}

impl<'h, H: Heap> Blocks<'h, H> {
    fn new(heap: &'h mut H, live: usize, most: usize) -> anyhow::Result<Self> {
        let mut blocks = Self {
            heap,
            live: Vec::with_capacity(live),
            most,
            random: 0x9e37_79b9_7f4a_7c15,
        };
        for _ in 0..live {
            let bytes = blocks.size(live);
            let block = blocks.take(bytes)?;
            blocks.live.push((block, bytes));
        }
        Ok(blocks)
    }

    /// Xorshift: a few cycles, the same for every contestant.
    fn next(&mut self) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random as usize
    }

    fn size(&mut self, live: usize) -> usize {
        match live {
            1 => self.most,
            _ => self.most - self.next() % (self.most / 2),
        }
    }

    /// A block whose first and last byte are written: a program that takes one writes it.
    fn take(&mut self, bytes: usize) -> anyhow::Result<NonNull<u8>> {
        let block = self.heap.alloc(bytes).context("there is no memory")?;
        // SAFETY: the block has this many bytes, at least one.
        unsafe {
            block.write_volatile(1);
            block.add(bytes - 1).write_volatile(1);
        }
        Ok(black_box(block))
    }

    fn turn(&mut self, turns: usize) -> anyhow::Result<()> {
        let live = self.live.len();
        for _ in 0..turns {
            let (index, bytes) = (self.next() % live, self.size(live));
            let (block, had) = self.live[index];
            // SAFETY: taken with this size, and replaced at once.
            unsafe { self.heap.free(block, had) };
            // Where there is no memory the loop ends, and the slot must not be freed again.
            match self.take(bytes) {
                Ok(block) => self.live[index] = (block, bytes),
                Err(error) => {
                    self.live.swap_remove(index);
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

impl<H: Heap> Drop for Blocks<'_, H> {
    fn drop(&mut self) {
        for (block, bytes) in self.live.drain(..) {
            // SAFETY: taken with this size, and not freed since.
            unsafe { self.heap.free(block, bytes) };
        }
    }
}

/// A contestant at the size and the live blocks of a cell, in a group that may be another one.
fn same<'r, 'a>(
    results: &'r Results<'a>,
    group: &'r str,
    names: &[&str],
    at: &At<'_, '_>,
) -> Option<At<'r, 'a>> {
    let factors = [("bytes", at.int("bytes")?), ("live", at.int("live")?)];
    results.best(group, names, &factors, NS)
}

/// The ratio to the best peer, larder's cell and the peer's.
type Beside<'r, 'a> = (Estimate, At<'r, 'a>, At<'r, 'a>);

/// The cells of larder's heap in these groups with the best peer of each and the ratio to it, the worst first.
fn worst_first<'r, 'a>(results: &'r Results<'a>, groups: &[&'r str]) -> Vec<Beside<'r, 'a>> {
    let cells = groups.iter().flat_map(|group| results.of(group, "heap"));
    let mut cells: Vec<_> = cells
        .filter_map(|ours| {
            let peer = same(results, ours.group, &PEERS, &ours)?;
            Some((ours.ratio(&peer, NS)?, ours, peer))
        })
        .collect();
    cells.sort_by(|a, b| b.0.value.total_cmp(&a.0.value));
    cells
}

/// The worst cells as they were measured once more, the worst of that first; where none was, those of the plan.
fn judged<'r, 'a>(results: &'r Results<'a>) -> Vec<Beside<'r, 'a>> {
    match worst_first(results, &[WORST_CELLS]) {
        none if none.is_empty() => worst_first(results, &PLANNED),
        once_more => once_more,
    }
}

/// `one block of 64 KiB` or `blocks up to 4 MiB, 64 live`.
fn called(at: &At<'_, '_>) -> String {
    let bytes = at.int("bytes").unwrap_or_default();
    let size = match bytes {
        n if n % (1 << 20) == 0 => format!("{} MiB", n >> 20),
        n if n % (1 << 10) == 0 => format!("{} KiB", n >> 10),
        n => format!("{n} B"),
    };
    match at.int("live") {
        Some(live) if live > 1 => format!("blocks up to {size}, {live} live"),
        _ => format!("one block of {size}"),
    }
}

/// The worst cell against the best peer of each, and all of them, worst first.
fn furthest(results: &Results<'_>) -> Option<Finding> {
    let cells = worst_first(results, &PLANNED);
    let judged = judged(results);
    let (worst, ours, peer) = judged.first()?;
    let answer = format!(
        "{}: larder's heap takes {} of the time of {}, the best peer there.",
        called(ours),
        ratio(worst),
        peer.name()
    );
    let best = |at: &At<'_, '_>| {
        let group = PLANNED.into_iter().find(|group| *group == at.group)?;
        same(results, group, &PEERS, at)
    };
    let once_more = |at: &At<'_, '_>| {
        let of = |names: &[&str]| same(results, WORST_CELLS, names, at);
        of(&["heap"])?.ratio(&of(&PEERS)?, NS)
    };
    let table = listing(
        "larder's heap beside the best peer of each size, worst first",
        cells.iter().map(|(_, ours, _)| *ours),
        vec![
            Column::by("loop", |at| text(at.group)),
            Column::by("bytes", |at| at.factor("bytes")),
            Column::metric("cost", NS),
            Column::by("best peer", |at| {
                best(at).map_or(Value::Empty, |peer| text(peer.name()))
            }),
            Column::against_each("of it", best, NS),
            Column::by("once more", |at| shown(once_more(at), "x")),
        ],
    );
    let question = "At which size is larder furthest behind?";
    Some(Finding {
        table: Some(table),
        ..finding(question, "larder", answer)
    })
}

fn goals(results: &Results<'_>) -> Vec<Goal> {
    let ran = |name: &str| {
        LOOPS
            .iter()
            .any(|(group, ..)| results.of(group, name).next().is_some())
    };
    let is_large = |at: &At<'_, '_>| at.int("bytes").is_some_and(|bytes| bytes > LARGE);
    let per_peer = PEERS.into_iter().filter(|peer| ran(peer)).map(|peer| {
        let what = "blocks beyond 32 KiB, mean over sizes: heap";
        let pairs = LOOPS
            .iter()
            .flat_map(|(group, ..)| results.of(group, "heap"))
            .filter(is_large);
        let ratios: Vec<_> = pairs
            .filter_map(|at| {
                let other = results.find(at.group, peer, &[("bytes", at.int("bytes")?)])?;
                let (ours, theirs) = (at.by_round(NS), other.by_round(NS));
                Some(frame::combined(&ours, &theirs, |a, b| (a / b).ln()))
            })
            .collect();
        let mean = together(&ratios, |logs| {
            (logs.iter().sum::<f64>() / logs.len() as f64).exp()
        });
        (
            peer.to_owned(),
            MEAN.goal(what, peer, median_of(&mean), None, ""),
        )
    });
    let mean = each(MEAN, per_peer).map(|goal| with_absent(goal, &PEERS, ran));
    let judged = judged(results).into_iter();
    let worst = each(
        WORST,
        judged
            .filter(|(_, ours, _)| is_large(ours))
            .map(|(_, ours, peer)| {
                let what = "blocks beyond 32 KiB, worst size: heap";
                (
                    called(&ours),
                    goal(WORST, what, Some(ours), Some(peer), peer.name(), NS),
                )
            }),
    );
    mean.into_iter().chain(worst).collect()
}

/// The cost of each allocator by size, as a chart of ratios to the best peer and as a table.
fn section(results: &Results<'_>, group: &'static str, title: &str) -> Section {
    let ratios = OURS.into_iter().map(|name| {
        let points = results.of(group, name).filter_map(|at| {
            let bytes = at.int("bytes")?;
            let best = results.best(group, &PEERS, &[("bytes", bytes)], NS)?;
            Some((bytes as f64, at.ratio(&best, NS)?))
        });
        let mut points: Vec<_> = points.collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        line(name, points)
    });
    let chart = lines(
        format!("{title}: cost as a ratio to the best peer of each size"),
        ("bytes", Scale::Log),
        ("ratio to the best peer", Scale::Log),
        ratios,
    );
    let by_size = |metric: &str, heading: &str| {
        frame::grid(
            heading.to_owned(),
            "bytes",
            results
                .values(group, "bytes")
                .into_iter()
                .map(|n| (n, Value::Count(n))),
            OURS.into_iter()
                .chain(PEERS)
                .map(|name| (name, name.to_owned())),
            |bytes, name| results.value(group, name, &[("bytes", *bytes)], metric),
        )
    };
    let mut blocks = vec![Block::Table(by_size(NS, "Cost"))];
    if results.values(group, "bytes").len() > 2 {
        blocks.insert(0, Block::Chart(chart));
    }
    blocks.push(Block::Table(listing(
        "Preloaded mallocs",
        results.of(group, PRELOADED),
        vec![
            Column::by("library", |at| at.factor("library")),
            Column::by("bytes", |at| at.factor("bytes")),
            Column::metric("cost", NS),
            Column::metric("resident memory", RESIDENT),
        ],
    )));
    blocks.push(Block::Table(by_size(RESIDENT, "Resident memory")));
    Section {
        title: title.to_owned(),
        blocks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Depth, Experiment};
    use crate::model::{MachineRecord, RunRecord, Sample};

    /// Hands out at most this many blocks, and counts them.
    struct Few {
        left: usize,
        live: usize,
    }

    impl Heap for &mut Few {
        fn alloc(&mut self, bytes: usize) -> Option<NonNull<u8>> {
            self.left = self.left.checked_sub(1)?;
            self.live += 1;
            NonNull::new(Box::into_raw(vec![0_u8; bytes].into_boxed_slice()).cast())
        }

        unsafe fn free(&mut self, block: NonNull<u8>, bytes: usize) {
            self.live -= 1;
            let slice = std::ptr::slice_from_raw_parts_mut(block.as_ptr(), bytes);
            // SAFETY: made above from a boxed slice of this length.
            drop(unsafe { Box::from_raw(slice) });
        }
    }

    #[test]
    fn every_block_is_freed_once_with_its_size_also_when_memory_ends() {
        for left in [5, 20, 100] {
            let mut few = Few { left, live: 0 };
            let mut heap = &mut few;
            if let Ok(mut blocks) = Blocks::new(&mut heap, 10, 1000) {
                assert_eq!(blocks.live.len(), 10);
                assert!(
                    blocks
                        .live
                        .iter()
                        .all(|(_, bytes)| (501..=1000).contains(bytes))
                );
                assert!(blocks.turn(90).is_ok() == (left == 100));
            }
            assert_eq!(few.live, 0, "{left} blocks");
        }
    }

    #[test]
    fn a_peer_that_this_build_lacks_is_named_once() {
        let plan = crate::experiments::tests::plan_of(&ALLOC_SWEEP, Depth::Quick);
        let lines = plan.skipped.iter().filter(|s| s.what.contains("snmalloc"));
        assert!(lines.count() <= 1, "{:?}", plan.skipped);
        let built = |s: &&crate::model::Skipped| s.why.contains("this program was built without");
        assert_eq!(plan.skipped.iter().find(built), None);
    }

    #[test]
    fn the_sizes_ascend_from_16_bytes_to_64_mib() {
        let all: Vec<i64> = sizes().collect();
        assert!(all.is_sorted() && all.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!((all[0], all.last()), (16, Some(&(64 << 20))));
        assert!(all.contains(&(LARGE + 1)));
    }

    /// Samples of the heap and of a peer that takes 10 ns, at sizes where the heap takes so many.
    fn samples(group: &str, heap: &[(i64, f64)]) -> Vec<Sample> {
        let sample = |name: &str, bytes, round: u32, ns: f64| {
            let params = Params::new().with("bytes", bytes).with("live", 1);
            Sample {
                group: group.to_owned(),
                cell: Cell::new(name, params),
                round,
                slot: 0,
                at_us: 0,
                measures: Measures::new().with(NS, ns * (1.0 + 0.001 * f64::from(round % 3))),
            }
        };
        let rounds = (0..7).flat_map(|round| heap.iter().map(move |cell| (round, *cell)));
        rounds
            .flat_map(|(round, (bytes, ns))| {
                [
                    sample("heap", bytes, round, ns),
                    sample("malloc", bytes, round, 10.0),
                ]
            })
            .collect()
    }

    #[test]
    fn the_worst_cell_is_that_of_the_fresh_samples() {
        let mut run = RunRecord {
            samples: samples("pair", &[(1 << 16, 10.0), (1 << 17, 40.0), (1 << 18, 30.0)]),
            ..RunRecord::default()
        };
        let machine = MachineRecord::default();
        let request = PlanRequest {
            depth: Depth::Quick,
            machine: &machine,
            seed: 1,
        };
        let answer = |run: &RunRecord| {
            let analysis = ALLOC_SWEEP.analyse(run);
            let asked = |f: &&Finding| f.question.contains("furthest behind");
            let found = analysis.findings.iter().find(asked);
            found.map(|f| f.answer.clone()).unwrap_or_default()
        };
        assert!(answer(&run).starts_with("one block of 128 KiB"));
        let plan = ALLOC_SWEEP.afresh(&request, &run);
        let cells = plan.groups.iter().flat_map(|group| &group.cells);
        let sizes: Vec<_> = cells
            .map(|c| (&*c.contestant, c.params.int("bytes").ok()))
            .collect();
        let [large, larger] = [Some(1 << 17), Some(1 << 18)];
        assert_eq!(
            sizes,
            [
                ("heap", large),
                ("malloc", large),
                ("heap", larger),
                ("malloc", larger)
            ]
        );
        run.samples
            .extend(samples(WORST_CELLS, &[(1 << 17, 12.0), (1 << 18, 25.0)]));
        let answer = answer(&run);
        assert!(answer.starts_with("one block of 256 KiB"), "{answer}");
        assert!(answer.contains("2.5"), "{answer}");
    }

    #[test]
    fn every_contestant_runs() {
        for contestant in ALLOC_SWEEP.contestants() {
            if contestant.available().is_err() || contestant.name() == "preloaded" {
                continue;
            }
            for (bytes, live) in [(16, 1), (100_000, 64), (2 << 20, 4)] {
                let params = Params::new()
                    .with("bytes", bytes)
                    .with("live", live)
                    .with("turns", 100);
                let measures = contestant.run(&params);
                let ns = measures.map(|m| m.get(NS));
                assert!(
                    ns.is_ok_and(|ns| ns > Some(0.0)),
                    "{} {bytes}",
                    contestant.name()
                );
            }
        }
    }
}
