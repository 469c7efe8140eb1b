//! No panic leaves the library: unwinding into C is undefined.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Failed, larder_error, larder_status};

/// Runs the body of a function that can fail.
///
/// # Safety
/// `error` is NULL or points to memory for a `larder_error`.
#[inline(always)]
pub(crate) unsafe fn guard(
    error: *mut larder_error,
    body: impl FnOnce() -> Result<(), Failed>,
) -> larder_status {
    match caught(body) {
        Ok(()) => larder_status::LARDER_OK,
        Err(failed) => {
            // SAFETY: the caller's promise.
            unsafe { failed.write(error) };
            failed.status
        }
    }
}

/// Runs the body of a function that returns a value: `otherwise` when it fails.
#[inline(always)]
pub(crate) fn value<T>(otherwise: T, body: impl FnOnce() -> Result<T, Failed>) -> T {
    caught(body).unwrap_or(otherwise)
}

#[inline(always)]
fn caught<T>(body: impl FnOnce() -> Result<T, Failed>) -> Result<T, Failed> {
    // The body shares a pool with other threads; the pool's locks and counts hold through an unwind.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        // Dropping the payload may panic in turn; it is a string of a few bytes, so leaking it is the lesser evil.
        std::mem::forget(payload);
        Err(Failed::said(
            larder_status::LARDER_PANIC,
            "a defect in larder;",
            "please report it with the message on stderr",
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status() {
        // SAFETY: NULL is allowed.
        let status = unsafe { guard(std::ptr::null_mut(), || panic!("as asked for")) };
        assert_eq!(status, larder_status::LARDER_PANIC);
        assert_eq!(value(7, || panic!("as asked for")), 7);
    }
}
