//! A stock of a single owner: a magazine behind `&mut`, no lock, no atomic, no thread-local.

use super::own::OwnMagazine;
use super::stock::Stock;
use super::supply::Supply;
use crate::os::OsError;

/// A magazine of one owner, over the depot of a [`Stock`]. Rounds taken from one handle may be given to another,
/// or to the stock. It can move between threads.
#[derive(Debug)]
pub(crate) struct StockHandle<'s> {
    magazine: OwnMagazine,
    stock: &'s Stock,
}

impl<'s> StockHandle<'s> {
    /// A handle with an empty magazine.
    ///
    /// # Errors
    /// When the system has no memory for magazines.
    pub(crate) fn new(stock: &'s Stock) -> Result<Self, OsError> {
        let mut magazine = OwnMagazine::none();
        magazine.equip(stock)?;
        Ok(Self { magazine, stock })
    }

    /// Takes a round from the loaded magazine, and nothing more.
    #[inline]
    pub(crate) fn try_get(&mut self) -> Option<usize> {
        self.magazine.try_get()
    }

    /// Takes a round: from the loaded magazine, the depot or the supply, in that order.
    ///
    /// # Errors
    /// The supply's, after the CPUs' magazines were emptied in vain.
    #[inline]
    pub(crate) fn get<S: Supply>(&mut self, supply: &S) -> Result<usize, S::Error> {
        match self.magazine.try_get() {
            Some(round) => Ok(round),
            None => self
                .magazine
                .get(self.stock, supply, self.stock.owner_rounds()),
        }
    }

    /// Gives a round to the loaded magazine or the depot.
    #[inline]
    pub(crate) fn put<S: Supply>(&mut self, round: usize, supply: &S) {
        if !self.magazine.try_put(round) {
            self.magazine
                .put(round, self.stock, supply, self.stock.owner_rounds());
        }
    }

    /// Rounds in this handle.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.magazine.len()
    }

    /// True when this handle has no round.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Drop for StockHandle<'_> {
    /// Gives the magazine to the depot: constant time, no round is looked at.
    fn drop(&mut self) {
        self.magazine.give_up(self.stock);
    }
}
