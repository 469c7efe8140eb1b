//! Bad input to arenas: every one is a status and none ends the process.

use core::ffi::c_void;
use core::ptr::{null, null_mut};

use crate::c::{made, refused};
use larder_c::larder_status::*;
use larder_c::*;

fn arena(options: &larder_arena_options) -> *mut larder_arena {
    // SAFETY: live options.
    made(|out, error| unsafe { larder_arena_new(options, out, error) })
}

fn ids(units: u64) -> larder_arena_options {
    larder_arena_options {
        span_units: units,
        ..larder_arena_options::default()
    }
}

unsafe extern "C" fn give(_: u64, _: u64, _: *mut larder_span, _: *mut c_void) -> bool {
    false
}

unsafe extern "C" fn take_back(_: *const larder_span, _: *mut c_void) {}

#[test]
fn options_that_make_no_sense_are_named() {
    let a = arena(&ids(1));
    let good = ids(8);
    let bytes = [0xff_u8, 0];
    let cases: [(larder_arena_options, &str); 14] = [
        (
            larder_arena_options { size: 1, ..good },
            "options.size is 1",
        ),
        (
            larder_arena_options {
                name: bytes.as_ptr().cast(),
                ..good
            },
            "options.name is no UTF-8",
        ),
        (
            larder_arena_options { quantum: 3, ..good },
            "options.quantum is 3",
        ),
        (
            larder_arena_options {
                quantum_max: 17,
                ..good
            },
            "options.quantum_max is 17",
        ),
        (
            larder_arena_options {
                quantum_max: u64::MAX,
                ..good
            },
            "options.quantum_max is",
        ),
        (
            larder_arena_options {
                span_addr: u64::MAX,
                ..good
            },
            "options.span_units is 8",
        ),
        (
            larder_arena_options {
                quantum: 16,
                ..good
            },
            "options.span_units is 8",
        ),
        (
            larder_arena_options {
                magazine_segments: 256,
                ..good
            },
            "magazines of 256",
        ),
        (
            larder_arena_options {
                magazine_segments: 9,
                magazine_most_segments: 8,
                ..good
            },
            "magazines of 8",
        ),
        (larder_arena_options { fit: 9, ..good }, "options.fit is 9"),
        (
            larder_arena_options { mode: 2, ..good },
            "options.mode is 2",
        ),
        (
            larder_arena_options {
                release: Some(take_back),
                ..good
            },
            "no import function",
        ),
        (
            larder_arena_options {
                source: a,
                import: Some(give),
                ..good
            },
            "a source and an import function",
        ),
        (
            larder_arena_options { size: 5000, ..good },
            "options.size is 5000",
        ),
    ];
    for (options, says) in cases {
        let mut out = core::ptr::without_provenance_mut(1);
        // SAFETY: live pointers.
        refused(LARDER_ARGUMENT, says, |e| unsafe {
            larder_arena_new(&raw const options, &raw mut out, e)
        });
        assert!(out.is_null());
    }
    let mut out = null_mut();
    let mut zeroes = [0_u64; 16];
    // SAFETY: live memory; that it is no arena is what is tested.
    unsafe {
        let small = larder_arena_options {
            limit_units: 7,
            ..good
        };
        refused(LARDER_LIMIT, "more than options.limit_units", |e| {
            larder_arena_new(&raw const small, &raw mut out, e)
        });
        let wrong = larder_arena_options {
            source: zeroes.as_mut_ptr().cast(),
            ..good
        };
        refused(LARDER_HANDLE, "arena is no handle", |e| {
            larder_arena_new(&raw const wrong, &raw mut out, e)
        });
        assert_eq!(larder_arena_free(a), LARDER_OK);
    }
}

#[test]
fn null_and_other_kinds_are_told() {
    let mut zeroes = [0_u64; 16];
    let a = arena(&ids(10));
    // SAFETY: NULL and live memory of the wrong kind are what is tested.
    unsafe {
        assert_eq!(larder_arena_options_init(null_mut()), LARDER_NULL);
        assert_eq!(larder_arena_request_init(null_mut()), LARDER_NULL);
        assert_eq!(larder_arena_free(null_mut()), LARDER_OK);
        assert_eq!(larder_arena_destroy(null_mut(), null_mut()), LARDER_OK);
        assert_eq!(larder_arena_handle_free(null_mut()), LARDER_OK);
        let h = made(|out, e| larder_arena_handle_new(a, out, e));
        let garbage: *mut larder_arena = zeroes.as_mut_ptr().cast();
        for (arena, status) in [
            (null_mut(), LARDER_NULL),
            (garbage, LARDER_HANDLE),
            (h.cast(), LARDER_HANDLE),
        ] {
            let (mut addr, mut out) = (0, null_mut());
            let request = larder_arena_request {
                units: 1,
                ..Default::default()
            };
            let mut stats = larder_arena_stats {
                size: 200,
                ..Default::default()
            };
            let e = null_mut();
            let answers = [
                larder_arena_add(arena, 0, 1, e),
                larder_arena_alloc(arena, 1, &raw mut addr, e),
                larder_arena_xalloc(arena, &raw const request, &raw mut addr, e),
                larder_arena_dealloc(arena, 0, 1, e),
                larder_arena_set_limit(arena, 0),
                larder_arena_maintain(arena, null_mut()),
                larder_arena_trim(arena, null_mut()),
                larder_arena_audit(arena, e),
                larder_arena_walk(arena, None, null_mut(), e),
                larder_arena_stats_read(arena, &raw mut stats, e),
                larder_arena_stats_json(arena, null_mut(), 0, null_mut(), e),
                larder_arena_handle_new(arena, &raw mut out, e),
                larder_arena_handle_alloc(arena.cast::<u64>().cast(), 1, &raw mut addr, e),
                larder_arena_handle_dealloc(arena.cast::<u64>().cast(), 1, 1, e),
            ];
            for (i, answer) in answers.into_iter().enumerate() {
                // What is a handle is one to the last two.
                let expected = if arena.cast() == h && i >= 12 {
                    continue;
                } else {
                    status
                };
                assert_eq!(answer, expected, "{i}");
            }
            assert_eq!(larder_arena_in_use(arena) + larder_arena_quantum(arena), 0);
            assert!(!larder_arena_contains(arena, 0));
        }
        refused(LARDER_NULL, "addr is NULL", |e| {
            larder_arena_alloc(a, 1, null_mut(), e)
        });
        refused(LARDER_NULL, "addr is NULL", |e| {
            larder_arena_handle_alloc(h, 1, null_mut(), e)
        });
        refused(LARDER_NULL, "request is NULL", |e| {
            larder_arena_xalloc(a, null(), null_mut(), e)
        });
        refused(LARDER_NULL, "stats is NULL", |e| {
            larder_arena_stats_read(a, null_mut(), e)
        });
        refused(LARDER_NULL, "out is NULL", |e| {
            larder_arena_new(null(), null_mut(), e)
        });
        refused(LARDER_ARGUMENT, "a size of 0", |e| {
            let mut addr = 0;
            larder_arena_alloc(a, 0, &raw mut addr, e)
        });
        assert_eq!(larder_arena_handle_free(h), LARDER_OK);
        assert_eq!(larder_arena_handle_free(a.cast()), LARDER_HANDLE);
        assert_eq!(larder_arena_free(a), LARDER_OK);
        assert_eq!(larder_arena_free(garbage), LARDER_HANDLE);
        assert_eq!(larder_arena_destroy(garbage, null_mut()), LARDER_HANDLE);
    }
}
