//! Public traces in two halves by origin, each at eight shares of its blocks, and the cells where the default does worst.

use super::{DEFAULT, FRAMES, HITS, LRU, OPT, Standing, USES, digits};
use crate::frame::words::{Bound, exact};
use crate::frame::{self, Planner, Results, finding, grid, not_measured, text};
use crate::model::{Block, Cell, Finding, Goal, Params, Section, Table, Value};

pub(super) const GROUP: &str = "halves";

/// The fixed rules, the default, and OPT.
const RULES: [&str; 6] = [LRU, "lirs", "s3-fifo", "w-tinylfu", DEFAULT, OPT];

/// Percent of a trace's blocks.
const SHARES: [&str; 8] = ["0.1%", "0.3%", "1%", "3%", "10%", "20%", "35%", "50%"];

/// Seconds that the group takes.
const SECONDS: f64 = 400.0;

/// A cell counts in the mean gap if OPT is more points than this above LRU.
const POSSIBLE: f64 = 0.5;
/// Losses against LRU up to this many points are not counted.
const BELOW: f64 = 0.5;
/// From so many uses a frame on, a loss against LRU misses the goal.
const LONG: f64 = 50.0;
/// Caches of fewer frames are small.
const SMALL: f64 = 100.0;
/// Points behind the best fixed rule.
const NEAR: f64 = 4.0;

/// Two halves. They are not independent: multi2 mixes cs, cpp and ps of the other half.
const HALVES: [(&str, &[&str]); 2] = [
    (
        "A",
        &[
            "arc-OLTP.lis.zst",
            "lirs-cs.txt.gz",
            "lirs-cpp.txt.gz",
            "lirs-ps.txt.gz",
            "lirs-multi1.txt.gz",
            "lirs-2_pools.txt.gz",
            "lirs-backf.txt.gz",
            "cloudPhysicsIO.oracleGeneral.bin",
            "cache2k-web07.i32be.xz",
        ],
    ),
    (
        "B",
        &[
            "arc-P3.lis.zst",
            "lirs-gli.txt.gz",
            "lirs-sprite.txt.gz",
            "lirs-loop.txt.gz",
            "lirs-multi2.txt.gz",
            "lirs-zigzag.txt.gz",
            "corda.u32le.xz",
            "build-gcc.u32le.xz",
            "cloudphysics-w106.u32be.xz",
        ],
    ),
];

fn all() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let traces = HALVES
        .iter()
        .flat_map(|(half, traces)| traces.iter().map(move |trace| (*half, *trace)));
    traces.flat_map(|(half, trace)| SHARES.map(|share| (half, trace, share)))
}

/// The group, of those traces that are there.
pub(super) fn plan(plan: &mut Planner, there: impl Fn(&str) -> bool) {
    let cells = all().filter(|(_, trace, _)| there(trace));
    let cells = cells.flat_map(|(_, trace, share)| {
        let params = Params::new()
            .with_text("trace", trace)
            .with_text("share", share);
        frame::cross(&RULES, &[params])
    });
    let cells: Vec<Cell> = cells.collect();
    plan.group(GROUP, HITS, LRU, SECONDS, cells);
}

/// A cell that ran.
#[derive(Debug, Clone)]
pub(super) struct Spot {
    pub(super) half: &'static str,
    pub(super) share: &'static str,
    pub(super) frames: f64,
    pub(super) uses_per_frame: f64,
    pub(super) standing: Standing,
}

/// Every cell that ran under all rules.
pub(super) fn spots(results: &Results<'_>) -> Vec<Spot> {
    let spot = |(half, trace, share): (&'static str, &'static str, &'static str)| {
        let cells = results.all(GROUP);
        let own =
            cells.filter(|at| at.text("trace") == Some(trace) && at.text("share") == Some(share));
        let own: Vec<_> = own.collect();
        let first = own.first()?;
        let (frames, uses) = (first.middle(FRAMES)?, first.middle(USES)?);
        let hits = own
            .iter()
            .filter_map(|at| Some((at.name().to_owned(), at.middle(HITS)?)));
        let hits: Vec<_> = hits.collect();
        (hits.len() == RULES.len()).then_some(Spot {
            half,
            share,
            frames,
            uses_per_frame: uses / frames,
            standing: Standing {
                trace,
                size: frames as i64,
                hits,
            },
        })
    };
    all().filter_map(spot).collect()
}

