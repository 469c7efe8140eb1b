//! Which cells run, quick and full.

use std::time::Duration;

use crate::measure::{Depth, Group, Plan, PlanRequest};
use crate::model::{Cell, Params, Skipped};

/// Shapes, a group each.
pub(super) const SHAPES: [&str; 2] = ["pair", "churn"];

/// Larder's.
pub(super) const OURS: [&str; 5] = ["quantum", "handle", "instant", "best", "next"];

/// Today's crates.
pub(super) const PEERS: [&str; 2] = ["offset-allocator", "range-alloc"];

/// Those whose time grows with the number of free ranges: they are left out where that would take minutes.
const LINEAR: [&str; 3] = ["best", "next", "range-alloc"];

/// Ranges that are out.
pub(super) fn live(quick: bool) -> &'static [i64] {
    if quick {
        &[100, 10_000, 100_000]
    } else {
        &[100, 1000, 10_000, 100_000, 1_000_000]
    }
}

/// The most ranges that a linear one is asked to have out.
const MOST: i64 = 10_000;

pub(super) fn cell(contestant: &str, shape: &str, live: i64, quick: bool) -> Cell {
    let linear = LINEAR.contains(&contestant);
    let turns = match (linear && live >= MOST, quick) {
        (true, _) => 2000,
        (false, true) => 50_000,
        (false, false) => 1_000_000,
    };
    let params = Params::new()
        .with_text("shape", shape)
        .with("live", live)
        .with("turns", turns);
    Cell::new(contestant, params)
}

/// The plan. `names` are the contestants that this build has.
pub(super) fn plan(request: &PlanRequest<'_>, names: &[&str]) -> Plan {
    let quick = request.depth == Depth::Quick;
    let mut plan = Plan::default();
    for shape in SHAPES {
        let mut cells = Vec::new();
        for &live in live(quick) {
            for name in OURS.iter().chain(&PEERS).filter(|n| names.contains(n)) {
                if live <= MOST || !LINEAR.contains(name) {
                    cells.push(cell(name, shape, live, quick));
                }
            }
        }
        let (each, min_rounds, max_rounds) = if quick { (0.025, 6, 8) } else { (0.35, 10, 21) };
        plan.groups.push(Group {
            name: shape.to_owned(),
            reference: cell("quantum", shape, live(quick)[0], quick),
            metric: super::report::COST,
            round_guess: Duration::from_secs_f64(each * (cells.len() + 1) as f64),
            cells,
            min_rounds,
            max_rounds,
            target: 0.05,
        });
    }
    plan.skipped.push(Skipped {
        what: LINEAR.join(", "),
        why: format!(
            "they look at many ranges in each turn, so that more than {MOST} are not asked of them"
        ),
    });
    if !names.contains(&PEERS[0]) {
        plan.skipped.push(Skipped {
            what: PEERS.join(" and "),
            why: "this program was built without them; build with the default features to compare with them".to_owned(),
        });
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::MachineRecord;

    #[test]
    fn groups_hold_their_reference_and_no_cell_twice() {
        let machine = MachineRecord::default();
        for depth in [Depth::Quick, Depth::Full] {
            let request = PlanRequest {
                depth,
                machine: &machine,
                seed: 1,
            };
            let names: Vec<_> = OURS.into_iter().chain(PEERS).collect();
            let groups = plan(&request, &names).groups;
            assert_eq!(groups.len(), 2);
            for group in groups {
                assert!(group.cells.contains(&group.reference));
                let mut cells = group.cells.clone();
                cells.sort();
                cells.dedup();
                assert_eq!(cells.len(), group.cells.len());
                let most = cell(
                    "quantum",
                    &group.name,
                    *live(depth == Depth::Quick).last().unwrap_or(&0),
                    depth == Depth::Quick,
                );
                assert!(group.cells.contains(&most));
            }
        }
    }
}
