//! Counts of a replay against what is known of them.

use super::*;
use crate::Lru;

#[test]
fn blocks_far_apart_and_room_made_before_count_alike() {
    let trace = [5, 1_000_000, 5, 7, 9, 5, 1_000_000, 7];
    let mut grown = Replay::new(Lru::new(3).unwrap()).unwrap();
    let mut made = Replay::with(Lru::new(3).unwrap(), 1_000_001).unwrap();
    let grown_hits = trace.map(|block| grown.access(block, 0));
    assert_eq!(grown_hits, trace.map(|block| made.access(block, 0)));
    assert_eq!(
        grown_hits,
        [false, false, true, false, false, true, false, false]
    );
    assert_eq!((made.hits(), made.misses(), made.lost()), (2, 6, 0));
}

#[test]
fn runs_and_single_accesses_count_alike() {
    let trace: Vec<u32> = (0..1000).map(|at| at * at % 37).collect();
    for len in [0, 1, AHEAD - 1, AHEAD, AHEAD + 1, 1000] {
        let mut single = Replay::new(Lru::new(9).unwrap()).unwrap();
        let mut run = Replay::new(Lru::new(9).unwrap()).unwrap();
        for (&block, request) in trace[..len].iter().zip(0..) {
            single.access(block, request);
        }
        run.run(&trace[..len], 0);
        assert_eq!((single.hits(), single.misses()), (run.hits(), run.misses()));
        assert!(
            trace
                .iter()
                .all(|&block| single.holds(block) == run.holds(block))
        );
    }
}

#[test]
fn what_is_read_ahead_is_wasted_until_it_is_used() {
    let mut cache = Replay::new(Lru::fifo(2).unwrap()).unwrap();
    let ahead = |cache: &mut Replay<Lru<false>>, block| {
        cache.read_ahead(block, Block(u64::from(block)), 0);
    };
    (0..2).for_each(|block| ahead(&mut cache, block));
    ahead(&mut cache, 1); // is there
    assert!(cache.access(0, 1));
    (2..4).for_each(|block| ahead(&mut cache, block)); // 0 leaves used, 1 does not
    assert_eq!((cache.fetched(), cache.wasted()), (4, 1));
    cache.remove(3);
    cache.remove(3);
    cache.remove(900);
    assert_eq!((cache.fetched(), cache.wasted()), (4, 2));
    assert_eq!((cache.hits(), cache.misses(), cache.lost()), (1, 0, 0));
    assert!(cache.holds(2) && !cache.holds(3));
    assert_eq!(cache.rule().len(), 1);
    assert!(cache.access(2, 2) && !cache.access(3, 3) && cache.access(3, 4));
    assert!(cache.bytes() >= cache.rule().bytes() + 4 * 8 + 2 * 8);
}

#[test]
fn a_rule_sees_the_identity_and_the_ticks() {
    use crate::{Linux247, WTinyLfu};
    // One identity for all blocks: to a sketch all are as frequent, and the counts differ from those of their own.
    let mut word = 1_u32;
    let mut draw = |below| {
        word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (word >> 16) % below
    };
    // Few blocks often, many seldom.
    let trace: Vec<u32> = (0..20_000)
        .map(|at| if at % 2 == 0 { draw(150) } else { draw(3000) })
        .collect();
    let hits = |identity: fn(u32) -> Block| {
        let mut cache = Replay::new(WTinyLfu::new(200).unwrap()).unwrap();
        cache.run_as(&trace, |at| at as u32, identity);
        cache.hits()
    };
    assert_ne!(hits(|_| Block(7)), hits(|block| Block(u64::from(block))));
    let aged = |every: u32| {
        let mut cache = Replay::new(Linux247::new(200).unwrap()).unwrap();
        for (&block, at) in trace.iter().zip(1..) {
            cache.access(block, at);
            if at % every == 0 {
                cache.tick();
            }
        }
        assert_eq!(cache.rule().check(), Ok(()));
        cache.hits()
    };
    assert_ne!(aged(u32::MAX), aged(1));
}

#[test]
fn a_block_that_is_written_to_its_end_is_deactivated_also_on_a_hit() {
    let mut cache = Replay::new(crate::Linux247::new(100).unwrap()).unwrap();
    let mut access = |block, reason| {
        let hit = cache.access_as(block, Block(block.into()), block, reason);
        (hit, cache.rule().explain()[0])
    };
    assert_eq!(access(0, Reason::Write), (false, ("active", 0.0)));
    (1..50).for_each(|block| assert!(!access(block, Reason::Demand).0));
    assert_eq!(access(30, Reason::Demand), (true, ("active", 49.0)));
    assert_eq!(access(30, Reason::Write), (true, ("active", 48.0)));
}

#[test]
fn a_table_that_no_memory_holds_is_refused() {
    let rule = Lru::fifo(1).unwrap();
    assert!(matches!(
        Replay::with(rule, usize::MAX / 8),
        Err(PolicyError::Memory { .. })
    ));
}

/// A block that is dirty here and there: written, used, removed, and come again.
#[test]
fn dirty_blocks_stay_and_are_parked_until_they_are_clean_used_or_removed() {
    let mut cache = Replay::new(Lru::new(4).unwrap()).unwrap();
    cache.run(&[0, 1, 2, 3], 0);
    cache.set_dirty(0);
    cache.set_dirty(1);
    cache.set_dirty(2); // beyond half of the frames
    cache.access(4, 4);
    assert!(cache.holds(0) && cache.holds(1) && !cache.holds(2));
    assert!(cache.access(0, 5), "a parked block is used");
    cache.access(5, 6);
    assert!(cache.holds(0) && cache.holds(1) && !cache.holds(3));
    cache.remove(1);
    cache.set_clean(0);
    cache.run(&[6, 7, 8, 9], 7);
    assert!((6..10).all(|block| cache.holds(block)));
    assert_eq!((cache.lost(), cache.rule().len()), (0, 4));
    cache.rule().check().unwrap();
}

/// LRU takes a parked frame for its newest when it looks at it again.
#[test]
fn a_dirty_block_that_was_passed_is_parked() {
    let mut cache = Replay::new(Lru::new(4).unwrap()).unwrap();
    cache.run(&[0, 1, 2, 3], 0);
    cache.set_dirty(0);
    cache.access(4, 4);
    cache.set_clean(0);
    cache.run(&[5, 6, 7], 5);
    assert!(
        cache.holds(0),
        "it is newer than those that came before it was clean"
    );
}

#[test]
fn what_was_dirty_before_it_came_is_dirty_when_it_comes() {
    let mut cache = Replay::new(Lru::new(2).unwrap()).unwrap();
    cache.set_dirty(0);
    cache.set_dirty(1);
    cache.set_clean(1);
    cache.run(&[0, 1, 2, 3], 0);
    assert!(cache.holds(0) && !cache.holds(1));
    cache.remove(0);
    cache.run(&[0, 4, 5], 4);
    assert!(
        !cache.holds(0),
        "what is removed is not dirty when it comes again"
    );
}

#[test]
fn a_block_that_is_held_stays_for_one_eviction() {
    let mut cache = Replay::new(Lru::new(4).unwrap()).unwrap();
    cache.run(&[0, 1, 2, 3], 0);
    cache.hold(0);
    cache.access(4, 4);
    assert!(cache.holds(0) && !cache.holds(1));
    cache.access(5, 5);
    assert!(!cache.holds(0), "it was held once");
}
