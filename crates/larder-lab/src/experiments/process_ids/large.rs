//! Spaces of 22 and 32 bits, for what does not walk a list.

use std::collections::HashSet;

use anyhow::{bail, ensure};
use larder::ids::Ids;
use larder::ids::rule::Cyclic;

use crate::contestants::getpid::{Idr, Pidmap, Random31};
use crate::contestants::timing::{ns_per_op, opaque, thread_cpu_ns};
use crate::measure::Contestant;
use crate::model::{Measures, Params};

use super::timed::clock_cost;

/// Frees and allocations in one go.
const BATCH: usize = 256;
/// Batches that are timed.
const BATCHES: usize = 100;

/// Half of a space, in hundredths of a percent.
const HALF: usize = 5000;

/// Shares of a space in use, in hundredths of a percent.
pub(super) const LEVELS: [i64; 4] = [100, 5000, 9900, 9999];

/// What has no cell in large spaces, and why.
pub(super) const LEFT_OUT: [(&str, &str); 2] = [
    (
        "the algorithms that walk a list, in large spaces",
        "algo-0, algo-1, algo-2 and their kin at 2^22 and 2^32: each search walks every task, \
         and the tasks alone would be 3.5 GB at half of 2^22; the list is the reason, not the map",
    ),
    (
        "idr at 2^32, and the crates in large spaces",
        "the tree has a pointer for each id, tens of GB; the crates are in `larder measure id-space`, \
         groups cyclic-4m and sparse, each in the form in which it can be set up",
    ),
];

