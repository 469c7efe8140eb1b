//! What C sees when the system refuses: a status for each call, nothing lost, and success once it gives again.

use core::ffi::{CStr, c_void};
use core::ptr::{null, null_mut};
use std::sync::Arc;

use larder::arena::Arena;
use larder::objects::Family;
use larder::os::Linux;
use larder::os::testing::{Failing, Hooked};
use larder::pages::PagePool;

use crate::arena::named::Named;
use crate::call::guard;
use crate::error::Failed;
use crate::mark::{Opaque, give};
use crate::objects::family::counted;
use crate::*;
use larder_status::*;

const ENOMEM: i32 = 12;

type Broken = Hooked<Linux, Failing>;

/// A system that refuses `many` calls from number `first` on.
fn system(first: usize, many: usize) -> Arc<Broken> {
    Arc::new(Hooked::new(Linux, Failing::from(first, many)))
}

/// Calls, and how many of them were refused.
#[derive(Default)]
struct Calls {
    refused: usize,
}

impl Calls {
    /// A call that succeeds or says that there is no memory; true when it succeeded.
    #[track_caller]
    fn try_one(&mut self, call: impl FnOnce(*mut larder_error) -> larder_status) -> bool {
        let mut error = larder_error {
            status: LARDER_OK,
            os_errno: 0,
            message: [0; LARDER_ERROR_BYTES],
        };
        let status = call(&raw mut error);
        if status == LARDER_OK {
            return true;
        }
        // SAFETY: the message ends with a zero byte.
        let text = unsafe { CStr::from_ptr(error.message.as_ptr()) };
        assert_eq!(status, LARDER_MEMORY, "{text:?}");
        assert_eq!((error.status, error.os_errno), (status, ENOMEM), "{text:?}");
        assert!(text.to_bytes().len() > 10, "{text:?}");
        self.refused += 1;
        false
    }

    /// A handle whose making may be refused; NULL then.
    #[track_caller]
    fn make<T>(
        &mut self,
        call: impl FnOnce(*mut *mut T, *mut larder_error) -> larder_status,
    ) -> *mut T {
        let mut out = core::ptr::without_provenance_mut(8);
        let made = self.try_one(|error| call(&raw mut out, error));
        assert_eq!(made, !out.is_null());
        out
    }

    /// As the C functions make a handle, but over something that the test built.
    #[track_caller]
    fn build<T: Opaque>(&mut self, build: impl FnOnce() -> Result<T::Inside, Failed>) -> *mut T {
        // SAFETY: live pointers.
        self.make(|out, error| unsafe { guard(error, || give(out, build)) })
    }
}

