//! The owner of each page of the reservation: two bytes out of line, and the slab in four more.
//!
//! [`PageMap::owner`] is a subtract, a shift, a compare and one load; a free that knows only the address stands on it.
//!
//! The program's heap has a [mark](View::mark_at) beside: a byte for each sixteen of the reservation, which says whether a block
//! in use begins there. It is a byte and not a bit, since threads that free neighbours would need an atomic instruction for a bit.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, Ordering};
use std::sync::Arc;

use super::meta::BlockNumber;
use super::table::KEPT;
use crate::magazine::Pair;
use crate::os::{MetaRegion, OsError, Span, System, page_size};

/// No owner.
pub(super) const NONE: u16 = 0;
/// The first page of a large object: a run of pages by itself.
pub(super) const LARGE: u16 = u16::MAX;
/// The highest number that a cache can have.
pub(super) const MOST_CACHES: usize = LARGE as usize - 1;

/// Bits of an address below the number of its mark.
const MARK_SHIFT: u32 = 4;
/// Bytes of marks that are made writable at a time, each a system call: those of 16 MiB.
const STEP: usize = 1 << 20;

/// Marks of a page.
fn marks_of_page() -> usize {
    1 << (shift() - MARK_SHIFT)
}

/// Bytes that say where the pairs of a step's pages lie.
fn pairs_of_step() -> usize {
    STEP / marks_of_page() * size_of::<AtomicU32>()
}

/// Bits of an address below its page's number: a constant where machines agree.
#[inline]
fn shift() -> u32 {
    if cfg!(target_arch = "x86_64") {
        12
    } else {
        page_size().trailing_zeros()
    }
}

#[derive(Debug)]
pub(super) struct PageMap {
    view: View,
    slabs: NonNull<AtomicU32>,
    marks: Option<Marks>,
    _memory: [MetaRegion; 2],
}

/// The marks: all may be read, and those of slabs written.
#[derive(Debug)]
struct Marks {
    /// All marks, and from some byte on where each page's pair lies.
    span: Span,
    first_pair: usize,
    system: Arc<dyn System>,
    steps: MetaRegion,
}

/// The part that knows the owner of each page, and the marks: some words, which a heap copies to have them at hand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    base: usize,
    pages: usize,
    owners: NonNull<AtomicU16>,
    /// Where the pair of the page's owner lies in an array of pairs by number, in bytes; 0 for owners without a kept number.
    pairs: NonNull<AtomicU32>,
    /// The first mark; dangling where there are none.
    marks: NonNull<u8>,
    /// Where the mark of address 0 would be.
    marks_of_null: *mut u8,
    /// How many there are: none where there are none.
    most: usize,
}

impl View {
    /// Number of the owner of the page that holds `addr`: 0 is no owner, also outside of the reservation.
    ///
    /// # Safety
    /// The family that the view is of is alive.
    #[inline(always)]
    pub(crate) unsafe fn owner(&self, addr: usize) -> u16 {
        // SAFETY: the caller's promise.
        unsafe { self.owner_inside(addr) }.unwrap_or(NONE)
    }

    /// The same, and none outside of the reservation.
    ///
    /// # Safety
    /// As for [`owner`](Self::owner).
    #[inline(always)]
    pub(crate) unsafe fn owner_inside(&self, addr: usize) -> Option<u16> {
        let page = addr.wrapping_sub(self.base) >> shift();
        if page >= self.pages {
            return None;
        }
        // SAFETY: the array has an entry for each page, and lives as long as the family (the caller's promise).
        Some(unsafe { self.owners.add(page).as_ref() }.load(Ordering::Relaxed))
    }

