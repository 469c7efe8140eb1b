//! The groups in which tasks do not lie in list order, or are small.

use crate::measure::Group;

use super::plan::{PACKED, SCATTERED, cell, group};
use super::work::{elsewhere_work, packed_work, scattered_work};

/// A at which tasks lie elsewhere, in the quick form.
const QUICK: [i64; 3] = [8000, 22_000, 30_000];
/// The same in the full form: where his curves cross, and on both sides of it.
const FULL: [i64; 12] = [
    2000, 4000, 8000, 12_000, 16_000, 18_000, 20_000, 22_000, 24_000, 26_000, 28_000, 30_000,
];
/// The algorithms that run there; the first three in the quick form.
pub(super) const ALGORITHMS: [&str; 6] = [
    "algo-0",
    "algo-1",
    "algo-1-locked",
    "algo-2",
    "algo-2-locked",
    "algo-2-256",
];

/// Both of them.
pub(super) fn groups(quick: bool) -> [Group; 2] {
    [SCATTERED, PACKED].map(|memory| one(memory, quick))
}

fn one(memory: &str, quick: bool) -> Group {
    type Work = fn(i64) -> (i64, i64);
    let (names, tasks, work, guess): (_, _, Work, _) = match (quick, memory) {
        (true, _) => (&ALGORITHMS[..3], &QUICK[..], elsewhere_work, 250),
        (false, SCATTERED) => (&ALGORITHMS[..], &FULL[..], scattered_work, 15_000),
        (false, _) => (&ALGORITHMS[..], &FULL[..], packed_work, 5500),
    };
    let cells = tasks
        .iter()
        .flat_map(|a| {
            let (deletes, rounds) = work(*a);
            names
                .iter()
                .map(move |name| cell(name, *a, deletes, rounds, memory))
        })
        .collect();
    group(memory, cells, "us_per_alloc", quick, guess)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_full_form_looks_for_the_crossing_and_takes_four_minutes_for_it() {
        for group in groups(false) {
            let of = |name: &str| group.cells.iter().filter(|c| c.contestant == name).count();
            assert!(ALGORITHMS.iter().all(|name| of(name) == FULL.len()));
            // One number of allocations for all at an A.
            for cell in &group.cells {
                let same = |name: &str| {
                    group
                        .cells
                        .iter()
                        .any(|c| c.contestant == name && c.params == cell.params)
                };
                assert!(ALGORITHMS.iter().all(|name| same(name)), "{cell}");
            }
        }
        let guess: Duration = groups(false)
            .iter()
            .map(|g| g.round_guess * g.max_rounds)
            .sum();
        assert!(guess <= Duration::from_secs(240), "{guess:?}");
    }

    #[test]
    fn the_quick_form_takes_a_second_and_a_half_for_each() {
        for group in groups(true) {
            assert_eq!(group.cells.len(), 9);
            assert!(group.round_guess * group.max_rounds <= Duration::from_millis(1500));
        }
    }
}
