//! Blocks of megabytes, a few at a time, sparsely written: the result depends on whether memory goes back to the kernel.

use super::super::draw::Draw;
use super::super::stamp::{Block, Lost, Owner, give_all};
use super::super::workload::{Job, with_heaps};
use crate::contestants::heaps::{Heap, Heaps};
use crate::contestants::timing::touch;

/// Blocks at a time.
const SLOTS: usize = 8;
/// Sizes.
const BYTES: (usize, usize) = (1 << 20, 8 << 20);
/// Bytes from one write to the next.
const STRIDE: usize = 64 << 10;

/// `malloc-large`.
pub(super) fn run<H: Heaps>(heaps: &H, job: &Job) -> anyhow::Result<u64> {
    with_heaps(heaps, 1, |heap, _| replace(heap, job.ops))
}

#[inline(never)]
fn replace<H: Heap>(heap: &mut H, ops: u64) -> Result<u64, Lost> {
    let (mut draw, mut owner) = (Draw::new(0), Owner::new(0));
    let mut slots: [Option<Block>; SLOTS] = [const { None }; SLOTS];
    for op in 0..ops {
        let slot = &mut slots[draw.below(SLOTS)];
        if let Some(block) = slot.take() {
            block.give(heap)?;
        }
        let block = owner.take(heap, draw.within(BYTES.0, BYTES.1))?;
        // From the second stretch on to the last but one: both ends have the owner's number.
        for offset in (STRIDE..block.bytes() - STRIDE).step_by(STRIDE) {
            // SAFETY: within the block, which is ours.
            unsafe { touch(block.at().as_ptr().add(offset), op) };
        }
        *slot = Some(block);
    }
    give_all(slots.into_iter().flatten(), heap)?;
    Ok(ops)
}
