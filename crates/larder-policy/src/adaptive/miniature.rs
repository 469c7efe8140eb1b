//! Simulations of the experts' settings in miniature, on a sample of the blocks.

use super::super::{FrameState, PolicyError};
use super::counts::Counts;
use super::duel::Duel;
use super::knobs::{AS_LRU, BY_FREQUENCY, COUNT, EXPERTS, Expert};
use super::queues::{Fifos, Lists, QueuesOver, Recency};
use larder_base::table::table;

/// Entries of a set: a block is in the set that its tag names.
const WAYS: usize = 8;
/// In an expert's word for a block: it is in, in the frame that the other bits name. Without it the other bits are the low bits
/// of its number among the ghosts; 0 is neither.
const IN: u16 = 1 << 15;
const GHOST_BITS: u32 = 15;

/// An entry is checked for ghosts in words of as many experts, which a processor compares at once. The last ones are those of the entry
/// behind it.
const LANES: usize = 8;

/// By expert, which ghosts are remembered, by the low bits of their numbers.
#[derive(Debug)]
struct Reach {
    latest: [u16; LANES],
    /// So many numbers up to the latest. What is no expert has more than there are, so its words stay.
    span: [u16; LANES],
}

impl Reach {
    /// Of experts that remember nothing.
    fn new() -> Self {
        let span = |lane| if lane < COUNT { 0 } else { 1 << GHOST_BITS };
        Self {
            latest: [0; LANES],
            span: core::array::from_fn(span),
        }
    }

    fn set(&mut self, expert: usize, (latest, span): (u32, u32)) {
        (self.latest[expert], self.span[expert]) = (latest as u16, span as u16);
    }

    /// The words without the ghosts that are forgotten.
    #[inline]
    fn filter(&self, words: [u16; LANES]) -> [u16; LANES] {
        core::array::from_fn(|lane| {
            let back = self.latest[lane].wrapping_sub(words[lane]) & !IN;
            match back >= self.span[lane] && words[lane] & IN == 0 {
                true => 0,
                false => words[lane],
            }
        })
    }
}

/// One expert.
#[derive(Debug)]
struct Miniature<L> {
    queues: QueuesOver<L>,
    /// By frame: the entry of its block.
    holds: Vec<u16>,
    /// Frames below this never held a block.
    free: u16,
}

/// All experts, each with queues of its own over as many frames, and one directory for all of them: a set-associative table,
/// since it need not be exact and must not grow.
#[derive(Debug)]
pub(super) struct Miniatures {
    fifos: [Miniature<Fifos>; AS_LRU],
    /// The last expert, [`AS_LRU`].
    lru: Miniature<Recency>,
    /// By set: whose blocks the entries are. A tag without words is none.
    tags: Vec<[u32; WAYS]>,
    /// By entry: the words of the experts. One more than there are entries, for the lanes behind the last one.
    words: Vec<[u16; COUNT]>,
    reach: Reach,
    /// Arrivals at the expert by frequency.
    counts: Counts,
    duel: Duel,
    /// By the experts that hit, a bit each.
    accesses: [u64; 1 << COUNT],
    /// Without an entry.
    lost: u64,
    /// The next entry to be checked for ghosts that no expert remembers any more.
    sweep: usize,
}

impl<L: Lists> Miniature<L> {
    fn new(expert: &Expert, frames: usize, capacity: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            queues: QueuesOver::new(frames, expert.knobs(capacity))?,
            holds: table(frames, 0)?,
            free: frames as u16,
        })
    }

    /// A use of the block of an entry, in which this expert has this word, and which it may change as well as those of other blocks. If the
    /// block comes, this is how often it did.
    #[inline]
    fn access(
        &mut self,
        expert: usize,
        entry: usize,
        word: &mut u16,
        others: &mut [[u16; COUNT]],
        count: u8,
    ) {
        let queues = &mut self.queues;
        if *word & IN != 0 {
            return queues.touch(u32::from(*word & !IN));
        }
        let returns = *word != 0
            && queues
                .ghost_of(u32::from(*word), GHOST_BITS)
                .is_some_and(|at| queues.returns(at));
        let frame = if let Some(frame) = self.free.checked_sub(1) {
            self.free = frame;
            u32::from(frame)
        } else if let Some(out) = queues.evict(|_, _| FrameState::Clean) {
            let low = out.ghost.map_or(0, |at| at as u16 & !IN);
            others[usize::from(self.holds[out.frame as usize])][expert] = low;
            out.frame
        } else {
            return;
        };
        queues.insert(frame, returns, false);
        if expert == BY_FREQUENCY {
            queues.set_count(frame, count);
        }
        self.holds[frame as usize] = entry as u16;
        *word = IN | frame as u16;
    }

    /// Says what does not hold, also when these words are those of its blocks.
    fn check(&self, expert: usize, words: &[[u16; COUNT]]) -> Result<(), String> {
        let wrong = |wrong| format!("miniature {expert}: {wrong}");
        self.queues.check().map_err(wrong)?;
        let named = words.iter().filter(|words| words[expert] & IN != 0).count();
        let len = self.queues.len();
        match named == len {
            true => Ok(()),
            false => Err(wrong(format!(
                "{named} entries name a frame, {len} frames are in"
            ))),
        }
    }

    fn bytes(&self) -> usize {
        self.queues.bytes() + self.holds.capacity() * size_of::<u16>()
    }
}

