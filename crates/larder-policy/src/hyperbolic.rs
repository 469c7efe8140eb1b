//! Hyperbolic caching: the block with the fewest uses for its time in memory leaves, of some that are drawn.

use super::capacity::capacity;
use super::random::Dice;
use super::{Arrival, Frame, FrameState, Frames, Policy, PolicyError, Reason, Touch};
use larder_base::list::NONE;
use larder_base::table::{grow, table};

/// Blocks that are drawn for each eviction.
const SAMPLE: usize = 64;

#[derive(Debug, Clone, Copy, Default)]
struct Life {
    /// The access at which it came.
    born: u64,
    uses: u32,
    /// Where it is among the residents.
    place: u32,
}

/// Hyperbolic caching with samples of 64. 20 bytes a frame; a hit is one addition, an eviction looks at 64 blocks. The draws are the
/// same every time.
///
/// ```
/// use larder_policy::{Hyperbolic, replay::Replay};
/// let mut cache = Replay::new(Hyperbolic::new(2)?)?;
/// for at in 0..100 {
///     cache.access(at % 2, at);
/// }
/// assert_eq!((cache.hits(), cache.misses()), (98, 2));
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct Hyperbolic {
    lives: Vec<Life>,
    /// The first `len` are the frames that are in.
    residents: Vec<u32>,
    len: usize,
    /// Frames that are in and not among the residents.
    parked: usize,
    now: u64,
    dice: Dice,
    capacity: usize,
}

impl Hyperbolic {
    /// A rule for this many frames, with the constants of its source.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            capacity: capacity(frames)?,
            lives: table(frames, Life::default())?,
            residents: table(frames, NONE)?,
            len: 0,
            parked: 0,
            now: 0,
            dice: Dice::new(),
        })
    }

    #[inline]
    fn enter(&mut self, frame: Frame) {
        self.lives[frame as usize].place = self.len as u32;
        self.residents[self.len] = frame;
        self.len += 1;
    }

    #[inline]
    fn worth(&self, frame: Frame) -> f64 {
        let life = self.lives[frame as usize];
        f64::from(life.uses) / (self.now - life.born + 1) as f64
    }

    /// The least worthy of a sample; if all of it must stay, the first that may leave.
    fn victim<F: Frames>(&mut self, frames: &F) -> Option<Frame> {
        let unpinned = |frame: &Frame| frames.state(*frame) != FrameState::Pinned;
        let mut best: Option<(f64, Frame)> = None;
        for _ in 0..if self.len > 0 { SAMPLE } else { 0 } {
            let frame = self.residents[self.dice.below(self.len)];
            let worth = self.worth(frame);
            if best.is_none_or(|(least, _)| worth < least) && unpinned(&frame) {
                best = Some((worth, frame));
            }
        }
        let any = || self.residents[..self.len].iter().copied().find(unpinned);
        best.map(|(_, frame)| frame).or_else(any)
    }
}

impl Policy for Hyperbolic {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.len + self.parked
    }

    #[inline]
    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        let used = arrival.reason != Reason::Readahead;
        self.now += u64::from(used);
        self.lives[frame as usize] = Life {
            born: self.now,
            uses: u32::from(used),
            place: 0,
        };
        self.enter(frame);
    }

    #[inline]
    fn touch(&mut self, frame: Frame, _: Touch) {
        self.now += 1;
        let life = &mut self.lives[frame as usize];
        life.uses = life.uses.saturating_add(1);
    }

    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        for gone in 0..wanted {
            let Some(frame) = self.victim(frames) else {
                return gone;
            };
            self.remove(frame);
            frames.evicted(frame, None);
        }
        wanted
    }

    fn remove(&mut self, frame: Frame) {
        let place = self.lives[frame as usize].place;
        self.len -= 1;
        let last = self.residents[self.len];
        self.residents[place as usize] = last;
        self.lives[last as usize].place = place;
    }

    fn park(&mut self, frame: Frame) {
        self.remove(frame);
        self.parked += 1;
    }

    fn unpark(&mut self, frame: Frame) {
        self.parked -= 1;
        self.enter(frame);
    }

    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        grow(&mut self.lives, capacity(frames)?, Life::default())?;
        grow(&mut self.residents, frames, NONE)?;
        self.capacity = frames;
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let lost = |at: &(usize, &u32)| self.lives[*at.1 as usize].place as usize != at.0;
        match self.residents[..self.len].iter().enumerate().find(lost) {
            Some((at, frame)) => Err(format!("hyperbolic: frame {frame} is not at {at}")),
            None => Ok(()),
        }
    }

    fn bytes(&self) -> usize {
        self.lives.capacity() * size_of::<Life>() + self.residents.capacity() * size_of::<u32>()
    }
}
