//! The child of a fork goes on using its caches, whatever the parent's other threads were doing at that moment.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::common::fork::{Storm, fork};
use crate::common::objects::*;
use crate::common::*;
use larder::objects::{Family, ObjectCache, RawCache};

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
            family.maintain();
            cache.trim();
            let another = options(300).build(family).unwrap();
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
            family.start_helper(Duration::from_micros(100)).unwrap();
            let caches = [8, 64, 1000, 5000].map(|size| options(size).build(&family).unwrap());
            let storm = Storm {
                mode,
                threads: 4,
                least: 30,
                seconds: 4.0,
            };
            storm.rage(
                |me, stop| {
                    let mut seed = me;
                    while !stop.load(Ordering::Relaxed) {
                        seed += 10;
                        use_all(&family, &caches, seed);
                    }
                },
                || {
                    let mine = caches[1].get().unwrap();
                    mark(mine, 1);
                    mine
                },
                |forks, &mut mine| {
                    assert_eq!(marked(mine), 1, "contents are copied");
                    mark(mine, 2);
                    use_all(&family, &caches, forks);
                    put(&caches[1], mine);
                    if forks % 2 == 0 {
                        // The reaper does not exist in the child, and no call waits for it.
                        family.start_helper(Duration::from_millis(1)).unwrap();
                        family.stop_helper();
                        // SAFETY: the child's copies, used once.
                        let (caches, family) = unsafe {
                            (
                                core::ptr::read(&raw const caches),
                                core::ptr::read(&raw const family),
                            )
                        };
                        drop(caches);
                        family.trim();
                        drop(family);
                    }
                },
                |mine| {
                    assert_eq!(marked(mine), 1, "a child wrote into its parent");
                    put(&caches[1], mine);
                },
            );
            family.stop_helper();
            for cache in &caches {
                cache.trim();
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
        let cache = options(64).build(&family).unwrap();
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
                            drop(options(64).build(family).unwrap());
                            let _ = family.metadata_bytes();
                        }
                    }
                });
            }
            for _ in 0..300 {
                let status = fork(|| {
                    put(&cache, cache.get().unwrap());
                    cache.trim();
                    drop(options(100).build(&family).unwrap());
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
                cache.trim();
                assert_eq!(cache.stats().out, 0);
                assert_eq!(cache.stats().constructed, cache.stats().destroyed);
            });
            assert_eq!(status, 0, "mode {mode}");
            assert!(held.iter().enumerate().all(|(i, v)| v[0] == i as u64));
        }
    });
}

/// While one thread constructs, another one forks, and the child drops its copy of the cache: what was not constructed yet
/// is not ended there.
#[test]
fn a_child_ends_only_what_was_constructed() {
    alone("a_child_ends_only_what_was_constructed", |mode| {
        struct Value(u64);
        impl Drop for Value {
            fn drop(&mut self) {
                assert_eq!(self.0, MARK, "ended what was never constructed");
                self.0 = 0;
                ENDED.fetch_add(1, Ordering::Relaxed);
            }
        }
        static ENDED: AtomicUsize = AtomicUsize::new(0);
        static AT_WORK: AtomicBool = AtomicBool::new(false);
        static GO_ON: AtomicBool = AtomicBool::new(false);
        let family = family(mode);
        let made = AtomicUsize::new(0);
        let cache = ObjectCache::new(&family, move || {
            if made.fetch_add(1, Ordering::Relaxed) == 10 {
                AT_WORK.store(true, Ordering::Release);
                while !GO_ON.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
            }
            Value(MARK)
        })
        .unwrap();
        std::thread::scope(|s| {
            let _go_on = Stop(&GO_ON);
            let worker = s.spawn(|| {
                let values: Vec<_> = (0..20).map(|_| cache.get().unwrap()).collect();
                values.len()
            });
            while !AT_WORK.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            let constructed = cache.stats().constructed as usize;
            assert!((1..=10).contains(&constructed));
            let status = fork(|| {
                // SAFETY: the child's copy, used once.
                drop(unsafe { core::ptr::read(&raw const cache) });
                let ended = ENDED.load(Ordering::Relaxed);
                assert!((constructed..=10).contains(&ended), "{ended} ended");
            });
            assert_eq!(status, 0, "mode {mode}");
            GO_ON.store(true, Ordering::Release);
            assert_eq!(worker.join().unwrap(), 20);
        });
        let constructed = cache.stats().constructed as usize;
        drop(cache);
        assert_eq!(ENDED.load(Ordering::Relaxed), constructed);
    });
}

/// A destructor that is called by a visit of all caches forks: the child has the visitor, and none of the other threads.
#[test]
fn a_fork_within_a_visit_leaves_the_child_its_visit() {
    alone("a_fork_within_a_visit_leaves_the_child_its_visit", |mode| {
        struct Value {
            cache: Option<Arc<ObjectCache<Value>>>,
            forks: bool,
        }
        static STATUS: AtomicI32 = AtomicI32::new(-1);
        static ENDED: AtomicUsize = AtomicUsize::new(0);
        impl Drop for Value {
            fn drop(&mut self) {
                ENDED.fetch_add(1, Ordering::Relaxed);
                if !core::mem::take(&mut self.forks) {
                    return;
                }
                // The cache has no owner but this value, in parent and child alike.
                let cache = self.cache.take().unwrap();
                let family = cache.family().clone();
                let mut cache = Some(cache);
                let status = fork(|| {
                    let weak = Arc::downgrade(cache.as_ref().unwrap());
                    drop(cache.take());
                    assert!(weak.upgrade().is_none(), "this was the last owner");
                    // Other visits come and go; the cache stays as long as it is visited further up.
                    let other = options(100).build(&family).unwrap();
                    family.maintain();
                    assert_eq!(family.owner(core::ptr::from_ref(&*self).cast()), None);
                    drop(other);
                });
                STATUS.store(status, Ordering::Relaxed);
                drop(cache);
            }
        }
        let family = family(mode);
        let cache = Arc::new(
            ObjectCache::new(&family, || Value {
                cache: None,
                forks: false,
            })
            .unwrap(),
        );
        let mut many: Vec<_> = (0..3).map(|_| cache.get().unwrap()).collect();
        many[1].cache = Some(cache.clone());
        many[1].forks = true;
        drop(many);
        let weak: Weak<_> = Arc::downgrade(&cache);
        drop(cache);
        family.trim();
        assert_eq!(STATUS.load(Ordering::Relaxed), 0, "mode {mode}");
        assert!(weak.upgrade().is_none());
        assert!(ENDED.load(Ordering::Relaxed) >= 3);
        assert_eq!(family.metadata_bytes(), 0, "the cache is gone");
    });
}
