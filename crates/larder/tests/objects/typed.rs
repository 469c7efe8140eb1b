//! Caches of values: constructed once, put back as they are, dropped with their slab.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::cpus::{allowed_cpus, pin};
use crate::common::objects::*;
use crate::common::*;
use larder::objects::{Family, Object, ObjectCache, ObjectError};

/// A value whose life is counted.
#[derive(Debug)]
struct Value {
    uses: usize,
    count: Arc<Count>,
    /// What its destructor needs: freed memory that is read would be found.
    heap: Box<[u64; 3]>,
}

impl Value {
    fn new(count: &Arc<Count>) -> Self {
        count.made.fetch_add(1, Ordering::Relaxed);
        Self {
            uses: 0,
            count: count.clone(),
            heap: Box::new([MARK; 3]),
        }
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        assert_eq!(*self.heap, [MARK; 3]);
        self.count.ended.fetch_add(1, Ordering::Relaxed);
    }
}

fn values(family: &Family, count: &Arc<Count>) -> ObjectCache<Value> {
    let count = count.clone();
    ObjectCache::builder()
        .magazine(7, 15)
        .build(family, move || Value::new(&count))
        .unwrap()
}

#[test]
fn a_value_is_made_once_and_keeps_its_state() {
    for mode in modes() {
        let (family, count) = (family(mode), Arc::new(Count::default()));
        let cache = values(&family, &count);
        for turn in 0..1000 {
            let mut value = cache.get().unwrap();
            assert_eq!(value.uses, turn, "the last one put is the next one got");
            value.uses += 1;
        }
        assert_eq!(count.both(), (1, 0));
        assert_eq!(cache.stats().constructed, 1);
        drop(cache);
        assert_eq!(count.both(), (1, 1));
    }
}

#[test]
fn values_are_made_as_they_are_needed() {
    // On one CPU: a thread that moves leaves values in the magazines of the CPU that it came from, and makes others.
    let cpus = allowed_cpus();
    pin(0, &cpus[..1]);
    for mode in modes() {
        let (family, count) = (family(mode), Arc::new(Count::default()));
        let cache = values(&family, &count);
        let mut held: Vec<Object<'_, Value>> = Vec::new();
        for n in 1..2000 {
            held.push(cache.get().unwrap());
            let made = count.both().0;
            assert!(made >= n && made <= n + n / 8 + 8, "{made} made for {n}");
        }
        held.clear();
        let made = count.both().0;
        held.extend((0..1999).map(|_| cache.get().unwrap()));
        assert_eq!(count.both(), (made, 0), "nothing was made or dropped anew");
        // Half of them stay in use: their slabs, too.
        held.truncate(1000);
        cache.trim();
        let (made, ended) = count.both();
        assert_eq!(cache.stats().destroyed as usize, ended);
        assert!(made - ended >= 1000);
        for value in &mut held {
            value.uses += 1;
        }
        drop(held);
        cache.trim();
        assert_eq!(count.both(), (made, made));
        assert_eq!(cache.stats().slabs, 0);
        drop(cache.get().unwrap());
        drop(cache);
        assert_eq!(count.both(), (made + 1, made + 1));
    }
}

#[test]
fn a_constructor_that_fails_is_asked_again() {
    for mode in modes() {
        let (family, count) = (family(mode), Arc::new(Count::default()));
        let (works, its) = (Arc::new(AtomicBool::new(false)), count.clone());
        let may = works.clone();
        let cache = ObjectCache::builder()
            .magazine(7, 15)
            .try_build(&family, move || {
                let n = its.made.load(Ordering::Relaxed);
                if may.load(Ordering::Relaxed) || !n.is_multiple_of(10) {
                    Ok(Value::new(&its))
                } else {
                    Err(n)
                }
            })
            .unwrap();
        let mut held = Vec::new();
        assert_eq!(cache.get().unwrap_err(), ObjectError::Constructor(0));
        assert!(cache.get().unwrap_err().to_string().contains("constructor"));
        let mut handle = cache.handle();
        assert_eq!(handle.get().unwrap_err(), ObjectError::Constructor(0));
        count.made.store(1, Ordering::Relaxed);
        let error = loop {
            match cache.get() {
                Ok(value) => held.push(value),
                Err(error) => break error,
            }
        };
        assert_eq!(error, ObjectError::Constructor(10));
        assert_eq!(held.len(), 9, "what was made is given");
        works.store(true, Ordering::Relaxed);
        held.extend((0..100).map(|_| cache.get().unwrap()));
        drop(held);
        drop(handle);
        cache.trim();
        let (made, ended) = count.both();
        assert_eq!(made - 1, ended);
        assert_eq!(cache.stats().out, 0);
    }
}

