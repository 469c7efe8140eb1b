//! The child of a fork goes on using its arena, whatever the parent's other threads were doing at that moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::fork::Storm;
use crate::common::*;
use larder::arena::{Arena, Request};

fn use_arena(arena: &Arena, seed: u64, turns: u64, stop: &AtomicBool) {
    let mut rng = Rng(seed);
    let mut held = Vec::new();
    let mut turn = 0;
    while turn < turns && !stop.load(Ordering::Relaxed) {
        turn += 1;
        if held.len() < 100 && rng.below(2) == 0 {
            let size = 1 + rng.below(6) as u64;
            let addr = if rng.below(6) == 0 {
                arena.xalloc(&Request::new(size).align(4)).unwrap()
            } else {
                arena.alloc(size).unwrap()
            };
            held.push((addr, size));
        } else if !held.is_empty() {
            let (addr, size) = held.swap_remove(rng.below(held.len()));
            arena.free(addr, size).unwrap();
        }
        if rng.below(500) == 0 {
            arena.trim();
            arena.audit().unwrap();
        }
    }
    for (addr, size) in held {
        arena.free(addr, size).unwrap();
    }
}

#[test]
fn a_child_goes_on() {
    const TEST: &str = "a_child_goes_on";
    alone(TEST, |mode| {
        let source = Arc::new(
            Arena::builder("source")
                .quantum(64)
                .mode(mode)
                .build()
                .unwrap(),
        );
        source.add(0, 1 << 20).unwrap();
        let arena = Arena::builder("forked")
            .quantum_max(3)
            .magazine(3, 7)
            .mode(mode)
            .source(source.clone())
            // The child must not count what the parent's threads were importing.
            .limit(1 << 17)
            .build()
            .unwrap();
        let mine = arena.alloc(5).unwrap();
        let storm = Storm {
            mode,
            threads: 4,
            least: 25,
            seconds: 2.0,
        };
        storm.rage(
            |me, stop| use_arena(&arena, me, u64::MAX, stop),
            || (),
            |forks, ()| {
                arena.audit().unwrap();
                source.audit().unwrap();
                use_arena(&arena, forks, 3000, &AtomicBool::new(false));
                arena.free(mine, 5).unwrap();
                assert!(arena.free(mine, 5).is_err());
                arena.audit().unwrap();
            },
            drop,
        );
        arena.free(mine, 5).unwrap();
        assert_eq!(arena.in_use(), 0);
        arena.trim();
        assert_eq!(source.in_use(), 0);
    });
}
