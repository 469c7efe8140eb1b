//! The pattern of MicroQuill's sh8bench: as sh6bench, and half of the blocks are freed by another thread.

use super::super::draw::Draw;
use super::super::handover::Mailboxes;
use super::super::stamp::{Block, Lost, Owner, give_all};
use super::super::workload::{Job, with_heaps};
use super::sh6bench::{BYTES, TABLE, every_second, fill};
use crate::contestants::heaps::{Heap, Heaps};

/// `sh8bench`.
pub(super) fn run<H: Heaps>(heaps: &H, job: &Job) -> anyhow::Result<u64> {
    let mail = Mailboxes::new(job.threads, 2 * TABLE);
    let passes = job.share().div_ceil(TABLE as u64);
    let ops = with_heaps(heaps, job.threads, |heap, thread| {
        tables(heap, &mail, thread, passes)
    })?;
    give_all(mail.rest(), &mut heaps.local()?)?;
    Ok(ops)
}

#[inline(never)]
fn tables<H: Heap>(
    heap: &mut H,
    mail: &Mailboxes<Block>,
    thread: usize,
    passes: u64,
) -> Result<u64, Lost> {
    let (mut draw, mut owner) = (Draw::new(thread), Owner::new(thread));
    let sizes = draw.pareto(BYTES.0, BYTES.1);
    let mut table: Vec<Block> = Vec::with_capacity(TABLE);
    let mut passing = mail.vectors();
    for _ in 0..passes {
        fill(heap, &mut owner, &mut draw, &sizes, &mut table)?;
        every_second(heap, &mut table, &mut passing[0])?;
        mail.exchange(thread, &mut passing, |block| block.give(heap))?;
    }
    Ok(passes * TABLE as u64)
}
