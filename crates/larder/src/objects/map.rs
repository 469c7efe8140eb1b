//! The owner of each page of the reservation: two bytes out of line, and the slab in four more.
//!
//! [`PageMap::owner`] is a subtract, a shift, a compare and one load; a free that knows only the address stands on it.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::sync::Arc;

use super::meta::BlockNumber;
use crate::os::{MetaRegion, OsError, Span, System, page_size};

/// No owner.
pub(super) const NONE: u16 = 0;
/// The first page of a large object: a run of pages by itself.
pub(super) const LARGE: u16 = u16::MAX;
/// The highest number that a cache can have.
pub(super) const MOST_CACHES: usize = LARGE as usize - 1;

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
    _memory: [MetaRegion; 2],
}

/// The part that knows the owner of each page: three words, which a heap copies to have them at hand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    base: usize,
    pages: usize,
    owners: NonNull<AtomicU16>,
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
}

// SAFETY: the two arrays are atomics in memory that the map owns.
unsafe impl Send for PageMap {}
// SAFETY: as above.
unsafe impl Sync for PageMap {}

impl PageMap {
    pub(super) fn new(system: &Arc<dyn System>, of: Span) -> Result<Self, OsError> {
        let pages = of.len / page_size();
        let owners = MetaRegion::new(system.clone(), pages * size_of::<AtomicU16>(), 64)?;
        let slabs = MetaRegion::new(system.clone(), pages * size_of::<AtomicU32>(), 64)?;
        Ok(Self {
            view: View {
                base: of.addr(),
                pages,
                owners: owners.span().at.cast(),
            },
            slabs: slabs.span().at.cast(),
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

    /// Gives `n` pages to `owner`.
    pub(super) fn set(&self, page: u32, n: usize, owner: u16, slab: BlockNumber) {
        for page in page..page + n as u32 {
            self.slab_of(page).store(slab, Ordering::Relaxed);
            self.owner_of(page).store(owner, Ordering::Relaxed);
        }
    }

    /// `n` pages have no owner from now on.
    pub(super) fn clear(&self, page: u32, n: usize) {
        for page in page..page + n as u32 {
            self.owner_of(page).store(NONE, Ordering::Relaxed);
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
