//! Two magazines of one owner: what a [`Handle`](super::Handle) and each size class of a heap have inside.

use super::magazines::Magazine;
use super::stock::{Stock, Supply};
use super::{FILL_MASK, WORD};
use crate::os::OsError;

/// The loaded and the previous magazine. All calls with a stock name the same one.
#[derive(Debug)]
pub(crate) struct Pair {
    loaded: Magazine,
    previous: Magazine,
    /// The top of the loaded magazine when it holds as many rounds as it may, which the depot says whenever it is visited.
    /// 0 while there are no magazines.
    full: usize,
}

impl Pair {
    /// A pair without magazines, which it takes when it first needs them. It looks empty to get and full to put, so
    /// neither has to ask.
    pub(crate) const fn none() -> Self {
        Self {
            loaded: Magazine::none(),
            previous: Magazine::none(),
            full: 0,
        }
    }

    fn is_equipped(&self) -> bool {
        self.full != 0
    }

    /// Loads the previous magazine.
    fn swap(&mut self, rounds: usize) {
        core::mem::swap(&mut self.loaded, &mut self.previous);
        self.full = self.loaded.top_with(rounds);
    }

    /// Takes two empty magazines.
    #[cold]
    pub(crate) fn equip(&mut self, stock: &Stock) -> Result<(), OsError> {
        debug_assert!(!self.is_equipped(), "a pair is equipped once");
        let depot = stock.depot();
        let loaded = depot.take_empty()?;
        match depot.take_empty() {
            Ok(previous) => {
                *self = Self {
                    full: loaded.top_with(depot.rounds()),
                    loaded,
                    previous,
                };
                Ok(())
            }
            Err(error) => {
                depot.put(loaded);
                Err(error)
            }
        }
    }

    /// Gives both magazines to the depot: constant time, no round is looked at. Afterwards there are none.
    pub(crate) fn give_up(&mut self, stock: &Stock) {
        let this = core::mem::replace(self, Self::none());
        if this.is_equipped() {
            stock.depot().put(this.loaded);
            stock.depot().put(this.previous);
        }
    }

    /// Takes a round from the loaded magazine, and nothing more. 6 instructions.
    #[inline(always)]
    pub(crate) fn try_get(&mut self) -> Option<usize> {
        self.loaded.pop()
    }

    /// Gives a round to the loaded magazine, and nothing more; false when it has no room. 6 instructions.
    #[inline(always)]
    #[must_use]
    pub(crate) fn try_put(&mut self, round: usize) -> bool {
        let room = self.loaded.top() < self.full;
        if room {
            // SAFETY: the depot bounds the rounds of a magazine by MAX_ROUNDS, and so the top by its last slot.
            unsafe { self.loaded.push_unchecked(round) };
        }
        room
    }

    /// Takes a round of the previous magazine, which is loaded for it, when the loaded one has none.
    pub(crate) fn turn(&mut self) -> Option<usize> {
        if self.previous.len() == 0 {
            return None;
        }
        // The low bits of a full top say how many rounds there may be.
        self.swap((self.full & FILL_MASK) / WORD);
        self.loaded.pop()
    }

    /// Rounds in both.
    pub(crate) fn len(&self) -> usize {
        self.loaded.len() + self.previous.len()
    }

    /// Takes a round when the loaded magazine has none: from the previous one, the depot or the supply.
    #[cold]
    pub(crate) fn get<S: Supply>(&mut self, stock: &Stock, supply: &S) -> Result<usize, S::Error> {
        let one = || {
            let mut round = [0];
            supply.fetch(&mut round).map(|_| round[0])
        };
        // Without memory for magazines there is still the supply itself.
        if !self.is_equipped() && self.equip(stock).is_err() {
            return stock.get_stocked().map_or_else(one, Ok);
        }
        let depot = stock.depot();
        if self.previous.len() == 0 {
            if let Some(full) = depot.take_full() {
                depot.put(core::mem::replace(&mut self.previous, full));
            } else {
                let filled = self
                    .previous
                    .fill(depot.rounds(), |rounds| supply.fetch(rounds));
                if let Err(error) = filled {
                    // Nothing is out of stock as long as a CPU's magazine has some.
                    stock.gather_or_wait();
                    let full = depot.take_full().ok_or(error)?;
                    depot.put(core::mem::replace(&mut self.previous, full));
                }
            }
        }
        self.swap(depot.rounds());
        match self.loaded.pop() {
            Some(round) => Ok(round),
            None => {
                debug_assert!(false, "a supply that succeeds gives at least one round");
                one()
            }
        }
    }

    /// Gives a round when the loaded magazine has no room: to the previous one, or the depot.
    #[cold]
    pub(crate) fn put<S: Supply>(&mut self, round: usize, stock: &Stock, supply: &S) {
        if !self.is_equipped() {
            // Without memory for magazines it goes where such rounds go: into another one's magazine, or home.
            if self.equip(stock).is_err() {
                return stock.put_into_depot(round, supply);
            }
        } else {
            let depot = stock.depot();
            if self.previous.len() > 0 {
                let Ok(empty) = depot.take_empty() else {
                    return supply.accept(&[round]);
                };
                depot.put(core::mem::replace(&mut self.previous, empty));
            }
            self.swap(depot.rounds());
        }
        // SAFETY: the magazine that was previous is empty, and so are new ones.
        unsafe { self.loaded.push_unchecked(round) };
    }
}
