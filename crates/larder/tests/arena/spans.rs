//! Spans from a source and back, policies over many segments, walks that are disturbed, and what is refused.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::common::Rng;
use larder::arena::{Arena, ArenaError, Fit, Request, Segment, SegmentKind};

fn sourced(unit: u64) -> (Arc<Arena>, Arena) {
    let source = Arc::new(Arena::builder("source").quantum(16).build().unwrap());
    source.add(0, 1 << 20).unwrap();
    let arena = Arena::builder("arena")
        .source(source.clone())
        .import_unit(unit)
        .build()
        .unwrap();
    (source, arena)
}

#[test]
fn one_allocation_back_and_forth_imports_once() {
    let (source, arena) = sourced(64);
    for _ in 0..1000 {
        let addr = arena.alloc(64).unwrap();
        arena.free(addr, 64).unwrap();
    }
    let stats = arena.stats();
    assert_eq!((stats.imports, stats.releases), (1, 0));
    assert_eq!((stats.idle, stats.imported), (64, 64));
    assert_eq!(source.in_use(), 64);
    assert_eq!(arena.trim(), 64);
    assert_eq!(source.in_use(), 0);
}

#[test]
fn idle_spans_go_back_but_for_one_and_an_eighth_of_what_is_used() {
    let (source, arena) = sourced(64);
    let held: Vec<u64> = (0..256).map(|_| arena.alloc(64).unwrap()).collect();
    assert_eq!(arena.stats().imports, 256);
    for (n, addr) in held.iter().enumerate() {
        arena.free(*addr, 64).unwrap();
        let stats = arena.stats();
        assert!(stats.idle >= 64, "one is kept");
        assert!(
            stats.idle <= u64::max(64, stats.allocated / 8),
            "{} are idle beside {} allocated",
            stats.idle,
            stats.allocated
        );
        assert_eq!(source.in_use(), stats.imported);
        if n == 0 {
            assert_eq!(stats.releases, 0);
        }
    }
    assert_eq!(arena.stats().releases, 255);
    assert_eq!(arena.trim(), 64);
}

/// An idle span goes back before the limit refuses, so the error counts what is there after that.
#[test]
fn a_refusal_by_the_limit_counts_what_is_left() {
    let (source, arena) = sourced(64);
    let (used, idle) = (arena.alloc(64).unwrap(), arena.alloc(64).unwrap());
    arena.free(idle, 64).unwrap();
    assert_eq!(arena.stats().imported, 128);
    arena.set_limit(128);
    match arena.alloc(128) {
        Err(ArenaError::Limit { limit, total, .. }) => assert_eq!((limit, total), (128, 64)),
        other => panic!("{other:?}"),
    }
    assert_eq!(source.in_use(), 64);
    arena.free(used, 64).unwrap();
}

#[test]
fn arenas_stand_on_arenas() {
    let (root, middle) = sourced(1024);
    let middle = Arc::new(middle);
    let top = Arena::builder("top")
        .quantum(4)
        .quantum_max(16)
        .source(middle.clone())
        .import_unit(128)
        .build()
        .unwrap();
    let mut rng = Rng(3);
    let mut held = Vec::new();
    for _ in 0..5000 {
        if rng.below(2) == 0 {
            let size = 1 + rng.below(60) as u64;
            held.push((top.alloc(size).unwrap(), size));
        } else if !held.is_empty() {
            let (addr, size) = held.swap_remove(rng.below(held.len()));
            assert!(top.contains(addr) && middle.contains(addr) && root.contains(addr));
            top.free(addr, size).unwrap();
        }
    }
    for (addr, size) in held {
        top.free(addr, size).unwrap();
    }
    // An aligned request larger than the unit goes through both.
    let addr = top
        .xalloc(&Request::new(4096).align(2048).phase(64).nocross(8192))
        .unwrap();
    assert_eq!(addr % 2048, 64);
    top.free(addr, 4096).unwrap();
    drop(top);
    assert_eq!(middle.in_use(), 0, "a dropped arena gives its spans back");
    drop(middle);
    assert_eq!(root.in_use(), 0);
}

#[test]
fn a_dropped_arena_leaves_its_consumers_what_they_hold() {
    let (source, arena) = sourced(64);
    let held = arena.alloc(10).unwrap();
    let freed = arena.alloc(64).unwrap();
    arena.free(freed, 64).unwrap();
    drop(arena);
    assert_eq!(
        source.in_use(),
        64,
        "the span with the allocation stays out"
    );
    assert!(source.contains(held));
}

#[test]
fn a_limit_counts_spans_and_idle_ones_make_room() {
    let (_, arena) = sourced(16);
    arena.set_limit(128);
    let small: Vec<u64> = (0..8).map(|_| arena.alloc(16).unwrap()).collect();
    let error = arena.alloc(16).unwrap_err();
    assert!(
        matches!(
            error,
            ArenaError::Limit {
                limit: 128,
                total: 128,
                size: 16,
                ..
            }
        ),
        "{error}"
    );
    small.iter().for_each(|addr| arena.free(*addr, 16).unwrap());
    // Idle spans of 16 would keep one of 128 out.
    let whole = arena.alloc(128).unwrap();
    arena.free(whole, 128).unwrap();
    assert_eq!(arena.stats().fails, 1);
}