    /// The mark of an address, which is 0 where no block in use begins; and where the pair of the page's owner lies in an array of
    /// [`KEPT`] pairs by number, in bytes: a multiplication less where it is needed. That is 0 for owners without a kept number.
    /// `None` for addresses outside of the reservation, for those where no block can begin, and for all where there are no marks.
    ///
    /// # Safety
    /// The family is alive. A mark is written only where it is not 0.
    #[inline(always)]
    pub(crate) unsafe fn mark_at(&self, addr: usize) -> Option<(&AtomicU8, usize)> {
        let offset = addr.wrapping_sub(self.base);
        // The bits that must be zero become the highest, so that one comparison looks at them too.
        let number = offset.rotate_right(MARK_SHIFT);
        if number >= self.most {
            return None;
        }
        // SAFETY: there are so many marks, and an entry for each page; both live as long as the family (the caller's promise).
        unsafe {
            let mark = self.marks.add(number).cast::<AtomicU8>().as_ref();
            let pair = self.pairs.add(offset >> shift()).as_ref();
            Some((mark, pair.load(Ordering::Relaxed) as usize))
        }
    }

    /// Writes the mark of a block.
    ///
    /// # Safety
    /// The family is alive and has marks, and the address is that of an object of a slab.
    #[inline(always)]
    pub(crate) unsafe fn set_mark(&self, addr: usize) {
        // SAFETY: the slab's marks were made writable with it.
        let at = unsafe { AtomicU8::from_ptr(self.marks_of_null.wrapping_add(addr >> MARK_SHIFT)) };
        at.store(1, Ordering::Relaxed);
    }
}

// SAFETY: addresses of atomics, used as the functions say.
unsafe impl Send for View {}
// SAFETY: as above.
unsafe impl Sync for View {}

impl Marks {
    fn new(system: &Arc<dyn System>, pages: usize) -> Result<Self, OsError> {
        let steps = (pages * marks_of_page()).div_ceil(STEP);
        let bytes = steps * (STEP + pairs_of_step());
        let marks = Self {
            steps: MetaRegion::new(system.clone(), steps, 64)?,
            span: system.reserve(bytes.next_multiple_of(page_size()), page_size())?,
            first_pair: steps * STEP,
            system: system.clone(),
        };
        // Any address may be asked for.
        // SAFETY: just reserved, and known to no other code.
        unsafe { system.show_zeroes(marks.span) }?;
        Ok(marks)
    }

