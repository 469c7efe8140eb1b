//! Threads with tokens: no object is lost, none has two owners, however many threads there are for a CPU.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use crate::common::objects::*;
use crate::common::*;
use larder::objects::{Family, ObjectCache, RawCache, RawHandle};
use larder::os::rseq::Mode;

/// An object that may go to another thread.
struct Sent(NonNull<u8>, u64);
// SAFETY: an object is bytes in the hands of one owner.
unsafe impl Send for Sent {}

/// Takes and puts at random, each object stamped while it is held.
fn work(cache: &RawCache, mut handle: Option<RawHandle>, me: u64, stop: &AtomicBool) -> u64 {
    let mut rng = Rng(me);
    let mut held: Vec<(NonNull<u8>, u64)> = Vec::new();
    let mut turns = 0;
    let take = |handle: &mut Option<RawHandle>, rng: &mut Rng| match handle {
        Some(handle) if rng.below(4) != 0 => handle.get().unwrap(),
        _ => cache.get().unwrap(),
    };
    while !stop.load(Ordering::Relaxed) {
        turns += 1;
        let token = me << 32 | turns;
        match rng.below(100) {
            0..50 if held.len() < 300 => {
                let object = take(&mut handle, &mut rng);
                mark(object, token);
                held.push((object, token));
            }
            50..53 => {
                let mut many = vec![NonNull::dangling(); rng.below(100)];
                let n = cache.get_many(&mut many).unwrap();
                for &object in &many[..n] {
                    assert_eq!(n, many.len());
                    mark(object, token);
                    held.push((object, token));
                }
            }
            53..56 => {
                let n = rng.below(held.len() + 1);
                let many: Vec<_> = held
                    .drain(..n)
                    .map(|(object, token)| {
                        assert_eq!(marked(object), token, "an object has two owners");
                        object
                    })
                    .collect();
                // SAFETY: each was taken once.
                unsafe { cache.put_many(&many) };
            }
            56 if me.is_multiple_of(7) => {
                cache.maintain();
            }
            57 if me.is_multiple_of(5) && turns.is_multiple_of(10) => {
                cache.trim();
            }
            58 if handle.is_some() => handle = Some(cache.handle()),
            _ => {
                let Some(last) = held.len().checked_sub(1) else {
                    continue;
                };
                let (object, token) = held.swap_remove(rng.below(last + 1));
                assert_eq!(marked(object), token, "an object has two owners");
                mark(object, 0);
                match &mut handle {
                    // SAFETY: taken once.
                    Some(handle) if rng.below(4) != 0 => unsafe { handle.put(object) },
                    _ => put(cache, object),
                }
            }
        }
    }
    for (object, token) in held {
        assert_eq!(marked(object), token, "an object has two owners");
        put(cache, object);
    }
    turns
}

/// Checks that all objects of the cache are back in their slabs after a drain.
fn assert_home(family: &Family, cache: &RawCache) {
    cache.trim();
    let stats = cache.stats();
    assert_eq!(
        (stats.out, stats.slabs, stats.refused),
        (0, 0, 0),
        "objects are lost"
    );
    family.trim();
    assert_eq!(family.pool().stats().out_bytes, 0, "pages are lost");
}

fn crowd(mode: Mode, threads: u64, size: usize) {
    let family = family(mode);
    let cache = options(size).build(&family).unwrap();
    let stop = AtomicBool::new(false);
    let turns = AtomicU64::new(0);
    std::thread::scope(|s| {
        let _stopper = Stop(&stop);
        for me in 1..=threads {
            let (cache, stop, turns) = (&cache, &stop, &turns);
            let handle = me.is_multiple_of(2).then(|| cache.handle());
            s.spawn(move || turns.fetch_add(work(cache, handle, me, stop), Ordering::Relaxed));
        }
        std::thread::sleep(stress(mode, 1.5));
    });
    println!(
        "{} turns of {threads} threads",
        turns.load(Ordering::Relaxed)
    );
    assert_home(&family, &cache);
}

#[test]
fn many_more_threads_than_cpus() {
    for mode in modes() {
        crowd(mode, 12, 64);
    }
}

#[test]
fn few_threads_with_objects_of_pages() {
    for mode in modes() {
        crowd(mode, 3, 4096);
    }
}

