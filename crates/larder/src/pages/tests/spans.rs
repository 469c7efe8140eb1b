//! Spans, and what is backed ahead for them.

use super::*;

#[test]
fn a_span_does_not_back_runs_that_are_too_short_for_it() {
    let (system, builder) = recorded();
    let pool = builder
        .cluster(ClusterSize::pages(64).unwrap())
        .build()
        .unwrap();
    let spans: Vec<_> = (0..48).map(|_| pool.take_span(4).unwrap().0).collect();
    pool.put_spans(
        spans.iter().step_by(2).map(|&at| (at, 4)),
        crate::os::coarse_now(),
    );
    pool.trim();
    let held = pool.stats().held_bytes;
    assert_eq!(held, 24 * 4 * page_size());
    let before = calls(&system, Call::Populate).len();
    pool.take_span(16).unwrap();
    assert_eq!(
        calls(&system, Call::Populate)[before..],
        [16],
        "as many as asked for, and none of the 24 runs of four"
    );
    assert_eq!(pool.stats().held_bytes, held + 16 * page_size());
}

#[test]
fn spans_back_ahead_in_proportion_up_to_a_cluster() {
    let (system, builder) = recorded();
    let pool = builder
        .cluster(ClusterSize::pages(64).unwrap())
        .build()
        .unwrap();
    for taken in (4..2000).step_by(4) {
        pool.take_span(4).unwrap();
        let held = pool.stats().held_bytes / page_size();
        assert!(held <= taken + 8.max(taken / 8), "{held} for {taken}");
    }
    let ahead = calls(&system, Call::Populate);
    assert!(ahead.is_sorted(), "{ahead:?}");
    assert_eq!((ahead[0], ahead.last()), (8, Some(&64)), "{ahead:?}");
    assert!(ahead.len() < 64, "{ahead:?}");
}

#[test]
fn spans_that_are_long_for_a_block_are_backed_once() {
    let (_, builder) = recorded();
    let pool = builder
        .cluster(ClusterSize::pages(64).unwrap())
        .build()
        .unwrap();
    for taken in (33..33 * 12).step_by(33) {
        pool.take_span(33).unwrap();
        let held = pool.stats().held_bytes / page_size();
        assert!(held <= taken + 8.max(taken / 8), "{held} for {taken}");
    }
}

#[test]
fn pieces_go_back_before_neighbours_are_backed_elsewhere() {
    let (_, builder) = recorded();
    let pool = builder
        .cluster(ClusterSize::pages(64).unwrap())
        .build()
        .unwrap();
    let spans: Vec<_> = (0..256).map(|_| pool.take_span(4).unwrap().0).collect();
    let held = || pool.stats().held_bytes / page_size();
    let before = held();
    pool.make_room(16);
    assert_eq!(held(), before, "few are free");
    pool.put_spans(
        spans.iter().step_by(2).map(|&at| (at, 4)),
        crate::os::coarse_now(),
    );
    assert!(pool.has_span(4) && !pool.has_span(16));
    pool.make_room(4);
    assert_eq!(held(), before, "four neighbours are there");
    pool.make_room(65);
    assert_eq!(held(), before, "no block has so many");
    pool.make_room(16);
    let gone = before - held();
    assert!((16..16 + 32).contains(&gone), "{gone} pages went");
    pool.take_span(16).unwrap();
    assert!(
        held() <= before - gone + 64,
        "a cluster at most: {} pages, {before} before",
        held()
    );
}

#[test]
fn what_was_backed_ahead_is_found_behind_many_blocks_with_too_few_pages() {
    let (system, builder) = recorded();
    let pool = builder
        .cluster(ClusterSize::pages(64).unwrap())
        .build()
        .unwrap();
    // A piece of two pages in each of more blocks than a search looks into.
    let pieces: Vec<_> = (0..20_000).map(|_| pool.take_span(2).unwrap().0).collect();
    pool.put_spans(
        pieces.iter().step_by(32).map(|&at| (at, 2)),
        crate::os::coarse_now(),
    );
    let populated = || calls(&system, Call::Populate).len();
    let (before, held) = (populated(), pool.stats().held_bytes);
    for _ in 0..64 {
        pool.take_span(8).unwrap();
    }
    assert!(
        populated() - before <= 64 * 8 / 64 + 1,
        "{} calls",
        populated() - before
    );
    assert!(pool.stats().held_bytes - held <= (64 * 8 + 64) * page_size());
}
