//! Two magazines of one owner: what a [`Handle`](super::Handle) and each size class of a heap have inside.

use super::depot::Depot;
use super::magazines::Magazine;
use super::stock::Stock;
use super::supply::Supply;
use super::{FILL_MASK, WORD};
use crate::os::OsError;

/// The loaded and the previous magazine. All calls with a stock name the same one.
///
/// Each may be [none](Magazine::none): magazines are taken one by one, when they are needed, since an owner that lives
/// shortly may need one only, and every exchange with the depot is an atomic instruction. While the loaded one is none, so
/// is the previous one.
#[derive(Debug)]
pub(crate) struct Pair {
    loaded: Magazine,
    previous: Magazine,
    /// The top of the loaded magazine when it holds as many rounds as it may, which the depot says whenever it is visited.
    /// 0 while it is none.
    full: usize,
}

impl Pair {
    /// A pair without magazines. It looks empty to get and full to put, so neither has to ask.
    pub(crate) const fn none() -> Self {
        Self {
            loaded: Magazine::none(),
            previous: Magazine::none(),
            full: 0,
        }
    }

    /// Whether it has no magazine.
    pub(crate) fn is_none(&self) -> bool {
        self.loaded.is_none()
    }

    /// Loads the previous magazine.
    fn swap(&mut self, rounds: usize) {
        core::mem::swap(&mut self.loaded, &mut self.previous);
        self.full = self.loaded.top_with(rounds);
    }

    /// Takes two empty magazines.
    #[cold]
    pub(crate) fn equip(&mut self, stock: &Stock) -> Result<(), OsError> {
        debug_assert!(self.loaded.is_none(), "a pair is equipped once");
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
        // The last one to go is the first that the next owner gets: it was used last.
        for magazine in [this.previous, this.loaded] {
            if !magazine.is_none() {
                stock.depot().leave(magazine);
            }
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
            // SAFETY: the depot bounds the rounds of a magazine by MAX_ROUNDS, and so the top by its last slot; while there
            // is no magazine `full` is 0, and nothing is below it.
            unsafe { self.loaded.push_unchecked(round) };
        }
        room
    }

    /// Takes rounds from the loaded magazine into the front of `out`, and nothing more; says how many. A copy.
    #[inline]
    pub(crate) fn try_get_many(&mut self, out: &mut [usize]) -> usize {
        self.loaded.pop_many(out)
    }

