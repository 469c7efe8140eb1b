//! Free pages beside pages in use go back to the system, and the account says what the kernel says.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::*;
use larder::os::testing::{Call, Failing, Hooked};
use larder::os::{Linux, page_size};
use larder::pages::{HelperConfig, PageBuf, PagePool};

const PAGES: usize = 64 * 64;
const DECAY: Duration = Duration::from_millis(20);

/// The pool's largest cluster here.
const CLUSTER: usize = 128;

/// Pages that the pool may have backed: a thread that is moved to another CPU leaves some in the magazines of the former one,
/// and takes a cluster instead.
const BACKED: usize = PAGES + 4 * CLUSTER;

/// Of so many neighbours one stays in use.
const EVERY: usize = 16;

/// Takes pages, writes them, and puts all back but every sixteenth. Says where the reservation's first page lies.
fn fragment(pool: &PagePool) -> (Vec<PageBuf>, NonNull<u8>) {
    let mut pages = Vec::new();
    pool.get_many(&mut pages, PAGES).unwrap();
    pages.sort_by_key(|page| page.as_ptr() as usize);
    let first = NonNull::new(pages[0].as_mut_ptr()).unwrap();
    let mut kept = Vec::new();
    for (i, mut page) in pages.into_iter().enumerate() {
        let number = page.as_ptr() as u64;
        stamp(&mut page, number);
        if i % EVERY == 0 {
            kept.push(page);
        }
    }
    (kept, first)
}