impl Miniatures {
    /// With so many frames each, for a cache of this capacity.
    pub(super) fn new(frames: usize, capacity: usize) -> Result<Self, PolicyError> {
        let sets = frames.next_power_of_two();
        let fifo = |expert: usize| Miniature::new(&EXPERTS[expert], frames, capacity);
        Ok(Self {
            fifos: [fifo(0)?, fifo(1)?, fifo(2)?, fifo(3)?, fifo(BY_FREQUENCY)?],
            lru: Miniature::new(&EXPERTS[AS_LRU], frames, capacity)?,
            tags: table(sets, [0; WAYS])?,
            words: table(sets * WAYS + 1, [0; COUNT])?,
            reach: Reach::new(),
            counts: Counts::new(frames)?,
            duel: Duel::new(frames),
            accesses: [0; 1 << COUNT],
            lost: 0,
            sweep: 0,
        })
    }

    /// A use of a sampled block, and whether the cache had it, if it got it as the miniatures do. Returns the expert that rules from now on, if that changes.
    pub(super) fn access(&mut self, tag: u32, own: Option<bool>) -> Option<usize> {
        self.forget();
        let Some(entry) = self.find(tag) else {
            self.lost += 1;
            return None;
        };
        // An expert changes the word of a block that leaves, and that is another block: so these words stay as they are until all are
        // written.
        let mut words = self.words[entry];
        let add = |hits, word| hits << 1 | u8::from(word & IN != 0);
        let hits = words.into_iter().rev().fold(0, add);
        let [first @ .., last] = &mut words;
        let count = match (hits >> BY_FREQUENCY) & 1 {
            0 => self.counts.add(tag),
            _ => 0,
        };
        for (expert, (fifo, word)) in self.fifos.iter_mut().zip(first).enumerate() {
            fifo.access(expert, entry, word, &mut self.words, count);
            self.reach.set(expert, fifo.queues.reach());
        }
        self.lru.access(AS_LRU, entry, last, &mut self.words, 0);
        self.reach.set(AS_LRU, self.lru.queues.reach());
        self.words[entry] = words;
        self.accesses[usize::from(hits)] += 1;
        self.duel.observe(hits, own)
    }

    /// The entry of a block: its own, or one that no expert needs. None if all entries of its set hold blocks that are in.
    #[inline]
    fn find(&mut self, tag: u32) -> Option<usize> {
        let set = tag as usize & (self.tags.len() - 1);
        let tags = &mut self.tags[set];
        let words = &mut self.words[set * WAYS..][..WAYS];
        let ways = tags.iter().enumerate();
        let mut same = ways.fold(0, |same, (way, &other)| {
            same | u32::from(other == tag) << way
        });
        while same != 0 {
            let way = same.trailing_zeros() as usize;
            if words[way] != [0; COUNT] {
                return Some(set * WAYS + way);
            }
            same &= same - 1;
        }
        let unused = |words: &[u16; COUNT]| *words == [0; COUNT];
        let ghostly = |words: &[u16; COUNT]| words.iter().all(|word| word & IN == 0);
        let way = words.iter().position(unused);
        let way = way.or_else(|| words.iter().position(ghostly))?;
        (tags[way], words[way]) = (tag, [0; COUNT]);
        Some(set * WAYS + way)
    }

    /// Looks at one entry: ghosts that are forgotten get no word. All entries are seen before 8 times as many blocks leave as
    /// there are frames, which is before their numbers come again.
    fn forget(&mut self) {
        let words = self.words[self.sweep..].as_flattened_mut();
        if let Some(words) = words.first_chunk_mut() {
            *words = self.reach.filter(*words);
        }
        self.sweep = (self.sweep + 1) & (self.tags.len() * WAYS - 1);
    }

    /// The expert that rules, and the misses of each.
    pub(super) fn explain(&self) -> Vec<(&'static str, f64)> {
        let mut all = vec![
            ("expert", self.duel.ruling() as f64),
            ("switches", self.duel.switches() as f64),
            ("falls back to LRU", self.duel.falls() as f64),
            (
                "sampled accesses",
                (self.lost + self.accesses.iter().sum::<u64>()) as f64,
            ),
        ];
        all.extend(EXPERTS.iter().enumerate().map(|(at, expert)| {
            let missed = self.accesses.iter().enumerate();
            let missed = missed.filter(|(hits, _)| hits >> at & 1 == 0);
            (expert.name, missed.map(|(_, &n)| n as f64).sum())
        }));
        all
    }

    pub(super) fn bytes(&self) -> usize {
        self.fifos.iter().map(Miniature::bytes).sum::<usize>()
            + self.lru.bytes()
            + self.counts.bytes()
            + self.tags.capacity() * size_of::<[u32; WAYS]>()
            + self.words.capacity() * size_of::<[u16; COUNT]>()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        for (expert, fifo) in self.fifos.iter().enumerate() {
            fifo.check(expert, &self.words)?;
        }
        self.lru.check(AS_LRU, &self.words)
    }
}
