//! What goes back: to the slabs, to the pool, to the system; and what does not.

use std::ptr::NonNull;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::common::objects::*;
use crate::common::*;
use larder::objects::{Family, Misuse, ObjectError, Owner, RawCache};
use larder::os::page_size;
use larder::os::rseq::Mode;
use larder::pages::{PagePool, PoolError};

/// Bytes that the pool holds.
fn held(family: &Family) -> usize {
    family.pool().stats().held_bytes
}

/// A family whose memory goes back to the system at the next reap or drain.
fn eager(mode: Mode) -> Family {
    family_builder(mode)
        .pages(pages(mode).decay(Duration::ZERO))
        .build()
        .unwrap()
}

/// Takes `n` objects, puts all but every `keep`-th back, and returns these.
fn burst(cache: &RawCache, n: usize, keep: usize) -> Vec<NonNull<u8>> {
    let all: Vec<_> = (0..n).map(|_| cache.get().unwrap()).collect();
    let mut kept = Vec::new();
    for (i, object) in all.into_iter().enumerate() {
        if keep != 0 && i.is_multiple_of(keep) {
            kept.push(object);
        } else {
            put(cache, object);
        }
    }
    kept
}

#[test]
fn slabs_of_small_objects_alone_are_populated() {
    for mode in modes() {
        let calls = |size| {
            let family = family(mode);
            let cache = RawCache::new(&family, layout(size, 8)).unwrap();
            put(&cache, cache.get().unwrap());
            family.pool().stats().populate_calls
        };
        assert!(calls(64) > 0 && calls(8 << 10) > 0);
        // A program may never touch the ends of larger ones.
        for size in [(8 << 10) + 8, 16 << 10, 32 << 10, 64 << 10] {
            assert_eq!(calls(size), 0, "{size} bytes");
        }
    }
}

#[test]
fn what_an_interval_did_not_need_goes_back_in_a_few() {
    for mode in modes() {
        let family = eager(mode);
        let cache = RawCache::new(&family, layout(64, 8)).unwrap();
        burst(&cache, 400_000, 0);
        let before = held(&family);
        assert!(before >= 400_000 * 64);
        for _ in 0..5 {
            family.maintain();
        }
        let after = held(&family);
        assert!(
            after * 5 <= before,
            "{before} bytes held, then {after}: less than 80 % went"
        );
        let stats = cache.stats();
        assert_eq!(stats.held_bytes, stats.slabs * page_size());
        assert_eq!(stats.slabs, 0, "the CPUs' magazines went, too: {stats:?}");
        // And it works as before.
        burst(&cache, 1000, 0);
    }
}

#[test]
fn what_is_used_again_and_again_stays() {
    for mode in modes() {
        let family = eager(mode);
        let cache = options(64).build(&family).unwrap();
        for _ in 0..6 {
            burst(&cache, 20_000, 0);
            family.maintain();
        }
        let fetched = cache.stats().slabs;
        assert!(
            fetched * 64 >= 20_000,
            "the working set of every interval went"
        );
        burst(&cache, 20_000, 0);
        assert_eq!(cache.stats().slabs, fetched);
    }
}

#[test]
fn scattered_survivors_keep_their_slabs_and_nothing_else() {
    for mode in modes() {
        let family = eager(mode);
        let cache = RawCache::new(&family, layout(64, 8)).unwrap();
        let kept = burst(&cache, 200_000, 640);
        for _ in 0..6 {
            family.maintain();
        }
        let stats = cache.stats();
        assert!(
            stats.slabs <= kept.len() + 2,
            "{} slabs for {}",
            stats.slabs,
            kept.len()
        );
        // New objects fill these slabs before any other is made.
        let free = stats.in_slabs;
        let more: Vec<_> = (0..free).map(|_| cache.get().unwrap()).collect();
        assert_eq!(
            cache.stats().slabs,
            stats.slabs,
            "partial slabs are filled first"
        );
        for object in kept.into_iter().chain(more) {
            put(&cache, object);
        }
        cache.trim();
        family.trim();
        assert_eq!(held(&family), 0);
    }
}

/// The thread alone gives memory back; the test makes no call.
#[test]
fn the_reaper_gives_back_what_nobody_uses() {
    for mode in modes() {
        let family = family_builder(mode)
            .pages(pages(mode).decay(Duration::from_millis(10)))
            .build()
            .unwrap();
        let cache = RawCache::new(&family, layout(200, 8)).unwrap();
        burst(&cache, 100_000, 0);
        let before = held(&family);
        family.start_helper(Duration::from_millis(10)).unwrap();
        let begin = Instant::now();
        while held(&family) * 5 > before {
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "nothing goes back"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(cache);
        // Dropping the family while its thread runs ends the thread; no call waits for it.
        drop(family);
    }
}

/// Calls that miss give back what others do not use, when the interval is over.
#[test]
fn slow_paths_give_back_too() {
    for mode in modes() {
        let family = family_builder(mode)
            .interval(Duration::from_millis(5))
            .pages(pages(mode).decay(Duration::from_millis(5)))
            .build()
            .unwrap();
        let idle = RawCache::new(&family, layout(64, 8)).unwrap();
        burst(&idle, 100_000, 0);
        let before = held(&family);
        let busy = options(64).build(&family).unwrap();
        let begin = Instant::now();
        while held(&family) * 5 > before || idle.stats().slabs > 0 {
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "nothing goes back"
            );
            burst(&busy, 100, 0);
        }
    }
}

