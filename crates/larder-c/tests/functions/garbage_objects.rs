//! Bad input to families, caches, classes and heaps: every one is a status and none ends the process.

use core::ffi::c_void;
use core::ptr::{null, null_mut};

use crate::c::{family, made, refused};
use larder_c::larder_status::*;
use larder_c::*;

/// What no handle is: NULL, memory of something else, and memory that is not aligned.
fn wrong<T>(zeroes: &mut [u64; 16]) -> [(*mut T, larder_status); 3] {
    let garbage = zeroes.as_mut_ptr();
    [
        (null_mut(), LARDER_NULL),
        (garbage.cast(), LARDER_HANDLE),
        (garbage.wrapping_byte_add(1).cast(), LARDER_HANDLE),
    ]
}

#[track_caller]
fn all(answers: &[larder_status], expected: larder_status) {
    for (i, answer) in answers.iter().enumerate() {
        assert_eq!(*answer, expected, "number {i}");
    }
}

#[test]
fn what_is_no_family_and_no_cache_is_told() {
    let (mut out, mut pool, mut object) = (null_mut(), null_mut(), null_mut::<c_void>());
    let mut handle = null_mut();
    let e = null_mut();
    let mut zeroes = [0; 16];
    // SAFETY: NULL and live memory of the wrong kind are what is tested.
    unsafe {
        for (f, status) in wrong::<larder_family>(&mut zeroes) {
            let mut stats = larder_family_stats {
                size: 40,
                ..Default::default()
            };
            all(
                &[
                    larder_family_pool(f, &raw mut pool, e),
                    larder_family_maintain(f, null_mut()),
                    larder_family_trim(f, null_mut()),
                    larder_family_start_helper(f, 1, e),
                    larder_family_stop_helper(f),
                    larder_family_get_large(f, 1, 0, false, &raw mut object, e),
                    larder_family_put_large(f, object),
                    larder_family_stats_read(f, &raw mut stats, e),
                    larder_family_stats_json(f, null_mut(), 0, null_mut(), e),
                    larder_cache_new(f, 8, 0, null(), &raw mut out, e),
                ],
                status,
            );
            assert_eq!(larder_family_owner(f, null()), 0);
            assert_eq!(larder_family_large_bytes(f, null()), 0);
        }
        for (c, status) in wrong::<larder_cache>(&mut zeroes) {
            let mut stats = larder_cache_stats {
                size: 40,
                ..Default::default()
            };
            all(
                &[
                    larder_cache_get(c, &raw mut object, e),
                    larder_cache_put(c, object),
                    larder_cache_put_checked(c, object, e),
                    larder_cache_get_many(c, &raw mut object, 1, e),
                    larder_cache_put_many(c, &raw const object, 1, e),
                    larder_cache_maintain(c, null_mut()),
                    larder_cache_trim(c, null_mut()),
                    larder_cache_stats_read(c, &raw mut stats, e),
                    larder_cache_stats_json(c, null_mut(), 0, null_mut(), e),
                    larder_cache_handle_new(c, &raw mut handle, e),
                ],
                status,
            );
            assert_eq!(larder_cache_number(c), 0);
            assert_eq!(larder_cache_stride(c), 0);
        }
        for (h, status) in wrong::<larder_cache_handle>(&mut zeroes) {
            all(
                &[
                    larder_cache_handle_get(h, &raw mut object, e),
                    larder_cache_handle_put(h, object),
                    larder_cache_handle_flush(h),
                ],
                status,
            );
            assert_eq!(larder_cache_handle_len(h), 0);
        }
        assert_eq!(larder_family_options_init(null_mut()), LARDER_NULL);
        assert_eq!(larder_cache_options_init(null_mut()), LARDER_NULL);
        assert_eq!(larder_family_free(null_mut()), LARDER_OK);
        assert_eq!(larder_cache_free(null_mut()), LARDER_OK);
        assert_eq!(larder_cache_destroy(null_mut(), e), LARDER_OK);
        assert_eq!(larder_cache_handle_free(null_mut()), LARDER_OK);
        refused(LARDER_NULL, "out is NULL", |e| {
            larder_family_new(null(), null_mut(), e)
        });

        let f = family(0);
        let c = made(|out, e| larder_cache_new(f, 8, 0, null(), out, e));
        let h = made(|out, e| larder_cache_handle_new(c, out, e));
        refused(LARDER_NULL, "out is NULL", |e| {
            larder_family_pool(f, null_mut(), e)
        });
        refused(LARDER_NULL, "out is NULL", |e| {
            larder_cache_new(f, 8, 0, null(), null_mut(), e)
        });
        refused(LARDER_NULL, "out is NULL", |e| {
            larder_cache_handle_new(c, null_mut(), e)
        });
        refused(LARDER_NULL, "object is NULL", |e| {
            larder_cache_get(c, null_mut(), e)
        });
        refused(LARDER_NULL, "object is NULL", |e| {
            larder_cache_handle_get(h, null_mut(), e)
        });
        refused(LARDER_NULL, "object is NULL", |e| {
            larder_cache_put_checked(c, null_mut(), e)
        });
        refused(LARDER_NULL, "objects is NULL", |e| {
            larder_cache_get_many(c, null_mut(), 1, e)
        });
        refused(LARDER_NULL, "objects is NULL", |e| {
            larder_cache_put_many(c, null(), 1, e)
        });
        refused(LARDER_NULL, "object is NULL", |e| {
            larder_family_get_large(f, 1, 0, false, null_mut(), e)
        });
        refused(LARDER_NULL, "stats is NULL", |e| {
            larder_cache_stats_read(c, null_mut(), e)
        });
        refused(LARDER_NULL, "buffer is NULL", |e| {
            larder_cache_stats_json(c, null_mut(), 9, null_mut(), e)
        });
        refused(
            LARDER_ARGUMENT,
            "set it to sizeof(larder_cache_stats)",
            |e| larder_cache_stats_read(c, &mut larder_cache_stats::default(), e),
        );
        assert_eq!(larder_cache_put(c, null_mut()), LARDER_NULL);
        assert_eq!(larder_cache_handle_put(h, null_mut()), LARDER_NULL);
        assert_eq!(larder_family_put_large(f, null_mut()), LARDER_NULL);
        // Each kind as each other one.
        assert_eq!(larder_family_free(c.cast()), LARDER_HANDLE);
        assert_eq!(larder_cache_free(h.cast()), LARDER_HANDLE);
        assert_eq!(larder_cache_destroy(f.cast(), e), LARDER_HANDLE);
        assert_eq!(larder_cache_handle_free(f.cast()), LARDER_HANDLE);
        assert_eq!(larder_cache_handle_free(h), LARDER_OK);
        assert_eq!(larder_cache_free(c), LARDER_OK);
        assert_eq!(larder_family_free(f), LARDER_OK);
    }
}

