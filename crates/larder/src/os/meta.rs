//! Memory for the library's own bookkeeping: zeroed, lazily backed, straight from the system.
//!
//! Bookkeeping never lives in the pages that are handed out, and never comes from the global allocator, because
//! one day it will be the global allocator.

use std::sync::Arc;

use super::{OsError, Span, System, page_size};

/// A committed range of zeroes that is returned to the system when it is dropped.
#[derive(Debug)]
pub struct MetaRegion {
    span: Span,
    system: Arc<dyn System>,
}

impl MetaRegion {
    /// Maps `len` bytes (rounded up to pages), aligned to `align`. Untouched parts cost address space only.
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
        let len = len.max(1).next_multiple_of(page_size());
        let span = system.reserve(len, align)?;
        // SAFETY: the span was just reserved and is not known to anybody else.
        if let Err(error) = unsafe { system.commit(span) } {
            // SAFETY: as above. The first error is the one worth telling.
            let _ = unsafe { system.release(span) };
            return Err(error);
        }
        Ok(Self { span, system })
    }

    /// Where it is.
    #[must_use]
    pub fn span(&self) -> Span {
        self.span
    }
}

impl Drop for MetaRegion {
    fn drop(&mut self) {
        // SAFETY: the span is exactly what `reserve` returned; the owner of the region held all pointers into it.
        // A refusal leaks addresses, and there is nobody to tell.
        let _ = unsafe { self.system.release(self.span) };
    }
}
