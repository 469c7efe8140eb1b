//! What a rule remembers of evicted blocks.

use super::bits::Bits;
use super::{PolicyError, Shadow};

/// Low bits of a shadow, which say in which list its ghost is.
const LIST_BITS: u32 = 2;
/// Departures that a list spans for each ghost that it may have, including those that came back or are forgotten.
const SPAN: usize = 8;
/// And no fewer than this.
const LEAST_SPAN: usize = 1024;

/// Ghosts in `N` lists, each in the order in which its blocks left. A ghost goes when its block comes back, or as the oldest of
/// its list. A shadow is the number of a departure, so one bit for each of the last departures is all that is kept: it says
/// that the ghost is gone. That is a byte for each ghost that a list may have.
///
/// A ghost is also forgotten when 8 times as many departures as the list may have ghosts (rounded up to a power of two, 1024 at
/// least) have come after it.
#[derive(Debug)]
pub(super) struct Ghosts<const N: usize> {
    lists: [Departures; N],
}

#[derive(Debug, Default)]
struct Departures {
    /// By departure: the ghost is gone.
    gone: Bits,
    /// The number of the next departure.
    next: u64,
    /// All before this are gone.
    oldest: u64,
    /// Ghosts left.
    len: usize,
}

impl Departures {
    #[inline]
    fn add(&mut self) -> u64 {
        if self.next - self.oldest == self.gone.len() {
            self.forget_oldest(); // it is older than its list can tell
        }
        self.gone.clear(self.next);
        self.next += 1;
        self.len += 1;
        self.next - 1
    }

    #[inline]
    fn take(&mut self, departure: u64) -> bool {
        if departure < self.oldest || departure >= self.next {
            return false;
        }
        let there = !self.gone.get(departure);
        self.gone.set(departure);
        self.len -= usize::from(there);
        if departure == self.oldest {
            self.pass_gone();
        }
        there
    }

    /// Moves the old end up to a ghost, or to the new end.
    #[inline]
    fn pass_gone(&mut self) {
        while self.oldest < self.next && self.gone.get(self.oldest) {
            self.oldest += 1;
        }
    }

    #[inline]
    fn forget_oldest(&mut self) {
        if self.len > 0 {
            self.oldest += 1;
            self.len -= 1;
            self.pass_gone();
        }
    }

    fn grow(&mut self, most: usize) -> Result<(), PolicyError> {
        let span = most.saturating_mul(SPAN).max(LEAST_SPAN);
        if span as u64 <= self.gone.len() {
            return Ok(());
        }
        let mut wider = Bits::new(span)?;
        for departure in self.oldest..self.next {
            if self.gone.get(departure) {
                wider.set(departure);
            }
        }
        self.gone = wider;
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let live = (self.oldest..self.next).filter(|&at| !self.gone.get(at));
        if self.next - self.oldest > self.gone.len() || live.count() != self.len {
            return Err(format!("ghosts: not {} are left", self.len));
        }
        if self.oldest < self.next && self.gone.get(self.oldest) {
            return Err("ghosts: the oldest is gone".to_owned());
        }
        Ok(())
    }
}

impl<const N: usize> Ghosts<N> {
    /// Lists of up to `most` ghosts each.
    pub(super) fn new(most: usize) -> Result<Self, PolicyError> {
        const { assert!(N <= 1 << LIST_BITS) };
        let mut ghosts = Self {
            lists: core::array::from_fn(|_| Departures::default()),
        };
        ghosts.grow(most)?;
        Ok(ghosts)
    }

    /// Makes room for this many in each list. The ghosts stay.
    pub(super) fn grow(&mut self, most: usize) -> Result<(), PolicyError> {
        self.lists.iter_mut().try_for_each(|list| list.grow(most))
    }

    pub(super) fn bytes(&self) -> usize {
        self.lists.iter().map(|list| list.gone.bytes()).sum()
    }

    #[inline]
    pub(super) fn len(&self, list: usize) -> usize {
        self.lists[list].len
    }

    /// Ghosts in all lists.
    #[inline]
    pub(super) fn total(&self) -> usize {
        self.lists.iter().map(|list| list.len).sum()
    }

    /// A new ghost, the newest of its list.
    #[inline]
    pub(super) fn add(&mut self, list: usize) -> Shadow {
        Shadow::new(self.lists[list].add() << LIST_BITS | list as u64)
    }

    /// Forgets the ghost that a shadow names; returns its list. Any other shadow finds nothing.
    #[inline]
    pub(super) fn take(&mut self, shadow: Option<Shadow>) -> Option<usize> {
        let shadow = shadow?.get();
        let list = (shadow & ((1 << LIST_BITS) - 1)) as usize;
        let there = self.lists.get_mut(list)?.take(shadow >> LIST_BITS);
        there.then_some(list)
    }

