//! Goals, tables and sentences: the worst cell first.

use std::collections::BTreeMap;

use super::plan::{AROUND, LOOPS, SHARED, SHOWN, WORST_CELLS, factors, planned};
use super::{ELSEWHERE, LARDER_PRELOADED, NS, OURS, PEAK, WALL};
use crate::contestants::heaps::PRELOADED;
use crate::experiments::allocators::PEERS;
use crate::frame::words::{Bound, noted, ratio, with_absent};
use crate::frame::{
    At, Column, Results, cost, each, finding, goal, grid, line, lines, listing, mean_ratio,
    median_of, shown, text, together, versus,
};
use crate::model::{Analysis, Block, Finding, Goal, GoalState, Scale, Section, Table, Value};
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

/// Of the blocks that another thread should free, this share at least makes it a cell of such blocks.
const MOSTLY: f64 = 0.9;

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

/// What is measured once more of each aim, of the peaks and of the preloaded malloc, before the worst of all.
const OF_EACH: usize = 3;

/// With more cells than this the worst of them is so partly by chance, and says little before it was measured once more.
const FEW: usize = 5;

/// Cells in a table of the worst ones. The cost of all is in the tables by size.
const LISTED: usize = 100;

/// The goal that a cell belongs to.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Aim {
    /// One of [`SIDES`].
    Side(usize),
    Grown,
    Threads,
}

const AIMS: [Aim; 4] = [Aim::Side(0), Aim::Side(1), Aim::Grown, Aim::Threads];

/// One of larder's contestants, and what it is compared with.
#[derive(Debug, Clone, Copy)]
struct Own {
    name: &'static str,
    called: &'static str,
    peers: &'static [&'static str],
}

const HEAP: Own = Own {
    name: "heap",
    called: "larder's heap",
    peers: &ALL_PEERS,
};

/// What is called through the C library's names, as are those beside it.
const MALLOC: Own = Own {
    name: LARDER_PRELOADED,
    called: "larder's malloc, preloaded,",
    peers: &["malloc", PRELOADED],
};

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

/// One of larder's beside the best peer.
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

/// The best of these contestants at the factors of a cell of its group. One that ended too early to be compared does not hide the others.
fn best<'r, 'a>(results: &'r Results<'a>, names: &[&str], of: &At<'r, 'a>) -> Option<At<'r, 'a>> {
    let metric = judged_by(of);
    let cells = same(results, of.group, names, of).into_iter();
    let cells = cells.filter(|at| of.ratio(at, metric).is_some());
    let cells = cells.filter_map(|at| Some((at.middle(metric)?, at)));
    let best = cells.min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(best.1)
}

