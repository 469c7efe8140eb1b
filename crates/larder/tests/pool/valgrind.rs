//! Where restartable sequences are missing (valgrind, a glibc tunable, `LARDER_MODE`), the locked mode does the same work.

use std::alloc::Layout;
use std::collections::BTreeSet;
use std::process::Command;
use std::ptr::NonNull;
use std::sync::Mutex;

use crate::common::*;
use larder::arena::Arena;
use larder::heap::{Classes, Heap};
use larder::ids::IdSpace;
use larder::ids::rule::Lifo;
use larder::objects::{Family, ObjectCache, RawCache};
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
    objects();
    addresses();
    identifiers();
}

/// Caches, classes and heaps of one family, from three threads.
fn objects() {
    const TURNS: u64 = 300;
    let family = Family::new().unwrap();
    let cache = RawCache::new(&family, Layout::new::<[u64; 5]>()).unwrap();
    let values = ObjectCache::new(&family, || [7_u64; 3]).unwrap();
    let classes = Classes::new(&family);
    std::thread::scope(|s| {
        for me in 1..=3_u64 {
            let (cache, values, classes, family) = (&cache, &values, &classes, &family);
            s.spawn(move || {
                let mut rng = Rng(me);
                let heaps = [Heap::new(classes), Heap::private(family)];
                let mut held = Vec::new();
                for turn in 0..TURNS {
                    let mut value = values.get().unwrap();
                    assert_eq!(*value, [7; 3], "constructed, or as its last user left it");
                    value[0] = turn;
                    value[0] = 7;
                    let layout = match turn % 4 {
                        0 => Layout::new::<[u64; 5]>(),
                        _ => Layout::from_size_align(8 + rng.below(3000), 16).unwrap(),
                    };
                    let at = match turn % 4 {
                        0 => cache.get().unwrap(),
                        1 => classes.alloc(layout).unwrap(),
                        private => heaps[private as usize - 2].alloc(layout).unwrap(),
                    };
                    // SAFETY: so large at least, and this thread's.
                    unsafe { at.cast::<u64>().write((me << 32) | turn) };
                    held.push((at, layout, turn));
                    if held.len() < 40 && turn + 1 < TURNS {
                        continue;
                    }
                    for (at, layout, turn) in held.drain(..) {
                        // SAFETY: written above, and put once where it came from, with its layout.
                        unsafe {
                            assert_eq!(at.cast::<u64>().read(), (me << 32) | turn);
                            match turn % 4 {
                                0 => cache.put(at),
                                1 => classes.dealloc(at, layout),
                                private => heaps[private as usize - 2].dealloc(at, layout),
                            }
                        }
                    }
                }
            });
        }
    });
    let mut many = [NonNull::dangling(); 100];
    let got = cache.get_many(&mut many).unwrap();
    // SAFETY: just taken, put once.
    unsafe { cache.put_many(&many[..got]) };
    family.trim();
    assert_eq!(cache.stats().held_bytes, 0, "all was put back");
}

/// An arena over numbers.
fn addresses() {
    let arena = Arena::builder("numbers").quantum_max(8).build().unwrap();
    arena.add(0x1000, 0x10000).unwrap();
    let mut held = Vec::new();
    for turn in 1..300_u64 {
        held.push((arena.alloc(turn).unwrap(), turn));
        if held.len() > 40 {
            let (at, size) = held.swap_remove(turn as usize % held.len());
            arena.free(at, size).unwrap();
        }
    }
    for (at, size) in held {
        arena.free(at, size).unwrap();
    }
}

/// A space of identifiers, from three threads.
fn identifiers() {
    let ids = IdSpace::new(0..1000_u64, Lifo).unwrap();
    let owners = Mutex::new(BTreeSet::new());
    std::thread::scope(|s| {
        for me in 1..=3_u64 {
            let (ids, owners) = (&ids, &owners);
            s.spawn(move || {
                let mut rng = Rng(me);
                let mut held = Vec::new();
                for _ in 0..500 {
                    if held.len() < 300 && rng.below(3) != 0 {
                        let id = ids.alloc().unwrap();
                        assert!(owners.lock().unwrap().insert(id), "{id} has two owners");
                        held.push(id);
                    } else if let Some(id) = held.pop() {
                        assert!(owners.lock().unwrap().remove(&id));
                        ids.free(id).unwrap();
                    }
                }
                owners.lock().unwrap().retain(|id| !held.contains(id));
                ids.free_many(&held).unwrap();
            });
        }
    });
    assert_eq!(ids.allocated(), 0, "all was given back");
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
    // The tunable came with glibc's registration. An older glibc or another C library registers nothing, with the same result.
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
    let mut child = command(TEST, "child");
    child.env_remove("LARDER_MODE");
    let options = ["--error-exitcode=99", "--quiet", "--leak-check=no"];
    locked(check(&mut under("valgrind", &options, &child)));
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
        // An old kernel has no mm_cid. Where both are there, the mode must be the one that was set.
        assert!(
            out.contains("mode: locked (") || wish == "mm_cid" || !out.contains(other),
            "{out}"
        );
    }
    // One line of warning, since the mode is decided once.
    let told = "larder: LARDER_MODE: there is no mode \"nonsense\"; there are locked, cpu_id, mm_cid; it is ignored\n";
    let out = command(TEST, "child")
        .env("LARDER_MODE", "nonsense")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}");
    assert_eq!(said.matches(told).count(), 1, "{said}");
}
