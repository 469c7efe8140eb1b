//! Many threads over one family: objects with stamps go from thread to thread, constructed ones stay so, ranges never overlap.

use core::ffi::c_void;
use core::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::c::{family, made};
use larder_c::larder_status::*;
use larder_c::*;

const THREADS: usize = 4;
const TURNS: usize = 3000;

/// A pointer that threads hand to each other.
#[derive(Clone, Copy)]
struct Shared<T>(*mut T);

// SAFETY: what it points to may be used by all threads at once, or is handed over under a lock.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

#[derive(Default)]
struct Counts {
    asked: AtomicU64,
    constructed: AtomicU64,
    destroyed: AtomicU64,
}

const MADE: u64 = 0x00c0_ffee;

unsafe extern "C" fn construct(object: *mut c_void, user: *mut c_void) -> bool {
    // SAFETY: an object of 16 bytes and the test's own counts.
    unsafe {
        let counts = &*user.cast::<Counts>();
        // Now and then it cannot.
        if counts.asked.fetch_add(1, Relaxed) % 50 == 49 {
            return false;
        }
        object.cast::<[u64; 2]>().write([MADE, 0]);
        counts.constructed.fetch_add(1, Relaxed);
    }
    true
}

unsafe extern "C" fn destruct(object: *mut c_void, user: *mut c_void) {
    // SAFETY: as above.
    unsafe {
        assert_eq!(object.cast::<u64>().read(), MADE);
        (*user.cast::<Counts>()).destroyed.fetch_add(1, Relaxed);
    }
}

#[test]
fn constructed_objects_go_round_between_threads() {
    let counts = Counts::default();
    let f = Shared(family(0));
    let options = larder_cache_options {
        construct: Some(construct),
        destruct: Some(destruct),
        user: (&raw const counts).cast_mut().cast(),
        ..Default::default()
    };
    // SAFETY: live pointers.
    let c = Shared(made(|out, e| unsafe {
        larder_cache_new(f.0, 16, 0, &options, out, e)
    }));
    // Put by a thread that did not take it, through whatever way is at hand.
    let passed: Mutex<Vec<Shared<c_void>>> = Mutex::default();
    std::thread::scope(|scope| {
        for t in 0..THREADS {
            let (passed, c) = (&passed, &c);
            scope.spawn(move || {
                // SAFETY: a live cache; the handle is this thread's.
                let h = made(|out, e| unsafe { larder_cache_handle_new(c.0, out, e) });
                for i in 0..TURNS {
                    let mut object = null_mut();
                    // SAFETY: live pointers, and an object that is this thread's until it is passed on.
                    unsafe {
                        let status = if i % 2 == 0 {
                            larder_cache_get(c.0, &raw mut object, null_mut())
                        } else {
                            larder_cache_handle_get(h, &raw mut object, null_mut())
                        };
                        if status == LARDER_CONSTRUCTOR {
                            continue;
                        }
                        assert_eq!(status, LARDER_OK);
                        let stamp = object.cast::<[u64; 2]>();
                        assert_eq!((*stamp)[0], MADE);
                        let mine = (t * TURNS + i) as u64 + 1;
                        (*stamp)[1] = mine;
                        std::thread::yield_now();
                        assert_eq!((*stamp)[1], mine, "somebody else has the same object");
                    }
                    let other = {
                        let mut passed = passed.lock().unwrap();
                        passed.push(Shared(object));
                        let n = passed.len();
                        if n > 20 {
                            Some(passed.swap_remove(n / 2))
                        } else {
                            None
                        }
                    };
                    if let Some(Shared(other)) = other {
                        // SAFETY: handed over under the lock.
                        let status = unsafe {
                            if i % 3 == 0 {
                                larder_cache_put(c.0, other)
                            } else {
                                larder_cache_handle_put(h, other)
                            }
                        };
                        assert_eq!(status, LARDER_OK);
                    }
                }
                // SAFETY: the thread's own.
                assert_eq!(unsafe { larder_cache_handle_free(h) }, LARDER_OK);
            });
        }
    });
    for Shared(object) in passed.into_inner().unwrap() {
        // SAFETY: no other thread has it.
        assert_eq!(unsafe { larder_cache_put(c.0, object) }, LARDER_OK);
    }
    // SAFETY: no thread uses them any more.
    unsafe {
        assert_eq!(larder_cache_destroy(c.0, null_mut()), LARDER_OK);
        assert_eq!(larder_family_free(f.0), LARDER_OK);
    }
    let (constructed, destroyed) = (
        counts.constructed.load(Relaxed),
        counts.destroyed.load(Relaxed),
    );
    assert!(constructed > 0);
    assert_eq!(constructed, destroyed);
}

