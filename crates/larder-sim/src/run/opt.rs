//! OPT: the block whose next use is farthest away leaves (Belady, IBM Systems Journal 5(2), 1966; Mattson et al. 1970).
//!
//! Next uses are all different, so what is resident is a set of points in time, and the victim is its largest member. The set
//! is a bitmap with summaries, 64 to 1. A block is resident exactly if the time at which it is used next is in the set, so
//! a hit is a look at the present's own bit, and no table of blocks is needed: time goes through the bitmap in order.
//! A miss always brings its block in, as in demand paging; if blocks could bypass the cache, more hits would be possible.

use std::borrow::Cow;
use std::sync::Arc;

use larder_policy::PolicyError;

use super::super::load::{Chunk, Loaded};
use super::super::spill::{Spill, append, numbers};
use super::super::{Kind, SimError};
use super::cell::{Cell, CellError, Tally};

/// Not used again.
const NEVER: u32 = u32::MAX;

/// For each record, the record at which its block comes next. 4 bytes a record, made once for all sizes; what the trace's memory
/// does not hold of them is in its file.
#[derive(Debug)]
pub struct NextUse {
    /// By chunk of the trace.
    parts: Vec<Part>,
    records: usize,
}

#[derive(Debug)]
enum Part {
    Kept(Vec<u32>),
    Spilled {
        file: Arc<Spill>,
        at: u64,
        records: usize,
    },
}

impl NextUse {
    /// Looks at the whole trace from its end. O(n).
    ///
    /// # Errors
    /// [`SimError::TooMuch`]: 2^32 - 1 records or more, or no memory. [`SimError::Spill`].
    pub fn of(trace: &Loaded) -> Result<Self, SimError> {
        let refused = |fault: String| SimError::TooMuch {
            trace: trace.name.clone(),
            fault,
        };
        let records = trace.records();
        if records >= NEVER as usize {
            return Err(refused(format!(
                "opt numbers records with 32 bits, and there are {records}; take a part of it with --limit, or leave opt out"
            )));
        }
        let no_memory = |n: usize| {
            let bytes = n.saturating_mul(4);
            refused(format!(
                "no memory for {bytes} bytes, which opt needs of it"
            ))
        };
        let blocks = trace.counts.blocks as usize;
        let mut seen = Vec::new();
        seen.try_reserve_exact(blocks)
            .map_err(|_| no_memory(blocks))?;
        seen.resize(blocks, NEVER);
        let mut parts = Vec::new();
        let (mut at, mut kept) = (records, 0);
        for chunk in trace.chunks().rev() {
            let chunk = chunk?;
            let n = chunk.blocks.len();
            let mut next = Vec::new();
            next.try_reserve_exact(n).map_err(|_| no_memory(n))?;
            next.resize(n, NEVER);
            for (k, (&block, next)) in chunk.blocks.iter().zip(&mut next).enumerate().rev() {
                at -= 1;
                let last = &mut seen[block as usize];
                let kind = chunk.kinds.get(k).copied().unwrap_or_default();
                if kind.is_state() {
                    continue;
                }
                let removes = kind == Kind::Remove;
                *next = if removes { NEVER } else { *last };
                // A removal is no use: for earlier records, the block's uses end here.
                *last = if removes { NEVER } else { at as u32 };
            }
            kept += 4 * n as u64;
            parts.push(match trace.overflow(kept) {
                None => Part::Kept(next),
                Some(file) => {
                    kept -= 4 * n as u64;
                    let mut bytes = Vec::with_capacity(4 * n);
                    append(&mut bytes, &next);
                    let at = file.write(&bytes)?;
                    Part::Spilled {
                        file,
                        at,
                        records: n,
                    }
                }
            });
        }
        parts.reverse();
        Ok(Self { parts, records })
    }

    /// Bytes that OPT needs for a trace of so many records: what all sizes share, and what each size has for itself.
    ///
    /// ```
    /// assert_eq!(larder_sim::NextUse::bytes(1 << 20), (4 << 20, 133_160));
    /// ```
    #[must_use]
    pub fn bytes(records: u64) -> (u64, u64) {
        let mut words = records.div_ceil(64).max(1);
        let mut all = words;
        while words > 1 {
            words = words.div_ceil(64);
            all += words;
        }
        (records.saturating_mul(4), all * 8)
    }

