//! Goals: larder's pool against the kernel's ways and against zeroing alone.

use super::cells::*;
use crate::frame::words::{Bound, noted, ratio};
use crate::frame::{Results, goal, not_measured};
use crate::model::Goal;

pub(super) fn all(results: &Results<'_>) -> Vec<Goal> {
    let mut goals = Vec::new();
    if four(results, MMAP).is_some() {
        goals.push(goal(
            Bound::AtMost(0.1),
            "PagePool get_zeroed, one page got, touched and given back",
            four(results, POOL),
            four(results, MMAP),
            "mmap",
            CPU,
        ));
    }
    let (written, _) = USES[0];
    for (other, bound) in [
        (WARM, Bound::AtMost(1.3)),
        ("bill-fault", Bound::AtMost(0.1)),
    ] {
        let [ours, theirs] = ["bill-pool", other].map(|name| results.find(written, name, &[]));
        if theirs.is_some() {
            let what = "PagePool get_zeroed, 64 pages got, 8 bytes of each written";
            goals.push(goal(bound, what, ours, theirs, other, TOTAL));
        }
    }
    for (metric, pass) in [
        (AGAIN, "memory used before"),
        (CPU, "first pass of a process"),
    ] {
        goals.extend(first_touch(results, metric, pass));
    }
    goals
}

/// The first touch of a large region; `None` where nothing of its group was asked for.
fn first_touch(results: &Results<'_>, metric: &str, pass: &str) -> Option<Goal> {
    let find = |name| results.find(FIRST_TOUCH, name, &[]);
    let plain = find(PLAIN_REGION)?;
    let bound = Bound::AtMost(0.45);
    let what = format!("first touch of 256 MiB, huge pages allowed, {pass}");
    let Some(pool) = find(POOL_REGION) else {
        let skipped = &results.view.run().skipped;
        let why = skipped.iter().find(|s| s.what.contains(POOL_REGION));
        let why = why.map_or("the pool was not among the contestants", |s| s.why.as_str());
        return Some(not_measured(bound, what, PLAIN_REGION, why));
    };
    let thp = find("region-thp").and_then(|thp| thp.ratio(&plain, metric));
    let thp = thp.map_or_else(String::new, |r| {
        format!("huge pages without a pool: {}", ratio(&r))
    });
    let goal = goal(bound, what, Some(pool), Some(plain), PLAIN_REGION, metric);
    Some(noted(goal, &thp))
}
