//! Families and object caches over the C interface: what they do, and what bad input gets.

use core::ffi::c_void;
use core::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::c::{family, json, made, no_error, refused, text};
use larder_c::larder_status::*;
use larder_c::*;

fn cache(
    family: *mut larder_family,
    bytes: usize,
    options: &larder_cache_options,
) -> *mut larder_cache {
    // SAFETY: live pointers.
    made(|out, error| unsafe { larder_cache_new(family, bytes, 0, options, out, error) })
}

/// # Safety
/// A live cache.
unsafe fn get(cache: *const larder_cache) -> *mut c_void {
    let (mut object, mut error) = (null_mut(), no_error());
    // SAFETY: the caller's promise.
    let status = unsafe { larder_cache_get(cache, &raw mut object, &raw mut error) };
    assert_eq!(status, LARDER_OK, "{}", text(&error));
    object
}

/// # Safety
/// A live cache.
unsafe fn stats(cache: *const larder_cache) -> larder_cache_stats {
    let mut stats = larder_cache_stats {
        size: size_of::<larder_cache_stats>(),
        ..Default::default()
    };
    // SAFETY: the caller's promise.
    let status = unsafe { larder_cache_stats_read(cache, &raw mut stats, null_mut()) };
    assert_eq!(status, LARDER_OK);
    stats
}

/// What the functions of a test's cache count.
#[derive(Default)]
struct Calls {
    constructed: AtomicUsize,
    destroyed: AtomicUsize,
    reclaims: AtomicUsize,
    refuse: AtomicUsize,
    ended: AtomicUsize,
}

const MADE: u64 = 0xc0ff_ee00;

unsafe extern "C" fn construct(object: *mut c_void, user: *mut c_void) -> bool {
    // SAFETY: the test's own struct, and an object of at least 8 bytes.
    unsafe {
        let calls = &*user.cast::<Calls>();
        if calls.refuse.load(Relaxed) > 0 {
            return false;
        }
        calls.constructed.fetch_add(1, Relaxed);
        object.cast::<u64>().write(MADE);
    }
    true
}

unsafe extern "C" fn destruct(object: *mut c_void, user: *mut c_void) {
    // SAFETY: as above.
    unsafe {
        assert_eq!(
            object.cast::<u64>().read() & !0xff,
            MADE,
            "only what was constructed"
        );
        (*user.cast::<Calls>()).destroyed.fetch_add(1, Relaxed);
    }
}

unsafe extern "C" fn reclaim(user: *mut c_void) {
    // SAFETY: as above.
    unsafe { (*user.cast::<Calls>()).reclaims.fetch_add(1, Relaxed) };
}

unsafe extern "C" fn end(user: *mut c_void) {
    // SAFETY: as above.
    unsafe { (*user.cast::<Calls>()).ended.fetch_add(1, Relaxed) };
}

fn hooked(calls: &Calls) -> larder_cache_options {
    larder_cache_options {
        construct: Some(construct),
        destruct: Some(destruct),
        reclaim: Some(reclaim),
        end: Some(end),
        user: core::ptr::from_ref(calls).cast_mut().cast(),
        ..larder_cache_options::default()
    }
}

#[test]
fn objects_stay_constructed_until_their_cache_ends() {
    let calls = Calls::default();
    let f = family(0);
    let c = cache(f, 48, &hooked(&calls));
    // SAFETY: live pointers; objects of 48 bytes.
    unsafe {
        let object = get(c);
        assert_eq!(object.cast::<u64>().read(), MADE);
        object.cast::<u64>().write(MADE + 1);
        assert_eq!(larder_cache_put(c, object), LARDER_OK);
        let again = get(c);
        assert_eq!(
            (again, again.cast::<u64>().read()),
            (object, MADE + 1),
            "as it was left"
        );
        assert_eq!(larder_cache_stride(c), 48);
        assert_eq!(object.addr() % 16, 0, "what a C type of 48 bytes may need");
        refused(LARDER_BUSY, "1 objects are in use", |e| {
            larder_cache_destroy(c, e)
        });
        assert_eq!(larder_cache_put(c, again), LARDER_OK);
        // The family's handle goes first; the cache keeps the family.
        assert_eq!(larder_family_free(f), LARDER_OK);
        let object = get(c);
        assert_eq!(larder_cache_put_checked(c, object, null_mut()), LARDER_OK);
        assert_eq!(larder_cache_destroy(c, null_mut()), LARDER_OK);
    }
    assert!(calls.constructed.load(Relaxed) > 0);
    assert_eq!(
        calls.constructed.load(Relaxed),
        calls.destroyed.load(Relaxed)
    );
}

