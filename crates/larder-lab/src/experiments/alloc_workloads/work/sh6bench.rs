//! The pattern of MicroQuill's sh6bench: tables of mostly small blocks, freed from the end, from the begin, and mixed.

use super::super::draw::Draw;
use super::super::stamp::{Block, Lost, Owner, give_all};
use super::super::workload::{Job, Workload, with_heaps};
use crate::contestants::heaps::{Heap, Heaps};

/// Blocks of a table.
pub(super) const TABLE: usize = 1000;
/// Sizes.
pub(super) const BYTES: (usize, usize) = (8, 1000);

pub(in super::super) struct Sh6bench;

impl Workload for Sh6bench {
    const NAME: &'static str = "sh6bench";
    const ABOUT: &'static str =
        "tables of mostly small blocks, freed last in first out, first in first out, and mixed";
    const OPS: u64 = 300_000;

    fn run<H: Heaps>(heaps: &H, job: &Job) -> anyhow::Result<u64> {
        let passes = job.share().div_ceil(TABLE as u64);
        with_heaps(heaps, job.threads, |heap, thread| {
            tables(heap, thread, passes)
        })
    }
}

/// Fills the table up.
pub(super) fn fill<H: Heap>(
    heap: &mut H,
    owner: &mut Owner,
    draw: &mut Draw,
    sizes: &[usize],
    table: &mut Vec<Block>,
) -> Result<(), Lost> {
    while table.len() < TABLE {
        table.push(owner.take(heap, sizes[draw.below(sizes.len())])?);
    }
    Ok(())
}

/// Gives every second block of a table back, from its end, and keeps the others.
#[inline(always)]
pub(super) fn every_second<H: Heap>(
    heap: &mut H,
    table: &mut Vec<Block>,
    kept: &mut Vec<Block>,
) -> Result<(), Lost> {
    let mut keep = false;
    while let Some(block) = table.pop() {
        keep = !keep;
        if keep {
            kept.push(block);
        } else {
            block.give(heap)?;
        }
    }
    Ok(())
}

#[inline(never)]
fn tables<H: Heap>(heap: &mut H, thread: usize, passes: u64) -> Result<u64, Lost> {
    let (mut draw, mut owner) = (Draw::new(thread), Owner::new(thread));
    let sizes = draw.pareto(BYTES.0, BYTES.1);
    let mut table: Vec<Block> = Vec::with_capacity(TABLE);
    let mut rest: Vec<Block> = Vec::with_capacity(TABLE);
    for pass in 0..passes {
        fill(heap, &mut owner, &mut draw, &sizes, &mut table)?;
        match pass % 3 {
            0 => give_all(table.drain(..).rev(), heap)?,
            1 => give_all(table.drain(..), heap)?,
            _ => {
                // Every second one from the end, then the others from the begin.
                every_second(heap, &mut table, &mut rest)?;
                give_all(rest.drain(..).rev(), heap)?;
            }
        }
    }
    Ok(passes * TABLE as u64)
}