#[test]
fn a_constructor_that_panics_costs_nothing() {
    for mode in modes() {
        let (family, count) = (family(mode), Arc::new(Count::default()));
        let its = count.clone();
        let calls = AtomicUsize::new(0);
        let cache = ObjectCache::builder()
            .magazine(7, 15)
            .build(&family, move || {
                let n = calls.fetch_add(1, Ordering::Relaxed);
                assert!(!n.is_multiple_of(7), "call {n}");
                Value::new(&its)
            })
            .unwrap();
        let (mut held, mut panics) = (Vec::new(), 0);
        while held.len() < 500 {
            match catch_unwind(AssertUnwindSafe(|| cache.get().unwrap())) {
                Ok(value) => held.push(value),
                Err(payload) => {
                    panics += 1;
                    assert!(
                        payload
                            .downcast_ref::<String>()
                            .unwrap()
                            .starts_with("call")
                    );
                }
            }
        }
        assert!(panics >= 500 / 7, "{panics} panics");
        drop(held);
        cache.trim();
        let (made, ended) = count.both();
        assert_eq!(made, ended);
        assert_eq!((cache.stats().out, cache.stats().slabs), (0, 0));
        // Magazines in hand of the panicking call are not lost either.
        assert!(cache.stats().magazines < 200, "{:?}", cache.stats());
    }
}

/// Panics when it is dropped, if the test asks for it.
#[derive(Debug)]
struct Grumbler(Arc<AtomicUsize>);
impl Drop for Grumbler {
    fn drop(&mut self) {
        let n = self.0.fetch_add(1, Ordering::Relaxed);
        assert!(n != 3, "drop {n}");
    }
}

#[test]
fn a_drop_that_panics_does_not_keep_the_others_from_going() {
    for mode in modes() {
        let family = family(mode);
        let drops = Arc::new(AtomicUsize::new(0));
        let its = drops.clone();
        let cache = ObjectCache::new(&family, move || Grumbler(its.clone())).unwrap();
        let held: Vec<_> = (0..100).map(|_| cache.get().unwrap()).collect();
        drop(held);
        let payload = catch_unwind(AssertUnwindSafe(|| cache.trim())).unwrap_err();
        assert_eq!(payload.downcast_ref::<String>().unwrap(), "drop 3");
        assert_eq!(cache.stats().slabs, 0);
        assert_eq!(
            drops.load(Ordering::Relaxed) as u64,
            cache.stats().constructed
        );
        drops.store(0, Ordering::Relaxed);
        let held: Vec<_> = (0..100).map(|_| cache.get().unwrap()).collect();
        drop(held);
        let made = cache.stats().constructed - cache.stats().destroyed;
        assert!(catch_unwind(AssertUnwindSafe(|| drop(cache))).is_err());
        assert_eq!(drops.load(Ordering::Relaxed) as u64, made);
        family.trim();
        assert_eq!(family.pool().stats().out_bytes, 0);
        assert_eq!(family.metadata_bytes(), 0);
    }
}

#[test]
fn a_drop_that_panics_fails_no_other_cache_that_needs_memory() {
    for mode in modes() {
        let family = family_builder(mode)
            .pages(pages(mode).limit_bytes(1 << 20))
            .build()
            .unwrap();
        let drops = Arc::new(AtomicUsize::new(0));
        let its = drops.clone();
        let cache = ObjectCache::new(&family, move || Grumbler(its.clone())).unwrap();
        let held: Vec<_> = (0..100).map(|_| cache.get().unwrap()).collect();
        drop(held);
        let other = ObjectCache::new(&family, || [0_u8; 900]).unwrap();
        let mut held = Vec::new();
        let error = loop {
            match other.get() {
                Ok(value) => held.push(value),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, ObjectError::Pages(_)), "{error}");
        let stats = cache.stats();
        assert_eq!(
            (drops.load(Ordering::Relaxed) as u64, stats.slabs),
            (stats.constructed, 0)
        );
    }
}

#[test]
fn what_is_taken_or_forgotten_is_dropped_once() {
    for mode in modes() {
        let (family, count) = (family(mode), Arc::new(Count::default()));
        let cache = values(&family, &count);
        let taken = cache.get().unwrap().take();
        std::mem::forget(cache.get().unwrap());
        let raw = cache.get_raw().unwrap();
        let kept = cache.get().unwrap().into_raw();
        // SAFETY: taken above, put once.
        unsafe { cache.put_raw(raw) };
        assert_eq!(cache.stats().destroyed, 1, "moved out counts");
        cache.trim();
        assert_eq!(count.both().1, 0, "their slab is in use");
        // SAFETY: in use until the cache is dropped.
        assert_eq!(unsafe { kept.as_ref() }.uses, 0);
        drop(cache);
        assert_eq!(count.both().0, count.both().1 + 1);
        drop(taken);
        assert_eq!(count.both().0, count.both().1);
    }
}

