//! The rule that tunes itself: two queues with ghosts and a correlation window, with the proportions that do best in miniature
//! on a sample of the same blocks.

mod counts;
mod duel;
mod first;
mod ghosts;
mod guard;
mod knobs;
mod late;
mod miniature;
mod queues;
mod sample;
mod tags;
#[cfg(test)]
mod tests;
mod trial;

use super::capacity::capacity;
use super::{
    Admission, Arrival, Block, Frame, FrameState, Frames, Policy, PolicyError, Reason, Shadow,
    Touch,
};
use counts::Counts;
use knobs::{BY_FREQUENCY, EXPERTS};
use late::LateMiniatures;
use queues::{Border, Queues};
use sample::Sample;
use tags::Tags;

/// Set in an admission: the block comes back from the ghosts and belongs to the main queue.
const RETURNS: u64 = 1;
/// A miss made the admission, so it has what follows.
const TOLD: u64 = 1 << 1;
/// The block is sampled.
const SAMPLED: u64 = 1 << 2;
/// Above these bits of an admission is how often the block came, and above those its name among the sampled ones.
const COUNT_SHIFT: u32 = 8;
const NAME_SHIFT: u32 = 32;

/// The default rule. It has no parameters to set.
///
/// New blocks wait in a small FIFO; those that are used again after the first half of it go to the main queue, a CLOCK with two
/// bits, and so do those that come back soon after they left (S3-FIFO, SOSP 2023; 2Q, VLDB 1994; the window in which
/// correlated touches do not count is that of Clock2Q+, arXiv 2511.21958). Three things are no constants: how large the small queue is,
/// how long a block that left is remembered, and what one must show to stay instead of another. Nothing; that it is used more
/// often, as in LIRS (SIGMETRICS 2002), which loops need; or that it came more often, as in W-TinyLFU (ACM ToS 2017). Six
/// settings run in miniature beside the cache, each with 64 to 2048 frames and the corresponding share of the blocks (SHARDS,
/// FAST 2015). One of them is LRU. The cache takes over a setting that does better than its own by more than chance and by more than
/// the move costs.
///
/// Against LRU little can be lost. When the cache itself is half a miss a frame behind LRU in miniature, LRU rules for a time that
/// doubles with each such fall, until enough is won elsewhere. So a run of u uses a frame has at most 2 + 1.5 log2(u) misses a
/// frame more than LRU; in caches of more than 64 frames this is said of the sampled uses. Readahead, blocks that may not leave, and
/// uses while more than an eighth of the frames is parked are left out, and later as many misses as there were then.
///
/// A sample may hold less of a loop than its share, and fit into a miniature where the loop does not fit into the cache. So an expert that
/// rules must keep what its miniature promises: where the cache stays behind it, and behind the miniature of the expert before, by more than
/// a move can cost, it goes back to the one before. For LRU the guard waits four times as long then, up to three times.
///
/// A block that is read ahead waits apart for its first use, until as many blocks have come as a quarter of the frames. Then it counts
/// as a new block. So many readers at once need no more room in the small queue than one.
///
/// The queues share out the frames that are not [parked](Policy::park). While more than an eighth of them are, the miniatures are shown
/// nothing: all their frames may leave, so they would say what a larger cache needs.
///
/// Blocks that come while the cache fills wait in a FIFO of their own, apart from the small queue. They stay until there is evidence
/// against them: each return of a block that left in their stead, as soon as it would still be here otherwise, counts against them,
/// each first use of one that would have left by now
/// in the order of arrival counts for them, and all counts halve every 64 departures. So a loop that runs only a few times hits from the
/// second time on (as under LIRS, which keeps the first blocks), and where recent blocks are used again the first ones leave as in a
/// FIFO. Where the expert for loops takes over, what the small queue has too much joins them.
///
/// A use that does not change the queues is shown to the miniatures once between two arrivals: repeated uses without an arrival say
/// nothing about how long a block must be kept, and cost nothing.
///
/// The expert by frequency counts in a sketch how often blocks come, and not how often they are used: so its hits cost what others'
/// do. A block keeps the count with which it came. The sketch is made when this expert first rules. It has 8 to 16 bytes a frame in
/// caches of up to 4096 frames, and 2 to 4 in those of more than 16 Ki; the count is one byte more.
///
/// 9 bytes a frame in caches of less than 64 Ki frames and 11 in larger ones, half a byte for the ghosts that there may be, and 14
/// to 440 KiB for the miniatures, of which the larger belong to caches of 64 Ki frames and more. They are made when more sampled
/// uses have been seen than half as many as each has frames: before, nothing could follow from them. A hit is two stores into the
/// frame's state and stamp when these change, under LRU a list move; one hit in 32 (one in
/// n/2048 in the largest caches, in 16 to 32 in those of less than 4096 frames, in n/64 in those of less than 1024, and every one up
/// to 64) is also six looks into the miniatures.
///
/// ```
/// use larder_policy::{Adaptive, replay::Replay};
/// // a loop of 110 blocks over a cache of 100, in which LRU never hits
/// let mut cache = Replay::new(Adaptive::new(100)?)?;
/// for at in 0..110_000 {
///     cache.access(at % 110, at);
/// }
/// assert!(cache.hits() > 80_000);
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct Adaptive {
    queues: Queues,
    sample: Sample,
    /// Made when the expert by frequency first rules.
    counts: Option<Counts>,
    tags: Tags,
    miniatures: LateMiniatures,
    /// Of the small queue, when it was last asked whether it moved.
    border: Border,
    /// Misses that are no rule's fault: of as many blocks that came while frames were parked, in whose stead others left.
    excused: usize,
}

