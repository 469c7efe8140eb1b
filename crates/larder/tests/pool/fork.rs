//! The child of a fork goes on using its pool, whatever the parent's other threads were doing at that moment.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::fork::{Storm, fork};
use crate::common::*;
use larder::os::page_size;
use larder::os::rseq::Mode;
use larder::pages::{HelperConfig, PagePool};

/// What every child does with its pool.
fn use_pool(pool: &PagePool, seed: u64) {
    let mut rng = Rng(seed);
    let mut held = Vec::new();
    for turn in 0..2000_u64 {
        if held.len() < 50 && rng.below(2) == 0 {
            let mut page = match rng.below(3) {
                0 => pool.get().unwrap(),
                1 => pool.get_zeroed().unwrap(),
                _ => pool.get_zeroed_sparse().unwrap(),
            };
            stamp(&mut page, turn);
            held.push((page, turn));
        } else if !held.is_empty() {
            let (page, number) = held.swap_remove(rng.below(held.len()));
            assert!(is_stamped(&page, number), "a page has two owners");
        }
        if turn % 500 == 499 {
            pool.trim();
            let run = pool.get_run_zeroed(5).unwrap();
            assert!(is_zero(&run));
            let mut handle = pool.handle().unwrap();
            let page = handle.get_zeroed().unwrap();
            assert!(is_zero(&page));
            handle.put(page);
        }
    }
}

/// Hammers a pool until `stop` is set.
fn hammer(pool: &PagePool, me: u64, stop: &AtomicBool, turns: &AtomicUsize) {
    let mut rng = Rng(me);
    let mut held = Vec::new();
    let mut number = me << 32;
    let mut handle = me.is_multiple_of(2).then(|| pool.handle().unwrap());
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        if held.len() < 80 && (held.is_empty() || rng.below(2) == 0) {
            let mut page = match (&mut handle, rng.below(4)) {
                (Some(handle), 0) => handle.get().unwrap(),
                (_, 1) => pool.get_zeroed().unwrap(),
                (_, 2) => pool.get_zeroed_sparse().unwrap(),
                _ => pool.get().unwrap(),
            };
            stamp(&mut page, number);
            held.push((page, number));
        } else {
            let (page, stamped) = held.swap_remove(rng.below(held.len()));
            assert!(is_stamped(&page, stamped), "the parent's page was touched");
            match &mut handle {
                Some(handle) if rng.below(4) == 0 => handle.put(page),
                _ => drop(page),
            }
        }
        if rng.below(2000) == 0 {
            pool.trim();
        }
        turns.fetch_add(1, Ordering::Relaxed);
    }
}

/// Forks again and again while threads and a helper use the pool.
fn storm(mode: Mode) {
    let pool = builder(mode)
        .cluster(cluster(64))
        .magazine(3, 7)
        .helper(HelperConfig {
            prezero_pages: 64,
            ahead_pages: 64,
            cpu_budget: 1.0,
            interval: Duration::from_micros(100),
        })
        .build()
        .unwrap();
    let turns = AtomicUsize::new(0);
    let storm = Storm {
        mode,
        threads: 5,
        least: 30,
        seconds: 4.0,
    };
    storm.rage(
        |me, stop| match me {
            5 => {
                while !stop.load(Ordering::Relaxed) {
                    pool.trim();
                    std::thread::yield_now();
                }
            }
            _ => hammer(&pool, me, stop, &turns),
        },
        || {
            let mut mine = pool.get().unwrap();
            stamp(&mut mine, 1);
            mine
        },
        |forks, mine| {
            assert!(is_stamped(mine, 1), "contents are copied");
            stamp(mine, 2);
            // SAFETY: the parent's copies of these values are other memory; in the child each is used once.
            let (mine, pool) = unsafe { (core::ptr::read(mine), core::ptr::read(&raw const pool)) };
            use_pool(&pool, forks);
            assert!(is_stamped(&mine, 2));
            if forks % 2 == 0 {
                // A buffer may outlive its pool, in the child as well.
                drop(pool);
                drop(mine);
            } else {
                drop(mine);
                pool.trim();
                drop(pool);
            }
        },
        |mine| assert!(is_stamped(&mine, 1), "a child wrote into its parent"),
    );
    println!("{} turns", turns.load(Ordering::Relaxed));
    pool.stop_helper();
    pool.trim();
    assert_eq!(pool.stats().out_bytes, 0, "a fork cost the parent pages");
}

