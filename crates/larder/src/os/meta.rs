//! Memory for the library's own bookkeeping: zeroed, lazily backed, straight from the system.
//!
//! Bookkeeping never lives in the pages that are handed out, and never comes from the global allocator, because
//! one day it will be the global allocator.

use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use std::sync::Arc;

use rustix::io::Errno;

use super::{OsError, Span, System, page_size};

/// A committed range of zeroes that is returned to the system when it is dropped.
#[derive(Debug)]
pub(crate) struct MetaRegion {
    span: Span,
    system: Arc<dyn System>,
}

impl MetaRegion {
    /// Maps `len` bytes (rounded up to pages), aligned to `align`. Untouched parts cost addresses, and no memory but where the
    /// machine counts what is accessible (`vm.overcommit_memory=2`, `ulimit -d`).
    ///
    /// # Errors
    /// The system's refusal.
    pub(crate) fn new(system: Arc<dyn System>, len: usize, align: usize) -> Result<Self, OsError> {
        let too_large = OsError::new("mmap(metadata)", len, Errno::NOMEM);
        let len = len
            .max(1)
            .checked_next_multiple_of(page_size())
            .ok_or(too_large)?;
        let span = system.reserve_committed(len, align)?;
        Ok(Self { span, system })
    }

    /// Where it is.
    #[must_use]
    pub(crate) fn span(&self) -> Span {
        self.span
    }

    /// Gives the range up to the caller, which returns it to the system.
    pub(crate) fn into_span(self) -> Span {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: neither this value nor its share of the system is looked at again.
        unsafe { core::ptr::drop_in_place(&raw mut this.system) };
        this.span
    }
}

impl Drop for MetaRegion {
    // Called in many places, none of them often.
    #[inline(never)]
    fn drop(&mut self) {
        // SAFETY: the span is exactly what `reserve` returned; the owner of the region held all pointers into it.
        // A refusal leaks addresses; `drop` cannot report it.
        let _ = unsafe { self.system.release(self.span) };
    }
}

/// Types for which all bytes zero are a value.
///
/// # Safety
/// Exactly that, and the type needs no drop.
pub(crate) unsafe trait ZeroIsValid: Copy {}

// SAFETY: a number.
unsafe impl ZeroIsValid for u64 {}
// SAFETY: a number.
unsafe impl ZeroIsValid for u32 {}

/// A slice in a [`MetaRegion`]: as long as the largest case needs, and backed where it was touched.
#[derive(Debug)]
pub(crate) struct MetaSlice<T> {
    region: MetaRegion,
    len: usize,
    of: PhantomData<T>,
}

// SAFETY: the slice owns its memory, as a boxed slice does.
unsafe impl<T: Send> Send for MetaSlice<T> {}

impl<T: ZeroIsValid> MetaSlice<T> {
    /// `len` zeroed elements.
    ///
    /// # Errors
    /// The system's refusal.
    pub(crate) fn new(system: Arc<dyn System>, len: usize) -> Result<Self, OsError> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(OsError::new(
            "mmap(metadata)",
            len,
            Errno::NOMEM,
        ))?;
        Ok(Self {
            region: MetaRegion::new(system, bytes, align_of::<T>())?,
            len,
            of: PhantomData,
        })
    }
}

impl<T: ZeroIsValid> Deref for MetaSlice<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: the region holds `len` elements, zero at first, which is a value.
        unsafe { core::slice::from_raw_parts(self.region.span().at.as_ptr().cast(), self.len) }
    }
}

impl<T: ZeroIsValid> DerefMut for MetaSlice<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed mutably.
        unsafe { core::slice::from_raw_parts_mut(self.region.span().at.as_ptr().cast(), self.len) }
    }
}
