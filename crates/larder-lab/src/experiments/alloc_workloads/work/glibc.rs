//! The patterns of glibc's own two benchmarks of malloc: one size at a time by one thread, and random sizes by many.

use super::super::draw::Draw;
use super::super::stamp::{Block, Lost, Owner, give_all};
use super::super::workload::{Job, Workload, with_heaps};
use crate::contestants::heaps::{Heap, Heaps};

/// Sizes of the simple one.
const SIZES: [usize; 4] = [16, 128, 1024, 4096];
/// Blocks that are out at a time.
const OUT: [usize; 4] = [25, 100, 400, 1600];
/// Slots of a thread of the other one, and its sizes.
const SLOTS: usize = 1024;
const BYTES: (usize, usize) = (8, 32 << 10);

pub(in super::super) struct GlibcSimple;

impl Workload for GlibcSimple {
    const NAME: &'static str = "glibc-simple";
    const ABOUT: &'static str =
        "blocks of one size, 25 to 1600 at a time, freed in the order in which they came";
    const ALONE: bool = true;
    const OPS: u64 = 200_000;

    fn run<H: Heaps>(heaps: &H, job: &Job) -> anyhow::Result<u64> {
        with_heaps(heaps, 1, |heap, _| one_size_at_a_time(heap, job.ops))
    }
}

pub(in super::super) struct GlibcThread;

impl Workload for GlibcThread {
    const NAME: &'static str = "glibc-thread";
    const ABOUT: &'static str =
        "random slots of each thread, sizes of 8 bytes to 32 KiB by an inverse power law";
    const OPS: u64 = 200_000;

    fn run<H: Heaps>(heaps: &H, job: &Job) -> anyhow::Result<u64> {
        with_heaps(heaps, job.threads, |heap, thread| {
            random_slots(heap, thread, job.share())
        })
    }
}

#[inline(never)]
fn one_size_at_a_time<H: Heap>(heap: &mut H, ops: u64) -> Result<u64, Lost> {
    let mut owner = Owner::new(0);
    let mut blocks: Vec<Block> = Vec::with_capacity(OUT[OUT.len() - 1]);
    let mut done = 0;
    let each = ops.div_ceil((SIZES.len() * OUT.len()) as u64);
    for bytes in SIZES {
        for out in OUT {
            for _ in 0..each.div_ceil(out as u64) {
                for _ in 0..out {
                    blocks.push(owner.take(heap, bytes)?);
                }
                give_all(blocks.drain(..), heap)?;
                done += out as u64;
            }
        }
    }
    Ok(done)
}

#[inline(never)]
fn random_slots<H: Heap>(heap: &mut H, thread: usize, ops: u64) -> Result<u64, Lost> {
    let (mut draw, mut owner) = (Draw::new(thread), Owner::new(thread));
    let sizes = draw.pareto(BYTES.0, BYTES.1);
    let mut slots: Vec<Option<Block>> = (0..SLOTS).map(|_| None).collect();
    for _ in 0..ops {
        let fresh = owner.take(heap, sizes[draw.below(sizes.len())])?;
        if let Some(block) = slots[draw.below(SLOTS)].replace(fresh) {
            block.give(heap)?;
        }
    }
    give_all(slots.into_iter().flatten(), heap)?;
    Ok(ops)
}
