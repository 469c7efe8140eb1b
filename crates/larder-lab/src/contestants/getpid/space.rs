//! Spaces of many ids, for what does not walk a list.

use anyhow::ensure;
use larder::ids::rule::Cyclic;

use super::{Idr, Ours, Pidmap, Random31};

/// Half of a space, in hundredths of a percent.
const HALF: usize = 5000;

/// A space of many ids, which can be brought to any state.
pub trait Space {
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

impl Space for Pidmap {
    fn alloc(&mut self) -> Option<u64> {
        Pidmap::alloc(self)
    }
    fn free(&mut self, id: u64) -> bool {
        Pidmap::free(self, id)
    }
    fn take(&mut self, id: u64) -> bool {
        Pidmap::take(self, id)
    }
    fn take_all(&mut self) -> bool {
        Pidmap::take_all(self);
        true
    }
    fn make_word(&mut self, base: u64, mask: u64) -> bool {
        Pidmap::take_word(self, base, mask);
        true
    }
    fn bytes(&self) -> usize {
        Pidmap::bytes(self)
    }
}

impl Space for Idr {
    fn alloc(&mut self) -> Option<u64> {
        Idr::alloc(self)
    }
    fn free(&mut self, id: u64) -> bool {
        Idr::free(self, id)
    }
    fn take(&mut self, id: u64) -> bool {
        Idr::take(self, id)
    }
    fn take_all(&mut self) -> bool {
        (1..self.end()).all(|id| self.take(id))
    }
    fn bytes(&self) -> usize {
        Idr::bytes(self)
    }
}

impl Space for Ours<Cyclic> {
    fn alloc(&mut self) -> Option<u64> {
        self.0.alloc().ok()
    }
    fn free(&mut self, id: u64) -> bool {
        self.0.free(id).is_ok()
    }
    fn take(&mut self, id: u64) -> bool {
        self.0.alloc_at(id).is_ok()
    }
    fn take_all(&mut self) -> bool {
        u64::try_from(self.0.range().len()).is_ok_and(|all| self.0.alloc_range(all, 1).is_ok())
    }
    // A free is a third of the work of taking a named id.
    const FROM_FULL: bool = true;
    fn make_word(&mut self, base: u64, mask: u64) -> bool {
        let range = self.0.range();
        // 0 and what lies beyond the last one are no ids.
        ones(!mask).all(|bit| !range.contains(base + bit) || self.free(base + bit))
    }
    fn used(&self) -> Option<u64> {
        Some(Ours::used(self))
    }
    fn bytes(&self) -> usize {
        self.0.bytes()
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
    use super::*;

    #[test]
    fn a_fill_has_the_share_that_was_asked_for() {
        let end = 1 << 16;
        for share in [100, 5000, 9900, 9999] {
            let mut space = Ours::with_end(end, Cyclic).unwrap();
            fill(&mut space, &mut Random31::new(3), end, share).unwrap();
            let used = Ours::used(&space) as f64 / (end - 1) as f64;
            assert!((used - share as f64 / 1e4).abs() < 0.02, "{share}: {used}");
        }
    }
}
