//! Threads that die with pages in hand, pools that go before their pages, owners that come and go.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use crate::common::cpus::{allowed_cpus, pin};
use crate::common::*;
use larder::os::testing::{Call, Failing, Hook, Hooked};
use larder::os::{Linux, OsError, page_size};
use larder::pages::{HelperConfig, PageBuf, PagePool};

/// A system that never fails and keeps the account of mappings.
fn counted() -> Arc<Hooked<Linux, Faults>> {
    Arc::new(Hooked::new(
        Linux,
        Faults::new(Failing::from(usize::MAX, 0), false),
    ))
}

thread_local! {
    static KEPT: RefCell<Vec<PageBuf>> = const { RefCell::new(Vec::new()) };
}

#[test]
fn threads_die_with_pages_in_hand() {
    const PAGES: usize = 512;
    for mode in modes() {
        let system = counted();
        let pool = builder(mode)
            .system(system.clone())
            .limit_bytes(PAGES * page_size())
            .build()
            .unwrap();
        let mut leaked = 0;
        for round in 0..40 {
            std::thread::scope(|s| {
                let threads = [0, 1, 2, 3].map(|me| {
                    let pool = &pool;
                    s.spawn(move || {
                        let pages: Vec<_> = (0..10).map(|_| pool.get().unwrap()).collect();
                        // Dropped by the destructor of the thread's locals, after its last line.
                        KEPT.with_borrow_mut(|kept| kept.extend(pages));
                        if me == 0 && round % 10 == 0 {
                            // And some never.
                            core::mem::forget(pool.get().unwrap());
                        }
                    })
                });
                // The end of the scope alone would not wait for the destructors.
                for thread in threads {
                    thread.join().unwrap();
                }
            });
            leaked += usize::from(round % 10 == 0);
        }
        assert_holds(&pool, PAGES - leaked);
        pool.trim();
        assert_eq!(pool.stats().out_bytes, leaked * page_size());
        drop(pool);
        assert!(
            system.hook().mapped() > 0,
            "a leaked page keeps its memory mapped: somebody may still look at it"
        );
    }
}

#[test]
fn pages_travel_from_producers_to_consumers() {
    const PAGES: u64 = 20_000;
    for mode in modes() {
        let pool = builder(mode)
            .limit_bytes(400 * page_size())
            .build()
            .unwrap();
        std::thread::scope(|s| {
            for lane in 0..2_u64 {
                let (sender, receiver) = sync_channel::<(PageBuf, u64)>(64);
                let pool = &pool;
                s.spawn(move || {
                    for i in 0..PAGES {
                        let number = (lane << 32) | i;
                        let mut page = pool.get().unwrap();
                        stamp(&mut page, number);
                        sender.send((page, number)).unwrap();
                    }
                });
                s.spawn(move || {
                    for (page, number) in receiver {
                        assert!(
                            is_stamped(&page, number),
                            "page {number} changed on its way"
                        );
                    }
                });
            }
        });
        let held = pool.stats().held_bytes;
        assert!(held <= 400 * page_size());
        pool.trim();
        assert_eq!(pool.stats().out_bytes, 0);
    }
}

#[test]
fn buffers_outlive_their_pool() {
    for mode in modes() {
        for turn in 0..200 {
            let system = counted();
            let pool = builder(mode).system(system.clone()).build().unwrap();
            let start = Barrier::new(4);
            let lists: Vec<Vec<PageBuf>> = (0..3)
                .map(|_| (0..30).map(|_| pool.get_zeroed().unwrap()).collect())
                .collect();
            let run = (turn % 2 == 0).then(|| pool.get_run(70).unwrap());
            std::thread::scope(|s| {
                for mut list in lists {
                    let start = &start;
                    s.spawn(move || {
                        start.wait();
                        for (i, mut page) in list.drain(..).enumerate() {
                            stamp(&mut page, i as u64);
                            assert!(is_stamped(&page, i as u64));
                        }
                    });
                }
                start.wait();
                // At the same time as the puts.
                drop(pool);
            });
            if let Some(mut run) = run {
                assert!(
                    system.hook().mapped() > 0,
                    "a run is out, so its memory stays"
                );
                run.fill(9);
                drop(run);
            }
            assert_eq!(
                system.hook().mapped(),
                0,
                "turn {turn}: the last put returns the memory"
            );
        }
    }
}

