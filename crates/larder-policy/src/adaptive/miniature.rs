//! Simulations of the experts' settings in miniature, on a sample of the blocks.

use super::super::{FrameState, PolicyError};
use super::duel::Duel;
use super::knobs::{COUNT, EXPERTS, Expert};
use super::queues::{FrameLinks, QueuesOver};
use larder_base::list::Links16;
use larder_base::table::{NoMemory, table};

/// Entries of a set: a block is in the set that its tag names.
const WAYS: usize = 8;
/// In an expert's word for a block: it is in, in the frame that the other bits name. Without it the other bits are the low bits
/// of its number among the ghosts; 0 is neither.
const IN: u16 = 1 << 15;
const GHOST_BITS: u32 = 15;

impl FrameLinks for Links16 {
    const WAIT: bool = false;

    fn new(frames: usize) -> Result<Self, NoMemory> {
        Self::new(frames)
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }
}

/// A block that at least one expert has or remembers.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// In halves, so that an entry has 14 bytes.
    tag: [u16; 2],
    words: [u16; COUNT],
}

const EMPTY: Entry = Entry {
    tag: [0; 2],
    words: [0; COUNT],
};

/// One expert.
#[derive(Debug)]
struct Miniature {
    queues: QueuesOver<Links16>,
    /// By frame: the entry of its block.
    holds: Vec<u16>,
    /// Frames below this never held a block.
    free: u16,
}

/// All experts, each with queues of its own over as many frames, and one directory for all of them: a set-associative table,
/// since it need not be exact and must not grow.
#[derive(Debug)]
pub(super) struct Miniatures {
    experts: Vec<Miniature>,
    entries: Vec<Entry>,
    duel: Duel,
    /// By the experts that hit, a bit each.
    accesses: [u64; 1 << COUNT],
    /// Without an entry.
    lost: u64,
    /// The next entry to be checked for ghosts that no expert remembers any more.
    sweep: usize,
}

impl Miniature {
    /// Brings the block of an entry, whose word is this one, to a frame. Also returns the entry of the block that leaves for it, and its
    /// word from then on.
    #[inline]
    fn bring(&mut self, word: u16, entry: u16) -> Option<(u16, Option<(u16, u16)>)> {
        let queues = &mut self.queues;
        let returns = word != 0
            && queues
                .ghost_of(u32::from(word), GHOST_BITS)
                .is_some_and(|at| queues.returns(at));
        let (frame, out) = match self.free.checked_sub(1) {
            Some(frame) => {
                self.free = frame;
                (frame, None)
            }
            None => {
                let out = queues.evict(|_, _| FrameState::Clean)?;
                let low = out.ghost.map_or(0, |at| at as u16 & !IN);
                (
                    out.frame as u16,
                    Some((self.holds[out.frame as usize], low)),
                )
            }
        };
        queues.insert(u32::from(frame), returns, false);
        self.holds[usize::from(frame)] = entry;
        Some((frame, out))
    }

    fn bytes(&self) -> usize {
        self.queues.bytes() + self.holds.capacity() * size_of::<u16>()
    }
}

impl Miniatures {
    /// With so many frames each, for a cache of this capacity.
    pub(super) fn new(frames: usize, capacity: usize) -> Result<Self, PolicyError> {
        let sets = frames.next_power_of_two();
        let miniature = |expert: &Expert| {
            Ok(Miniature {
                queues: QueuesOver::new(frames, expert.knobs(capacity))?,
                holds: table(frames, 0)?,
                free: frames as u16,
            })
        };
        let experts: Result<_, PolicyError> = EXPERTS.iter().map(miniature).collect();
        Ok(Self {
            experts: experts?,
            entries: table(sets * WAYS, EMPTY)?,
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
        let mut hits = 0;
        for (expert, miniature) in self.experts.iter_mut().enumerate() {
            let word = self.entries[entry].words[expert];
            if word & IN != 0 {
                miniature.queues.touch(u32::from(word & !IN));
                hits |= 1 << expert;
            } else if let Some((frame, out)) = miniature.bring(word, entry as u16) {
                if let Some((entry, word)) = out {
                    self.entries[usize::from(entry)].words[expert] = word;
                }
                self.entries[entry].words[expert] = IN | frame;
            }
        }
        self.accesses[usize::from(hits)] += 1;
        self.duel.observe(hits, own)
    }

    /// The entry of a block: its own, or one that no expert needs. None if all entries of its set hold blocks that are in.
    fn find(&mut self, tag: u32) -> Option<usize> {
        let halves = [tag as u16, (tag >> 16) as u16];
        let sets = self.entries.len() / WAYS;
        let first = (tag as usize & (sets - 1)) * WAYS;
        let set = &self.entries[first..first + WAYS];
        let unused = |entry: &Entry| entry.words == EMPTY.words;
        let own = |entry: &Entry| entry.tag == halves && !unused(entry);
        if let Some(way) = set.iter().position(own) {
            return Some(first + way);
        }
        let ghostly = |entry: &Entry| entry.words.iter().all(|word| word & IN == 0);
        let way = set.iter().position(unused);
        let at = first + way.or_else(|| set.iter().position(ghostly))?;
        self.entries[at] = Entry {
            tag: halves,
            ..EMPTY
        };
        Some(at)
    }

    /// Looks at one entry: ghosts that are forgotten get no word. All entries are seen before 8 times as many blocks leave as
    /// there are frames, which is before their numbers come again.
    fn forget(&mut self) {
        let entry = &mut self.entries[self.sweep];
        for (word, expert) in entry.words.iter_mut().zip(&self.experts) {
            let ghost = *word & IN == 0 && *word != 0;
            if ghost && !expert.queues.in_reach(u32::from(*word), GHOST_BITS) {
                *word = 0;
            }
        }
        self.sweep = (self.sweep + 1) & (self.entries.len() - 1);
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
        self.experts.iter().map(Miniature::bytes).sum::<usize>()
            + self.entries.capacity() * size_of::<Entry>()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        for (expert, Miniature { queues, .. }) in self.experts.iter().enumerate() {
            queues
                .check()
                .map_err(|wrong| format!("miniature {expert}: {wrong}"))?;
            let named = self
                .entries
                .iter()
                .filter(|entry| entry.words[expert] & IN != 0)
                .count();
            if named != queues.len() {
                return Err(format!(
                    "miniature {expert}: {named} entries name a frame, {} frames are in",
                    queues.len()
                ));
            }
        }
        Ok(())
    }
}
