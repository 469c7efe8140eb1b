//! The pass over all dirty blocks, a portion with each call of `maintain`.

use crate::key::Key;

/// Calls in which all are gone over.
const CALLS: usize = 30;

/// Where a pass over all dirty blocks is. It is not known since when a block is dirty: whatever is dirty when the pass
/// comes by is written. So a block that is changed all the time is written once in a pass.
#[derive(Debug)]
pub(super) struct Pass {
    /// Calls that are left of it.
    left: usize,
    from: Key,
}

/// What one call is to do.
#[derive(Debug)]
pub(crate) struct Portion {
    /// Where it goes on.
    pub(crate) from: Key,
    /// So many blocks, at least.
    pub(crate) share: usize,
    left: usize,
}

impl Pass {
    pub(super) const fn new() -> Self {
        Self {
            left: 0,
            from: Key::NONE,
        }
    }

    /// One more call, when so many blocks are dirty. The share grows with the blocks that become dirty, so that a thread
    /// that makes blocks dirty ahead of the pass does not keep it from its end: the last call has all that are left.
    pub(super) fn begin(&mut self, dirty: usize) -> Portion {
        if self.left == 0 {
            (self.left, self.from) = (CALLS, Key(0));
        }
        let share = dirty.div_ceil(self.left);
        self.left -= 1;
        Portion {
            from: self.from,
            share,
            left: self.left,
        }
    }

    /// A call has come so far. If there was another call meanwhile, its place counts: that call may be in another pass.
    pub(super) fn end(&mut self, portion: &Portion, to: Key) {
        if portion.left == self.left {
            self.from = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_call_of_a_pass_has_all_and_the_next_begins_anew() {
        let mut pass = Pass::new();
        let mut shares = Vec::new();
        for call in 0..CALLS {
            let portion = pass.begin(60);
            assert_eq!(portion.from, Key(call as u64));
            pass.end(&portion, Key(call as u64 + 1));
            shares.push(portion.share);
        }
        assert_eq!((shares[0], shares[28], shares[29]), (2, 30, 60));
        let portion = pass.begin(61);
        assert_eq!((portion.from, portion.share), (Key(0), 3));
    }

    #[test]
    fn a_call_that_was_overtaken_does_not_set_the_place() {
        let mut pass = Pass::new();
        let slow = pass.begin(1);
        let fast = pass.begin(1);
        pass.end(&fast, Key(7));
        pass.end(&slow, Key(3));
        assert_eq!(pass.begin(1).from, Key(7));
    }
}
