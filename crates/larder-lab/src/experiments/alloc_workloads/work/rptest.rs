//! The pattern of rpmalloc's own benchmark: random sizes up to 16000 bytes, some of which another thread frees.

use super::super::draw::Draw;
use super::super::handover::Mailboxes;
use super::super::stamp::{Block, Lost, Owner, give_all};
use super::super::workload::{Job, with_heaps};
use crate::contestants::heaps::{Heap, Heaps};

/// Sizes.
const BYTES: (usize, usize) = (8, 16_000);
/// Blocks that a thread has.
const SLOTS: usize = 256;
/// Blocks of a round.
const ROUND: usize = 64;
/// One in this many goes to the next thread.
const CROSS: usize = 10;

/// `rptest`.
pub(super) fn run<H: Heaps>(heaps: &H, job: &Job) -> anyhow::Result<u64> {
    let mail = Mailboxes::new(job.threads, ROUND);
    let count = job.share().div_ceil(ROUND as u64);
    let ops = with_heaps(heaps, job.threads, |heap, thread| {
        rounds(heap, &mail, thread, count)
    })?;
    give_all(mail.rest(), &mut heaps.local()?)?;
    Ok(ops)
}

#[inline(never)]
fn rounds<H: Heap>(
    heap: &mut H,
    mail: &Mailboxes<Block>,
    thread: usize,
    rounds: u64,
) -> Result<u64, Lost> {
    let (mut draw, mut owner) = (Draw::new(thread), Owner::new(thread));
    let mut slots: Vec<Block> = Vec::with_capacity(SLOTS + ROUND);
    let mut passing = mail.vectors();
    for _ in 0..rounds {
        for _ in 0..ROUND {
            slots.push(owner.take(heap, draw.within(BYTES.0, BYTES.1))?);
        }
        while slots.len() > SLOTS {
            let at = draw.below(slots.len());
            let block = slots.swap_remove(at);
            if draw.below(CROSS) == 0 {
                passing[0].push(block);
            } else {
                block.give(heap)?;
            }
        }
        mail.exchange(thread, &mut passing, |block| block.give(heap))?;
    }
    give_all(slots, heap)?;
    Ok(rounds * ROUND as u64)
}
