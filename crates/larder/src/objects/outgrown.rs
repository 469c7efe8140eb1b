//! Objects that are larger than their owners know: no memory was found for a smaller one.
//!
//! Such an object stays where it is and is given back by the size that its owner believes it to have: to another cache. There
//! it serves as one of that cache's. When it goes back to a slab it is found, since the map says which cache owns its page.

use core::ptr::NonNull;
use core::sync::atomic::Ordering;

use super::cache::CacheRef;
use super::error::Misuse;
use super::family::{Family, Inner};
use super::map::{LARGE, NONE};

impl Family {
    /// From now on the user of one object may give it back as one of a smaller size: to another cache of this family
    /// that has no constructor either.
    pub(crate) fn outgrow(&self) {
        self.inner.outgrown.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether there may be such an object.
    pub(crate) fn has_outgrown(&self) -> bool {
        self.inner.outgrown.load(Ordering::Relaxed) > 0
    }

    /// Brings one of those to where it belongs; false when it is none.
    #[cold]
    pub(crate) fn bring_outgrown(&self, at: NonNull<u8>) -> bool {
        let addr = at.as_ptr() as usize;
        self.inner.bring_outgrown(&Misuse::Foreign { addr })
    }
}

impl Inner {
    /// Brings what came to a cache that it is not of to where it belongs, if it may be one of those; false when not.
    #[cold]
    pub(super) fn bring_outgrown(&self, misuse: &Misuse) -> bool {
        let Misuse::Foreign { addr } = *misuse else {
            return false;
        };
        if self.outgrown.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let came = match self.map.owner(addr) {
            NONE => false,
            LARGE => self.release_large(addr, crate::os::coarse_now()).is_ok(),
            number => self.bring_to(number, addr),
        };
        if came {
            // Fewer than none would be more than any: a block that was given back by its true size stays counted.
            let less = |n: usize| n.checked_sub(1);
            let _ = self
                .outgrown
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
        came
    }

    /// Brings an object to the cache with this number; false when none of its objects begins there.
    fn bring_to(&self, number: u16, addr: usize) -> bool {
        let mut came = false;
        self.table.visit(
            number,
            |block| {
                // SAFETY: a cache in the table is whole, and stays as long as it is visited.
                let cache = unsafe { CacheRef::in_block(self, block) };
                let its = cache.number.get() == number && !cache.hooks.constructs;
                if its && cache.check(addr).is_ok() {
                    cache.bring_home(&[addr], true);
                    came = true;
                }
            },
            // SAFETY: the table has let go of it, so no other thread ends it.
            |block| unsafe { CacheRef::in_block(self, block) }.end(),
        );
        came
    }
}