#[test]
fn the_last_owner_closes_the_pool_whoever_it_is() {
    for mode in modes() {
        for last in 0..3 {
            let system = counted();
            let pool = builder(mode).system(system.clone()).build().unwrap();
            let clone = pool.clone();
            let mut handle = pool.handle().unwrap();
            let page = handle.get().unwrap();
            let mut owners: Vec<Box<dyn FnOnce() + Send>> = vec![
                Box::new(move || drop(pool)),
                Box::new(move || drop(clone)),
                Box::new(move || {
                    let page = handle.get().unwrap();
                    handle.put(page);
                    drop(handle);
                }),
            ];
            owners.rotate_left(last);
            for owner in owners {
                std::thread::spawn(owner).join().unwrap();
            }
            assert!(system.hook().mapped() > 0);
            drop(page);
            assert_eq!(system.hook().mapped(), 0);
        }
    }
}

#[test]
fn pages_find_home_whoever_puts_them() {
    for mode in modes() {
        let (a, b) = (
            builder(mode).build().unwrap(),
            builder(mode).build().unwrap(),
        );
        let mut pages = Vec::new();
        for _ in 0..100 {
            pages.push(a.get().unwrap());
            pages.push(b.get().unwrap());
        }
        let mut handle = b.handle().unwrap();
        for page in pages.drain(..50) {
            handle.put(page);
        }
        a.put_many(pages);
        drop(handle);
        for pool in [&a, &b] {
            pool.trim();
            assert_eq!(pool.stats().out_bytes, 0);
        }
    }
}

#[test]
fn the_cluster_size_changes_while_the_pool_runs() {
    for mode in modes() {
        let pool = builder(mode)
            .limit_bytes(600 * page_size())
            .build()
            .unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|s| {
            let workers: Vec<_> = (1..4)
                .map(|me| {
                    let pool = &pool;
                    s.spawn(move || work(pool, me, 20_000))
                })
                .collect();
            s.spawn(|| {
                let mut rng = Rng(7);
                while !stop.load(Ordering::Relaxed) {
                    pool.set_cluster(cluster(1 + rng.below(3000)));
                    pool.maintain();
                    pool.trim();
                }
            });
            let ends: Vec<_> = workers
                .into_iter()
                .map(std::thread::ScopedJoinHandle::join)
                .collect();
            stop.store(true, Ordering::Relaxed);
            assert!(ends.iter().all(Result::is_ok));
        });
        assert_holds(&pool, 600);
    }
}

/// Delays one kind of call until another thread has tried its own, or for about 3 ms if that thread waits, too.
#[derive(Debug)]
struct Slow {
    call: Call,
    inside: AtomicBool,
    tried: AtomicBool,
}

impl Hook for Slow {
    fn before(&self, call: Call, _: usize) -> Result<(), OsError> {
        if call == self.call && !self.tried.load(Ordering::Acquire) {
            self.inside.store(true, Ordering::Release);
            for _ in 0..30 {
                if self.tried.load(Ordering::Acquire) {
                    break;
                }
                std::thread::sleep(Duration::from_micros(100));
            }
        }
        Ok(())
    }
}

/// A thread that populates a large cluster or gives pages back has free ones in hand; meanwhile the gets of other threads
/// must not fail.
#[test]
fn nobody_is_refused_what_another_thread_has_in_passing() {
    const PAGES: usize = 260;
    for mode in modes() {
        for call in [Call::Populate, Call::Decommit] {
            for runs in [false, true] {
                let judged = (0..50).any(|_| {
                    let system = Arc::new(Hooked::new(
                        Linux,
                        Slow {
                            call,
                            inside: AtomicBool::new(false),
                            tried: AtomicBool::new(call == Call::Decommit),
                        },
                    ));
                    let pool = builder(mode)
                        .system(system.clone())
                        .cluster(cluster(512))
                        .limit_bytes(PAGES * page_size())
                        .build()
                        .unwrap();
                    if call == Call::Decommit {
                        assert_holds(&pool, PAGES);
                        system.hook().tried.store(false, Ordering::Release);
                    }
                    std::thread::scope(|s| {
                        let (pool, hook) = (&pool, system.hook());
                        s.spawn(move || match call {
                            Call::Populate => drop(pool.get().unwrap()),
                            _ => assert!(pool.trim() > 0),
                        });
                        while !hook.inside.load(Ordering::Acquire) {
                            std::thread::yield_now();
                        }
                        let begin = Instant::now();
                        let error = if runs {
                            pool.get_run(2).err()
                        } else {
                            pool.get().err()
                        };
                        let waited = begin.elapsed();
                        hook.tried.store(true, Ordering::Release);
                        // A get waits for a bounded time: on a busy machine the other thread may be late, which is no failure.
                        let late = waited > Duration::from_millis(3);
                        assert!(
                            error.is_none() || late,
                            "refused while {call:?} was under way: {error:?}"
                        );
                        error.is_none()
                    })
                });
                assert!(judged, "never waited long enough");
            }
        }
    }
}

