//! How dirty blocks are gone over, a part with each call.

use super::key::Key;

/// Calls in which all are gone over.
const CALLS: usize = 30;

/// Where a pass over all dirty blocks is. It is not known since when a block is dirty: whatever is dirty when the pass
/// comes by is written. So a block that is changed all the time is written once in a pass.
#[derive(Debug)]
pub(super) struct Round {
    /// Calls that are left of it.
    left: usize,
    from: Key,
}

/// What one call is to do.
#[derive(Debug)]
pub(super) struct Part {
    /// Where it goes on.
    pub(super) from: Key,
    /// So many blocks, at least.
    pub(super) share: usize,
    left: usize,
}

impl Round {
    pub(super) const fn new() -> Self {
        Self {
            left: 0,
            from: Key::NONE,
        }
    }

    /// One more call, when so many blocks are dirty. The share grows with the blocks that become dirty, so that a thread
    /// that makes blocks dirty ahead of the pass does not keep it from its end: the last call has all that are left.
    pub(super) fn call(&mut self, dirty: usize) -> Part {
        if self.left == 0 {
            (self.left, self.from) = (CALLS, Key(0));
        }
        let share = dirty.div_ceil(self.left);
        self.left -= 1;
        Part {
            from: self.from,
            share,
            left: self.left,
        }
    }

    /// A call has come so far. If there was another call meanwhile, its place counts: that call may be in another pass.
    pub(super) fn came(&mut self, part: &Part, to: Key) {
        if part.left == self.left {
            self.from = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_call_of_a_round_has_all_and_the_next_begins_anew() {
        let mut round = Round::new();
        let mut shares = Vec::new();
        for call in 0..CALLS {
            let part = round.call(60);
            assert_eq!(part.from, Key(call as u64));
            round.came(&part, Key(call as u64 + 1));
            shares.push(part.share);
        }
        assert_eq!((shares[0], shares[28], shares[29]), (2, 30, 60));
        let part = round.call(61);
        assert_eq!((part.from, part.share), (Key(0), 3));
    }

    #[test]
    fn who_was_overtaken_is_not_heard() {
        let mut round = Round::new();
        let slow = round.call(1);
        let fast = round.call(1);
        round.came(&fast, Key(7));
        round.came(&slow, Key(3));
        assert_eq!(round.call(1).from, Key(7));
    }
}