    /// Gives the first of `rounds` to the loaded magazine, as many as it has room for, and says how many. A copy.
    #[inline]
    pub(crate) fn try_put_many(&mut self, rounds: &[usize]) -> usize {
        let room = self.full.saturating_sub(self.loaded.top()) / WORD;
        let n = room.min(rounds.len());
        if n > 0 {
            // SAFETY: the depot bounds `full` by a magazine's last slot; while there is no magazine it is 0, and there is no
            // room.
            unsafe { self.loaded.push_many_unchecked(&rounds[..n]) };
        }
        n
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

    /// Gives a round to the previous magazine, which is loaded for it, if that is empty; false when it is not, or when there is none.
    #[inline]
    #[must_use]
    pub(crate) fn turn_to_put(&mut self, round: usize) -> bool {
        let empty = !self.previous.is_none() && self.previous.len() == 0;
        if empty {
            self.swap((self.full & FILL_MASK) / WORD);
            // SAFETY: it is empty, and a depot's magazines hold a round at least.
            unsafe { self.loaded.push_unchecked(round) };
        }
        empty
    }

    /// Rounds in both.
    pub(crate) fn len(&self) -> usize {
        self.loaded.len() + self.previous.len()
    }

    /// Loads a magazine from elsewhere in the place of an empty one or of none.
    fn load(&mut self, magazine: Magazine, depot: &Depot) {
        self.full = magazine.top_with(depot.rounds());
        let empty = core::mem::replace(&mut self.loaded, magazine);
        self.keep(empty, depot);
    }

    /// Keeps an empty magazine as the previous one when there is none, for the puts that may come.
    fn keep(&mut self, empty: Magazine, depot: &Depot) {
        debug_assert_eq!(empty.len(), 0);
        if empty.is_none() {
        } else if self.previous.is_none() && !self.loaded.is_none() {
            self.previous = empty;
        } else {
            depot.put(empty);
        }
    }

    /// For a pair without magazines: loads the magazine that an earlier owner of this thread left in the depot, if there is
    /// one. Returns a round of it, and how many rounds there were. One exchange, and nothing is called.
    #[inline]
    pub(crate) fn inherit(&mut self, stock: &Stock) -> Option<(usize, usize)> {
        if !self.loaded.is_none() {
            return None;
        }
        let mut left = stock.depot().take_left_here()?;
        let rounds = left.len();
        self.full = left.top_with(stock.rounds());
        let round = left.pop();
        self.loaded = left;
        Some((round?, rounds))
    }

    /// Takes a round when the loaded magazine has none: from the previous one, the depot or the supply.
    #[cold]
    pub(crate) fn get<S: Supply>(&mut self, stock: &Stock, supply: &S) -> Result<usize, S::Error> {
        if let Some(round) = self.loaded.pop().or_else(|| self.turn()) {
            return Ok(round);
        }
        let depot = stock.depot();
        let magazine = match depot.take_for_owner() {
            Some(full) => full,
            None => {
                // One of this pair's own is empty, if there is one.
                let empty = core::mem::replace(&mut self.previous, Magazine::none());
                let mut magazine = match Some(empty).filter(|m| !m.is_none()) {
                    Some(empty) => empty,
                    None => match depot.spare_empty() {
                        Some(empty) => empty,
                        // Without memory for magazines there is still the supply itself.
                        None => return stock.get_stocked().map_or_else(|| one(supply), Ok),
                    },
                };
                match magazine.fill(depot.rounds(), |rounds| supply.fetch(rounds)) {
                    Ok(()) => magazine,
                    Err(error) => {
                        self.keep(magazine, depot);
                        if S::is_final(&error) {
                            return Err(error);
                        }
                        // Nothing is out of stock as long as a CPU's magazine has some.
                        stock.gather_or_wait();
                        depot.take_for_owner().ok_or(error)?
                    }
                }
            }
        };
        self.load(magazine, depot);
        match self.loaded.pop() {
            Some(round) => Ok(round),
            None => {
                debug_assert!(false, "a supply that succeeds gives at least one round");
                one(supply)
            }
        }
    }

    /// Gives a round when the loaded magazine has no room: to the previous one, or the depot.
    #[cold]
    pub(crate) fn put<S: Supply>(&mut self, round: usize, stock: &Stock, supply: &S) {
        let depot = stock.depot();
        if self.loaded.is_none() {
            match depot.spare_empty() {
                Some(empty) => self.load(empty, depot),
                // Without memory for a magazine the round goes into a magazine of the depot, or to the supply.
                None => return stock.put_into_depot(round, supply),
            }
        } else if self.loaded.len() < depot.rounds() {
            // Magazines have grown meanwhile.
            self.full = self.loaded.top_with(depot.rounds());
        } else {
            if self.previous.is_none() || self.previous.len() > 0 {
                let Some(empty) = depot.spare_empty() else {
                    return supply.accept(&[round]);
                };
                let full = core::mem::replace(&mut self.previous, empty);
                if !full.is_none() {
                    depot.put(full);
                }
            }
            self.swap(depot.rounds());
        }
        // SAFETY: the magazine that was previous is empty, and so are new ones; one that has grown has room.
        unsafe { self.loaded.push_unchecked(round) };
    }
}

/// A round straight from the supply.
fn one<S: Supply>(supply: &S) -> Result<usize, S::Error> {
    let mut round = [0];
    supply.fetch(&mut round).map(|_| round[0])
}
