//! OPT once more, in another way: a heap of next uses with entries that are out of date, and a table of residents.
//!
//! It shares no code with [`Opt`](super::Opt). Each pass finds next uses by itself, from lists of the times at
//! which a block comes. For checks: slower, and its memory has no bound.

use std::collections::BinaryHeap;

use larder_policy::PolicyError;

use super::super::Kind;
use super::super::load::{Chunk, Loaded};
use super::cell::{Cell, CellError, Tally};

/// OPT for one size by a heap.
#[derive(Debug)]
pub struct OptHeap {
    size: usize,
    /// By block: the times at which something happens to it, the last first, so that the next is popped; removal is a mark.
    times: Vec<Vec<(u32, bool)>>,
    /// By block: its next use, if it is resident.
    resident: Vec<Option<u64>>,
    residents: usize,
    /// Next use and block; some are out of date.
    heap: BinaryHeap<(u64, u32)>,
    tally: Tally,
}

impl OptHeap {
    /// # Errors
    /// [`CellError`]: no room for anything, or the trace's file cannot be read.
    pub fn new(size: usize, trace: &Loaded) -> Result<Self, CellError> {
        if size == 0 {
            return Err(CellError::from(PolicyError::Capacity {
                frames: 0,
                most: larder_policy::MOST_FRAMES,
            }));
        }
        let mut times = vec![Vec::new(); trace.counts.blocks as usize];
        let mut at = 0;
        for chunk in trace.chunks() {
            chunk?.for_each(|block, _, kind| {
                if kind.is_state() {
                    return;
                }
                times[block as usize].push((at, kind == Kind::Remove));
                at += 1;
            });
        }
        times.iter_mut().for_each(|t| t.reverse());
        Ok(Self {
            size,
            resident: vec![None; times.len()],
            times,
            residents: 0,
            heap: BinaryHeap::new(),
            tally: Tally::default(),
        })
    }

    fn access(&mut self, block: u32, kind: Kind) {
        if kind.is_state() {
            return;
        }
        let b = block as usize;
        self.times[b].pop();
        if kind == Kind::Remove {
            if self.resident[b].take().is_some() {
                self.residents -= 1;
            }
            return;
        }
        // "Never" is later than all times; among such blocks any may go first, and the block's number decides.
        let next = match self.times[b].last() {
            Some((at, false)) => u64::from(*at),
            _ => u64::MAX,
        };
        let counts = u64::from(kind != Kind::Readahead);
        if self.resident[b].is_some() {
            self.tally.hits += counts;
        } else {
            self.tally.misses += counts;
            self.tally.fetched += 1 - counts;
            while self.residents == self.size {
                let Some((at, victim)) = self.heap.pop() else {
                    break;
                };
                if self.resident[victim as usize] == Some(at) {
                    self.resident[victim as usize] = None;
                    self.residents -= 1;
                }
            }
            self.residents += 1;
        }
        self.resident[b] = Some(next);
        self.heap.push((next, block));
    }
}

impl Cell for OptHeap {
    fn run(&mut self, chunk: &Chunk) -> Result<(), CellError> {
        chunk.for_each(|block, _, kind| self.access(block, kind));
        Ok(())
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn bytes(&self) -> usize {
        let times: usize = self.times.iter().map(|t| t.capacity() * 8 + 24).sum();
        times + self.resident.capacity() * 16 + self.heap.capacity() * 16
    }
}
