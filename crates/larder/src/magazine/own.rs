//! The magazine of one owner: what a [`Handle`](super::Handle) and each size class of a heap have inside.

use super::depot::Depot;
use super::magazines::Magazine;
use super::stock::Stock;
use super::supply::Supply;
use super::{MAX_ROUNDS, WORD};
use crate::os::OsError;

/// A loaded magazine that holds as many rounds as its owner says, where there is room for them ([`MAX_ROUNDS`]): as many as two of the
/// depot's is usual ([`Stock::owner_rounds`]). All calls with a stock name the same one.
///
/// Bonwick and Adams keep two magazines, the loaded and the previous one, so that a thread which takes and gives in turn at the edge
/// of one does not go to the depot each time. Here the two are one array: an empty one takes a magazine of the depot's, a full one
/// gives its older half. In between nothing has to be exchanged.
///
/// It may be [none](Magazine::none): a magazine is taken when it is needed.
#[derive(Debug)]
pub(crate) struct OwnMagazine {
    loaded: Magazine,
    /// The top of the loaded magazine when it holds as many rounds as it may, as its owner said when the depot was visited last.
    /// 0 while it is none.
    full: usize,
}

/// Rounds that an owner has at most by default, where a magazine of the depot's has so many.
pub(super) fn most(rounds: usize) -> usize {
    (2 * rounds).min(MAX_ROUNDS)
}

impl OwnMagazine {
    /// Without a magazine. It looks empty to get and full to put, so neither has to ask.
    pub(crate) const fn none() -> Self {
        Self {
            loaded: Magazine::none(),
            full: 0,
        }
    }

    /// Whether it has no magazine.
    pub(crate) fn is_none(&self) -> bool {
        self.loaded.is_none()
    }

    /// Takes an empty magazine.
    #[cold]
    pub(crate) fn equip(&mut self, stock: &Stock) -> Result<(), OsError> {
        debug_assert!(self.loaded.is_none(), "it is equipped once");
        let depot = stock.depot();
        self.load(depot.take_empty()?, depot, stock.owner_rounds());
        Ok(())
    }

    /// Gives the magazine to the depot, where any owner finds it. Afterwards there is none.
    pub(crate) fn give_back(&mut self, stock: &Stock) {
        let this = core::mem::replace(self, Self::none());
        if !this.loaded.is_none() {
            stock.depot().put(this.loaded);
        }
    }

    /// Leaves the magazine in the depot for the thread's next owner: constant time, no round is looked at. Afterwards there is none.
    pub(crate) fn give_up(&mut self, stock: &Stock) {
        let this = core::mem::replace(self, Self::none());
        if !this.loaded.is_none() {
            stock.depot().leave(this.loaded);
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
            // SAFETY: `full` is at most the top of a magazine with MAX_ROUNDS; while there is none it is 0, and nothing is below it.
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
            // SAFETY: as in `try_put`; while there is no magazine there is no room.
            unsafe { self.loaded.push_many_unchecked(&rounds[..n]) };
        }
        n
    }

    /// Rounds in it.
    pub(crate) fn len(&self) -> usize {
        self.loaded.len()
    }

    /// Loads a magazine from elsewhere in the place of an empty one or of none: at most `most` of its rounds, and at least
    /// one.
    fn load(&mut self, mut magazine: Magazine, depot: &Depot, most: usize) {
        limit(&mut magazine, depot, most);
        self.full = magazine.top_with(most);
        let empty = core::mem::replace(&mut self.loaded, magazine);
        debug_assert_eq!(empty.len(), 0);
        if !empty.is_none() {
            depot.put(empty);
        }
    }

    /// Where there is no magazine: loads the magazine that an earlier owner of this thread left in the depot, if there is
    /// one. Returns a round of it, and how many rounds there were. Mostly one exchange, and nothing is called.
    #[inline]
    pub(crate) fn inherit(&mut self, stock: &Stock, most: usize) -> Option<(usize, usize)> {
        if !self.loaded.is_none() {
            return None;
        }
        let mut left = stock.depot().take_left_here()?;
        limit(&mut left, stock.depot(), most);
        let rounds = left.len();
        self.full = left.top_with(most);
        let round = left.pop();
        self.loaded = left;
        Some((round?, rounds))
    }

    /// Takes a round when the loaded magazine has none: from the depot or the supply. From now on it may hold `most`.
    #[cold]
    pub(crate) fn get<S: Supply>(
        &mut self,
        stock: &Stock,
        supply: &S,
        most: usize,
    ) -> Result<usize, S::Error> {
        if let Some(round) = self.loaded.pop() {
            return Ok(round);
        }
        let depot = stock.depot();
        if let Some(magazine) = depot.take_for_owner() {
            self.load(magazine, depot, most);
        } else {
            if self.loaded.is_none() {
                match depot.spare_empty() {
                    Some(empty) => self.load(empty, depot, most),
                    // Without memory for magazines there is still the supply itself.
                    None => return stock.get_stocked().map_or_else(|| one(supply), Ok),
                }
            }
            self.full = self.loaded.top_with(most);
            let filled = self
                .loaded
                .fill(depot.rounds(), |rounds| supply.fetch(rounds));
            if let Err(error) = filled {
                if S::is_final(&error) {
                    return Err(error);
                }
                // Nothing is out of stock as long as a CPU's magazine has some.
                stock.gather_or_wait();
                self.load(depot.take_for_owner().ok_or(error)?, depot, most);
            }
        }
        match self.loaded.pop() {
            Some(round) => Ok(round),
            None => {
                debug_assert!(false, "a supply that succeeds gives at least one round");
                one(supply)
            }
        }
    }

    /// Gives a round when the loaded magazine has no room: where it holds `most` by now, at least one, its older half goes to the depot.
    #[cold]
    pub(crate) fn put<S: Supply>(&mut self, round: usize, stock: &Stock, supply: &S, most: usize) {
        let (depot, most) = (stock.depot(), most.min(MAX_ROUNDS));
        if self.is_none() {
            match depot.spare_empty() {
                Some(empty) => self.load(empty, depot, most),
                // Without memory for a magazine the round goes into a magazine of the depot, or to the supply.
                None => return stock.put_into_depot(round, supply),
            }
        } else if self.len() >= most {
            let half = (self.len() / 2).max(1);
            let Some(mut magazine) = depot.spare_with_room(half) else {
                return supply.accept(&[round]);
            };
            self.loaded.move_oldest(half, &mut magazine);
            depot.put(magazine);
        }
        // It may hold more meanwhile, or less.
        self.full = self.loaded.top_with(most);
        // SAFETY: new magazines are empty, and one that has given half, or has not as many as it may, has room.
        unsafe { self.loaded.push_unchecked(round) };
    }
}

/// Gives the rounds beyond `most` to the depot. One stays in any case, and all do where there is no memory for another magazine.
#[inline]
fn limit(magazine: &mut Magazine, depot: &Depot, most: usize) {
    let over = magazine.len().saturating_sub(most.max(1));
    if over > 0
        && let Some(mut rest) = depot.spare_empty()
    {
        magazine.move_oldest(over, &mut rest);
        depot.put(rest);
    }
}

/// A round straight from the supply.
fn one<S: Supply>(supply: &S) -> Result<usize, S::Error> {
    let mut round = [0];
    supply.fetch(&mut round).map(|_| round[0])
}
