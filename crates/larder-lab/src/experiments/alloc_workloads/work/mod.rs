//! The workloads of the field, written anew from what is told of them, one file each.

mod alloc_test;
mod cache;
mod cfrac;
mod constructors;
mod glibc;
mod interpreters;
mod larson;
mod malloc_large;
mod mstress;
mod rptest;
mod sh6bench;
mod sh8bench;
mod xmalloc;

use super::workload::{Workload, measured};
use crate::contestants::heaps::Heaps;
use crate::model::{Measures, Params};

/// What the plan needs to know of a workload.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    /// Whether it is for one thread only.
    pub alone: bool,
    /// Operations of the quick form.
    pub ops: u64,
}

const fn about<W: Workload>() -> About {
    About {
        name: W::NAME,
        about: W::ABOUT,
        alone: W::ALONE,
        ops: W::OPS,
    }
}

macro_rules! workloads {
    ($($workload:path),+ $(,)?) => {
        /// Every workload, in the order of the tables.
        pub const ALL: &[About] = &[$(about::<$workload>()),+];

        /// Runs the workload of the factor `workload` over an allocator, with `threads` threads and about `ops`
        /// operations, and measures it.
        ///
        /// # Errors
        /// An unknown workload, missing factors, no memory, and a block that had two owners.
        pub fn run<H: Heaps>(heaps: &H, params: &Params) -> anyhow::Result<Measures> {
            let name = params.text("workload")?;
            $(if name == <$workload as Workload>::NAME {
                return measured::<$workload, H>(heaps, params);
            })+
            let known: Vec<_> = ALL.iter().map(|w| w.name).collect();
            anyhow::bail!("workload '{name}' is unknown; the workloads are {}", known.join(", "))
        }
    };
}

workloads!(
    larson::Larson,
    sh6bench::Sh6bench,
    sh8bench::Sh8bench,
    xmalloc::Xmalloc,
    mstress::Mstress,
    rptest::Rptest,
    cache::CacheScratch,
    cache::CacheThrash,
    alloc_test::AllocTest,
    glibc::GlibcSimple,
    glibc::GlibcThread,
    malloc_large::MallocLarge,
    cfrac::Cfrac,
    constructors::Constructors,
    interpreters::Interpreters,
);
