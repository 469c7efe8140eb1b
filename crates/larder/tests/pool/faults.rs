//! The kernel refuses, or the environment is nonsense: every failure is a value, no page is lost, and all memory goes
//! back.

use std::sync::Arc;
use std::time::Duration;

use crate::common::*;
use larder::os::rseq::Mode;
use larder::os::testing::{Call, Failing, Hooked};
use larder::os::{Linux, page_size};
use larder::pages::{PageBuf, PagePool, PoolError};

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
        // A number is named itself, a text by its variable.
        let named = match nonsense.parse::<usize>() {
            Ok(number) => format!("'{number}'"),
            Err(_) => "LARDER_CLUSTER_PAGES".to_owned(),
        };
        with(
            &[("LARDER_CLUSTER_PAGES", nonsense.as_ref())],
            &["refused: ", &named],
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
    with(
        &[
            ("LARDER_SETTINGS", &good),
            ("LARDER_CLUSTER_PAGES", "auto".as_ref()),
        ],
        &["made a pool with clusters of 99"],
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

#[test]
fn an_iterator_that_panics_loses_no_page() {
    for mode in modes() {
        let pool = builder(mode).build().unwrap();
        let mut pages = Vec::new();
        pool.get_many(&mut pages, 30).unwrap();
        let mut pages = pages.into_iter();
        let bad = core::iter::from_fn(|| match pages.len() {
            10 => panic!("the list breaks off"),
            _ => pages.next(),
        });
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pool.put_many(bad)));
        assert!(outcome.is_err());
        drop(pages);
        pool.trim();
        assert_eq!(pool.stats().out_bytes, 0, "all thirty are home");
    }
}
