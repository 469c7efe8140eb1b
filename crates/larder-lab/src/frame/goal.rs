//! Goals: a bound on a ratio of two cells.

use super::results::At;
use super::words::{Bound, TOO_NOISY, noted};
use crate::model::{Goal, GoalState};
use crate::stats::{Estimate, Verdict};

/// A goal on the ratio of two cells, with the memory that both hold. `called` names the second one where it did not run.
pub fn goal(
    bound: Bound,
    what: impl Into<String>,
    ours: Option<At<'_, '_>>,
    theirs: Option<At<'_, '_>>,
    called: &str,
    metric: &str,
) -> Goal {
    match (ours, theirs) {
        (Some(a), Some(b)) => {
            let c = a.compare(&b, metric);
            let goal = bound.goal(what, b.name(), c.ratio, a.held(&b), "");
            undisturbed(goal, c.verdict)
        }
        (None, _) => not_measured(bound, what, called, "larder's own cell did not run"),
        (_, None) => not_measured(bound, what, called, format!("{called} did not run")),
    }
}

/// The goal, undecided where other programs disturbed the comparison that it rests on.
pub fn undisturbed(goal: Goal, verdict: Verdict) -> Goal {
    if verdict != Verdict::Noisy || goal.measured.is_none() {
        return goal;
    }
    let state = GoalState::Open;
    noted(Goal { state, ..goal }, TOO_NOISY)
}

/// A goal that this run cannot judge, with the reason.
pub fn not_measured(
    bound: Bound,
    what: impl Into<String>,
    against: &str,
    why: impl Into<String>,
) -> Goal {
    bound.goal(what, against, None, None, why.into())
}

/// The largest of several ratios by its value, with its name: the worst cell of a cost.
pub fn worst<T>(ratios: impl IntoIterator<Item = (T, Estimate)>) -> Option<(T, Estimate)> {
    let by_value = |a: &(T, Estimate), b: &(T, Estimate)| a.1.value.total_cmp(&b.1.value);
    ratios.into_iter().max_by(by_value)
}

/// One goal that many cells must reach: the worst of them stands for all, and its note names it. A missed cell is worse than
/// an undecided one, and that worse than one without an interval, so that the goal is met only where every cell meets it.
/// `None` without cells.
pub fn each(bound: Bound, cells: impl IntoIterator<Item = (String, Goal)>) -> Option<Goal> {
    let badness = |goal: &Goal| {
        let state = match goal.state {
            GoalState::Met => 0,
            GoalState::Skipped => 1,
            GoalState::Open => 2,
            GoalState::Missed => 3,
        };
        let value = goal.measured.map_or(0.0, |m| m.value);
        let above = match bound {
            Bound::AtLeast(_) => -value,
            Bound::AtMost(_) | Bound::Below(_) => value,
        };
        (state, above)
    };
    let mut worst: Option<(String, Goal)> = None;
    for (cell, goal) in cells {
        let (state, above) = badness(&goal);
        let is_worse = worst.as_ref().is_none_or(|(_, worst)| {
            let (worst_state, most) = badness(worst);
            state > worst_state || (state == worst_state && above > most)
        });
        if is_worse {
            worst = Some((cell, goal));
        }
    }
    worst.map(|(cell, goal)| noted(goal, &format!("worst at {cell}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_on_disturbed_samples_is_open_whatever_its_interval() {
        let bound = Bound::AtMost(1.0);
        let measured = Estimate {
            value: 2.0,
            lo: 1.9,
            hi: 2.1,
            n: 6,
            level: 0.95,
        };
        let goal = bound.goal("a", "b", Some(measured), None, "");
        assert_eq!(goal.state, GoalState::Missed);
        let quiet = undisturbed(goal.clone(), Verdict::Slower);
        assert_eq!(quiet, goal);
        let noisy = undisturbed(goal, Verdict::Noisy);
        assert_eq!((noisy.state, &*noisy.note), (GoalState::Open, TOO_NOISY));
        let none = bound.goal("a", "b", None, None, "");
        assert_eq!(undisturbed(none.clone(), Verdict::Noisy), none);
    }

    #[test]
    fn the_worst_cell_stands_for_all() {
        let goal = |bound: Bound, value: f64, half: f64| {
            let measured = Estimate {
                value,
                lo: value - half,
                hi: value + half,
                n: 6,
                level: 0.95,
            };
            (
                value.to_string(),
                bound.goal("a", "b", Some(measured), None, ""),
            )
        };
        let of = |bound: Bound, cells: &[(f64, f64)]| {
            let cells = cells.iter().map(|(value, half)| goal(bound, *value, *half));
            let worst = each(bound, cells).expect("has cells");
            (worst.state, worst.note)
        };
        let most = Bound::AtMost(1.0);
        let at = |cell: &str| format!("worst at {cell}");
        let cells = [(0.5, 0.1), (0.8, 0.1), (0.7, 0.1)];
        assert_eq!(of(most, &cells), (GoalState::Met, at("0.8")));
        let undecided = [(0.5, 0.1), (0.95, 0.1), (0.8, 0.9)];
        assert_eq!(of(most, &undecided), (GoalState::Open, at("0.95")));
        let missed = [(1.2, 0.1), (1.5, 0.9), (0.8, 0.1)];
        assert_eq!(of(most, &missed), (GoalState::Missed, at("1.2")));
        let least = Bound::AtLeast(1.0);
        assert_eq!(
            of(least, &[(1.5, 0.1), (1.3, 0.1)]),
            (GoalState::Met, at("1.3"))
        );
        let without = (
            String::from("none"),
            most.goal("a", "b", None, None, "too few"),
        );
        let worst = each(most, [goal(most, 0.5, 0.1), without]).expect("has cells");
        assert_eq!(worst.state, GoalState::Skipped);
        assert_eq!(worst.note, "too few; worst at none");
        assert!(each(most, []).is_none());
    }
}