/// One thread takes, another puts: objects flow back as magazines.
#[test]
fn takers_and_putters() {
    for mode in modes() {
        let family = family(mode);
        let cache = options(100).build(&family).unwrap();
        std::thread::scope(|s| {
            for side in 0..2_u64 {
                let (from, to) = sync_channel::<Sent>(500);
                let cache = &cache;
                s.spawn(move || {
                    let mut handle = cache.handle();
                    for n in 0..50_000_u64 {
                        let object = if side == 0 { cache.get() } else { handle.get() }.unwrap();
                        mark(object, n);
                        from.send(Sent(object, n)).unwrap();
                    }
                });
                s.spawn(move || {
                    let mut handle = cache.handle();
                    for Sent(object, n) in to {
                        assert_eq!(marked(object), n);
                        if side == 0 {
                            // SAFETY: taken once by the other thread, which gave it up.
                            unsafe { handle.put(object) };
                        } else {
                            put(cache, object);
                        }
                    }
                });
            }
        });
        let stats = cache.stats();
        assert!(
            stats.slabs * stats.objects_per_slab < 10_000,
            "objects do not come back: {stats:?}"
        );
        assert_home(&family, &cache);
    }
}

/// Values are made and dropped exactly once while a reaper and drains take slabs away.
#[test]
fn values_live_once_whatever_is_reaped() {
    struct Value(Box<u64>);
    static MADE: AtomicU64 = AtomicU64::new(0);
    static ENDED: AtomicU64 = AtomicU64::new(0);
    impl Drop for Value {
        fn drop(&mut self) {
            assert_eq!(*self.0 >> 32, MARK >> 32);
            *self.0 = 0;
            ENDED.fetch_add(1, Ordering::Relaxed);
        }
    }
    for mode in modes() {
        let family = family(mode);
        family.start_helper(Duration::from_millis(1)).unwrap();
        let cache = ObjectCache::builder()
            .magazine(7, 15)
            .build(&family, || {
                MADE.fetch_add(1, Ordering::Relaxed);
                Value(Box::new(MARK))
            })
            .unwrap();
        std::thread::scope(|s| {
            for me in 0..6 {
                let cache = &cache;
                s.spawn(move || {
                    let mut rng = Rng(me);
                    let mut handle = cache.handle();
                    for _ in 0..20_000 / if cfg!(miri) { 100 } else { 1 } {
                        let n = rng.below(20);
                        let held: Vec<_> = (0..n)
                            .map(|i| {
                                if i % 2 == 0 {
                                    cache.get()
                                } else {
                                    handle.get()
                                }
                                .unwrap()
                            })
                            .collect();
                        for (i, mut value) in held.into_iter().enumerate() {
                            assert_eq!(*value.0 >> 32, MARK >> 32, "not constructed");
                            *value.0 = MARK >> 32 << 32 | rng.next() as u64 & 0xFFFF;
                            if i % 3 == 0 {
                                handle.put(value);
                            }
                        }
                        if rng.below(1000) == 0 {
                            cache.trim();
                        }
                    }
                });
            }
        });
        // What the reaper has in hand a drain does not see.
        family.stop_helper();
        cache.trim();
        let stats = cache.stats();
        assert_eq!((stats.out, stats.constructed), (0, stats.destroyed));
        drop(cache);
        assert_eq!(MADE.load(Ordering::Relaxed), ENDED.load(Ordering::Relaxed));
    }
}

/// Caches come and go while another thread visits them all.
#[test]
fn caches_come_and_go_under_the_reaper() {
    for mode in modes() {
        let family = family(mode);
        family.start_helper(Duration::ZERO).unwrap();
        std::thread::scope(|s| {
            for me in 0..4_usize {
                let family = &family;
                s.spawn(move || {
                    for turn in 0..300 {
                        let count = Count::default();
                        let cache = counted(family, 8 << ((turn + me) % 8), &count);
                        let held: Vec<_> = (0..50).map(|_| cache.get().unwrap()).collect();
                        let mut handle = cache.handle();
                        for object in held {
                            // SAFETY: taken once.
                            unsafe { handle.put(object) };
                        }
                        let number = cache.number();
                        drop(cache);
                        assert_eq!(handle.cache().number(), number);
                        // The reaper may have ended what lay in the stock, but not what the handle holds.
                        let (made, ended) = count.both();
                        assert!(ended < made, "the handle keeps the cache");
                        drop(handle);
                        assert_eq!(count.both().0, count.both().1);
                    }
                });
            }
        });
        family.stop_helper();
        family.trim();
        assert_eq!(family.pool().stats().out_bytes, 0);
        assert_eq!(family.metadata_bytes(), 0);
    }
}