/// Bytes that the kernel holds of the pages from `first` on.
fn resident(first: NonNull<u8>) -> usize {
    let mut seen = vec![0_u8; BACKED];
    // SAFETY: the vector has an entry for each page of the range, which is mapped; nothing is written but the vector.
    let done = unsafe {
        libc::mincore(
            first.as_ptr().cast(),
            BACKED * page_size(),
            seen.as_mut_ptr(),
        )
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    seen.iter().filter(|&&page| page & 1 != 0).count() * page_size()
}

fn assert_stamped(kept: &[PageBuf]) {
    for page in kept {
        assert!(
            is_stamped(page, page.as_ptr() as u64),
            "a page in use was given away"
        );
    }
}

#[test]
fn upkeep_gives_back_what_lies_between_pages_in_use() {
    for mode in modes() {
        let pool = builder(mode)
            .cluster(cluster(CLUSTER))
            .decay(DECAY)
            .build()
            .unwrap();
        let (kept, first) = fragment(&pool);
        let full = pool.stats().held_bytes;
        assert!(full >= PAGES * page_size());
        assert_eq!(resident(first), full);
        // Out of the stock, seen idle, given back: an interval each.
        for _ in 0..6 {
            sleep(DECAY + Duration::from_millis(8));
            pool.maintain();
        }
        let held = pool.stats().held_bytes;
        assert_eq!(held, resident(first), "the account is the kernel's");
        // What stays beside the pages in use lies in the two magazines of each CPU that ran here, between others.
        assert!(held < full / 4, "{held} of {full} bytes stay");
        assert_eq!(pool.stats().released_bytes, (full - held) as u64);
        assert_stamped(&kept);
        // All pages come again as zero, and the pool zeroes none that went back to the kernel.
        let before = pool.stats().zeroed_by_caller_bytes;
        let again: Vec<_> = (0..PAGES - kept.len())
            .map(|_| pool.get_zeroed().unwrap())
            .collect();
        assert!(again.iter().all(|page| is_zero(page)));
        let zeroed = (pool.stats().zeroed_by_caller_bytes - before) as usize;
        assert!(
            zeroed <= held,
            "{zeroed} bytes were zeroed, {held} were held"
        );
        // The same addresses, but for clusters if the thread was moved.
        let held = pool.stats().held_bytes;
        assert_eq!(held, resident(first), "the account is the kernel's");
        assert!(
            held <= BACKED * page_size(),
            "{held} bytes instead of {full}"
        );
        assert_stamped(&kept);
    }
}

#[test]
fn the_helper_does_so_while_nobody_calls() {
    for mode in modes() {
        let pool = builder(mode)
            .cluster(cluster(64))
            .decay(DECAY)
            .build()
            .unwrap();
        let (kept, first) = fragment(&pool);
        pool.start_helper(HelperConfig {
            cpu_budget: 1.0,
            interval: Duration::from_millis(5),
            ..HelperConfig::default()
        })
        .unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while resident(first) >= PAGES * page_size() / 4 {
            assert!(Instant::now() < deadline, "it stays: {:?}", pool.stats());
            sleep(Duration::from_millis(2));
        }
        pool.stop_helper();
        assert_eq!(pool.stats().held_bytes, resident(first));
        assert_stamped(&kept);
    }
}

#[test]
fn a_page_in_use_does_not_keep_the_rest_of_its_cluster() {
    // One cluster is one unit of 8 blocks; a page in use in one of them must not keep the other seven.
    let pool = builder(modes()[0])
        .cluster(cluster(512))
        .decay(DECAY)
        .build()
        .unwrap();
    let mut run = pool.get_run(PAGES).unwrap();
    let first = NonNull::new(run.as_mut_ptr()).unwrap();
    run.fill(1);
    drop(run);
    // A run of pages is not in any magazine, so every page but these eight is back in the account.
    let kept: Vec<_> = (0..8).map(|_| pool.get_run(1).unwrap()).collect();
    for _ in 0..4 {
        sleep(DECAY + Duration::from_millis(8));
        pool.maintain();
    }
    assert_eq!(pool.stats().held_bytes, kept.len() * page_size());
    assert_eq!(resident(first), kept.len() * page_size());
}

#[test]
fn a_kernel_that_refuses_keeps_everything_as_it_is() {
    for mode in modes() {
        let system = Arc::new(Hooked::new(Linux, Failing::only(Call::Decommit, 0, 3)));
        let pool = builder(mode)
            .system(system.clone())
            .cluster(cluster(64))
            .build()
            .unwrap();
        let (kept, first) = fragment(&pool);
        let full = pool.stats().held_bytes;
        for turn in 1..=3 {
            assert_eq!(pool.trim(), 0);
            assert_eq!(system.hook().seen(), turn, "one attempt, not one per run");
            assert_eq!((pool.stats().held_bytes, resident(first)), (full, full));
            assert_eq!(pool.stats().released_bytes, 0);
        }
        assert_stamped(&kept);
        assert_eq!(pool.trim(), full - kept.len() * page_size());
        assert_eq!(resident(first), kept.len() * page_size());
        // What the kernel refused was not taken for zero.
        let again: Vec<_> = (0..64).map(|_| pool.get_zeroed().unwrap()).collect();
        assert!(again.iter().all(|page| is_zero(page)));
    }
}

#[test]
fn pages_go_and_come_while_others_are_given_back() {
    for mode in modes() {
        let pool = builder(mode)
            .cluster(cluster(64))
            .decay(Duration::ZERO)
            .build()
            .unwrap();
        let stop = AtomicBool::new(false);
        let time = stress(mode, 0.5);
        std::thread::scope(|scope| {
            let ends = Stop(&stop);
            for me in 0..3 {
                let (pool, stop) = (&pool, &stop);
                scope.spawn(move || {
                    let _ends = Stop(stop);
                    let mut rng = Rng(me + 1);
                    let mut held: Vec<(PageBuf, u64)> = Vec::new();
                    let mut number = me << 32;
                    while !stop.load(Ordering::Relaxed) {
                        if held.len() < 500 && rng.below(2) == 0 {
                            let mut page = pool.get_zeroed().unwrap();
                            assert!(is_zero(&page));
                            number += 1;
                            stamp(&mut page, number);
                            held.push((page, number));
                        } else if !held.is_empty() {
                            let (page, number) = held.swap_remove(rng.below(held.len()));
                            assert!(is_stamped(&page, number), "a page has two owners");
                        }
                    }
                });
            }
            let begin = Instant::now();
            let mut turn = 0;
            while begin.elapsed() < time && !stop.load(Ordering::Relaxed) {
                turn += 1;
                if turn % 3 == 0 {
                    pool.trim();
                } else {
                    pool.maintain();
                }
            }
            drop(ends);
        });
        assert!(pool.stats().released_bytes > 0);
        pool.trim();
        let stats = pool.stats();
        assert_eq!((stats.held_bytes, stats.out_bytes), (0, 0));
    }
}
