//! LFU with dynamic aging: the block with the fewest uses leaves, and later blocks start at its key.

use super::capacity::capacity;
use super::heap::Heap;
use super::{Arrival, Frame, Frames, Policy, PolicyError, Reason, Touch};
use larder_base::table::{grow, table};

/// LFU-DA: a block's key is its number of uses plus the key of the last victim when it was used, so that blocks that were popular
/// once are overtaken. Among equals the one used longest ago leaves. 32 bytes a frame; a hit takes log2 of the capacity steps in
/// a heap, at most. It has no constants.
///
/// ```
/// use larder_policy::{LfuDa, replay::Replay};
/// let mut cache = Replay::new(LfuDa::new(2)?)?;
/// for block in [1, 1, 2, 3] {
///     cache.access(block, 0);
/// }
/// assert!(cache.access(1, 0) && !cache.access(2, 0));
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct LfuDa {
    /// By key, then by the time of the last use.
    heap: Heap<(u64, u64)>,
    uses: Vec<u32>,
    /// L: the key of the last victim.
    age: u64,
    now: u64,
    capacity: usize,
}

impl LfuDa {
    /// A rule for this many frames, with the constants of its source.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            capacity: capacity(frames)?,
            heap: Heap::new(frames)?,
            uses: table(frames, 0)?,
            age: 0,
            now: 0,
        })
    }

    #[inline]
    fn set(&mut self, frame: Frame, uses: u32) {
        self.uses[frame as usize] = uses;
        self.now += 1;
        self.heap.set(frame, (self.age + u64::from(uses), self.now));
    }
}

impl Policy for LfuDa {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.heap.len()
    }

    #[inline]
    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        self.set(frame, u32::from(arrival.reason != Reason::Readahead));
    }

    #[inline]
    fn touch(&mut self, frame: Frame, _: Touch) {
        self.set(frame, self.uses[frame as usize].saturating_add(1));
    }

    #[inline]
    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        for gone in 0..wanted {
            let Some(((key, _), frame)) = self.heap.first_unpinned(frames) else {
                return gone;
            };
            self.age = key;
            self.heap.remove(frame);
            frames.evicted(frame, None);
        }
        wanted
    }

    fn remove(&mut self, frame: Frame) {
        self.heap.remove(frame);
    }

    fn park(&mut self, frame: Frame) {
        self.heap.park(frame);
    }

    fn unpark(&mut self, frame: Frame) {
        self.heap.unpark(frame);
    }

    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.heap.grow(capacity(frames)?)?;
        grow(&mut self.uses, frames, 0)?;
        self.capacity = frames;
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.heap.check()
    }

    fn bytes(&self) -> usize {
        self.heap.bytes() + self.uses.capacity() * size_of::<u32>()
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        vec![("age", self.age as f64)]
    }
}
