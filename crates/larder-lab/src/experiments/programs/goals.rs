//! No program slower than with the system's malloc by more than one in a hundred.

use crate::experiments::page_buffers::words::Bound;
use crate::measure::RunView;
use crate::model::Goal;

use super::LARDER;
use super::rows::{PEAK, Row, SECONDS, name, rows, says_the_same};

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
            let ratio = view.ratio(row.program, own, row.system, SECONDS);
            bound.goal(what, against, ratio, held(own).zip(held(row.system)), "")
        }
        _ => {
            let mut goal = bound.goal(
                what,
                against,
                None,
                None,
                "what it wrote is not what it wrote with the system's malloc",
            );
            goal.state = crate::model::GoalState::Missed;
            goal
        }
    }
}
