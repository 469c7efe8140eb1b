//! What goes to the supply before memory grows, whenever an interval ends.

use super::{Stock, Supply};

impl Stock {
    /// Begins an interval at once: what lies in the depot now is reaped if the interval does not need it.
    pub(crate) fn begin_interval(&self) {
        self.depot.end_interval();
    }

    /// Rounds that lie in the depot, but for what owners that went left last.
    pub(crate) fn in_depot(&self) -> usize {
        self.depot.rounds_in_full()
    }

    /// Gives the rounds that lie in the depot to the supply, when there may be `least` of them: with fewer it is not worth the
    /// exchanges. What comes meanwhile stays. Returns how many rounds went.
    pub(crate) fn empty_depot<S: Supply>(&self, least: usize, supply: &S) -> usize {
        self.depot.gather_left();
        if self.in_depot() < least {
            return 0;
        }
        self.give_back(self.depot.full(), usize::MAX, supply)
    }
}