#[test]
fn what_is_no_classes_and_no_heap_is_told() {
    let (mut out, mut heap, mut object) = (null_mut(), null_mut(), null_mut::<c_void>());
    let e = null_mut();
    let mut zeroes = [0; 16];
    // SAFETY: NULL and live memory of the wrong kind are what is tested.
    unsafe {
        for (f, status) in wrong::<larder_family>(&mut zeroes) {
            assert_eq!(larder_classes_new(f, &raw mut out, e), status);
            assert_eq!(larder_heap_new_private(f, &raw mut heap, e), status);
        }
        for (c, status) in wrong::<larder_classes>(&mut zeroes) {
            all(
                &[
                    larder_heap_new(c, &raw mut heap, e),
                    larder_classes_alloc(c, 1, &raw mut object, e),
                    larder_classes_alloc_zeroed(c, 1, &raw mut object, e),
                    larder_classes_alloc_aligned(c, 1, 1, &raw mut object, e),
                    larder_classes_realloc(c, &raw mut object, 1, e),
                    larder_classes_dealloc(c, null_mut()),
                    larder_classes_dealloc_sized(c, null_mut(), 1),
                    larder_classes_dealloc_aligned(c, null_mut(), 1, 1),
                ],
                status,
            );
            assert_eq!(larder_classes_usable_bytes(c, null()), 0);
        }
        for (h, status) in wrong::<larder_heap>(&mut zeroes) {
            let mut stats = larder_heap_stats {
                size: 48,
                ..Default::default()
            };
            all(
                &[
                    larder_heap_alloc(h, 1, &raw mut object, e),
                    larder_heap_alloc_zeroed(h, 1, &raw mut object, e),
                    larder_heap_alloc_aligned(h, 1, 1, &raw mut object, e),
                    larder_heap_alloc_many(h, 1, &raw mut object, 1, e),
                    larder_heap_realloc(h, &raw mut object, 1, e),
                    larder_heap_dealloc(h, null_mut()),
                    larder_heap_dealloc_sized(h, null_mut(), 1),
                    larder_heap_dealloc_aligned(h, null_mut(), 1, 1),
                    larder_heap_dealloc_many(h, &raw const object, 1, e),
                    larder_heap_set_limit(h, 1),
                    larder_heap_set_warning(h, 1, None, null_mut(), e),
                    larder_heap_trim(h),
                    larder_heap_stats_read(h, &raw mut stats, e),
                    larder_heap_stats_json(h, null_mut(), 0, null_mut(), e),
                ],
                status,
            );
            assert_eq!(larder_heap_usable_bytes(h, null()), 0);
        }
        assert_eq!(larder_classes_free(null_mut()), LARDER_OK);
        assert_eq!(larder_heap_free(null_mut()), LARDER_OK);

        let f = family(0);
        let c = made(|out, e| larder_classes_new(f, out, e));
        let h = made(|out, e| larder_heap_new(c, out, e));
        refused(LARDER_NULL, "out is NULL", |e| {
            larder_classes_new(f, null_mut(), e)
        });
        refused(LARDER_NULL, "out is NULL", |e| {
            larder_heap_new(c, null_mut(), e)
        });
        refused(LARDER_NULL, "out is NULL", |e| {
            larder_heap_new_private(f, null_mut(), e)
        });
        for alloc in [larder_heap_alloc, larder_heap_alloc_zeroed] {
            refused(LARDER_NULL, "object is NULL", |e| {
                alloc(h, 1, null_mut(), e)
            });
        }
        refused(LARDER_NULL, "object is NULL", |e| {
            larder_classes_alloc_aligned(c, 1, 1, null_mut(), e)
        });
        refused(LARDER_NULL, "object is NULL", |e| {
            larder_heap_realloc(h, null_mut(), 1, e)
        });
        refused(LARDER_NULL, "objects is NULL", |e| {
            larder_heap_alloc_many(h, 1, null_mut(), 1, e)
        });
        refused(LARDER_NULL, "objects is NULL", |e| {
            larder_heap_dealloc_many(h, null(), 1, e)
        });
        assert_eq!(
            larder_heap_dealloc(h, null_mut()),
            LARDER_OK,
            "as with free"
        );
        assert_eq!(larder_classes_dealloc_sized(c, null_mut(), 7), LARDER_OK);
        assert_eq!(larder_heap_free(c.cast()), LARDER_HANDLE);
        assert_eq!(larder_classes_free(h.cast()), LARDER_HANDLE);
        assert_eq!(larder_heap_free(h), LARDER_OK);
        assert_eq!(larder_classes_free(c), LARDER_OK);
        assert_eq!(larder_family_free(f), LARDER_OK);
    }
}