/// For the sampled frames of a cache of this many.
fn tags(sample: &Sample, frames: usize) -> Result<Tags, PolicyError> {
    if sample.frames() == frames {
        return Ok(Tags::of_all());
    }
    Tags::new(sample.frames())
}

impl Adaptive {
    /// A rule for this many frames, with the constants of its source.
    ///
    /// # Errors
    /// [`PolicyError`]: a capacity of 0 or more than [`MOST_FRAMES`](crate::MOST_FRAMES), or no memory.
    pub fn new(frames: usize) -> Result<Self, PolicyError> {
        let frames = capacity(frames)?;
        let sample = Sample::new(frames);
        Ok(Self {
            queues: Queues::new(frames, EXPERTS[0].knobs(frames))?,
            counts: None,
            tags: tags(&sample, frames)?,
            miniatures: LateMiniatures::new(sample.frames(), frames),
            border: Border::default(),
            excused: 0,
            sample,
        })
    }

    /// Shows a sampled use to the miniatures, and takes over the setting of a better one.
    #[cold]
    fn learn(&mut self, tag: u32, own: Option<bool>) {
        let own = match own {
            Some(false) if self.excused > 0 => {
                self.excused -= 1;
                None
            }
            own => own,
        };
        if let Some(expert) = self.miniatures.access(tag, own) {
            if expert == BY_FREQUENCY && self.counts.is_none() {
                self.begin_to_count();
            }
            self.queues
                .set(EXPERTS[expert].knobs(self.queues.capacity()));
        }
    }

    /// What is in counts as if it had come once. Without memory every block does.
    fn begin_to_count(&mut self) {
        if let Ok(counts) = Counts::new(self.queues.capacity())
            && self.queues.begin_to_count().is_ok()
        {
            self.counts = Some(counts);
        }
    }

    /// A use of the block in a sampled frame. One that tells the queues nothing is shown to the miniatures once between two arrivals:
    /// more say nothing of how long the block must be kept.
    #[cold]
    fn sampled_use(&mut self, frame: Frame) {
        if self.queues.is_confined() {
            return self.queues.touch(frame);
        }
        let settled = self.tags.is_shown(frame, self.queues.came())
            && (self.queues.is_lru() || self.queues.settled(frame));
        // The miniatures know of no readahead.
        let own = (!self.queues.waits(frame)).then_some(true);
        self.queues.touch(frame);
        if !settled && let Some(tag) = self.tags.show(frame, self.queues.came()) {
            self.learn(tag, own);
        }
    }
}

impl Policy for Adaptive {
    fn capacity(&self) -> usize {
        self.queues.capacity()
    }

    fn len(&self) -> usize {
        self.queues.len()
    }

