//! Sets of identifiers that take turns.

use super::{Order, Rule, Shape};
use crate::ids::IdError;
use crate::ids::map::{Sets, lower, next_loaded};

/// No word begins here.
const NOWHERE: u64 = u64::MAX;

/// Free identifiers are in a queue of at most `K + 1` sets: one from which identifiers are handed out, up to `K - 1` that
/// wait, and one into which they are freed. When the first is used up the next takes its place; when the last holds one in
/// `K` of all that are free it is closed and another is begun. It keeps identifiers from coming back soon at a fraction of
/// the memory of [`Fifo`](super::Fifo).
///
/// The promise: an identifier is not handed out before all those that were free when the epoch of its free began.
/// [`Ids::order`](crate::ids::Ids::order) says how many allocations that is for one that were freed now:
/// [`EpochsOrder::distance`]. When frees and allocations alternate it is at least `free * (K - 1) / K`, give or take
/// the rounding of the sets: half of the free ones for the default of `K = 2`, three quarters for 4. Two bursts can make
/// it short, and then it is what `distance` says: after many frees without an allocation almost all free identifiers are
/// in the last set, and after allocations that use up all other sets there is nothing left but the last. Wrap the rule in
/// [`Rested`](super::Rested) when it must not be short.
///
/// It costs the bits of `K + 2` states for each identifier, and `K + 1` more for 128 of them: 2.03 bits for K = 2, 3.04
/// for K = 4. A set moves up by changing its name, so nothing is rewritten. Operations take constant time but for the search
/// in the set that is next, which looks at one bit per 128 identifiers and at each once in an epoch. Beyond 2^24
/// identifiers each set is a map of its own.
///
/// ```
/// use larder::ids::{Ids, rule::Epochs};
///
/// let mut ids: Ids<Epochs, u8> = Ids::new(0u8..4, Epochs)?;
/// let first = ids.alloc()?;
/// ids.free(first)?;
/// assert_eq!(ids.order().distance(), 3);
/// assert_eq!((ids.alloc()?, ids.alloc()?, ids.alloc()?), (1, 2, 3));
/// assert_eq!(ids.alloc()?, first);
/// # Ok::<(), larder::ids::IdError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Epochs<const K: usize = 2>;

/// The number of sets, `K + 1`, as the type of the structure.
macro_rules! epochs {
    ($($k:literal: $sets:literal),*) => {$(
        impl Rule for Epochs<$k> {
            type Order = EpochsOrder<$sets>;
            const SHAPE: Shape = Shape::InOrder;

            fn order(&self, last: u64) -> Result<EpochsOrder<$sets>, IdError> {
                EpochsOrder::new(last)
            }
        }
    )*};
}

epochs!(1: 2, 2: 3, 3: 4, 4: 5, 5: 6, 6: 7);

/// What keeps [`Epochs`]: offsets in so many sets.
///
/// [`Order`] shows what it can do.
#[derive(Debug)]
pub struct EpochsOrder<const SETS: usize> {
    sets: Sets<SETS>,
    /// How many offsets are in each set, without those that are loaded; 2^64 are 0.
    sizes: [u64; SETS],
    /// The set that is used up now; the ones up to `filled`, in a ring, are next. All others are empty.
    now: usize,
    /// The set into which offsets are freed. Never `now`.
    filled: usize,
    /// How many sets were begun by frees since the last operation that was none.
    begun: usize,
    /// The word that is loaded, or `NOWHERE`, and its offsets of the set that is used up.
    base: u64,
    here: u64,
    /// Below are no more offsets of the set that is used up.
    cursor: u64,
    /// More than 2^64 - 1 cannot be counted.
    taken: u64,
    last: u64,
}

impl<const SETS: usize> EpochsOrder<SETS> {
    fn new(last: u64) -> Result<Self, IdError> {
        let mut sizes = [0; SETS];
        sizes[0] = last.wrapping_add(1);
        Ok(Self {
            sets: Sets::new(last)?,
            sizes,
            now: 0,
            filled: 1,
            begun: 0,
            base: NOWHERE,
            here: 0,
            cursor: 0,
            taken: 0,
            last,
        })
    }