#[test]
fn an_owned_value_keeps_its_cache() {
    for mode in modes() {
        let (family, count) = (family(mode), Arc::new(Count::default()));
        let cache = values(&family, &count);
        let mut owned: Vec<_> = (0..50).map(|_| cache.get_owned().unwrap()).collect();
        drop(cache);
        assert_eq!(count.both().1, 0);
        std::thread::scope(|s| {
            for value in &mut owned {
                s.spawn(|| value.uses += 1);
            }
        });
        assert!(owned.iter().all(|v| v.uses == 1));
        let last = owned.pop();
        drop(owned);
        assert_eq!(count.both().1, 0);
        drop(last);
        assert_eq!(count.both().0, count.both().1);
        family.trim();
        assert_eq!(family.metadata_bytes(), 0);
    }
}

#[test]
fn values_of_another_cache_go_to_their_own() {
    let (family, count) = (family(modes()[0]), Arc::new(Count::default()));
    let (a, b) = (values(&family, &count), values(&family, &count));
    let mut handle = a.handle();
    let value = b.get().unwrap();
    let at: *const Value = &raw const *value;
    handle.put(value);
    assert!(handle.is_empty());
    assert_eq!(&raw const *b.get().unwrap(), at);
    let value = a.get().unwrap();
    let at: *const Value = &raw const *value;
    handle.put(value);
    assert_eq!(handle.len(), 1);
    assert_eq!(&raw const *handle.get().unwrap(), at);
    drop(handle);
    drop((a, b));
    assert_eq!(count.both().0, count.both().1);
}

#[test]
fn alignment_may_be_asked_for() {
    let family = family(modes()[0]);
    for align in [1, 64, 128, 4096] {
        let cache = ObjectCache::<u64>::builder()
            .align(align)
            .build(&family, || 7)
            .unwrap();
        let held: Vec<_> = (0..20).map(|_| cache.get().unwrap()).collect();
        for value in &held {
            assert_eq!(&raw const **value as usize % align.max(8), 0);
            assert_eq!(**value, 7);
        }
    }
    for align in [3, 8192] {
        let refused = ObjectCache::<u64>::builder()
            .align(align)
            .build(&family, || 7);
        assert_eq!(refused.err(), Some(ObjectError::Layout { size: 8, align }));
    }
    assert!(
        ObjectCache::new(&family, || ()).is_err(),
        "no size, no objects"
    );
}

/// A value may go to another thread, also one that must not be shared.
#[test]
fn values_move_between_threads() {
    let family = family(modes()[0]);
    let cache = ObjectCache::new(&family, || Cell::new(0_usize)).unwrap();
    for _ in 0..100 {
        let value = cache.get().unwrap();
        std::thread::scope(|s| {
            s.spawn(move || value.set(value.get() + 1));
        });
    }
    // What lies in another CPU's magazines goes to the depot, where this one finds it before it makes more.
    cache.maintain();
    let mut sum = 0;
    let mut held = Vec::new();
    for _ in 0..cache.stats().constructed {
        let value = cache.get().unwrap();
        sum += value.get();
        held.push(value);
    }
    assert_eq!(sum, 100, "a value was lost");
}

#[test]
fn a_user_is_asked_for_values_when_memory_is_short() {
    for mode in modes() {
        let family = family_builder(mode)
            .pages(pages(mode).limit_bytes(1 << 20))
            .build()
            .unwrap();
        // What the user could do without: a cache of its own over the values.
        let spare: Arc<Mutex<Vec<usize>>> = Arc::default();
        let asked = Arc::new(AtomicUsize::new(0));
        let cache: Arc<std::sync::OnceLock<ObjectCache<[u8; 1000]>>> = Arc::default();
        let (s, a, c) = (spare.clone(), asked.clone(), Arc::downgrade(&cache));
        let made = ObjectCache::builder()
            .reclaim(move || {
                a.fetch_add(1, Ordering::Relaxed);
                let Some(cache) = c.upgrade() else { return };
                for addr in s.lock().unwrap().drain(..) {
                    let at = std::ptr::NonNull::new(addr as *mut [u8; 1000]).unwrap();
                    // SAFETY: taken below by `get_raw`, and put once.
                    unsafe { cache.get().unwrap().put_raw(at) };
                }
            })
            .build(&family, || [0; 1000])
            .unwrap();
        cache.set(made).unwrap();
        let cache = cache.get().unwrap();
        let mut error = None;
        for _ in 0..2000 {
            match cache.get_raw() {
                Ok(at) => spare.lock().unwrap().push(at.as_ptr() as usize),
                Err(e) => error = Some(e),
            }
        }
        assert_eq!(error, None, "the user gave up what he could");
        assert!(asked.load(Ordering::Relaxed) > 0);
        let other = ObjectCache::new(&family, || [0_u8; 900]).unwrap();
        let held: Vec<_> = (0..900).map(|_| other.get().unwrap()).collect();
        assert_eq!(held.len(), 900, "a cache is helped by the others");
        let mut more = Vec::new();
        let error = loop {
            match other.get() {
                Ok(value) => more.push(value),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, ObjectError::Pages(_)), "{error}");
    }
}