#[test]
fn type_stable_memory_stays_with_its_cache() {
    for mode in modes() {
        let family = eager(mode);
        let cache = options(64).type_stable(true).build(&family).unwrap();
        let objects: Vec<_> = (0..1000).map(|_| cache.get().unwrap()).collect();
        for (i, &object) in objects.iter().enumerate() {
            mark(object, i as u64);
            put(&cache, object);
        }
        for _ in 0..5 {
            family.maintain();
        }
        family.trim();
        for (i, &object) in objects.iter().enumerate() {
            assert_eq!(marked(object), i as u64, "memory of a free object changed");
            assert_eq!(
                family.owner(object.as_ptr()),
                Some(Owner::Cache(cache.number()))
            );
        }
        assert_eq!(cache.stats().in_slabs, cache.stats().slabs * 64);
        drop(cache);
        family.trim();
        assert_eq!(family.pool().stats().out_bytes, 0);
    }
}

#[test]
fn a_cache_dies_whole_with_objects_in_use() {
    for mode in modes() {
        let family = eager(mode);
        let count = Count::default();
        let counted = counted(&family, 64, &count);
        let plain = RawCache::builder(layout(64, 8))
            .slab_pages(64)
            .build(&family)
            .unwrap();
        let objects: Vec<_> = (0..10_000)
            .map(|_| (counted.get().unwrap(), plain.get().unwrap()))
            .collect();
        let (magazines, metadata) = (plain.stats().magazines, family.metadata_bytes());
        assert!(metadata > 0);
        drop((counted, plain));
        assert_eq!(
            count.both().0,
            count.both().1,
            "what is in use is ended, too"
        );
        for (a, b) in objects {
            assert_eq!(
                (family.owner(a.as_ptr()), family.owner(b.as_ptr())),
                (None, None)
            );
        }
        assert_eq!(family.metadata_bytes(), 0);
        family.trim();
        assert_eq!((family.pool().stats().out_bytes, held(&family)), (0, 0));
        // Magazines went back to the family: the next caches need no more of them.
        for _ in 0..20 {
            let cache = options(64).build(&family).unwrap();
            burst(&cache, 200, 0);
            assert!(cache.stats().magazines <= magazines + 40);
        }
    }
}

#[test]
fn large_objects_have_owners_and_lengths() {
    for mode in modes() {
        let family = eager(mode);
        let page = page_size();
        let mut runs = Vec::new();
        for (bytes, align) in [
            (1, 1),
            (page + 1, 8),
            (100 * page, 64 * page),
            (5 * page, 512 * page),
        ] {
            let run = family.get_large(bytes, align).unwrap();
            assert_eq!(run.as_ptr() as usize % align.max(page), 0);
            assert_eq!(family.owner(run.as_ptr()), Some(Owner::Large));
            let whole = bytes.next_multiple_of(page);
            assert_eq!(family.large_bytes(run), Ok(whole));
            fill(run, whole, runs.len() as u8);
            runs.push((run, whole));
        }
        let all: usize = runs.iter().map(|&(_, n)| n).sum();
        assert_eq!(family.large_held_bytes(), all);
        assert_eq!(
            family.pool().stats().out_bytes,
            all,
            "what alignment skipped went back"
        );
        let cache = options(64).build(&family).unwrap();
        let small = cache.get().unwrap();
        for (i, (run, bytes)) in runs.into_iter().enumerate() {
            assert!(is_filled(run, bytes, i as u8));
            // SAFETY: a pointer into the run, which is only looked at.
            let inside = unsafe { run.add(8) };
            let addr = inside.as_ptr() as usize;
            // SAFETY: nothing large begins there, which is what is tested.
            let put = unsafe { family.put_large(inside) };
            assert_eq!(put, Err(Misuse::Misaligned { addr }));
            // SAFETY: once is right, and the second time nothing begins there.
            let twice = unsafe { (family.put_large(run), family.put_large(run)) };
            let addr = run.as_ptr() as usize;
            assert_eq!(twice, (Ok(()), Err(Misuse::Foreign { addr })));
        }
        let addr = small.as_ptr() as usize;
        assert_eq!(family.large_bytes(small), Err(Misuse::Foreign { addr }));
        put(&cache, small);
        for (bytes, align) in [(0, 1), (1, 3), (usize::MAX, 1), (1, 1 << 63), (1 << 40, 1)] {
            assert!(
                matches!(family.get_large(bytes, align), Err(ObjectError::Pages(_))),
                "{bytes} {align}"
            );
        }
        cache.trim();
        family.trim();
        assert_eq!(
            (family.pool().stats().out_bytes, family.large_held_bytes()),
            (0, 0)
        );
    }
}