/// The cells of one of larder's in these groups with the best peer of each and the ratio to it, the worst first.
fn worst_first<'r, 'a>(
    results: &'r Results<'a>,
    groups: &[&'r str],
    own: Own,
) -> Vec<Beside<'r, 'a>> {
    let cells = groups.iter().flat_map(|group| results.of(group, own.name));
    let mut cells: Vec<_> = cells
        .filter_map(|ours| {
            let peer = best(results, own.peers, &ours)?;
            let ratio = ours.ratio(&peer, judged_by(&ours))?;
            Some(Beside { ratio, ours, peer })
        })
        .collect();
    cells.sort_by(|a, b| b.ratio.value.total_cmp(&a.ratio.value));
    cells
}

/// The worst cells of larder's heap in these groups.
pub(super) fn worst_of_heap<'r, 'a>(
    results: &'r Results<'a>,
    groups: &[&'r str],
) -> impl Iterator<Item = At<'r, 'a>> {
    worst_first(results, groups, HEAP)
        .into_iter()
        .map(|b| b.ours)
}

/// The cells that are measured once more: the worst, then some of each aim, of the largest peaks and of the preloaded malloc, and the next
/// worst.
pub(super) fn once_more<'r, 'a>(
    results: &'r Results<'a>,
    groups: &[&'r str],
    most: usize,
) -> Vec<At<'r, 'a>> {
    let heap = worst_first(results, groups, HEAP);
    let all = || heap.iter().map(|b| b.ours);
    let of_aims = AIMS.into_iter().flat_map(|aim| {
        let cells = all().filter(move |at| Aim::of(at) == aim);
        cells.take(OF_EACH)
    });
    let peaks = over_median(results, &heap).into_iter();
    let peaks = peaks.map(|(at, _)| at).take(OF_EACH);
    let malloc = worst_first(results, groups, MALLOC).into_iter();
    let malloc = malloc.map(|b| b.ours).take(OF_EACH);
    let mut kept: Vec<At<'r, 'a>> = Vec::new();
    for at in all()
        .take(1)
        .chain(of_aims)
        .chain(peaks)
        .chain(malloc)
        .chain(all())
    {
        let is_new = |at: &At<'_, '_>| kept.iter().all(|k| factors(k.cell) != factors(at.cell));
        if kept.len() < most && is_new(&at) {
            kept.push(at);
        }
    }
    kept
}

/// What the plan's groups say of one of larder's, and what those say that ran after it.
struct Cells<'r, 'a> {
    /// The coarse grid.
    grid: Vec<Beside<'r, 'a>>,
    /// The grid and the neighbours of its worst cells.
    all: Vec<Beside<'r, 'a>>,
    /// The worst of them, once more.
    fresh: Vec<Beside<'r, 'a>>,
}

impl<'r, 'a> Cells<'r, 'a> {
    fn of(results: &'r Results<'a>, own: Own) -> Self {
        let groups = planned();
        let all: Vec<&str> = groups.iter().copied().chain([AROUND]).collect();
        Self {
            grid: worst_first(results, &groups, own),
            all: worst_first(results, &all, own),
            fresh: worst_first(results, &[WORST_CELLS], own),
        }
    }

    /// The cells of an aim as they were measured once more; where none was, all of them. And whether the worst of these may be so by chance.
    fn judged(&self, is_in: impl Fn(&At<'r, 'a>) -> bool) -> (Vec<&Beside<'r, 'a>>, bool) {
        let fresh: Vec<_> = self.fresh.iter().filter(|b| is_in(&b.ours)).collect();
        if !fresh.is_empty() {
            return (fresh, false);
        }
        let all: Vec<_> = self.all.iter().filter(|b| is_in(&b.ours)).collect();
        let is_chosen = all.len() > FEW;
        (all, is_chosen)
    }
}

/// A goal on the worst of many cells that were not measured once more: chance makes it worse than it is, so that it is missed does not follow.
fn unsure(goal: Goal, is_chosen: bool) -> Goal {
    if !is_chosen || goal.state != GoalState::Missed {
        return goal;
    }
    let state = GoalState::Open;
    noted(Goal { state, ..goal }, NOT_AGAIN)
}

const NOT_AGAIN: &str = "the worst of many cells, not measured once more";

/// What a run says.
pub(super) fn of(results: &Results<'_>) -> Analysis {
    let cells = Cells::of(results, HEAP);
    let malloc = Cells::of(results, MALLOC);
    let means = means(results, &cells);
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
        findings: [
            one,
            furthest(&cells, HEAP, "At which size is larder furthest behind?"),
            furthest(
                &malloc,
                MALLOC,
                "At which size is larder's malloc furthest behind, all preloaded?",
            ),
            on_the_whole(&means),
        ]
        .into_iter()
        .flatten()
        .collect(),
        goals: goals(results, &cells, &means),
        sections: families
            .into_iter()
            .map(|family| section(results, family))
            .collect(),
        warnings: seldom_elsewhere(results).into_iter().collect(),
        ..Analysis::default()
    }
}

/// Says in how many cells whose blocks another thread should free it freed too few.
fn seldom_elsewhere(results: &Results<'_>) -> Option<String> {
    let cells = planned().into_iter().flat_map(|group| {
        let shares = results.all(group).filter_map(|at| at.middle(ELSEWHERE));
        shares.collect::<Vec<_>>()
    });
    let (few, all) = cells.fold((0, 0), |(few, all), share| {
        (few + usize::from(share < MOSTLY), all + 1)
    });
    (few > 0).then(|| {
        format!(
            "In {few} of {all} cells (those of each contestant count) another thread freed less than nine tenths of the blocks that it should free. These say little beside others."
        )
    })
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

/// The worst cell against the best peer of each, and the next ones, worst first.
fn furthest(cells: &Cells<'_, '_>, own: Own, question: &str) -> Option<Finding> {
    let (judged, is_chosen) = cells.judged(|_| true);
    let Beside {
        ratio: worst,
        ours,
        peer,
    } = judged.into_iter().next()?;
    let again = match is_chosen {
        true => format!(" ({NOT_AGAIN})"),
        false => String::new(),
    };
    let answer = format!(
        "{}: {} takes {} of the time of {}, the best peer there{again}.",
        called(ours),
        own.called,
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
        format!(
            "{} beside the best peer of each cell, worst first",
            own.called
        ),
        cells.all.iter().map(|b| b.ours).take(LISTED),
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
    Some(Finding {
        table: Some(table),
        ..finding(question, "larder", answer)
    })
}

type ByRound = BTreeMap<u32, f64>;

/// In the tables of means: not one peer, but the best one of each cell.
const BEST: &str = "the best peer of each cell";

/// The heap's cost in the cells of a side by that of a peer, by round.
fn ratios(
    results: &Results<'_>,
    cells: &[Beside<'_, '_>],
    side: usize,
    peer: &str,
) -> Vec<ByRound> {
    let ours = cells.iter().filter(|b| Aim::of(&b.ours) == Aim::Side(side));
    let by_round = ours.filter_map(|b| {
        let metric = judged_by(&b.ours);
        let other = match peer {
            BEST => b.peer,
            peer => {
                let others = same(results, b.ours.group, &ALL_PEERS, &b.ours);
                others.into_iter().find(|at| column(at) == peer)?
            }
        };
        let both = [b.ours.by_round(metric), other.by_round(metric)];
        let ratio = together(&both, |v| v[0] / v[1]);
        median_of(&ratio).is_some().then_some(ratio)
    });
    by_round.collect()
}

/// Means of the heap's cost over the cells of each side, by that of a peer, and of how many cells.
struct Mean<'a> {
    peer: &'a str,
    sides: [(Option<Estimate>, usize); SIDES.len()],
}

/// Those against each peer, and at last against the best one of each cell.
fn means<'a>(results: &Results<'a>, cells: &Cells<'_, 'a>) -> Vec<Mean<'a>> {
    let groups = planned();
    let all = groups.iter().flat_map(|group| results.all(group));
    let peers = columns(all, &ALL_PEERS).into_iter().chain([BEST]);
    let of = |peer| Mean {
        peer,
        sides: std::array::from_fn(|side| {
            let ratios = ratios(results, &cells.grid, side, peer);
            (mean_ratio(&ratios), ratios.len())
        }),
    };
    peers.map(of).collect()
}

/// The means as a table.
fn on_the_whole(means: &[Mean<'_>]) -> Option<Finding> {
    let [(large, _), (small, _)] = means.last()?.sides;
    let (large, small) = (large?, small?);
    // The mean of one cell is none.
    if means.last()?.sides.iter().any(|(_, cells)| *cells < 2) {
        return None;
    }
    let sides = SIDES.into_iter().enumerate();
    let columns = sides.flat_map(|(side, (sizes, ..))| {
        let cells = format!("cells {sizes}");
        [((side, false), sizes.to_owned()), ((side, true), cells)]
    });
    let table = grid(
        "Geometric means of the cost of larder's heap, as a ratio to each peer's",
        "peer",
        means.iter().map(|mean| (mean, text(mean.peer))),
        columns,
        |mean, (side, is_count)| match (mean.sides[*side], is_count) {
            ((_, cells), true) => Value::Count(cells as i64),
            ((ratio, _), false) => shown(ratio, "x"),
        },
    );
    let answer = format!(
        "From 32 KiB on larder's heap takes {} of the time of the best peer of each cell, below that {}.",
        ratio(&large),
        ratio(&small)
    );
    let question =
        "What do blocks cost in the mean, but for realloc and 8 threads from 4 to 200 KiB?";
    Some(Finding {
        table: Some(table),
        ..finding(question, "larder", answer)
    })
}

fn goals(results: &Results<'_>, cells: &Cells<'_, '_>, means: &[Mean<'_>]) -> Vec<Goal> {
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
    let worst_of = |bound: Bound, what: &str, aim: Aim| {
        let (judged, is_chosen) = cells.judged(|at| Aim::of(at) == aim);
        let judged = judged.into_iter().map(|b| (b.ours, b.peer));
        against(bound, what, judged.collect()).map(|goal| unsure(goal, is_chosen))
    };
    let mut all = Vec::new();
    let linked = |(ours, _)| Some((ours, best(results, &PEERS, &ours)?));
    let pair = of_grid("pair", SHOWN).and_then(linked);
    all.extend(against(
        PAIR,
        "a block of 64 KiB, there and back: heap",
        pair.into_iter().collect(),
    ));
    for (side, (sizes, mean_bound, worst_bound)) in SIDES.into_iter().enumerate() {
        let what = format!("blocks of {sizes}, mean: heap");
        let single = means.iter().filter(|mean| mean.peer != BEST);
        let per_peer = single.map(|mean| {
            let goal = mean_bound.goal(what.clone(), mean.peer, mean.sides[side].0, None, "");
            (mean.peer.to_owned(), goal)
        });
        all.extend(each(mean_bound, per_peer));
        let what = format!("blocks of {sizes}, worst cell: heap");
        all.extend(worst_of(worst_bound, &what, Aim::Side(side)));
    }
    let grown = [("realloc-64k", 32 << 20), ("realloc-half", 16 << 20)];
    let grown = grown
        .into_iter()
        .filter_map(|(group, bytes)| of_grid(group, bytes));
    let what = "realloc by 64 KiB to 32 MiB, by half to 16 MiB: heap";
    all.extend(against(GROWN, what, grown.collect()));
    let what = "8 threads, blocks of 4 to 200 KiB, worst cell: heap";
    all.extend(worst_of(THREADS, what, Aim::Threads));
    all.extend(peaks(results, cells));
    let named = all.into_iter().map(|goal| with_absent(goal, &PEERS, ran));
    named.collect()
}

/// Peak memory of these cells beside the median of the peers, by round, the worst first.
fn over_median<'r, 'a>(
    results: &'r Results<'a>,
    cells: &[Beside<'r, 'a>],
) -> Vec<(At<'r, 'a>, ByRound)> {
    let of = |ours: &At<'r, 'a>| -> Option<(Estimate, ByRound)> {
        let peers = same(results, ours.group, &ALL_PEERS, ours);
        let peers = peers.iter().filter(|at| at.ratio(ours, PEAK).is_some());
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
        let ratio = is_seen.then(|| together(&all, |v| v[0] / median(&v[1..])))?;
        Some((median_of(&ratio)?, ratio))
    };
    let cells = cells.iter().filter_map(|b| Some((b.ours, of(&b.ours)?)));
    let mut cells: Vec<_> = cells.collect();
    cells.sort_by(|(_, (a, _)), (_, (b, _))| b.value.total_cmp(&a.value));
    let cells = cells.into_iter();
    cells.map(|(at, (_, ratio))| (at, ratio)).collect()
}

/// Goals on peak memory: the mean of the grid's cells, and the worst one, as it was measured once more.
fn peaks(results: &Results<'_>, cells: &Cells<'_, '_>) -> Vec<Goal> {
    let grid = over_median(results, &cells.grid);
    if grid.is_empty() {
        return Vec::new();
    }
    let by_round: Vec<ByRound> = grid.iter().map(|(_, ratio)| ratio.clone()).collect();
    let peer = "the median peer of each cell";
    let what = "peak memory, mean of the cells beyond 4 MiB: heap";
    let whole = MEAN_PEAK.goal(what, peer, mean_ratio(&by_round), None, "");
    let what = "peak memory, worst of the cells beyond 4 MiB: heap";
    // What was measured once more is mostly what is slow, so it says nothing of the peaks unless the largest is there.
    let (all, fresh) = (
        over_median(results, &cells.all),
        over_median(results, &cells.fresh),
    );
    let is_again = all.first().is_some_and(|(worst, _)| {
        let mut fresh = fresh.iter();
        fresh.any(|(at, _)| factors(at.cell) == factors(worst.cell))
    });
    let is_chosen = !is_again && all.len() > FEW;
    let judged = if is_again { fresh } else { all };
    let worst = judged.into_iter().map(|(at, ratio)| {
        let goal = WORST_PEAK.goal(what, peer, median_of(&ratio), None, "");
        (called(&at), goal)
    });
    let worst = each(WORST_PEAK, worst).map(|goal| unsure(goal, is_chosen));
    [whole].into_iter().chain(worst).collect()
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
        let cells = worst_first(results, &[*group], HEAP).into_iter();
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

    /// The same samples by another contestant, which takes so much of the time.
    fn of_other(name: &str, like: &str, samples: &[Sample], share: f64) -> Vec<Sample> {
        let like = samples.iter().filter(|s| s.cell.contestant == like);
        let other = like.cloned().map(|mut sample| {
            sample.cell = Cell::new(name, sample.cell.params);
            let ns = sample.measures.get(NS).expect("a time");
            sample.measures = Measures::new().with(NS, ns * share);
            sample
        });
        other.collect()
    }

    #[test]
    fn a_peer_that_ends_early_does_not_hide_the_others() {
        let mut run = RunRecord {
            samples: samples("pair", &[(1 << 17, 20.0)]),
            ..RunRecord::default()
        };
        let fast = of_other("mimalloc", "malloc", &run.samples, 0.5);
        run.samples.extend(fast.iter().take(2).cloned());
        assert!(answer(&run).contains("takes 2"), "{}", answer(&run));
        assert!(answer(&run).contains("the time of malloc"));
        run.samples.extend(fast.into_iter().skip(2));
        assert!(answer(&run).contains("the time of mimalloc"));
    }

    #[test]
    fn the_worst_of_many_cells_decides_nothing_before_it_is_measured_once_more() {
        let sizes = (0..7).map(|n| (1 << (16 + n), 20.0 + f64::from(n)));
        let sizes: Vec<_> = sizes.collect();
        let mut run = RunRecord {
            samples: samples("pair", &sizes),
            ..RunRecord::default()
        };
        let states = |run: &RunRecord| {
            let goals = ALLOC_SWEEP.analyse(run).goals;
            let of = |what: &str| goals.iter().find(|goal| goal.what.contains(what));
            ["64 MiB, worst", "peak memory, worst"].map(|what| of(what).map(|goal| goal.state))
        };
        assert_eq!(states(&run), [Some(GoalState::Open); 2]);
        assert!(answer(&run).contains(NOT_AGAIN));
        run.samples.extend(samples(WORST_CELLS, &sizes[6..]));
        assert_eq!(states(&run), [Some(GoalState::Missed); 2]);
        assert!(!answer(&run).contains(NOT_AGAIN));
    }

    #[test]
    fn means_are_of_each_peer_and_of_the_best_of_each_cell() {
        let sweep = [
            (1 << 10, 20.0),
            (1 << 11, 20.0),
            (1 << 16, 40.0),
            (1 << 17, 10.0),
        ];
        let mut run = RunRecord {
            samples: samples("pair", &sweep),
            ..RunRecord::default()
        };
        // It takes half of malloc's time in one of the cells, and twice as much in the others.
        let mut other = of_other("mimalloc", "malloc", &run.samples, 2.0);
        for sample in &mut other {
            if sample.cell.params.int("bytes").is_ok_and(|n| n == 1 << 16) {
                sample.measures = Measures::new().with(NS, 5.0);
            }
        }
        run.samples.extend(other);
        let analysis = ALLOC_SWEEP.analyse(&run);
        let found = analysis
            .findings
            .iter()
            .find(|f| f.question.contains("in the mean"));
        let table = found.and_then(|f| f.table.as_ref()).expect("a table");
        let rows = table.rows.iter().map(|row| {
            let of = |value: &Value| match value {
                Value::Estimate(e, _) => (e.value * 100.0).round() / 100.0,
                Value::Count(n) => *n as f64,
                _ => f64::NAN,
            };
            row[1..].iter().map(of).collect::<Vec<_>>()
        });
        let rows: Vec<_> = rows.collect();
        // From 32 KiB on 40 and 10 over 10; over 5 and 20; over 5 and 10.
        let expected = [
            [2.0, 2.0, 2.0, 2.0],
            [2.0, 2.0, 1.0, 2.0],
            [2.83, 2.0, 2.0, 2.0],
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn the_preloaded_malloc_is_compared_with_what_is_called_as_it_is() {
        let mut run = RunRecord {
            samples: samples("pair", &[(1 << 17, 5.0)]),
            ..RunRecord::default()
        };
        let ours = of_other(LARDER_PRELOADED, "malloc", &run.samples, 3.0);
        let linked = of_other("mimalloc", "malloc", &run.samples, 0.5);
        run.samples.extend(ours.into_iter().chain(linked));
        let analysis = ALLOC_SWEEP.analyse(&run);
        let found = analysis
            .findings
            .iter()
            .find(|f| f.question.contains("all preloaded"));
        let answer = &found.expect("asked").answer;
        assert!(answer.contains("takes 3"), "{answer}");
        assert!(answer.contains("the time of malloc"), "{answer}");
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
