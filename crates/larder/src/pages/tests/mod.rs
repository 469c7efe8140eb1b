//! The pool over a system that records its calls.

mod spans;

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::block::BLOCK_PAGES;
use super::*;
use crate::os::rseq::Mode;
use crate::os::testing::{Call, Hooked, Recording};
use crate::os::{Decommit, Linux, page_size};

fn modes() -> Vec<Mode> {
    let mut modes = vec![Mode::Locked("test")];
    if let mode @ Mode::PerCpu(_) = crate::os::rseq::mode() {
        modes.push(mode);
    }
    modes
}

/// A pool that gives no memory back by itself during a test.
fn builder() -> PagePoolBuilder {
    PagePool::builder()
        .ignore_environment()
        .decay(Duration::from_secs(3600))
}

fn recorded() -> (Arc<Hooked<Linux, Recording>>, PagePoolBuilder) {
    let system = Arc::new(Hooked::new(Linux, Recording::default()));
    (system.clone(), builder().system(system))
}

fn calls(system: &Hooked<Linux, Recording>, call: Call) -> Vec<usize> {
    system
        .hook()
        .calls()
        .iter()
        .filter(|(c, _)| *c == call)
        .map(|(_, bytes)| bytes / page_size())
        .collect()
}

/// Waits for the helper; the bound only keeps a broken one from hanging the test. It runs when no other thread wants the CPU, which may
/// take a second each time on a busy machine.
fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(300);
    while !done() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|&b| b == 0)
}

#[test]
fn fresh_pages_are_not_zeroed_again_and_used_ones_are() {
    for mode in modes() {
        let pool = builder()
            .mode(mode)
            .limit_bytes(200 * page_size())
            .build()
            .unwrap();
        let mut page = pool.get_zeroed().unwrap();
        assert!(is_zero(&page));
        assert_eq!(pool.stats().zeroed_by_caller_bytes, 0);
        assert_eq!(pool.stats().zeroing_avoided_bytes, page_size() as u64);
        page.fill(0xAB);
        let at = page.as_ptr();
        drop(page);
        // All that the limit allows, so that the page comes back even if the thread has moved to another CPU.
        let pages: Vec<_> = (0..200).map(|_| pool.get_zeroed().unwrap()).collect();
        assert!(pages.iter().any(|p| p.as_ptr() == at));
        assert!(pages.iter().all(|p| is_zero(p)));
        assert_eq!(pool.stats().zeroed_by_caller_bytes, page_size() as u64);
    }
}

#[test]
fn get_leaves_a_former_owners_bytes() {
    let pool = builder().limit_bytes(page_size()).build().unwrap();
    let mut page = pool.get().unwrap();
    page.fill(0x5A);
    drop(page);
    assert!(pool.get().unwrap().iter().all(|&b| b == 0x5A));
}

#[test]
fn clusters_are_populated_whole_and_their_size_can_change() {
    let (system, builder) = recorded();
    let pool = builder
        .cluster(ClusterSize::pages(24).unwrap())
        .build()
        .unwrap();
    let mut pages = Vec::new();
    pool.get_many(&mut pages, 24).unwrap();
    assert_eq!(calls(&system, Call::Populate), [24]);
    pool.set_cluster(ClusterSize::pages(100).unwrap());
    pool.get_many(&mut pages, 101).unwrap();
    assert_eq!(calls(&system, Call::Populate), [24, 100, 100]);
    assert_eq!(pool.stats().held_bytes, 224 * page_size());
    assert_eq!(pool.stats().populate_calls, 3);
}

#[test]
fn without_populate_the_kernel_is_not_asked() {
    let (system, builder) = recorded();
    let pool = builder.populate(false).build().unwrap();
    let mut page = pool.get_zeroed().unwrap();
    assert!(is_zero(&page));
    page.fill(1);
    assert_eq!(calls(&system, Call::Populate), [0; 0]);
}

