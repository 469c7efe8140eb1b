//! Goals, tables and sentences: the worst cell first.

use std::collections::BTreeMap;

use super::plan::{AROUND, LOOPS, SHARED, SHOWN, WORST_CELLS, factors, planned};
use super::{LARDER_PRELOADED, NS, OURS, PEAK, WALL};
use crate::contestants::heaps::PRELOADED;
use crate::experiments::allocators::PEERS;
use crate::frame::words::{Bound, ratio, with_absent};
use crate::frame::{
    At, Column, Results, cost, each, finding, goal, grid, line, lines, listing, median_of, shown,
    text, together, versus,
};
use crate::model::{Analysis, Block, Finding, Goal, Scale, Section, Table, Value};
use crate::stats::Estimate;

/// Bytes from which on most allocators leave their size classes.
const LARGE: i64 = 32 << 10;

/// Every peer: those that are linked, and each malloc that is preloaded.
const ALL_PEERS: [&str; PEERS.len() + 1] = {
    let mut all = [PRELOADED; PEERS.len() + 1];
    let (linked, _) = all.split_at_mut(PEERS.len());
    linked.copy_from_slice(&PEERS);
    all
};

/// Growth of resident memory from which on it is compared: what is less, a process costs before its first block.
const SEEN: f64 = 4.0 * 1024.0 * 1024.0;

/// What the goals allow.
const PAIR: Bound = Bound::AtMost(0.5);
const GROWN: Bound = Bound::AtMost(1.5);
const THREADS: Bound = Bound::AtMost(1.1);
const MEAN_PEAK: Bound = Bound::AtMost(1.05);
const WORST_PEAK: Bound = Bound::AtMost(1.3);

/// Sizes with goals of their own: their name, the mean against each peer, and the worst cell against the best one.
const SIDES: [(&str, Bound, Bound); 2] = [
    ("32 KiB to 64 MiB", Bound::AtMost(0.9), Bound::AtMost(1.3)),
    ("below 32 KiB", Bound::AtMost(0.8), Bound::AtMost(1.1)),
];

/// The goal that a cell belongs to.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Aim {
    /// One of [`SIDES`].
    Side(usize),
    Grown,
    Threads,
}

impl Aim {
    fn of(at: &At<'_, '_>) -> Self {
        let bytes = at.int("bytes").unwrap_or_default();
        if at.int("step").is_some() {
            Self::Grown
        } else if at.int("threads") == Some(8) && (SHARED.0..=SHARED.1).contains(&bytes) {
            Self::Threads
        } else {
            Self::Side(usize::from(bytes < LARGE))
        }
    }
}

/// The metric by which a cell is judged: threads that wait for each other take no CPU time.
fn judged_by(at: &At<'_, '_>) -> &'static str {
    match at.int("threads") {
        Some(_) => WALL,
        None => NS,
    }
}

/// Larder's heap beside the best peer.
#[derive(Clone, Copy)]
pub(super) struct Beside<'r, 'a> {
    ratio: Estimate,
    pub(super) ours: At<'r, 'a>,
    peer: At<'r, 'a>,
}

/// The cells of a group with the factors of one, the contestants of `names` only.
fn same<'r, 'a>(
    results: &'r Results<'a>,
    group: &'r str,
    names: &[&str],
    of: &At<'_, '_>,
) -> Vec<At<'r, 'a>> {
    let wanted = factors(of.cell);
    let cells = results.all(group);
    let cells = cells.filter(|at| names.contains(&at.name()) && factors(at.cell) == wanted);
    cells.collect()
}

/// The best of these contestants at the factors of a cell of its group.
fn best<'r, 'a>(results: &'r Results<'a>, names: &[&str], of: &At<'r, 'a>) -> Option<At<'r, 'a>> {
    let metric = judged_by(of);
    let cells = same(results, of.group, names, of).into_iter();
    let cells = cells.filter_map(|at| Some((at.middle(metric)?, at)));
    let best = cells.min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(best.1)
}

