//! No program slower than with the system's malloc by more than one in a hundred.

use crate::frame::words::{Bound, short};
use crate::measure::RunView;
use crate::model::{Better, Goal, GoalState};

use super::LARDER;
use super::rows::{PEAK, Row, SECONDS, beyond_chance, name, rows, says_the_same};

/// The most that larder's malloc may cost.
pub(super) const MOST: f64 = 1.01;

/// A goal for each program that ran.
pub(super) fn all(view: &RunView<'_>) -> Vec<Goal> {
    rows(view).iter().map(|row| goal(view, row)).collect()
}

fn goal(view: &RunView<'_>, row: &Row<'_>) -> Goal {
    let bound = Bound::AtMost(MOST);
    let what = format!("{}: wall time with {LARDER}", row.program);
    let against = "the system's malloc";
    let Some(own) = row.others.iter().copied().find(|cell| name(cell) == LARDER) else {
        return bound.goal(what, against, None, None, format!("{LARDER} did not run"));
    };
    match says_the_same(view, row, own) {
        Some(true) => {
            let held = |cell| view.middle(row.program, cell, PEAK);
            let both = held(own).zip(held(row.system));
            let c = view.compare(row.program, own, row.system, SECONDS, Better::Lower);
            let mut goal = bound.goal(what, against, c.ratio, both, "");
            if goal.state == GoalState::Missed && !beyond_chance(&c) {
                goal.state = GoalState::Open;
                goal.note = c.floor.map_or_else(
                    || "the system's malloc has no twin to be told from".to_owned(),
                    |floor| {
                        format!(
                            "not told from chance: the system's malloc and its twin lie {} % apart",
                            short(100.0 * floor.exp_m1())
                        )
                    },
                );
            }
            goal
        }
        _ => {
            let mut goal = bound.goal(
                what,
                against,
                None,
                None,
                "what it wrote is not what it wrote with the system's malloc",
            );
            goal.state = GoalState::Missed;
            goal
        }
    }
}