#[test]
fn thousands_of_spans_come_and_go_in_any_order() {
    let arena = Arena::builder("added").build().unwrap();
    let mut rng = Rng(17);
    let mut spans = BTreeSet::new();
    while spans.len() < 3000 {
        let addr = rng.below(1 << 20) as u64 * 8;
        assert_eq!(arena.add(addr, 5).is_ok(), spans.insert(addr));
    }
    arena.audit().unwrap();
    for addr in (0..8 << 20).step_by(997) {
        let span = spans.range(..=addr).next_back();
        assert_eq!(
            arena.contains(addr),
            span.is_some_and(|s| addr < s + 5),
            "{addr}"
        );
    }

    let (source, arena) = sourced(16);
    let mut held = Vec::new();
    for turn in 0..20_000 {
        // Up to thousands, down to none, and again.
        let more = if turn / 5000 % 2 == 0 { 9 } else { 1 };
        if rng.below(10) < more {
            held.push(arena.alloc(16).unwrap());
        } else if !held.is_empty() {
            arena
                .free(held.swap_remove(rng.below(held.len())), 16)
                .unwrap();
        }
        if turn % 1000 == 0 {
            arena.audit().unwrap();
            assert_eq!(source.in_use(), arena.stats().imported);
        }
    }
    assert!(arena.stats().releases > 5000);
}

#[test]
fn next_fit_goes_around() {
    let arena = Arena::builder("pids").fit(Fit::Next).build().unwrap();
    arena.add(100, 4).unwrap();
    arena.add(10, 4).unwrap();
    let mut seen = Vec::new();
    for _ in 0..20 {
        let id = arena.alloc(1).unwrap();
        arena.free(id, 1).unwrap();
        seen.push(id);
    }
    let order = [10, 11, 12, 13, 100, 101, 102, 103];
    assert!(
        seen.iter().zip(order.iter().cycle()).all(|(a, b)| a == b),
        "{seen:?}"
    );
}

#[test]
fn a_hundred_thousand_segments_and_every_policy() {
    for policy in [Fit::Instant, Fit::Best, Fit::Next] {
        let arena = Arena::builder("many").fit(policy).build().unwrap();
        arena.add(1 << 50, 1 << 24).unwrap();
        let mut rng = Rng(11);
        let mut held: Vec<(u64, u64)> = (0..100_000)
            .map(|_| {
                let size = 1 + rng.below(40) as u64;
                (arena.alloc(size).unwrap(), size)
            })
            .collect();
        // Every second one goes, then as many come.
        for n in (0..held.len()).rev().step_by(2) {
            let (addr, size) = held.swap_remove(n);
            arena.free(addr, size).unwrap();
        }
        arena.audit().unwrap();
        assert!(arena.stats().segments > 60_000);
        for _ in 0..20_000 {
            let size = 1 + rng.below(40) as u64;
            held.push((arena.alloc(size).unwrap(), size));
        }
        arena.audit().unwrap();
        let distinct: BTreeSet<u64> = held.iter().map(|h| h.0).collect();
        assert_eq!(distinct.len(), held.len());
        for (addr, size) in held {
            arena.free(addr, size).unwrap();
        }
        arena.audit().unwrap();
        assert_eq!(arena.stats().segments, 1, "all is joined again");
    }
}

#[test]
fn a_walk_survives_what_happens_on_the_way() {
    let arena = Arena::builder("walked").build().unwrap();
    arena.add(0, 10_000).unwrap();
    arena.add(20_000, 1000).unwrap();
    let held: Vec<u64> = (0..1000).map(|_| arena.alloc(5).unwrap()).collect();
    let all: Vec<Segment> = arena.walk().collect();
    // Two spans, a thousand segments, and what is free in both.
    assert_eq!(all.len(), 2 + 1000 + 2);
    assert!(all.is_sorted_by_key(|s| (s.addr, s.kind != SegmentKind::AddedSpan)));

    // Whatever is freed and joined between two batches: no address is seen twice, and the end is reached.
    for step in 1..8 {
        let mut last = None;
        let mut freed: Vec<u64> = Vec::new();
        for (n, segment) in arena.walk().enumerate() {
            if segment.kind != SegmentKind::AddedSpan {
                assert!(last < Some(segment.addr), "{segment:?} after {last:?}");
                last = Some(segment.addr);
            }
            if n % 50 < step {
                let addr = held[(n * 7 + step) % held.len()];
                if arena.free(addr, 5).is_ok() {
                    freed.push(addr);
                }
                // The one that was just seen as well.
                if segment.size == 5 && arena.free(segment.addr, 5).is_ok() {
                    freed.push(segment.addr);
                }
            }
        }
        assert!(last >= Some(20_000));
        freed.sort_unstable();
        for addr in freed {
            let again = arena
                .xalloc(&Request::new(5).within(addr..=addr + 4))
                .unwrap();
            assert_eq!(again, addr);
        }
    }
}

