//! The kernel refuses, the limits are absurd, the environment is nonsense: every failure is a value, no page is lost,
//! and all memory goes back.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::*;
use larder::os::rseq::Mode;
use larder::os::testing::{Call, Failing, Hooked};
use larder::os::{HugePageSize, Linux, page_size};
use larder::pages::{
    BuildError, ClusterSize, HelperConfig, MAX_CLUSTER_PAGES, PageBuf, PagePool, PoolError,
};

type Faulty = Arc<Hooked<Linux, Faults>>;

fn faulty(failing: Failing, release_fails: bool) -> Faulty {
    Arc::new(Hooked::new(Linux, Faults::new(failing, release_fails)))
}

const LIMIT_PAGES: usize = 700;

/// Does everything that a pool can do, takes what it gets, and returns the pool with nothing in use. `None` when the
/// pool could not even be built.
fn scenario(system: &Faulty, mode: Mode) -> Option<PagePool> {
    let page = page_size();
    let pool = builder(mode)
        .system(system.clone())
        .limit_bytes(LIMIT_PAGES * page)
        .cluster(cluster(50))
        .decay(Duration::ZERO)
        .build()
        .map_err(|error| assert!(error.to_string().contains("injected"), "{error}"))
        .ok()?;
    let mut held: Vec<PageBuf> = Vec::new();
    let mut take = |got: Result<PageBuf, PoolError>, zeroed: bool| match got {
        Ok(mut page) => {
            assert!(!zeroed || is_zero(&page));
            let number = page.as_ptr() as u64;
            stamp(&mut page, number);
            held.push(page);
        }
        Err(error) => assert!(error.to_string().contains("injected"), "{error}"),
    };
    for turn in 0..120 {
        match turn % 3 {
            0 => take(pool.get(), false),
            1 => take(pool.get_zeroed(), true),
            _ => take(pool.get_zeroed_sparse(), true),
        }
    }
    if let Ok(mut handle) = pool.handle() {
        for _ in 0..40 {
            take(handle.get(), false);
        }
        take(handle.get_zeroed(), true);
    }
    let mut many = Vec::new();
    match pool.get_many(&mut many, 60) {
        Ok(()) => assert_eq!(many.len(), 60),
        Err(_) => assert!(many.is_empty(), "all or none"),
    }
    let runs: Vec<_> = [1, 5, 64, 130]
        .into_iter()
        .filter_map(|n| pool.get_run_zeroed(n).ok())
        .collect();
    for mut run in runs {
        assert!(is_zero(&run));
        run.fill(1);
    }
    pool.set_cluster(cluster(200));
    pool.put_many(many);
    pool.trim();
    let _ = pool.get();
    pool.maintain();
    for page in &held {
        assert!(
            is_stamped(page, page.as_ptr() as u64),
            "a page in use was touched"
        );
    }
    drop(held);
    Some(pool)
}

#[test]
fn refused_at_every_call_site_in_turn() {
    for mode in modes() {
        for many in [1, 2, usize::MAX] {
            for first in 0.. {
                let system = faulty(Failing::from(first, many), false);
                let pool = scenario(&system, mode);
                let met = system.hook().seen() > first;
                system.hook().disarm();
                if let Some(pool) = pool {
                    assert_holds(&pool, LIMIT_PAGES);
                    pool.trim();
                    assert_eq!(pool.stats().out_bytes, 0, "call {first}, {many} failures");
                }
                assert_eq!(
                    system.hook().mapped(),
                    0,
                    "call {first}, {many} failures: mappings leaked"
                );
                if !met {
                    assert!(
                        first > 20,
                        "the scenario makes only {first} calls, so it tests little"
                    );
                    break;
                }
            }
        }
    }
}

#[test]
fn refusal_to_take_memory_back_is_harmless() {
    for mode in modes() {
        for first in 0.. {
            let system = faulty(Failing::only(Call::Release, first, 1), true);
            let pool = scenario(&system, mode).unwrap();
            assert_holds(&pool, LIMIT_PAGES);
            drop(pool);
            if system.hook().mapped() == 0 {
                break;
            }
            assert_eq!(system.hook().mapped(), 1, "one refusal leaks one mapping");
        }
    }
}

#[test]
fn a_cluster_that_cannot_be_populated_is_not_lost() {
    for mode in modes() {
        let system = faulty(Failing::only(Call::Populate, 0, usize::MAX), false);
        let pool = builder(mode)
            .system(system.clone())
            .cluster(cluster(64))
            .limit_bytes(64 * page_size())
            .build()
            .unwrap();
        assert!(matches!(pool.get(), Err(PoolError::System(_))));
        assert_eq!(pool.stats().held_bytes, 0);
        assert!(matches!(pool.get_run(3), Err(PoolError::System(_))));
        system.hook().disarm();
        assert!(is_zero(&pool.get_zeroed().unwrap()));
        assert_holds(&pool, 64);
    }
}

#[test]
fn pages_that_could_not_go_back_stay_usable() {
    for mode in modes() {
        let system = faulty(Failing::only(Call::Decommit, 0, usize::MAX), false);
        let pool = builder(mode)
            .system(system.clone())
            .cluster(cluster(64))
            .limit_bytes(128 * page_size())
            .build()
            .unwrap();
        let mut pages = Vec::new();
        pool.get_many(&mut pages, 128).unwrap();
        for page in &mut pages {
            page.fill(0xEE);
        }
        pool.put_many(pages);
        assert_eq!(pool.trim(), 0);
        assert_eq!(pool.stats().held_bytes, 128 * page_size());
        assert!(
            is_zero(&pool.get_zeroed().unwrap()),
            "nobody zeroed it, so this get must"
        );
        system.hook().disarm();
        assert!(pool.trim() > 0);
    }
}

