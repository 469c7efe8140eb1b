//! 2Q: a new block passes a FIFO, where no use counts; only one that comes back after it left goes to the LRU list.

use super::capacity::capacity;
use super::ghosts::Ghosts;
use super::lists::Lists;
use super::{Admission, Arrival, Block, Frame, Frames, Policy, PolicyError, Reason, Shadow, Touch};

/// Kin: the FIFO gives up blocks as soon as it is longer than a quarter of the cache.
const IN_SHARE: usize = 4;
/// Kout: ghosts of the FIFO, as a part of the cache.
const OUT_SHARE: usize = 2;

/// The lists: A1in, and Am, which is LRU.
const FIFO: usize = 0;
const MAIN: usize = 1;

/// Bits of a frame in the FIFO: it was read ahead and is not used.
const UNUSED: u8 = 1;
/// The same, and it had a ghost.
const UNUSED_BACK: u8 = 2;

/// 2Q in its full version: A1in a quarter, A1out half of the cache. 9 bytes a frame and 6 for its share of the ghosts. A hit in
/// A1in is a load and a comparison, in Am a move in a list.
///
/// ```
/// use larder_policy::{TwoQ, replay::Replay};
/// let mut cache = Replay::new(TwoQ::new(4)?)?;
/// for block in [1, 2, 3, 4, 5, 1] {
///     cache.access(block, 0); // 1 leaves for 5, comes back, and is in the LRU list now
/// }
/// assert!((10..20).all(|block| !cache.access(block, 0)));
/// assert!(cache.access(1, 0));
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct TwoQ {
    lists: Lists<2>,
    ghosts: Ghosts<1>,
    capacity: usize,
}

impl TwoQ {
    /// A rule for this many frames, with the constants of its source.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            capacity: capacity(frames)?,
            lists: Lists::new(frames)?,
            ghosts: Ghosts::new(Self::ghosts_of(frames))?,
        })
    }

    /// Kout for a capacity; one ghost at least, since without any the LRU list would stay empty.
    fn ghosts_of(capacity: usize) -> usize {
        (capacity / OUT_SHARE).max(1)
    }
}

impl Policy for TwoQ {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.lists.total()
    }

    #[inline]
    fn miss(&mut self, _: Block, shadow: Option<Shadow>, _: Reason) -> Admission {
        Admission(u64::from(self.ghosts.take(shadow).is_some()))
    }

    #[inline]
    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        let back = arrival.admission.0 != 0;
        let (list, bits) = match (arrival.reason, back) {
            (Reason::Readahead, false) => (FIFO, UNUSED),
            (Reason::Readahead, true) => (FIFO, UNUSED_BACK),
            (_, false) => (FIFO, 0),
            (_, true) => (MAIN, 0),
        };
        self.lists.push(frame, list, bits);
    }

    #[inline]
    fn touch(&mut self, frame: Frame, _: Touch) {
        match (self.lists.list_of(frame), self.lists.bits(frame)) {
            (MAIN, _) => self.lists.renew(frame, MAIN),
            (_, 0) => {}
            (_, UNUSED) => self.lists.set_bits(frame, 0),
            _ => self.lists.move_to(frame, MAIN, 0),
        }
    }

    #[inline]
    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        for gone in 0..wanted {
            let in_most = self.capacity / IN_SHARE;
            let first = if self.lists.len(FIFO) > in_most {
                FIFO
            } else {
                MAIN
            };
            let Some(frame) = self.lists.unpinned_of(first, 1 - first, frames) else {
                return gone;
            };
            let shadow = (self.lists.list_of(frame) != MAIN).then(|| {
                self.ghosts.keep(0, Self::ghosts_of(self.capacity) - 1);
                self.ghosts.add(0)
            });
            self.remove(frame);
            frames.evicted(frame, shadow);
        }
        wanted
    }

    fn remove(&mut self, frame: Frame) {
        self.lists.remove(frame);
    }

    fn park(&mut self, frame: Frame) {
        self.lists.park(frame);
    }

    fn unpark(&mut self, frame: Frame) {
        self.lists.unpark(frame);
    }

    fn invalidate(&mut self, frame: Frame) -> Option<Shadow> {
        let main = self.lists.list_of(frame) == MAIN;
        self.lists.remove(frame);
        main.then(|| {
            self.ghosts.keep(0, Self::ghosts_of(self.capacity) - 1);
            self.ghosts.add(0)
        })
    }

    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.lists.grow(capacity(frames)?)?;
        self.ghosts.grow(Self::ghosts_of(frames))?;
        self.capacity = frames;
        self.ghosts.keep(0, Self::ghosts_of(frames));
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.lists
            .check("2q", |list, bits| list == FIFO || bits == 0)?;
        self.ghosts.check()?;
        match self.ghosts.len(0) {
            ghosts if ghosts <= Self::ghosts_of(self.capacity) => Ok(()),
            ghosts => Err(format!("2q: {ghosts} ghosts")),
        }
    }

    fn bytes(&self) -> usize {
        self.lists.bytes() + self.ghosts.bytes()
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("fifo", self.lists.len(FIFO) as f64),
            ("main", self.lists.len(MAIN) as f64),
            ("ghosts", self.ghosts.len(0) as f64),
        ]
    }
}
