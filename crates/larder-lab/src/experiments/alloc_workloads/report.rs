//! Goals, tables and sentences.

use super::work::ALL;
use super::{INTERPRETERS, OURS, WHOLE};
use crate::contestants::heaps::PRELOADED;
use crate::experiments::allocators::{PEERS, seldom_per_cpu};
use crate::frame::words::{Bound, short, with_absent};
use crate::frame::{
    At, Column, Results, each, finding, grid, listing, not_measured, number, shown, text, worst,
};
use crate::model::{Analysis, Block, Finding, Goal, Section, Table, Value};
use crate::stats::Estimate;

/// Wall time of an operation, all threads together.
const COST: &str = "ns_per_op";
/// Growth of resident memory at its highest, and at the end.
const PEAK: &str = "peak_bytes";
const HELD: &str = "held_bytes";
/// Share of the blocks that took the path that the contestant is named for.
const PATH: &str = "path_share";

/// Rows from which the terminal leaves a table to the page.
const LONG: usize = 24;

/// The workloads whose peak is bound.
const BOUND_PEAK: [&str; 4] = ["larson", "mstress", "xmalloc-test", "sh8bench"];

/// A workload with a number of threads, in which allocators are compared; any cell of it stands for it.
#[derive(Clone, Copy)]
struct Place<'r, 'a>(At<'r, 'a>, &'r Results<'a>);

impl<'r, 'a> Place<'r, 'a> {
    fn threads(&self) -> i64 {
        self.0.int("threads").unwrap_or(0)
    }

    /// The cell of an allocator here.
    fn find(&self, allocator: &str) -> Option<At<'r, 'a>> {
        let threads = [("threads", self.threads())];
        self.1.find(self.0.group, allocator, &threads)
    }

    /// The median of a metric, where it is above zero.
    fn middle(&self, allocator: &str, metric: &str) -> Option<f64> {
        self.find(allocator)?.middle(metric).filter(|v| *v > 0.0)
    }

