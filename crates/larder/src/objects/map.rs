//! The owner of each page of the reservation: two bytes out of line, and the slab in four more.
//!
//! [`PageMap::owner`] is a subtract, a shift, a compare and one load; a free that knows only the address stands on it.
//!
//! The program's heap has a [mark](View::mark_at) beside: a byte for each sixteen of the reservation, which says whether a block
//! in use begins there. It is a byte and not a bit, since threads that free neighbours would need an atomic instruction for a bit.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering};
use std::sync::Arc;

use super::meta::BlockNumber;
use super::shape::LINE;
use super::table::KEPT;
use crate::os::{MetaRegion, OsError, Span, System, page_size};

/// No owner.
pub(super) const NONE: u16 = 0;
/// The first page of a large object: a run of pages by itself.
pub(super) const LARGE: u16 = u16::MAX;
/// The highest number that a cache can have.
pub(super) const MOST_CACHES: usize = LARGE as usize - 1;

/// Bits of an address below the number of its mark.
const MARK_SHIFT: u32 = 4;
/// Bytes whose marks share a cache line.
pub(super) const MARK_LINE: usize = LINE << MARK_SHIFT;
/// Bytes of marks that are made writable at a time, each a system call: those of 16 MiB.
const STEP: usize = 1 << 20;

/// Bytes that say where the magazine of a page's owner lies.
pub(super) const PLACE: usize = size_of::<AtomicU32>();

/// Bytes from one owner's magazine to the next one's, which a heap keeps to: no power of two, because compilers then need an instruction
/// more to find one.
pub(crate) const PLACE_BYTES: usize = 24;

/// Marks of a page.
pub(super) fn marks_of_page() -> usize {
    1 << (shift() - MARK_SHIFT)
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
    marks: Option<Marks>,
    _memory: MetaRegion,
}

/// The marks: all may be read, and those of slabs written. They are the pool's, and their memory goes back to the system with that
/// of the pages: the marks of free pages are 0.
#[derive(Debug)]
struct Marks {
    /// All marks, and from some byte on a place for each page.
    span: Span,
    first_place: usize,
    system: Arc<dyn System>,
    /// Pages from the start of which both may be written.
    written: AtomicUsize,
}

/// The part that knows the owner of each page, and the marks: some words, which a heap copies to have them at hand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    base: usize,
    pages: usize,
    owners: NonNull<AtomicU16>,
    /// The slab of each page, or the length of the large object that begins there.
    slabs: NonNull<AtomicU32>,
    /// Where the magazine of the page's owner lies in an array of them by number, in bytes; 0 for owners without a kept number.
    places: NonNull<AtomicU32>,
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

    /// The mark of an address, which is 0 where no block in use begins; and where the magazine of the page's owner lies in an
    /// array of [`KEPT`] by number, in bytes: a multiplication less where it is needed. That is 0 for owners without a kept number.
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
            let place = self.places.add(offset >> shift()).as_ref();
            Some((mark, place.load(Ordering::Relaxed) as usize))
        }
    }

    /// Takes the run away from the large object that begins at an address: no object is there any more, but the pages stay out. The
    /// bytes of the run, at most `most`; `None` for all else, and for an object that is on a list.
    ///
    /// Of two threads that put the same object at once both may get an answer.
    ///
    /// # Safety
    /// The family is alive, and the object is given up.
    #[inline(always)]
    pub(crate) unsafe fn end_large(&self, addr: usize, most: usize) -> Option<usize> {
        let page = addr.wrapping_sub(self.base) >> shift();
        // SAFETY: the family is alive.
        let owner = unsafe { self.owner(addr) };
        if owner != LARGE || !addr.is_multiple_of(1 << shift()) {
            return None;
        }
        // SAFETY: the arrays have an entry for each page; of a run of several the second page is one of them.
        unsafe {
            let entry = |page| self.slabs.add(page).as_ref().load(Ordering::Relaxed);
            let pages = entry(page) as usize;
            if pages << shift() > most || (pages > 1 && entry(page + 1) != 0) {
                return None;
            }
            self.owners
                .add(page)
                .as_ref()
                .store(NONE, Ordering::Relaxed);
            Some(pages << shift())
        }
    }

    /// Makes a run that [`end_large`](Self::end_large) answered a large object again.
    ///
    /// # Safety
    /// The family is alive, and the run is the caller's.
    #[inline(always)]
    pub(crate) unsafe fn begin_large(&self, addr: usize) {
        let page = (addr - self.base) >> shift();
        // SAFETY: the array has an entry for each page. The entries are as they were.
        unsafe { self.owners.add(page).as_ref() }.store(LARGE, Ordering::Relaxed);
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
    /// Makes what belongs to all pages below `page` writable.
    fn back(&self, page: usize) -> Result<(), OsError> {
        let from = self.written.load(Ordering::Relaxed);
        if page <= from {
            return Ok(());
        }
        let marks = marks_of_page();
        let to = page
            .next_multiple_of(STEP / marks)
            .min(self.first_place / marks);
        let places_from = (self.first_place + from * PLACE) & !(page_size() - 1);
        let places_to = (self.first_place + to * PLACE).next_multiple_of(page_size());
        for part in [
            self.span.part(from * marks, (to - from) * marks),
            self.span.part(places_from, places_to - places_from),
        ] {
            // SAFETY: a part of the marks' reservation. Threads that do it at once begin at the same place, or where another one
            // ended.
            unsafe { self.system.commit(part) }?;
        }
        self.written.fetch_max(to, Ordering::Relaxed);
        Ok(())
    }
}