#[test]
fn warm_gets_and_puts_ask_nothing_of_the_system() {
    for mode in modes() {
        let system = Arc::new(Hooked::new(Linux, Recording::default()));
        let pool = builder().mode(mode).system(system.clone()).build().unwrap();
        let mut pages = Vec::new();
        pool.get_many(&mut pages, 1000).unwrap();
        pool.put_many(pages.drain(..));
        let before = system.hook().calls().len();
        for _ in 0..10 {
            pages.extend((0..1000).map(|_| pool.get().unwrap()));
            pages.clear();
        }
        // A thread that moves to the other CPU may need that CPU's first magazines or one more cluster.
        assert!(
            system.hook().calls().len() - before <= 20,
            "{:?}",
            system.hook()
        );
    }
}

#[test]
fn puts_give_nothing_back_and_trim_gives_all_in_large_pieces() {
    for mode in modes() {
        let (system, builder) = recorded();
        let pool = builder
            .mode(mode)
            .cluster(ClusterSize::pages(64).unwrap())
            .build()
            .unwrap();
        let mut pages = Vec::new();
        pool.get_many(&mut pages, 1024).unwrap();
        for page in &mut pages {
            page.fill(9);
        }
        drop(pages);
        assert_eq!(calls(&system, Call::Decommit), [0; 0]);
        let given = pool.trim();
        assert_eq!(given, 1024 * page_size());
        assert_eq!(
            calls(&system, Call::Decommit),
            [1024],
            "neighbouring clusters go with one call"
        );
        let stats = pool.stats();
        assert_eq!((stats.held_bytes, stats.out_bytes), (0, 0));
        // What comes back from the kernel is zero, and known to be.
        assert!(is_zero(&pool.get_zeroed().unwrap()));
        assert_eq!(pool.stats().zeroed_by_caller_bytes, 0);
    }
}

#[test]
fn memory_freed_lazily_is_never_taken_for_zero() {
    let pool = builder().give_back(Decommit::Free).build().unwrap();
    let mut pages = Vec::new();
    pool.get_many(&mut pages, 256).unwrap();
    for page in &mut pages {
        page.fill(0xEE);
    }
    drop(pages);
    assert!(pool.trim() > 0);
    let pages: Vec<_> = (0..256).map(|_| pool.get_zeroed().unwrap()).collect();
    assert!(pages.iter().all(|p| is_zero(p)));
}

#[test]
fn only_the_page_in_use_stays() {
    let pool = builder()
        .cluster(ClusterSize::pages(64).unwrap())
        .build()
        .unwrap();
    let mut pages = Vec::new();
    pool.get_many(&mut pages, 3 * BLOCK_PAGES).unwrap();
    let mut kept = pages.swap_remove(70);
    kept.fill(0x77);
    drop(pages);
    assert_eq!(pool.trim(), (3 * BLOCK_PAGES - 1) * page_size());
    let stats = pool.stats();
    assert_eq!(
        (stats.out_bytes, stats.held_bytes),
        (page_size(), page_size())
    );
    assert_eq!(
        stats.released_bytes,
        ((3 * BLOCK_PAGES - 1) * page_size()) as u64
    );
    assert!(kept.iter().all(|&b| b == 0x77));
    drop(kept);
    assert_eq!(pool.trim(), page_size());
    assert_eq!(
        pool.stats().released_bytes,
        (3 * BLOCK_PAGES * page_size()) as u64,
        "what is gone does not go again"
    );
}

#[test]
fn pieces_of_huge_pages_stay_until_their_block_is_whole() {
    let pool = builder()
        .huge_pages()
        .cluster(ClusterSize::pages(64).unwrap())
        .build()
        .unwrap();
    let mut pages = Vec::new();
    pool.get_many(&mut pages, 3 * BLOCK_PAGES).unwrap();
    let kept = pages.swap_remove(70);
    drop(pages);
    assert_eq!(pool.trim(), 2 * BLOCK_PAGES * page_size());
    drop(kept);
    assert_eq!(pool.trim(), BLOCK_PAGES * page_size());
}

