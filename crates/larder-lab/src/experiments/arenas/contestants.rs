//! The contestants.

use larder::arena::Policy;

use super::loops::{run, units};
use super::ranges::arena;
use crate::contestants::timing::resident_bytes;
use crate::measure::Contestant;
use crate::model::{Measures, Params};

/// Every contestant, in the order of the tables.
pub(super) fn all() -> Vec<Box<dyn Contestant>> {
    // Only the crates of others are added.
    #[cfg_attr(not(feature = "peers"), allow(unused_mut))]
    let mut all: Vec<Box<dyn Contestant>> = vec![
        Box::new(Bench {
            name: "quantum",
            about: "larder's arena with quantum caches: the CPU's magazines, no lock",
            run: |params| with_arena(Policy::Instant, true, params),
        }),
        Box::new(Bench {
            name: "handle",
            about: "the same through a handle of the thread's own",
            run: |params| {
                let before = resident_bytes();
                let arena = arena(units(params.count("live")?), Policy::Instant, true)?;
                run(&mut arena.handle(), before, params)
            },
        }),
        Box::new(Bench {
            name: "instant",
            about: "larder's arena without quantum caches, instant fit",
            run: |params| with_arena(Policy::Instant, false, params),
        }),
        Box::new(Bench {
            name: "best",
            about: "the same, best fit",
            run: |params| with_arena(Policy::Best, false, params),
        }),
        Box::new(Bench {
            name: "next",
            about: "the same, next fit",
            run: |params| with_arena(Policy::Next, false, params),
        }),
    ];
    #[cfg(feature = "peers")]
    {
        use super::ranges::{Offsets, Sorted};
        all.push(Box::new(Bench {
            name: "offset-allocator",
            about: "the crate of this name after Aaltonen: bins of sizes like small floating-point numbers",
            run: |params| {
                let before = resident_bytes();
                let live = params.count("live")?;
                run(
                    &mut Offsets::new(units(live), live)?, before, params)
            },
        }));
        all.push(Box::new(Bench {
            name: "range-alloc",
            about: "the crate of this name: free ranges in a sorted vector, best fit",
            run: |params| {
                let before = resident_bytes();
                let ranges = range_alloc::RangeAllocator::new(0..units(params.count("live")?));
                run(&mut Sorted(ranges), before, params)
            },
        }));
    }
    all
}

fn with_arena(policy: Policy, cached: bool, params: &Params) -> anyhow::Result<Measures> {
    let before = resident_bytes();
    let mut arena = arena(units(params.count("live")?), policy, cached)?;
    run(&mut arena, before, params)
}

struct Bench {
    name: &'static str,
    about: &'static str,
    run: fn(&Params) -> anyhow::Result<Measures>,
}

impl Contestant for Bench {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        (self.run)(params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_contestant_runs_in_both_shapes_and_hands_nothing_out_twice() {
        for contestant in all() {
            for shape in ["pair", "churn"] {
                for live in [1, 1000] {
                    let params = Params::new()
                        .with_text("shape", shape)
                        .with("live", live)
                        .with("turns", 3000);
                    contestant
                        .run(&params)
                        .unwrap_or_else(|e| panic!("{} {shape} {live}: {e:#}", contestant.name()));
                }
            }
        }
    }
}
