//! Each goal is a ratio from one interleaved run, with the memory that both sides hold.

use crate::frame::words::Bound;
use crate::measure::RunView;
use crate::model::{Cell, Goal};

use super::plan::{
    BITS, CREATE, CYCLIC, CYCLIC_LARGE, CYCLIC_PEERS, EPOCHS, FEW, FIRST_FREED, HUGE, LARGE,
    LARGE_LIVES, LAST_FREED, LOWEST, LOWEST_LARGE, LOWEST_PEERS, ORDERED, SMALL, SMALL_LIVES,
    SPARSE, SPARSE_PEERS,
};
use super::rows::{COST, best, by_round, exact, find, held, median_of, spread};
use super::{promise, thread_goals};

/// Every goal, met or not.
pub(super) fn all(view: &RunView<'_>) -> Vec<Goal> {
    let mut goals = Vec::new();
    for live in SMALL_LIVES {
        let row = Row::new(view, CYCLIC, "cyclic", SMALL, live);
        goals.push(row.against(Bound::AtMost(0.9), "pidmap"));
        goals.push(row.against_best(Bound::AtMost(0.5), &ORDERED, "best ordered crate"));
    }
    goals.push(flat(view));
    for live in SMALL_LIVES {
        let row = Row::new(view, LOWEST, "lowest first", SMALL, live);
        goals.push(row.against(Bound::AtMost(0.7), "hibitset"));
    }
    for (group, what, array) in [
        (FIRST_FREED, "first freed first", "ring"),
        (LAST_FREED, "last freed first", "stack"),
    ] {
        for live in SMALL_LIVES {
            let row = Row::new(view, group, what, SMALL, live);
            goals.push(row.against(Bound::AtMost(1.3), array));
        }
    }
    for live in LARGE_LIVES {
        let row = Row::new(view, CYCLIC_LARGE, "cyclic", LARGE, live);
        goals.push(row.against_best(Bound::AtMost(0.8), &CYCLIC_PEERS, "best peer"));
    }
    for live in LARGE_LIVES {
        let row = Row::new(view, LOWEST_LARGE, "lowest first", LARGE, live);
        goals.push(row.against_best(Bound::AtMost(0.8), &LOWEST_PEERS, "best peer"));
    }
    goals.extend(sparse(view));
    goals.extend(bits(view));
    goals.extend(thread_goals::all(view));
    goals.extend(create(view));
    goals.extend(distance(view));
    goals
}

pub(super) fn missing(group: &str, what: &str) -> String {
    format!("{what} did not run in group {group}")
}

/// `67 % of 32768`.
pub(super) fn share(live: i64, count: i64) -> String {
    let percent = 100.0 * live as f64 / count as f64;
    let percent = match percent {
        p if p == p.round() => format!("{p:.0}"),
        p if (0.1..99.0).contains(&p) => format!("{p:.0}"),
        p if (99.0..99.9).contains(&p) => format!("{}", (10.0 * p).round() / 10.0),
        p => format!("{}", (100.0 * p).round() / 100.0),
    };
    let count = match count {
        LARGE => "2^22".to_owned(),
        HUGE => "2^32".to_owned(),
        other => other.to_string(),
    };
    format!("{percent} % of {count}")
}

