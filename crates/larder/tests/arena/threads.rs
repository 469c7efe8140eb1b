//! Many threads: every unit carries the token of its owner, so that no two ever own one and none gets lost.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Instant;

use crate::common::*;
use larder::arena::{Arena, ArenaError, Fit, Request, SegmentKind};
use larder::os::rseq::Mode;

const UNITS: u64 = 1 << 16;

/// The owner of each unit; 0 is none.
struct Owners(Vec<AtomicU32>);

impl Owners {
    fn new() -> Self {
        Self((0..UNITS).map(|_| AtomicU32::new(0)).collect())
    }

    fn change(&self, addr: u64, size: u64, from: u32, to: u32) {
        for unit in &self.0[addr as usize..(addr + size) as usize] {
            assert_eq!(
                unit.swap(to, Ordering::Relaxed),
                from,
                "a unit at {addr} has two owners"
            );
        }
    }
}

fn arena(mode: Mode, policy: Fit, sourced: bool) -> Arena {
    let builder = Arena::builder("threads")
        .mode(mode)
        .fit(policy)
        .magazine(3, 15)
        .quantum_max(4);
    if sourced {
        let source = Arena::builder("source")
            .mode(mode)
            .quantum(64)
            .magazine(1, 3)
            .quantum_max(128)
            .build()
            .unwrap();
        source.add(0, UNITS).unwrap();
        builder
            .source(Arc::new(source))
            .import_unit(64)
            .build()
            .unwrap()
    } else {
        let arena = builder.build().unwrap();
        arena.add(0, UNITS / 2).unwrap();
        arena.add(UNITS / 2, UNITS / 2).unwrap();
        arena
    }
}

fn hammer(arena: &Arena, me: u32, owners: &Owners, given: &Mutex<Vec<(u64, u64)>>, end: Instant) {
    let mut rng = Rng(u64::from(me));
    let mut held: Vec<(u64, u64)> = Vec::new();
    let mut handle = arena.handle();
    while Instant::now() < end {
        for _ in 0..64 {
            let size = 1 + rng.below(7) as u64;
            if held.len() < 300 && rng.below(5) < 3 {
                let taken = match rng.below(8) {
                    0 => arena.xalloc(&Request::new(size).align(8).phase(3)),
                    1 => arena.xalloc(&Request::new(size).within(0..=UNITS / 2)),
                    2..=4 => handle.alloc(size),
                    _ => arena.alloc(size),
                };
                // There is room for all, but a request with bounds may miss the segments that other threads are moving.
                let Ok(addr) = taken else {
                    continue;
                };
                owners.change(addr, size, 0, me);
                held.push((addr, size));
            } else if !held.is_empty() {
                let (addr, size) = held.swap_remove(rng.below(held.len()));
                owners.change(addr, size, me, 0);
                match rng.below(8) {
                    // Another thread will free it.
                    0 => given.lock().unwrap().push((addr, size)),
                    1..=3 => handle.free(addr, size).unwrap(),
                    _ => arena.free(addr, size).unwrap(),
                }
            }
            if rng.below(8) == 0 {
                let other = given.lock().unwrap().pop();
                if let Some((addr, size)) = other {
                    arena.free(addr, size).unwrap();
                }
            }
            if rng.below(2000) == 0 {
                match rng.below(4) {
                    0 => drop(arena.maintain()),
                    1 => drop(arena.trim()),
                    2 => {
                        let sum: u64 = arena
                            .walk()
                            .filter(|s| s.kind != SegmentKind::AddedSpan)
                            .map(|s| s.size)
                            .sum();
                        assert!(sum > 0);
                    }
                    _ => arena.audit().unwrap(),
                }
            }
        }
    }
    for (addr, size) in held {
        owners.change(addr, size, me, 0);
        arena.free(addr, size).unwrap();
    }
}

