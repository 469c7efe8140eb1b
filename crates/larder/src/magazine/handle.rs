//! A stock of a single owner: two magazines behind `&mut`, no lock, no atomic, no thread-local.

use super::pair::Pair;
use super::stock::Stock;
use super::supply::Supply;
use crate::os::OsError;

/// Two magazines of one owner, over the depot of a [`Stock`]. Rounds taken from one handle may be given to another,
/// or to the stock. It can move between threads.
///
/// ```
/// # use std::sync::Arc;
/// # use larder::magazine::{StockHandle, Stock, StockConfig, Supply};
/// # struct Sevens;
/// # impl Supply for Sevens {
/// #     type Error = ();
/// #     fn fetch(&self, rounds: &mut [usize]) -> Result<usize, ()> { rounds.fill(7); Ok(rounds.len()) }
/// #     fn accept(&self, _: &[usize]) {}
/// # }
/// let stock = Stock::new(Arc::new(larder::os::Linux), StockConfig::default());
/// let mut handle = StockHandle::new(&stock)?;
/// let round = handle.get(&Sevens).unwrap();
/// handle.put(round, &Sevens);
/// # Ok::<(), larder::os::OsError>(())
/// ```
#[derive(Debug)]
pub struct StockHandle<'s> {
    pair: Pair,
    stock: &'s Stock,
}

impl<'s> StockHandle<'s> {
    /// A handle with two empty magazines.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use larder::magazine::{StockHandle, Stock, StockConfig};
    /// let stock = Stock::new(Arc::new(larder::os::Linux), StockConfig::default());
    /// assert!(StockHandle::new(&stock)?.is_empty());
    /// assert!(stock.stats().magazines >= 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the system has no memory for magazines.
    pub fn new(stock: &'s Stock) -> Result<Self, OsError> {
        let mut pair = Pair::none();
        pair.equip(stock)?;
        Ok(Self { pair, stock })
    }

    /// Takes a round from the loaded magazine, and nothing more.
    ///
    /// [`len`](Self::len) shows it.
    #[inline]
    pub fn try_get(&mut self) -> Option<usize> {
        self.pair.try_get()
    }

    /// Takes a round: from the loaded magazine, the previous one, the depot or the supply, in that order.
    ///
    /// [`len`](Self::len) shows it.
    ///
    /// # Errors
    /// The supply's, after the CPUs' magazines were emptied in vain.
    #[inline]
    pub fn get<S: Supply>(&mut self, supply: &S) -> Result<usize, S::Error> {
        match self.pair.try_get() {
            Some(round) => Ok(round),
            None => self.pair.get(self.stock, supply),
        }
    }

    /// Gives a round to the loaded magazine, the previous one or the depot.
    ///
    /// [`len`](Self::len) shows it.
    #[inline]
    pub fn put<S: Supply>(&mut self, round: usize, supply: &S) {
        if !self.pair.try_put(round) {
            self.pair.put(round, self.stock, supply);
        }
    }

    /// Rounds in this handle.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use larder::magazine::{StockHandle, Stock, StockConfig, Supply};
    /// # struct Sevens;
    /// # impl Supply for Sevens {
    /// #     type Error = larder::os::OsError;
    /// #     fn fetch(&self, rounds: &mut [usize]) -> Result<usize, Self::Error> { rounds.fill(7); Ok(rounds.len()) }
    /// #     fn accept(&self, _: &[usize]) {}
    /// # }
    /// # let stock = Stock::new(Arc::new(larder::os::Linux), StockConfig { rounds: 8, ..StockConfig::default() });
    /// let mut handle = StockHandle::new(&stock)?;
    /// assert_eq!(handle.try_get(), None, "it does not ask the supply");
    /// let round = handle.get(&Sevens)?;
    /// assert_eq!(handle.len(), 7, "the rest of a magazine came with it");
    /// assert_eq!(handle.try_get(), Some(7));
    /// handle.put(round, &Sevens);
    /// assert_eq!(handle.len(), 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.pair.len()
    }

    /// True when this handle has no round.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use larder::magazine::{StockHandle, Stock, StockConfig};
    /// let stock = Stock::new(Arc::new(larder::os::Linux), StockConfig::default());
    /// assert!(StockHandle::new(&stock)?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Drop for StockHandle<'_> {
    /// Gives both magazines to the depot: constant time, no round is looked at.
    fn drop(&mut self) {
        self.pair.give_up(self.stock);
    }
}