impl Spot {
    /// Share of the way from LRU to OPT, where there is one.
    fn gap(&self) -> Option<f64> {
        let possible = self.standing.of(OPT)? - self.standing.of(LRU)?;
        let gap = self.standing.gap(DEFAULT)?;
        (possible > POSSIBLE).then_some(gap)
    }

    /// Points below LRU; 0 where it is not.
    fn below(&self) -> f64 {
        let (lru, own) = (self.standing.of(LRU), self.standing.of(DEFAULT));
        lru.zip(own).map_or(0.0, |(lru, own)| (lru - own).max(0.0))
    }

    /// Points behind the best rule of the cell; LRU is among them.
    fn behind(&self) -> f64 {
        self.standing.behind().unwrap_or(0.0)
    }
}

/// What is asked of many cells.
#[derive(Debug, PartialEq)]
pub(super) struct Summary {
    /// Mean shares of the way from LRU to OPT; of all cells, and of small caches.
    pub(super) gap: Option<f64>,
    pub(super) gap_small: Option<f64>,
    /// Percent of the cells.
    pub(super) near: f64,
    /// Points.
    pub(super) furthest_behind: f64,
    pub(super) furthest_below: f64,
    /// Numbers of cells.
    pub(super) below: usize,
    pub(super) below_long: usize,
}

impl Summary {
    pub(super) fn of<'s>(spots: impl Iterator<Item = &'s Spot>) -> Self {
        let spots: Vec<&Spot> = spots.collect();
        let mean = |small: bool| {
            let wanted = spots.iter().filter(|spot| !small || spot.frames < SMALL);
            let gaps: Vec<f64> = wanted.filter_map(|spot| spot.gap()).collect();
            (!gaps.is_empty()).then(|| gaps.iter().sum::<f64>() / gaps.len() as f64)
        };
        let most = |of: fn(&Spot) -> f64| spots.iter().map(|spot| of(spot)).fold(0.0, f64::max);
        let near = spots.iter().filter(|spot| spot.behind() <= NEAR).count();
        let below: Vec<_> = spots.iter().filter(|spot| spot.below() > BELOW).collect();
        Self {
            gap: mean(false),
            gap_small: mean(true),
            near: 100.0 * near as f64 / spots.len().max(1) as f64,
            furthest_behind: most(Spot::behind),
            furthest_below: most(Spot::below),
            below: below.len(),
            below_long: below
                .iter()
                .filter(|spot| spot.uses_per_frame >= LONG)
                .count(),
        }
    }
}

/// All cells, and each half.
fn summaries(spots: &[Spot]) -> Vec<(&'static str, Summary)> {
    let half = |(name, _): &(&'static str, _)| {
        let own: Vec<&Spot> = spots.iter().filter(|spot| spot.half == *name).collect();
        (!own.is_empty()).then(|| (*name, Summary::of(own.into_iter())))
    };
    let whole = ("all", Summary::of(spots.iter()));
    let halves = HALVES.iter().filter_map(half);
    [whole].into_iter().chain(halves).collect()
}

pub(super) fn finding_of(spots: &[Spot]) -> Option<Finding> {
    let whole = Summary::of(spots.iter());
    let gap = whole.gap?;
    let counted = spots.iter().filter(|spot| spot.gap().is_some()).count();
    Some(finding(
        "How good is the default rule at any size?",
        "larder",
        format!(
            "It goes {gap:.1} % of the way from LRU to OPT, in the mean of the {counted} cells where OPT is over half a point above LRU; caches have 0.1 \
             to 50 % of a trace's blocks. It is within {NEAR} points of the best of LRU, LIRS, S3-FIFO and W-TinyLFU in {:.0} % of {} cells.",
            whole.near,
            spots.len(),
        ),
    ))
}