    /// Of the peers that `wanted` takes the one with the lowest median.
    fn least(&self, metric: &str, wanted: impl Fn(&str) -> bool) -> Option<At<'r, 'a>> {
        let peers = PEERS.into_iter().filter(|peer| wanted(peer));
        peers
            .filter_map(|peer| Some((self.find(peer)?, self.middle(peer, metric)?)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(at, _)| at)
    }

    fn best(&self, metric: &str) -> Option<At<'r, 'a>> {
        self.least(metric, |_| true)
    }

    /// The peer that needs least memory at its peak among those within 10 % of the fastest.
    fn leanest(&self) -> Option<At<'r, 'a>> {
        let fastest = self.best(COST)?.middle(COST)?;
        let is_fast = |peer: &str| {
            self.middle(peer, COST)
                .is_some_and(|ns| ns <= 1.1 * fastest)
        };
        self.least(PEAK, is_fast)
    }
}

/// What a run says.
pub(super) fn of(results: &Results<'_>) -> Analysis {
    // In the order of the plan.
    let workloads = results.view.groups();
    let places = workloads.iter().flat_map(|workload| {
        let mut cells: Vec<_> = results.all(workload).collect();
        cells.sort_by_key(|at| at.int("threads"));
        cells.dedup_by_key(|at| at.int("threads"));
        cells.into_iter().map(|at| Place(at, results))
    });
    let places: Vec<Place<'_, '_>> = places.collect();
    let ran = |name: &&str| places.iter().any(|place| place.find(name).is_some());
    let ours: Vec<&'static str> = OURS.into_iter().filter(ran).collect();
    let standing = |name: &&'static str| Standing::of(&places, name);
    let standings: Vec<Standing<'_, '_>> = ours.iter().map(standing).collect();
    let others = PEERS.into_iter().chain([PRELOADED]).filter(ran);
    let names: Vec<&str> = ours.iter().copied().chain(others).collect();
    let by_place = |metric, title| by_place(&places, &names, metric, title);
    let time = by_place(
        COST,
        "Wall time of an operation, all threads together",
    )
    .noted("An operation is a block there and back. With more threads than CPUs it does not fall further.");
    let peak = by_place(PEAK, "Growth of resident memory at its highest")
        .noted("The workload's own tables are in it, the same for every allocator.");
    let title = "Growth of resident memory when every block is back and every thread has ended";
    let held = by_place(HELD, title);
    let questions = [
        (
            "Which allocator is fastest over the workloads?",
            COST,
            "fastest",
        ),
        (
            "Which allocator needs least memory at its peak?",
            PEAK,
            "leanest",
        ),
    ];
    let sections = [
        ("Time", vec![time, beside_peers(&standings)]),
        ("Memory", vec![peak, held]),
        ("Interpreters", vec![interpreters(results, &names)]),
        ("The path", vec![path(&places)]),
        ("The workloads", vec![what_they_do()]),
    ];
    Analysis {
        findings: questions
            .into_iter()
            .filter_map(|(question, metric, first)| {
                over_all(&places, &names, question, (metric, first))
            })
            .collect(),
        goals: goals(&standings)
            .into_iter()
            .map(|goal| with_absent(goal, &PEERS, |peer| ran(&peer)))
            .collect(),
        sections: sections
            .map(|(title, tables)| Section {
                title: title.to_owned(),
                blocks: tables.into_iter().map(Block::Table).collect(),
            })
            .into(),
        warnings: seldom_per_cpu(results),
        ..Analysis::default()
    }
}

/// How one of larder's allocators stands beside the peers.
struct Standing<'r, 'a> {
    name: &'static str,
    /// Time over the best peer of each place, with the place in words.
    ratios: Vec<(String, Estimate)>,
    /// Of each workload whose peak is bound the place at which it is highest over the leanest of the fast peers, and that peer.
    peaks: [Option<((Place<'r, 'a>, At<'r, 'a>), Estimate)>; BOUND_PEAK.len()],
}

impl<'r, 'a> Standing<'r, 'a> {
    fn of(places: &[Place<'r, 'a>], name: &'static str) -> Self {
        let ratio = |place: &Place<'_, '_>| {
            let peer = place.best(COST)?;
            let ratio = place.find(name)?.ratio(&peer, COST)?;
            let (workload, threads, peer) = (place.0.group, place.threads(), peer.name());
            let at = format!("{workload} with {threads} threads against {peer}");
            Some((at, ratio))
        };
        let peak = |workload| {
            let of = places.iter().filter(|place| place.0.group == workload);
            worst(of.filter_map(|place| {
                let peer = place.leanest()?;
                let ratio = place.find(name)?.ratio(&peer, PEAK)?;
                Some(((*place, peer), ratio))
            }))
        };
        Self {
            name,
            ratios: places.iter().filter_map(ratio).collect(),
            peaks: BOUND_PEAK.map(peak),
        }
    }

    /// The share of the cells in which no peer is faster; its ends are those in which surely and in which possibly none is.
    fn share(&self) -> Option<Estimate> {
        let all = self.ratios.len();
        let share = |is_in: fn(&Estimate) -> bool| {
            self.ratios.iter().filter(|(_, r)| is_in(r)).count() as f64 / all as f64
        };
        (all > 0).then(|| Estimate {
            value: share(|r| r.value <= 1.0),
            lo: share(|r| r.hi <= 1.0),
            hi: share(|r| r.lo <= 1.0),
            n: all,
            level: 0.95,
        })
    }

    fn slowest(&self) -> Option<(String, Estimate)> {
        worst(self.ratios.iter().cloned())
    }