    /// The same for a shadow of which only the low `bits` are left.
    pub(super) fn take_short(&mut self, shadow: u64, bits: u32) -> Option<usize> {
        let (list, mask) = (
            shadow & ((1 << LIST_BITS) - 1),
            (1 << (bits - LIST_BITS)) - 1,
        );
        let oldest = self.lists.get(list as usize)?.oldest;
        let after = (shadow >> LIST_BITS).wrapping_sub(oldest) & mask;
        self.take(Some(Shadow::new((oldest + after) << LIST_BITS | list)))
    }

    /// Forgets the oldest ghost of a list, if there is one.
    #[inline]
    pub(super) fn forget_oldest(&mut self, list: usize) {
        self.lists[list].forget_oldest();
    }

    /// Forgets the oldest ghosts of a list until this many are left.
    #[inline]
    pub(super) fn keep(&mut self, list: usize, most: usize) {
        while self.lists[list].len > most {
            self.lists[list].forget_oldest();
        }
    }

    /// Forgets the ghosts of a list whose numbers are below that of the oldest ghost of another.
    pub(super) fn forget_before(&mut self, list: usize, other: usize) {
        let before = self.lists[other].oldest;
        while self.lists[list].len > 0 && self.lists[list].oldest < before {
            self.lists[list].forget_oldest();
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.lists.iter().try_for_each(Departures::check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ghost_is_found_once_and_in_its_list() {
        let mut ghosts = Ghosts::<2>::new(3).unwrap();
        let (a, b) = (ghosts.add(0), ghosts.add(1));
        assert_eq!((ghosts.len(0), ghosts.len(1)), (1, 1));
        assert_eq!(ghosts.take(Some(b)), Some(1));
        assert_eq!(ghosts.take(Some(b)), None);
        let c = ghosts.add(1);
        assert_eq!(ghosts.take(Some(b)), None);
        ghosts.forget_oldest(0);
        assert_eq!(
            (ghosts.take(Some(a)), ghosts.take(Some(c))),
            (None, Some(1))
        );
        assert_eq!(ghosts.take(None), None);
        ghosts.forget_oldest(0);
        assert_eq!(ghosts.total(), 0);
        ghosts.check().unwrap();
    }

    #[test]
    fn the_oldest_goes_though_younger_ones_went_before() {
        let mut ghosts = Ghosts::<1>::new(4).unwrap();
        let [a, b, c, d] = [(); 4].map(|()| Some(ghosts.add(0)));
        assert!(ghosts.take(b).is_some() && ghosts.take(c).is_some());
        ghosts.keep(0, 1);
        assert_eq!((ghosts.take(a), ghosts.take(d)), (None, Some(0)));
        ghosts.check().unwrap();
    }

    #[test]
    fn any_word_that_is_no_shadow_finds_nothing() {
        let mut ghosts = Ghosts::<1>::new(2).unwrap();
        ghosts.add(0);
        for bits in [u64::MAX, 5, 1, 4, 7 << 40] {
            assert_eq!(ghosts.take(Some(Shadow::new(bits))), None, "{bits:x}");
        }
        ghosts.check().unwrap();
    }

    #[test]
    fn a_ghost_that_outlives_the_span_of_its_list_is_forgotten() {
        let mut ghosts = Ghosts::<1>::new(2).unwrap();
        let (old, young) = (ghosts.add(0), ghosts.add(0));
        for _ in 2..LEAST_SPAN {
            let shadow = ghosts.add(0);
            assert!(ghosts.take(Some(shadow)).is_some());
        }
        assert_eq!(ghosts.len(0), 2);
        ghosts.add(0);
        ghosts.check().unwrap();
        assert_eq!(
            (ghosts.take(Some(old)), ghosts.take(Some(young))),
            (None, Some(0))
        );
    }

    #[test]
    fn ghosts_stay_when_their_list_grows() {
        let mut ghosts = Ghosts::<1>::new(1).unwrap();
        let shadows: Vec<Shadow> = (0..1500).map(|_| ghosts.add(0)).collect();
        assert!(ghosts.take(Some(shadows[1000])).is_some());
        ghosts.grow(5000).unwrap();
        ghosts.check().unwrap();
        for (at, &shadow) in shadows.iter().enumerate() {
            let expected = at >= 1500 - LEAST_SPAN && at != 1000;
            assert_eq!(ghosts.take(Some(shadow)).is_some(), expected, "{at}");
        }
    }
}