#[test]
fn a_constructor_may_refuse() {
    let calls = Calls::default();
    let f = family(0);
    let c = cache(f, 64, &hooked(&calls));
    calls.refuse.store(1, Relaxed);
    // SAFETY: live pointers.
    unsafe {
        let mut object = core::ptr::without_provenance_mut(8);
        refused(LARDER_CONSTRUCTOR, "the constructor failed", |e| {
            larder_cache_get(c, &raw mut object, e)
        });
        assert!(object.is_null());
        let mut objects = [core::ptr::without_provenance_mut::<c_void>(8); 5];
        refused(LARDER_CONSTRUCTOR, "the constructor failed", |e| {
            larder_cache_get_many(c, objects.as_mut_ptr(), 5, e)
        });
        assert!(objects.iter().all(|o| o.is_null()));
        calls.refuse.store(0, Relaxed);
        let object = get(c);
        assert_eq!(larder_cache_put(c, object), LARDER_OK);
        assert_eq!(larder_cache_free(c), LARDER_OK);
        assert_eq!(larder_family_free(f), LARDER_OK);
    }
    assert_eq!(
        calls.constructed.load(Relaxed),
        calls.destroyed.load(Relaxed)
    );
}

#[test]
fn users_are_asked_when_memory_is_short_and_then_it_is_an_error() {
    let calls = Calls::default();
    let f = family(1 << 20);
    let c = cache(f, 4096, &hooked(&calls));
    let mut taken = Vec::new();
    // SAFETY: live pointers.
    unsafe {
        let mut error = no_error();
        loop {
            let mut object = null_mut();
            match larder_cache_get(c, &raw mut object, &raw mut error) {
                LARDER_OK => taken.push(object),
                status => break assert_eq!(status, LARDER_LIMIT, "{}", text(&error)),
            }
        }
        assert!(taken.len() > 200 && taken.len() <= 256, "{}", taken.len());
        assert!(
            text(&error).contains("limit of 1048576 bytes"),
            "{}",
            text(&error)
        );
        assert!(calls.reclaims.load(Relaxed) > 0);
        let status = larder_cache_put_many(c, taken.as_ptr(), taken.len(), null_mut());
        assert_eq!(status, LARDER_OK);
        let object = get(c);
        assert_eq!(larder_cache_put(c, object), LARDER_OK);
        // The pool behind it can be had for its limit, and outlives the family's handle.
        let pool = made(|out, e| larder_family_pool(f, out, e));
        assert_eq!(larder_pool_set_limit(pool, 0, null_mut()), LARDER_OK);
        assert_eq!(larder_pool_free(pool), LARDER_OK);
        let mut objects = vec![null_mut(); 300];
        let status = larder_cache_get_many(c, objects.as_mut_ptr(), 300, null_mut());
        assert_eq!(status, LARDER_OK);
        // The destructor sees objects that their users left as they were.
        assert_eq!(larder_cache_free(c), LARDER_OK);
        assert_eq!(larder_family_free(f), LARDER_OK);
    }
    assert_eq!(
        calls.constructed.load(Relaxed),
        calls.destroyed.load(Relaxed)
    );
}

#[test]
fn many_are_all_different_and_all_or_none() {
    let f = family(0);
    let limit = 16 << 10;
    let c = cache(
        f,
        64,
        &larder_cache_options {
            limit_bytes: limit,
            ..Default::default()
        },
    );
    let mut objects = vec![core::ptr::without_provenance_mut::<c_void>(8); 300];
    // SAFETY: live pointers.
    unsafe {
        let e = null_mut();
        assert_eq!(
            larder_cache_get_many(c, objects.as_mut_ptr(), 200, e),
            LARDER_OK
        );
        let unique: std::collections::HashSet<_> = objects[..200].iter().collect();
        assert_eq!(unique.len(), 200);
        for object in &objects[..200] {
            object.write_bytes(0xab, 64);
        }
        assert_eq!(
            larder_cache_put_many(c, objects.as_ptr(), 200, e),
            LARDER_OK
        );
        refused(LARDER_LIMIT, "limit of 16384 bytes", |e| {
            larder_cache_get_many(c, objects.as_mut_ptr(), 300, e)
        });
        assert!(objects.iter().all(|o| o.is_null()));
        assert_eq!(
            larder_cache_get_many(c, objects.as_mut_ptr(), 256, e),
            LARDER_OK
        );
        let mut mixed = [objects[0], null_mut()];
        refused(LARDER_NULL, "object is NULL", |e| {
            larder_cache_put_many(c, mixed.as_ptr(), 2, e)
        });
        mixed[1] = (&raw mut mixed).cast();
        refused(LARDER_FOREIGN, "no object of this cache", |e| {
            larder_cache_put_many(c, mixed.as_ptr(), 2, e)
        });
        assert_eq!(stats(c).out, 256, "none of them was put");
        assert_eq!(
            larder_cache_put_many(c, objects.as_ptr(), 256, e),
            LARDER_OK
        );
        assert_eq!(larder_cache_put_many(c, null(), 0, e), LARDER_OK);
        assert_eq!(larder_cache_get_many(c, null_mut(), 0, e), LARDER_OK);
        assert_eq!(larder_cache_destroy(c, e), LARDER_OK);
        assert_eq!(larder_family_free(f), LARDER_OK);
    }
}