#[test]
fn the_pools_limit_holds_for_all_caches_together() {
    for mode in modes() {
        let family = family_builder(mode)
            .pages(pages(mode).limit_bytes(1 << 20))
            .build()
            .unwrap();
        let caches = [64, 500, 5000].map(|size| options(size).build(&family).unwrap());
        // Each cache in turn may have the whole limit, since the others give up what they do not use.
        for cache in &caches {
            let mut objects = Vec::new();
            let error = loop {
                match cache.get() {
                    Ok(object) => objects.push(object),
                    Err(error) => break error,
                }
                assert!(held(&family) <= 1 << 20);
            };
            assert!(
                matches!(error, ObjectError::Pages(PoolError::Limit { .. })),
                "{error}"
            );
            let bytes = objects.len() * cache.stride();
            assert!(bytes * 10 >= (1 << 20) * 8, "only {bytes} bytes of objects");
            for object in objects {
                put(cache, object);
            }
        }
    }
}

/// As long as the user makes room, no allocation fails, of an object or of a run; once there is no more room, one does.
#[test]
fn room_that_the_user_makes_serves_objects_and_runs() {
    static FAMILY: OnceLock<Family> = OnceLock::new();
    /// Addresses of runs that can be spared.
    static SPARE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    fn make_room() -> bool {
        let Some(run) = SPARE.lock().unwrap().pop() else {
            return false;
        };
        let run = NonNull::new(core::ptr::with_exposed_provenance_mut(run)).unwrap();
        // SAFETY: taken below, and on the list once.
        unsafe { FAMILY.get().unwrap().put_large(run) }.unwrap();
        true
    }
    let family = FAMILY.get_or_init(|| {
        Family::builder()
            .pages(PagePool::builder().limit_bytes(1 << 20))
            .on_shortage(make_room)
            .build()
            .unwrap()
    });
    let run = || family.get_large(100_000, 1);
    let spare = |run: NonNull<u8>| SPARE.lock().unwrap().push(run.as_ptr().expose_provenance());
    for _ in 0..100 {
        let new = run().unwrap();
        spare(new);
    }
    let runs = SPARE.lock().unwrap().len();
    assert!((5..=10).contains(&runs), "{runs} runs of 100 kB fit 1 MiB");
    // Objects take all the room that the runs can give.
    let cache = options(500).build(family).unwrap();
    let mut objects = Vec::new();
    let error = loop {
        match cache.get() {
            Ok(object) => objects.push(object),
            Err(error) => break error,
        }
    };
    assert!(
        SPARE.lock().unwrap().is_empty(),
        "asked until there was none"
    );
    assert!(
        matches!(error, ObjectError::Pages(PoolError::Limit { .. })),
        "{error}"
    );
    assert!(objects.len() > 1600, "only {} objects", objects.len());
    assert!(run().is_err());
    for object in objects {
        put(&cache, object);
    }
}

/// What one thread takes back from an idle cache serves all threads.
#[test]
fn threads_that_run_short_together_all_get_what_is_unused() {
    for mode in modes() {
        let family = family_builder(mode)
            .pages(pages(mode).limit_bytes(4 << 20))
            .build()
            .unwrap();
        for turn in 0..20 {
            let idle = options(100).build(&family).unwrap();
            let mut all = Vec::new();
            while let Ok(object) = idle.get() {
                all.push(object);
            }
            assert!(all.len() > 30_000, "turn {turn}: {}", all.len());
            for object in all {
                put(&idle, object);
            }
            let cache = options(64).build(&family).unwrap();
            let start = std::sync::Barrier::new(8);
            std::thread::scope(|s| {
                for _ in 0..8 {
                    s.spawn(|| {
                        start.wait();
                        let held: Vec<_> = (0..2000).map(|_| cache.get().unwrap()).collect();
                        for object in held {
                            put(&cache, object);
                        }
                    });
                }
            });
        }
    }
}

#[test]
fn a_family_outlives_whoever_needs_it() {
    for mode in modes() {
        let family = family(mode);
        let cache = options(64).build(&family).unwrap();
        let mut handle = cache.handle();
        drop(family);
        let object = cache.get().unwrap();
        drop(cache);
        // SAFETY: taken from this handle's cache.
        unsafe { handle.put(object) };
        assert_eq!(handle.get().unwrap(), object);
        let again = handle.cache().family().clone();
        drop(handle);
        assert_eq!(again.metadata_bytes(), 0);
    }
}
