//! LRU-2: the block whose last use but one is longest ago leaves.

use super::capacity::capacity;
use super::heap::Heap;
use super::lists::oldest_unpinned;
use super::{Admission, Arrival, Block, Frame, Frames, Policy, PolicyError, Reason, Shadow, Touch};
use larder_base::list::{Links, List, NONE};
use larder_base::table::{grow, table};

/// The correlated reference period is the capacity divided by this, in uses of any block: uses of one block that follow each other
/// so closely are one. The paper gives seconds and leaves them to the user; a fifth and the period below come close to what others
/// published for OLTP (39.3, 54.8, 65.2 % at 1000, 5000, 15000), here 40.1, 55.2, 65.2.
const CORRELATED_SHARE: usize = 5;
/// The retained information period: this many times the capacity of uses after its last counted use, a block's past is forgotten.
const RETAINED: u64 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    /// Used within the correlated reference period: it does not leave.
    #[default]
    Young,
    /// Used once, as far as is known.
    Once,
    /// In the heap.
    Twice,
}

#[derive(Debug, Clone, Copy, Default)]
struct Past {
    /// LAST: the last use of any kind.
    last: u64,
    /// HIST(1): the last use that counted.
    counted: u64,
    /// HIST(2): the end of the one before; 0: none.
    before: u64,
    /// Of the request that used it last.
    request: u32,
    place: Place,
    unused: bool,
}

impl Past {
    /// What its block leaves.
    #[inline]
    fn shadow(&self) -> Option<Shadow> {
        let counted = if self.unused {
            self.before
        } else {
            self.counted
        };
        (counted != 0).then(|| Shadow::new(counted))
    }
}

/// LRU-2 with its correlated reference period and its retained information period. 60 bytes a frame, none for ghosts, whose past
/// the shadows carry. A hit within the correlated period is a move in a list, any other one takes log2 of the capacity steps in a
/// heap, at most.
///
/// Uses by one request are correlated, however far apart.
///
/// ```
/// use larder_policy::{Lru2, replay::Replay};
/// let mut cache = Replay::new(Lru2::new(3)?)?;
/// for (block, request) in [1, 2, 1, 2, 3, 4].into_iter().zip(0..) {
///     cache.access(block, request); // 1 and 2 are used twice, so that 4 takes the place of 3
/// }
/// assert!(cache.access(1, 9) && cache.access(2, 9));
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct Lru2 {
    links: Links,
    pasts: Vec<Past>,
    /// By LAST.
    young: List,
    /// By LAST.
    once: List,
    /// By HIST(2), which differs from block to block: it is the time of a use.
    twice: Heap<u64>,
    /// Frames that are in none of these.
    parked: usize,
    now: u64,
    period: u64,
    capacity: usize,
}

impl Lru2 {
    /// A rule for this many frames, with the constants of its source.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            capacity: capacity(frames)?,
            links: Links::new(frames)?,
            pasts: table(frames, Past::default())?,
            young: List::new(),
            once: List::new(),
            twice: Heap::new(frames)?,
            parked: 0,
            now: 0,
            period: Self::period_of(frames),
        })
    }

    #[inline]
    fn unlink(&mut self, frame: Frame) {
        match self.pasts[frame as usize].place {
            Place::Young => self.young.unlink(&mut self.links, frame),
            Place::Once => self.once.unlink(&mut self.links, frame),
            Place::Twice => self.twice.remove(frame),
        }
    }

    #[inline]
    fn start(&mut self, frame: Frame, past: Past) {
        self.pasts[frame as usize] = past;
        self.young.push_newest(&mut self.links, frame);
    }

    /// Blocks whose correlated reference period is over may leave from now on.
    #[inline]
    fn ripen(&mut self) {
        loop {
            let frame = self.young.oldest();
            // The use that wants room is the next one.
            if frame == NONE || self.now + 1 - self.pasts[frame as usize].last <= self.period {
                return;
            }
            self.young.unlink(&mut self.links, frame);
            let past = &mut self.pasts[frame as usize];
            if past.before == 0 {
                past.place = Place::Once;
                self.once.push_newest(&mut self.links, frame);
            } else {
                past.place = Place::Twice;
                self.twice.set(frame, past.before);
            }
        }
    }

    fn period_of(capacity: usize) -> u64 {
        (capacity / CORRELATED_SHARE) as u64
    }
}