    /// The goal of a workload's peak, with its place in words.
    fn peak(&self, i: usize, bound: Bound) -> (String, Goal) {
        let what = "workloads: peak memory of larder";
        let (name, workload) = (self.name, BOUND_PEAK[i]);
        let Some(((place, peer), ratio)) = self.peaks[i] else {
            let why = format!("{name} or the peers have no six rounds with a peak in {workload}");
            let against = "the leanest of the fast peers";
            return (workload.to_owned(), not_measured(bound, what, against, why));
        };
        let held = place
            .middle(name, HELD)
            .zip(place.middle(peer.name(), HELD));
        let against = format!("{}, the leanest of the fast ones", peer.name());
        let goal = bound.goal(what, against, Some(ratio), held, "");
        (format!("{workload} with {} threads", place.threads()), goal)
    }
}

/// What larder's allocators should reach: each goal speaks of the one that is farthest from it.
fn goals(standings: &[Standing<'_, '_>]) -> Vec<Goal> {
    let farthest = |bound, goal: &dyn Fn(&Standing<'_, '_>) -> Option<Goal>| {
        let named = |own: &Standing<'_, '_>| Some((own.name.to_owned(), goal(own)?));
        each(bound, standings.iter().filter_map(named))
    };
    let best = "best peer of each cell";
    let bound = Bound::AtLeast(0.75);
    let share = farthest(bound, &|own| {
        let measured = own.share();
        let note = measured.map_or_else(String::new, |share| {
            let cells = share.n;
            format!(
                "{cells} cells; the interval counts those that surely and those that possibly are"
            )
        });
        let what = "workloads: share of the cells in which larder is at least as fast";
        Some(bound.goal(what, best, measured, None, note).in_unit(""))
    });
    let bound = Bound::AtMost(1.15);
    let slowest = farthest(bound, &|own| {
        let (place, ratio) = own.slowest().unzip();
        let what = "workloads: time in the worst cell of larder";
        Some(bound.goal(what, best, ratio, None, place.unwrap_or_default()))
    });
    let bound = Bound::AtMost(1.1);
    let peaks = farthest(bound, &|own| {
        let peaks = (0..BOUND_PEAK.len()).map(|i| own.peak(i, bound));
        each(bound, peaks)
    });
    [share, slowest, peaks].into_iter().flatten().collect()
}

/// What the goals speak of, for each of larder's.
fn beside_peers(standings: &[Standing<'_, '_>]) -> Table {
    let peaks = BOUND_PEAK.map(|workload| format!("peak in {workload}"));
    let columns = ["as fast in", "slowest cell"].map(str::to_owned);
    let columns = columns.into_iter().chain(peaks).enumerate();
    grid(
        "Beside the best peer of each cell, and at the peak beside the leanest of the fast ones",
        "allocator",
        standings.iter().map(|own| (own, text(own.name))),
        columns,
        |own, column| match column {
            0 => shown(own.share(), ""),
            1 => shown(own.slowest().map(|(_, r)| r), "x"),
            i => shown(own.peaks[i - 2].map(|(_, r)| r), "x"),
        },
    )
}

/// A row for each place, folded where they are many.
fn by_place<'t>(
    places: &[Place<'t, 't>],
    names: &[&'t str],
    metric: &'t str,
    title: &str,
) -> Table {
    let at = |at: &At<'_, '_>| {
        let is_it = |place: &&Place<'t, 't>| place.0.cell == at.cell && place.0.group == at.group;
        places.iter().find(is_it).copied()
    };
    let mut columns = vec![
        Column::by("workload", |at| text(at.group)),
        Column::factor("threads", "threads"),
    ];
    columns.extend(names.iter().map(|name| {
        Column::by(name, move |cell| {
            let own = at(cell).and_then(|place| place.find(name));
            own.map_or(Value::Empty, |own| own.value(metric))
        })
    }));
    columns.push(Column::by("best peer", move |cell| {
        let best = at(cell).and_then(|place| place.best(metric));
        best.map_or(Value::Empty, |peer| text(peer.name()))
    }));
    folded(listing(title, places.iter().map(|place| place.0), columns))
}

fn folded(table: Table) -> Table {
    if table.rows.len() > LONG {
        table.folded()
    } else {
        table
    }
}

/// Whether the blocks of the contestant that is named for the CPUs' magazines came from there.
fn path(places: &[Place<'_, '_>]) -> Table {
    let cells = places.iter().filter_map(|place| place.find("classes"));
    let counted = cells.filter(|at| at.middle(PATH).is_some());
    let columns = vec![
        Column::by("workload", |at| text(at.group)),
        Column::factor("threads", "threads"),
        Column::middle("share", PATH),
    ];
    let title = "Blocks of classes that came from their CPU's magazines by a restartable sequence";
    folded(listing(title, counted, columns)).noted(
        "A get that finds its CPU's magazines empty takes another way. Blocks that are too large for magazines do not count; a \
         cell of which no block came this way has failed.",
    )
}

/// Heaps that die whole beside those that free each object.
fn interpreters(results: &Results<'_>, names: &[&str]) -> Table {
    let rows = results.values(INTERPRETERS, "threads").into_iter();
    let cells = rows.flat_map(|threads| {
        let all = names.iter().chain(&WHOLE);
        let find = move |name: &&str| results.find(INTERPRETERS, name, &[("threads", threads)]);
        all.filter_map(find)
    });
    let whole = |at: &At<'_, '_>| match WHOLE.contains(&at.name()) {
        true => text("whole"),
        false => text("one by one"),
    };
    let columns = vec![
        Column::factor("threads", "threads"),
        Column::contestant("allocator"),
        Column::by("destroyed", whole),
        Column::metric("time", COST),
        Column::metric("peak", PEAK),
    ];
    let title = "Interpreters of 300 objects in 30 sizes: made, used, destroyed; per object";
    listing(title, cells, columns)
}

fn what_they_do() -> Table {
    grid(
        "What they do",
        "workload",
        ALL.iter().map(|workload| (workload, text(workload.name))),
        [((), "what".to_owned())],
        |workload, ()| text(workload.about),
    )
    .folded()
}

/// An allocator in a sentence.
fn called(name: &str) -> &str {
    match name {
        "heap" => "larder's heap",
        "classes" => "larder's heap without a handle",
        "global" => "Rust's global allocator from larder",
        _ => name,
    }
}

/// How far each allocator lies from the least of each cell; only the cells in which all of them ran count.
fn over_all(
    places: &[Place<'_, '_>],
    names: &[&str],
    question: &str,
    (metric, first): (&str, &str),
) -> Option<Finding> {
    let row = |place: &Place<'_, '_>| -> Option<Vec<f64>> {
        let all = names.iter().map(|name| place.middle(name, metric));
        let logs: Vec<f64> = all.map(|v| v.map(f64::ln)).collect::<Option<_>>()?;
        let least = logs.iter().copied().fold(f64::INFINITY, f64::min);
        Some(logs.into_iter().map(|log| log - least).collect())
    };
    let rows: Vec<Vec<f64>> = places.iter().filter_map(row).collect();
    let cells = rows.len();
    let standing = |(i, name)| {
        let sum: f64 = rows.iter().map(|row| row[i]).sum();
        let least = rows.iter().filter(|row| row[i] <= 0.0).count();
        ((sum / cells as f64).exp().min(f64::MAX), name, least as i64)
    };
    let mut all: Vec<(f64, &str, i64)> = names.iter().copied().enumerate().map(standing).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mean, name, _) = *all.first().filter(|_| cells > 0)?;
    let table = grid(
        format!("Over the {first} of each of {cells} cells"),
        "allocator",
        all.iter().map(|row| (row, text(row.1))),
        ["geometric mean", "cells in which it is first"].map(|name| (name, name.to_owned())),
        |(mean, _, least), column| match *column {
            "geometric mean" => number(Some(*mean)),
            _ => Value::Count(*least),
        },
    );
    let answer = format!(
        "{} is nearest to the {first} of each cell: {} of it in the geometric mean.",
        called(name),
        short(mean)
    );
    Some(Finding {
        table: Some(table),
        ..finding(question, "larder", answer)
    })
}