/// All that objects and heaps do, over a system that refuses. Handles that could not be had are NULL, and ending them is nothing.
fn objects_and_heaps(system: &Arc<Broken>) -> usize {
    let mut calls = Calls::default();
    let pages = PagePool::builder()
        .ignore_environment()
        .reserve_bytes(64 << 20)
        .system(system.clone());
    let family: *mut larder_family =
        calls.build(|| Ok(counted(Family::builder().pages(pages)).build()?));
    if family.is_null() {
        return calls.refused;
    }
    // SAFETY: live pointers, and NULL where a handle is asked for only when it could not be had.
    unsafe {
        let cache = calls.make(|out, e| larder_cache_new(family, 100, 0, null(), out, e));
        if !cache.is_null() {
            let mut objects = [core::ptr::without_provenance_mut::<c_void>(8); 300];
            let at = objects.as_mut_ptr();
            if calls.try_one(|e| larder_cache_get_many(cache, at, 300, e)) {
                assert_eq!(larder_cache_put_many(cache, at, 300, null_mut()), LARDER_OK);
            } else {
                assert!(objects.iter().all(|object| object.is_null()));
            }
            let handle = calls.make(|out, e| larder_cache_handle_new(cache, out, e));
            for _ in 0..3 {
                let mut object = null_mut();
                if calls.try_one(|e| larder_cache_handle_get(handle, &raw mut object, e)) {
                    object.write_bytes(1, 100);
                    assert_eq!(larder_cache_put(cache, object), LARDER_OK);
                }
            }
            assert_eq!(larder_cache_handle_free(handle), LARDER_OK);
            assert_eq!(larder_cache_destroy(cache, null_mut()), LARDER_OK);
        }
        let classes = calls.make(|out, e| larder_classes_new(family, out, e));
        let shared = calls.make(|out, e| larder_heap_new(classes, out, e));
        let own = calls.make(|out, e| larder_heap_new_private(family, out, e));
        for heap in [shared, own] {
            for bytes in [10, 3000, 100_000] {
                let mut object = null_mut();
                if !calls.try_one(|e| larder_heap_alloc_zeroed(heap, bytes, &raw mut object, e)) {
                    continue;
                }
                object.write_bytes(7, bytes);
                let before = object;
                if !calls.try_one(|e| larder_heap_realloc(heap, &raw mut object, 2 * bytes, e)) {
                    assert_eq!(object, before);
                }
                assert_eq!(object.cast::<u8>().add(bytes - 1).read(), 7);
                assert_eq!(larder_heap_dealloc(heap, object), LARDER_OK);
            }
            let mut objects = [core::ptr::without_provenance_mut::<c_void>(8); 50];
            let at = objects.as_mut_ptr();
            if calls.try_one(|e| larder_heap_alloc_many(heap, 5000, at, 50, e)) {
                assert_eq!(
                    larder_heap_dealloc_many(heap, at, 50, null_mut()),
                    LARDER_OK
                );
            } else {
                assert!(objects.iter().all(|object| object.is_null()));
            }
            let mut stats = larder_heap_stats {
                size: size_of::<larder_heap_stats>(),
                ..Default::default()
            };
            assert_eq!(
                larder_heap_stats_read(heap, &raw mut stats, null_mut()),
                LARDER_OK
            );
            assert_eq!(stats.charged_bytes, stats.stocked_bytes, "nothing was lost");
        }
        assert_eq!(larder_heap_free(shared), LARDER_OK);
        assert_eq!(larder_heap_free(own), LARDER_OK);
        assert_eq!(larder_classes_free(classes), LARDER_OK);
        assert_eq!(larder_family_trim(family, null_mut()), LARDER_OK);
        assert_eq!(larder_family_free(family), LARDER_OK);
    }
    calls.refused
}

/// An arena with quantum caches, over a system that refuses.
fn arenas(system: &Arc<Broken>) -> usize {
    let mut calls = Calls::default();
    let builder = Arena::builder("refused")
        .quantum_max(2)
        .system(system.clone());
    let arena: *mut larder_arena = calls.build(|| {
        let arena = builder.build().map_err(refused)?;
        // SAFETY: the name is static.
        Ok(Arc::new(unsafe { Named::new(arena, None) }))
    });
    if arena.is_null() {
        return calls.refused;
    }
    // SAFETY: live pointers.
    unsafe {
        let added = calls.try_one(|e| larder_arena_add(arena, 0, 1 << 20, e));
        let mut taken = Vec::new();
        for i in 0..if added { 2000 } else { 0 } {
            let (mut addr, units) = (0, 1 + i % 5);
            if calls.try_one(|e| larder_arena_alloc(arena, units, &raw mut addr, e)) {
                taken.push((addr, units));
            } else {
                assert_eq!(addr, u64::MAX);
            }
        }
        // Giving back needs no memory, so it is never refused.
        for (addr, units) in taken {
            assert_eq!(
                larder_arena_dealloc(arena, addr, units, null_mut()),
                LARDER_OK
            );
        }
        assert_eq!(larder_arena_audit(arena, null_mut()), LARDER_OK);
        assert_eq!(larder_arena_destroy(arena, null_mut()), LARDER_OK);
    }
    calls.refused
}

/// Lets each call to the system fail in turn, alone and with all that follow.
fn each_in_turn(scene: fn(&Arc<Broken>) -> usize) {
    let whole = system(usize::MAX, 0);
    assert_eq!(scene(&whole), 0, "nothing fails where nothing is refused");
    let calls = whole.hook().seen();
    assert!(calls > 5, "{calls}");
    let mut noticed = 0;
    for first in 0..calls {
        for many in [1, usize::MAX] {
            noticed += usize::from(scene(&system(first, many)) > 0);
        }
    }
    // Some calls are hints, and a call that returns memory may fail without harm.
    assert!(noticed > calls / 2, "{noticed} of {calls}");
    // From the first call on, everything.
    assert!(scene(&system(0, usize::MAX)) > 0);
}

#[test]
fn objects_and_heaps_survive_every_refusal() {
    each_in_turn(objects_and_heaps);
}

#[test]
fn arenas_survive_every_refusal() {
    each_in_turn(arenas);
}
