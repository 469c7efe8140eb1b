//! What goes to the supply before memory grows, whenever an interval ends.

use super::{Stock, Supply};

impl Stock {
    /// Gives the rounds that lie in the depot to the supply, when there may be `least` of them: with fewer it is not worth the
    /// exchanges. What comes meanwhile stays. Returns how many rounds went.
    pub(crate) fn empty_depot<S: Supply>(&self, least: usize, supply: &S) -> usize {
        self.depot.gather_left();
        let full = self.depot.full();
        if full.saturating_mul(self.depot.rounds()) < least {
            return 0;
        }
        self.give_back(full, usize::MAX, supply)
    }
}
