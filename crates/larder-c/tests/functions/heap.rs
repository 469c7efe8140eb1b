//! Classes and heaps over the C interface.

use core::ffi::c_void;
use core::ptr::null_mut;

use crate::c::{family, json, made, no_error, refused, text};
use crate::process::{command, ended, role};
use larder_c::larder_status::*;
use larder_c::*;

/// # Safety
/// A live heap.
unsafe fn alloc(heap: *mut larder_heap, bytes: usize) -> *mut c_void {
    let (mut object, mut error) = (null_mut(), no_error());
    // SAFETY: the caller's promise.
    let status = unsafe { larder_heap_alloc(heap, bytes, &raw mut object, &raw mut error) };
    assert_eq!(status, LARDER_OK, "{}", text(&error));
    object
}

/// # Safety
/// A live heap.
unsafe fn stats(heap: *const larder_heap) -> larder_heap_stats {
    let mut stats = larder_heap_stats {
        size: size_of::<larder_heap_stats>(),
        ..Default::default()
    };
    // SAFETY: the caller's promise.
    let status = unsafe { larder_heap_stats_read(heap, &raw mut stats, null_mut()) };
    assert_eq!(status, LARDER_OK);
    stats
}

#[test]
fn memory_of_any_size_is_had_and_given_back_through_any_of_them() {
    let f = family(0);
    // SAFETY: live pointers; objects are used within their bytes.
    unsafe {
        let c = made(|out, e| larder_classes_new(f, out, e));
        let a = made(|out, e| larder_heap_new(c, out, e));
        let b = made(|out, e| larder_heap_new(c, out, e));
        for bytes in [0, 1, 16, 17, 100, 4096, 32 << 10, (32 << 10) + 1, 1 << 20] {
            let object = alloc(a, bytes);
            assert_eq!(object.addr() % 16, 0);
            let usable = larder_heap_usable_bytes(a, object);
            assert!(usable >= bytes.max(1), "{bytes}: {usable}");
            object.write_bytes(0x5a, usable);
            assert_eq!(larder_heap_dealloc(b, object), LARDER_OK);

            let mut object = null_mut();
            let status = larder_heap_alloc_zeroed(b, bytes, &raw mut object, null_mut());
            assert_eq!(status, LARDER_OK);
            assert!(
                (0..bytes).all(|i| object.cast::<u8>().add(i).read() == 0),
                "{bytes}"
            );
            assert_eq!(larder_classes_usable_bytes(c, object), usable);
            assert_eq!(larder_classes_dealloc_sized(c, object, bytes), LARDER_OK);

            let status = larder_classes_alloc_zeroed(c, bytes, &raw mut object, null_mut());
            assert_eq!(status, LARDER_OK);
            assert!(
                (0..bytes).all(|i| object.cast::<u8>().add(i).read() == 0),
                "{bytes}"
            );
            assert_eq!(larder_classes_dealloc(c, object), LARDER_OK);
            let status = larder_classes_alloc(c, bytes, &raw mut object, null_mut());
            assert_eq!(status, LARDER_OK);
            assert_eq!(larder_heap_dealloc_sized(a, object, bytes), LARDER_OK);
        }
        for align in [1, 8, 32, 64, 4096, 8192, 1 << 20] {
            let mut object = null_mut();
            let e = null_mut();
            let status = larder_heap_alloc_aligned(a, 100, align, &raw mut object, e);
            assert_eq!((status, object.addr() % align), (LARDER_OK, 0));
            if align > 128 {
                assert_eq!(larder_heap_dealloc_sized(a, object, 100), LARDER_SIZE);
            }
            assert_eq!(
                larder_heap_dealloc_aligned(a, object, 100, align),
                LARDER_OK
            );
            let status = larder_classes_alloc_aligned(c, 100, align, &raw mut object, e);
            assert_eq!((status, object.addr() % align), (LARDER_OK, 0));
            assert_eq!(
                larder_classes_dealloc_aligned(c, object, 100, align),
                LARDER_OK
            );
        }
        // Handles may go in any order.
        let object = alloc(a, 100);
        assert_eq!(larder_family_free(f), LARDER_OK);
        assert_eq!(larder_classes_free(c), LARDER_OK);
        assert_eq!(larder_heap_free(a), LARDER_OK);
        object.write_bytes(1, 100);
        assert_eq!(larder_heap_dealloc(b, object), LARDER_OK);
        assert_eq!(larder_heap_free(b), LARDER_OK);
    }
}