#[test]
fn no_unit_has_two_owners_and_none_is_lost() {
    for mode in modes() {
        for (policy, sourced) in [
            (Fit::Instant, false),
            (Fit::Instant, true),
            (Fit::Best, true),
            (Fit::Next, false),
        ] {
            let arena = arena(mode, policy, sourced);
            let owners = Owners::new();
            let given = Mutex::new(Vec::new());
            let end = Instant::now() + stress(mode, 0.6);
            std::thread::scope(|s| {
                for me in 1..=6 {
                    let (arena, owners, given) = (&arena, &owners, &given);
                    s.spawn(move || hammer(arena, me, owners, given, end));
                }
            });
            for (addr, size) in given.into_inner().unwrap() {
                arena.free(addr, size).unwrap();
            }
            assert_eq!(arena.in_use(), 0);
            arena.audit().unwrap();
            arena.trim();
            let stats = arena.stats();
            assert_eq!(stats.allocated, 0, "a segment was lost");
            assert_eq!(stats.total, if sourced { 0 } else { UNITS });
            assert!(
                arena.quantum_stats().all(|(_, cache)| cache.pops > 0),
                "the caches were not used"
            );
        }
    }
}

/// Of two threads that free the same address at the same moment, one gets the error that it is not allocated.
#[test]
fn one_of_two_frees_fails() {
    for mode in modes() {
        for size in [1, 6] {
            let arena = arena(mode, Fit::Instant, false);
            let barrier = Barrier::new(2);
            let (addr, well, ill) = (
                AtomicUsize::new(0),
                AtomicUsize::new(0),
                AtomicUsize::new(0),
            );
            let rounds = 2000;
            std::thread::scope(|s| {
                for me in 0..2 {
                    let (arena, barrier, addr, well, ill) = (&arena, &barrier, &addr, &well, &ill);
                    s.spawn(move || {
                        for _ in 0..rounds {
                            if me == 0 {
                                addr.store(arena.alloc(size).unwrap() as usize, Ordering::Relaxed);
                            }
                            barrier.wait();
                            match arena.free(addr.load(Ordering::Relaxed) as u64, size) {
                                Ok(()) => well.fetch_add(1, Ordering::Relaxed),
                                Err(ArenaError::NotAllocated { .. }) => {
                                    ill.fetch_add(1, Ordering::Relaxed)
                                }
                                Err(error) => panic!("{error}"),
                            };
                            barrier.wait();
                        }
                    });
                }
            });
            assert_eq!(well.into_inner(), rounds);
            assert_eq!(ill.into_inner(), rounds);
            assert_eq!(arena.in_use(), 0);
        }
    }
}

/// What lies in the magazines of other CPUs and in the caches of other sizes is found before a request fails.
#[test]
fn what_lies_in_magazines_is_not_out_of_reach() {
    for mode in modes() {
        let arena = Arena::builder("tight")
            .mode(mode)
            .quantum_max(4)
            .build()
            .unwrap();
        arena.add(0, 256).unwrap();
        for _ in 0..20 {
            let all: Vec<u64> = (0..256).map(|_| arena.alloc(1).unwrap()).collect();
            assert!(matches!(arena.alloc(1), Err(ArenaError::NoSpace { .. })));
            std::thread::scope(|s| {
                s.spawn(|| all.iter().for_each(|addr| arena.free(*addr, 1).unwrap()));
            });
            let whole = arena.alloc(256).unwrap();
            arena.free(whole, 256).unwrap();
            let three: Vec<u64> = (0..85).map(|_| arena.alloc(3).unwrap()).collect();
            three.iter().for_each(|addr| arena.free(*addr, 3).unwrap());
        }
    }
}

/// Frees that take no lock go on while the hash table grows under them.
#[test]
fn the_hash_grows_under_readers() {
    for mode in modes() {
        let arena = Arena::builder("growing")
            .mode(mode)
            .quantum_max(1)
            .build()
            .unwrap();
        arena.add(0, 1 << 30).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|s| {
            let stopper = Stop(&stop);
            for _ in 0..2 {
                s.spawn(|| {
                    let mut held = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        while held.len() < 500 {
                            held.push(arena.alloc(1).unwrap());
                        }
                        held.drain(100..)
                            .for_each(|addr| arena.free(addr, 1).unwrap());
                    }
                    held.into_iter()
                        .for_each(|addr| arena.free(addr, 1).unwrap());
                });
            }
            let held: Vec<u64> = (0..60_000).map(|_| arena.alloc(3).unwrap()).collect();
            held.into_iter()
                .for_each(|addr| arena.free(addr, 3).unwrap());
            drop(stopper);
        });
        assert_eq!(arena.in_use(), 0);
        arena.audit().unwrap();
    }
}