/// The cells of a contestant in these groups with the best peer of each and the ratio to it, the worst first.
fn beside<'r, 'a>(
    results: &'r Results<'a>,
    groups: &[&'r str],
    name: &'r str,
) -> Vec<Beside<'r, 'a>> {
    let cells = groups.iter().flat_map(|group| results.of(group, name));
    let mut cells: Vec<_> = cells
        .filter_map(|ours| {
            let peer = best(results, &ALL_PEERS, &ours)?;
            let ratio = ours.ratio(&peer, judged_by(&ours))?;
            Some(Beside { ratio, ours, peer })
        })
        .collect();
    cells.sort_by(|a, b| b.ratio.value.total_cmp(&a.ratio.value));
    cells
}

/// The same of larder's heap.
pub(super) fn worst_first<'r, 'a>(
    results: &'r Results<'a>,
    groups: &[&'r str],
) -> Vec<Beside<'r, 'a>> {
    beside(results, groups, "heap")
}

/// What the plan's groups say of larder's heap, and what those say that ran after it.
struct Cells<'r, 'a> {
    /// The coarse grid.
    grid: Vec<Beside<'r, 'a>>,
    /// The grid and the neighbours of its worst cells.
    all: Vec<Beside<'r, 'a>>,
    /// The worst of them, once more.
    fresh: Vec<Beside<'r, 'a>>,
}

impl<'r, 'a> Cells<'r, 'a> {
    fn of(results: &'r Results<'a>) -> Self {
        let groups = planned();
        let all: Vec<&str> = groups.iter().copied().chain([AROUND]).collect();
        Self {
            grid: worst_first(results, &groups),
            all: worst_first(results, &all),
            fresh: worst_first(results, &[WORST_CELLS]),
        }
    }

    /// The cells of an aim as they were measured once more; where none was, all of them.
    fn judged(&self, is_in: impl Fn(&At<'r, 'a>) -> bool) -> Vec<&Beside<'r, 'a>> {
        let of = |cells: &'_ [Beside<'r, 'a>]| -> Vec<usize> {
            let cells = cells.iter().enumerate();
            cells
                .filter(|(_, b)| is_in(&b.ours))
                .map(|(i, _)| i)
                .collect()
        };
        match of(&self.fresh) {
            none if none.is_empty() => of(&self.all).into_iter().map(|i| &self.all[i]).collect(),
            fresh => fresh.into_iter().map(|i| &self.fresh[i]).collect(),
        }
    }
}

/// What a run says.
pub(super) fn of(results: &Results<'_>) -> Analysis {
    let cells = Cells::of(results);
    let pair = |name: &'static str| results.find("pair", name, &[("bytes", SHOWN)]);
    let best = results.best("pair", &PEERS, &[("bytes", SHOWN)], NS);
    let row = cost("block of 64 KiB", "ns", NS, pair("heap"), best, None);
    let one = pair("heap").zip(best).and_then(|(ours, peer)| {
        let question = "What does a block of 64 KiB cost, taken and put back at once?";
        versus(question, "larder's heap", &ours, &peer, NS, "ns")
    });
    let mut families: Vec<&str> = LOOPS.iter().map(|own| own.family).collect();
    families.dedup();
    Analysis {
        costs: row.into_iter().collect(),
        findings: one.into_iter().chain(furthest(&cells)).collect(),
        goals: goals(results, &cells),
        sections: families
            .into_iter()
            .map(|family| section(results, family))
            .collect(),
        ..Analysis::default()
    }
}

/// A number of bytes in words.
fn size(bytes: i64) -> String {
    match bytes {
        n if n % (1 << 20) == 0 => format!("{} MiB", n >> 20),
        n if n % (1 << 10) == 0 => format!("{} KiB", n >> 10),
        n => format!("{n} B"),
    }
}

/// `one block of 64 KiB` or `blocks up to 4 MiB, 64 live, of each of 8 threads`.
fn called(at: &At<'_, '_>) -> String {
    let bytes = size(at.int("bytes").unwrap_or_default());
    let mut words = match (at.int("step"), at.int("live")) {
        (Some(0), _) => format!("a block that grows by half to {bytes}"),
        (Some(step), _) => format!("a block that grows by {} to {bytes}", size(step)),
        (None, Some(live)) if live > 1 => format!("blocks up to {bytes}, {live} live"),
        _ => format!("one block of {bytes}"),
    };
    let more = [
        at.text("sizes").map(|_| ", of all sizes".to_owned()),
        at.text("order")
            .map(|_| ", the oldest freed first".to_owned()),
        at.int("zeroed").map(|_| ", zeroed".to_owned()),
        at.int("align").map(|n| format!(", aligned to {}", size(n))),
        at.int("threads")
            .map(|n| format!(", of each of {n} threads")),
        at.text("freed")
            .map(|_| ", freed by another thread".to_owned()),
    ];
    words.extend(more.into_iter().flatten());
    words
}

/// The worst cell against the best peer of each, and all of them, worst first.
fn furthest(cells: &Cells<'_, '_>) -> Option<Finding> {
    let Beside {
        ratio: worst,
        ours,
        peer,
    } = cells.judged(|_| true).into_iter().next()?;
    let answer = format!(
        "{}: larder's heap takes {} of the time of {}, the best peer there.",
        called(ours),
        ratio(worst),
        column(peer)
    );
    let of = |at: &At<'_, '_>| {
        let same = |b: &&Beside<'_, '_>| b.ours.cell == at.cell && b.ours.group == at.group;
        cells.all.iter().find(same)
    };
    let once_more = |at: &At<'_, '_>| {
        let mut fresh = cells.fresh.iter();
        fresh.find(|b| b.ours.cell == at.cell).map(|b| b.ratio)
    };
    let table = listing(
        "larder's heap beside the best peer of each cell, worst first",
        cells.all.iter().map(|b| b.ours),
        vec![
            Column::by("cell", |at| text(called(at))),
            Column::by("cost", |at| at.value(judged_by(at))),
            Column::by("best peer", |at| {
                of(at).map_or(Value::Empty, |b| text(column(&b.peer)))
            }),
            Column::by("of it", |at| shown(of(at).map(|b| b.ratio), "x")),
            Column::by("once more", |at| shown(once_more(at), "x")),
        ],
    );
    let question = "At which size is larder furthest behind?";
    Some(Finding {
        table: Some(table),
        ..finding(question, "larder", answer)
    })
}

type ByRound = BTreeMap<u32, f64>;

/// Geometric mean of ratios by round.
fn mean(ratios: &[ByRound]) -> Option<Estimate> {
    let logs = |ratios: &[f64]| ratios.iter().map(|r| r.ln()).sum::<f64>();
    median_of(&together(ratios, |ratios| {
        (logs(ratios) / ratios.len() as f64).exp()
    }))
}

fn goals(results: &Results<'_>, cells: &Cells<'_, '_>) -> Vec<Goal> {
    let groups = planned();
    let ran = |name: &str| {
        groups
            .iter()
            .any(|group| results.of(group, name).next().is_some())
    };
    let against = |bound: Bound, what: &str, cells: Vec<(At<'_, '_>, At<'_, '_>)>| {
        let goals = cells.into_iter().map(|(ours, peer)| {
            let metric = judged_by(&ours);
            let goal = goal(bound, what, Some(ours), Some(peer), column(&peer), metric);
            (called(&ours), goal)
        });
        each(bound, goals)
    };
    let of_grid = |group: &str, bytes: i64| {
        let is_it =
            |b: &&Beside<'_, '_>| b.ours.group == group && b.ours.int("bytes") == Some(bytes);
        let found = cells.grid.iter().find(is_it);
        found.map(|b| (b.ours, b.peer))
    };
    let judged = |aim: Aim| {
        let judged = cells.judged(|at| Aim::of(at) == aim).into_iter();
        judged.map(|b| (b.ours, b.peer)).collect::<Vec<_>>()
    };
    let mut all = Vec::new();
    let linked = |(ours, _)| Some((ours, best(results, &PEERS, &ours)?));
    let pair = of_grid("pair", SHOWN).and_then(linked);
    all.extend(against(
        PAIR,
        "a block of 64 KiB, there and back: heap",
        pair.into_iter().collect(),
    ));
    let peers = columns(
        groups.iter().flat_map(|group| results.all(group)),
        &ALL_PEERS,
    );
    for (side, (sizes, mean_bound, worst_bound)) in SIDES.into_iter().enumerate() {
        let what = format!("blocks of {sizes}, mean: heap");
        let per_peer = peers.iter().map(|peer| {
            let ours = cells
                .grid
                .iter()
                .filter(|b| Aim::of(&b.ours) == Aim::Side(side));
            let ratios = ours.filter_map(|b| {
                let metric = judged_by(&b.ours);
                let others = same(results, b.ours.group, &ALL_PEERS, &b.ours);
                let other = others.iter().find(|at| column(at) == *peer)?;
                let both = [b.ours.by_round(metric), other.by_round(metric)];
                Some(together(&both, |v| v[0] / v[1]))
            });
            let ratios: Vec<ByRound> = ratios.collect();
            let goal = mean_bound.goal(what.clone(), *peer, mean(&ratios), None, "");
            ((*peer).to_owned(), goal)
        });
        all.extend(each(mean_bound, per_peer));
        let what = format!("blocks of {sizes}, worst cell: heap");
        all.extend(against(worst_bound, &what, judged(Aim::Side(side))));
    }
    let grown = [("realloc-64k", 32 << 20), ("realloc-half", 16 << 20)];
    let grown = grown
        .into_iter()
        .filter_map(|(group, bytes)| of_grid(group, bytes));
    let what = "realloc by 64 KiB to 32 MiB, by half to 16 MiB: heap";
    all.extend(against(GROWN, what, grown.collect()));
    let what = "8 threads, blocks of 4 to 200 KiB, worst cell: heap";
    all.extend(against(THREADS, what, judged(Aim::Threads)));
    all.extend(peaks(results, cells));
    let named = all.into_iter().map(|goal| with_absent(goal, &PEERS, ran));
    named.collect()
}

/// Peak memory beside the median of the peers: the mean of the grid's cells, and the worst one.
fn peaks(results: &Results<'_>, cells: &Cells<'_, '_>) -> Vec<Goal> {
    let over_median = |ours: &At<'_, '_>| -> Option<ByRound> {
        let peers = same(results, ours.group, &ALL_PEERS, ours);
        let peers = peers.iter().filter(|at| at.middle(PEAK).is_some());
        let all: Vec<ByRound> = [ours]
            .into_iter()
            .chain(peers)
            .map(|at| at.by_round(PEAK))
            .collect();
        if all.len() < 2 {
            return None;
        }
        let medians = together(&all, |v| median(&v[1..]));
        let is_seen = median(&medians.values().copied().collect::<Vec<_>>()) >= SEEN;
        is_seen.then(|| together(&all, |v| v[0] / median(&v[1..])))
    };
    let ratios = cells
        .grid
        .iter()
        .filter_map(|b| Some((called(&b.ours), over_median(&b.ours)?)));
    let ratios: Vec<(String, ByRound)> = ratios.collect();
    if ratios.is_empty() {
        return Vec::new();
    }
    let by_round: Vec<ByRound> = ratios.iter().map(|(_, ratios)| ratios.clone()).collect();
    let peer = "the median peer of each cell";
    let what = "peak memory, mean of the cells beyond 4 MiB: heap";
    let whole = MEAN_PEAK.goal(what, peer, mean(&by_round), None, "");
    let what = "peak memory, worst of the cells beyond 4 MiB: heap";
    let worst = ratios.iter().map(|(called, ratios)| {
        let goal = WORST_PEAK.goal(what, peer, median_of(ratios), None, "");
        (called.clone(), goal)
    });
    [whole].into_iter().chain(each(WORST_PEAK, worst)).collect()
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.len().saturating_sub(1) / 2, values.len() / 2);
    let at = |i: usize| values.get(i).copied().unwrap_or(f64::NAN);
    f64::midpoint(at(low), at(high))
}