/// Gets and puts with stamps; never more than 100 pages at a time.
fn work(pool: &PagePool, me: u64, turns: u64) {
    let mut rng = Rng(me);
    let mut held: Vec<(PageBuf, u64)> = Vec::new();
    for turn in 0..turns {
        let number = (me << 32) | turn;
        if held.len() < 100 && (held.is_empty() || rng.below(2) == 0) {
            let mut page = pool.get().unwrap();
            stamp(&mut page, number);
            held.push((page, number));
        } else {
            let (page, stamped) = held.swap_remove(rng.below(held.len()));
            assert!(is_stamped(&page, stamped), "a page has two owners");
        }
    }
}

#[test]
fn helpers_start_and_stop_in_any_order() {
    alone("helpers_start_and_stop_in_any_order", |mode| {
        for turn in 0..6 {
            let system = counted();
            let pool = builder(mode).system(system.clone()).build().unwrap();
            std::thread::scope(|s| {
                for me in 0..4 {
                    let pool = &pool;
                    s.spawn(move || {
                        for i in 0..20 {
                            let config = HelperConfig {
                                prezero_pages: 16,
                                ahead_pages: 16,
                                cpu_budget: 1.0,
                                interval: Duration::from_micros(50),
                            };
                            if (me + i) % 3 == 0 {
                                pool.stop_helper();
                            } else {
                                pool.start_helper(config).unwrap();
                            }
                            work(pool, me + 1, 50);
                        }
                    });
                }
            });
            if turn % 2 == 0 {
                pool.stop_helper();
            }
            let held = pool.get().unwrap();
            drop(pool);
            assert_eq!(
                threads_named("larder-helper"),
                0,
                "a helper outlived its pool"
            );
            drop(held);
            assert_eq!(system.hook().mapped(), 0);
        }
    });
}

/// Number of threads of this process with a name.
fn threads_named(name: &str) -> usize {
    std::fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .filter(|comm| comm.trim_end() == &name[..name.len().min(15)])
        .count()
}

#[test]
fn threads_are_moved_from_cpu_to_cpu() {
    let cpus = allowed_cpus();
    if cpus.len() < 2 {
        println!("one CPU only: nothing to move between");
        return;
    }
    for mode in modes() {
        let pool = builder(mode)
            .limit_bytes(400 * page_size())
            .build()
            .unwrap();
        let moves = AtomicUsize::new(0);
        let end = Instant::now() + stress(mode, 2.0);
        std::thread::scope(|s| {
            let (sender, receiver) = std::sync::mpsc::channel();
            for me in 1..=3_u64 {
                let (pool, sender) = (&pool, sender.clone());
                s.spawn(move || {
                    // SAFETY: only asks for the own number.
                    sender.send(unsafe { libc::gettid() }).unwrap();
                    drop(sender);
                    while Instant::now() < end {
                        work(pool, me, 2000);
                    }
                });
            }
            drop(sender);
            let tids: Vec<_> = receiver.iter().collect();
            let mut rng = Rng(3);
            while Instant::now() < end {
                pin(tids[rng.below(tids.len())], &[cpus[rng.below(cpus.len())]]);
                moves.fetch_add(1, Ordering::Relaxed);
            }
        });
        assert!(moves.load(Ordering::Relaxed) > 0);
        assert_holds(&pool, 400);
    }
}

/// Lets no call reach the kernel before all threads have made theirs.
#[derive(Debug)]
struct AllAtOnce(Barrier);

impl Hook for AllAtOnce {
    fn before(&self, call: Call, _: usize) -> Result<(), OsError> {
        if call == Call::Populate {
            self.0.wait();
        }
        Ok(())
    }
}

#[test]
fn threads_that_miss_together_do_not_back_a_cluster_each() {
    const CLUSTER: usize = 64;
    // As `builder` makes them: the first threads of the stock need not be the first of the clusters.
    const MAGAZINE: usize = 7;
    let cpus = std::thread::available_parallelism().unwrap().get();
    let threads = 3 * cpus + 10;
    for mode in modes() {
        let pool = builder(mode)
            .system(Arc::new(Hooked::new(
                Linux,
                AllAtOnce(Barrier::new(threads)),
            )))
            .cluster(cluster(CLUSTER))
            .build()
            .unwrap();
        std::thread::scope(|s| {
            for _ in 0..threads {
                s.spawn(|| drop(pool.get().unwrap()));
            }
        });
        let held = pool.stats().held_bytes / page_size();
        assert!(
            (threads..=cpus * (CLUSTER + MAGAZINE) + threads).contains(&held),
            "{threads} threads on {cpus} CPUs hold {held} pages"
        );
    }
}
