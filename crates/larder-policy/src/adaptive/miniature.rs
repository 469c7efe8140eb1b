//! Simulations of the experts' settings in miniature, on a sample of the blocks.

use super::super::{FrameState, PolicyError};
use super::duel::Duel;
use super::knobs::{COUNT, EXPERTS};
use super::queues::Queues;
use larder_base::table::table;

/// Entries of a set: a block is in the set that its tag names.
const WAYS: usize = 8;
/// In an expert's word for a block: it is in, in the frame that the other bits name. Without it the other bits are the low bits
/// of its number among the ghosts; 0 is neither.
const IN: u16 = 1 << 15;
const GHOST_BITS: u32 = 15;

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

/// All experts, each with queues of its own over as many frames, and one directory for all of them: a set-associative table,
/// since it need not be exact and must not grow.
#[derive(Debug)]
pub(super) struct Miniatures {
    cores: Vec<Queues>,
    /// By expert and frame: the entry of its block.
    holds: Vec<u16>,
    /// By expert: frames below this never held a block.
    free: [u16; COUNT],
    entries: Vec<Entry>,
    frames: usize,
    duel: Duel,
    accesses: u64,
    misses: [u64; COUNT],
    /// The next entry to be checked for ghosts that no expert remembers any more.
    sweep: usize,
}

impl Miniatures {
    /// With so many frames each, for a cache of this capacity.
    pub(super) fn new(frames: usize, capacity: usize) -> Result<Self, PolicyError> {
        let sets = frames.next_power_of_two();
        let mut cores = Vec::new();
        for expert in &EXPERTS {
            cores.push(Queues::new(frames, expert.knobs(capacity))?);
        }
        Ok(Self {
            cores,
            holds: table(frames * COUNT, 0)?,
            free: [frames as u16; COUNT],
            entries: table(sets * WAYS, EMPTY)?,
            frames,
            duel: Duel::new(frames),
            accesses: 0,
            misses: [0; COUNT],
            sweep: 0,
        })
    }

    /// A use of a sampled block, and whether the cache had it, if it got it as the miniatures do. Returns the expert that rules from now on, if that changes.
    pub(super) fn access(&mut self, tag: u32, own: Option<bool>) -> Option<usize> {
        self.accesses += 1;
        self.forget();
        let entry = self.find(tag)?;
        let mut hits = 0;
        for expert in 0..COUNT {
            let hit = self.access_one(expert, entry);
            hits |= u8::from(hit) << expert;
            self.misses[expert] += u64::from(!hit);
        }
        self.duel.observe(hits, own)
    }

    fn access_one(&mut self, expert: usize, entry: usize) -> bool {
        let word = self.entries[entry].words[expert];
        let core = &mut self.cores[expert];
        if word & IN != 0 {
            core.touch(u32::from(word & !IN));
            return true;
        }
        let returns = word != 0
            && core
                .ghost_of(u32::from(word), GHOST_BITS)
                .is_some_and(|at| core.returns(at));
        let frame = match self.free[expert].checked_sub(1) {
            Some(frame) => {
                self.free[expert] = frame;
                frame
            }
            None => match self.make_room(expert) {
                Some(frame) => frame,
                None => return false,
            },
        };
        self.cores[expert].insert(u32::from(frame), returns, false);
        self.holds[expert * self.frames + usize::from(frame)] = entry as u16;
        self.entries[entry].words[expert] = IN | frame;
        false
    }

    fn make_room(&mut self, expert: usize) -> Option<u16> {
        let out = self.cores[expert].evict(|_, _| FrameState::Clean)?;
        let entry = self.holds[expert * self.frames + out.frame as usize];
        let entry = usize::from(entry);
        let low = out.ghost.map_or(0, |at| at as u16 & !IN);
        self.entries[entry].words[expert] = low;
        Some(out.frame as u16)
    }

    /// The entry of a block: its own, or one that no expert needs. None if all entries of its set hold blocks that are in.
    fn find(&mut self, tag: u32) -> Option<usize> {
        let halves = [tag as u16, (tag >> 16) as u16];
        let sets = self.entries.len() / WAYS;
        let first = (tag as usize & (sets - 1)) * WAYS;
        let set = &self.entries[first..first + WAYS];
        let mut unused = None;
        for (way, entry) in set.iter().enumerate() {
            if entry.words == EMPTY.words {
                unused = unused.or(Some(way));
            } else if entry.tag == halves {
                return Some(first + way);
            }
        }
        let ghostly = |entry: &Entry| entry.words.iter().all(|word| word & IN == 0);
        let at = first + unused.or_else(|| set.iter().position(ghostly))?;
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
        for (word, core) in entry.words.iter_mut().zip(&self.cores) {
            let ghost = *word & IN == 0 && *word != 0;
            if ghost && core.ghost_of(u32::from(*word), GHOST_BITS).is_none() {
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
            ("sampled accesses", self.accesses as f64),
        ];
        let misses = EXPERTS.iter().zip(self.misses);
        all.extend(misses.map(|(expert, misses)| (expert.name, misses as f64)));
        all
    }

    pub(super) fn bytes(&self) -> usize {
        self.cores.iter().map(Queues::bytes).sum::<usize>()
            + self.holds.capacity() * size_of::<u16>()
            + self.entries.capacity() * size_of::<Entry>()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        for (expert, core) in self.cores.iter().enumerate() {
            core.check()
                .map_err(|wrong| format!("miniature {expert}: {wrong}"))?;
            let named = self
                .entries
                .iter()
                .filter(|entry| entry.words[expert] & IN != 0)
                .count();
            if named != core.len() {
                return Err(format!(
                    "miniature {expert}: {named} entries name a frame, {} frames are in",
                    core.len()
                ));
            }
        }
        Ok(())
    }
}