/// One cell of ours and what it is compared with.
struct Row<'v, 'a> {
    view: &'v RunView<'a>,
    group: &'static str,
    what: String,
    factors: [(&'static str, i64); 1],
}

impl<'v, 'a> Row<'v, 'a> {
    fn new(view: &'v RunView<'a>, group: &'static str, what: &str, count: i64, live: i64) -> Self {
        Self {
            view,
            group,
            what: format!("{what}, {}", share(live, count)),
            factors: [("live", live)],
        }
    }

    fn against(&self, bound: Bound, theirs: &str) -> Goal {
        let peer = find(self.view, self.group, theirs, &self.factors);
        self.goal(bound, peer, theirs)
    }

    fn against_best(&self, bound: Bound, peers: &[&str], called: &str) -> Goal {
        let peer = best(self.view, self.group, peers, &self.factors, COST);
        self.goal(bound, peer, called)
    }

    fn goal(&self, bound: Bound, peer: Option<&Cell>, called: &str) -> Goal {
        let (view, group, what) = (self.view, self.group, self.what.as_str());
        match (find(view, group, "ids", &self.factors), peer) {
            (Some(a), Some(b)) => bound.goal(
                what,
                &b.contestant,
                view.ratio(group, a, b, COST),
                held(view, group, a, b),
                "",
            ),
            (None, _) => bound.goal(what, called, None, None, missing(group, "ids")),
            (_, None) => bound.goal(what, called, None, None, missing(group, called)),
        }
    }
}

/// The most expensive occupancy over the cheapest.
fn flat(view: &RunView<'_>) -> Goal {
    let cells: Vec<&Cell> = SMALL_LIVES
        .iter()
        .filter_map(|live| find(view, CYCLIC, "ids", &[("live", *live)]))
        .collect();
    let measured = (cells.len() == SMALL_LIVES.len())
        .then(|| median_of(&spread(view, CYCLIC, &cells)))
        .flatten();
    let note = if cells.len() < SMALL_LIVES.len() {
        missing(CYCLIC, "ids at every occupancy")
    } else {
        String::new()
    };
    Bound::AtMost(3.0).goal(
        format!(
            "cyclic, worst of {} occupancies of {SMALL}",
            SMALL_LIVES.len()
        ),
        "its best one",
        measured,
        None,
        note,
    )
}

fn sparse(view: &RunView<'_>) -> Vec<Goal> {
    let full = HUGE - FEW;
    let mut goals: Vec<Goal> = [FEW, full]
        .into_iter()
        .map(|live| {
            Row::new(view, SPARSE, "cyclic, cold", HUGE, live).against_best(
                Bound::AtMost(0.1),
                &SPARSE_PEERS,
                "roaring",
            )
        })
        .collect();
    let bytes = |live, per: f64| {
        let cell = find(view, SPARSE, "ids", &[("live", live)])?;
        median_of(
            &by_round(view, SPARSE, cell, "held_bytes")
                .into_iter()
                .map(|(round, held)| (round, held / per))
                .collect(),
        )
    };
    goals.push(
        Bound::AtMost(4e6)
            .goal(
                format!("bytes held, {}", share(full, HUGE)),
                "4 MB",
                bytes(full, 1.0),
                None,
                "",
            )
            .in_unit("bytes"),
    );
    goals.push(
        Bound::AtMost(16.0)
            .goal(
                format!("bytes for each taken identifier, {}", share(FEW, HUGE)),
                "two words",
                bytes(FEW, FEW as f64),
                None,
                "",
            )
            .in_unit("bytes"),
    );
    goals
}

fn bits(view: &RunView<'_>) -> Vec<Goal> {
    let cells = view.cells(BITS);
    let of = |contestant: &str, rule: &str| {
        let cell = cells.iter().find(|cell| {
            cell.contestant == contestant
                && !cell.twin
                && cell.params.text("rule").is_ok_and(|own| own == rule)
                && cell.params.int("count").is_ok_and(|own| own == LARGE)
        })?;
        view.middle(BITS, cell, "bits_per_id")
    };
    let pidmap = of("pidmap", CYCLIC).map_or_else(
        || "one bit".to_owned(),
        |bits| format!("one bit; pidmap has {bits:.3}"),
    );
    [(CYCLIC, 1.02), (EPOCHS, 2.05)]
        .into_iter()
        .map(|(rule, most)| {
            let measured = of("ids", rule);
            let note = match measured {
                Some(_) => String::new(),
                None => missing(BITS, &format!("ids by rule {rule}")),
            };
            Bound::AtMost(most)
                .goal(
                    format!(
                        "bits for each identifier, {rule}, {}",
                        share(LARGE / 2, LARGE)
                    ),
                    pidmap.as_str(),
                    measured.and_then(exact),
                    None,
                    note,
                )
                .in_unit("")
        })
        .collect()
}

fn create(view: &RunView<'_>) -> Vec<Goal> {
    let mut goals = Vec::new();
    for ours in ["ids", "id-space", "id-space-any"] {
        for (first, what) in [
            (0, "ns to make a space of a million"),
            (1, "ns to make a space of a million and take the first"),
        ] {
            let measured = find(view, CREATE, ours, &[("first", first)])
                .and_then(|cell| view.estimate(CREATE, cell, "ns_per_space"));
            goals.push(
                Bound::AtMost(1000.0)
                    .goal(
                        format!("{what}: {ours}"),
                        "a microsecond",
                        measured,
                        None,
                        "",
                    )
                    .in_unit("ns"),
            );
        }
    }
    goals
}

/// What each rule promises, in allocations or in ticks of its clock. A violated promise is a missed goal.
fn distance(view: &RunView<'_>) -> Vec<Goal> {
    promise::rules()
        .flat_map(|rule| {
            promise::cells(view, rule)
                .into_iter()
                .filter_map(|looked| {
                    let least = looked.least?;
                    Some(
                        Bound::AtLeast(least)
                            .goal(
                                format!(
                                    "fewest until reuse, {}, {}, {}",
                                    looked.of(rule),
                                    share(looked.live, SMALL),
                                    looked.called()
                                ),
                                "its promise",
                                looked.min.and_then(exact),
                                None,
                                "",
                            )
                            .in_unit(""),
                    )
                })
                .collect::<Vec<_>>()
        })
        .collect()
}
