//! What the heap needs of a cache beside the public part: to keep it behind one word, and to have its own magazines.

use core::cell::Cell;
use core::ptr::NonNull;

use super::cache::CacheRef;
use super::error::{Misuse, ObjectError};
use super::family::Family;
use super::map::View;
use super::raw::{RawCache, object, unfold};
use super::supply::{Failure, Objects};
use crate::magazine::{OwnMagazine, Stock};

impl RawCache {
    /// The cache as one word. Its constructor is not in it: for caches without one.
    pub(crate) fn into_ptr(self) -> NonNull<()> {
        debug_assert!(self.construct.is_none());
        core::mem::ManuallyDrop::new(self).cache.as_ptr()
    }

    /// The cache behind a word.
    ///
    /// # Safety
    /// The word came from [`into_ptr`](Self::into_ptr), and of all values made from it one at most is dropped, as the last.
    #[inline(always)]
    pub(crate) unsafe fn from_ptr(at: NonNull<()>) -> Self {
        Self {
            // SAFETY: the caller's promise.
            cache: unsafe { CacheRef::from_ptr(at) },
            construct: None,
        }
    }

    #[inline(always)]
    pub(crate) fn stock(&self) -> &Stock {
        &self.cache.stock
    }

    /// An object for an owner's magazine that has none and may hold `most`, and whether it is known to be zero. `spare` is called before
    /// memory grows for it.
    pub(crate) fn get_into(
        &self,
        magazine: &mut OwnMagazine,
        most: usize,
        spare: &dyn Fn(),
    ) -> Result<(usize, bool), ObjectError> {
        let untouched = Cell::new(false);
        let supply = Objects {
            spare: Some(spare),
            untouched: Some(&untouched),
            ..self.supply()
        };
        let round = self
            .cache
            .inner()
            .patiently(
                || magazine.get(&self.cache.stock, &supply, most),
                Failure::is_short,
            )
            .map_err(unfold)?;
        Ok((round, untouched.get()))
    }

    /// A large object for a caller without a magazine, and whether it is known to be zero: no CPU is to keep others. `spare` is called before
    /// memory grows for it.
    pub(crate) fn get_behind(&self, spare: &dyn Fn()) -> Result<(NonNull<u8>, bool), ObjectError> {
        let mut magazine = OwnMagazine::none();
        let got = self.get_into(&mut magazine, 0, spare);
        magazine.give_back(self.stock());
        got.map(|(round, zero)| (object(round), zero))
    }

    /// Brings the depot's objects to slabs and whole slabs to the pool, before memory grows: for caches whose objects are not
    /// constructed, since it ends those. Returns bytes of slabs that went.
    pub(crate) fn collect(&self) -> usize {
        debug_assert!(!self.cache.hooks.constructs);
        self.cache.collect()
    }

    /// Where the object begins that an address in a slab of this cache lies in.
    pub(crate) fn object_around(&self, addr: usize) -> Option<usize> {
        self.cache.object_around(addr)
    }

    /// Bytes of a slab.
    pub(crate) fn slab_bytes(&self) -> usize {
        self.cache.shape.bytes()
    }

    /// An object for this CPU's magazines. It may be one that is larger than its owner knows, so nothing is checked.
    pub(crate) fn put_one(&self, round: usize) {
        if !self.cache.stock.quick_put(round) {
            self.cache.put_slow(round);
        }
    }

    /// A large object for the depot: no CPU is to keep it.
    pub(crate) fn put_behind(&self, round: usize) {
        self.cache.inner().upkeep_of_put(self.cache.shape.stride);
        self.cache.stock.put_into_depot(round, &self.supply());
    }

    /// An object from an owner's magazine that has no room, but may hold `most`. Says how many left it, with this one.
    pub(crate) fn put_from(&self, magazine: &mut OwnMagazine, round: usize, most: usize) -> usize {
        let before = magazine.len();
        magazine.put(round, &self.cache.stock, &self.supply(), most);
        let gone = (before + 1).saturating_sub(magazine.len());
        self.cache
            .inner()
            .upkeep_of_put(gone * self.cache.shape.stride);
        gone
    }
}

impl Family {
    /// Which owner has which page, for as long as the family lives.
    pub(crate) fn view(&self) -> View {
        self.inner.map.view()
    }

    /// Gives back what is unused, if it is time for that. For paths that are slow anyway.
    pub(crate) fn upkeep_if_due(&self) {
        self.inner.upkeep_if_due();
    }

    /// How many working-set intervals have ended. It may wrap.
    pub(crate) fn intervals(&self) -> u32 {
        self.inner.intervals()
    }

    /// Reports a pointer that is not taken.
    pub(crate) fn tell(&self, misuse: &Misuse) {
        if !self.inner.bring_outgrown(misuse) {
            self.inner.misuse(misuse);
        }
    }
}
