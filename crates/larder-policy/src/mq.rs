//! MQ: eight LRU queues by the logarithm of a block's uses; a block that is not used for a while sinks by one queue.

use super::capacity::capacity;
use super::lists::oldest_unpinned;
use super::{Admission, Arrival, Block, Frame, Frames, Policy, PolicyError, Reason, Shadow, Touch};
use larder_base::list::{Links, List, NONE};
use larder_base::table::{grow, table};

/// m: queues.
const QUEUES: usize = 8;
/// Qout: ghosts are kept for this many times the capacity of departures.
const GHOSTS: u64 = 4;
/// lifeTime: a block may go unused for this many times the capacity of accesses before it sinks. The paper measures it on the
/// running load; this is within the range that it finds.
const LIFE: u64 = 2;

/// Bits of a shadow for the uses; the rest is the number of the departure.
const USES_BITS: u32 = 20;
const MOST_USES: u32 = (1 << USES_BITS) - 1;
/// No use yet: read ahead.
const UNUSED: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, Default)]
struct Life {
    /// The access after which it sinks.
    expires: u64,
    /// How often it was used, in its lives before, too.
    uses: u32,
    queue: u32,
}

/// The multi-queue rule, made for caches below a cache. 24 bytes a frame, none for ghosts, which the shadows carry. A hit is a
/// move between lists and up to seven comparisons for those that sink.
///
/// ```
/// use larder_policy::{Mq, replay::Replay};
/// let mut cache = Replay::new(Mq::new(3)?)?;
/// for block in [1, 1, 1, 1, 2, 3, 4] {
///     cache.access(block, 0);
/// }
/// assert!(cache.access(1, 0)); // used four times, it outlives the younger 2
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct Mq {
    links: Links,
    lives: Vec<Life>,
    queues: [List; QUEUES],
    /// Accesses.
    now: u64,
    departures: u64,
    capacity: usize,
}

impl Mq {
    /// A rule for this many frames, with the constants of its source.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            capacity: capacity(frames)?,
            links: Links::new(frames)?,
            lives: table(frames, Life::default())?,
            queues: [const { List::new() }; QUEUES],
            now: 0,
            departures: 0,
        })
    }

    #[inline]
    fn enqueue(&mut self, frame: Frame, uses: u32) {
        let queue = (uses.max(1).ilog2() as usize).min(QUEUES - 1);
        self.lives[frame as usize] = Life {
            expires: self.now + LIFE * self.capacity as u64,
            uses,
            queue: queue as u32,
        };
        self.queues[queue].push_newest(&mut self.links, frame);
    }

    #[inline]
    fn dequeue(&mut self, frame: Frame) -> Life {
        let life = self.lives[frame as usize];
        self.queues[life.queue as usize].unlink(&mut self.links, frame);
        life
    }

    /// What a block leaves.
    #[inline]
    fn shadow(&mut self, life: Life) -> Shadow {
        let uses = if life.uses == UNUSED {
            life.expires
        } else {
            life.uses.into()
        };
        self.departures += 1;
        Shadow::new(self.departures << USES_BITS | uses)
    }

    /// The oldest of each queue sinks if its time is over.
    #[inline]
    fn sink(&mut self) {
        for queue in 1..QUEUES {
            let frame = self.queues[queue].oldest();
            if frame != NONE && self.lives[frame as usize].expires < self.now {
                self.dequeue(frame);
                let life = &mut self.lives[frame as usize];
                life.queue -= 1;
                life.expires = self.now + LIFE * self.capacity as u64;
                self.queues[queue - 1].push_newest(&mut self.links, frame);
            }
        }
    }

    #[inline]
    fn use_now(&mut self, frame: Frame, before: u32) {
        self.enqueue(frame, (before + 1).min(MOST_USES));
        self.now += 1;
        self.sink();
    }
}

impl Policy for Mq {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.queues.iter().map(List::len).sum()
    }

    /// The uses of its former lives.
    #[inline]
    fn miss(&mut self, _: Block, shadow: Option<Shadow>, _: Reason) -> Admission {
        let Some(shadow) = shadow.map(Shadow::get) else {
            return Admission(0);
        };
        let since = self.departures.wrapping_sub(shadow >> USES_BITS);
        let recent = since < GHOSTS * self.capacity as u64;
        Admission(if recent {
            shadow & u64::from(MOST_USES)
        } else {
            0
        })
    }

    #[inline]
    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        let before = arrival.admission.0 as u32;
        if arrival.reason == Reason::Readahead {
            // Its former uses wait in `expires`, which queue 0 does not look at.
            self.enqueue(frame, 0);
            let life = &mut self.lives[frame as usize];
            life.uses = UNUSED;
            life.expires = before.into();
        } else {
            self.use_now(frame, before);
        }
    }

    #[inline]
    fn touch(&mut self, frame: Frame, _: Touch) {
        let life = self.dequeue(frame);
        let before = if life.uses == UNUSED {
            life.expires as u32
        } else {
            life.uses
        };
        self.use_now(frame, before);
    }

    #[inline]
    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        for gone in 0..wanted {
            let oldest = |queue| oldest_unpinned(queue, &self.links, frames);
            let Some(frame) = self.queues.iter().find_map(oldest) else {
                return gone;
            };
            let life = self.dequeue(frame);
            let shadow = self.shadow(life);
            frames.evicted(frame, Some(shadow));
        }
        wanted
    }

    fn remove(&mut self, frame: Frame) {
        self.dequeue(frame);
    }

    fn park(&mut self, frame: Frame) {
        let queue = self.lives[frame as usize].queue as usize;
        self.queues[queue].park(&mut self.links, frame);
    }

    fn unpark(&mut self, frame: Frame) {
        let queue = self.lives[frame as usize].queue as usize;
        self.queues[queue].unpark(&mut self.links, frame);
    }

    fn invalidate(&mut self, frame: Frame) -> Option<Shadow> {
        let life = self.dequeue(frame);
        Some(self.shadow(life))
    }

    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.links.grow(capacity(frames)?)?;
        grow(&mut self.lives, frames, Life::default())?;
        self.capacity = frames;
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        for (at, queue) in self.queues.iter().enumerate() {
            queue.check(&self.links, "mq")?;
            let stray = |frame: &u32| self.lives[*frame as usize].queue as usize != at;
            if let Some(frame) = queue.iter(&self.links).find(stray) {
                return Err(format!("mq: frame {frame} in queue {at}"));
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.links.bytes() + self.lives.capacity() * size_of::<Life>()
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        const NAMES: [&str; QUEUES] = [
            "1 use", "2 uses", "4 uses", "8 uses", "16 uses", "32 uses", "64 uses", "128 uses",
        ];
        let lens = self.queues.iter().map(|queue| queue.len() as f64);
        NAMES.into_iter().zip(lens).collect()
    }
}