    /// How many allocations will pass at least before an identifier that is freed now can come back.
    ///
    /// ```
    /// use larder::ids::{Ids, rule::Epochs};
    /// let mut ids: Ids<Epochs, u8> = Ids::new(0u8..100, Epochs)?;
    /// ids.alloc()?;
    /// let distance = ids.order().distance();
    /// ids.free(0)?;
    /// for _ in 0..distance {
    ///     assert_ne!(ids.alloc()?, 0);
    /// }
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn distance(&self) -> u64 {
        let all = u128::from(self.last) + 1;
        let free = all - u128::from(self.taken);
        u64::try_from(free - u128::from(self.sizes[self.to_fill()])).unwrap_or(u64::MAX)
    }

    /// The set behind another.
    #[inline]
    fn behind(set: usize) -> usize {
        if set + 1 == SETS { 0 } else { set + 1 }
    }

    /// The set into which the next offset is to be freed: the one behind the last when that has its share of the free
    /// ones. Were a set closed only when all others are used up, one would come to hold all offsets, and the last one
    /// freed could be the next.
    #[inline]
    fn to_fill(&self) -> usize {
        // A caller that frees has taken an offset, so even of 2^64 offsets fewer are free than that.
        let free = self.last.wrapping_sub(self.taken).wrapping_add(1);
        if free == 0 {
            // The queue begins anew.
            return Self::behind(self.now);
        }
        let behind = Self::behind(self.filled);
        let share = self.sizes[self.filled].saturating_mul(SETS as u64 - 1);
        if share >= free && behind != self.now {
            behind
        } else {
            self.filled
        }
    }

    /// Counts an offset that was freed into a set.
    #[inline]
    fn freed(&mut self, set: usize) {
        self.begun += usize::from(set != self.filled);
        self.filled = set;
        self.sizes[set] += 1;
        self.taken -= 1;
    }

    /// Holds a word of the set that is used up, or of the next set that is not empty.
    fn refill(&mut self) -> Result<bool, IdError> {
        for _ in 0..=SETS {
            // A set of 2^64 counts as empty and is not.
            let empty = self.sizes[self.now] == 0 && self.last != u64::MAX;
            if !empty && let Some((base, here)) = self.sets.grab(self.cursor, self.now + 1)? {
                self.base = base;
                self.here = here;
                self.cursor = base.saturating_add(64);
                let size = &mut self.sizes[self.now];
                *size = size.wrapping_sub(u64::from(here.count_ones()));
                return Ok(true);
            }
            debug_assert_eq!(self.sizes[self.now], 0);
            self.now = Self::behind(self.now);
            self.begun = 0;
            if self.now == self.filled {
                self.filled = Self::behind(self.filled);
            }
            self.cursor = 0;
        }
        Ok(false)
    }

    /// Puts what is loaded back into its set.
    fn put_back(&mut self) -> Result<(), IdError> {
        if self.here != 0 {
            self.sets.put_word(self.base, self.here, self.now + 1)?;
            let size = &mut self.sizes[self.now];
            *size = size.wrapping_add(u64::from(self.here.count_ones()));
            self.cursor = self.base;
            self.here = 0;
        }
        self.base = NOWHERE;
        Ok(())
    }

    #[inline]
    fn has(&self, at: u64) -> bool {
        at & !63 == self.base && self.here >> (at % 64) & 1 == 1
    }
}

impl<const SETS: usize> Order for EpochsOrder<SETS> {
    #[inline]
    fn take(&mut self) -> Result<Option<u64>, IdError> {
        if self.here == 0 && !self.refill()? {
            return Ok(None);
        }
        Ok(self.take_quickly())
    }

    #[inline]
    fn take_quickly(&mut self) -> Option<u64> {
        if self.here == 0 || self.taken == u64::MAX {
            return None;
        }
        let at = self.base + u64::from(self.here.trailing_zeros());
        self.here &= self.here - 1;
        self.taken += 1;
        Some(at)
    }

