//! The kernel refuses: every failure is a value, no object is lost, and all memory goes back.

use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use crate::common::objects::*;
use crate::common::*;
use larder::objects::{Family, ObjectCache};
use larder::os::Linux;
use larder::os::rseq::Mode;
use larder::os::testing::{Call, Failing, Hooked};

type Faulty = Arc<Hooked<Linux, Faults>>;

fn faulty(failing: Failing, release_fails: bool) -> Faulty {
    Arc::new(Hooked::new(Linux, Faults::new(failing, release_fails)))
}

fn assert_injected(error: &impl ToString) {
    let error = error.to_string();
    assert!(error.contains("injected"), "{error}");
}

/// Does everything that a family can do, takes what it gets, and puts all of it back. `None` when there is no family.
fn scenario(system: &Faulty, mode: Mode) -> Option<Family> {
    let family = family_builder(mode)
        .pages(pages(mode).system(system.clone()).decay(Duration::ZERO))
        .build()
        .map_err(|error| assert_injected(&error))
        .ok()?;
    for size in [40, 3000] {
        let caches = [
            options(size).build(&family),
            options(size).type_stable(true).build(&family),
        ];
        let Some(caches) = caches
            .into_iter()
            .map(|c| c.map_err(|e| assert_injected(&e)).ok())
            .collect::<Option<Vec<_>>>()
        else {
            continue;
        };
        for cache in &caches {
            let mut handle = cache.handle();
            let mut held: Vec<(NonNull<u8>, u64)> = Vec::new();
            for turn in 0..200 {
                let got = if turn % 2 == 0 {
                    cache.get()
                } else {
                    handle.get()
                };
                match got {
                    Ok(object) => {
                        mark(object, turn);
                        held.push((object, turn));
                    }
                    Err(error) => assert_injected(&error),
                }
            }
            let mut many = [NonNull::dangling(); 50];
            match cache.get_many(&mut many) {
                Ok(n) => held.extend(many[..n].iter().map(|&o| {
                    mark(o, 7);
                    (o, 7)
                })),
                Err(error) => assert_injected(&error),
            }
            for (i, (object, token)) in held.into_iter().enumerate() {
                assert_eq!(marked(object), token, "an object has two owners");
                if i % 3 == 0 {
                    // SAFETY: taken once.
                    unsafe { handle.put(object) };
                } else {
                    put(cache, object);
                }
            }
            cache.maintain();
            family.maintain();
            drop(handle);
            cache.trim();
            let stats = cache.stats();
            assert_eq!(stats.refused, 0);
            assert_eq!(stats.out, 0, "an object was lost");
        }
    }
    let typed = ObjectCache::new(&family, || [1_u64; 9]);
    match typed {
        Ok(cache) => {
            let held: Vec<_> = (0..100).filter_map(|_| cache.get().ok()).collect();
            assert!(held.iter().all(|v| **v == [1; 9]));
            drop(held);
            cache.trim();
        }
        Err(error) => assert_injected(&error),
    }
    match family.get_large(1 << 20, 1 << 16) {
        // SAFETY: just taken.
        Ok(run) => unsafe { family.put_large(run) }.unwrap(),
        Err(error) => assert_injected(&error),
    }
    family.trim();
    assert_eq!(family.pool().stats().out_bytes, 0, "pages were lost");
    assert_eq!(family.metadata_bytes(), 0);
    Some(family)
}

#[test]
fn every_call_fails_once_and_nothing_is_lost() {
    for mode in modes() {
        let clean = faulty(Failing::from(usize::MAX, 0), false);
        drop(scenario(&clean, mode).unwrap());
        let calls = clean.hook().seen();
        assert!(calls > 20, "only {calls} calls");
        assert_eq!(clean.hook().mapped(), 0);
        for first in 0..calls {
            let system = faulty(Failing::from(first, 1), false);
            let family = scenario(&system, mode);
            system.hook().disarm();
            if let Some(family) = family {
                let cache = options(64).build(&family).unwrap();
                let object = cache.get().unwrap();
                put(&cache, object);
            }
            assert_eq!(
                system.hook().mapped(),
                0,
                "call {first} of {calls} left memory mapped"
            );
        }
    }
}

#[test]
fn every_call_fails_from_some_moment_on() {
    for mode in modes() {
        let clean = faulty(Failing::from(usize::MAX, 0), false);
        drop(scenario(&clean, mode).unwrap());
        let calls = clean.hook().seen();
        for first in (0..calls).step_by(2) {
            let system = faulty(Failing::from(first, usize::MAX), false);
            let family = scenario(&system, mode);
            system.hook().disarm();
            drop(family);
            assert_eq!(system.hook().mapped(), 0, "call {first} of {calls}");
        }
    }
}

#[test]
fn each_kind_of_call_fails_always() {
    for mode in modes() {
        for kind in [Call::Commit, Call::Populate, Call::Decommit, Call::Reserve] {
            // The first few must work, or there is no family.
            for first in [6, 8, 20] {
                let system = faulty(Failing::only(kind, first, usize::MAX), false);
                let family = scenario(&system, mode);
                drop(family);
                assert_eq!(system.hook().mapped(), 0, "{kind:?} from {first} on");
            }
        }
    }
}
