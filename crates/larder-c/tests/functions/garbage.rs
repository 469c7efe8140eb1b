//! Bad input over the C interface: every one is a status and none ends the process.

use core::ffi::{CStr, c_void};
use core::ptr::{null, null_mut};

use crate::process::{check, command, role};
use larder_c::larder_status::*;
use larder_c::*;

fn no_error() -> larder_error {
    larder_error {
        status: LARDER_OK,
        os_errno: 0,
        message: [0; LARDER_ERROR_BYTES],
    }
}

fn text(error: &larder_error) -> &str {
    // SAFETY: the message ends with a zero byte.
    unsafe { CStr::from_ptr(error.message.as_ptr()) }
        .to_str()
        .unwrap()
}

fn options() -> larder_pool_options {
    larder_pool_options {
        flags: LARDER_POOL_IGNORE_ENVIRONMENT,
        ..larder_pool_options::default()
    }
}

fn pool(options: &larder_pool_options) -> *mut larder_pool {
    let mut pool = null_mut();
    let mut error = no_error();
    // SAFETY: live pointers.
    let status = unsafe { larder_pool_new(options, &mut pool, &mut error) };
    assert_eq!(status, LARDER_OK, "{}", text(&error));
    pool
}

#[test]
fn null_is_an_error_wherever_it_means_nothing() {
    let mut error = no_error();
    let mut page = null_mut::<c_void>();
    let (mut run, mut handle) = (null_mut(), null_mut());
    let mut bytes = 0;
    // SAFETY: NULL is what is tested, everything else is live.
    unsafe {
        let e = &raw mut error;
        assert_eq!(larder_pool_new(null(), null_mut(), e), LARDER_NULL);
        assert_eq!(text(&error), "out is NULL");
        assert_eq!(larder_pool_options_init(null_mut()), LARDER_NULL);
        assert_eq!(larder_helper_options_init(null_mut()), LARDER_NULL);
        assert_eq!(larder_pool_free(null_mut()), LARDER_OK);
        assert_eq!(larder_run_free(null_mut()), LARDER_OK);
        assert_eq!(larder_page_handle_free(null_mut()), LARDER_OK);
        for get in [
            larder_pool_get,
            larder_pool_get_zeroed,
            larder_pool_get_zeroed_sparse,
        ] {
            assert_eq!(get(null(), &mut page, e), LARDER_NULL);
        }
        assert_eq!(text(&error), "pool is NULL");
        assert_eq!(larder_pool_put(null(), page), LARDER_NULL);
        assert_eq!(larder_pool_get_many(null(), &mut page, 1, e), LARDER_NULL);
        assert_eq!(larder_pool_put_many(null(), &page, 1, e), LARDER_NULL);
        assert_eq!(
            larder_pool_get_run(null(), 1, false, &mut run, e),
            LARDER_NULL
        );
        assert_eq!(larder_page_handle_new(null(), &mut handle, e), LARDER_NULL);
        assert_eq!(
            larder_page_handle_get(null_mut(), &mut page, e),
            LARDER_NULL
        );
        assert_eq!(
            larder_page_handle_get_zeroed(null_mut(), &mut page, e),
            LARDER_NULL
        );
        assert_eq!(larder_page_handle_put(null_mut(), page), LARDER_NULL);
        assert_eq!(larder_page_handle_len(null()), 0);
        assert!(larder_run_data(null_mut()).is_null());
        assert_eq!(larder_run_bytes(null()), 0);
        assert_eq!(larder_pool_trim(null(), &mut bytes), LARDER_NULL);
        assert_eq!(larder_pool_maintain(null(), &mut bytes), LARDER_NULL);
        assert_eq!(larder_pool_set_limit(null(), 0, e), LARDER_NULL);
        assert_eq!(larder_pool_set_cluster(null(), 0, e), LARDER_NULL);
        assert_eq!(larder_pool_cluster_pages(null()), 0);
        assert_eq!(larder_pool_page_size(null()), 0);
        assert_eq!(larder_pool_start_helper(null(), null(), e), LARDER_NULL);
        assert_eq!(larder_pool_stop_helper(null()), LARDER_NULL);
        let mut stats = larder_pool_stats::default();
        assert_eq!(larder_pool_stats_read(null(), &mut stats, e), LARDER_NULL);
        assert_eq!(
            larder_pool_stats_json(null(), null_mut(), 0, &mut bytes, e),
            LARDER_NULL
        );

        let p = pool(&options());
        assert_eq!(larder_pool_get(p, null_mut(), null_mut()), LARDER_NULL);
        assert_eq!(larder_pool_put(p, null_mut()), LARDER_NULL);
        assert_eq!(
            larder_pool_get_many(p, null_mut(), 1, null_mut()),
            LARDER_NULL
        );
        assert_eq!(
            larder_pool_get_many(p, null_mut(), 0, null_mut()),
            LARDER_OK
        );
        assert_eq!(
            larder_pool_stats_read(p, null_mut(), null_mut()),
            LARDER_NULL
        );
        assert_eq!(
            larder_pool_stats_json(p, null_mut(), 5, &mut bytes, null_mut()),
            LARDER_NULL
        );
        assert_eq!(larder_pool_trim(p, null_mut()), LARDER_OK);
        assert_eq!(larder_pool_free(p), LARDER_OK);
    }
}