#[test]
fn quantum_caches_keep_what_is_freed_and_know_whose_it_is() {
    let arena = Arena::builder("cached")
        .quantum(8)
        .quantum_max(30)
        .build()
        .unwrap();
    arena.add(0, 1 << 20).unwrap();
    assert_eq!(
        arena
            .quantum_stats()
            .map(|(size, _)| size)
            .collect::<Vec<_>>(),
        [8, 16, 24, 32]
    );
    let addr = arena.alloc(17).unwrap();
    let cut = arena.stats().allocs;
    assert!(
        arena
            .walk()
            .any(|s| s.kind == SegmentKind::Cached && s.size == 24)
    );
    for wrong in [1, 8, 16, 25, 32, 33, 1000] {
        assert!(
            matches!(
                arena.free(addr, wrong),
                Err(ArenaError::WrongSize { allocated: 24, .. })
            ),
            "{wrong}"
        );
    }
    for inside in [addr + 1, addr + 8, addr + 24] {
        assert!(matches!(
            arena.free(inside, 24),
            Err(ArenaError::NotAllocated { .. })
        ));
    }
    arena.free(addr, 20).unwrap();
    let error = arena.free(addr, 20).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "arena cached: 20 units at {addr} were given back, but no allocation begins there; it was freed twice or never allocated"
        )
    );
    for _ in 0..1000 {
        let again = arena.alloc(24).unwrap();
        arena.free(again, 24).unwrap();
    }
    assert_eq!(arena.stats().allocs, cut, "nothing was cut again");
    assert!(arena.quantum_stats().nth(2).unwrap().1.pops >= 1000);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let build = |quantum, max| {
        Arena::builder("no")
            .quantum(quantum)
            .quantum_max(max)
            .build()
    };
    assert!(matches!(
        build(0, 0),
        Err(ArenaError::Quantum { quantum: 0, .. })
    ));
    assert!(matches!(
        build(12, 0),
        Err(ArenaError::Quantum { quantum: 12, .. })
    ));
    assert!(matches!(
        build(4, 65),
        Err(ArenaError::QuantumMax { max: 65, .. })
    ));
    assert!(matches!(
        build(1 << 63, u64::MAX),
        Err(ArenaError::QuantumMax { .. })
    ));
    build(4, 64).unwrap();

    let top = Arena::builder("top")
        .quantum(1 << 63)
        .quantum_max(1)
        .build()
        .unwrap();
    assert!(matches!(top.alloc(0), Err(ArenaError::Empty { .. })));
    assert!(matches!(top.free(0, 0), Err(ArenaError::Empty { .. })));
    assert!(matches!(
        top.alloc((1 << 63) + 1),
        Err(ArenaError::TooLarge { .. })
    ));
    top.add(1 << 63, 1 << 63).unwrap();
    let addr = top.alloc(1).unwrap();
    assert_eq!(addr, 1 << 63);
    assert!(matches!(
        top.free(addr, u64::MAX),
        Err(ArenaError::TooLarge { .. })
    ));
    top.free(addr, 1).unwrap();
    assert!(
        matches!(top.add(0, 1 << 63), Err(ArenaError::Limit { .. })),
        "the sum is no number"
    );

    let arena = Arena::builder("all").build().unwrap();
    assert!(matches!(arena.add(0, 0), Err(ArenaError::Span { .. })));
    assert!(matches!(
        arena.add(2, u64::MAX),
        Err(ArenaError::Span { .. })
    ));
    arena.add(1, u64::MAX).unwrap();
    assert_eq!(arena.alloc(u64::MAX).unwrap(), 1);
    assert!(matches!(
        arena.alloc(1),
        Err(ArenaError::NoSpace { free: 0, .. })
    ));
    arena.free(1, u64::MAX).unwrap();
    let last = arena
        .xalloc(&Request::new(1).within(u64::MAX..=u64::MAX))
        .unwrap();
    assert_eq!(last, u64::MAX);
    let error = arena
        .xalloc(
            &Request::new(3)
                .align(8)
                .phase(2)
                .nocross(64)
                .within(11..=17),
        )
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "arena all: no free segment for 3 units aligned to 8 at phase 2 not across multiples of 64 within 11 to 17 in {} free units; free some, add a span, or ask for less",
            u64::MAX - 1
        )
    );
    let addr = arena
        .xalloc(
            &Request::new(3)
                .align(8)
                .phase(2)
                .nocross(64)
                .within(10..=17),
        )
        .unwrap();
    assert_eq!(addr, 10);
}
