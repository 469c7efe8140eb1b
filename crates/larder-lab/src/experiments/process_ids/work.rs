//! How many ids are deleted in a round, and how many rounds are played, by the number of tasks.

use crate::published;

/// Deletions and rounds at an A in the quick form, so that algo-0 takes some 20 ms; the same for every algorithm.
pub(super) fn quick_work(tasks: i64) -> (i64, i64) {
    match tasks {
        ..=500 => (50, 100),
        501..=2000 => (500, 5),
        2001..=4000 => (1000, 2),
        4001..=8000 => (600, 1),
        8001..=12_000 => (400, 1),
        12_001..=16_000 => (200, 1),
        16_001..=20_000 => (120, 1),
        20_001..=24_000 => (80, 1),
        24_001..=28_000 => (40, 1),
        28_001..=32_000 => (24, 1),
        _ => (1, 1),
    }
}

/// The same where tasks lie elsewhere, in the quick form: a walk over scattered tasks takes ten times as long.
pub(super) fn elsewhere_work(tasks: i64) -> (i64, i64) {
    match tasks {
        ..=10_000 => (150, 1),
        10_001..=25_000 => (30, 1),
        _ => (10, 1),
    }
}

/// Where tasks are scattered, in the full form: fewer where a walk takes milliseconds.
pub(super) fn scattered_work(tasks: i64) -> (i64, i64) {
    match tasks {
        ..=8000 => (1000, 1),
        8001..=18_000 => (200, 1),
        18_001..=24_000 => (100, 1),
        _ => (50, 1),
    }
}

/// Where tasks are small, as in his harness, in the full form: his D, once.
pub(super) fn packed_work(tasks: i64) -> (i64, i64) {
    (his_work(tasks).0, 1)
}

/// His D, and his ten rounds where algo-0 plays them in a second. Nearer to a full space fewer, whole ones: a mean over
/// part of a round would be of the time when most ids are free. The same number for every algorithm at an A, since the
/// ids ahead of the last one thin out from round to round.
pub(super) fn his_work(tasks: i64) -> (i64, i64) {
    let rounds = match tasks {
        ..=15_000 => 10,
        15_001..=17_000 => 6,
        17_001..=20_000 => 4,
        20_001..=22_000 => 3,
        22_001..=26_000 => 2,
        26_001..=30_000 => 1,
        30_001..=32_100 => 5,
        32_101..=32_300 => 3,
        32_301..=32_400 => 2,
        32_401..=32_700 => 1,
        32_701..=32_755 => 8,
        32_756..=32_760 => 5,
        32_761..=32_764 => 3,
        _ => 1,
    };
    published::franke_getpid()
        .iter()
        .find(|row| i64::from(row.tasks) == tasks)
        .map_or((50, rounds), |row| (i64::from(row.deletes), rounds))
}

pub(super) fn his_tasks() -> Vec<i64> {
    published::franke_getpid()
        .iter()
        .map(|row| i64::from(row.tasks))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_his_has_its_deletes_and_whole_rounds() {
        for row in published::franke_getpid() {
            let (deletes, rounds) = his_work(i64::from(row.tasks));
            assert_eq!(deletes, i64::from(row.deletes), "{}", row.tasks);
            assert!((1..=10).contains(&rounds));
        }
        assert_eq!(his_work(1000), (1000, 10));
        assert_eq!(his_work(30_000), (1000, 1));
    }
}