#[test]
fn a_handle_keeps_its_cache_and_what_its_functions_need() {
    let calls = Calls::default();
    let f = family(0);
    let c = cache(f, 32, &hooked(&calls));
    // SAFETY: live pointers.
    unsafe {
        let h = made(|out, e| larder_cache_handle_new(c, out, e));
        let mut object = null_mut();
        assert_eq!(
            larder_cache_handle_get(h, &raw mut object, null_mut()),
            LARDER_OK
        );
        assert_eq!(object.cast::<u64>().read(), MADE);
        let through_cache = get(c);
        assert_eq!(larder_cache_handle_put(h, through_cache), LARDER_OK);
        assert!(larder_cache_handle_len(h) > 0);
        assert_eq!(larder_cache_handle_flush(h), LARDER_OK);
        assert_eq!(larder_cache_handle_len(h), 0);
        assert_eq!(
            larder_cache_handle_put(h, (&raw mut object).cast()),
            LARDER_FOREIGN
        );
        assert_eq!(larder_cache_free(c), LARDER_OK);
        assert_eq!(larder_family_free(f), LARDER_OK);
        assert_eq!(
            calls.destroyed.load(Relaxed),
            0,
            "the handle keeps the cache"
        );
        assert_eq!(larder_cache_handle_put(h, object), LARDER_OK);
        assert_eq!(larder_cache_handle_free(h), LARDER_OK);
    }
    assert_eq!(
        calls.constructed.load(Relaxed),
        calls.destroyed.load(Relaxed)
    );
}

#[test]
fn a_constructor_does_not_come_back_through_its_handle() {
    struct Inner {
        handle: *mut larder_cache_handle,
        seen: Vec<larder_status>,
    }
    unsafe extern "C" fn construct(_: *mut c_void, user: *mut c_void) -> bool {
        // SAFETY: the test's own struct, used by one thread.
        unsafe {
            let inner = &mut *user.cast::<Inner>();
            let mut object = null_mut();
            let get = larder_cache_handle_get(inner.handle, &raw mut object, null_mut());
            inner
                .seen
                .extend([get, larder_cache_handle_free(inner.handle)]);
        }
        true
    }
    let mut inner = Inner {
        handle: null_mut(),
        seen: Vec::new(),
    };
    let user = &raw mut inner;
    let f = family(0);
    let options = larder_cache_options {
        construct: Some(construct),
        user: user.cast(),
        ..Default::default()
    };
    let c = cache(f, 32, &options);
    // SAFETY: live pointers.
    unsafe {
        let h = made(|out, e| larder_cache_handle_new(c, out, e));
        (*user).handle = h;
        let mut object = null_mut();
        assert_eq!(
            larder_cache_handle_get(h, &raw mut object, null_mut()),
            LARDER_OK
        );
        assert_eq!((*user).seen, [LARDER_BUSY, LARDER_BUSY]);
        assert_eq!(larder_cache_handle_put(h, object), LARDER_OK);
        assert_eq!(larder_cache_handle_free(h), LARDER_OK);
        assert_eq!(larder_cache_free(c), LARDER_OK);
        assert_eq!(larder_family_free(f), LARDER_OK);
    }
}

#[test]
fn the_name_is_in_the_numbers() {
    let f = family(0);
    let long = c"a name that is longer than \"31\" bytes";
    let c = cache(
        f,
        10,
        &larder_cache_options {
            name: long.as_ptr(),
            ..Default::default()
        },
    );
    // SAFETY: live pointers.
    unsafe {
        let object = get(c);
        let read = stats(c);
        let name = core::ffi::CStr::from_ptr(read.name.as_ptr());
        assert_eq!(name.to_bytes(), &long.to_bytes()[..31]);
        assert_eq!(
            (read.object_bytes, read.stride_bytes, read.limit_bytes),
            (10, 10, u64::MAX)
        );
        let told = json(|at, n, needed| larder_cache_stats_json(c, at, n, needed, null_mut()));
        assert_eq!(
            told["name"],
            core::str::from_utf8(&long.to_bytes()[..31]).unwrap()
        );
        assert_eq!(told.as_object().unwrap().len(), 17);
        assert_eq!(larder_cache_put(c, object), LARDER_OK);
        assert_eq!(larder_cache_free(c), LARDER_OK);
        assert_eq!(larder_family_free(f), LARDER_OK);
    }
}

