//! Pages on the move: a thread that trims, populates or zeroes has pages in hand that it does not mean to keep.
//!
//! Meanwhile the pool looks emptier or fuller than it is to a thread that needs a page. Before such a get fails, it waits
//! for the moving thread, but not for ever: that thread may be descheduled, or stuck in the kernel.

use core::time::Duration;

use crate::os::{fork, turns, wait_turn};

/// Looks at the pool while other threads move pages, before a failure is final.
const LOOKS: u32 = turns(Duration::from_millis(5));

/// How many threads have pages in hand that will come back by themselves. Lives under the lock of the account.
#[derive(Debug, Default)]
pub(super) struct Moves {
    /// Fork generation that the count belongs to: a child has none of its parent's other threads.
    generation: u32,
    count: usize,
}

impl Moves {
    pub(super) fn begin(&mut self) {
        let generation = fork::generation();
        if self.generation != generation {
            *self = Self {
                generation,
                count: 0,
            };
        }
        self.count += 1;
    }

    pub(super) fn end(&mut self) {
        if self.generation == fork::generation() {
            // A signal handler may fork in the middle of a move and its child go on with it: what began in the parent, and
            // is not counted, ends here.
            self.count = self.count.saturating_sub(1);
        }
    }

    pub(super) fn under_way(&self) -> bool {
        self.at_least(1)
    }

    /// Whether at least so many threads have pages in hand.
    pub(super) fn at_least(&self, threads: usize) -> bool {
        self.count >= threads && self.generation == fork::generation()
    }
}

/// How long a caller has waited.
#[derive(Debug, Default)]
pub(super) struct Patience(u32);

impl Patience {
    /// Waits a little; false when it was enough.
    pub(super) fn wait(&mut self) -> bool {
        wait_turn(self.0);
        self.0 += 1;
        self.0 < LOOKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_that_began_in_the_parent_may_end_in_the_child() {
        fork::install();
        let mut moves = Moves {
            generation: fork::generation() - 1,
            count: 1,
        };
        assert!(!moves.under_way());
        moves.begin();
        assert!(moves.under_way());
        moves.end();
        moves.end();
        assert!(!moves.under_way());
        moves.begin();
        assert!(moves.under_way() && !moves.at_least(2));
    }
}