impl Policy for Lru2 {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.young.len() + self.once.len() + self.twice.len() + self.parked
    }

    /// The last use that counted, of a block that left not too long ago.
    #[inline]
    fn miss(&mut self, _: Block, shadow: Option<Shadow>, _: Reason) -> Admission {
        let counted = shadow.map_or(0, Shadow::get);
        let age = self.now.wrapping_sub(counted);
        let known = counted != 0 && age <= RETAINED * self.capacity as u64;
        Admission(if known { counted } else { 0 })
    }

    #[inline]
    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        let unused = arrival.reason == Reason::Readahead;
        self.now += u64::from(!unused);
        let before = arrival.admission.0;
        self.start(
            frame,
            Past {
                last: self.now,
                counted: if unused { 0 } else { self.now },
                before,
                request: arrival.request,
                place: Place::Young,
                unused,
            },
        );
    }

    #[inline]
    fn touch(&mut self, frame: Frame, touch: Touch) {
        self.now += 1;
        let mut past = self.pasts[frame as usize];
        self.unlink(frame);
        if past.unused {
            past.unused = false;
            past.counted = self.now;
        } else if self.now - past.last > self.period && past.request != touch.request {
            past.before = past.last;
            past.counted = self.now;
        }
        past.last = self.now;
        past.request = touch.request;
        past.place = Place::Young;
        self.start(frame, past);
    }

    #[inline]
    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        for gone in 0..wanted {
            self.ripen();
            let frame = oldest_unpinned(&self.once, &self.links, frames)
                .or_else(|| Some(self.twice.first_unpinned(frames)?.1))
                .or_else(|| oldest_unpinned(&self.young, &self.links, frames));
            let Some(frame) = frame else {
                return gone;
            };
            self.unlink(frame);
            frames.evicted(frame, self.pasts[frame as usize].shadow());
        }
        wanted
    }

    fn remove(&mut self, frame: Frame) {
        self.unlink(frame);
    }

    fn park(&mut self, frame: Frame) {
        self.unlink(frame);
        self.parked += 1;
    }

    fn unpark(&mut self, frame: Frame) {
        self.parked -= 1;
        // It was in use until now, and the young ones are in the order of their last uses.
        let mut past = self.pasts[frame as usize];
        past.last = self.now;
        past.place = Place::Young;
        self.start(frame, past);
    }

    fn invalidate(&mut self, frame: Frame) -> Option<Shadow> {
        self.unlink(frame);
        self.pasts[frame as usize].shadow()
    }

    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.links.grow(capacity(frames)?)?;
        grow(&mut self.pasts, frames, Past::default())?;
        self.twice.grow(frames)?;
        self.capacity = frames;
        self.period = Self::period_of(frames);
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.twice.check()?;
        for (list, place) in [(&self.young, Place::Young), (&self.once, Place::Once)] {
            list.check(&self.links, "lru-2")?;
            let mut last = 0;
            for frame in list.iter(&self.links) {
                let past = self.pasts[frame as usize];
                if past.place != place || past.last < last {
                    return Err(format!("lru-2: frame {frame} in {place:?} is {past:?}"));
                }
                last = past.last;
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.links.bytes() + self.pasts.capacity() * size_of::<Past>() + self.twice.bytes()
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("young", self.young.len() as f64),
            ("once", self.once.len() as f64),
            ("twice", self.twice.len() as f64),
        ]
    }
}