/// The loops of a family: the ratio to the best peer by size as a chart, cost and peak as tables.
fn section(results: &Results<'_>, family: &str) -> Section {
    let groups: Vec<&'static str> = LOOPS
        .iter()
        .filter(|own| own.family == family)
        .map(|own| own.group)
        .collect();
    let ratios = groups.iter().map(|group| {
        let cells = beside(results, &[*group], "heap").into_iter();
        let points = cells.filter_map(|b| Some((b.ours.int("bytes")? as f64, b.ratio)));
        let mut points: Vec<_> = points.collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        line(*group, points)
    });
    let chart = lines(
        format!("{family}: cost of larder's heap as a ratio to the best peer of each size"),
        ("bytes", Scale::Log),
        ("ratio to the best peer", Scale::Log),
        ratios.filter(|line| line.points.len() > 2),
    );
    let linked = OURS.into_iter().chain(PEERS);
    let names: Vec<&str> = linked.chain([LARDER_PRELOADED, PRELOADED]).collect();
    let cost = by_cell(results, &groups, &names, "Cost", judged_by);
    let peak = by_cell(
        results,
        &groups,
        &names,
        "Growth of resident memory at its highest",
        |_| PEAK,
    );
    Section {
        title: family.to_owned(),
        blocks: vec![Block::Chart(chart), Block::Table(cost), Block::Table(peak)],
    }
}