#[test]
fn what_an_interval_did_not_need_goes_back_by_itself() {
    let (system, builder) = recorded();
    let pool = builder.decay(Duration::from_millis(20)).build().unwrap();
    let mut pages = Vec::new();
    pool.get_many(&mut pages, 2048).unwrap();
    pool.put_many(pages);
    let held = pool.stats().held_bytes;
    // Only the helper works here; the test calls the pool only for its stats.
    pool.start_helper(HelperConfig {
        cpu_budget: 1.0,
        interval: Duration::from_millis(5),
        ..HelperConfig::default()
    })
    .unwrap();
    eventually("most of the idle memory went back", || {
        pool.stats().held_bytes < held / 2
    });
    pool.stop_helper();
    for pages in calls(&system, Call::Decommit) {
        assert!(pages >= BLOCK_PAGES, "{pages} pages in one call");
    }
}

#[test]
fn slow_gets_give_back_what_is_idle_when_there_is_no_helper() {
    let pool = builder()
        .decay(Duration::from_millis(20))
        .cluster(ClusterSize::pages(64).unwrap())
        .build()
        .unwrap();
    let mut pages = Vec::new();
    pool.get_many(&mut pages, 4096).unwrap();
    let mut kept = pages.split_off(4000);
    drop(pages);
    eventually("gets gave idle memory back", || {
        std::thread::sleep(Duration::from_millis(25));
        pool.get_many(&mut kept, 1).unwrap();
        kept.extend((0..130).map(|_| pool.get().unwrap()));
        kept.truncate(96);
        pool.stats().released_bytes > 0
    });
}

#[test]
fn sparse_gets_take_what_the_helper_zeroed() {
    for mode in modes() {
        let pool = builder()
            .mode(mode)
            .cluster(ClusterSize::pages(64).unwrap())
            // On a busy machine the pages would go back to the system before the helper comes, and nothing is left to zero.
            .decay(Duration::MAX)
            .build()
            .unwrap();
        let mut pages = Vec::new();
        pool.get_many(&mut pages, 512).unwrap();
        for page in &mut pages {
            page.fill(0xCD);
        }
        drop(pages);
        // Twice: the first interval saw the magazines in use.
        pool.maintain();
        pool.maintain();
        pool.start_helper(HelperConfig {
            prezero_pages: 128,
            cpu_budget: 1.0,
            ..HelperConfig::default()
        })
        .unwrap();
        eventually("the stock was filled", || {
            pool.stats().prezeroed_bytes >= 64 * page_size()
        });
        pool.stop_helper();
        let before = pool.stats();
        assert!(before.zeroed_by_helper_bytes >= 64 * page_size() as u64);
        let sparse: Vec<_> = (0..32).map(|_| pool.get_zeroed_sparse().unwrap()).collect();
        assert!(sparse.iter().all(|p| is_zero(p)));
        let after = pool.stats();
        assert_eq!(
            after.zeroed_by_caller_bytes, before.zeroed_by_caller_bytes,
            "nobody zeroed them again"
        );
        assert_eq!(
            after.zeroing_avoided_bytes - before.zeroing_avoided_bytes,
            32 * page_size() as u64
        );
    }
}

#[test]
fn fault_ahead_populates_before_anybody_asks() {
    let pool = builder()
        .cluster(ClusterSize::pages(64).unwrap())
        .build()
        .unwrap();
    pool.start_helper(HelperConfig {
        ahead_pages: 1024,
        cpu_budget: 1.0,
        ..HelperConfig::default()
    })
    .unwrap();
    eventually("pages were populated ahead", || {
        pool.stats().fault_ahead_bytes >= 512 * page_size() as u64
    });
    pool.stop_helper();
    let before = pool.stats().populate_calls;
    let mut pages = Vec::new();
    pool.get_many(&mut pages, 512).unwrap();
    assert!(pages.iter().all(|p| is_zero(p)));
    assert_eq!(
        pool.stats().populate_calls,
        before,
        "the kernel was asked only by the helper"
    );
}

#[test]
fn a_budget_out_of_range_is_refused() {
    let pool = builder().build().unwrap();
    for cpu_budget in [0.0, -1.0, 1.5, f64::NAN] {
        let error = pool
            .start_helper(HelperConfig {
                cpu_budget,
                ..HelperConfig::default()
            })
            .unwrap_err();
        assert!(error.to_string().contains("budget"), "{error}");
    }
}