#[test]
fn handles_of_another_kind_and_freed_ones_are_told() {
    let p = pool(&options());
    let mut error = no_error();
    let mut page = null_mut::<c_void>();
    let mut run = null_mut();
    // SAFETY: all of it is live memory; that it is of the wrong kind is what is tested.
    unsafe {
        assert_eq!(
            larder_pool_get_run(p, 1, true, &mut run, &mut error),
            LARDER_OK
        );
        assert_eq!(
            larder_pool_get(run.cast(), &mut page, &mut error),
            LARDER_HANDLE
        );
        assert_eq!(text(&error), "pool is no handle of this kind, or was freed");
        assert_eq!(larder_run_free(p.cast()), LARDER_HANDLE);
        assert!(larder_run_data(p.cast()).is_null());
        let mut zeroes = [0_u64; 64];
        assert_eq!(larder_pool_free(zeroes.as_mut_ptr().cast()), LARDER_HANDLE);
        let odd = zeroes.as_mut_ptr().cast::<u8>().add(1);
        assert_eq!(larder_pool_free(odd.cast()), LARDER_HANDLE);
        assert_eq!(larder_run_free(run), LARDER_OK);
        assert_eq!(larder_pool_free(p), LARDER_OK);
    }
}

#[test]
fn pages_that_are_none_of_the_pool_are_refused() {
    let (p, q) = (pool(&options()), pool(&options()));
    let mut page = null_mut::<c_void>();
    let mut handle = null_mut();
    let mut stack = 0_u64;
    // SAFETY: live pointers; the wrong ones are only compared.
    unsafe {
        assert_eq!(larder_pool_get(p, &mut page, null_mut()), LARDER_OK);
        assert_eq!(larder_pool_put(q, page), LARDER_FOREIGN);
        assert_eq!(larder_pool_put(p, page.byte_add(8)), LARDER_FOREIGN);
        assert_eq!(larder_pool_put(p, (&raw mut stack).cast()), LARDER_FOREIGN);
        assert_eq!(
            larder_page_handle_new(q, &mut handle, null_mut()),
            LARDER_OK
        );
        assert_eq!(larder_page_handle_put(handle, page), LARDER_FOREIGN);
        let mixed = [page, (&raw mut stack).cast()];
        assert_eq!(
            larder_pool_put_many(p, mixed.as_ptr(), 2, null_mut()),
            LARDER_FOREIGN
        );
        // None of them was put, so the page is still ours.
        assert_eq!(
            larder_pool_put_many(p, mixed.as_ptr(), 1, null_mut()),
            LARDER_OK
        );
        assert_eq!(larder_page_handle_free(handle), LARDER_OK);
        assert_eq!(larder_pool_free(q), LARDER_OK);
        assert_eq!(larder_pool_free(p), LARDER_OK);
    }
}