// SAFETY: the two arrays are atomics in memory that the map owns.
unsafe impl Send for PageMap {}
// SAFETY: as above.
unsafe impl Sync for PageMap {}

impl PageMap {
    /// The map of a reservation, with marks in a reservation that may be read, or without.
    pub(super) fn new(
        system: &Arc<dyn System>,
        of: Span,
        marks: Option<Span>,
    ) -> Result<Self, OsError> {
        let pages = of.len / page_size();
        // The wider ones first: both are aligned, whatever the number of pages.
        let slabs = pages * size_of::<AtomicU32>();
        let bytes = slabs + pages * size_of::<AtomicU16>();
        let memory = MetaRegion::new(system.clone(), bytes, 64)?;
        let part = |from: usize| memory.span().part(from, 0).at;
        let first = marks.map_or(NonNull::dangling(), |marks| marks.at);
        let first_place = pages * marks_of_page();
        Ok(Self {
            view: View {
                base: of.addr(),
                pages,
                owners: part(slabs).cast(),
                slabs: part(0).cast(),
                places: marks.map_or(NonNull::dangling(), |marks| {
                    marks.part(first_place, 0).at.cast()
                }),
                marks: first,
                marks_of_null: first.as_ptr().wrapping_sub(of.addr() >> MARK_SHIFT),
                most: marks.map_or(0, |_| of.len >> MARK_SHIFT),
            },
            marks: marks.map(|span| Marks {
                span,
                first_place,
                system: system.clone(),
                written: AtomicUsize::new(0),
            }),
            _memory: memory,
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
        let back = |marks: &Marks| marks.back(page as usize + n);
        self.marks.as_ref().map_or(Ok(()), back)
    }

    /// Gives `n` pages to `owner`.
    pub(super) fn set(&self, page: u32, n: usize, owner: u16, slab: BlockNumber) {
        let place = usize::from(owner) * PLACE_BYTES;
        for page in page..page + n as u32 {
            self.slab_of(page).store(slab, Ordering::Relaxed);
            self.owner_of(page).store(owner, Ordering::Relaxed);
            self.set_place(page, owner, place as u32);
        }
    }

    /// `n` pages have no owner from now on.
    pub(super) fn clear(&self, page: u32, n: usize) {
        for page in page..page + n as u32 {
            let owner = self.owner_of(page).load(Ordering::Relaxed);
            self.owner_of(page).store(NONE, Ordering::Relaxed);
            self.set_place(page, owner, 0);
        }
    }

    /// Writes where the magazine of a page's owner lies, if its owner has one: elsewhere it is 0, and may never have been touched.
    fn set_place(&self, page: u32, owner: u16, place: u32) {
        if self.marks.is_some() && usize::from(owner) < KEPT {
            // SAFETY: there is an entry for each page.
            let entry = unsafe { self.view.places.add(page as usize).as_ref() };
            entry.store(place, Ordering::Relaxed);
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
        unsafe { self.view.slabs.add(page as usize).as_ref() }
    }
}