/// A value that may own caches, its own among them.
#[derive(Default)]
struct Owner {
    caches: Vec<Arc<ObjectCache<Owner>>>,
    count: Arc<Count>,
}
impl Drop for Owner {
    fn drop(&mut self) {
        self.count.ended.fetch_add(1, Ordering::Relaxed);
    }
}

fn owners(family: &Family, count: &Arc<Count>) -> Arc<ObjectCache<Owner>> {
    let count = count.clone();
    let make = move || Owner {
        caches: Vec::new(),
        count: count.clone(),
    };
    Arc::new(ObjectCache::new(family, make).unwrap())
}

/// Calls `f` in a thread, and fails when that hangs.
fn within_a_minute(what: &str, f: impl FnOnce() + Send + 'static) {
    let (send, receive) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        f();
        send.send(()).unwrap();
    });
    match receive.recv_timeout(std::time::Duration::from_secs(60)) {
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("{what} hangs"),
        _ => thread.join().unwrap(),
    }
}

#[test]
fn values_that_own_their_cache_go_with_it_when_the_family_is_drained() {
    for mode in modes() {
        let (family, count) = (family(mode), Arc::new(Count::default()));
        let cache = owners(&family, &count);
        let mut value = cache.get().unwrap();
        value.caches.push(cache.clone());
        drop(value);
        let weak = Arc::downgrade(&cache);
        drop(cache);
        assert!(weak.upgrade().is_some(), "its value owns it");
        let its = family.clone();
        within_a_minute("a drain", move || {
            its.trim();
        });
        assert!(weak.upgrade().is_none());
        assert!(count.both().1 >= 1);
        assert_eq!(family.metadata_bytes(), 0, "the cache is gone");
    }
}

#[test]
fn values_that_own_each_others_caches_go_under_many_visitors() {
    for mode in modes() {
        let (family, count) = (family(mode), Arc::new(Count::default()));
        for _ in 0..200 {
            let (a, b) = (owners(&family, &count), owners(&family, &count));
            for (x, y) in [(&a, &b), (&b, &a)] {
                let mut value = x.get().unwrap();
                value.caches.push(y.clone());
            }
            drop((a, b));
            let its = family.clone();
            within_a_minute("two drains", move || {
                std::thread::scope(|s| {
                    for _ in 0..2 {
                        s.spawn(|| its.trim());
                    }
                });
            });
            assert_eq!(family.metadata_bytes(), 0, "both caches are gone");
        }
        assert!(count.both().1 >= 400);
    }
}

/// A constructor's panic reaches the caller even when another object is in stock.
#[test]
fn a_constructors_panic_is_heard_whatever_is_in_stock() {
    for mode in modes() {
        let family = family(mode);
        let calls = AtomicUsize::new(0);
        let cache = ObjectCache::builder()
            .magazine(7, 15)
            .build(&family, move || {
                let n = calls.fetch_add(1, Ordering::Relaxed);
                assert!(n < 4, "call {n}");
                n
            })
            .unwrap();
        let mut held: Vec<_> = (0..4).map(|_| cache.get().unwrap()).collect();
        // One lies in this CPU's stock, and the handle has none.
        drop(held.pop());
        let mut handle = cache.handle();
        let panic = catch_unwind(AssertUnwindSafe(|| handle.get().map(|_| ()))).unwrap_err();
        let said = panic.downcast_ref::<String>().unwrap();
        assert!(said.starts_with("call 4"));
        drop(held);
        drop(handle);
        cache.trim();
        let stats = cache.stats();
        assert_eq!((stats.out, stats.constructed), (0, stats.destroyed));
    }
}