/// A space of many ids.
trait Space {
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
    fn bytes(&self) -> usize;
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

/// The tree, and one more than its largest id.
struct Tree(Idr, u64);

impl Space for Tree {
    fn alloc(&mut self) -> Option<u64> {
        self.0.alloc()
    }
    fn free(&mut self, id: u64) -> bool {
        self.0.free(id)
    }
    fn take(&mut self, id: u64) -> bool {
        self.0.take(id)
    }
    fn take_all(&mut self) -> bool {
        (1..self.1).all(|id| self.take(id))
    }
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

struct Ours(Ids<Cyclic>);

impl Space for Ours {
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
        Some(self.0.allocated())
    }
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

struct Large(&'static str);

/// The contestants.
pub(super) fn all() -> Vec<Box<dyn Contestant>> {
    ["large-pidmap", "large-idr", "large-larder"]
        .map(|name| Box::new(Large(name)) as Box<dyn Contestant>)
        .into()
}

impl Contestant for Large {
    fn name(&self) -> &'static str {
        self.0
    }

    fn about(&self) -> &'static str {
        "256 random ids freed and as many allocated, in a space of 2^bits ids of which a share is in use"
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        let bits = params.count("bits")?;
        ensure!(
            (8..=32).contains(&bits),
            "bits is {bits}; it is from 8 to 32"
        );
        let share = params.count("used")?;
        ensure!(
            share <= 9999,
            "used is {share}; it is in hundredths of a percent, up to 9999"
        );
        let end = 1u64 << bits;
        match self.0 {
            "large-pidmap" => churned(Pidmap::with_end(end), end, share),
            "large-idr" => {
                ensure!(
                    bits <= 26,
                    "the tree would need tens of GB for 2^{bits} ids"
                );
                churned(Tree(Idr::with_end(end), end), end, share)
            }
            "large-larder" => churned(Ours(Ids::new(1..end, Cyclic)?), end, share),
            other => bail!("no space is called {other}"),
        }
    }
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

/// Brings an empty space to its share: each id is taken with that chance. Time is worth nothing if this went wrong.
fn fill<S: Space>(
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

/// Brings a space to its share and churns: ids that are drawn at random are freed, and as many allocated.
fn churned(mut space: impl Space, end: u64, share: usize) -> anyhow::Result<Measures> {
    let mut random = Random31::new(11);
    fill(&mut space, &mut random, end, share)?;
    let used = end / 10_000 * share as u64;
    // A small space has not as many in use.
    let batches = BATCHES.min(used as usize / (2 * BATCH)).max(1);
    let mut victims = victims(&mut space, &mut random, end, batches * BATCH)?;
    let reading = clock_cost();
    let (mut alloc_ns, mut free_ns) = (0, 0);
    for batch in victims.chunks_exact_mut(BATCH) {
        let clock = thread_cpu_ns();
        let freed = batch.iter().filter(|id| space.free(**id)).count();
        free_ns += (thread_cpu_ns() - clock).saturating_sub(reading);
        ensure!(freed == BATCH, "an id in use was not there to be freed");
        let clock = thread_cpu_ns();
        for slot in batch.iter_mut() {
            let Some(id) = space.alloc() else {
                bail!("no id found although some are free");
            };
            *slot = opaque(id);
        }
        alloc_ns += (thread_cpu_ns() - clock).saturating_sub(reading);
        batch.sort_unstable();
        ensure!(
            batch.windows(2).all(|w| w[0] != w[1]),
            "an id was handed out twice"
        );
    }
    let pairs = (BATCH * batches) as u64;
    Ok(Measures::new()
        .with("ns_per_alloc", ns_per_op(alloc_ns.max(1), pairs))
        .with("ns_per_free", ns_per_op(free_ns.max(1), pairs))
        .with("bits_per_id", space.bytes() as f64 * 8.0 / end as f64))
}

/// Ids in use to be freed in all batches, none of them twice. All are found before the clock starts, so that most have left
/// the caches when their turn comes.
fn victims(
    space: &mut impl Space,
    random: &mut Random31,
    end: u64,
    wanted: usize,
) -> anyhow::Result<Vec<u64>> {
    let mut seen = HashSet::new();
    let mut victims = Vec::with_capacity(wanted);
    for _ in 0..1000 * wanted {
        if victims.len() == wanted {
            return Ok(victims);
        }
        let wide = u64::from(random.draw()) << 31 | u64::from(random.draw());
        let id = 1 + wide % (end - 1);
        // Freed and taken again: that says whether it is in use.
        if !seen.contains(&id) && space.free(id) {
            ensure!(
                space.take(id),
                "id {id} was freed and could not be taken again"
            );
            seen.insert(id);
            victims.push(id);
        }
    }
    bail!("too few ids are in use to free {wanted} of them")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A space that refuses every id of a kind.
    struct Deaf(Ours, u64);

    impl Space for Deaf {
        fn alloc(&mut self) -> Option<u64> {
            self.0.alloc()
        }
        fn free(&mut self, id: u64) -> bool {
            self.0.free(id)
        }
        fn take(&mut self, id: u64) -> bool {
            !id.is_multiple_of(self.1) && self.0.take(id)
        }
        fn take_all(&mut self) -> bool {
            (1..=self.0.0.range().last()).for_each(|id| {
                self.take(id);
            });
            // As if nothing were wrong.
            true
        }
        fn used(&self) -> Option<u64> {
            self.0.used()
        }
        fn bytes(&self) -> usize {
            0
        }
    }

    fn ours(end: u64) -> Ours {
        Ours(Ids::new(1..end, Cyclic).unwrap())
    }

    #[test]
    fn a_space_that_is_not_filled_is_not_timed() {
        let end = 1 << 14;
        for share in [1000, 5000, 9900] {
            assert!(churned(ours(end), end, share).is_ok(), "{share}");
            let error = churned(Deaf(ours(end), 3), end, share).unwrap_err();
            assert!(error.to_string().contains("ten-thousandths"), "{error}");
        }
    }

    #[test]
    fn a_fill_has_the_share_that_was_asked_for() {
        let end = 1 << 16;
        for share in [100, 5000, 9900, 9999] {
            let mut space = ours(end);
            fill(&mut space, &mut Random31::new(3), end, share).unwrap();
            let used = space.0.allocated() as f64 / (end - 1) as f64;
            assert!((used - share as f64 / 1e4).abs() < 0.02, "{share}: {used}");
        }
    }
}
