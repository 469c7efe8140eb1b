//! 2Q: a new block passes a FIFO, where no use counts; only one that comes back after it left goes to the LRU list.

use super::capacity::capacity;
use super::frames::oldest_loose;
use super::ghosts::Ghosts;
use super::{Admission, Arrival, Block, Frame, Frames, Policy, PolicyError, Reason, Shadow, Touch};
use larder_base::list::{Links, List, NONE};
use larder_base::table::{grow, table};

/// Kin: the FIFO gives up blocks as soon as it is longer than a quarter of the cache.
const IN_SHARE: usize = 4;
/// Kout: ghosts of the FIFO, as a part of the cache.
const OUT_SHARE: usize = 2;

/// In the FIFO, used.
const IN: u8 = 0;
/// In the FIFO, read ahead and not used.
const UNUSED: u8 = 1;
/// The same, and it had a ghost.
const UNUSED_BACK: u8 = 2;
/// In the LRU list.
const MAIN: u8 = 3;

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
    links: Links,
    places: Vec<u8>,
    fifo: List,
    main: List,
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
            links: Links::new(frames)?,
            places: table(frames, IN)?,
            fifo: List::new(),
            main: List::new(),
            ghosts: Ghosts::new(Self::ghosts_of(frames))?,
        })
    }

    fn place(&mut self, frame: Frame, place: u8) {
        self.places[frame as usize] = place;
        let list = if place == MAIN {
            &mut self.main
        } else {
            &mut self.fifo
        };
        list.push_newest(&mut self.links, frame);
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
        self.fifo.len() + self.main.len()
    }

    #[inline]
    fn miss(&mut self, _: Block, shadow: Option<Shadow>, _: Reason) -> Admission {
        Admission(u64::from(self.ghosts.take(shadow).is_some()))
    }

    #[inline]
    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        let back = arrival.admission.0 != 0;
        let place = match (arrival.reason, back) {
            (Reason::Readahead, false) => UNUSED,
            (Reason::Readahead, true) => UNUSED_BACK,
            (_, false) => IN,
            (_, true) => MAIN,
        };
        self.place(frame, place);
    }

    #[inline]
    fn touch(&mut self, frame: Frame, _: Touch) {
        match self.places[frame as usize] {
            IN => {}
            MAIN => self.main.renew(&mut self.links, frame),
            UNUSED => self.places[frame as usize] = IN,
            _ => {
                self.fifo.unlink(&mut self.links, frame);
                self.place(frame, MAIN);
            }
        }
    }

    #[inline]
    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        for gone in 0..wanted {
            let in_most = self.capacity / IN_SHARE;
            let (first, second) = if self.fifo.len() > in_most {
                (&self.fifo, &self.main)
            } else {
                (&self.main, &self.fifo)
            };
            let mut frame = oldest_loose(first, &self.links, frames);
            if frame == NONE {
                frame = oldest_loose(second, &self.links, frames);
            }
            if frame == NONE {
                return gone;
            }
            let shadow = (self.places[frame as usize] != MAIN).then(|| {
                self.ghosts.keep(0, Self::ghosts_of(self.capacity) - 1);
                self.ghosts.add(0)
            });
            self.remove(frame);
            frames.evicted(frame, shadow);
        }
        wanted
    }

    fn remove(&mut self, frame: Frame) {
        match self.places[frame as usize] {
            MAIN => self.main.unlink(&mut self.links, frame),
            _ => self.fifo.unlink(&mut self.links, frame),
        }
    }

    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.links.grow(capacity(frames)?)?;
        grow(&mut self.places, frames, IN)?;
        self.ghosts.grow(Self::ghosts_of(frames))?;
        self.capacity = frames;
        self.ghosts.keep(0, Self::ghosts_of(frames));
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.fifo.check(&self.links, "a1in")?;
        self.main.check(&self.links, "am")?;
        self.ghosts.check()?;
        let is_main = |frame: u32| self.places[frame as usize] == MAIN;
        match (
            self.fifo.iter(&self.links).find(|&frame| is_main(frame)),
            self.main.iter(&self.links).find(|&frame| !is_main(frame)),
        ) {
            (None, None) if self.ghosts.len(0) <= Self::ghosts_of(self.capacity) => Ok(()),
            (None, None) => Err(format!("2q: {} ghosts", self.ghosts.len(0))),
            (a, b) => Err(format!("2q: frames in the wrong list: {a:?} {b:?}")),
        }
    }

    fn bytes(&self) -> usize {
        self.links.bytes() + self.places.capacity() + self.ghosts.bytes()
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("fifo", self.fifo.len() as f64),
            ("main", self.main.len() as f64),
            ("ghosts", self.ghosts.len(0) as f64),
        ]
    }
}
