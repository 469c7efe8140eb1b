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
///
/// ```
/// use std::sync::Arc;
/// use larder::os::{Linux, MetaRegion};
/// let region = MetaRegion::new(Arc::new(Linux), 100, 64)?;
/// // SAFETY: the region has at least 100 bytes.
/// assert_eq!(unsafe { region.span().at.read() }, 0);
/// # Ok::<(), larder::os::OsError>(())
/// ```
#[derive(Debug)]
pub struct MetaRegion {
    span: Span,
    system: Arc<dyn System>,
}

impl MetaRegion {
    /// Maps `len` bytes (rounded up to pages), aligned to `align`. Untouched parts cost addresses, and no memory but where the
    /// machine counts what is accessible (`vm.overcommit_memory=2`, `ulimit -d`).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use larder::os::{Linux, MetaRegion};
    /// let region = MetaRegion::new(Arc::new(Linux), 100, 64)?;
    /// assert!(region.span().len >= 100);
    /// # Ok::<(), larder::os::OsError>(())
    /// ```
    ///
    /// # Errors
    /// The system's refusal.
    pub fn new(system: Arc<dyn System>, len: usize, align: usize) -> Result<Self, OsError> {
        let too_large = OsError::new("mmap(metadata)", len, Errno::NOMEM);
        let len = len
            .max(1)
            .checked_next_multiple_of(page_size())
            .ok_or(too_large)?;
        let span = system.reserve_committed(len, align)?;
        Ok(Self { span, system })
    }

    /// Where it is.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use larder::os::{Linux, MetaRegion, page_size};
    /// let region = MetaRegion::new(Arc::new(Linux), 100, 64)?;
    /// assert_eq!(region.span().len, page_size());
    /// # Ok::<(), larder::os::OsError>(())
    /// ```
    #[must_use]
    pub fn span(&self) -> Span {
        self.span
    }

    /// Gives the range up to the caller, which returns it to the system.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use larder::os::{Linux, MetaRegion, System};
    /// let span = MetaRegion::new(Arc::new(Linux), 100, 64)?.into_span();
    /// // SAFETY: the region is gone, and nothing uses the span.
    /// unsafe { Linux.release(span)? };
    /// # Ok::<(), larder::os::OsError>(())
    /// ```
    pub fn into_span(self) -> Span {
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
/// ```
/// use std::sync::Arc;
/// use larder::os::{Linux, MetaSlice, ZeroIsValid};
/// #[derive(Clone, Copy)]
/// struct Entry { owner: u32, uses: u32 }
/// // SAFETY: two numbers.
/// unsafe impl ZeroIsValid for Entry {}
/// let entries = MetaSlice::<Entry>::new(Arc::new(Linux), 1000)?;
/// assert!(entries.iter().all(|entry| entry.owner == 0 && entry.uses == 0));
/// # Ok::<(), larder::os::OsError>(())
/// ```
///
/// # Safety
/// Exactly that, and the type needs no drop.
pub unsafe trait ZeroIsValid: Copy {}

// SAFETY: a number.
unsafe impl ZeroIsValid for u64 {}

/// A slice in a [`MetaRegion`]: as long as the largest case needs, and backed where it was touched.
///
/// ```
/// use std::sync::Arc;
/// use larder::os::{Linux, MetaSlice};
/// let mut counts = MetaSlice::<u64>::new(Arc::new(Linux), 1 << 20)?;
/// counts[7] += 1;                             // one page of memory, of 8 MiB of addresses
/// assert_eq!(counts[7], 1);
/// # Ok::<(), larder::os::OsError>(())
/// ```
#[derive(Debug)]
pub struct MetaSlice<T> {
    region: MetaRegion,
    len: usize,
    of: PhantomData<T>,
}

// SAFETY: the slice owns its memory, as a boxed slice does.
unsafe impl<T: Send> Send for MetaSlice<T> {}

impl<T: ZeroIsValid> MetaSlice<T> {
    /// `len` zeroed elements.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use larder::os::{Linux, MetaSlice};
    /// let mut words = MetaSlice::<u64>::new(Arc::new(Linux), 1000)?;
    /// words[999] = 7;
    /// assert_eq!(words.iter().sum::<u64>(), 7);
    /// # Ok::<(), larder::os::OsError>(())
    /// ```
    ///
    /// # Errors
    /// The system's refusal.
    pub fn new(system: Arc<dyn System>, len: usize) -> Result<Self, OsError> {
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
