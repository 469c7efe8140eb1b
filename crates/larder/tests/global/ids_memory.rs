//! Without memory every operation says so, and the space is what it was before.

use std::collections::BTreeSet;

use crate::watched::refusing;
use larder::ids::rule::{Cyclic, Epochs, Fifo, Lifo, Lowest, NearFull, Random, Rested};
use larder::ids::{IdError, Ids, Rule};

/// Lets the first allocation fail, then the second, and so on until the call succeeds without it; before that it must
/// fail as it should and change nothing.
fn hungry<R: Rule, T>(
    ids: &mut Ids<R>,
    live: &BTreeSet<u64>,
    mut call: impl FnMut(&mut Ids<R>) -> Result<T, IdError>,
) -> T {
    for left in 0.. {
        let done = refusing(left, || call(ids));
        match done {
            Ok(done) => return done,
            Err(error) => {
                assert_eq!(error, IdError::OutOfMemory);
                assert!(ids.iter().eq(live.iter().copied()));
                assert_eq!(ids.allocated(), live.len() as u64);
            }
        }
    }
    unreachable!()
}

fn check<R: Rule>(rule: &R, last: u64) {
    let mut ids = Ids::new(0..=last, rule.clone()).unwrap();
    let mut live = BTreeSet::new();
    for n in 0..150u64 {
        let id = hungry(&mut ids, &live, Ids::alloc);
        assert!(live.insert(id));
        let id = n * (last / 400) + last / 2;
        if live.insert(id) {
            live.remove(&id);
            hungry(&mut ids, &live, |ids| ids.alloc_at(id));
            live.insert(id);
        }
        let first = hungry(&mut ids, &live, |ids| ids.alloc_range(700, 1));
        live.extend(first..first + 700);
        let (from, to) = (first + 100, first + 600);
        hungry(&mut ids, &live, |ids| ids.free_range(from..=to));
        live.retain(|id| !(from..=to).contains(id));
        if n % 3 == 0 {
            let id = *live.iter().nth(n as usize * 50).unwrap();
            hungry(&mut ids, &live, |ids| ids.free(id));
            live.remove(&id);
        }
    }
    let many: Vec<u64> = live.iter().copied().collect();
    hungry(&mut ids, &live, |ids| ids.free_many(&many));
    assert_eq!(ids.allocated(), 0);
}

fn check_all<R: Rule>(rule: R) {
    check(&rule, 200_000);
    check(&rule, u64::from(u32::MAX));
    check(&rule, 1 << 48);
}

/// The allocated ones as runs, for bands that are too wide for a set.
fn runs<R: Rule>(ids: &Ids<R>) -> Vec<(u64, u64)> {
    ids.runs().map(|run| (run.first(), run.last())).collect()
}

/// As [`hungry`], of bands.
fn hungry_band<R: Rule>(
    ids: &mut Ids<R>,
    mut call: impl FnMut(&mut Ids<R>) -> Result<(), IdError>,
) {
    let (before, allocated) = (runs(ids), ids.allocated());
    for left in 0.. {
        let done = refusing(left, || call(ids));
        if done.is_ok() {
            return;
        }
        assert_eq!(done, Err(IdError::OutOfMemory));
        assert_eq!((runs(ids), ids.allocated()), (before.clone(), allocated));
    }
}

/// A wide band, of which single identifiers and whole chunks are freed and taken here and there.
fn check_band<R: Rule>(rule: R) {
    const CHUNK: u64 = 1 << 16;
    let base = 1u64 << 40;
    let mut ids = Ids::new(0..=1u64 << 48, rule).unwrap();
    hungry_band(&mut ids, |ids| ids.reserve(base..base + 400 * CHUNK));
    for n in 0..160 {
        let chunk = base + n * 77 % 400 * CHUNK;
        match n % 4 {
            0 | 1 => hungry_band(&mut ids, |ids| ids.free(chunk + 7 + n * 9)),
            2 => hungry_band(&mut ids, |ids| ids.free_range(chunk..chunk + CHUNK)),
            _ => hungry_band(&mut ids, |ids| ids.free_range(chunk + 50..chunk + CHUNK)),
        }
    }
    let first = ids.next_allocated(0);
    let holes = runs(&ids);
    assert!(first == Some(base) && holes.len() > 100, "{}", holes.len());
    for pair in holes.windows(2) {
        hungry_band(&mut ids, |ids| ids.reserve(pair[0].1 + 1..=pair[1].0 - 1));
    }
    assert_eq!(runs(&ids).len(), 1);
}

#[test]
fn of_a_band() {
    check_band(Lowest);
    check_band(Cyclic);
    check_band(Lifo);
    check_band(Epochs::<2>);
}

#[test]
fn of_a_band_from_several_epochs() {
    let mut ids: Ids<Epochs> = Ids::new(0..=1u64 << 48, Epochs).unwrap();
    let places: Vec<u64> = (0..6).map(|n| (1 << 40) + n * (1 << 17) + 77).collect();
    places.iter().for_each(|&id| ids.alloc_at(id).unwrap());
    ids.free_many(&places).unwrap();
    let (first, last) = (places[0] - 50, places[5] + 50);
    hungry_band(&mut ids, |ids| ids.reserve(first..=last));
    assert_eq!(runs(&ids), [(first, last)]);
    hungry_band(&mut ids, |ids| ids.free_range(places[1]..=last));
    assert_eq!(runs(&ids), [(first, places[1] - 1)]);
}

#[test]
fn the_lowest() {
    check_all(Lowest);
}

#[test]
fn the_next() {
    check_all(Cyclic);
}

#[test]
fn the_first_freed() {
    check_all(Fifo);
}

#[test]
fn the_last_freed() {
    check_all(Lifo);
}

#[test]
fn those_of_an_earlier_epoch() {
    check_all(Epochs::<2>);
}

#[test]
fn any() {
    check_all(Random::new([5; 32]));
}

#[test]
fn those_that_rested() {
    check_all(Rested::allocations(Fifo, 300, NearFull::Relax));
}

#[test]
fn nothing_is_allocated_at_first() {
    // The process's first hash map allocates a byte to draw its seed.
    drop(Ids::new(0u64..=u64::MAX, Fifo));
    let (ids, wide) = refusing(0, || {
        (
            Ids::new(0u32..1_000_000, Cyclic),
            Ids::new(0u64..=u64::MAX, Fifo),
        )
    });
    assert!(ids.unwrap().bytes() < 300 && wide.is_ok());
}
