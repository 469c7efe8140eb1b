//! Limits and sizes from nothing to absurd: each is kept exactly, or refused by name.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::*;
use larder::os::rseq::Mode;
use larder::os::testing::{Call, Failing, Hooked};
use larder::os::{HugePageSize, Linux, page_size};
use larder::pages::{ClusterSize, HelperConfig, MAX_CLUSTER_PAGES, PagePool, PoolError};

#[test]
fn limits_from_nothing_to_everything() {
    let page = page_size();
    for bytes in [0, 1, page - 1] {
        let error = builder(Mode::Locked("test"))
            .limit_bytes(bytes)
            .build()
            .unwrap_err();
        assert!(
            matches!(error, PoolError::LimitBytes { bytes: b, .. } if b == bytes),
            "{error}"
        );
    }
    for mode in modes() {
        for bytes in [page, page + 1, 2 * page - 1] {
            for size in [1, 64, MAX_CLUSTER_PAGES] {
                let pool = builder(mode)
                    .limit_bytes(bytes)
                    .cluster(cluster(size))
                    .build()
                    .unwrap();
                let one = pool.get().unwrap();
                assert!(matches!(pool.get(), Err(PoolError::Limit { .. })));
                assert!(pool.get_run(2).is_err());
                drop(one);
                assert!(is_zero(&pool.get_zeroed().unwrap()));
                assert_eq!(pool.get_run(1).unwrap().pages(), 1);
                let mut handle = pool.handle().unwrap();
                let one = handle.get().unwrap();
                assert!(handle.get().is_err());
                handle.put(one);
            }
        }
        let pool = builder(mode).limit_bytes(usize::MAX).build().unwrap();
        assert_eq!(pool.get().unwrap().len(), page);
        pool.set_limit_bytes(0);
        pool.trim();
        assert!(matches!(pool.get(), Err(PoolError::Limit { .. })));
        pool.set_limit_bytes(usize::MAX);
        assert!(pool.get().is_ok());
    }
    // Without an explicit reservation, an absurd limit must not lead to an absurd reservation, or the build must fail.
    match PagePool::builder()
        .ignore_environment()
        .limit_bytes(usize::MAX)
        .build()
    {
        Ok(pool) => assert!(pool.get().is_ok()),
        Err(error) => assert!(matches!(error, PoolError::System(_)), "{error}"),
    }
}