#[test]
fn realloc_keeps_the_contents_and_on_failure_the_object() {
    let f = family(0);
    // SAFETY: live pointers; objects are used within their bytes.
    unsafe {
        let c = made(|out, e| larder_classes_new(f, out, e));
        let h = made(|out, e| larder_heap_new(c, out, e));
        let sizes = [
            10, 16, 5, 100, 40_000, 41_000, 39_000, 100_000, 50, 0, 300_000, 20,
        ];
        for through_classes in [false, true] {
            let mut object = null_mut();
            let mut kept = 0;
            for bytes in sizes {
                let status = if through_classes {
                    larder_classes_realloc(c, &raw mut object, bytes, null_mut())
                } else {
                    larder_heap_realloc(h, &raw mut object, bytes, null_mut())
                };
                assert_eq!(status, LARDER_OK);
                let at = object.cast::<u8>();
                let same = (0..kept.min(bytes)).all(|i| at.add(i).read() == i as u8);
                assert!(same, "{bytes}");
                for i in 0..bytes {
                    at.add(i).write(i as u8);
                }
                kept = bytes;
                assert!(larder_heap_usable_bytes(h, object) >= bytes);
            }
            let before = object;
            refused(LARDER_EXHAUSTED, "more than there are", |e| {
                larder_heap_realloc(h, &raw mut object, usize::MAX, e)
            });
            assert_eq!((object, object.cast::<u8>().add(19).read()), (before, 19));
            assert_eq!(larder_heap_dealloc(h, object), LARDER_OK);
        }
        // One that has grown may be larger than its size says.
        for bytes in [50_000, 6 << 20] {
            let mut object = alloc(h, 40_000);
            let status = larder_heap_realloc(h, &raw mut object, bytes, null_mut());
            assert_eq!(status, LARDER_OK);
            assert_eq!(larder_heap_dealloc_sized(h, object, 32 << 10), LARDER_SIZE);
            assert_eq!(larder_heap_dealloc_sized(h, object, bytes), LARDER_OK);
        }
        // One that was made smaller may have stayed as it was.
        let mut object = alloc(h, 4 << 20);
        let before = object;
        let status = larder_heap_realloc(h, &raw mut object, 3 << 20, null_mut());
        assert_eq!((status, object), (LARDER_OK, before));
        assert_eq!(larder_heap_dealloc_sized(h, object, 2 << 20), LARDER_SIZE);
        assert_eq!(larder_heap_dealloc_sized(h, object, 3 << 20), LARDER_OK);
        // Aligned to more than its size needs: still an object of pages.
        let mut object = null_mut();
        larder_heap_alloc_aligned(h, 100, 1 << 16, &raw mut object, null_mut());
        assert_eq!(
            larder_heap_realloc(h, &raw mut object, 200, null_mut()),
            LARDER_OK
        );
        assert_eq!(larder_heap_dealloc_sized(h, object, 200), LARDER_OK);
        let mut stranger = (&raw mut object).cast();
        refused(LARDER_FOREIGN, "no object of this heap's classes", |e| {
            larder_heap_realloc(h, &raw mut stranger, 200, e)
        });
        assert_eq!(larder_heap_free(h), LARDER_OK);
        assert_eq!(larder_classes_free(c), LARDER_OK);
        assert_eq!(larder_family_free(f), LARDER_OK);
    }
}

