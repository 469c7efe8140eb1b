//! The pattern of Lever and Boreham's xmalloc-test (USENIX 2000): some threads only allocate, others only free.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use super::super::stamp::{Block, Lost, Owner, give_all};
use super::super::workload::{Job, Workload, with_heaps};
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
        let each = batches.div_ceil(producers as u64);
        let (sender, receiver) = sync_channel(ROOM);
        let receiver = Arc::new(Mutex::new(receiver));
        // Each thread has an end of its own: when all of a kind are gone, however they ended, the other kind need not wait.
        let end = |thread| match thread < producers {
            true => End::Producer(sender.clone()),
            false => End::Consumer(receiver.clone()),
        };
        let ends: Vec<_> = (0..job.threads).map(|n| Mutex::new(Some(end(n)))).collect();
        drop((sender, receiver));
        with_heaps(heaps, job.threads, |heap, thread| {
            let end = ends[thread]
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            match end {
                Some(End::Producer(queue)) => produce(heap, &queue, thread, each),
                Some(End::Consumer(queue)) => consume(heap, &queue),
                None => Ok(0),
            }
        })
    }
}

/// What a thread has of the queue.
enum End {
    Producer(SyncSender<Vec<Block>>),
    Consumer(Arc<Mutex<Receiver<Vec<Block>>>>),
}

fn batch<H: Heap>(heap: &mut H, owner: &mut Owner) -> Result<Vec<Block>, Lost> {
    let mut batch = Vec::with_capacity(BATCH);
    for _ in 0..BATCH {
        batch.push(owner.take(heap, BYTES)?);
    }
    Ok(batch)
}

#[inline(never)]
fn produce<H: Heap>(
    heap: &mut H,
    queue: &SyncSender<Vec<Block>>,
    thread: usize,
    batches: u64,
) -> Result<u64, Lost> {
    let mut owner = Owner::new(thread);
    for _ in 0..batches {
        if queue.send(batch(heap, &mut owner)?).is_err() {
            // The consumers have failed.
            break;
        }
    }
    Ok(0)
}

#[inline(never)]
fn consume<H: Heap>(heap: &mut H, queue: &Mutex<Receiver<Vec<Block>>>) -> Result<u64, Lost> {
    let next = || {
        let queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.recv().ok()
    };
    let mut ops = 0;
    while let Some(batch) = next() {
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
