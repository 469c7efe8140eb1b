//! What a stock has done.

use core::sync::atomic::Ordering;

use super::Stock;

/// What a stock has done. Read while other threads go on, so the numbers are of slightly different moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StockStats {
    /// Rounds taken from CPUs' magazines.
    pub pops: u64,
    /// Rounds given to CPUs' magazines.
    pub pushes: u64,
    /// Gets that found this CPU's magazines empty.
    pub misses: u64,
    /// Full magazines in the depot, without those (at most 4) that handles left at their end for the next ones.
    pub full_magazines: usize,
    /// Rounds in them.
    pub full_rounds: usize,
    /// Magazines that exist, for all stocks that share them.
    pub magazines: usize,
    /// Rounds that a magazine may hold now.
    pub rounds: usize,
}

impl Stock {
    /// As [`StockStats::full_rounds`].
    pub(crate) fn full_rounds(&self) -> usize {
        self.depot.rounds_in_full()
    }

    /// What it has done so far.
    #[must_use]
    pub(crate) fn stats(&self) -> StockStats {
        let (pops, pushes) = self.cpu_layer.counts();
        StockStats {
            pops,
            pushes,
            misses: self.misses.load(Ordering::Relaxed),
            full_magazines: self.depot.full(),
            full_rounds: self.full_rounds(),
            magazines: self.depot.made(),
            rounds: self.depot.rounds(),
        }
    }
}