#[test]
fn what_came_from_elsewhere_or_with_another_size_is_not_taken() {
    let f = family(0);
    // SAFETY: live pointers; the wrong ones are only compared.
    unsafe {
        let c = made(|out, e| larder_classes_new(f, out, e));
        let h = made(|out, e| larder_heap_new(c, out, e));
        let own = made(|out, e| larder_heap_new_private(f, out, e));
        let mut page = null_mut();
        let page_align = 1 << 16;
        larder_heap_alloc_aligned(own, 100, page_align, &raw mut page, null_mut());
        assert_eq!(
            larder_heap_dealloc_aligned(own, page, 100, page_align),
            LARDER_OK
        );
        let object = alloc(h, 100);
        assert_eq!(larder_heap_dealloc(own, object), LARDER_FOREIGN);
        assert_eq!(
            larder_heap_dealloc(h, (&raw const object).cast_mut().cast()),
            LARDER_FOREIGN
        );
        assert_eq!(larder_classes_dealloc(c, 8 as *mut c_void), LARDER_FOREIGN);
        assert_eq!(larder_heap_usable_bytes(own, object), 0);
        assert_eq!(larder_heap_dealloc_sized(h, object, 64), LARDER_SIZE);
        assert_eq!(larder_heap_dealloc_sized(h, object, 1 << 20), LARDER_SIZE);
        assert_eq!(
            larder_classes_dealloc_sized(c, object, usize::MAX),
            LARDER_EXHAUSTED
        );
        assert_eq!(
            larder_heap_dealloc_aligned(h, object, 100, 3),
            LARDER_ARGUMENT
        );
        let large = alloc(h, 6 << 20);
        assert_eq!(
            larder_heap_dealloc_sized(h, large, (6 << 20) + 1),
            LARDER_SIZE
        );
        assert_eq!(larder_heap_dealloc_sized(h, large, 100), LARDER_SIZE);
        assert_eq!(larder_heap_dealloc(h, large.byte_add(4096)), LARDER_FOREIGN);
        assert_eq!(
            larder_heap_dealloc_sized(h, large, (6 << 20) - 9),
            LARDER_OK
        );
        assert_eq!(
            larder_heap_dealloc(h, large),
            LARDER_FOREIGN,
            "given back already"
        );
        assert_eq!(larder_heap_dealloc_sized(h, object, 100), LARDER_OK);
        assert_eq!(larder_heap_free(own), LARDER_OK);
        assert_eq!(larder_heap_free(h), LARDER_OK);
        assert_eq!(larder_classes_free(c), LARDER_OK);
        assert_eq!(larder_family_free(f), LARDER_OK);
    }
}

#[test]
fn an_object_can_be_made_smaller_where_there_is_no_memory() {
    let f = family(4 << 20);
    // SAFETY: live pointers.
    unsafe {
        let c = made(|out, e| larder_classes_new(f, out, e));
        let h = made(|out, e| larder_heap_new(c, out, e));
        let mut objects = Vec::new();
        for bytes in [100_000, 1000] {
            let mut object = null_mut();
            while larder_heap_alloc(h, bytes, &raw mut object, null_mut()) == LARDER_OK {
                objects.push((object, bytes));
            }
        }
        for (i, (object, bytes)) in objects.iter_mut().enumerate() {
            let smaller = [60, 600, 40_000][i % 3].min(*bytes);
            assert_eq!(
                larder_heap_realloc(h, object, smaller, null_mut()),
                LARDER_OK
            );
            object.cast::<u8>().write_bytes(7, smaller);
            assert_eq!(larder_heap_dealloc_sized(h, *object, smaller), LARDER_OK);
        }
        assert_eq!(larder_heap_free(h), LARDER_OK);
        assert_eq!(larder_classes_free(c), LARDER_OK);
        assert_eq!(larder_family_free(f), LARDER_OK);
    }
}