#[test]
fn where_addresses_are_short_a_pool_makes_do_with_half_of_them() {
    for shared in [false, true] {
        let reserved = |refusals| {
            let system = Hooked::new(Linux, Failing::only(Call::Reserve, 0, refusals));
            let pages = PagePool::builder()
                .ignore_environment()
                .system(Arc::new(system))
                .limit_bytes(100 << 20);
            let pages = if shared { pages.shared() } else { pages };
            match pages.build().unwrap().get_run(usize::MAX) {
                Err(PoolError::Exhausted { reserved, .. }) => reserved,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(reserved(0), 2 * reserved(1), "shared: {shared}");
    }
}

#[test]
fn absurd_reservations_are_refused_by_name() {
    for bytes in [0, 1, 64 * page_size() - 1, 1 << 62, usize::MAX] {
        let error = builder(Mode::Locked("test"))
            .reserve_bytes(bytes)
            .build()
            .unwrap_err();
        assert!(
            matches!(error, PoolError::ReserveBytes { bytes: b, .. } if b == bytes),
            "{error}"
        );
        assert!(error.to_string().contains(&bytes.to_string()));
    }
    let pool = builder(Mode::Locked("test"))
        .reserve_bytes(64 * page_size() + 1)
        .cluster(cluster(10))
        .build()
        .unwrap();
    assert!(matches!(
        pool.get_run(129),
        Err(PoolError::Exhausted { .. })
    ));
    let mut all = Vec::new();
    let error = loop {
        match pool.get() {
            Ok(page) => all.push(page),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, PoolError::Exhausted { .. }), "{error}");
    assert!(all.len() >= 64);
    for bytes in [usize::MAX, usize::MAX - (1 << 21), 1 << 62] {
        let huge = builder(Mode::Locked("test"))
            .limit_bytes(bytes)
            .hugetlb(HugePageSize::Mib2)
            .build();
        assert!(
            huge.is_ok()
                || matches!(
                    huge,
                    Err(PoolError::System(_) | PoolError::ReserveBytes { .. })
                )
        );
        let huge = PagePool::builder()
            .ignore_environment()
            .limit_bytes(bytes)
            .hugetlb(HugePageSize::Gib1)
            .build();
        assert!(
            huge.is_ok()
                || matches!(
                    huge,
                    Err(PoolError::System(_) | PoolError::ReserveBytes { .. })
                )
        );
    }
}

#[test]
fn cluster_sizes_out_of_range_are_refused_and_the_ends_work() {
    for bad in [0, MAX_CLUSTER_PAGES + 1, usize::MAX] {
        assert!(ClusterSize::pages(bad).is_err());
        let error = bad.to_string().parse::<ClusterSize>().unwrap_err();
        assert!(error.to_string().contains(&bad.to_string()), "{error}");
    }
    for bad in [
        "",
        " 64",
        "-1",
        "64k",
        "0x40",
        "1e3",
        "AUTO",
        "99999999999999999999999",
        "\u{661}",
    ] {
        assert!(bad.parse::<ClusterSize>().is_err(), "{bad:?}");
    }
    for mode in modes() {
        let pool = builder(mode)
            .populate(false)
            .cluster(cluster(MAX_CLUSTER_PAGES))
            .build()
            .unwrap();
        drop(pool.get_zeroed().unwrap());
        pool.trim();
        pool.set_cluster(cluster(1));
        let before = pool.stats().held_bytes;
        let _one = pool.get().unwrap();
        assert_eq!(pool.stats().held_bytes - before, page_size());
    }
}

static HELPER_PANICKED: AtomicBool = AtomicBool::new(false);

#[test]
fn absurd_times_are_no_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().name() == Some("larder-helper") {
            HELPER_PANICKED.store(true, Ordering::Relaxed);
        }
        usual(info);
    }));
    for mode in modes() {
        let pool = builder(mode).decay(Duration::MAX).build().unwrap();
        assert_holds_some(&pool);
        pool.maintain();
        for config in [
            HelperConfig {
                interval: Duration::MAX,
                ..HelperConfig::default()
            },
            HelperConfig {
                cpu_budget: f64::MIN_POSITIVE,
                interval: Duration::ZERO,
                ..HelperConfig::default()
            },
            HelperConfig {
                prezero_pages: usize::MAX,
                cpu_budget: 1.0,
                interval: Duration::ZERO,
                ..HelperConfig::default()
            },
        ] {
            pool.start_helper(config.clone()).unwrap();
            while pool.stats().helper_cpu_ns == 0 {
                std::thread::yield_now();
            }
            assert_holds_some(&pool);
            pool.stop_helper();
            assert!(
                !HELPER_PANICKED.load(Ordering::Relaxed),
                "the helper did not survive {config:?}"
            );
        }
        for budget in [0.0, -1.0, 1.1, f64::NAN, f64::INFINITY] {
            let config = HelperConfig {
                cpu_budget: budget,
                ..HelperConfig::default()
            };
            let error = pool.start_helper(config).unwrap_err();
            assert!(error.to_string().contains("budget"), "{error}");
        }
    }
}

fn assert_holds_some(pool: &PagePool) {
    let pages: Vec<_> = (0..100).map(|_| pool.get_zeroed().unwrap()).collect();
    assert!(pages.iter().all(|page| is_zero(page)));
}

#[test]
fn a_million_gets_against_a_limit() {
    const PAGES: usize = 64;
    let gets = if cfg!(debug_assertions) {
        50_000
    } else {
        1_000_000
    };
    for mode in modes() {
        let pool = builder(mode)
            .limit_bytes(PAGES * page_size())
            .build()
            .unwrap();
        let mut held = Vec::new();
        for _ in 0..gets {
            match pool.get() {
                Ok(page) => held.push(page),
                Err(error) => assert_eq!(
                    error,
                    PoolError::Limit {
                        pages: 1,
                        limit: PAGES * page_size()
                    }
                ),
            }
        }
        assert_eq!(held.len(), PAGES);
        drop(held);
        assert_holds(&pool, PAGES);
    }
}

#[test]
fn the_limit_is_reached_from_any_thread() {
    const PAGES: usize = 40;
    for mode in modes() {
        let pool = builder(mode)
            .limit_bytes(PAGES * page_size())
            .build()
            .unwrap();
        for _ in 0..50 {
            // Two threads that live at the same time have different stocks.
            std::thread::scope(|s| {
                let (here, there) = std::sync::mpsc::channel::<()>();
                let pool = &pool;
                s.spawn(move || {
                    assert_holds(pool, PAGES);
                    here.send(()).unwrap();
                    std::thread::yield_now();
                });
                there.recv().unwrap();
                assert_holds(pool, PAGES);
            });
        }
    }
}

