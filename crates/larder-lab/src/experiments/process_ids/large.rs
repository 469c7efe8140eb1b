//! Spaces of 22 and 32 bits, for what does not walk a list.

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

/// Shares of a space in use, in hundredths of a percent.
pub(super) const LEVELS: [i64; 4] = [100, 5000, 9900, 9999];

/// What the list-walking algorithms are refused for.
pub(super) const REFUSED: &str = "algo-0, algo-1, algo-2 and their kin at 2^22 and 2^32: each search walks every task, \
    and the tasks alone would be 3.5 GB at half of 2^22; the list is the reason, not the map";

/// A space of many ids.
trait Space {
    fn alloc(&mut self) -> Option<u64>;
    fn free(&mut self, id: u64);
    fn take(&mut self, id: u64);
    fn bytes(&self) -> usize;
}

impl Space for Pidmap {
    fn alloc(&mut self) -> Option<u64> {
        Pidmap::alloc(self)
    }
    fn free(&mut self, id: u64) {
        Pidmap::free(self, id);
    }
    fn take(&mut self, id: u64) {
        Pidmap::take(self, id);
    }
    fn bytes(&self) -> usize {
        Pidmap::bytes(self)
    }
}

impl Space for Idr {
    fn alloc(&mut self) -> Option<u64> {
        Idr::alloc(self)
    }
    fn free(&mut self, id: u64) {
        Idr::free(self, id);
    }
    fn take(&mut self, id: u64) {
        Idr::take(self, id);
    }
    fn bytes(&self) -> usize {
        Idr::bytes(self)
    }
}

struct Ours(Ids<Cyclic>);

impl Space for Ours {
    fn alloc(&mut self) -> Option<u64> {
        self.0.alloc().ok()
    }
    fn free(&mut self, id: u64) {
        let _ = self.0.free(id);
    }
    fn take(&mut self, id: u64) {
        let _ = self.0.alloc_at(id);
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
                churned(Idr::with_end(end), end, share)
            }
            "large-larder" => churned(Ours(Ids::new(1..end, Cyclic)?), end, share),
            other => bail!("no space is called {other}"),
        }
    }
}

/// Takes ids in ascending order, each by a throw of the dice, and churns.
fn churned(mut space: impl Space, end: u64, share: usize) -> anyhow::Result<Measures> {
    let mut random = Random31::new(11);
    let mut live = Vec::with_capacity((end as usize / 10_000 + 1) * (share + 1));
    for id in 1..end {
        if (random.draw() >> 8) % 10_000 < share as u32 {
            space.take(id);
            live.push(id);
        }
    }
    ensure!(
        live.len() > BATCH,
        "too few ids in use to free {BATCH} of them"
    );
    let reading = clock_cost();
    let (mut alloc_ns, mut free_ns) = (0, 0);
    let mut freed = Vec::with_capacity(BATCH);
    for _ in 0..BATCHES {
        freed.clear();
        for _ in 0..BATCH {
            let wide = u64::from(random.draw()) << 31 | u64::from(random.draw());
            freed.push(live.swap_remove((wide % live.len() as u64) as usize));
        }
        let clock = thread_cpu_ns();
        for id in &freed {
            space.free(*id);
        }
        free_ns += (thread_cpu_ns() - clock).saturating_sub(reading);
        let clock = thread_cpu_ns();
        for slot in &mut freed {
            let Some(id) = space.alloc() else {
                bail!("no id found although some are free");
            };
            *slot = opaque(id);
        }
        alloc_ns += (thread_cpu_ns() - clock).saturating_sub(reading);
        live.extend_from_slice(&freed);
    }
    let pairs = (BATCH * BATCHES) as u64;
    let used = live.len();
    live.sort_unstable();
    live.dedup();
    ensure!(live.len() == used, "an id was handed out twice");
    Ok(Measures::new()
        .with("ns_per_alloc", ns_per_op(alloc_ns.max(1), pairs))
        .with("ns_per_free", ns_per_op(free_ns.max(1), pairs))
        .with("bits_per_id", space.bytes() as f64 * 8.0 / end as f64))
}
