//! The stacks with their sums, and the sampled blocks that live.

use std::sync::Arc;

use super::gap::weight;
use crate::heap::stacks::{Frames, SAMPLED, Stacks, mix};
use crate::heap::table::{Entry, Table};
use crate::os::lock::order::{Rank, Ranked};
use crate::os::{MetaSlice, OsError, System, ZeroIsValid};

/// Most stacks. What comes from others is counted as from no stack.
const MOST_STACKS: u32 = (1 << 16) - 1;
const FIRST_BUCKETS: usize = 1 << 10;

/// What the samples of a stack stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sums {
    /// Objects in [`PARTS`](super::gap::PARTS).
    pub(super) objects: u64,
    pub(super) bytes: u64,
}

/// What a stack allocated, and what of it was freed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site {
    pub(super) allocated: Sums,
    pub(super) freed: Sums,
    /// Samples that live.
    pub(super) samples: u64,
}

// SAFETY: numbers.
unsafe impl ZeroIsValid for Site {}

impl Site {
    /// What lives.
    pub(super) fn live(&self) -> Sums {
        Sums {
            objects: self.allocated.objects.wrapping_sub(self.freed.objects),
            bytes: self.allocated.bytes.wrapping_sub(self.freed.bytes),
        }
    }
}

impl Sums {
    fn add(&mut self, (objects, bytes): (u64, u64)) {
        self.objects = self.objects.wrapping_add(objects);
        self.bytes = self.bytes.wrapping_add(bytes);
    }
}

/// A sampled block. One at address 0 is unused, and its stack is the number of the next unused one.
#[derive(Debug, Clone, Copy)]
struct Block {
    at: usize,
    size: usize,
    stack: u32,
}

// SAFETY: numbers.
unsafe impl ZeroIsValid for Block {}

impl Entry for Block {
    fn hash(&self) -> Option<u64> {
        (self.at != 0).then(|| mix(self.at as u64))
    }
}

#[derive(Debug)]
pub(super) struct Samples {
    interval: usize,
    stacks: Stacks<SAMPLED>,
    /// By the number of the stack.
    sites: MetaSlice<Site>,
    blocks: Table<Block>,
    /// The first unused block; 0 is none.
    unused: u32,
}

impl Ranked for Samples {
    const RANK: Rank = Rank::HeapProfile;
}

impl Samples {
    pub(super) fn new(system: &Arc<dyn System>, interval: usize) -> Result<Self, OsError> {
        Ok(Self {
            interval,
            stacks: Stacks::new(system, MOST_STACKS)?,
            sites: MetaSlice::new(system.clone(), MOST_STACKS as usize + 1)?,
            blocks: Table::new(system, FIRST_BUCKETS)?,
            unused: 0,
        })
    }

    /// Keeps a sample. Without memory to know its end, it is as if the block had not been sampled.
    pub(super) fn add(&mut self, at: usize, size: usize, frames: &Frames<SAMPLED>) {
        let reused = self.unused;
        if reused == 0 && self.blocks.reserve().is_err() {
            return;
        }
        let stack = self.stacks.number(frames);
        let block = Block { at, size, stack };
        if reused == 0 {
            self.blocks.add(block);
        } else {
            self.unused = self.blocks.get(reused).stack;
            self.blocks.put(reused, block);
        }
        let site = &mut self.sites[stack as usize];
        site.allocated.add(weight(size, self.interval));
        site.samples += 1;
    }

    /// Ends a sample, if there is one of a block at this address.
    pub(super) fn remove(&mut self, at: usize) -> bool {
        let is = |&number: &u32| self.blocks.get(number).at == at;
        let Some(number) = self.blocks.chain(mix(at as u64)).find(is) else {
            return false;
        };
        let Block { size, stack, .. } = *self.blocks.get(number);
        let unused = Block {
            at: 0,
            size: 0,
            stack: self.unused,
        };
        self.blocks.remove(number, unused);
        self.unused = number;
        let site = &mut self.sites[stack as usize];
        site.freed.add(weight(size, self.interval));
        site.samples -= 1;
        true
    }

    /// The highest number of a stack. Number 0 is no stack.
    pub(super) fn last(&self) -> u32 {
        *self.stacks.numbers().end()
    }

    pub(super) fn site(&self, number: u32) -> (Frames<SAMPLED>, Site) {
        (self.stacks.frames(number), self.sites[number as usize])
    }
}

#[cfg(all(test, not(any(loom, shuttle, miri))))]
mod tests {
    use super::*;
    use crate::heap::stacks::capture;
    use crate::os::testing::system;

    #[test]
    fn what_is_added_and_removed_leaves_nothing() {
        let mut samples = Samples::new(&system(), 1 << 19).unwrap();
        let frames = capture(8, (0, 0), None);
        for round in 0..3 {
            for i in 1..=1000 {
                samples.add(i << 12, i, &frames);
            }
            let (_, site) = samples.site(1);
            assert_eq!(site.samples, 1000);
            assert!(site.live().bytes >= 1000 << 19);
            assert!(!samples.remove(5));
            for i in 1..=1000 {
                assert!(
                    samples.remove(i << 12) && !samples.remove(i << 12),
                    "{round}"
                );
            }
            let (found, site) = samples.site(1);
            assert_eq!(found.as_slice(), frames.as_slice());
            let none = Sums {
                objects: 0,
                bytes: 0,
            };
            assert_eq!((site.live(), site.samples), (none, 0));
        }
        assert_eq!(
            *samples.blocks.numbers().end(),
            1000,
            "numbers are used again"
        );
        assert_eq!(samples.last(), 1);
    }
}
