//! The default rule and its model on loads that change, so that one setting after the other rules.

use super::adaptive::{Adaptive, hash};
use super::drive::{Arrival, Naive, Op, drive};
use larder_policy::replay::Replay;
use larder_policy::{self, Policy};
use proptest::prelude::*;
use std::collections::HashMap;

/// Loads that one setting after the other does well on: loops, popular blocks, scans, uses that come back.
fn phases() -> impl Strategy<Value = Vec<Op>> {
    let phase = (0u8..4, 2u32..110, 200u32..1500, 1u32..99);
    prop::collection::vec(phase, 1..5).prop_map(|phases| {
        let mut ops = Vec::new();
        for (kind, blocks, length, seed) in phases {
            let mut word = u64::from(seed);
            ops.extend((0..length).map(|at| {
                word = hash(word + 1);
                let block = match kind {
                    0 => at % blocks,
                    1 => (word % u64::from(blocks)).min((word >> 32) % u64::from(blocks)) as u32,
                    2 => 100 + at % 150,
                    _ => at / 2 + (at % 2) * blocks,
                };
                let (block, again) = ((block % 250) as u8, word >> 60 == 0);
                Op::Use { block, again }
            }));
        }
        ops
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_default_follows_its_model_through_changing_loads(capacity in 4usize..80, ops in phases()) {
        drive::<Adaptive>(capacity, &ops)?;
    }
}

#[test]
fn the_default_changes_its_setting_when_its_model_does() {
    const CAPACITY: usize = 120;
    let mut cache = Replay::new(larder_policy::Adaptive::new(CAPACITY).unwrap()).unwrap();
    let mut model = Adaptive::new(CAPACITY);
    let mut places: HashMap<u64, Result<u32, u64>> = HashMap::new();
    let mut holds: HashMap<u32, u64> = HashMap::new();
    let mut switched = 0;
    for at in 0..60_000_u32 {
        // A loop that does not fit, then uses that come back 25 and 45 blocks later, then popular blocks.
        let block = match at / 10_000 % 3 {
            0 => at % 132,
            1 => (at / 3 + 10_000).saturating_sub([0, 25, 45][at as usize % 3]),
            _ => (hash(at.into()) % 400).min(hash(at.into()) >> 32 & 0x1ff) as u32,
        };
        let hit = cache.access(block, at);
        let block = u64::from(block);
        let place = places.get(&block).copied();
        assert_eq!(hit, matches!(place, Some(Ok(_))), "access {at}");
        if let Some(Ok(frame)) = place {
            model.touch(frame, at);
        } else {
            let decision = model.miss(block, place.and_then(Result::err), false);
            let mut frame = holds.len() as u32;
            if holds.len() == CAPACITY {
                let (gone, ghost) = model.evict(&|_| true).unwrap();
                frame = gone;
                let left = holds.remove(&gone).unwrap();
                match ghost {
                    Some(ghost) => places.insert(left, Err(ghost)),
                    None => places.remove(&left),
                };
            }
            let arrival = Arrival {
                block,
                decision,
                ahead: false,
                request: at,
            };
            model.insert(frame, arrival);
            holds.insert(frame, block);
            places.insert(block, Ok(frame));
        }
        let said = cache.rule().explain();
        let of = |name| said.iter().find(|(found, _)| *found == name).unwrap().1;
        let (ruling, switches) = model.ruling();
        assert_eq!(of("expert"), ruling as f64, "access {at}");
        assert_eq!(of("switches"), switches as f64);
        switched = switches;
    }
    assert!(
        switched >= 4,
        "{switched} switches are too few to show anything"
    );
}