#[test]
fn pre_zeroed_pages_count_as_free() {
    const PAGES: usize = 512;
    for mode in modes() {
        let pool = builder(mode)
            .limit_bytes(PAGES * page_size())
            .cluster(cluster(64))
            .build()
            .unwrap();
        let prezero = || {
            let run = pool.get_run(PAGES - 128).unwrap();
            drop(run);
            let before = pool.stats().zeroed_by_helper_bytes;
            pool.start_helper(HelperConfig {
                prezero_pages: 256,
                cpu_budget: 1.0,
                interval: Duration::from_millis(1),
                ..HelperConfig::default()
            })
            .unwrap();
            while pool.stats().zeroed_by_helper_bytes - before < 100 * page_size() as u64 {
                std::thread::yield_now();
            }
            pool.stop_helper();
        };
        prezero();
        let before = pool.stats();
        let sparse = pool.get_zeroed_sparse().unwrap();
        assert!(is_zero(&sparse));
        let after = pool.stats();
        assert_eq!(
            after.zeroed_by_caller_bytes, before.zeroed_by_caller_bytes,
            "a page of the pre-zeroed stock is not zeroed again"
        );
        drop(sparse);
        assert_holds(&pool, PAGES);
        prezero();
        let mut handle = pool.handle().unwrap();
        let mut held = Vec::new();
        while let Ok(page) = handle.get() {
            held.push(page);
        }
        assert_eq!(held.len(), PAGES, "a handle reaches what the pool reaches");
    }
}

#[test]
fn runs_of_nothing_and_of_everything() {
    let page = page_size();
    for mode in modes() {
        let pool = builder(mode).limit_bytes(200 * page).build().unwrap();
        assert_eq!(pool.get_run(0).unwrap_err(), PoolError::EmptyRun);
        assert_eq!(pool.get_run_zeroed(0).unwrap_err(), PoolError::EmptyRun);
        for n in [
            usize::MAX,
            usize::MAX / page,
            usize::MAX / page + 1,
            usize::MAX - 63,
            1 << 40,
        ] {
            assert!(
                matches!(pool.get_run(n), Err(PoolError::Exhausted { pages, .. }) if pages == n),
                "{n}"
            );
        }
        assert!(matches!(
            pool.get_run(201),
            Err(PoolError::Limit { pages: 201, .. })
        ));
        let mut list = Vec::new();
        assert!(matches!(
            pool.get_many(&mut list, usize::MAX),
            Err(PoolError::List { .. })
        ));
        assert!(pool.get_many(&mut list, 201).is_err());
        assert!(list.is_empty());
        for n in [1, 2, 63, 64, 65, 128, 200] {
            let run = pool.get_run_zeroed(n).unwrap();
            assert_eq!(run.len(), n * page);
            assert!((run.as_ptr() as usize).is_multiple_of(page));
            assert!(is_zero(&run));
        }
        assert!((pool.get().unwrap().as_ptr() as usize).is_multiple_of(page));
        assert_holds(&pool, 200);
    }
}

#[test]
fn a_run_that_is_refused_leaves_the_account_true() {
    let page = page_size();
    for mode in modes() {
        let pool = builder(mode).cluster(cluster(64)).build().unwrap();
        let runs: Vec<_> = (0..3).map(|_| pool.get_run(64).unwrap()).collect();
        let mut at: Vec<_> = runs.iter().map(|run| run.as_ptr()).collect();
        at.sort();
        assert_eq!(at[0].wrapping_add(128 * page), at[2], "three neighbours");
        let [a, b, c]: [_; 3] = runs.try_into().unwrap();
        drop(b);
        pool.trim();
        drop((a, c));
        assert_eq!(pool.stats().held_bytes, 128 * page);
        pool.set_limit_bytes(130 * page);
        assert!(matches!(pool.get_run(192), Err(PoolError::Limit { .. })));
        assert_eq!(
            pool.stats().held_bytes,
            backed(at[0], 192) * page,
            "held is what is backed"
        );
        pool.set_limit_bytes(192 * page);
        assert_holds(&pool, 192);
    }
}