/// A contestant as a column: preloaded libraries by their file.
fn column<'a>(at: &At<'_, 'a>) -> &'a str {
    match at.text("library") {
        Some(library) if at.name() == PRELOADED => library.rsplit('/').next().unwrap_or(library),
        _ => at.name(),
    }
}

/// The columns of the cells of these contestants, in the order of the names.
fn columns<'r, 'a: 'r>(cells: impl Iterator<Item = At<'r, 'a>>, names: &[&str]) -> Vec<&'a str> {
    let cells: Vec<_> = cells.collect();
    let mut all: Vec<&str> = Vec::new();
    for name in names {
        for at in cells.iter().filter(|at| at.name() == *name) {
            if !all.contains(&column(at)) {
                all.push(column(at));
            }
        }
    }
    all
}

/// A metric of every cell of some groups: a row for the factors, a column for each contestant.
fn by_cell(
    results: &Results<'_>,
    groups: &[&str],
    names: &[&str],
    title: &str,
    metric: fn(&At<'_, '_>) -> &'static str,
) -> Table {
    let all = || groups.iter().flat_map(|group| results.all(group));
    let columns = columns(all(), names);
    let mut rows: Vec<Vec<At<'_, '_>>> = Vec::new();
    for at in all() {
        let is_its = |row: &&mut Vec<At<'_, '_>>| {
            row[0].group == at.group && factors(row[0].cell) == factors(at.cell)
        };
        match rows.iter_mut().find(is_its) {
            Some(row) => row.push(at),
            None => rows.push(vec![at]),
        }
    }
    let table = grid(
        title,
        "cell",
        rows.iter().map(|row| (row, text(called(&row[0])))),
        columns.into_iter().map(|name| (name, name.to_owned())),
        |row, name| {
            let at = row.iter().find(|at| column(at) == *name);
            at.map_or(Value::Empty, |at| at.value(metric(at)))
        },
    );
    if table.rows.len() > 12 {
        table.folded()
    } else {
        table
    }
}

