//! Spaces of many ids, for algorithms that walk no list.

use anyhow::ensure;
use larder::ids::{Ids, Rule};

use super::{GetPid, Layout, PID_MAX, Random31, Tasks};
use crate::contestants::ids::{IdSource, Pidmap};

/// Half of a space, in hundredths of a percent.
const HALF: usize = 5000;

/// A space of many ids, which can be brought to any state. What walks no list is a [`GetPid`] by it.
pub trait Space {
    /// The same after `last` was handed out.
    #[must_use]
    fn after(self, last: u64) -> Self;
    /// A free id.
    fn alloc(&mut self) -> Option<u64>;
    /// False when the id was not taken.
    fn free(&mut self, id: u64) -> bool;
    /// False when the id was not free.
    fn take(&mut self, id: u64) -> bool;
    /// Takes all ids of a space in which none is taken; false when it could not.
    fn take_all(&mut self) -> bool;
    /// Whether it is cheaper to free half of a full space than to take half of an empty one.
    const FROM_FULL: bool = false;
    /// Of the 64 ids at `base`, all of which are free (taken, if `FROM_FULL`), those of the mask are taken from now on;
    /// false when they are not.
    fn make_word(&mut self, base: u64, mask: u64) -> bool {
        ones(mask).all(|bit| self.take(base + bit))
    }
    /// How many ids it says are taken, if it counts them.
    fn used(&self) -> Option<u64> {
        None
    }
    /// Bytes held.
    fn bytes(&self) -> usize;
}

/// The numbers of the bits that are set.
fn ones(mut mask: u64) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        let bit = u64::from(mask.trailing_zeros());
        // Of an empty mask nothing is left to count down.
        (mask != 0).then(|| {
            mask &= mask - 1;
            bit
        })
    })
}

impl<S: Space> GetPid for S {
    #[inline]
    fn get<L: Layout>(&mut self, _: &Tasks<L>) -> Option<u32> {
        self.alloc().and_then(|id| u32::try_from(id).ok())
    }

    #[inline]
    fn freed(&mut self, pid: u32) {
        // An id that it refuses to take back is found by the list that the workload keeps.
        let _ = self.free(u64::from(pid));
    }

    fn taken(&mut self, pid: u32) {
        let _ = self.take(u64::from(pid));
    }

    fn after(self, last: u32, _: u32) -> Self {
        Space::after(self, u64::from(last))
    }
}

/// Linux's map of the ids of 2002.
#[must_use]
pub fn pidmap() -> Pidmap {
    Pidmap::new(1..u64::from(PID_MAX))
}

impl Space for Pidmap {
    fn after(self, last: u64) -> Self {
        Pidmap::after(self, last)
    }
    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        IdSource::alloc(self)
    }
    #[inline]
    fn free(&mut self, id: u64) -> bool {
        IdSource::free(self, id)
    }
    fn take(&mut self, id: u64) -> bool {
        Pidmap::take(self, id)
    }
    fn take_all(&mut self) -> bool {
        Pidmap::take_all(self);
        true
    }
    fn make_word(&mut self, base: u64, mask: u64) -> bool {
        self.take_word(base, mask) == mask.count_ones()
    }
    fn bytes(&self) -> usize {
        IdSource::bytes(self).unwrap_or_default()
    }
}

/// larder's own ids 1 to `end - 1` under a rule.
///
/// # Errors
/// No memory.
pub fn larder_ids<R: Rule>(end: u64, rule: R) -> anyhow::Result<Ids<R>> {
    Ok(Ids::new(1..end, rule)?)
}