pub(super) fn goals(spots: &[Spot]) -> Vec<Goal> {
    let (ran, wanted) = (spots.len(), all().count());
    let first = Bound::AtLeast(42.0);
    if ran < wanted {
        let why = format!(
            "{ran} of {wanted} cells ran: they need the group {GROUP} of a full run, and all traces in the folder LARDER_TRACES"
        );
        let what = "the default rule at shares of public traces";
        return vec![not_measured(first, what, "LRU and OPT", why).in_unit("%")];
    }
    let of = summaries(spots);
    let whole = &of[0].1;
    let between = of[1].1.gap.zip(of[2].1.gap).map(|(a, b)| (a - b).abs());
    let goal = |bound: Bound, what: &str, against: &str, unit: &str, value: Option<f64>| {
        bound
            .goal(what, against, value.map(exact), None, "")
            .in_unit(unit)
    };
    let best = "the best of LRU, LIRS, S3-FIFO and W-TinyLFU";
    vec![
        goal(
            first,
            "from LRU to OPT, mean of 144 cells",
            "LRU and OPT",
            "%",
            whole.gap,
        ),
        goal(
            Bound::AtMost(2.0),
            "difference of the halves, from LRU to OPT",
            "LRU and OPT",
            "points",
            between,
        ),
        goal(
            Bound::AtLeast(35.0),
            "caches under 100 frames, from LRU to OPT",
            "LRU and OPT",
            "%",
            whole.gap_small,
        ),
        goal(
            Bound::AtMost(0.0),
            "cells over half a point below LRU, of those with at least 50 uses a frame",
            LRU,
            "cells",
            Some(whole.below_long as f64),
        ),
        goal(
            Bound::AtLeast(95.0),
            "cells within 4 points",
            best,
            "%",
            Some(whole.near),
        ),
        goal(
            Bound::AtMost(10.0),
            "points behind, worst of 144 cells",
            best,
            "points",
            Some(whole.furthest_behind),
        ),
    ]
}

pub(super) fn section(spots: &[Spot]) -> Section {
    let tables = [of_halves(spots), worst_first(spots)];
    Section {
        title: "Public traces at shares of their blocks".to_owned(),
        blocks: tables.map(Block::Table).to_vec(),
    }
}

fn of_halves(spots: &[Spot]) -> Table {
    type Row = (&'static str, fn(&Summary) -> Option<f64>, usize);
    let rows: [Row; 7] = [
        ("gap closed in the mean, %", |s| s.gap, 1),
        ("the same, caches under 100 frames", |s| s.gap_small, 1),
        ("cells within 4 points of the best, %", |s| Some(s.near), 0),
        ("furthest behind it, points", |s| Some(s.furthest_behind), 1),
        (
            "cells more than half a point below LRU",
            |s| Some(s.below as f64),
            0,
        ),
        (
            "of these with at least 50 uses a frame",
            |s| Some(s.below_long as f64),
            0,
        ),
        ("furthest below LRU, points", |s| Some(s.furthest_below), 1),
    ];
    let rows = rows.map(|(name, of, places)| ((of, places), text(name)));
    let columns = match spots {
        [] => Vec::new(),
        _ => summaries(spots),
    };
    let columns = columns.into_iter().map(|(name, s)| (s, name.to_owned()));
    grid("Two halves", "", rows, columns, |(of, places), summary| {
        digits(of(summary), *places)
    })
    .noted("A and B: the traces split by origin. Best: the one of LRU, LIRS, S3-FIFO and W-TinyLFU in each cell. The mean gap counts cells where OPT is over half a point above LRU.")
}

/// Every cell, by its distance behind the best rule.
fn worst_first(spots: &[Spot]) -> Table {
    let mut spots: Vec<&Spot> = spots.iter().collect();
    spots.sort_by(|a, b| b.behind().total_cmp(&a.behind()));
    let columns = [
        "half",
        "uses a frame",
        LRU,
        DEFAULT,
        "best",
        OPT,
        "behind",
        "gap",
    ];
    let columns = columns.map(|name| (name, name.to_owned()));
    let name = |spot: &&Spot| {
        let at = &spot.standing;
        text(format!("{} {} {}", at.trace, spot.share, at.size))
    };
    let rows = spots.into_iter().map(|spot| (spot, name(&spot)));
    grid(
        "Every cell, worst first",
        "trace, share, frames",
        rows,
        columns,
        |spot, column| match *column {
            "half" => text(spot.half),
            "uses a frame" => digits(Some(spot.uses_per_frame), 0),
            "best" => spot.standing.best().map_or(Value::Empty, |(rule, hits)| {
                text(format!("{hits:.2} {rule}"))
            }),
            "behind" => digits(Some(spot.behind()), 2),
            "gap" => digits(spot.gap(), 1),
            rule => digits(spot.standing.of(rule), 2),
        },
    )
    .noted("Hits in % of the uses; behind: points behind the best; gap: the default's share of the way from LRU to OPT, in %, where it is over half a point.")
    .folded()
}
