//! What an arena costs: instructions by callgrind, which do not depend on noise and are held against each other, and
//! nanoseconds, which are only printed.
//!
//! Only a release build is worth measuring:
//! `cargo test --release -p larder --test instructions arena_cost -- --nocapture`.

use std::hint::black_box;
use std::time::Instant;

use crate::common::*;
use crate::{can_count, collected};
use larder::arena::{Arena, Fit};

/// Instructions of a warm pair through a handle at any number of live segments.
const HANDLE_PAIR: f64 = 130.0;
/// How much more a pair may take among a million live segments than among ten. Chains are longer by chance.
const FLAT: f64 = 1.35;

/// What is measured: a way to allocate, and what lies around.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    /// A quantum cache, through a handle: the same code under valgrind and without.
    Handle,
    /// A quantum cache, by CPU; locked under valgrind.
    Cpu,
    /// No quantum cache, all live segments in a row.
    Row(Fit),
    /// No quantum cache, every second segment free and too small for what is asked.
    Holes(Fit),
}

const WAYS: &[(&str, Way)] = &[
    ("quantum, handle", Way::Handle),
    ("quantum, per CPU", Way::Cpu),
    ("instant", Way::Row(Fit::Instant)),
    ("best", Way::Row(Fit::Best)),
    ("next", Way::Row(Fit::Next)),
    ("instant, fragmented", Way::Holes(Fit::Instant)),
    ("best, fragmented", Way::Holes(Fit::Best)),
];

/// An arena with `live` segments in use.
fn arena(way: Way, live: u64) -> Arena {
    let (policy, max) = match way {
        Way::Handle | Way::Cpu => (Fit::Instant, 1),
        Way::Row(policy) | Way::Holes(policy) => (policy, 0),
    };
    let arena = Arena::builder("cost")
        .fit(policy)
        .quantum_max(max)
        .build()
        .unwrap();
    arena.add(0, 1 << 40).unwrap();
    let (size, holes) = match way {
        Way::Holes(_) => (1, 2),
        Way::Handle | Way::Cpu => (1, 1),
        Way::Row(_) => (3, 1),
    };
    let taken: Vec<_> = (0..live * holes)
        .map(|_| arena.alloc(size).unwrap())
        .collect();
    if holes == 2 {
        for addr in taken.iter().step_by(2) {
            arena.free(*addr, size).unwrap();
        }
    }
    arena
}

#[inline(never)]
fn pairs(arena: &Arena, way: Way, n: u64) {
    match way {
        Way::Handle => {
            let mut handle = arena.handle();
            for _ in 0..n {
                let addr = handle.alloc(1).unwrap();
                handle.free(black_box(addr), 1).unwrap();
            }
        }
        Way::Cpu => {
            for _ in 0..n {
                let addr = arena.alloc(1).unwrap();
                arena.free(black_box(addr), 1).unwrap();
            }
        }
        Way::Row(_) | Way::Holes(_) => {
            for _ in 0..n {
                let addr = arena.alloc(3).unwrap();
                arena.free(black_box(addr), 3).unwrap();
            }
        }
    }
}

/// Instructions of a pair.
fn instructions(test: &str, way: usize, live: u64) -> f64 {
    const PAIRS: u64 = 20_000;
    let count = |pairs: u64| collected(test, &format!("{way} {live} {pairs}"));
    (count(2 * PAIRS) - count(PAIRS)) as f64 / PAIRS as f64
}

/// Nanoseconds of a pair: the fastest of several turns.
fn nanoseconds(way: Way, live: u64) -> f64 {
    let arena = arena(way, live);
    let n = 100_000;
    let turn = || {
        let begin = Instant::now();
        pairs(&arena, way, n);
        begin.elapsed().as_nanos() as f64 / n as f64
    };
    (0..10).map(|_| turn()).fold(f64::MAX, f64::min)
}

#[test]
fn a_pair_costs_the_same_among_many() {
    const TEST: &str = "a_pair_costs_the_same_among_many";
    if let Some(role) = role() {
        let numbers: Vec<u64> = role.split(' ').map(|n| n.parse().unwrap()).collect();
        let way = WAYS[numbers[0] as usize].1;
        pairs(&arena(way, numbers[1]), way, numbers[2]);
        return;
    }
    let counted = can_count("valgrind", "valgrind");
    if cfg!(debug_assertions) {
        return;
    }
    for (number, (name, way)) in WAYS.iter().enumerate() {
        let lives = match way {
            Way::Holes(_) => [10, 1000, 100_000],
            _ => [10, 1000, 1_000_000],
        };
        let mut counts = Vec::new();
        for live in lives {
            let count = counted.then(|| instructions(TEST, number, live));
            let ns = nanoseconds(*way, live);
            println!(
                "{name:22} {live:>8} live: {ns:7.1} ns a pair, {} instructions",
                count.map_or("?".to_owned(), |n| format!("{n:.1}"))
            );
            counts.extend(count);
        }
        let [few, .., many] = counts[..] else {
            continue;
        };
        assert!(few > 4.0, "the compiler removed the loop");
        if *way != Way::Row(Fit::Next) {
            assert!(
                many <= few * FLAT,
                "{name}: {few} among ten, {many} among many"
            );
        }
        if *way == Way::Handle {
            assert!(many <= HANDLE_PAIR, "{many} instructions a pair");
        }
    }
}
