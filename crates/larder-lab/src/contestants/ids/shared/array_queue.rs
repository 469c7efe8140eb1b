//! The crate crossbeam-queue: a bounded ring for many threads.

use crossbeam_queue::ArrayQueue;

use super::Common;

/// An `ArrayQueue<u32>` of free identifiers: the first freed first.
#[derive(Debug)]
pub struct Queue(ArrayQueue<u32>);

impl Common for Queue {
    const ABOUT: &'static str =
        "crate crossbeam-queue, an ArrayQueue of free identifiers: the first freed first";

    fn make(count: u64) -> anyhow::Result<Self> {
        let queue = ArrayQueue::new(usize::try_from(count)?);
        for id in 0..u32::try_from(count)? {
            let _ = queue.push(id);
        }
        Ok(Self(queue))
    }

    #[inline]
    fn get(&self) -> Option<u64> {
        self.0.pop().map(u64::from)
    }

    #[inline]
    fn put(&self, id: u64) -> bool {
        self.0.push(id as u32).is_ok()
    }
}
