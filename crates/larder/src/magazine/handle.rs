//! A stock of one's own: two magazines behind `&mut`, no lock, no atomic, no thread-local.

use super::magazines::Magazine;
use super::stock::{Stock, Supply};
use crate::os::OsError;

/// Two magazines of one owner, over the depot of a [`Stock`]. Rounds taken from one handle may be given to another,
/// or to the stock. It can move between threads.
///
/// ```
/// # use std::sync::Arc;
/// # use larder::magazine::{Handle, Stock, StockConfig, Supply};
/// # struct Sevens;
/// # impl Supply for Sevens {
/// #     type Error = ();
/// #     fn fetch(&self, rounds: &mut [usize]) -> Result<usize, ()> { rounds.fill(7); Ok(rounds.len()) }
/// #     fn accept(&self, _: &[usize]) {}
/// # }
/// let stock = Stock::new(Arc::new(larder::os::Linux), StockConfig::default())?;
/// let mut handle = Handle::new(&stock)?;
/// let round = handle.get(&Sevens).unwrap();
/// handle.put(round, &Sevens);
/// # Ok::<(), larder::os::OsError>(())
/// ```
#[derive(Debug)]
pub struct Handle<'s> {
    loaded: Magazine,
    previous: Magazine,
    /// Rounds that a magazine may hold; read from the depot whenever it is visited.
    rounds: usize,
    stock: &'s Stock,
}

impl<'s> Handle<'s> {
    /// A handle with two empty magazines.
    ///
    /// # Errors
    /// When the system has no memory for magazines.
    pub fn new(stock: &'s Stock) -> Result<Self, OsError> {
        let depot = stock.depot();
        let loaded = depot.take_empty()?;
        match depot.take_empty() {
            Ok(previous) => Ok(Self {
                loaded,
                previous,
                rounds: depot.rounds(),
                stock,
            }),
            Err(error) => {
                depot.put(loaded);
                Err(error)
            }
        }
    }

    /// Takes a round from the loaded magazine, and nothing more.
    #[inline]
    pub fn try_get(&mut self) -> Option<usize> {
        self.loaded.pop()
    }

    /// Takes a round: from the loaded magazine, the previous one, the depot or the supply, in that order.
    ///
    /// # Errors
    /// The supply's, after the CPUs' magazines were emptied in vain.
    #[inline]
    pub fn get<S: Supply>(&mut self, supply: &S) -> Result<usize, S::Error> {
        match self.loaded.pop() {
            Some(round) => Ok(round),
            None => self.get_slow(supply),
        }
    }

    /// Gives a round to the loaded magazine, the previous one or the depot.
    #[inline]
    pub fn put<S: Supply>(&mut self, round: usize, supply: &S) {
        if self.loaded.len() < self.rounds {
            // SAFETY: `rounds` comes from the depot, which bounds it by MAX_ROUNDS.
            unsafe { self.loaded.push_unchecked(round) };
        } else {
            self.put_slow(round, supply);
        }
    }

    /// Rounds in this handle.
    #[must_use]
    pub fn len(&self) -> usize {
        self.loaded.len() + self.previous.len()
    }

    /// True when this handle has no round.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[cold]
    fn get_slow<S: Supply>(&mut self, supply: &S) -> Result<usize, S::Error> {
        let depot = self.stock.depot();
        if self.previous.len() == 0 {
            if let Some(full) = depot.take_full() {
                depot.put(core::mem::replace(&mut self.previous, full));
            } else {
                self.rounds = depot.rounds();
                if let Err(error) = self
                    .previous
                    .fill(self.rounds, |rounds| supply.fetch(rounds))
                {
                    // Nothing is out of stock as long as a CPU's magazine has some.
                    self.stock.gather_or_wait();
                    let full = depot.take_full().ok_or(error)?;
                    depot.put(core::mem::replace(&mut self.previous, full));
                }
            }
        }
        core::mem::swap(&mut self.loaded, &mut self.previous);
        match self.loaded.pop() {
            Some(round) => Ok(round),
            None => {
                debug_assert!(false, "a supply that succeeds gives at least one round");
                let mut one = [0];
                supply.fetch(&mut one).map(|_| one[0])
            }
        }
    }

    #[cold]
    fn put_slow<S: Supply>(&mut self, round: usize, supply: &S) {
        let depot = self.stock.depot();
        self.rounds = depot.rounds();
        if self.previous.len() > 0 {
            let Ok(empty) = depot.take_empty() else {
                return supply.accept(&[round]);
            };
            depot.put(core::mem::replace(&mut self.previous, empty));
        }
        core::mem::swap(&mut self.loaded, &mut self.previous);
        // SAFETY: the magazine that was previous is empty.
        unsafe { self.loaded.push_unchecked(round) };
    }
}

impl Drop for Handle<'_> {
    /// Gives both magazines to the depot: constant time, no round is looked at.
    fn drop(&mut self) {
        for magazine in [&self.loaded, &self.previous] {
            // SAFETY: a magazine has no destructor, and this value is never looked at again.
            self.stock.depot().put(unsafe { core::ptr::read(magazine) });
        }
    }
}
