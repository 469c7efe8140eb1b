//! The charts.

use crate::measure::RunView;
use crate::model::{Axis, Block, Chart, Point, Provenance, Scale, Section, Series};
use crate::published;
use crate::stats::sweep::Crossover;

use super::counted::{averaged, printed};
use super::curve::{cells, crossing};
use super::elsewhere::ALGORITHMS;
use super::findings::COST;
use super::plan::{NEAR, PACKED, REUSE, SCATTERED};
use super::reasons::reuse_cell;
use super::reuse::{BUCKETS, RULES, bucket_floor, bucket_name};

/// All of them.
pub(super) fn section(view: &RunView<'_>) -> Section {
    Section {
        title: "The shapes".to_owned(),
        blocks: vec![
            Block::Chart(costs(view, NEAR, "tasks near each other")),
            Block::Chart(costs(view, SCATTERED, "tasks scattered over memory")),
            Block::Chart(costs(view, PACKED, "tasks of 28 bytes, as in his harness")),
            Block::Chart(his_costs()),
            Block::Chart(searches(view)),
            Block::Chart(distances(view)),
        ],
    }
}

fn log(label: &str) -> Axis {
    Axis {
        label: label.to_owned(),
        scale: Scale::Log,
    }
}

fn linear(label: &str) -> Axis {
    Axis {
        label: label.to_owned(),
        scale: Scale::Linear,
    }
}

fn bare(x: f64, y: f64) -> Point {
    Point { x, y, lo: y, hi: y }
}

/// G against A.
fn costs(view: &RunView<'_>, group: &str, place: &str) -> Chart {
    let series = [
        "algo-0",
        "algo-1",
        "algo-1-locked",
        "algo-2",
        "algo-2-locked",
        "algo-2-256",
        "adaptive",
        "andrea",
        "bill",
        "pidmap",
        "idr",
        "larder",
    ]
    .into_iter()
    .map(|name| Series {
        name: name.to_owned(),
        points: cells(view, group, name)
            .into_iter()
            .filter_map(|(tasks, cell)| {
                let x = tasks as f64;
                match view.estimate(group, &cell, COST) {
                    Some(e) => Some(Point {
                        x,
                        y: e.value,
                        lo: e.lo,
                        hi: e.hi,
                    }),
                    None => Some(bare(x, view.middle(group, &cell, COST)?)),
                }
            })
            .collect(),
        from: Provenance::Measured,
    })
    .filter(|series| !series.points.is_empty())
    .collect();
    let mut marks = vec![(22_000.0, "he: 22000".to_owned())];
    for sweep in &ALGORITHMS[1..] {
        if let Some(Crossover::One(one)) = crossing(view, group, "algo-0", sweep) {
            marks.push((one.at.value, format!("algo-0 meets {sweep}")));
        }
    }
    Chart {
        title: format!("G here: microseconds per allocation, {place}"),
        x: linear("tasks"),
        y: log("us"),
        series,
        marks,
        categories: Vec::new(),
    }
}

/// The same of his table.
fn his_costs() -> Chart {
    let of = |name: &str, pick: fn(&published::FrankeGetpid) -> f64| Series {
        name: format!("{name}, Franke 2002"),
        points: published::franke_getpid()
            .iter()
            .map(|row| bare(f64::from(row.tasks), pick(row)))
            .collect(),
        from: Provenance::Published,
    };
    Chart {
        title: "G as published in 2002: a shape, on another machine".to_owned(),
        x: linear("tasks"),
        y: log("us"),
        series: vec![
            of("algo-0", |row| row.us_algo0),
            of("algo-1", |row| row.us_algo1),
            of("algo-2", |row| row.us_algo2),
        ],
        marks: vec![(22_000.0, "he: 22000".to_owned())],
        categories: Vec::new(),
    }
}

/// S against A beside his, where D is 1000.
fn searches(view: &RunView<'_>) -> Chart {
    let mut series = Vec::new();
    for name in ["algo-0", "algo-1", "algo-2"] {
        let his: Vec<(u32, f64)> = printed(name)
            .into_iter()
            .filter(|(tasks, _)| (1000..=30_000).contains(tasks))
            .collect();
        let ours: Vec<Point> = his
            .iter()
            .filter_map(|(tasks, _)| Some(bare(f64::from(*tasks), averaged(view, name, *tasks)?)))
            .collect();
        if !ours.is_empty() {
            series.push(Series {
                name: format!("{name}, mean of four seeds"),
                points: ours,
                from: Provenance::Measured,
            });
        }
        series.push(Series {
            name: format!("{name}, Franke 2002"),
            points: his.iter().map(|(a, s)| bare(f64::from(*a), *s)).collect(),
            from: Provenance::Published,
        });
    }
    Chart {
        title: "S: searches in 10000 allocations".to_owned(),
        x: linear("tasks"),
        y: linear("searches"),
        series,
        marks: Vec::new(),
        categories: Vec::new(),
    }
}

/// Shares of distances in powers of two.
fn distances(view: &RunView<'_>) -> Chart {
    let mut series = Vec::new();
    for (rule, _, _) in RULES {
        let Some(cell) = reuse_cell(view, rule, 22_000) else {
            continue;
        };
        let points: Vec<Point> = (0..BUCKETS)
            .filter_map(|bucket| {
                let share = view.middle(REUSE, cell, &bucket_name(bucket))?;
                // A distance of 0 has no place on a logarithmic axis, so each stands one to the right.
                Some(bare(bucket_floor(bucket) + 1.0, share))
            })
            .collect();
        series.push(Series {
            name: rule.to_owned(),
            points,
            from: Provenance::Measured,
        });
    }
    Chart {
        title: "Reuse distance at 22000 live ids: share of returns by distance, in powers of two"
            .to_owned(),
        x: log("allocations between end and return, plus 1"),
        y: linear("share"),
        series,
        marks: Vec::new(),
        categories: Vec::new(),
    }
}