#[test]
fn numbers_that_make_no_sense_are_named() {
    let f = family(0);
    let good = larder_cache_options::default();
    let bytes = [0xff_u8, 0];
    let cases: [(usize, usize, larder_cache_options, &str); 13] = [
        (0, 0, good, "objects of 0 bytes"),
        (usize::MAX, 1, good, "objects of 18446744073709551615 bytes"),
        ((4 << 20) + 1, 0, good, "objects of 4194305 bytes"),
        (64, 3, good, "align is 3"),
        (64, 8192, good, "aligned to 8192"),
        (64, 1 << 63, good, "aligned to at most a page"),
        (
            64,
            0,
            larder_cache_options { size: 0, ..good },
            "options.size is 0",
        ),
        (
            64,
            0,
            larder_cache_options { flags: 4, ..good },
            "options.flags is 4",
        ),
        (
            64,
            0,
            larder_cache_options {
                reserved: 4,
                ..good
            },
            "options.reserved is 4",
        ),
        (
            64,
            0,
            larder_cache_options {
                slab_pages: 65,
                ..good
            },
            "options.slab_pages is 65",
        ),
        (
            64,
            0,
            larder_cache_options {
                magazine_objects: 999,
                ..good
            },
            "magazines of 999",
        ),
        (
            64,
            0,
            larder_cache_options {
                magazine_most_objects: 999,
                ..good
            },
            "magazines of 999",
        ),
        (
            64,
            0,
            larder_cache_options {
                name: bytes.as_ptr().cast(),
                ..good
            },
            "options.name is no",
        ),
    ];
    // SAFETY: live pointers.
    unsafe {
        for (bytes, align, options, says) in cases {
            let mut out = core::ptr::without_provenance_mut(1);
            refused(LARDER_ARGUMENT, says, |e| {
                larder_cache_new(f, bytes, align, &raw const options, &raw mut out, e)
            });
            assert!(out.is_null());
        }
        let good = larder_family_options::default();
        let pages = larder_pool_options {
            limit_bytes: 5,
            ..Default::default()
        };
        let cases = [
            (
                larder_family_options { size: 7, ..good },
                "options.size is 7",
            ),
            (
                larder_family_options { mode: 7, ..good },
                "options.mode is 7",
            ),
            (
                larder_family_options { flags: 7, ..good },
                "options.flags is 7",
            ),
            (
                larder_family_options {
                    pages: &raw const pages,
                    ..good
                },
                "a limit of 5 bytes",
            ),
        ];
        for (options, says) in cases {
            let mut out = core::ptr::without_provenance_mut(1);
            refused(LARDER_ARGUMENT, says, |e| {
                larder_family_new(&raw const options, &raw mut out, e)
            });
            assert!(out.is_null());
        }
        let mut large = null_mut();
        let mut large = |status, bytes, align, says| {
            refused(status, says, |e| {
                larder_family_get_large(f, bytes, align, true, &raw mut large, e)
            });
            assert!(large.is_null());
        };
        large(LARDER_ARGUMENT, 0, 0, "bytes is 0");
        large(LARDER_ARGUMENT, 1, 5, "align is 5");
        large(LARDER_EXHAUSTED, usize::MAX, 0, "reserve more");
        large(LARDER_EXHAUSTED, 1, 1 << 63, "reserve more");

        let h = made(|out, e| larder_heap_new_private(f, out, e));
        let mut object = null_mut();
        refused(LARDER_EXHAUSTED, "more than there are addresses", |e| {
            larder_heap_alloc(h, usize::MAX, &raw mut object, e)
        });
        refused(LARDER_EXHAUSTED, "reserve more", |e| {
            larder_heap_alloc(h, isize::MAX as usize - 15, &raw mut object, e)
        });
        refused(LARDER_ARGUMENT, "align is 24", |e| {
            larder_heap_alloc_aligned(h, 1, 24, &raw mut object, e)
        });
        refused(LARDER_EXHAUSTED, "", |e| {
            larder_heap_alloc_aligned(h, 1, 1 << 62, &raw mut object, e)
        });
        assert_eq!(larder_heap_free(h), LARDER_OK);
        assert_eq!(larder_family_free(f), LARDER_OK);
    }
}
