//! What a C handle points to, and how a handle of one kind is distinguished from garbage.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU64, Ordering};
use std::alloc::{Layout, alloc};

use crate::error::{Failed, larder_status};

/// A type that C knows by name only.
pub(crate) trait Opaque {
    /// What is behind it.
    type Inside;
    /// The first word of a live one.
    const MARK: u64;
    /// What the messages call it.
    const NAME: &'static str;

    /// Refuses to end a handle that a call is inside of.
    fn may_end(_: &Self::Inside) -> Result<(), Failed> {
        Ok(())
    }
}

/// Makes a type [`Opaque`]: what is behind it, the eight letters of its mark, its name, and what refuses its end.
macro_rules! opaque {
    ($type:ident, $inside:ty, $mark:literal, $name:literal $(, $may_end:expr)?) => {
        impl $crate::mark::Opaque for $type {
            type Inside = $inside;
            const MARK: u64 = u64::from_be_bytes(*$mark);
            const NAME: &'static str = $name;
            $(fn may_end(inside: &Self::Inside) -> Result<(), $crate::error::Failed> {
                let may_end: fn(&Self::Inside) -> Result<(), $crate::error::Failed> = $may_end;
                may_end(inside)
            })?
        }
    };
}
pub(crate) use opaque;

/// The memory behind a handle. The mark comes first in every kind, so the kind can be checked before the rest is read.
#[repr(C)]
struct Handle<T> {
    mark: AtomicU64,
    inside: T,
}

/// The mark of a freed handle. The allocator may soon overwrite it, with something that is no mark either.
const FREED: u64 = 0x6472_6c64_6561_6421;

fn check<T: Opaque>(handle: *const T) -> Result<&'static AtomicU64, Failed> {
    let mark = handle.cast::<AtomicU64>();
    if mark.is_null() {
        return Err(Failed::null(T::NAME));
    }
    if !mark.is_aligned() {
        return Err(wrong::<T>());
    }
    // SAFETY: C passes a pointer that it takes for such a handle, so there is a readable word. A pointer to unmapped memory
    // cannot be detected; the documentation says so. The reference does not leave this module's functions.
    let mark = unsafe { &*mark };
    if mark.load(Ordering::Relaxed) == T::MARK {
        Ok(mark)
    } else {
        Err(wrong::<T>())
    }
}

#[cold]
fn wrong<T: Opaque>() -> Failed {
    Failed::said(
        larder_status::LARDER_HANDLE,
        T::NAME,
        "is no handle of this kind, or was freed",
    )
}

/// What is behind a C pointer.
///
/// # Safety
/// The pointer is NULL, or to memory that can be read; the handle is not freed while the answer is used.
#[inline]
pub(crate) unsafe fn shared<'a, T: Opaque>(handle: *const T) -> Result<&'a T::Inside, Failed> {
    check(handle)?;
    // SAFETY: it carries the mark that only handles of this type carry; the caller keeps it alive.
    Ok(unsafe { &(*handle.cast::<Handle<T::Inside>>()).inside })
}

/// What is behind a pointer of C's, alone.
///
/// # Safety
/// As for [`shared`], and no other thread uses it meanwhile.
#[inline]
pub(crate) unsafe fn alone<'a, T: Opaque>(handle: *mut T) -> Result<&'a mut T::Inside, Failed> {
    check(handle.cast_const())?;
    // SAFETY: as above, and the caller is alone with it.
    Ok(unsafe { &mut (*handle.cast::<Handle<T::Inside>>()).inside })
}

/// Ends a handle; NULL does nothing.
///
/// # Safety
/// As for [`alone`], and it is not used afterwards.
pub(crate) unsafe fn end<T: Opaque>(handle: *mut T) -> Result<(), Failed> {
    if handle.is_null() {
        return Ok(());
    }
    let mark = check(handle.cast_const())?;
    // SAFETY: it carries the mark that only handles of this type carry; the caller keeps it alive.
    T::may_end(unsafe { &(*handle.cast::<Handle<T::Inside>>()).inside })?;
    // Of two threads that free it at once, one succeeds.
    if mark.swap(FREED, Ordering::AcqRel) == FREED {
        return Err(wrong::<T>());
    }
    // SAFETY: it was made by Box::into_raw (only `give` makes handles), and the exchange let one caller through.
    drop(unsafe { Box::from_raw(handle.cast::<Handle<T::Inside>>()) });
    Ok(())
}

/// Gives a new handle to C.
///
/// # Safety
/// `out` is NULL or points to memory for a pointer.
pub(crate) unsafe fn give<T: Opaque>(
    out: *mut *mut T,
    make: impl FnOnce() -> Result<T::Inside, Failed>,
) -> Result<(), Failed> {
    if out.is_null() {
        return Err(Failed::null("out"));
    }
    // SAFETY: the caller's promise. NULL first, so that a failure leaves no garbage.
    unsafe { out.write(core::ptr::null_mut()) };
    // Memory is taken first: `Box::new` would end the process when there is none.
    let layout = Layout::new::<Handle<T::Inside>>();
    // SAFETY: a handle has a size.
    let at = unsafe { alloc(layout) }.cast::<MaybeUninit<Handle<T::Inside>>>();
    if at.is_null() {
        return Err(Failed::memory("a handle"));
    }
    // SAFETY: fresh memory of the right layout, which nothing needs to be written to. Dropped, it is freed.
    let mut handle = unsafe { Box::from_raw(at) };
    handle.write(Handle {
        mark: AtomicU64::new(T::MARK),
        inside: make()?,
    });
    // SAFETY: as above.
    unsafe { out.write(Box::into_raw(handle).cast()) };
    Ok(())
}
