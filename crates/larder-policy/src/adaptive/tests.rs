use std::collections::{HashMap, VecDeque};

use proptest::prelude::*;

use super::duel::Duel;
use super::ghosts::Ghosts;
use super::guard::Guard;
use super::knobs::{AS_LRU, COUNT};
use super::sample::Sample;
use super::tags::Tags;
use super::trial::Trial;
use super::*;
use crate::FrameState;
use crate::replay::Replay;

fn ruling(cache: &Replay<Adaptive>) -> &'static str {
    EXPERTS[Policy::explain(cache.rule())[0].1 as usize].name
}

fn run(capacity: usize, blocks: impl Iterator<Item = u32>) -> Replay<Adaptive> {
    let mut cache = Replay::new(Adaptive::new(capacity).unwrap()).unwrap();
    for (at, block) in blocks.enumerate() {
        cache.access(block, at as u32);
    }
    Policy::check(cache.rule()).unwrap();
    cache
}

/// Numbers that look random, from a seed.
fn random(seed: u64) -> impl Iterator<Item = u64> {
    let mut word = seed;
    core::iter::repeat_with(move || {
        word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mix = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mix ^ (mix >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 20
    })
}

#[test]
fn a_loop_is_given_to_the_expert_of_loops() {
    for capacity in [900, 20_000] {
        let blocks = capacity as u32 * 11 / 10;
        let rounds = 400_u32;
        let cache = run(capacity, (0..blocks * rounds).map(|at| at % blocks));
        assert_eq!(ruling(&cache), "misses, loops");
        // 10 of 11 blocks fit
        let hits = cache.hits() as f64 / f64::from(blocks * rounds);
        assert!(hits > 0.85, "{capacity}: {hits}");
    }
}

#[test]
fn blocks_that_come_back_soon_are_given_a_larger_small_queue() {
    // Each block is used three times, the second and third 200 and 230 blocks after the one before: longer than the small queue
    // of the first expert lasts in a cache of 1000, and never again.
    let blocks = (0..200_000_u32).flat_map(|at| {
        [Some(at), at.checked_sub(200), at.checked_sub(430)]
            .into_iter()
            .flatten()
    });
    let cache = run(1000, blocks);
    let rules = ruling(&cache);
    assert!(
        ["misses, recency", "misses, LRU"].contains(&rules),
        "{rules}"
    );
}

#[test]
fn a_scan_does_not_drive_out_what_is_used() {
    let mut numbers = random(1);
    let mut hot = move || (numbers.next().unwrap() % 800) as u32;
    let mut cache = Replay::new(Adaptive::new(1000).unwrap()).unwrap();
    for at in 0..100_000 {
        cache.access(hot(), at);
    }
    for at in 0..10_000 {
        cache.access(10_000 + at, at); // a scan ten times the cache
    }
    let before = cache.hits();
    for at in 0..10_000 {
        cache.access(hot(), at);
    }
    let hits = cache.hits() - before;
    assert!(hits > 9_800, "{hits} of 10000 after the scan");
}

/// Brings a block to a frame.
fn bring(rule: &mut Adaptive, frame: Frame, block: u64, reason: Reason) {
    let block = Block(block);
    let admission = rule.miss(block, None, reason);
    rule.insert(
        frame,
        Arrival {
            block,
            reason,
            request: 0,
            admission,
        },
    );
}

#[test]
fn readahead_that_nobody_uses_leaves_and_a_first_use_is_not_a_second() {
    let mut rule = Adaptive::new(100).unwrap();
    let mut gone: Vec<Frame> = Vec::new();
    for at in 0..100 {
        bring(&mut rule, at, at.into(), Reason::Readahead);
    }
    for at in 0..50 {
        rule.touch(at, Touch { request: 1 }); // first uses: as new as anything
    }
    for at in 0..10 {
        rule.touch(at, Touch { request: 2 });
        rule.touch(at, Touch { request: 3 });
    }
    // 25 came after the first half of the unused blocks, so these have waited long enough
    assert_eq!(rule.evict(&mut gone, 25), 25);
    assert_eq!(gone, (50..75).collect::<Vec<_>>());
    for at in 50..75 {
        bring(&mut rule, at, 100 + u64::from(at), Reason::Demand);
    }
    assert_eq!(rule.evict(&mut gone, 25), 25);
    assert_eq!(gone[25..], (75..100).collect::<Vec<_>>());
    rule.evict(&mut gone, 30);
    // what was used twice was used again after the window had passed it
    assert!(gone[50..].iter().all(|&frame| frame >= 10), "{gone:?}");
    Policy::check(&rule).unwrap();
}

#[test]
fn what_many_readers_read_ahead_is_there_when_they_come_to_it() {
    const READERS: u64 = 30;
    const AHEAD: u64 = 8;
    // The small queue has 100 frames at first, and 10 at least, while 240 blocks wait for their use.
    let mut rule = Adaptive::new(1000).unwrap();
    let mut free: Vec<Frame> = (0..1000).collect();
    let mut inside = HashMap::new();
    for at in 0..400 {
        for reader in 0..READERS {
            for next in (at..at + AHEAD).filter(|_| at % AHEAD == 0) {
                if free.is_empty() {
                    rule.evict(&mut free, 1);
                    inside.retain(|_, frame| !free.contains(frame));
                }
                let (block, frame) = (reader << 32 | next, free.pop().unwrap());
                bring(&mut rule, frame, block, Reason::Readahead);
                inside.insert(block, frame);
            }
            let frame = inside.get(&(reader << 32 | at));
            let frame = *frame.unwrap_or_else(|| panic!("block {at} of {reader} has left"));
            rule.touch(frame, Touch { request: at as u32 });
        }
    }
    Policy::check(&rule).unwrap();
}

struct Owner {
    pinned: fn(Frame) -> bool,
    gone: Vec<Frame>,
}

impl Frames for Owner {
    fn state(&self, frame: Frame) -> FrameState {
        if (self.pinned)(frame) {
            FrameState::Pinned
        } else {
            FrameState::Clean
        }
    }

    fn evicted(&mut self, frame: Frame, _: Option<Shadow>) {
        self.gone.push(frame);
    }
}

#[test]
fn pinned_frames_stay_wherever_they_are_and_evicting_comes_to_an_end() {
    let mut rule = Adaptive::new(1000).unwrap();
    for frame in 0..1000 {
        let block = Block(u64::from(frame));
        let admission = rule.miss(block, None, Reason::Demand);
        rule.insert(frame, Arrival::demand(block, 0, admission));
    }
    for frame in 0..500 {
        (0..3).for_each(|request| rule.touch(frame, Touch { request }));
    }
    let mut owner = Owner {
        pinned: |frame| frame % 4 != 0,
        gone: Vec::new(),
    };
    assert_eq!(rule.evict(&mut owner, 1000), 250);
    assert!(owner.gone.iter().all(|frame| frame % 4 == 0));
    assert_eq!(rule.evict(&mut owner, 1), 0);
    Policy::check(&rule).unwrap();
    owner.pinned = |_| false;
    assert_eq!(rule.evict(&mut owner, 1000), 750);
    assert!(Policy::is_empty(&rule));
}

#[test]
fn the_frames_that_are_not_parked_are_shared_out_as_a_cache_of_their_own() {
    const PARKED: Frame = 900;
    let mut rule = Adaptive::new(1000).unwrap();
    for frame in 0..1000 {
        bring(&mut rule, frame, frame.into(), Reason::Demand);
    }
    (0..PARKED).for_each(|frame| rule.park(frame));
    let shown = |rule: &Adaptive| {
        let said = rule.explain();
        let found = said.iter().find(|(name, _)| *name == "sampled accesses");
        found.unwrap().1
    };
    let before = shown(&rule);
    // Sixty blocks in turn, with a new one after each: LRU has each of them 120 blocks ago, and 100 frames.
    let mut inside: HashMap<u64, Frame> = HashMap::new();
    let (mut hits, mut ghosts) = (0, HashMap::new());
    for at in 0..12_000_u64 {
        let block = match at % 2 {
            0 => 10_000 + at / 2 % 60,
            _ => 20_000 + at,
        };
        if let Some(&frame) = inside.get(&block) {
            rule.touch(frame, Touch { request: at as u32 });
            hits += 1;
            continue;
        }
        let admission = rule.miss(Block(block), ghosts.remove(&block), Reason::Demand);
        let mut owner = Ghostly::default();
        assert_eq!(rule.evict(&mut owner, 1), 1);
        let (frame, shadow) = owner.0[0];
        assert!(frame >= PARKED);
        let left = inside.iter().find(|&(_, &other)| other == frame);
        if let Some(left) = left.map(|(&left, _)| left) {
            inside.remove(&left);
            ghosts.extend(shadow.map(|shadow| (left, shadow)));
        }
        rule.insert(frame, Arrival::demand(Block(block), at as u32, admission));
        inside.insert(block, frame);
    }
    assert!(hits > 5_500, "{hits} of 6000");
    assert_eq!(shown(&rule), before, "the miniatures have no parked frames");
    Policy::check(&rule).unwrap();
    (0..PARKED).for_each(|frame| rule.unpark(frame));
    let blocks = 30_000..40_000_u64;
    for block in blocks {
        let _ = rule.miss(Block(block), None, Reason::Demand);
    }
    assert!(shown(&rule) > before);
}

#[test]
fn what_parked_frames_displaced_is_no_fault_of_the_rule() {
    let mut rule = Adaptive::new(1000).unwrap();
    let mut inside: HashMap<u64, Frame> = HashMap::new();
    let mut take = |rule: &mut Adaptive, block: u64| {
        if let Some(&frame) = inside.get(&block) {
            rule.touch(frame, Touch { request: 0 });
            return frame;
        }
        let frame = match inside.len() {
            1000 => {
                let mut owner = Ghostly::default();
                assert_eq!(rule.evict(&mut owner, 1), 1);
                owner.0[0].0
            }
            len => len as Frame,
        };
        inside.retain(|_, other| *other != frame);
        inside.insert(block, frame);
        bring(rule, frame, block, Reason::Demand);
        frame
    };
    let falls = |rule: &Adaptive| {
        let said = rule.explain();
        let found = said.iter().find(|(name, _)| *name == "falls back to LRU");
        found.unwrap().1
    };
    for block in 0..1000 {
        take(&mut rule, block);
    }
    // LRU in miniature keeps these. The cache gives up most of them for frames that may not leave.
    let parked: Vec<Frame> = (1000..1900)
        .map(|block| {
            let frame = take(&mut rule, block);
            rule.park(frame);
            frame
        })
        .collect();
    parked.into_iter().for_each(|frame| rule.unpark(frame));
    let excused = rule.excused;
    assert!(excused > rule.sample.frames() / 2 && excused <= rule.sample.frames());
    for block in 0..900 {
        take(&mut rule, block);
    }
    assert_eq!(falls(&rule), 0.0);
    assert_eq!(rule.excused, 0, "later misses count again");
    Policy::check(&rule).unwrap();
}

/// What left, and what was left of it.
#[derive(Default)]
struct Ghostly(Vec<(Frame, Option<Shadow>)>);

impl Frames for Ghostly {
    fn state(&self, _: Frame) -> FrameState {
        FrameState::Clean
    }

    fn evicted(&mut self, frame: Frame, shadow: Option<Shadow>) {
        self.0.push((frame, shadow));
    }
}

#[test]
fn experts_who_are_equal_are_left_alone_and_a_better_one_is_not() {
    let mut numbers = random(3);
    let mut duel = Duel::new(512);
    for _ in 0..200_000 {
        let hits = numbers.next().unwrap();
        // each hits by chance, all as often
        let _ = duel.observe(hits as u8 & ((1 << COUNT) - 1), None);
    }
    // 2 standard deviations are passed now and then by chance, but the cost of a move holds most back
    assert!(duel.switches() < 100, "{}", duel.switches());

    let mut duel = Duel::new(512);
    let mut rules = None;
    for at in 0..10_000 {
        let mut hits = if at % 2 == 0 { (1 << COUNT) - 1 } else { 0 };
        hits |= u8::from(at % 20 == 1) << 3;
        rules = duel.observe(hits, None).or(rules);
    }
    assert_eq!((rules, duel.ruling(), duel.switches()), (Some(3), 3, 1));
}

#[test]
fn the_guard_holds_longer_each_time_until_what_was_won_pays_for_it() {
    const FRAMES: usize = 100;
    let mut guard = Guard::new(FRAMES);
    // The cache misses where LRU hits: how many accesses until LRU is to rule, and for how many it must.
    let fall = |guard: &mut Guard| {
        let losses = 1
            + (0..1000)
                .take_while(|_| !guard.observe(true, Some(false), 0))
                .count();
        let held = (0..100_000).take_while(|_| {
            let holds = guard.holds();
            assert!(!holds || !guard.observe(true, Some(false), 0));
            holds
        });
        (losses, held.count())
    };
    assert_eq!(fall(&mut guard), (51, 200));
    assert_eq!(fall(&mut guard), (51, 400));
    assert_eq!(fall(&mut guard), (51, 800));
    // Half a miss a frame for the fall, and a miss a frame for what is not there then.
    for _ in 0..151 {
        assert!(!guard.observe(false, Some(true), 0));
    }
    assert_eq!(fall(&mut guard), (51, 800));
    // What cannot be compared is neither.
    assert!((0..1000).all(|_| !guard.observe(true, None, 0)));
    assert_eq!((fall(&mut guard), guard.falls()), ((51, 1600), 5));
    // With a doubt it may lose four times as much. Where LRU did not keep its promise, it holds no longer, and not for longer next time.
    let lost = (0..1000).take_while(|_| !guard.observe(true, Some(false), 1));
    assert_eq!(1 + lost.count(), 51 * 4);
    assert!(guard.holds());
    guard.let_go();
    assert!(!guard.holds());
    assert_eq!(fall(&mut guard), (51, 3200));
}

#[test]
fn an_expert_that_does_not_keep_its_promise_is_doubted_until_it_does() {
    const FRAMES: usize = 100;
    let (rules, other) = (1 << AS_LRU, 1 << 2);
    let mut trial = Trial::new(FRAMES);
    let fails = |trial: &mut Trial| {
        trial.begin(2);
        let kept = (0..1000).take_while(|_| trial.observe(AS_LRU, rules | other, false).is_none());
        1 + kept.count()
    };
    // A miss a frame for the move, and four standard deviations.
    assert_eq!(fails(&mut trial), 141);
    assert_eq!((trial.doubts(AS_LRU), trial.doubts(2)), (1, 0));
    for _ in 0..5 {
        fails(&mut trial);
    }
    assert_eq!(trial.doubts(AS_LRU), 3, "no more than that");
    // One of both is not enough: the load has changed, or the cache was never so good.
    trial.begin(2);
    assert!((0..1000).all(|_| trial.observe(AS_LRU, rules, false).is_none()));
    trial.begin(2);
    assert!((0..1000).all(|_| trial.observe(AS_LRU, other, false).is_none()));
    trial.begin(2);
    assert!((0..3300).all(|_| trial.observe(AS_LRU, rules, true).is_none()));
    assert_eq!(trial.doubts(AS_LRU), 1);
}

/// In some of these caches all sampled blocks of the loop have room in a miniature, where LRU hits each time.
#[test]
fn a_loop_a_little_larger_than_the_cache_is_not_left_to_lru() {
    for (blocks, frames) in [(300, 270), (300, 285), (5000, 4750)] {
        for from in 0..24 {
            let mut cache = Replay::new(Adaptive::new(frames).unwrap()).unwrap();
            let mut late = 0;
            for at in 0..50 * blocks {
                let block = at % blocks;
                let name = Block(u64::from(block) * 13 + from * 1_000_003);
                let hit = cache.access_as(block, name, at, Reason::Demand);
                late += u32::from(hit && at >= 25 * blocks);
            }
            let share = f64::from(late) / f64::from(25 * blocks);
            assert!(share > 0.7, "{share} of {blocks} in {frames}, {from}");
        }
    }
}

/// Phases in which LRU is best, and phases in which it has nothing, so that other settings come to rule again and again.
fn against_the_rule(kind: u32, frames: u32, seed: u64) -> Vec<u32> {
    let mut numbers = random(seed);
    let mut load = Vec::new();
    let mut new = 10_000;
    while load.len() < 300 * frames as usize {
        let number = numbers.next().unwrap() as u32;
        let length = frames * (1 + number % 8);
        let which = if kind == 5 { number / 8 % 5 } else { kind };
        for at in 0..length {
            new += 1;
            let turn = at % (4 * frames);
            load.push(match which {
                // There and back again.
                0 => turn.min(4 * frames - 1 - turn),
                // A loop that just fits, and a new block now and then.
                1 if at % 97 == 96 => new,
                1 => at % (frames - 2),
                // Each block twice, almost as many blocks apart as there are frames.
                2 if at % 2 == 0 => new,
                2 => new - 1 - 2 * (frames * 2 / 5),
                // A loop that does not fit, with and without a part that does.
                3 => at % (frames * 3 / 2),
                _ => 5000 + at % (frames * (1 + at / frames % 2) * 9 / 10),
            });
        }
    }
    load
}

#[test]
fn what_is_lost_against_lru_is_bounded() {
    let mut falls = 0.0;
    for (kind, frames, seed) in (0..6).flat_map(|kind| {
        [
            (kind, 64, 1),
            (kind, 100, 2),
            (kind, 300, 3),
            (kind, 512, 4),
        ]
    }) {
        let load = against_the_rule(kind, frames, seed);
        let mut lru = Replay::new(crate::Lru::new(frames as usize).unwrap()).unwrap();
        let mut cache = Replay::new(Adaptive::new(frames as usize).unwrap()).unwrap();
        for (at, &block) in load.iter().enumerate() {
            let at = at as u32;
            lru.access(block, at);
            cache.access(block, at);
            let lost = lru.hits() as i64 - cache.hits() as i64;
            let uses = f64::from((at / frames).max(1));
            let bound = (2.0 + 1.5 * uses.log2()) * f64::from(frames);
            assert!(
                lost as f64 <= bound,
                "{kind}, {frames} frames, use {at}: {lost}"
            );
        }
        let said = cache.rule().explain();
        let found = said.iter().find(|(name, _)| *name == "falls back to LRU");
        falls += found.unwrap().1;
    }
    assert!(falls >= 5.0, "the guard was never needed: {falls}");
}

#[test]
fn a_sample_has_its_share_of_the_blocks() {
    for capacity in [1, 512, 1000, 100_000] {
        let sample = Sample::new(capacity);
        let of = 1_000_000;
        let seen = (0..of).filter(|&at| sample.name(Block(at)).1).count();
        let expected = sample.frames() as f64 / capacity as f64 * of as f64;
        let off = (seen as f64 - expected).abs();
        assert!(
            off <= 5.0 * expected.sqrt(),
            "{capacity}: {seen}, not {expected}"
        );
    }
}

proptest! {
    #[test]
    fn ghosts_are_a_queue_from_which_one_may_leave(
        steps in proptest::collection::vec((0_u8..4, 0_usize..80), 1..600),
        most in 1_usize..60,
    ) {
        let mut ghosts = Ghosts::new(most).unwrap().starting_at(u32::MAX - 100);
        let mut model: VecDeque<u32> = VecDeque::new();
        let mut ever: Vec<u32> = Vec::new();
        let mut limit = most;
        for (what, which) in steps {
            match what {
                0 | 1 => {
                    let at = ghosts.push();
                    model.push_back(at);
                    ever.push(at);
                }
                2 if !ever.is_empty() => {
                    let at = ever[ever.len() - 1 - which % ever.len().min(80)];
                    let there = model.iter().position(|&it| it == at);
                    prop_assert_eq!(ghosts.take(at), there.is_some());
                    there.map(|it| model.remove(it));
                }
                _ => {
                    limit = which % (most + 1);
                    ghosts.limit(limit);
                }
            }
            while model.len() > limit {
                model.pop_front();
            }
            // the numbers that bits are kept for bound the memory too
            let numbers = (most.max(32) * 2).next_power_of_two() as u32;
            let latest = ghosts.evictions();
            model.retain(|&at| latest.wrapping_sub(at) < numbers - 1);
            prop_assert_eq!(ghosts.len(), model.len());
            ghosts.check().unwrap();
        }
    }

    #[test]
    fn tags_are_a_map(
        steps in proptest::collection::vec((any::<bool>(), 0_u32..40), 1..400),
        expected in prop::sample::select(vec![None, Some(4_usize), Some(16)]),
    ) {
        let mut tags = expected.map_or_else(Tags::of_all, |expected| Tags::new(expected).unwrap());
        let mut model: HashMap<u32, u32> = HashMap::new();
        for (insert, frame) in steps {
            let tag = frame.wrapping_mul(77);
            if insert && !model.contains_key(&frame) {
                if tags.insert(frame, tag, frame + 1) {
                    model.insert(frame, tag);
                } else {
                    prop_assert_eq!(Some(model.len()), expected.map(|expected| expected * 2 * 7 / 8));
                }
            } else if !insert {
                tags.remove(frame);
                model.remove(&frame);
            }
            for frame in 0..40 {
                prop_assert!(tags.is_shown(frame, frame + 1));
                prop_assert_eq!(tags.is_shown(frame, 0), !model.contains_key(&frame));
                prop_assert_eq!(tags.show(frame, 0), model.get(&frame).copied());
                prop_assert!(tags.is_shown(frame, 0));
                tags.show(frame, frame + 1);
            }
        }
    }
}

#[test]
fn a_loop_that_is_run_through_a_few_times_hits_from_the_second_time_on() {
    for capacity in [300, 900, 20_000] {
        let blocks = capacity * 3 / 2;
        let cache = run(capacity as usize, (0..blocks * 5).map(|at| at % blocks));
        let hits = cache.hits() as f64 / f64::from(blocks * 4);
        // Two of three blocks fit; LRU would never hit.
        assert!(hits > 0.5, "{capacity}: {hits}");
    }
}

#[test]
fn every_sequence_leaves_it_whole_also_when_it_is_resized() {
    let mut numbers = random(9);
    let mut cache = Replay::new(Adaptive::new(2000).unwrap()).unwrap();
    for at in 0..300_000_u32 {
        let number = numbers.next().unwrap();
        cache.access((number % (100 + number % 5000)) as u32, at);
        if at % 10_007 == 0 {
            Policy::check(cache.rule()).unwrap();
        }
    }
    let mut rule = Adaptive::new(100).unwrap();
    let mut gone: Vec<Frame> = Vec::new();
    for (at, capacity) in [(0, 100), (1, 1), (2, 5000), (3, 1), (4, 600)] {
        rule.resize(capacity).unwrap();
        let over = Policy::len(&rule).saturating_sub(capacity);
        rule.evict(&mut gone, over);
        assert!(Policy::len(&rule) <= capacity);
        Policy::check(&rule).unwrap();
        while Policy::len(&rule) > 0 {
            rule.evict(&mut gone, 1);
        }
        for frame in 0..capacity as Frame {
            let block = Block(u64::from(frame) + 100_000 * at);
            let admission = rule.miss(block, None, Reason::Demand);
            rule.insert(frame, Arrival::demand(block, 0, admission));
            rule.touch(frame / 2, Touch { request: frame });
        }
        assert_eq!(Policy::len(&rule), capacity);
        Policy::check(&rule).unwrap();
        gone.clear();
    }
}
