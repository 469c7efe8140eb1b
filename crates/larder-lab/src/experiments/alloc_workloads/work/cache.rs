//! The patterns of Hoard's cache-scratch and cache-thrash (Berger and others, ASPLOS 2000): small blocks that are written
//! again and again. If an allocator gives neighbours to two threads, they share a cache line.

use std::sync::atomic::{AtomicU8, Ordering};

use super::super::stamp::{Block, Lost, Owner};
use super::super::workload::{Job, with_heaps};
use crate::contestants::heaps::{Heap, Heaps};

/// Bytes of a block: eight for the owner's number, eight to write to.
const BYTES: usize = 16;
/// Writes to each block.
const WRITES: u64 = 100;

/// `cache-scratch`.
pub(super) fn cache_scratch<H: Heaps>(heaps: &H, job: &Job) -> anyhow::Result<u64> {
    let mut owner = Owner::new(job.threads);
    let mut heap = heaps.local()?;
    let mut neighbours = Vec::with_capacity(job.threads);
    for _ in 0..job.threads {
        neighbours.push(std::sync::Mutex::new(Some(
            owner.take_head(&mut heap, BYTES)?,
        )));
    }
    with_heaps(heaps, job.threads, |heap, thread| {
        let block = neighbours[thread].lock();
        if let Some(block) = block.ok().and_then(|mut place| place.take()) {
            block.give(heap)?;
        }
        scratch(heap, thread, job.share())
    })
}

/// `cache-thrash`.
pub(super) fn cache_thrash<H: Heaps>(heaps: &H, job: &Job) -> anyhow::Result<u64> {
    with_heaps(heaps, job.threads, |heap, thread| {
        scratch(heap, thread, job.share())
    })
}

/// `turns` times: a block, its writes, back. One block is kept to the end: it must not be handed out meanwhile.
#[inline(never)]
fn scratch<H: Heap>(heap: &mut H, thread: usize, turns: u64) -> Result<u64, Lost> {
    let mut owner = Owner::new(thread);
    let kept = owner.take_head(heap, BYTES)?;
    for turn in 0..turns {
        let block = owner.take_head(heap, BYTES)?;
        write(&block, turn);
        block.give(heap)?;
    }
    kept.give(heap)?;
    Ok(turns)
}

#[inline(always)]
fn write(block: &Block, turn: u64) {
    for i in 0..WRITES {
        // SAFETY: a byte of the block's second half, which is this thread's.
        let byte = unsafe { AtomicU8::from_ptr(block.at().as_ptr().add(8 + (i % 8) as usize)) };
        byte.store(
            byte.load(Ordering::Relaxed).wrapping_add(turn as u8 | 1),
            Ordering::Relaxed,
        );
    }
}
