//! The workloads of the field, written anew from their descriptions, one file each.

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

use anyhow::Context;

use super::workload::{About, measured};
use crate::contestants::heaps::Heaps;
use crate::model::{Measures, Params};

const fn about(name: &'static str, ops: u64, about: &'static str) -> About {
    About {
        name,
        about,
        alone: false,
        ops,
    }
}

const fn alone(name: &'static str, ops: u64, what: &'static str) -> About {
    About {
        alone: true,
        ..about(name, ops, what)
    }
}

/// Every workload, in the order of the tables.
pub const ALL: &[About] = &[
    about(
        "larson",
        200_000,
        "a server: random slots are freed and filled anew, and each thread leaves its slots to a new thread",
    ),
    about(
        "sh6bench",
        300_000,
        "tables of mostly small blocks, freed last in first out, first in first out, and mixed",
    ),
    about(
        "sh8bench",
        200_000,
        "tables of mostly small blocks, half of which the next thread frees",
    ),
    about(
        "xmalloc-test",
        200_000,
        "half of the threads allocate blocks of 64 bytes, the other half free them",
    ),
    about(
        "mstress",
        150_000,
        "phases of new threads with mixed sizes; some blocks migrate and outlive their thread",
    ),
    about(
        "rptest",
        100_000,
        "random sizes of 8 to 16000 bytes in random order; one block in ten is freed by the next thread",
    ),
    about(
        "cache-scratch",
        60_000,
        "each thread frees a block that the main thread took beside the others', and writes to what it gets instead",
    ),
    about(
        "cache-thrash",
        60_000,
        "each thread takes a small block, writes to it and frees it",
    ),
    about(
        "alloc-test",
        200_000,
        "a random slot is freed when it is full and filled when it is empty, Pareto sizes up to 1 KiB",
    ),
    alone(
        "glibc-simple",
        200_000,
        "blocks of one size, 25 to 1600 at a time, freed in the order in which they came",
    ),
    about(
        "glibc-thread",
        200_000,
        "random slots of each thread, sizes of 8 bytes to 32 KiB by an inverse power law",
    ),
    alone(
        "malloc-large",
        500,
        "eight blocks of 1 to 8 MiB, replaced at random, written every 64 KiB",
    ),
    about(
        "cfrac",
        150_000,
        "the continued fraction of a square root, every number in a block of its own",
    ),
    about(
        "constructors",
        80_000,
        "objects of four kinds whose constructor fills them and whose destructor looks at every word",
    ),
    about(
        "interpreters",
        120_000,
        "heaps are made, filled with 300 objects of 30 sizes, and destroyed",
    ),
];

/// Runs the workload of the factor `workload` over an allocator, with `threads` threads and about `ops` operations, and measures
/// it. The allocator is statically dispatched, so that the call is what is timed.
///
/// # Errors
/// An unknown workload, missing factors, no memory, and a block that had two owners: such a run is not scored.
pub fn run<H: Heaps>(heaps: &H, params: &Params) -> anyhow::Result<Measures> {
    let name = params.text("workload")?;
    let workload = ALL.iter().find(|w| w.name == name).with_context(|| {
        let known: Vec<_> = ALL.iter().map(|w| w.name).collect();
        let known = known.join(", ");
        format!("workload '{name}' is unknown; the workloads are {known}")
    })?;
    measured(workload, heaps, params, |job| match name {
        "larson" => larson::run(heaps, job),
        "sh6bench" => sh6bench::run(heaps, job),
        "sh8bench" => sh8bench::run(heaps, job),
        "xmalloc-test" => xmalloc::run(heaps, job),
        "mstress" => mstress::run(heaps, job),
        "rptest" => rptest::run(heaps, job),
        "cache-scratch" => cache::cache_scratch(heaps, job),
        "cache-thrash" => cache::cache_thrash(heaps, job),
        "alloc-test" => alloc_test::run(heaps, job),
        "glibc-simple" => glibc::simple(heaps, job),
        "glibc-thread" => glibc::in_slots(heaps, job),
        "malloc-large" => malloc_large::run(heaps, job),
        "cfrac" => cfrac::run(heaps, job),
        "constructors" => constructors::run(heaps, job),
        _ => interpreters::run(heaps, job),
    })
}
