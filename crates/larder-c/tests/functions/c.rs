//! What the tests of the C functions have in common.

#![allow(dead_code)] // Not every test file needs all of it.

use core::ffi::CStr;

use larder_c::larder_status::*;
use larder_c::*;

pub(crate) fn no_error() -> larder_error {
    larder_error {
        status: LARDER_OK,
        os_errno: 0,
        message: [0; LARDER_ERROR_BYTES],
    }
}

pub(crate) fn text(error: &larder_error) -> &str {
    // SAFETY: the message ends with a zero byte.
    unsafe { CStr::from_ptr(error.message.as_ptr()) }
        .to_str()
        .unwrap()
}

/// Calls a function that makes a handle and must succeed.
pub(crate) fn made<T>(
    make: impl FnOnce(*mut *mut T, *mut larder_error) -> larder_status,
) -> *mut T {
    let (mut out, mut error) = (core::ptr::null_mut(), no_error());
    let status = make(&raw mut out, &raw mut error);
    assert_eq!(status, LARDER_OK, "{}", text(&error));
    assert!(!out.is_null());
    out
}

/// Calls a function that must fail with this status and say this.
#[track_caller]
pub(crate) fn refused(
    status: larder_status,
    says: &str,
    call: impl FnOnce(*mut larder_error) -> larder_status,
) {
    let mut error = no_error();
    assert_eq!(call(&raw mut error), status, "{}", text(&error));
    assert_eq!(error.status, status);
    assert!(
        text(&error).contains(says),
        "'{says}' is not in: {}",
        text(&error)
    );
}

/// A JSON text that a function writes.
pub(crate) fn json(
    write: impl Fn(*mut core::ffi::c_char, usize, *mut usize) -> larder_status,
) -> serde_json::Value {
    let mut needed = 0;
    assert_eq!(
        write(core::ptr::null_mut(), 0, &raw mut needed),
        LARDER_BUFFER
    );
    let mut buffer = vec![1; needed];
    assert_eq!(
        write(buffer.as_mut_ptr(), needed, core::ptr::null_mut()),
        LARDER_OK
    );
    // SAFETY: the function wrote a zero at its end.
    let text = unsafe { CStr::from_ptr(buffer.as_ptr()) };
    assert_eq!(text.to_bytes().len() + 1, needed);
    serde_json::from_slice(text.to_bytes()).unwrap()
}

/// A family that looks at no environment, with this limit on its pages.
pub(crate) fn family(limit_bytes: usize) -> *mut larder_family {
    let pages = larder_pool_options {
        flags: LARDER_POOL_IGNORE_ENVIRONMENT,
        limit_bytes,
        ..larder_pool_options::default()
    };
    let options = larder_family_options {
        pages: &raw const pages,
        ..larder_family_options::default()
    };
    // SAFETY: live options.
    made(|out, error| unsafe { larder_family_new(&raw const options, out, error) })
}
