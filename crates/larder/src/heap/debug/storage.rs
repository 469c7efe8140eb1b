//! Where the memory of debugged blocks comes from: size classes of their own, or pages of their own between guard pages.

use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use super::records::Record;
use crate::heap::pattern;
use crate::heap::{AllocError, Classes};
use crate::objects::Owner;
use crate::os::guard;
use crate::os::{Decommit, Span, System, page_size};

/// Blocks between guard pages: each costs the process up to three ranges of addresses, of which it has 65,530 unless the
/// machine's owner says otherwise.
const MOST_GUARDED: usize = 16_000;

/// So many bytes before a block of a size class stands the number of its record. It looks like the redzone around it but for the bits
/// that are set, so that a zero written there is seen.
const NUMBER: usize = 16;
const NUMBER_BYTES: usize = size_of::<u32>();
const COVER: u32 = u32::from_ne_bytes([pattern::BEFORE; NUMBER_BYTES]);

/// Memory for a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) at: usize,
    pub(super) bytes: usize,
    pub(super) guarded: bool,
    /// It begins where its own pages end.
    pub(super) past: bool,
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

    fn base(&self, record: &Record) -> usize {
        record.base(self.redzone)
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
        match zeroed {
            true => self.take_by(Classes::alloc_zeroed, layout),
            false => self.take_by(Classes::alloc, layout),
        }
    }

    /// The same in pages of its own, for a block to grow into later: nothing is reclaimed for it.
    pub(super) fn take_room(&self, layout: Layout) -> Option<Place> {
        self.take_by(Classes::try_alloc_large, layout)
    }

    fn take_by(
        &self,
        take: fn(&Classes, Layout) -> Result<NonNull<u8>, AllocError>,
        layout: Layout,
    ) -> Option<Place> {
        let before = self.redzone.checked_next_multiple_of(layout.align())?;
        let bytes = before
            .checked_add(layout.size())?
            .checked_add(self.redzone)?;
        let whole = Layout::from_size_align(bytes, layout.align()).ok()?;
        let base = take(&self.classes, whole).ok()?.as_ptr() as usize;
        Some(Place {
            at: base + before,
            bytes,
            guarded: false,
            past: false,
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
        let at = (end - layout.size()) & !(layout.align() - 1);
        Some(Place {
            at,
            bytes,
            guarded: true,
            past: at == end,
        })
    }

    /// Whether a block may have this size and alignment where it is, with a redzone behind it.
    pub(super) fn has_room(&self, record: &Record, layout: Layout) -> bool {
        let before = record.at - self.base(record);
        !record.guarded
            && record.at.is_multiple_of(layout.align())
            && layout.size() <= record.bytes - before - self.redzone
    }

    /// Whether the number of its record stands before a block at an address. The redzone before it is on the same page, which is
    /// this storage's while it is the page of an object.
    pub(super) fn is_numbered(&self, at: usize) -> bool {
        let class = NonNull::new(at as *mut u8).and_then(|at| self.classes.class_at(at));
        class.is_some() && at % page_size() >= NUMBER
    }

    /// The number that stands before an address, where one can. Of what is no block it is any number.
    pub(super) fn number(&self, at: usize) -> Option<u32> {
        // SAFETY: on the page of an object, which is accessible.
        self.is_numbered(at)
            .then(|| unsafe { ((at - NUMBER) as *const u32).read_unaligned() } ^ COVER)
    }

    /// How far before the block the first byte stands that is not that of its record's number.
    pub(super) fn wrong_number(&self, record: &Record, number: u32) -> Option<usize> {
        if record.listed {
            return None;
        }
        // SAFETY: the redzone of a block whose memory is there.
        let found = unsafe { ((record.at - NUMBER) as *const u32).read_volatile() };
        let wrong = (found ^ number ^ COVER).to_ne_bytes();
        let first = wrong.iter().position(|&byte| byte != 0);
        first.map(|first| NUMBER - first)
    }

    /// The parts before a block that the program must not write, and the part after it.
    pub(super) fn zones(&self, record: &Record) -> [(usize, usize, u8); 3] {
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
        // Around the number.
        let (until, from) = match record.listed {
            true => (first, first),
            false => (record.at - NUMBER, record.at - NUMBER + NUMBER_BYTES),
        };
        [
            (first, until - first, pattern::BEFORE),
            (from, record.at - from, pattern::BEFORE),
            (end, last - end, pattern::AFTER),
        ]
    }

    /// Writes the redzones of a block whose record has this number.
    ///
    /// # Safety
    /// The block is live, or just taken.
    pub(super) unsafe fn draw_zones(&self, record: &Record, number: u32) {
        for (at, bytes, with) in self.zones(record) {
            // SAFETY: inside of the block's memory, beside what the program was given.
            unsafe { pattern::fill(at, bytes, with) };
        }
        if !record.listed {
            // SAFETY: in the redzone, whose beginning is as aligned as the block: 16 bytes at least.
            unsafe { ((record.at - NUMBER) as *mut u32).write(number ^ COVER) };
        }
    }

    /// The pages of a freed block may not be touched any more.
    pub(super) fn forbid(&self, record: &Record) {
        if let Some(span) = span(record) {
            // SAFETY: the block's own pages; the program has freed it. A refusal leaves them as they are.
            unsafe {
                if guard::forbid(span).is_ok() {
                    let (first, own) = own_pages(record);
                    let _ = self.system.decommit(
                        &[span.part(first - self.base(record), own)],
                        Decommit::DontNeed,
                    );
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
            NonNull::new(self.base(record) as *mut u8),
            Layout::from_size_align(record.bytes, record.align()),
        ) {
            // SAFETY: the caller's promise; it was taken with this layout.
            unsafe { self.classes.dealloc(base, layout) };
        }
    }
}

/// The first accessible byte of a guarded block, and how many there are.
fn own_pages(record: &Record) -> (usize, usize) {
    let before = record.align().max(page_size());
    (record.base(0) + before, record.bytes - before - page_size())
}

/// The whole memory of a guarded block.
fn span(record: &Record) -> Option<Span> {
    Some(Span {
        at: NonNull::new(record.base(0) as *mut u8)?,
        len: record.bytes,
    })
}