#[test]
fn children_use_their_pool_while_the_parent_hammers_its_own() {
    alone(
        "children_use_their_pool_while_the_parent_hammers_its_own",
        storm,
    );
}

#[test]
fn pages_got_before_the_fork_are_private_after_it() {
    alone("pages_got_before_the_fork_are_private_after_it", |mode| {
        let pool = builder(mode).build().unwrap();
        let mut pages: Vec<_> = (0..300_u64).map(|i| (pool.get().unwrap(), i)).collect();
        for (page, i) in &mut pages {
            stamp(page, *i);
        }
        for _ in 0..5 {
            let status = fork(|| {
                // SAFETY: the child's copies, used once.
                let (pages, pool) = unsafe {
                    (
                        core::ptr::read(&raw const pages),
                        core::ptr::read(&raw const pool),
                    )
                };
                for (mut page, i) in pages {
                    assert!(is_stamped(&page, i));
                    page.fill(0xCC);
                }
                assert!(is_zero(&pool.get_zeroed().unwrap()));
                pool.trim();
                assert_eq!(pool.stats().out_bytes, 0);
                assert_eq!(pool.stats().held_bytes, 0);
                // A grandchild is a child, too.
                assert_eq!(fork(|| use_pool(&pool, 5)), 0);
            });
            assert_eq!(status, 0, "mode {mode}");
            for (page, i) in &pages {
                assert!(is_stamped(page, *i), "the child wrote into its parent");
            }
        }
        drop(pages);
        pool.trim();
        assert_eq!(pool.stats().held_bytes, 0);
    });
}

/// A get that finds no pre-zeroed page wakes the helper, under a lock that the child must be able to take.
#[test]
fn a_fork_may_come_while_the_helper_is_woken() {
    alone("a_fork_may_come_while_the_helper_is_woken", |mode| {
        let pool = builder(mode)
            .helper(HelperConfig {
                interval: Duration::from_secs(3600),
                ..HelperConfig::default()
            })
            .build()
            .unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|s| {
            let _stopper = Stop(&stop);
            for _ in 0..3 {
                s.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        drop(pool.get_zeroed_sparse().unwrap());
                    }
                });
            }
            for _ in 0..200 {
                let status = fork(|| {
                    // SAFETY: the child's copy, used once.
                    drop(unsafe { core::ptr::read(&raw const pool) });
                });
                assert_eq!(status, 0, "a child could not drop its pool");
            }
        });
    });
}

#[test]
fn a_child_may_start_a_helper_of_its_own() {
    alone("a_child_may_start_a_helper_of_its_own", |mode| {
        let config = HelperConfig {
            prezero_pages: 32,
            cpu_budget: 1.0,
            interval: Duration::from_millis(1),
            ..HelperConfig::default()
        };
        let pool = builder(mode).helper(config.clone()).build().unwrap();
        drop(pool.get_run(256).unwrap());
        let status = fork(|| {
            let before = pool.stats().zeroed_by_helper_bytes;
            pool.start_helper(config).unwrap();
            // The parent's helper may have zeroed all that it wants; make it want more.
            while pool.stats().zeroed_by_helper_bytes == before {
                while pool.stats().prezeroed_bytes > 0 {
                    core::mem::forget(pool.get_zeroed_sparse().unwrap());
                }
                std::thread::yield_now();
            }
            pool.stop_helper();
            assert_eq!(pool.get().unwrap().len(), page_size());
        });
        assert_eq!(status, 0);
    });
}

/// The first thread that zeroes a page finds out the fastest routine, in about a millisecond. A child that is forked meanwhile
/// must not wait for a thread that it does not have.
#[test]
fn a_fork_may_come_while_a_thread_finds_out_how_to_zero() {
    alone(
        "a_fork_may_come_while_a_thread_finds_out_how_to_zero",
        |mode| {
            let pool = builder(mode).build().unwrap();
            let ready = AtomicBool::new(false);
            // A page that is not known to be zero, so that zeroing it is work.
            let dirty = || pool.get().unwrap().fill(1);
            std::thread::scope(|s| {
                s.spawn(|| {
                    dirty();
                    ready.store(true, Ordering::Release);
                    assert!(is_zero(&pool.get_zeroed().unwrap()));
                });
                while !ready.load(Ordering::Acquire) {
                    std::hint::spin_loop();
                }
                let status = fork(|| {
                    dirty();
                    assert!(is_zero(&pool.get_zeroed().unwrap()));
                });
                assert_eq!(status, 0);
            });
        },
    );
}
