//! Spaces of many ids, for what does not walk a list.

use larder::ids::rule::Cyclic;

use super::{Idr, Ours, Pidmap};

/// A space of many ids, which can be brought to any state.
pub trait Space {
    /// A free id.
    fn alloc(&mut self) -> Option<u64>;
    /// False when the id was not taken.
    fn free(&mut self, id: u64) -> bool;
    /// False when the id was not free.
    fn take(&mut self, id: u64) -> bool;
    /// Takes all ids of a space in which none is taken; false when it could not.
    fn take_all(&mut self) -> bool;
    /// Whether it is cheaper to free half of a full space than to take half of an empty one.
    const FROM_FULL: bool = false;
    /// Of the 64 ids at `base`, all of which are free (taken, if `FROM_FULL`), those of the mask are taken from now on;
    /// false when they are not.
    fn make_word(&mut self, base: u64, mask: u64) -> bool {
        ones(mask).all(|bit| self.take(base + bit))
    }
    /// How many ids it says are taken, if it counts them.
    fn used(&self) -> Option<u64> {
        None
    }
    /// Bytes held.
    fn bytes(&self) -> usize;
}

/// The numbers of the bits that are set.
fn ones(mut mask: u64) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        let bit = u64::from(mask.trailing_zeros());
        // Of an empty mask nothing is left to count down.
        (mask != 0).then(|| {
            mask &= mask - 1;
            bit
        })
    })
}

impl Space for Pidmap {
    fn alloc(&mut self) -> Option<u64> {
        Pidmap::alloc(self)
    }
    fn free(&mut self, id: u64) -> bool {
        Pidmap::free(self, id)
    }
    fn take(&mut self, id: u64) -> bool {
        Pidmap::take(self, id)
    }
    fn take_all(&mut self) -> bool {
        Pidmap::take_all(self);
        true
    }
    fn make_word(&mut self, base: u64, mask: u64) -> bool {
        Pidmap::take_word(self, base, mask);
        true
    }
    fn bytes(&self) -> usize {
        Pidmap::bytes(self)
    }
}

impl Space for Idr {
    fn alloc(&mut self) -> Option<u64> {
        Idr::alloc(self)
    }
    fn free(&mut self, id: u64) -> bool {
        Idr::free(self, id)
    }
    fn take(&mut self, id: u64) -> bool {
        Idr::take(self, id)
    }
    fn take_all(&mut self) -> bool {
        (1..self.end()).all(|id| self.take(id))
    }
    fn bytes(&self) -> usize {
        Idr::bytes(self)
    }
}

impl Space for Ours<Cyclic> {
    fn alloc(&mut self) -> Option<u64> {
        self.0.alloc().ok()
    }
    fn free(&mut self, id: u64) -> bool {
        self.0.free(id).is_ok()
    }
    fn take(&mut self, id: u64) -> bool {
        self.0.alloc_at(id).is_ok()
    }
    fn take_all(&mut self) -> bool {
        u64::try_from(self.0.range().len()).is_ok_and(|all| self.0.alloc_range(all, 1).is_ok())
    }
    // A free is a third of the work of taking a named id.
    const FROM_FULL: bool = true;
    fn make_word(&mut self, base: u64, mask: u64) -> bool {
        let range = self.0.range();
        // 0 and what lies beyond the last one are no ids.
        ones(!mask).all(|bit| !range.contains(base + bit) || self.free(base + bit))
    }
    fn used(&self) -> Option<u64> {
        Some(Ours::used(self))
    }
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}
