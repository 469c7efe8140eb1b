//! Goals: a bound on a ratio of two cells.

use super::results::At;
use super::words::Bound;
use crate::model::Goal;
use crate::stats::Estimate;

/// A goal on the ratio of two cells, with the memory that both hold. `called` names the second one where it did not run.
pub(crate) fn goal(
    bound: Bound,
    what: impl Into<String>,
    ours: Option<At<'_, '_>>,
    theirs: Option<At<'_, '_>>,
    called: &str,
    metric: &str,
) -> Goal {
    match (ours, theirs) {
        (Some(a), Some(b)) => bound.goal(
            what,
            b.name(),
            a.ratio(&b, metric),
            a.held(&b),
            String::new(),
        ),
        (None, _) => not_measured(bound, what, called, "larder's own cell did not run"),
        (_, None) => not_measured(bound, what, called, format!("{called} did not run")),
    }
}

/// A goal that this run cannot judge, with the reason.
pub(crate) fn not_measured(
    bound: Bound,
    what: impl Into<String>,
    against: &str,
    why: impl Into<String>,
) -> Goal {
    bound.goal(what, against, None, None, why.into())
}

/// The largest of several ratios by its value, with its name: the worst cell of a cost.
pub(crate) fn worst<T>(ratios: impl IntoIterator<Item = (T, Estimate)>) -> Option<(T, Estimate)> {
    let by_value = |a: &(T, Estimate), b: &(T, Estimate)| a.1.value.total_cmp(&b.1.value);
    ratios.into_iter().max_by(by_value)
}