#[cfg(test)]
mod tests {
    use super::super::ALLOC_SWEEP;
    use super::*;
    use crate::measure::{Depth, Experiment, PlanRequest};
    use crate::model::{Cell, GoalState, MachineRecord, Measures, Params, RunRecord, Sample};

    /// Samples of the heap and of a peer that takes 10 ns, at sizes where the heap takes so many.
    fn samples(group: &str, heap: &[(i64, f64)]) -> Vec<Sample> {
        let sample = |name: &str, bytes, round: u32, ns: f64| {
            let params = Params::new().with("bytes", bytes).with("live", 1);
            let noise = 1.0 + 0.001 * f64::from(round % 3);
            Sample {
                group: group.to_owned(),
                cell: Cell::new(name, params),
                round,
                slot: 0,
                at_us: 0,
                measures: Measures::new()
                    .with(NS, ns * noise)
                    .with(PEAK, ns * noise * f64::from(1 << 20)),
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

    fn answer(run: &RunRecord) -> String {
        let analysis = ALLOC_SWEEP.analyse(run);
        let asked = |f: &&Finding| f.question.contains("furthest behind");
        let found = analysis.findings.iter().find(asked);
        found.map(|f| f.answer.clone()).unwrap_or_default()
    }

    /// What runs in a stage: contestants and sizes.
    fn stage(run: &RunRecord, depth: Depth, stage: usize) -> Vec<(String, i64)> {
        let machine = MachineRecord::default();
        let request = PlanRequest {
            depth,
            machine: &machine,
            seed: 1,
        };
        let plan = ALLOC_SWEEP.afresh(&request, run, stage);
        let cells = plan.groups.iter().flat_map(|group| &group.cells);
        let cells = cells.map(|c| (c.contestant.clone(), c.params.int("bytes").expect("a size")));
        cells.collect()
    }

    #[test]
    fn the_worst_cell_is_that_of_the_fresh_samples() {
        let sweep = [(1 << 16, 10.0), (1 << 17, 40.0), (1 << 18, 30.0)];
        let mut run = RunRecord {
            samples: samples("pair", &sweep),
            ..RunRecord::default()
        };
        assert!(answer(&run).starts_with("one block of 128 KiB"));
        let both = |bytes| [("heap".to_owned(), bytes), ("malloc".to_owned(), bytes)];
        assert_eq!(stage(&run, Depth::Quick, 0), both(1 << 17));
        assert!(stage(&run, Depth::Quick, 1).is_empty());
        // The neighbours of all three, without those that the grid has.
        let around = stage(&run, Depth::Full, 0);
        assert!(around.contains(&both(96 << 10)[0]) && around.contains(&both((1 << 17) + 1)[1]));
        assert!(!around.contains(&both(1 << 17)[0]));
        run.samples.extend(samples(AROUND, &[(96 << 10, 50.0)]));
        assert_eq!(stage(&run, Depth::Full, 0), around);
        let worst = stage(&run, Depth::Full, 1);
        let sizes = [96 << 10, 1 << 17, 1 << 18, 1 << 16];
        assert_eq!(worst, sizes.map(both).concat());
        assert!(stage(&run, Depth::Full, 2).is_empty());
        let fresh = [(1 << 17, 12.0), (1 << 18, 25.0)];
        run.samples.extend(samples(WORST_CELLS, &fresh));
        let answer = answer(&run);
        assert!(answer.starts_with("one block of 256 KiB"), "{answer}");
        assert!(answer.contains("2.5"), "{answer}");
    }

    #[test]
    fn each_goal_speaks_of_its_cells() {
        let run = RunRecord {
            samples: samples("pair", &[(1 << 10, 7.0), (1 << 16, 4.0), (1 << 17, 20.0)]),
            ..RunRecord::default()
        };
        let analysis = ALLOC_SWEEP.analyse(&run);
        let state = |what: &str| {
            let goal = analysis
                .goals
                .iter()
                .find(|goal| goal.what.starts_with(what));
            goal.map(|goal| (goal.state, goal.measured.map(|m| (m.value * 100.0).round())))
        };
        assert_eq!(
            state("a block of 64 KiB"),
            Some((GoalState::Met, Some(40.0)))
        );
        let small = Some((GoalState::Met, Some(70.0)));
        assert_eq!(state("blocks of below 32 KiB, mean"), small);
        assert_eq!(state("blocks of below 32 KiB, worst"), small);
        // The mean of 0.4 and 2.
        let large = Some((GoalState::Met, Some(89.0)));
        assert_eq!(state("blocks of 32 KiB to 64 MiB, mean"), large);
        let worst = Some((GoalState::Missed, Some(200.0)));
        assert_eq!(state("blocks of 32 KiB to 64 MiB, worst"), worst);
        assert_eq!(state("peak memory, worst"), worst);
        assert_eq!(state("realloc"), None);
    }

    #[test]
    fn a_preloaded_malloc_is_a_peer() {
        let mut run = RunRecord {
            samples: samples("pair", &[(1 << 17, 20.0)]),
            ..RunRecord::default()
        };
        let linked = run.samples.iter().filter(|s| s.cell.contestant == "malloc");
        let preloaded = linked.cloned().map(|mut sample| {
            let params = sample
                .cell
                .params
                .with_text("library", "/lib/libtcmalloc.so.4");
            sample.cell = Cell::new(PRELOADED, params);
            sample.measures = Measures::new().with(NS, 5.0);
            sample
        });
        let preloaded: Vec<Sample> = preloaded.collect();
        run.samples.extend(preloaded);
        assert!(answer(&run).contains("the time of libtcmalloc.so.4"));
        assert_eq!(stage(&run, Depth::Full, 1).len(), 3);
        let goals = ALLOC_SWEEP.analyse(&run).goals;
        let mean = goals.iter().find(|goal| goal.what.contains("64 MiB, mean"));
        let measured = mean.and_then(|goal| goal.measured.as_ref());
        assert_eq!(measured.map(|m| m.value.round()), Some(4.0));
    }

    #[test]
    fn every_contestant_runs_every_kind() {
        let plain = || {
            Params::new()
                .with("bytes", 5000)
                .with("live", 8)
                .with("turns", 100)
        };
        let kinds = [
            plain(),
            plain().with("bytes", 16).with("live", 1),
            plain().with_text("sizes", "mixed"),
            plain().with("bytes", 2 << 20).with_text("order", "fifo"),
            plain().with("threads", 3).with_text("freed", "elsewhere"),
            plain()
                .with("step", 4096)
                .with("bytes", 100_000)
                .with("live", 1)
                .with("turns", 2),
            plain()
                .with("step", 0)
                .with("bytes", 1 << 20)
                .with("live", 1)
                .with("turns", 2),
            plain().with("zeroed", 1),
            plain().with("align", 4096),
        ];
        // The first needs another process, and the blocks of the last die with their heap.
        let others = [PRELOADED, LARDER_PRELOADED, "mimalloc-heap"];
        for contestant in ALLOC_SWEEP.contestants() {
            if contestant.available().is_err() || others.contains(&contestant.name()) {
                continue;
            }
            for params in &kinds {
                let ran = contestant.run(params).map(|m| m.get(NS));
                assert!(
                    ran.is_ok_and(|ns| ns > Some(0.0)),
                    "{} {params}",
                    contestant.name()
                );
            }
        }
    }
}