impl<R: Rule> Space for Ids<R> {
    /// The rule goes on from the id handed out last, so it is led there.
    fn after(mut self, last: u64) -> Self {
        let ids: Vec<u64> = (0..last).filter_map(|_| Space::alloc(&mut self)).collect();
        for id in ids {
            Space::free(&mut self, id);
        }
        self
    }
    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        Ids::alloc(self).ok()
    }
    #[inline]
    fn free(&mut self, id: u64) -> bool {
        Ids::free(self, id).is_ok()
    }
    fn take(&mut self, id: u64) -> bool {
        self.alloc_at(id).is_ok()
    }
    fn take_all(&mut self) -> bool {
        u64::try_from(self.range().len()).is_ok_and(|all| self.alloc_range(all, 1).is_ok())
    }
    // A free is a third of the work of taking a named id.
    const FROM_FULL: bool = true;
    fn make_word(&mut self, base: u64, mask: u64) -> bool {
        let range = self.range();
        // 0 and what lies beyond the last one are no ids.
        ones(!mask).all(|bit| !range.contains(base + bit) || Space::free(self, base + bit))
    }
    fn used(&self) -> Option<u64> {
        Some(self.allocated())
    }
    fn bytes(&self) -> usize {
        Ids::bytes(self)
    }
}

/// Takes each id with the chance of one half: 64 dice at once, since four thousand million single ones would take longer
/// than a cell may.
fn halve<S: Space>(space: &mut S, random: &mut Random31, end: u64) -> bool {
    let mut done = !S::FROM_FULL || space.take_all();
    for base in (0..end).step_by(64) {
        // A draw has 31 bits.
        let [a, b, c] = [(); 3].map(|()| u64::from(random.draw()));
        let dice = a << 33 | b << 2 | c >> 29;
        // 0 is no id.
        done &= space.make_word(base, if base == 0 { dice & !1 } else { dice });
    }
    done
}

/// Calls `f` for ids from 1 to `end - 1` in ascending order, each with a chance of `share` ten-thousandths.
fn by_dice(random: &mut Random31, end: u64, share: usize, mut f: impl FnMut(u64)) {
    // How many fail before the next hit has the geometric distribution.
    let miss = (1.0 - share as f64 / 1e4).ln();
    let mut id = 0;
    loop {
        let luck = (f64::from(random.draw()) + 1.0) / 2_147_483_648.0;
        id += 1 + (luck.ln() / miss) as u64;
        if id >= end {
            return;
        }
        f(id);
    }
}

/// Brings an empty space of the ids up to `end` to its share, in hundredths of a percent: each id is taken with that chance.
///
/// # Errors
/// A space that did not come to it: time is worth nothing then.
pub fn fill<S: Space>(
    space: &mut S,
    random: &mut Random31,
    end: u64,
    share: usize,
) -> anyhow::Result<()> {
    let mut done = true;
    if share == HALF {
        done = halve(space, random, end);
    } else if share < HALF {
        by_dice(random, end, share, |id| done &= space.take(id));
    } else {
        done = space.take_all();
        by_dice(random, end, 10_000 - share, |id| done &= space.free(id));
    }
    ensure!(
        done,
        "the space refused to take or free an id on the way to {share} ten-thousandths in use"
    );
    if let Some(used) = space.used() {
        let (all, chance) = ((end - 1) as f64, share as f64 / 1e4);
        // Six deviations of as many dice, and the word at the end.
        let most = 6.0 * (all * chance * (1.0 - chance)).sqrt() + 1.0;
        ensure!(
            (used as f64 - all * chance).abs() <= most,
            "{used} of {all} ids are in use, which are not {share} ten-thousandths"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use larder::ids::rule::Cyclic;

    use super::*;

    #[test]
    fn a_fill_has_the_share_that_was_asked_for() {
        let end = 1 << 16;
        for share in [100, 5000, 9900, 9999] {
            let mut space = larder_ids(end, Cyclic).unwrap();
            fill(&mut space, &mut Random31::new(3), end, share).unwrap();
            let used = space.allocated() as f64 / (end - 1) as f64;
            assert!((used - share as f64 / 1e4).abs() < 0.02, "{share}: {used}");
        }
    }
}