    /// Makes what belongs to some pages writable.
    fn back(&self, page: usize, n: usize) -> Result<(), OsError> {
        let marks = marks_of_page();
        for step in page * marks / STEP..=((page + n) * marks - 1) / STEP {
            // SAFETY: there is a byte for each step.
            let done =
                unsafe { AtomicBool::from_ptr(self.steps.span().at.add(step).as_ptr().cast()) };
            if done.load(Ordering::Relaxed) {
                continue;
            }
            let pairs = self.first_pair + step * pairs_of_step();
            let from = pairs & !(page_size() - 1);
            let to = (pairs + pairs_of_step()).next_multiple_of(page_size());
            for part in [
                self.span.part(step * STEP, STEP),
                self.span.part(from, to - from),
            ] {
                // SAFETY: a part of this reservation. Threads that do it at once do the same.
                unsafe { self.system.commit(part) }?;
            }
            done.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Drop for Marks {
    fn drop(&mut self) {
        // SAFETY: the reservation is the map's own, which goes. A refusal leaks addresses.
        let _ = unsafe { self.system.release(self.span) };
    }
}

// SAFETY: the two arrays are atomics in memory that the map owns.
unsafe impl Send for PageMap {}
// SAFETY: as above.
unsafe impl Sync for PageMap {}

impl PageMap {
    /// The map of a reservation, with marks or without.
    pub(super) fn new(system: &Arc<dyn System>, of: Span, marks: bool) -> Result<Self, OsError> {
        let marks = if marks {
            Some(Marks::new(system, of.len / page_size())?)
        } else {
            None
        };
        let first = marks
            .as_ref()
            .map_or(NonNull::dangling(), |marks| marks.span.at);
        let pages = of.len / page_size();
        let owners = MetaRegion::new(system.clone(), pages * size_of::<AtomicU16>(), 64)?;
        let slabs = MetaRegion::new(system.clone(), pages * size_of::<AtomicU32>(), 64)?;
        Ok(Self {
            view: View {
                base: of.addr(),
                pages,
                owners: owners.span().at.cast(),
                pairs: marks.as_ref().map_or(NonNull::dangling(), |marks| {
                    marks.span.part(marks.first_pair, 0).at.cast()
                }),
                marks: first,
                marks_of_null: first.as_ptr().wrapping_sub(of.addr() >> MARK_SHIFT),
                most: marks.as_ref().map_or(0, |_| of.len >> MARK_SHIFT),
            },
            slabs: slabs.span().at.cast(),
            marks,
            _memory: [owners, slabs],
        })
    }

    /// Number of the owner of the page that holds `addr`: [`NONE`] also outside of the reservation.
    #[inline]
    pub(super) fn owner(&self, addr: usize) -> u16 {
        // SAFETY: the map is alive.
        unsafe { self.view.owner(addr) }
    }

    pub(super) fn view(&self) -> View {
        self.view
    }

    /// Address of a page.
    pub(super) fn addr(&self, page: u32) -> usize {
        self.view.base + ((page as usize) << shift())
    }

    /// Number of the page that holds an address of the reservation.
    pub(super) fn page(&self, addr: usize) -> u32 {
        // The pool numbers at most 2^30 pages.
        ((addr - self.view.base) >> shift()) as u32
    }

    /// The second entry of the page that holds `addr`, an address of the reservation: a slab, or a length in pages.
    pub(super) fn entry(&self, addr: usize) -> u32 {
        self.slab_of(self.page(addr)).load(Ordering::Relaxed)
    }

    /// The second entry of a page.
    pub(super) fn entry_of(&self, page: u32) -> u32 {
        self.slab_of(page).load(Ordering::Relaxed)
    }

    /// Writes the second entry of a page, and not whose it is.
    pub(super) fn set_entry(&self, page: u32, entry: u32) {
        self.slab_of(page).store(entry, Ordering::Relaxed);
    }

    /// Makes the marks of `n` pages writable, which get objects.
    pub(super) fn back_marks(&self, page: u32, n: usize) -> Result<(), OsError> {
        let back = |marks: &Marks| marks.back(page as usize, n);
        self.marks.as_ref().map_or(Ok(()), back)
    }

    /// Gives `n` pages to `owner`.
    pub(super) fn set(&self, page: u32, n: usize, owner: u16, slab: BlockNumber) {
        let kept = usize::from(owner) < KEPT;
        let pair = if kept {
            usize::from(owner) * size_of::<Pair>()
        } else {
            0
        };
        for page in page..page + n as u32 {
            self.slab_of(page).store(slab, Ordering::Relaxed);
            self.owner_of(page).store(owner, Ordering::Relaxed);
            self.set_pair(page, pair as u32);
        }
    }

    /// `n` pages have no owner from now on.
    pub(super) fn clear(&self, page: u32, n: usize) {
        for page in page..page + n as u32 {
            self.owner_of(page).store(NONE, Ordering::Relaxed);
            self.set_pair(page, 0);
        }
    }

    fn set_pair(&self, page: u32, pair: u32) {
        if self.marks.is_some() {
            // SAFETY: there is an entry for each page.
            let entry = unsafe { self.view.pairs.add(page as usize).as_ref() };
            // That of a page that had no objects yet may only be read.
            if entry.load(Ordering::Relaxed) != pair {
                entry.store(pair, Ordering::Relaxed);
            }
        }
    }

    /// A page of `owner` has no owner from now on; false when it is not `owner`'s, so of two threads that try one fails.
    pub(super) fn release(&self, page: u32, owner: u16) -> bool {
        self.owner_of(page)
            .compare_exchange(owner, NONE, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    fn owner_of(&self, page: u32) -> &AtomicU16 {
        debug_assert!((page as usize) < self.view.pages);
        // SAFETY: pages come from the pool, whose reservation the array covers.
        unsafe { self.view.owners.add(page as usize).as_ref() }
    }

    fn slab_of(&self, page: u32) -> &AtomicU32 {
        debug_assert!((page as usize) < self.view.pages);
        // SAFETY: as above.
        unsafe { self.slabs.add(page as usize).as_ref() }
    }
}
