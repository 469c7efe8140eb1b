//! Where restartable sequences are missing (valgrind, a tunable, a wish), the locked mode does the same work.

#![allow(clippy::unwrap_used)]

mod common;

use std::process::Command;

use common::*;
use larder::os::rseq::mode;
use larder::pages::{HelperConfig, PagePool};

const TEST: &str = "the_fallback_does_the_same_work";

/// A little of everything, small enough for valgrind.
fn workload() {
    let pool = PagePool::builder()
        .ignore_environment()
        .reserve_bytes(64 << 20)
        .magazine(7, 15)
        .helper(HelperConfig {
            prezero_pages: 16,
            cpu_budget: 1.0,
            ..HelperConfig::default()
        })
        .build()
        .unwrap();
    let mut rng = Rng(1);
    std::thread::scope(|s| {
        for me in 0..3_u64 {
            let pool = &pool;
            s.spawn(move || {
                let mut handle = pool.handle().unwrap();
                let mut held = Vec::new();
                for turn in 0..500_u64 {
                    let mut page = match turn % 4 {
                        0 => pool.get().unwrap(),
                        1 => pool.get_zeroed().unwrap(),
                        2 => pool.get_zeroed_sparse().unwrap(),
                        _ => handle.get().unwrap(),
                    };
                    stamp(&mut page, (me << 32) | turn);
                    held.push((page, (me << 32) | turn));
                    if held.len() > 40 {
                        let (page, number) = held.swap_remove(turn as usize % held.len());
                        assert!(is_stamped(&page, number));
                        handle.put(page);
                    }
                }
            });
        }
    });
    let mut many = Vec::new();
    pool.get_many(&mut many, 200).unwrap();
    let run = pool.get_run_zeroed(3 + rng.below(70)).unwrap();
    assert!(is_zero(&run));
    pool.trim();
    let late = pool.get().unwrap();
    pool.put_many(many);
    drop(pool);
    drop((run, late));
}

fn has(tool: &str) -> bool {
    Command::new(tool)
        .arg("--version")
        .output()
        .is_ok_and(|out| out.status.success())
}

#[test]
fn the_fallback_does_the_same_work() {
    if role().is_some() {
        println!("mode: {}", mode());
        workload();
        println!("done");
        return;
    }
    let locked = |out: String| {
        assert!(out.contains("mode: locked ("), "{out}");
        assert!(out.contains("done"), "{out}");
    };
    locked(check(command(TEST, "child").env("LARDER_MODE", "locked")));
    // The tunable came with glibc's registration; an older or another C library registers nothing, which is as well.
    locked(check(
        command(TEST, "child")
            .env_remove("LARDER_MODE")
            .env("GLIBC_TUNABLES", "glibc.pthread.rseq=0"),
    ));
    if option_env!("RUSTFLAGS").is_some_and(|flags| flags.contains("sanitizer")) {
        println!("a program with a sanitizer does not run under valgrind");
        return;
    }
    if !has("valgrind") {
        println!(
            "valgrind is not installed, so the run under it was left out; `apt-get install valgrind`"
        );
        return;
    }
    let child = command(TEST, "child");
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--error-exitcode=99", "--quiet", "--leak-check=no"])
        .arg(child.get_program())
        .args(child.get_args())
        .env_remove("LARDER_MODE");
    for (name, value) in child.get_envs() {
        valgrind.env(name, value.unwrap_or_default());
    }
    locked(check(&mut valgrind));
}

#[test]
fn every_id_of_a_cpu_does_the_same_work() {
    const TEST: &str = "every_id_of_a_cpu_does_the_same_work";
    if role().is_some() {
        println!("mode: {}", mode());
        workload();
        return;
    }
    for (wish, other) in [("cpu_id", "mm_cid"), ("mm_cid", "cpu_id")] {
        let out = check(command(TEST, "child").env("LARDER_MODE", wish));
        // An old kernel has no mm_cid; no kernel may take one for the other when both are there.
        assert!(
            out.contains("mode: locked (") || wish == "mm_cid" || !out.contains(other),
            "{out}"
        );
    }
    check(command(TEST, "child").env("LARDER_MODE", "nonsense"));
}
