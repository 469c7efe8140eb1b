//! A stock of a single owner: two magazines behind `&mut`, no lock, no atomic, no thread-local.

use super::pair::Pair;
use super::stock::Stock;
use super::supply::Supply;
use crate::os::OsError;

/// Two magazines of one owner, over the depot of a [`Stock`]. Rounds taken from one handle may be given to another,
/// or to the stock. It can move between threads.
#[derive(Debug)]
pub(crate) struct StockHandle<'s> {
    pair: Pair,
    stock: &'s Stock,
}

impl<'s> StockHandle<'s> {
    /// A handle with two empty magazines.
    ///
    /// # Errors
    /// When the system has no memory for magazines.
    pub(crate) fn new(stock: &'s Stock) -> Result<Self, OsError> {
        let mut pair = Pair::none();
        pair.equip(stock)?;
        Ok(Self { pair, stock })
    }

    /// Takes a round from the loaded magazine, and nothing more.
    #[inline]
    pub(crate) fn try_get(&mut self) -> Option<usize> {
        self.pair.try_get()
    }

    /// Takes a round: from the loaded magazine, the previous one, the depot or the supply, in that order.
    ///
    /// # Errors
    /// The supply's, after the CPUs' magazines were emptied in vain.
    #[inline]
    pub(crate) fn get<S: Supply>(&mut self, supply: &S) -> Result<usize, S::Error> {
        match self.pair.try_get() {
            Some(round) => Ok(round),
            None => self.pair.get(self.stock, supply),
        }
    }

    /// Gives a round to the loaded magazine, the previous one or the depot.
    #[inline]
    pub(crate) fn put<S: Supply>(&mut self, round: usize, supply: &S) {
        if !self.pair.try_put(round) {
            self.pair.put(round, self.stock, supply);
        }
    }

    /// Rounds in this handle.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.pair.len()
    }

    /// True when this handle has no round.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Drop for StockHandle<'_> {
    /// Gives both magazines to the depot: constant time, no round is looked at.
    fn drop(&mut self) {
        self.pair.give_up(self.stock);
    }
}
