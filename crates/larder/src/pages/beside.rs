//! Memory beside the pages: a share of bytes for each page, in a reservation of its own, that goes back to the system with the page;
//! and behind all shares some more bytes for each page, which stay.

use core::ops::Range;
use std::sync::Arc;

use crate::os::{Decommit, OsError, Span, System, page_size};

/// The shares. They are 0 for pages that are in the account: then it does not matter whether their memory has gone.
#[derive(Debug)]
pub(super) struct Beside {
    span: Span,
    /// Bytes for each page.
    share: usize,
    system: Arc<dyn System>,
}

impl Beside {
    /// Shares of `share` bytes for so many pages, and `more` bytes. They read as zero and cannot be written yet.
    pub(super) fn new(
        system: &Arc<dyn System>,
        pages: usize,
        (share, more): (usize, usize),
    ) -> Result<Self, OsError> {
        let bytes = (pages * (share + more)).next_multiple_of(page_size());
        let beside = Self {
            span: system.reserve(bytes, page_size())?,
            share,
            system: system.clone(),
        };
        // SAFETY: just reserved, and known to no other code.
        unsafe { system.show_zeroes(beside.span) }?;
        Ok(beside)
    }

    pub(super) fn span(&self) -> Span {
        self.span
    }

    /// Gives the memory of the shares of some pages back, as far as whole pages are theirs. They read as zero afterwards.
    ///
    /// # Safety
    /// The pages are in the caller's hands alone.
    pub(super) unsafe fn give(&self, of: &[Range<usize>], spans: &mut [Span]) {
        let page = page_size();
        let mut n = 0;
        for pages in of {
            let from = (pages.start * self.share).next_multiple_of(page);
            let to = pages.end * self.share / page * page;
            if from < to {
                spans[n] = self.span.part(from, to - from);
                n += 1;
            }
        }
        if n > 0 {
            // A refusal costs memory and nothing else.
            // SAFETY: shares of the caller's pages only, which are zero, and read as zero afterwards.
            let _ = unsafe { self.system.decommit(&spans[..n], Decommit::DontNeed) };
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // SAFETY: exactly what `reserve` returned; the pool, whose users look at the shares, is gone. A refusal leaks addresses.
        let _ = unsafe { self.system.release(self.span) };
    }
}