#[test]
fn numbers_that_make_no_sense_are_named() {
    let cases: [(larder_pool_options, &str); 8] = [
        (
            larder_pool_options {
                size: 3,
                ..options()
            },
            "options.size is 3;",
        ),
        (
            larder_pool_options {
                size: usize::MAX,
                ..options()
            },
            "options.size is 18446744073709551615;",
        ),
        (
            larder_pool_options {
                mode: 9,
                ..options()
            },
            "options.mode is 9, which is no mode",
        ),
        (
            larder_pool_options {
                flags: 1 << 20,
                ..options()
            },
            "options.flags is 1048576,",
        ),
        (
            larder_pool_options {
                cluster_pages: usize::MAX,
                ..options()
            },
            "cluster size '18446744073709551615'",
        ),
        (
            larder_pool_options {
                limit_bytes: 5,
                ..options()
            },
            "a limit of 5 bytes",
        ),
        (
            larder_pool_options {
                reserve_bytes: 5,
                ..options()
            },
            "a reservation of 5 bytes",
        ),
        (
            larder_pool_options {
                magazine_pages: 9,
                magazine_most_pages: 8,
                ..options()
            },
            "options: magazines of 8 were asked for",
        ),
    ];
    for (options, says) in cases {
        let (mut out, mut error) = (null_mut(), no_error());
        // SAFETY: live pointers.
        let status = unsafe { larder_pool_new(&options, &mut out, &mut error) };
        assert_eq!(status, LARDER_ARGUMENT, "{says}");
        assert!(out.is_null());
        assert_eq!(error.status, status);
        assert!(text(&error).starts_with(says), "{}", text(&error));
    }
    let p = pool(&options());
    let mut error = no_error();
    // SAFETY: live pointers.
    unsafe {
        assert_eq!(larder_pool_set_limit(p, 1, &mut error), LARDER_ARGUMENT);
        assert_eq!(
            larder_pool_set_cluster(p, usize::MAX, &mut error),
            LARDER_ARGUMENT
        );
        let mut run = null_mut();
        assert_eq!(
            larder_pool_get_run(p, 0, false, &mut run, &mut error),
            LARDER_ARGUMENT
        );
        assert_ne!(
            larder_pool_get_run(p, usize::MAX, false, &mut run, &mut error),
            LARDER_OK
        );
        assert!(run.is_null());
        for cpu_budget in [0.0, -1.0, 1.1, f64::NAN, f64::INFINITY] {
            let options = larder_helper_options {
                cpu_budget,
                ..larder_helper_options::default()
            };
            assert_eq!(
                larder_pool_start_helper(p, &options, &mut error),
                LARDER_ARGUMENT
            );
        }
        let never = larder_helper_options {
            interval_ms: 0,
            ..larder_helper_options::default()
        };
        assert_eq!(
            larder_pool_start_helper(p, &never, &mut error),
            LARDER_ARGUMENT
        );
        assert_eq!(larder_pool_free(p), LARDER_OK);
    }
}

#[test]
fn all_or_none_when_the_limit_is_reached() {
    let p = pool(&larder_pool_options {
        limit_bytes: 64 * 4096,
        ..options()
    });
    let mut pages = [core::ptr::without_provenance_mut::<c_void>(1); 100];
    let mut error = no_error();
    // SAFETY: live pointers, room for 100.
    unsafe {
        assert_eq!(
            larder_pool_get_many(p, pages.as_mut_ptr(), 100, &mut error),
            LARDER_LIMIT
        );
        assert!(pages.iter().all(|p| p.is_null()));
        assert!(
            text(&error).contains("limit of 262144 bytes"),
            "{}",
            text(&error)
        );
        assert_eq!(
            larder_pool_get_many(p, pages.as_mut_ptr(), 64, &mut error),
            LARDER_OK
        );
        let mut more = null_mut();
        assert_eq!(larder_pool_get(p, &mut more, &mut error), LARDER_LIMIT);
        assert!(more.is_null());
        assert_eq!(larder_pool_set_limit(p, 0, &mut error), LARDER_OK);
        assert_eq!(larder_pool_get(p, &mut more, &mut error), LARDER_OK);
        assert_eq!(larder_pool_put(p, more), LARDER_OK);
        assert_eq!(
            larder_pool_put_many(p, pages.as_ptr(), 64, &mut error),
            LARDER_OK
        );
        assert_eq!(larder_pool_free(p), LARDER_OK);
    }
}

