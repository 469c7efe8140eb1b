//! The pattern of Lever and Boreham's xmalloc-test (USENIX 2000): some threads only allocate, others only free.

use super::super::handover::Queue;
use super::super::stamp::{Block, Lost, Owner, give_all};
use super::super::workload::{Job, Workload, in_threads, with_heaps};
use crate::contestants::heaps::{Heap, Heaps};

/// Blocks of a batch: the queue's lock is taken as rarely.
const BATCH: usize = 128;
/// Batches on their way.
const ROOM: usize = 64;
/// Bytes of a block.
const BYTES: usize = 64;

pub(in super::super) struct Xmalloc;

impl Workload for Xmalloc {
    const NAME: &'static str = "xmalloc-test";
    const ABOUT: &'static str =
        "half of the threads allocate blocks of 64 bytes, the other half free them";
    const OPS: u64 = 200_000;

    fn run<H: Heaps>(heaps: &H, job: &Job) -> anyhow::Result<u64> {
        let batches = job.ops.div_ceil(BATCH as u64);
        if job.threads == 1 {
            return with_heaps(heaps, 1, |heap, _| alternately(heap, batches));
        }
        let producers = job.threads / 2;
        let consumers = job.threads - producers;
        let queue = Queue::new(producers, consumers, ROOM);
        let each = batches.div_ceil(producers as u64);
        let ops = in_threads(job.threads, |thread| {
            if thread < producers {
                let _gone = queue.producer();
                produce(&mut heaps.local()?, &queue, thread, each)?;
                Ok(0)
            } else {
                let _gone = queue.consumer();
                Ok(consume(&mut heaps.local()?, &queue)?)
            }
        })?;
        queue.end(heaps)?;
        Ok(ops)
    }
}

fn batch<H: Heap>(heap: &mut H, owner: &mut Owner) -> Result<Vec<Block>, Lost> {
    let mut batch = Vec::with_capacity(BATCH);
    for _ in 0..BATCH {
        batch.push(owner.take(heap, BYTES)?);
    }
    Ok(batch)
}

#[inline(never)]
fn produce<H: Heap>(heap: &mut H, queue: &Queue, thread: usize, batches: u64) -> Result<(), Lost> {
    let mut owner = Owner::new(thread);
    for _ in 0..batches {
        // It comes back when the consumers have failed.
        if queue.push(batch(heap, &mut owner)?).is_some() {
            break;
        }
    }
    Ok(())
}

#[inline(never)]
fn consume<H: Heap>(heap: &mut H, queue: &Queue) -> Result<u64, Lost> {
    let mut ops = 0;
    while let Some(batch) = queue.pop() {
        ops += batch.len() as u64;
        give_all(batch, heap)?;
    }
    Ok(ops)
}

#[inline(never)]
fn alternately<H: Heap>(heap: &mut H, batches: u64) -> Result<u64, Lost> {
    let mut owner = Owner::new(0);
    for _ in 0..batches {
        give_all(batch(heap, &mut owner)?, heap)?;
    }
    Ok(batches * BATCH as u64)
}