#[test]
fn an_object_that_is_put_twice_or_from_inside_is_counted_and_not_taken() {
    let f = family(0);
    let c = cache(f, 64, &Default::default());
    // SAFETY: live pointers. Twice is a mistake that is seen when both come to the slab.
    unsafe {
        let object = get(c);
        refused(LARDER_FOREIGN, "inside an object", |e| {
            larder_cache_put_checked(c, object.byte_add(8), e)
        });
        assert_eq!(larder_cache_put(c, object), LARDER_OK);
        assert_eq!(larder_cache_put(c, object), LARDER_OK);
        assert_eq!(larder_cache_trim(c, null_mut()), LARDER_OK);
        assert_eq!((stats(c).refused, stats(c).out), (1, 0));
        assert_eq!(larder_cache_free(c), LARDER_OK);
        assert_eq!(larder_family_free(f), LARDER_OK);
    }
}

#[test]
fn a_cache_that_ends_within_a_callback_of_another_one_keeps_its_functions_until_the_last_call() {
    /// The outer cache's destructor has the inner one drained, whose destructor ends the outer cache.
    struct Two {
        outer: *mut larder_cache,
        inner: *mut larder_cache,
        destroyed: usize,
        ended: usize,
    }
    unsafe extern "C" fn outer(_: *mut c_void, user: *mut c_void) {
        // SAFETY: the test's own struct, used by one thread.
        unsafe {
            let two = user.cast::<Two>();
            assert_eq!((*two).ended, 0, "a call after the end");
            (*two).destroyed += 1;
            assert_eq!(larder_cache_trim((*two).inner, null_mut()), LARDER_OK);
        }
    }
    unsafe extern "C" fn inner(_: *mut c_void, user: *mut c_void) {
        // SAFETY: as above.
        unsafe {
            let two = user.cast::<Two>();
            let outer = core::mem::replace(&mut (*two).outer, null_mut());
            if !outer.is_null() {
                assert_eq!(larder_cache_free(outer), LARDER_OK);
                assert_eq!((*two).ended, 0, "it is being visited");
            }
        }
    }
    unsafe extern "C" fn ended(user: *mut c_void) {
        // SAFETY: as above.
        unsafe { (*user.cast::<Two>()).ended += 1 };
    }
    let mut two = Two {
        outer: null_mut(),
        inner: null_mut(),
        destroyed: 0,
        ended: 0,
    };
    let user = &raw mut two;
    let f = family(0);
    let options = |destruct, end| larder_cache_options {
        destruct: Some(destruct),
        end,
        user: user.cast(),
        ..Default::default()
    };
    // SAFETY: live pointers.
    unsafe {
        let outer = cache(f, 64, &options(outer, Some(ended)));
        let inner = cache(f, 64, &options(inner, None));
        ((*user).outer, (*user).inner) = (outer, inner);
        let objects: Vec<_> = (0..10).map(|_| get(outer)).collect();
        for object in objects {
            assert_eq!(larder_cache_put(outer, object), LARDER_OK);
        }
        assert_eq!(larder_cache_put(inner, get(inner)), LARDER_OK);
        assert_eq!(larder_family_trim(f, null_mut()), LARDER_OK);
        assert!((*user).outer.is_null());
        let made = (*user).destroyed;
        assert!(made >= 10, "{made} calls, the later ones after the free");
        assert_eq!((*user).ended, 1);
        assert_eq!(larder_cache_free(inner), LARDER_OK);
        assert_eq!(larder_family_free(f), LARDER_OK);
        assert_eq!(((*user).destroyed, (*user).ended), (made, 1));
    }
}

#[test]
fn a_cache_that_is_not_made_leaves_its_user_to_the_program() {
    let calls = Calls::default();
    let f = family(0);
    // SAFETY: live pointers.
    unsafe {
        let mut out = null_mut();
        refused(LARDER_ARGUMENT, "", |e| {
            larder_cache_new(f, 5 << 20, 0, &hooked(&calls), &raw mut out, e)
        });
        assert!(out.is_null());
        assert_eq!(calls.ended.load(Relaxed), 0);
        let c = cache(f, 48, &hooked(&calls));
        assert_eq!(larder_cache_free(c), LARDER_OK);
        assert_eq!(calls.ended.load(Relaxed), 1);
        assert_eq!(larder_family_free(f), LARDER_OK);
    }
}