#[test]
fn memory_of_one_heap_is_given_back_by_another_thread() {
    let f = Shared(family(0));
    // SAFETY: live pointers.
    let c = Shared(made(|out, e| unsafe { larder_classes_new(f.0, out, e) }));
    let passed: Mutex<Vec<(Shared<c_void>, usize)>> = Mutex::default();
    std::thread::scope(|scope| {
        for t in 0..THREADS {
            let (passed, c) = (&passed, &c);
            scope.spawn(move || {
                // SAFETY: live classes; the heap is this thread's.
                let h = made(|out, e| unsafe { larder_heap_new(c.0, out, e) });
                for i in 0..TURNS {
                    let bytes = 16 + (i * 37 + t) % 3000;
                    let mut object = null_mut();
                    // SAFETY: live pointers, and an object that is this thread's until it is passed on.
                    unsafe {
                        let status = if i % 4 == 0 {
                            larder_classes_alloc(c.0, bytes, &raw mut object, null_mut())
                        } else {
                            larder_heap_alloc(h, bytes, &raw mut object, null_mut())
                        };
                        assert_eq!(status, LARDER_OK);
                        object.write_bytes(bytes as u8, bytes);
                    }
                    let other = {
                        let mut passed = passed.lock().unwrap();
                        passed.push((Shared(object), bytes));
                        let n = passed.len();
                        if n > 50 {
                            Some(passed.swap_remove(n / 2))
                        } else {
                            None
                        }
                    };
                    if let Some((Shared(other), bytes)) = other {
                        // SAFETY: handed over under the lock.
                        unsafe {
                            let at = other.cast::<u8>();
                            assert!((0..bytes).all(|b| at.add(b).read() == bytes as u8));
                            let status = if i % 4 == 1 {
                                larder_classes_dealloc(c.0, other)
                            } else {
                                larder_heap_dealloc_sized(h, other, bytes)
                            };
                            assert_eq!(status, LARDER_OK);
                        }
                    }
                }
                // SAFETY: the thread's own.
                assert_eq!(unsafe { larder_heap_free(h) }, LARDER_OK);
            });
        }
    });
    // SAFETY: no thread uses them any more, and no other thread has the objects.
    unsafe {
        for (Shared(object), bytes) in passed.into_inner().unwrap() {
            assert_eq!(larder_classes_dealloc_sized(c.0, object, bytes), LARDER_OK);
        }
        assert_eq!(larder_classes_free(c.0), LARDER_OK);
        assert_eq!(larder_family_free(f.0), LARDER_OK);
    }
}

#[test]
fn ranges_never_overlap() {
    const UNITS: usize = 2000;
    let options = larder_arena_options {
        quantum_max: 3,
        span_units: UNITS as u64,
        ..Default::default()
    };
    // SAFETY: live pointers.
    let a = Shared(made(|out, e| unsafe { larder_arena_new(&options, out, e) }));
    let owners: Vec<AtomicU64> = (0..UNITS).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for t in 1..=THREADS as u64 {
            let (owners, a) = (&owners, &a);
            scope.spawn(move || {
                // SAFETY: a live arena; the handle is this thread's.
                let h = made(|out, e| unsafe { larder_arena_handle_new(a.0, out, e) });
                let mut mine = Vec::new();
                for i in 0..TURNS as u64 {
                    let (mut addr, units) = (0, 1 + i % 5);
                    // SAFETY: live pointers.
                    let status = unsafe {
                        if i % 2 == 0 {
                            larder_arena_alloc(a.0, units, &raw mut addr, null_mut())
                        } else {
                            larder_arena_handle_alloc(h, units, &raw mut addr, null_mut())
                        }
                    };
                    if status == LARDER_OK {
                        for n in addr..addr + units {
                            let before = owners[n as usize].swap(t, Relaxed);
                            assert_eq!(before, 0, "{n} has an owner");
                        }
                        mine.push((addr, units));
                    } else {
                        assert_eq!((status, addr), (LARDER_EXHAUSTED, u64::MAX));
                    }
                    if (mine.len() > 100 || status != LARDER_OK)
                        && let Some((addr, units)) = mine.pop()
                    {
                        for n in addr..addr + units {
                            assert_eq!(owners[n as usize].swap(0, Relaxed), t);
                        }
                        // SAFETY: live pointers.
                        let status =
                            unsafe { larder_arena_handle_dealloc(h, addr, units, null_mut()) };
                        assert_eq!(status, LARDER_OK);
                    }
                }
                for (addr, units) in mine {
                    for n in addr..addr + units {
                        assert_eq!(owners[n as usize].swap(0, Relaxed), t);
                    }
                    // SAFETY: live pointers.
                    let status = unsafe { larder_arena_dealloc(a.0, addr, units, null_mut()) };
                    assert_eq!(status, LARDER_OK);
                }
                // SAFETY: the thread's own.
                assert_eq!(unsafe { larder_arena_handle_free(h) }, LARDER_OK);
            });
        }
    });
    // SAFETY: no thread uses it any more.
    unsafe {
        assert_eq!(larder_arena_audit(a.0, null_mut()), LARDER_OK);
        assert_eq!(larder_arena_destroy(a.0, null_mut()), LARDER_OK);
    }
}