#[test]
fn a_private_heap_ends_its_objects() {
    let f = family(64 << 20);
    let mut objects = vec![null_mut(); 10_000];
    // SAFETY: live pointers.
    unsafe {
        // Far more than the limit in all: each heap's memory must have come back.
        for _ in 0..30 {
            let h = made(|out, e| larder_heap_new_private(f, out, e));
            let e = null_mut();
            let status = larder_heap_alloc_many(h, 1000, objects.as_mut_ptr(), 10_000, e);
            assert_eq!(status, LARDER_OK);
            assert_eq!(larder_heap_free(h), LARDER_OK);
        }
        assert_eq!(larder_family_owner(f, objects[0]), 0);
        assert_eq!(larder_family_free(f), LARDER_OK);
    }
}

#[test]
fn many_at_once_are_all_or_none() {
    let f = family(0);
    let mut objects = vec![8 as *mut c_void; 1000];
    // SAFETY: live pointers.
    unsafe {
        let h = made(|out, e| larder_heap_new_private(f, out, e));
        assert_eq!(larder_heap_set_limit(h, 64 << 10), LARDER_OK);
        refused(LARDER_LIMIT, "of at most 65536 bytes", |e| {
            larder_heap_alloc_many(h, 100, objects.as_mut_ptr(), 1000, e)
        });
        assert!(objects.iter().all(|o| o.is_null()));
        let e = null_mut();
        assert_eq!(larder_heap_set_limit(h, 0), LARDER_OK);
        assert_eq!(
            larder_heap_alloc_many(h, 100, objects.as_mut_ptr(), 1000, e),
            LARDER_OK
        );
        let unique: std::collections::HashSet<_> = objects.iter().collect();
        assert_eq!(unique.len(), 1000);
        let good = objects[7];
        objects[7] = (&raw mut objects).cast();
        refused(LARDER_FOREIGN, "no object of this heap's classes", |e| {
            larder_heap_dealloc_many(h, objects.as_ptr(), 1000, e)
        });
        objects[7] = good;
        let charged = stats(h).charged_bytes - stats(h).stocked_bytes;
        assert_eq!(charged, 112 * 1000, "none of them was given back");
        assert_eq!(
            larder_heap_dealloc_many(h, objects.as_ptr(), 1000, e),
            LARDER_OK
        );
        assert_eq!(
            larder_heap_dealloc_many(h, [null_mut()].as_ptr(), 1, e),
            LARDER_OK
        );
        assert_eq!(stats(h).charged_bytes, stats(h).stocked_bytes);
        assert_eq!(larder_heap_trim(h), LARDER_OK);
        assert_eq!(stats(h).charged_bytes, 0);
        assert_eq!(larder_heap_free(h), LARDER_OK);
        assert_eq!(larder_family_free(f), LARDER_OK);
    }
}

/// What a warning sees and does.
struct Told {
    heap: *mut larder_heap,
    charged: Vec<u64>,
    freed: larder_status,
}

unsafe extern "C" fn told(stats: *const larder_heap_stats, user: *mut c_void) {
    // SAFETY: the test's own struct, used by one thread; the heap allows to be used here.
    unsafe {
        let told = &mut *user.cast::<Told>();
        told.charged.push((*stats).charged_bytes);
        let object = alloc(told.heap, 100_000);
        assert_eq!(larder_heap_dealloc(told.heap, object), LARDER_OK);
        told.freed = larder_heap_free(told.heap);
    }
}