    #[inline]
    fn give_quickly(&mut self, at: u64) -> bool {
        let set = self.to_fill();
        if at > self.last || self.has(at) || !self.sets.put_quickly(at, set + 1) {
            return false;
        }
        self.freed(set);
        true
    }

    /// About 35 instructions for three sets.
    #[inline]
    fn give(&mut self, at: u64) -> Result<bool, IdError> {
        let set = self.to_fill();
        if self.has(at) || !self.sets.put(at, set + 1)? {
            return Ok(false);
        }
        self.freed(set);
        Ok(true)
    }

    fn take_back(&mut self, at: u64) -> Result<(), IdError> {
        let sizes = &mut self.sizes;
        self.sets
            .remove(at, at, |set, count| sizes[set - 1] -= count)?;
        self.taken += 1;
        // A set that was begun for nothing is not begun.
        while self.begun > 0 && self.sizes[self.filled] == 0 {
            let before = self.filled.checked_sub(1).unwrap_or(SETS - 1);
            if before == self.now {
                break;
            }
            self.filled = before;
            self.begun -= 1;
        }
        Ok(())
    }

    #[inline]
    fn is_taken(&self, at: u64) -> bool {
        self.sets.set_of(at) == 0 && !self.has(at)
    }

    fn last(&self) -> u64 {
        self.last
    }

    /// Takes `first..=last`, all of which are free.
    fn take_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        let full = IdError::Full {
            allocated: self.taken,
        };
        let count = (last - first).checked_add(1);
        if count.is_none_or(|count| self.taken.checked_add(count).is_none()) {
            return Err(full);
        }
        self.put_back()?;
        let (sizes, taken) = (&mut self.sizes, &mut self.taken);
        self.sets.remove(first, last, |set, count| {
            sizes[set - 1] = sizes[set - 1].wrapping_sub(count);
            *taken += count;
        })?;
        self.begun = 0;
        Ok(())
    }

    fn first_taken(&self, first: u64, last: u64) -> Option<u64> {
        let mut at = self.sets.first(first, last, false)?;
        while self.has(at) {
            if at == last {
                return None;
            }
            at = self.sets.first(at + 1, last, false)?;
        }
        Some(at)
    }

    fn next_free(&self, from: u64) -> Option<u64> {
        if from > self.last {
            return None;
        }
        lower(
            self.sets.first(from, self.last, true),
            next_loaded(self.base, self.here, from),
        )
    }

    fn taken(&self) -> u64 {
        self.taken
    }

    fn bytes(&self) -> usize {
        self.sets.bytes()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    /// The shortest distance between the free of an offset and its next use, while frees of random ones and
    /// allocations alternate, right from a fresh start.
    fn shortest<const SETS: usize>(all: u64, live: u64) -> u64 {
        let mut order = EpochsOrder::<SETS>::new(all - 1).unwrap();
        let mut held: Vec<u64> = (0..live).map(|_| order.take().unwrap().unwrap()).collect();
        let mut freed_at = vec![None; all as usize];
        let (mut shortest, mut random) = (u64::MAX, 1u64);
        for turn in 0..20 * all {
            random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            let slot = (random >> 33) as usize % held.len();
            assert!(order.give(held[slot]).unwrap());
            freed_at[held[slot] as usize] = Some(turn);
            let promised = order.distance();
            let at = order.take().unwrap().unwrap();
            if let Some(freed) = freed_at[at as usize] {
                shortest = shortest.min(turn - freed);
            }
            assert!(promised <= all);
            held[slot] = at;
        }
        shortest
    }

    #[test]
    fn the_distance_is_kept_from_the_first_identifier_on() {
        for (all, live) in [(8000, 1000), (8000, 7900), (1000, 1), (100, 50)] {
            let free = all - live;
            // A set is closed by the free that fills it, hence the one less.
            assert!(
                shortest::<3>(all, live) + 2 >= free / 2,
                "K = 2, {free} free"
            );
            assert!(
                shortest::<5>(all, live) + 2 >= free * 3 / 4,
                "K = 4, {free} free: {}",
                shortest::<5>(all, live)
            );
        }
    }
}
