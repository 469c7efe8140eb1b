//! OPT: the block whose next use is farthest away leaves (Belady, IBM Systems Journal 5(2), 1966; Mattson et al. 1970).
//!
//! Next uses are all different, so what is resident is a set of points in time, and the victim is its largest member. The set
//! is a bitmap with summaries, 64 to 1. A block is resident exactly if the time at which it is used next is in the set, so
//! a hit is a look at the present's own bit, and no table of blocks is needed: time goes through the bitmap in order.
//! A miss always brings its block in, as in demand paging; if blocks could bypass the cache, more hits would be possible.

use std::sync::Arc;

use larder_policy::PolicyError;

use super::super::Kind;
use super::super::load::{Chunk, Loaded};
use super::cell::{Cell, Tally};

/// Not used again.
const NEVER: u32 = u32::MAX;

/// For each record, the record at which its block comes next. 4 bytes a record, made once for all sizes.
#[derive(Debug)]
pub struct NextUse {
    next: Vec<u32>,
}

impl NextUse {
    /// Looks at the whole trace from its end. O(n).
    ///
    /// # Errors
    /// [`PolicyError::Memory`]; 2^32 - 1 records or more are refused in the same way.
    pub fn of(trace: &Loaded) -> Result<Self, PolicyError> {
        let n = trace.records();
        let refused = PolicyError::Memory {
            bytes: n.saturating_mul(4),
        };
        if n >= NEVER as usize {
            return Err(refused);
        }
        let mut next = Vec::new();
        next.try_reserve_exact(n).map_err(|_| refused.clone())?;
        next.resize(n, NEVER);
        let blocks = trace.counts.blocks as usize;
        let mut seen = Vec::new();
        seen.try_reserve_exact(blocks).map_err(|_| refused)?;
        seen.resize(blocks, NEVER);
        let mut at = n;
        for chunk in trace.chunks.iter().rev() {
            for (k, &block) in chunk.blocks.iter().enumerate().rev() {
                at -= 1;
                let last = &mut seen[block as usize];
                let removes = chunk.kinds.get(k) == Some(&Kind::Remove);
                next[at] = if removes { NEVER } else { *last };
                // A removal is no use: for earlier records, the block's uses end here.
                *last = if removes { NEVER } else { at as u32 };
            }
        }
        Ok(Self { next })
    }

    /// The record at which the block of record `at` comes next; none if it does not, or is removed before.
    #[must_use]
    pub fn after(&self, at: usize) -> Option<u32> {
        self.next.get(at).copied().filter(|n| *n != NEVER)
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

/// OPT for one size. 1 bit a record.
#[derive(Debug)]
pub struct Opt {
    next: Arc<NextUse>,
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
            due: Times::new(next.next.len())?,
            next,
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
    fn stay(&mut self) {
        match self.next.next[self.now] {
            NEVER => self.dead += 1,
            next => {
                self.due.insert(next as usize);
                self.live += 1;
            }
        }
    }
}

impl Cell for Opt {
    fn run(&mut self, chunk: &Chunk) -> Result<(), PolicyError> {
        for n in 0..chunk.blocks.len() {
            let kind = chunk.kinds.get(n).copied().unwrap_or_default();
            if kind != Kind::Remove {
                let uses = u64::from(kind != Kind::Readahead);
                if self.due.remove(self.now) {
                    self.live -= 1;
                    self.tally.hits += uses;
                } else {
                    self.tally.misses += uses;
                    self.tally.fetched += 1 - uses;
                    self.come();
                }
                self.stay();
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
