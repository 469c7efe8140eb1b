//! What a heap gives back.

use super::Heap;
use super::class::{CLASSES, SIZES};
use crate::magazine::Pair;

impl Heap {
    /// Gives the free objects of its magazines to the depot.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::{Classes, Heap}, objects::Family};
    /// let heap = Heap::new(&Classes::new(&Family::new()?));
    /// let layout = Layout::new::<[u64; 4]>();
    /// let object = heap.alloc(layout)?;
    /// // SAFETY: taken above with this layout, put once.
    /// unsafe { heap.dealloc(object, layout) };
    /// heap.trim();
    /// assert_eq!(heap.stats().stocked_bytes, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn trim(&self) {
        for class in 0..CLASSES {
            self.give_class(class, 0);
        }
    }

    /// Gives the magazines of a class to the depot when they have so many objects.
    pub(super) fn give_class(&self, class: usize, least: usize) {
        if self.pair(class).len() >= least
            && let Some(cache) = self.classes().cache(class)
        {
            let mut pair = core::mem::replace(self.pair(class), Pair::none());
            self.account().give(pair.len() * SIZES[class]);
            pair.give_up(cache.stock());
        }
    }

    /// After an interval of the family, all magazines of the heap go to the depot, as those of the CPUs do: the next
    /// intervals show which of them are needed. Only the heap's owner can do that, so it is done on the paths that are
    /// slow anyway: a heap that is not called keeps what it has.
    ///
    /// And when memory grew somewhere: then those of the classes of which they hold much, see the [module](super::growth).
    ///
    /// Five loads and two comparisons where neither happened.
    #[inline]
    pub(super) fn upkeep_if_due(&self) {
        let now = self.classes().family().intervals();
        if self.account().intervals != now {
            self.account().intervals = now;
            self.trim();
        }
        let now = self.classes().growth().collections();
        if self.account().collections != now {
            self.account().collections = now;
            self.follow();
        }
    }
}
