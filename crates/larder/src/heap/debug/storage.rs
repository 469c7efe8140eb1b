//! Where the memory of debugged blocks comes from: size classes of their own, or pages of their own between guard pages.

use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use super::records::Record;
use crate::heap::Classes;
use crate::heap::pattern;
use crate::objects::Owner;
use crate::os::guard;
use crate::os::{Decommit, Span, System, page_size};

/// Blocks between guard pages: each costs the process up to three ranges of addresses, of which it has 65,530 unless the
/// machine's owner says otherwise.
const MOST_GUARDED: usize = 16_000;

/// Memory for a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) at: usize,
    pub(super) base: usize,
    pub(super) bytes: usize,
    pub(super) guarded: bool,
}

/// Whose memory is at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership {
    /// The storage's, or no owner's.
    Own,
    /// That of a cache that is not the storage's.
    Other,
    /// A run of pages begins there, which may have another owner.
    Run,
}

#[derive(Debug)]
pub(super) struct Storage {
    classes: Classes,
    system: Arc<dyn System>,
    redzone: usize,
    guarded: AtomicUsize,
}

impl Storage {
    pub(super) fn new(classes: Classes, system: Arc<dyn System>, redzone: usize) -> Self {
        Self {
            classes,
            system,
            redzone,
            guarded: AtomicUsize::new(0),
        }
    }

    pub(super) fn system(&self) -> &Arc<dyn System> {
        &self.system
    }

    /// Whose memory an address is. The ordinary heap of the program is of the same family, so what went may be its.
    pub(super) fn owner(&self, at: usize) -> Ownership {
        let family = self.classes.family();
        match (NonNull::new(at as *mut u8), family.owner(at as *const u8)) {
            (Some(at), Some(Owner::Cache(_))) if self.classes.class_at(at).is_none() => {
                Ownership::Other
            }
            (Some(at), Some(Owner::Large)) if family.large_bytes(at).is_ok() => Ownership::Run,
            _ => Ownership::Own,
        }
    }

    /// Room for a block between redzones.
    pub(super) fn take(&self, layout: Layout, zeroed: bool) -> Option<Place> {
        let before = self.redzone.checked_next_multiple_of(layout.align())?;
        let bytes = before
            .checked_add(layout.size())?
            .checked_add(self.redzone)?;
        let whole = Layout::from_size_align(bytes, layout.align()).ok()?;
        let got = if zeroed {
            self.classes.alloc_zeroed(whole)
        } else {
            self.classes.alloc(whole)
        };
        let base = got.ok()?.as_ptr() as usize;
        Some(Place {
            at: base + before,
            base,
            bytes,
            guarded: false,
        })
    }

    /// Room for a block that ends where inaccessible pages begin. It reads as zero. None when there are too many already.
    pub(super) fn take_guarded(&self, layout: Layout) -> Option<Place> {
        if self.guarded.fetch_add(1, Ordering::Relaxed) < MOST_GUARDED {
            let place = self.map_guarded(layout);
            if place.is_some() {
                return place;
            }
        }
        self.guarded.fetch_sub(1, Ordering::Relaxed);
        None
    }

    fn map_guarded(&self, layout: Layout) -> Option<Place> {
        let page = page_size();
        // The first page of the block's own is as aligned as the block.
        let before = layout.align().max(page);
        let own = layout.size().max(1).checked_next_multiple_of(page)?;
        let bytes = before.checked_add(own)?.checked_add(page)?;
        let span = self.system.reserve(bytes, before).ok()?;
        // SAFETY: just reserved.
        if unsafe { self.system.commit(span.part(before, own)) }.is_err() {
            // SAFETY: just reserved, and known to no other code.
            let _ = unsafe { self.system.release(span) };
            return None;
        }
        let end = span.addr() + before + own;
        Some(Place {
            at: (end - layout.size()) & !(layout.align() - 1),
            base: span.addr(),
            bytes,
            guarded: true,
        })
    }

    /// The part before a block that the program must not write, and the part after it.
    pub(super) fn zones(&self, record: &Record) -> [(usize, usize, u8); 2] {
        let end = record.at + record.size;
        let (first, last) = if record.guarded {
            let (first, own) = own_pages(record);
            (
                first.max(record.at.saturating_sub(self.redzone)),
                first + own,
            )
        } else {
            (record.at - self.redzone, end + self.redzone)
        };
        [
            (first, record.at - first, pattern::BEFORE),
            (end, last - end, pattern::AFTER),
        ]
    }

    /// Writes the redzones.
    ///
    /// # Safety
    /// The block is live, or just taken.
    pub(super) unsafe fn draw_zones(&self, record: &Record) {
        for (at, bytes, with) in self.zones(record) {
            // SAFETY: inside of the block's memory, beside what the program was given.
            unsafe { pattern::fill(at, bytes, with) };
        }
    }

    /// The pages of a freed block may not be touched any more.
    pub(super) fn forbid(&self, record: &Record) {
        if let Some(span) = span(record) {
            // SAFETY: the block's own pages; the program has freed it. A refusal leaves them as they are.
            unsafe {
                if guard::forbid(span).is_ok() {
                    let (first, own) = own_pages(record);
                    let _ = self
                        .system
                        .decommit(&[span.part(first - record.base, own)], Decommit::DontNeed);
                }
            }
        }
    }

    /// Makes all pages of a guarded block accessible: the process is to go on after a misuse.
    pub(super) fn open(&self, record: &Record) -> bool {
        // SAFETY: the block's own pages.
        span(record).is_some_and(|span| unsafe { self.system.commit(span) }.is_ok())
    }

    /// Gives the memory of a block back.
    ///
    /// # Safety
    /// It came from this storage, and is not used any more.
    pub(super) unsafe fn give(&self, record: &Record) {
        if record.guarded {
            if let Some(span) = span(record) {
                // SAFETY: the caller's promise. A refusal leaks addresses.
                let _ = unsafe { self.system.release(span) };
            }
            self.guarded.fetch_sub(1, Ordering::Relaxed);
        } else if let (Some(base), Ok(layout)) = (
            NonNull::new(record.base as *mut u8),
            Layout::from_size_align(record.bytes, record.align),
        ) {
            // SAFETY: the caller's promise; it was taken with this layout.
            unsafe { self.classes.dealloc(base, layout) };
        }
    }
}

/// The first accessible byte of a guarded block, and how many there are.
fn own_pages(record: &Record) -> (usize, usize) {
    let before = record.align.max(page_size());
    (record.base + before, record.bytes - before - page_size())
}

fn span(record: &Record) -> Option<Span> {
    Some(Span {
        at: NonNull::new(record.base as *mut u8)?,
        len: record.bytes,
    })
}
