//! The child of a fork goes on using its caches, whatever the parent's other threads were doing at that moment.

#![allow(clippy::unwrap_used)]

mod common;
mod objects_common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::*;
use larder::objects::{Family, ObjectCache, RawCache};
use objects_common::*;

/// A child that hangs is ended by its alarm and so fails the test; nothing here waits that long otherwise.
const CHILD_SECONDS: u32 = 40;

/// Runs `body` in a child of a fork and says how the child ended: 0 is well.
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

/// What every child does.
fn use_all(family: &Family, caches: &[RawCache], seed: u64) {
    let mut rng = Rng(seed);
    let mut held = Vec::new();
    for turn in 1..2000_u64 {
        let cache = &caches[rng.below(caches.len())];
        if held.len() < 100 && rng.below(2) == 0 {
            let object = cache.get().unwrap();
            mark(object, turn);
            held.push((cache, object, turn));
        } else if let Some(last) = held.len().checked_sub(1) {
            let (cache, object, token) = held.swap_remove(rng.below(last + 1));
            assert_eq!(marked(object), token, "an object has two owners");
            put(cache, object);
        }
        if turn % 500 == 0 {
            family.reap();
            cache.drain();
            let another = options(300).create(family).unwrap();
            let mut handle = another.handle();
            let object = handle.get().unwrap();
            // SAFETY: taken above.
            unsafe { handle.put(object) };
            let large = family.get_large(20_000, 1).unwrap();
            // SAFETY: taken above.
            unsafe { family.put_large(large) }.unwrap();
        }
    }
    for (cache, object, token) in held {
        assert_eq!(marked(object), token, "an object has two owners");
        put(cache, object);
    }
}

#[test]
fn children_use_their_caches_while_the_parent_hammers_its_own() {
    alone(
        "children_use_their_caches_while_the_parent_hammers_its_own",
        |mode| {
            let family = family_builder(mode)
                .interval(Duration::from_micros(200))
                .build()
                .unwrap();
            family.start_reaper(Duration::from_micros(100)).unwrap();
            let caches = [8, 64, 1000, 5000].map(|size| options(size).create(&family).unwrap());
            let stop = AtomicBool::new(false);
            std::thread::scope(|s| {
                let _stopper = Stop(&stop);
                for me in 1..=4 {
                    let (family, caches, stop) = (&family, &caches, &stop);
                    s.spawn(move || {
                        let mut seed = me;
                        while !stop.load(Ordering::Relaxed) {
                            seed += 10;
                            use_all(family, caches, seed);
                        }
                    });
                }
                let end = Instant::now() + stress(mode, 4.0);
                let mut forks = 0;
                while forks < 30 || Instant::now() < end {
                    let mine = caches[1].get().unwrap();
                    mark(mine, 1);
                    let status = fork(|| {
                        assert_eq!(marked(mine), 1, "contents are copied");
                        mark(mine, 2);
                        use_all(&family, &caches, forks);
                        put(&caches[1], mine);
                        if forks % 2 == 0 {
                            // The reaper is not there, and nobody waits for it.
                            family.start_reaper(Duration::from_millis(1)).unwrap();
                            family.stop_reaper();
                            // SAFETY: the child's copies, used once.
                            let (caches, family) = unsafe {
                                (
                                    core::ptr::read(&raw const caches),
                                    core::ptr::read(&raw const family),
                                )
                            };
                            drop(caches);
                            family.drain();
                            drop(family);
                        }
                    });
                    assert_eq!(status, 0, "child {forks} in mode {mode}");
                    assert_eq!(marked(mine), 1, "a child wrote into its parent");
                    put(&caches[1], mine);
                    forks += 1;
                }
                println!("{forks} forks");
            });
            family.stop_reaper();
            for cache in &caches {
                cache.drain();
                let stats = cache.stats();
                assert_eq!(
                    (stats.out, stats.slabs, stats.refused),
                    (0, 0, 0),
                    "a fork cost objects"
                );
            }
        },
    );
}

/// Threads that do little but take the locks of slabs, of the table of caches and of the metadata.
#[test]
fn a_fork_may_come_while_locks_are_held() {
    alone("a_fork_may_come_while_locks_are_held", |mode| {
        let family = family(mode);
        let cache = options(64).create(&family).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|s| {
            let _stopper = Stop(&stop);
            for me in 0..4 {
                let (family, cache, stop) = (&family, &cache, &stop);
                s.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        if me < 2 {
                            let object = cache.get().unwrap();
                            // SAFETY: just taken.
                            unsafe { cache.put_checked(object) }.unwrap();
                            let _ = cache.stats();
                        } else {
                            drop(options(64).create(family).unwrap());
                            let _ = family.metadata_bytes();
                        }
                    }
                });
            }
            for _ in 0..300 {
                let status = fork(|| {
                    put(&cache, cache.get().unwrap());
                    cache.drain();
                    drop(options(100).create(&family).unwrap());
                });
                assert_eq!(status, 0, "a child hung in mode {mode}");
            }
        });
    });
}

#[test]
fn values_of_before_the_fork_are_private_after_it() {
    alone("values_of_before_the_fork_are_private_after_it", |mode| {
        let family = family(mode);
        let cache = ObjectCache::new(&family, || vec![0_u64; 10]).unwrap();
        let mut held: Vec<_> = (0..300).map(|_| cache.get().unwrap()).collect();
        for (i, value) in held.iter_mut().enumerate() {
            value[0] = i as u64;
        }
        for _ in 0..5 {
            let status = fork(|| {
                for (i, value) in held.iter_mut().enumerate() {
                    assert_eq!(value[0], i as u64);
                    value[0] = u64::MAX;
                }
                // SAFETY: the child's copy, used once.
                drop(unsafe { core::ptr::read(&raw const held) });
                cache.drain();
                assert_eq!(cache.stats().out, 0);
                assert_eq!(cache.stats().constructed, cache.stats().destroyed);
            });
            assert_eq!(status, 0, "mode {mode}");
            assert!(held.iter().enumerate().all(|(i, v)| v[0] == i as u64));
        }
    });
}
