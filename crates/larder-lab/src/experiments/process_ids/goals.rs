//! The goal row: the last id by a map and by the walk of 2.4.

use crate::frame::words::Bound;
use crate::measure::RunView;
use crate::model::Goal;

use super::findings::COST;
use super::plan::LAST;

/// Ours against algo-0 where two ids are free.
pub(super) fn all(view: &RunView<'_>) -> Vec<Goal> {
    let bound = Bound::AtLeast(1e6);
    let what = "An allocation at A = 32767, larder's cyclic rule";
    let against = "times faster than algo-0";
    let of = |name: &str| {
        view.cells(LAST)
            .into_iter()
            .find(|cell| cell.contestant == name && !cell.twin)
    };
    vec![match (of("algo-0"), of("larder")) {
        (Some(walk), Some(ours)) => {
            bound.goal(what, against, view.ratio(LAST, walk, ours, COST), None, "")
        }
        _ => bound.needs(
            what,
            against,
            "algo-0 with two ids free, up to seconds for one allocation",
            "process-ids --full --group last-id",
        ),
    }]
}