#[test]
fn the_limit_is_exact_and_free_pages_elsewhere_still_count() {
    for mode in modes() {
        let pool = builder()
            .mode(mode)
            .limit_bytes(100 * page_size())
            .build()
            .unwrap();
        let mut pages: Vec<_> = (0..100).map(|_| pool.get().unwrap()).collect();
        assert_eq!(
            pool.get().unwrap_err(),
            PoolError::Limit {
                pages: 1,
                limit: 100 * page_size()
            }
        );
        assert!(pool.get_run(1).is_err());
        assert!(pool.get_many(&mut pages, 1).is_err());
        assert_eq!(pages.len(), 100);
        // All free pages lie in a handle's and then in other threads' CPUs' magazines.
        std::thread::scope(|s| {
            for part in pages.chunks_mut(25) {
                let part: Vec<_> = part.iter_mut().map(|p| p.as_mut_ptr() as usize).collect();
                let pool = &pool;
                s.spawn(move || {
                    for at in part {
                        // SAFETY: each page of the chunk is put once; the buffers are forgotten below.
                        unsafe { pool.put_raw(std::ptr::NonNull::new(at as *mut u8).unwrap()) };
                    }
                });
            }
        });
        pages.into_iter().for_each(std::mem::forget);
        let again: Vec<_> = (0..100).map(|_| pool.get().unwrap()).collect();
        assert!(pool.get().is_err());
        drop(again);
        assert_eq!(
            pool.get_run(100).unwrap().pages(),
            100,
            "scattered pages become a run"
        );
    }
}

#[test]
fn memory_goes_when_the_last_buffer_goes() {
    for mode in modes() {
        let (system, builder) = recorded();
        let pool = builder.mode(mode).limit_bytes(1 << 20).build().unwrap();
        let clone = pool.clone();
        let mut handle = pool.handle().unwrap();
        let page = pool.get().unwrap();
        let mut other = handle.get().unwrap();
        let run = pool.get_run(3).unwrap();
        drop(pool);
        drop(clone);
        let warm = handle.get().unwrap();
        handle.put(warm);
        drop(handle);
        assert_eq!(calls(&system, Call::Release), [0; 0], "buffers are out");
        other.fill(3);
        drop(page);
        drop(run);
        assert_eq!(calls(&system, Call::Release), [0; 0]);
        assert!(other.iter().all(|&b| b == 3));
        std::thread::spawn(move || drop(other)).join().unwrap();
        let reserved: usize = calls(&system, Call::Reserve).iter().sum();
        let released: usize = calls(&system, Call::Release).iter().sum();
        assert_eq!(reserved, released, "everything was returned");
    }
}

#[test]
fn pages_of_another_pool_go_home() {
    let (a, b) = (builder().build().unwrap(), builder().build().unwrap());
    let mut handle = a.handle().unwrap();
    handle.put(b.get().unwrap());
    a.put_many([b.get().unwrap(), a.get().unwrap()]);
    drop(handle);
    b.trim();
    a.trim();
    assert_eq!((a.stats().out_bytes, b.stats().out_bytes), (0, 0));
}

#[test]
fn runs_are_contiguous_distinct_and_zero_when_asked() {
    let pool = builder().limit_bytes(64 << 20).build().unwrap();
    let mut runs: Vec<_> = [1, 3, 64, 65, 200]
        .into_iter()
        .map(|n| pool.get_run(n).unwrap())
        .collect();
    for (i, run) in runs.iter_mut().enumerate() {
        run.fill(i as u8 + 1);
    }
    for (i, run) in runs.iter().enumerate() {
        assert!(
            run.iter().all(|&b| b == i as u8 + 1),
            "run {i} was overwritten"
        );
    }
    drop(runs);
    assert!(is_zero(&pool.get_run_zeroed(300).unwrap()));
    assert_eq!(pool.get_run(0).unwrap_err(), PoolError::EmptyRun);
    assert!(matches!(
        pool.get_run(usize::MAX),
        Err(PoolError::Exhausted { .. })
    ));
}