#[test]
fn trim_gives_back_everything_that_is_not_in_use() {
    let page = page_size();
    for mode in modes() {
        // A cluster larger than what exists, one smaller than what is given back at once, a limit in mid-block.
        for (first, then, limit) in [(64, 64, 1000), (512, 512, 100), (10, 4096, 333), (1, 1, 7)] {
            let pool = builder(mode)
                .cluster(cluster(first))
                .limit_bytes(limit * page)
                .build()
                .unwrap();
            assert_holds(&pool, limit);
            assert_eq!(pool.stats().held_bytes, limit * page);
            pool.set_cluster(cluster(then));
            assert_eq!(pool.trim(), limit * page, "clusters {first} then {then}");
            assert_eq!((pool.stats().held_bytes, pool.stats().out_bytes), (0, 0));
            assert_holds(&pool, limit);
        }
    }
}

#[test]
fn limits_from_nothing_to_everything() {
    let page = page_size();
    for bytes in [0, 1, page - 1] {
        let error = builder(Mode::Locked("test"))
            .limit_bytes(bytes)
            .build()
            .unwrap_err();
        assert!(
            matches!(error, BuildError::Limit { bytes: b, .. } if b == bytes),
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
    // Without a reservation of its own an absurd limit must not make an absurd one, or say so.
    match PagePool::builder()
        .ignore_environment()
        .limit_bytes(usize::MAX)
        .build()
    {
        Ok(pool) => assert!(pool.get().is_ok()),
        Err(error) => assert!(matches!(error, BuildError::System(_)), "{error}"),
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
            matches!(error, BuildError::Reserve { bytes: b, .. } if b == bytes),
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
                    Err(BuildError::System(_) | BuildError::Reserve { .. })
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
                    Err(BuildError::System(_) | BuildError::Reserve { .. })
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

#[test]
fn nonsense_in_the_environment_is_an_error_that_names_it() {
    const TEST: &str = "nonsense_in_the_environment_is_an_error_that_names_it";
    if role().is_some() {
        match PagePool::new() {
            Ok(pool) => println!("made a pool with clusters of {}", pool.cluster_pages()),
            Err(error) => println!("refused: {error}"),
        }
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.into_os_string()
    };
    let with = |vars: &[(&str, &std::ffi::OsStr)], expected: &[&str]| {
        let mut command = command(TEST, "child");
        command
            .env_remove("LARDER_SETTINGS")
            .env_remove("LARDER_CLUSTER_PAGES")
            .envs(vars.iter().copied());
        let out = check(&mut command);
        for part in expected {
            assert!(out.contains(part), "{vars:?}: {part:?} is not in\n{out}");
        }
    };
    with(&[], &["made a pool"]);
    for nonsense in [
        "0",
        "-3",
        "many",
        "",
        "1048577",
        "18446744073709551616",
        "64 ",
    ] {
        with(
            &[("LARDER_CLUSTER_PAGES", nonsense.as_ref())],
            &["refused: ", &format!("'{nonsense}'")],
        );
    }
    with(
        &[("LARDER_CLUSTER_PAGES", "77".as_ref())],
        &["made a pool with clusters of 77"],
    );
    with(
        &[(
            "LARDER_CLUSTER_PAGES",
            std::os::unix::ffi::OsStrExt::from_bytes(b"\xff\xfe".as_slice()),
        )],
        &["refused: "],
    );
    let good = file("good", b"version = 1\n[pages]\ncluster_pages = 99\n");
    with(
        &[("LARDER_SETTINGS", &good)],
        &["made a pool with clusters of 99"],
    );
    with(
        &[
            ("LARDER_SETTINGS", &good),
            ("LARDER_CLUSTER_PAGES", "5".as_ref()),
        ],
        &["made a pool with clusters of 5"],
    );
    for (name, text, expected) in [
        ("empty", b"".as_slice(), "version"),
        ("cut", b"version = 1\n[pages]\ncluster_pa", "line 3"),
        ("binary", b"\x00\x01\xff\xfe", "UTF-8"),
        (
            "unknown",
            b"version = 1\n[pages]\ncluster_size = 5\n",
            "cluster_size",
        ),
        (
            "absurd",
            b"version = 1\n[pages]\ncluster_pages = 99999999\n",
            "99999999",
        ),
        (
            "negative",
            b"version = 1\n[pages]\ncluster_pages = -1\n",
            "-1",
        ),
        (
            "fraction",
            b"version = 1\n[pages]\ncluster_pages = 1.5\n",
            "cluster_pages",
        ),
        (
            "routine",
            b"version = 1\n[pages]\nzeroing = \"magic\"\n",
            "magic",
        ),
        ("future", b"version = 2\n", "version 2"),
        ("large", &[b'#'; 2 << 20], "too many"),
    ] {
        let path = file(name, text);
        with(
            &[("LARDER_SETTINGS", &path)],
            &["refused: LARDER_SETTINGS", path.to_str().unwrap(), expected],
        );
    }
    with(
        &[("LARDER_SETTINGS", dir.path().join("absent").as_os_str())],
        &["refused: ", "absent"],
    );
    with(
        &[("LARDER_SETTINGS", dir.path().as_os_str())],
        &["refused: "],
    );
}
