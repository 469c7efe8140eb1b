//! The contestants: one supplier each, in every shape.

use crate::contestants::supply::{
    ArrayStacks, PoolHandles, PoolPerCpu, SamePages, Supply, SystemMalloc,
};
use crate::contestants::timing::resident_bytes;
use crate::measure::Contestant;
use crate::model::{Measures, Params};

use super::shapes::{self, Shape};
use super::{handover, instructions, threads};

/// Pages of the bare stack: as many as the deepest shape takes.
const STACK_PAGES: usize = 512;

/// Every contestant, in the order of the tables.
pub(super) fn all() -> Vec<Box<dyn Contestant>> {
    let mut all: Vec<Box<dyn Contestant>> = vec![
        Box::new(Bench {
            name: "empty-loop",
            about: "the loop and the write alone: one page again and again",
            run: |params| run(|| Ok(SamePages), params),
        }),
        Box::new(Bench {
            name: "array-stack",
            about: "a bare array of present pages, one thread's own: the floor of taking and putting back",
            run: |params| run(|| Ok(ArrayStacks { pages: STACK_PAGES }), params),
        }),
        Box::new(Bench {
            name: "memset",
            about: "warm pages filled with zeros by the C library's memset: the floor of zeroing",
            run: shapes::memset,
        }),
        Box::new(Bench {
            name: "pool",
            about: "larder's page pool with its default settings, through the CPU's magazines",
            run: |params| run(|| PoolPerCpu::new(None), params),
        }),
        Box::new(Bench {
            name: "pool-handle",
            about: "larder's page pool with its default settings, through a handle of the thread's own",
            run: |params| run(|| PoolHandles::new(None), params),
        }),
        Box::new(Bench {
            name: "malloc",
            about: "posix_memalign and free of the C library; zeroed by memset",
            run: |params| run(|| Ok(SystemMalloc::new()), params),
        }),
    ];
    #[cfg(feature = "peers")]
    {
        use crate::contestants::supply::{Jemalloc, Mimalloc};
        all.push(Box::new(Bench {
            name: "mimalloc",
            about: "mi_malloc_aligned, mi_zalloc_aligned and mi_free of one page",
            run: |params| run(|| Ok(Mimalloc::new()), params),
        }));
        all.push(Box::new(Bench {
            name: "jemalloc",
            about: "mallocx (aligned, zeroed) and sdallocx of one page",
            run: |params| run(|| Ok(Jemalloc::new()), params),
        }));
    }
    all.push(Box::new(Instructions));
    all
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

/// Runs the shape that the factors name. Memory is read before the supply is made, so that what it needs for itself
/// is counted as held.
fn run<S: Supply>(
    make: impl FnOnce() -> anyhow::Result<S>,
    params: &Params,
) -> anyhow::Result<Measures> {
    let before = resident_bytes();
    let shape = params.text("shape")?;
    let supply = &make()?;
    match shape {
        "pair" => shapes::run(supply, Shape::Pair, before, params),
        "deep" => shapes::run(supply, Shape::Deep, before, params),
        "zeroed" => shapes::run(supply, Shape::Zeroed, before, params),
        "handover" => handover::run(supply, before, params),
        "threads" => threads::run(supply, params),
        other => anyhow::bail!(
            "shape '{other}' is unknown; the shapes are pair, deep, zeroed, handover and threads"
        ),
    }
}

/// Instructions of a pair of another contestant.
struct Instructions;

impl Contestant for Instructions {
    fn name(&self) -> &'static str {
        "instructions"
    }

    fn about(&self) -> &'static str {
        "instructions of one warm get and put of the named supplier, counted by callgrind"
    }

    fn available(&self) -> Result<(), String> {
        crate::measure::callgrind::available()
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        instructions::run(params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_shape_names_the_known_ones() {
        for contestant in all() {
            let params = Params::new().with_text("shape", "round").with("pages", 1);
            let error = contestant
                .run(&params)
                .expect_err("no such shape")
                .to_string();
            assert!(
                error.contains("the shapes are") || error.contains("is missing"),
                "{}: {error}",
                contestant.name()
            );
        }
    }
}
