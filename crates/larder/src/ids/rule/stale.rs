//! Entries of a queue that no longer count.

use hashbrown::HashMap;

use crate::ids::IdError;

/// How many of the first entries that each offset has in a queue are stale: the offset was taken by name since.
#[derive(Debug, Default)]
pub(crate) struct Stale {
    counts: HashMap<u64, u32>,
    all: usize,
}

impl Stale {
    /// How many entries are stale.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.all
    }

    pub(crate) fn bytes(&self) -> usize {
        self.counts.allocation_size()
    }

    /// Makes room for so many more offsets.
    pub(crate) fn reserve(&mut self, more: usize) -> Result<(), IdError> {
        self.counts
            .try_reserve(more)
            .map_err(|_| IdError::OutOfMemory)
    }

    /// One more entry of `at` is stale; there is room.
    pub(crate) fn add(&mut self, at: u64) {
        *self.counts.entry(at).or_insert(0) += 1;
        self.all += 1;
    }

    /// Forgets a stale entry of `at`, the first in the queue; false when it has none.
    #[inline]
    pub(crate) fn drop_first(&mut self, at: u64) -> bool {
        self.all != 0 && self.find(at)
    }

    #[cold]
    fn find(&mut self, at: u64) -> bool {
        let Some(count) = self.counts.get_mut(&at) else {
            return false;
        };
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&at);
        }
        self.all -= 1;
        true
    }

    /// Whether a queue of so many entries should be swept.
    pub(crate) fn is_much(&self, len: usize) -> bool {
        self.all > 64 && self.all > len / 2
    }

    /// After a sweep: gives the memory back.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
