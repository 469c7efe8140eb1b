//! The child of a fork goes on using its arena, whatever the parent's other threads were doing at that moment.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use common::*;
use larder::arena::{Arena, Request};

/// A child that hangs is ended by its alarm and so fails the test.
const CHILD_SECONDS: u32 = 40;

fn fork(body: impl FnOnce()) -> i32 {
    // SAFETY: the child calls what a child of a process with threads may call with glibc: malloc and our own code.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        0 => {
            // SAFETY: sets a timer; its signal ends the child.
            unsafe { libc::alarm(CHILD_SECONDS) };
            let well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_ok();
            // SAFETY: ends the child without running the parent's exit handlers.
            unsafe { libc::_exit(i32::from(!well)) }
        }
        child => {
            let mut status = 0;
            // SAFETY: waits for our own child.
            let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
            assert_eq!(waited, child);
            status
        }
    }
}

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
        let stop = AtomicBool::new(false);
        std::thread::scope(|s| {
            let stopper = Stop(&stop);
            for me in 1..=4 {
                let (arena, stop) = (&arena, &stop);
                s.spawn(move || use_arena(arena, me, u64::MAX, stop));
            }
            let end = Instant::now() + stress(mode, 2.0);
            let mut forks = 0;
            while forks < 25 || Instant::now() < end {
                let status = fork(|| {
                    arena.audit().unwrap();
                    source.audit().unwrap();
                    use_arena(&arena, forks, 3000, &AtomicBool::new(false));
                    arena.free(mine, 5).unwrap();
                    assert!(arena.free(mine, 5).is_err());
                    arena.audit().unwrap();
                });
                assert_eq!(status, 0, "child {forks} in mode {mode}");
                forks += 1;
            }
            drop(stopper);
        });
        arena.free(mine, 5).unwrap();
        assert_eq!(arena.in_use(), 0);
        arena.trim();
        assert_eq!(source.in_use(), 0);
    });
}
