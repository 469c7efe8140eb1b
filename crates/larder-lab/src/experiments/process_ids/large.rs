//! Spaces of 22 and 32 bits, for algorithms that walk no list.

use std::collections::HashSet;

use anyhow::{bail, ensure};
use larder::ids::rule::Cyclic;

use crate::contestants::getpid::{Idr, Random31, Space, fill, larder_ids};
use crate::contestants::ids::Pidmap;
use crate::contestants::timing::{ns_per_op, opaque, thread_cpu_ns};
use crate::frame::bench;
use crate::measure::Contestant;
use crate::model::{Measures, Params};

use super::timed::clock_cost;

/// Frees and allocations in one go.
const BATCH: usize = 256;
/// Batches that are timed.
const BATCHES: usize = 100;

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

/// The contestants.
pub(super) fn all() -> Vec<Box<dyn Contestant>> {
    type Run = fn(u64, usize) -> anyhow::Result<Measures>;
    let runs: [(_, Run); 3] = [
        ("large-pidmap", |end, share| {
            churned(Pidmap::new(1..end), end, share)
        }),
        ("large-idr", |end, share| {
            ensure!(
                end <= 1 << 26,
                "the tree would need tens of GB for {end} ids"
            );
            churned(Idr::with_end(end), end, share)
        }),
        ("large-larder", |end, share| {
            churned(larder_ids(end, Cyclic)?, end, share)
        }),
    ];
    let about = "256 random ids freed and as many allocated, in a space of 2^bits ids of which a share is in use";
    runs.map(|(name, run)| bench(name, about, move |params| in_bounds(params, run)))
        .into()
}

fn in_bounds(
    params: &Params,
    run: impl Fn(u64, usize) -> anyhow::Result<Measures>,
) -> anyhow::Result<Measures> {
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
    run(1u64 << bits, share)
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
    use larder::ids::Ids;

    use super::*;

    /// A space that refuses every id of a kind.
    struct Deaf(Ids<Cyclic>, u64, u64);

    impl Space for Deaf {
        fn after(self, _: u64) -> Self {
            self
        }
        fn alloc(&mut self) -> Option<u64> {
            self.0.alloc().ok()
        }
        fn free(&mut self, id: u64) -> bool {
            self.0.free(id).is_ok()
        }
        fn take(&mut self, id: u64) -> bool {
            !id.is_multiple_of(self.1) && Space::take(&mut self.0, id)
        }
        fn take_all(&mut self) -> bool {
            (1..self.2).for_each(|id| {
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

    #[test]
    fn a_space_that_is_not_filled_is_not_timed() {
        let end = 1 << 14;
        let ours = || larder_ids(end, Cyclic).unwrap();
        for share in [1000, 5000, 9900] {
            assert!(churned(ours(), end, share).is_ok(), "{share}");
            let error = churned(Deaf(ours(), 3, end), end, share).unwrap_err();
            assert!(error.to_string().contains("ten-thousandths"), "{error}");
        }
    }
}