    fn miss(&mut self, block: Block, shadow: Option<Shadow>, reason: Reason) -> Admission {
        let returns = shadow.is_some_and(|shadow| self.queues.returns(shadow.get() as u32));
        let (name, sampled) = self.sample.name(block);
        if sampled && reason != Reason::Readahead {
            match self.queues.is_confined() {
                true => self.excused = (self.excused + 1).min(self.sample.frames()),
                false => self.learn(name, Some(false)),
            }
        }
        let count = match &mut self.counts {
            Some(counts) => counts.add(name).into(),
            None => 0,
        };
        let bits = (u64::from(returns) * RETURNS) | (u64::from(sampled) * SAMPLED) | TOLD;
        Admission(u64::from(name) << NAME_SHIFT | count << COUNT_SHIFT | bits)
    }

    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        let Admission(told) = arrival.admission;
        let returns = told & RETURNS != 0;
        let unused = arrival.reason == Reason::Readahead;
        self.queues.insert(frame, returns, unused);
        if self.counts.is_some() {
            // One that no miss was told of has come once.
            let count = (told >> COUNT_SHIFT) as u8;
            self.queues.set_count(frame, count.max(1));
        }
        let (name, sampled) = match told & TOLD {
            0 => self.sample.name(arrival.block),
            _ => ((told >> NAME_SHIFT) as u32, told & SAMPLED != 0),
        };
        if sampled {
            // The miss was shown.
            let shown = self.queues.came().wrapping_sub(u32::from(unused));
            if self.tags.insert(frame, name, shown) {
                self.queues.mark_sampled(frame);
            }
        }
    }

    #[inline]
    fn touch(&mut self, frame: Frame, _: Touch) {
        if self.queues.is_sampled(frame) {
            self.sampled_use(frame);
        } else {
            self.queues.touch(frame);
        }
    }

    #[inline]
    fn settled(&self, frame: Frame) -> bool {
        self.queues.settled(frame)
            && (!self.queues.is_sampled(frame)
                || self.queues.is_confined()
                || self.tags.is_shown(frame, self.queues.came()))
    }

    fn unsettled(&mut self) -> bool {
        let border = self.queues.border();
        core::mem::replace(&mut self.border, border) != border
    }

    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        let mut gone = 0;
        while gone < wanted {
            let ask = |frame, waited| {
                let state = frames.state(frame);
                if waited && state != FrameState::Clean {
                    frames.write_back(frame);
                }
                state
            };
            let Some(out) = self.queues.evict(ask) else {
                break;
            };
            if out.sampled {
                self.tags.remove(out.frame);
            }
            frames.evicted(out.frame, out.ghost.map(|at| Shadow::new(u64::from(at))));
            gone += 1;
        }
        gone
    }

    fn remove(&mut self, frame: Frame) {
        if self.queues.remove(frame) {
            self.tags.remove(frame);
        }
    }

    fn remembers(&self, shadow: Shadow) -> bool {
        self.queues.remembers(shadow.get() as u32)
    }

    fn shadow_bits(&self) -> Option<u32> {
        Some(self.queues.ghost_bits())
    }

    fn whole_shadow(&self, low: u64) -> Shadow {
        let at = self.queues.number(low as u32, self.queues.ghost_bits());
        Shadow::new(u64::from(at))
    }

    fn park(&mut self, frame: Frame) {
        self.queues.park(frame);
    }

    fn unpark(&mut self, frame: Frame) {
        self.queues.unpark(frame);
    }

    /// It shares out the frames that are not parked, and asks for writes of those that wait for long.
    fn keeps_apart(&self) -> bool {
        true
    }

    fn invalidate(&mut self, frame: Frame) -> Option<Shadow> {
        let out = self.queues.invalidate(frame);
        if out.sampled {
            self.tags.remove(frame);
        }
        out.ghost.map(|at| Shadow::new(at.into()))
    }

    /// The miniatures begin anew, since the sample is another one, and the first expert rules until they know better.
    fn resize(&mut self, frames: usize) -> Result<(), PolicyError> {
        let sample = Sample::new(capacity(frames)?);
        let miniatures = LateMiniatures::new(sample.frames(), frames);
        let tags = tags(&sample, frames)?;
        self.queues.resize(frames)?;
        self.queues.forget_samples();
        (self.sample, self.miniatures, self.tags) = (sample, miniatures, tags);
        self.counts = None;
        self.queues.forget_counts();
        self.excused = 0;
        self.queues.set(EXPERTS[0].knobs(frames));
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.queues.check()?;
        self.miniatures.check()
    }

    fn bytes(&self) -> usize {
        let counts = self.counts.as_ref().map_or(0, Counts::bytes);
        self.queues.bytes() + counts + self.tags.bytes() + self.miniatures.bytes()
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        let mut all = self.miniatures.explain();
        let at = all.len().min(4);
        all.splice(at..at, self.queues.explain());
        all
    }
}