#[test]
fn a_warning_comes_once_and_may_use_the_heap_but_not_end_it() {
    let f = family(0);
    // SAFETY: live pointers.
    unsafe {
        let h = made(|out, e| larder_heap_new_private(f, out, e));
        let mut state = Told {
            heap: h,
            charged: Vec::new(),
            freed: LARDER_OK,
        };
        let user = &raw mut state;
        let status = larder_heap_set_warning(h, 100 << 10, Some(told), user.cast(), null_mut());
        assert_eq!(status, LARDER_OK);
        let mut objects: Vec<_> = (0..30).map(|_| alloc(h, 10_000)).collect();
        assert_eq!((*user).charged.len(), 1);
        let charged = &(*user).charged;
        assert!(charged[0] > 100 << 10);
        assert_eq!((*user).freed, LARDER_BUSY);
        for object in objects.drain(..) {
            larder_heap_dealloc(h, object);
        }
        larder_heap_trim(h);
        let objects: Vec<_> = (0..30).map(|_| alloc(h, 10_000)).collect();
        assert_eq!((*user).charged.len(), 2, "it had fallen below");
        larder_heap_dealloc_many(h, objects.as_ptr(), 30, null_mut());
        larder_heap_trim(h);
        let status = larder_heap_set_warning(h, 0, None, null_mut(), null_mut());
        assert_eq!(status, LARDER_OK);
        let object = alloc(h, 1 << 20);
        assert_eq!((*user).charged.len(), 2, "nobody is told any more");
        assert_eq!(larder_heap_dealloc(h, object), LARDER_OK);
        assert_eq!(larder_heap_free(h), LARDER_OK);
        assert_eq!(larder_family_free(f), LARDER_OK);
    }
}

#[test]
fn the_numbers_can_be_read() {
    let f = family(0);
    // SAFETY: live pointers.
    unsafe {
        let h = made(|out, e| larder_heap_new_private(f, out, e));
        alloc(h, 100);
        let large = alloc(h, 6 << 20);
        let read = stats(h);
        assert_eq!(read.large_bytes, 6 << 20);
        assert_eq!(read.charged_bytes - read.stocked_bytes, (6 << 20) + 112);
        assert_eq!((read.limit_bytes, read.refills), (u64::MAX, 2));
        let told = json(|at, n, needed| larder_heap_stats_json(h, at, n, needed, null_mut()));
        assert_eq!(told["large_bytes"], 6 << 20);
        assert!(told["limit_bytes"].is_null());
        assert_eq!(told.as_object().unwrap().len(), 6);
        assert_eq!(larder_heap_dealloc(h, large), LARDER_OK);
        assert_eq!(larder_heap_free(h), LARDER_OK);
        assert_eq!(larder_family_free(f), LARDER_OK);
    }
}

#[test]
fn a_checked_object_becomes_smaller_although_every_allocation_fails() {
    const NAME: &str = "a_checked_object_becomes_smaller_although_every_allocation_fails";
    if role().is_none() {
        let ended = ended(command(NAME, "checked").env("LARDER_HEAP_DEBUG", "fail=1,fail-after=3"));
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.success(), "{ended:?}");
        assert!(!told.contains("larder: "), "{told}");
        return;
    }
    let f = family(64 << 20);
    // SAFETY: live pointers; each object is used within its bytes.
    unsafe {
        let c = made(|out, e| larder_classes_new(f, out, e));
        let h = made(|out, e| larder_heap_new(c, out, e));
        for (bytes, mut object) in [1000, 40_000, 100_000].map(|n| (n, alloc(h, n))) {
            for smaller in [bytes - 1, 100, 7] {
                let status = larder_heap_realloc(h, &raw mut object, smaller, null_mut());
                assert_eq!(status, LARDER_OK, "{bytes} to {smaller}");
                assert_eq!(larder_heap_usable_bytes(h, object), smaller);
                object.cast::<u8>().write_bytes(7, smaller);
            }
            refused(LARDER_MEMORY, "", |e| {
                larder_heap_realloc(h, &raw mut object, 8, e)
            });
            let status = larder_classes_realloc(c, &raw mut object, 6, null_mut());
            assert_eq!(status, LARDER_OK);
            // A contradiction would be told, and end the process.
            assert_eq!(larder_heap_dealloc_sized(h, object, 6), LARDER_OK);
        }
        assert_eq!(larder_heap_free(h), LARDER_OK);
        assert_eq!(larder_classes_free(c), LARDER_OK);
        assert_eq!(larder_family_free(f), LARDER_OK);
    }
}
