//! A call from C: its handle is checked, what it gives is written where C asks, a failure goes to the error record, and no panic
//! leaves the library, since unwinding into C is undefined.

use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Failed, Outcome, larder_error, larder_status};
use crate::mark::{Opaque, end, give, shared};

/// The error record of functions that have none.
pub(crate) const NO_ERROR: *mut larder_error = null_mut();

/// Runs the body of a function that can fail.
///
/// # Safety
/// `error` is NULL or points to memory for a `larder_error`.
#[inline(always)]
pub(crate) unsafe fn guard<O: Outcome>(
    error: *mut larder_error,
    body: impl FnOnce() -> O,
) -> larder_status {
    match caught(|| body().outcome()) {
        Ok(()) => larder_status::LARDER_OK,
        Err(failed) => {
            // Asked here, where it is known that most calls have no record.
            if !error.is_null() {
                // SAFETY: the caller's promise.
                unsafe { failed.write(error) };
            }
            failed.status
        }
    }
}

/// What the body returns, or a panic's failure.
#[inline(always)]
pub(crate) fn caught<T>(body: impl FnOnce() -> Result<T, Failed>) -> Result<T, Failed> {
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

/// Does something with what is behind a handle.
///
/// # Safety
/// `handle` as for [`shared`]; `error` as for [`guard`].
#[inline(always)]
pub(crate) unsafe fn on<H: Opaque, O: Outcome>(
    handle: *const H,
    error: *mut larder_error,
    body: impl FnOnce(&H::Inside) -> O,
) -> larder_status {
    // SAFETY: the caller's promises.
    unsafe { guard(error, || body(shared(handle)?).outcome()) }
}

/// Asks what is behind a handle for a value: `otherwise` where there is none.
///
/// # Safety
/// `handle` as for [`shared`].
#[inline(always)]
pub(crate) unsafe fn ask<H: Opaque, T>(
    handle: *const H,
    otherwise: T,
    body: impl FnOnce(&H::Inside) -> T,
) -> T {
    // SAFETY: the caller's promise.
    caught(|| Ok(body(unsafe { shared(handle)? }))).unwrap_or(otherwise)
}

/// Makes a handle over what is behind another one.
///
/// # Safety
/// `over` as for [`shared`]; `out` as for [`give`]; `error` as for [`guard`].
pub(crate) unsafe fn make<H: Opaque, T: Opaque>(
    over: *const H,
    out: *mut *mut T,
    error: *mut larder_error,
    body: impl FnOnce(&H::Inside) -> Result<T::Inside, Failed>,
) -> larder_status {
    // SAFETY: the caller's promises.
    unsafe { on(over, error, |over| give(out, || body(over))) }
}

/// Ends a handle; NULL does nothing.
///
/// # Safety
/// `handle` as for [`end`].
pub(crate) unsafe fn free<T: Opaque>(handle: *mut T) -> larder_status {
    // SAFETY: the caller's promise.
    unsafe { guard(NO_ERROR, || end(handle)) }
}

/// Ends a handle of which nothing is in use: `live` counts it, `says` stands before and after that number in the error.
///
/// # Safety
/// `handle` as for [`end`]; `error` as for [`guard`].
pub(crate) unsafe fn destroy<T: Opaque>(
    handle: *mut T,
    error: *mut larder_error,
    live: impl FnOnce(&T::Inside) -> u64,
    says: [&'static str; 2],
) -> larder_status {
    // SAFETY: the caller's promises.
    unsafe {
        guard(error, || {
            if handle.is_null() {
                return Ok(());
            }
            match live(shared(handle)?) {
                0 => end(handle),
                live => Err(Failed::number(
                    larder_status::LARDER_BUSY,
                    says[0],
                    live,
                    says[1],
                )),
            }
        })
    }
}

/// What a call hands to C.
pub(crate) trait Answer {
    /// Its type there.
    type InC;
    /// What C finds after a failure.
    const NONE: Self::InC;
    fn in_c(self) -> Self::InC;
}

/// A page or an object.
impl Answer for NonNull<u8> {
    type InC = *mut c_void;
    const NONE: *mut c_void = null_mut();
    #[inline(always)]
    fn in_c(self) -> *mut c_void {
        self.as_ptr().cast()
    }
}

/// A number of an arena, or an identifier.
impl Answer for u64 {
    type InC = Self;
    const NONE: Self = Self::MAX;
    #[inline(always)]
    fn in_c(self) -> Self {
        self
    }
}

/// Writes to a place of C's, which has a name in errors, what stands for no answer.
///
/// # Safety
/// The place is NULL or can be written.
#[inline(always)]
pub(crate) unsafe fn empty<A: Answer>(
    (name, place): (&'static str, *mut A::InC),
) -> Result<(), Failed> {
    if place.is_null() {
        return Err(Failed::null(name));
    }
    // SAFETY: the caller's promise.
    unsafe { place.write(A::NONE) };
    Ok(())
}

/// Writes an answer to a place of C's, or what stands for none where `take` fails or panics.
///
/// # Safety
/// As for [`empty`].
#[inline(always)]
pub(crate) unsafe fn answer<A: Answer, E>(
    to: (&'static str, *mut A::InC),
    take: impl FnOnce() -> Result<A, E>,
) -> Result<(), Failed>
where
    Failed: From<E>,
{
    // SAFETY: the caller's promise.
    unsafe {
        empty::<A>(to)?;
        to.1.write(take()?.in_c());
    }
    Ok(())
}

/// Takes something of what is behind a handle and writes it to a place of C's.
///
/// # Safety
/// `handle` as for [`shared`]; `to` as for [`answer`]; `error` as for [`guard`].
#[inline(always)]
pub(crate) unsafe fn take<H: Opaque, A: Answer, E>(
    handle: *const H,
    to: (&'static str, *mut A::InC),
    error: *mut larder_error,
    how: impl FnOnce(&H::Inside) -> Result<A, E>,
) -> larder_status
where
    Failed: From<E>,
{
    // SAFETY: the caller's promises.
    unsafe { on(handle, error, |inside| answer(to, || how(inside))) }
}

/// Gives memory or spans back, and writes how much that was.
///
/// # Safety
/// `handle` as for [`shared`]; `given` is NULL or can be written.
pub(crate) unsafe fn give_back<H: Opaque, T>(
    handle: *const H,
    given: *mut T,
    how: impl FnOnce(&H::Inside) -> T,
) -> larder_status {
    // SAFETY: the caller's promises.
    unsafe {
        on(handle, NO_ERROR, |inside| {
            let amount = how(inside);
            if !given.is_null() {
                given.write(amount);
            }
        })
    }
}

/// A page or an object that C hands in.
#[inline(always)]
pub(crate) fn not_null(name: &'static str, at: *mut c_void) -> Result<NonNull<u8>, Failed> {
    NonNull::new(at.cast()).ok_or_else(|| Failed::null(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status() {
        let panics = || -> Result<(), Failed> { panic!("as asked for") };
        // SAFETY: NULL is allowed.
        let status = unsafe { guard(NO_ERROR, panics) };
        assert_eq!(status, larder_status::LARDER_PANIC);
        assert!(caught(panics).is_err_and(|failed| failed.status == status));
    }
}
