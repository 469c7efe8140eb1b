//! The pattern of OLogN's alloc-test (2018): random slots with sizes of a Pareto law up to 1 KiB.

use super::super::draw::Draw;
use super::super::stamp::{Block, Lost, Owner, give_all};
use super::super::workload::{Job, Workload, with_heaps};
use crate::contestants::heaps::{Heap, Heaps};

/// Slots of a thread: about half are full.
const SLOTS: usize = 1 << 12;

pub(in super::super) struct AllocTest;

impl Workload for AllocTest {
    const NAME: &'static str = "alloc-test";
    const ABOUT: &'static str = "a random slot is freed when it is full and filled when it is empty, Pareto sizes up to 1 KiB";
    const OPS: u64 = 200_000;

    fn run<H: Heaps>(heaps: &H, job: &Job) -> anyhow::Result<u64> {
        with_heaps(heaps, job.threads, |heap, thread| {
            slots(heap, thread, job.share())
        })
    }
}

#[inline(never)]
fn slots<H: Heap>(heap: &mut H, thread: usize, ops: u64) -> Result<u64, Lost> {
    let (mut draw, mut owner) = (Draw::new(thread), Owner::new(thread));
    let sizes = draw.pareto(8, 1024);
    let mut slots: Vec<Option<Block>> = (0..SLOTS).map(|_| None).collect();
    // Two turns are one block there and back.
    for _ in 0..2 * ops {
        let slot = &mut slots[draw.below(SLOTS)];
        match slot.take() {
            Some(block) => block.give(heap)?,
            None => *slot = Some(owner.take(heap, sizes[draw.below(sizes.len())])?),
        }
    }
    give_all(slots.into_iter().flatten(), heap)?;
    Ok(ops)
}
