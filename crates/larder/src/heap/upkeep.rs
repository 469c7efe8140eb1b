//! What a heap gives back by itself.

use super::Heap;

impl Heap {
    /// After an interval of the family's all magazines of the heap go to the depot, as those of the CPUs do: the next
    /// intervals show which of them are needed. Only its owner can do that, so it is done on the paths that are slow anyway: a
    /// heap that nobody calls keeps what it has.
    ///
    /// Three loads and a comparison where no interval has ended.
    #[inline]
    pub(super) fn upkeep_if_due(&self) {
        let now = self.classes().family().intervals();
        if self.account().intervals != now {
            self.account().intervals = now;
            self.trim();
        }
    }
}