    /// For each record of a chunk the number of the record at which its block comes next; 2^32 - 1 if it does not, or is removed
    /// before.
    ///
    /// # Errors
    /// [`SimError::Spill`].
    pub fn part(&self, chunk: usize) -> Result<Cow<'_, [u32]>, SimError> {
        Ok(match self.parts.get(chunk) {
            None => Cow::Borrowed(&[]),
            Some(Part::Kept(next)) => Cow::Borrowed(next),
            Some(Part::Spilled { file, at, records }) => {
                Cow::Owned(numbers(&file.read(*at, records * 4)?))
            }
        })
    }
}

/// A set of times whose largest member is found in a few steps.
#[derive(Debug)]
struct Times {
    /// Bit t of the first level: t is in. Bit k of a higher one: word k below it is not 0.
    levels: Vec<Vec<u64>>,
}

impl Times {
    fn new(n: usize) -> Result<Self, PolicyError> {
        let mut levels = Vec::new();
        let mut words = n.div_ceil(64).max(1);
        loop {
            let mut level = Vec::new();
            level
                .try_reserve_exact(words)
                .map_err(|_| PolicyError::Memory {
                    bytes: words.saturating_mul(8),
                })?;
            level.resize(words, 0);
            levels.push(level);
            if words == 1 {
                return Ok(Self { levels });
            }
            words = words.div_ceil(64);
        }
    }

    #[inline]
    fn insert(&mut self, mut at: usize) {
        for level in &mut self.levels {
            let word = &mut level[at >> 6];
            let empty = *word == 0;
            *word |= 1 << (at & 63);
            if !empty {
                return;
            }
            at >>= 6;
        }
    }

    #[inline]
    fn remove(&mut self, mut at: usize) -> bool {
        if self.levels[0][at >> 6] & (1 << (at & 63)) == 0 {
            return false;
        }
        for level in &mut self.levels {
            let word = &mut level[at >> 6];
            *word &= !(1 << (at & 63));
            if *word != 0 {
                break;
            }
            at >>= 6;
        }
        true
    }

    /// The largest member.
    #[inline]
    fn last(&self) -> Option<usize> {
        let mut at = 0;
        for level in self.levels.iter().rev() {
            let word = level[at];
            if word == 0 {
                return None;
            }
            at = at * 64 + (63 - word.leading_zeros() as usize);
        }
        Some(at)
    }
}

/// OPT for one size. 1 bit a record. It runs over the chunks of the trace whose next uses it has, in their order.
#[derive(Debug)]
pub struct Opt {
    next: Arc<NextUse>,
    /// Chunks that it has seen.
    chunks: usize,
    size: usize,
    /// When residents are used next.
    due: Times,
    /// Residents that are used again.
    live: usize,
    /// Residents that are not: they leave first. A removed block is one of them until its frame is wanted.
    dead: usize,
    now: usize,
    tally: Tally,
}

impl Opt {
    /// # Errors
    /// [`PolicyError`]: no room for anything, or no memory.
    pub fn new(size: usize, next: Arc<NextUse>) -> Result<Self, PolicyError> {
        if size == 0 {
            return Err(PolicyError::Capacity {
                frames: 0,
                most: larder_policy::MOST_FRAMES,
            });
        }
        Ok(Self {
            due: Times::new(next.records)?,
            next,
            chunks: 0,
            size,
            live: 0,
            dead: 0,
            now: 0,
            tally: Tally::default(),
        })
    }

    #[inline]
    fn come(&mut self) {
        if self.live + self.dead == self.size {
            if self.dead > 0 {
                self.dead -= 1;
            } else if let Some(last) = self.due.last() {
                self.due.remove(last);
                self.live -= 1;
            }
        }
    }

    #[inline]
    fn stay(&mut self, next: u32) {
        match next {
            NEVER => self.dead += 1,
            next => {
                self.due.insert(next as usize);
                self.live += 1;
            }
        }
    }
}

impl Cell for Opt {
    fn run(&mut self, chunk: &Chunk) -> Result<(), CellError> {
        let all = Arc::clone(&self.next);
        let next = all.part(self.chunks)?;
        self.chunks += 1;
        for (n, &next) in next.iter().enumerate() {
            let kind = chunk.kinds.get(n).copied().unwrap_or_default();
            // OPT is a bound, so it lets dirty blocks go as well.
            if kind.is_use() || kind == Kind::Readahead {
                let uses = u64::from(kind.is_use());
                if self.due.remove(self.now) {
                    self.live -= 1;
                    self.tally.hits += uses;
                } else {
                    self.tally.misses += uses;
                    self.tally.fetched += 1 - uses;
                    self.come();
                }
                self.stay(next);
            }
            self.now += 1;
        }
        Ok(())
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn bytes(&self) -> usize {
        self.due.levels.iter().map(|l| l.capacity() * 8).sum()
    }
}