#[test]
fn statistics_fit_older_and_newer_programs() {
    let p = pool(&larder_pool_options {
        limit_bytes: 1 << 20,
        ..options()
    });
    let mut error = no_error();
    // SAFETY: live pointers and buffers of the sizes that are said.
    unsafe {
        let mut page = null_mut();
        assert_eq!(larder_pool_get(p, &mut page, &mut error), LARDER_OK);
        let mut stats = larder_pool_stats {
            size: size_of::<larder_pool_stats>(),
            ..Default::default()
        };
        assert_eq!(larder_pool_stats_read(p, &mut stats, &mut error), LARDER_OK);
        assert_eq!(stats.limit_bytes, 1 << 20);
        assert!(
            stats.held_bytes >= 4096 && stats.out_bytes >= 4096,
            "{stats:?}"
        );
        // An old program knows two numbers only.
        let mut old = larder_pool_stats {
            size: 24,
            held_bytes: 77,
            ..Default::default()
        };
        assert_eq!(larder_pool_stats_read(p, &mut old, &mut error), LARDER_OK);
        assert_eq!((old.size, old.held_bytes), (24, 77));
        let mut empty = larder_pool_stats::default();
        assert_eq!(
            larder_pool_stats_read(p, &mut empty, &mut error),
            LARDER_ARGUMENT
        );

        let mut needed = 0;
        assert_eq!(
            larder_pool_stats_json(p, null_mut(), 0, &mut needed, &mut error),
            LARDER_BUFFER
        );
        let mut small = [1; 8];
        assert_eq!(
            larder_pool_stats_json(p, small.as_mut_ptr(), 8, null_mut(), &mut error),
            LARDER_BUFFER
        );
        assert_eq!(CStr::from_ptr(small.as_ptr()).to_bytes(), b"{\"schem");
        let mut whole = vec![1; needed];
        assert_eq!(
            larder_pool_stats_json(p, whole.as_mut_ptr(), needed, null_mut(), &mut error),
            LARDER_OK
        );
        let json: serde_json::Value =
            serde_json::from_slice(CStr::from_ptr(whole.as_ptr()).to_bytes()).unwrap();
        assert_eq!(json["limit_bytes"], 1 << 20);
        assert_eq!(json.as_object().unwrap().len(), 20);
        assert_eq!(larder_pool_set_limit(p, 0, &mut error), LARDER_OK);
        let mut text = vec![0; 2 * needed];
        assert_eq!(
            larder_pool_stats_json(p, text.as_mut_ptr(), 2 * needed, null_mut(), &mut error),
            LARDER_OK
        );
        let json: serde_json::Value =
            serde_json::from_slice(CStr::from_ptr(text.as_ptr()).to_bytes()).unwrap();
        assert!(json["limit_bytes"].is_null(), "{json}");
        assert_eq!(larder_pool_put(p, page), LARDER_OK);
        assert_eq!(larder_pool_free(p), LARDER_OK);
    }
}

#[test]
fn the_version_and_the_mode_are_told() {
    // SAFETY: static strings and a buffer of its size.
    unsafe {
        assert_eq!(
            CStr::from_ptr(larder_version()).to_str().unwrap(),
            env!("CARGO_PKG_VERSION")
        );
        let mut mode = [0; 300];
        assert_eq!(
            larder_mode(mode.as_mut_ptr(), mode.len(), null_mut(), null_mut()),
            LARDER_OK
        );
        let mode = CStr::from_ptr(mode.as_ptr()).to_str().unwrap();
        assert!(
            mode.starts_with("per CPU") || mode.starts_with("locked"),
            "{mode}"
        );
    }
}

/// A thread that cannot be had: the error has the number of the system's.
#[test]
fn a_helper_without_memory_for_its_stack_says_why() {
    const NAME: &str = "a_helper_without_memory_for_its_stack_says_why";
    const RLIMIT_AS: i32 = 9;
    const EAGAIN: i32 = 11;
    unsafe extern "C" {
        fn setrlimit(resource: i32, limits: *const [u64; 2]) -> i32;
    }
    if role().is_none() {
        // No stack that is left of another thread shall do.
        check(command(NAME, "helper").env("RUST_MIN_STACK", (64 << 20).to_string()));
        return;
    }
    let pool = pool(&options());
    let mut error = no_error();
    // SAFETY: live pointers; a limit on the stack that leaves no room for another thread's.
    unsafe {
        assert_eq!(setrlimit(RLIMIT_AS, &[1 << 20, u64::MAX]), 0);
        let status = larder_pool_start_helper(pool, null(), &raw mut error);
        assert_eq!(setrlimit(RLIMIT_AS, &[u64::MAX, u64::MAX]), 0);
        assert_eq!((status, error.os_errno), (LARDER_SYSTEM, EAGAIN));
        assert!(text(&error).contains("helper"), "{}", text(&error));
        assert_eq!(larder_pool_free(pool), LARDER_OK);
    }
}
