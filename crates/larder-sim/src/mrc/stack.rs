//! LRU's stack distances in one pass (Mattson et al., IBM Systems Journal 9(2), 1970), by Olken's way with a Fenwick tree.
//!
//! Each block's last use is a bit in a line of time. A block's distance is the number of bits from its own on. The tree sums words
//! of 64 bits, so it is 64 times smaller than the line, and lies in a near cache even for millions of blocks. When the
//! line is full, its bits are moved together: it is never longer than twice the blocks.

use std::collections::BTreeSet;

use super::super::load::Loaded;
use super::super::{Kind, SimError};
use super::curve::Curve;

const NOWHERE: u32 = u32::MAX;
/// The owner of a place whose block was removed.
const HOLE: u32 = u32::MAX - 1;
/// Shortest line.
const LEAST: usize = 1 << 12;

/// Blocks in order of their last use. Memory: 4 bytes a block and about 9 a resident; O(log n) a use.
///
/// ```
/// use larder_sim::Stack;
///
/// let mut stack = Stack::new();
/// let distances = [1, 2, 1, 1, 3, 2].map(|block| stack.touch(block));
/// assert_eq!(distances, [None, None, Some(2), Some(1), None, Some(3)]);
/// ```
#[derive(Debug, Clone)]
pub struct Stack {
    bits: Vec<u64>,
    /// Fenwick tree over the words' counts; entry n is at n + 1.
    tree: Vec<u32>,
    /// By place in the line: whose it is.
    owner: Vec<u32>,
    /// By block: its place.
    place: Vec<u32>,
    now: usize,
    /// Bits: blocks and holes.
    live: usize,
    /// Places of holes.
    holes: BTreeSet<u32>,
}

impl Default for Stack {
    fn default() -> Self {
        Self::new()
    }
}

impl Stack {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        let mut stack = Self {
            bits: Vec::new(),
            tree: Vec::new(),
            owner: Vec::new(),
            place: Vec::new(),
            now: 0,
            live: 0,
            holes: BTreeSet::new(),
        };
        stack.line(LEAST);
        stack
    }

    fn line(&mut self, len: usize) {
        let words = len.div_ceil(64);
        self.bits = vec![0; words];
        self.tree = vec![0; words + 1];
        self.owner.resize(words * 64, NOWHERE);
    }

    /// Blocks in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live - self.holes.len()
    }

    /// Nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Uses a block. Its distance: the number of different blocks used since its last use, itself included, so the least
    /// size of an LRU cache that has it. None for a block that is not in the stack.
    #[inline]
    pub fn touch(&mut self, block: u32) -> Option<u64> {
        let distance = self.take(block, false);
        if self.now == self.owner.len() {
            self.pack();
        }
        let b = block as usize;
        if b >= self.place.len() {
            self.place.resize(b + 1, NOWHERE);
        }
        self.place[b] = self.now as u32;
        self.owner[self.now] = block;
        self.bits[self.now / 64] |= 1 << (self.now % 64);
        self.add(self.now / 64, 1);
        self.now += 1;
        self.live += 1;
        distance
    }

    /// The block's contents are gone (unlink, truncate): every cache that has it has a free frame instead, a hole, which the next
    /// block that the cache does not have fills. Its distance as for [`touch`](Self::touch).
    pub fn remove(&mut self, block: u32) -> Option<u64> {
        let (at, distance) = self.find(block)?;
        self.place[block as usize] = NOWHERE;
        self.owner[at] = HOLE;
        self.holes.insert(at as u32);
        Some(distance)
    }

    /// Takes a block out as if it had never come. Its distance as for [`touch`](Self::touch).
    pub fn forget(&mut self, block: u32) -> Option<u64> {
        self.take(block, true)
    }

    /// A block's place and distance.
    #[inline]
    fn find(&self, block: u32) -> Option<(usize, u64)> {
        let at = *self.place.get(block as usize).filter(|p| **p != NOWHERE)? as usize;
        let (word, bit) = (at / 64, at % 64);
        let mut before = u64::from((self.bits[word] & ((1 << bit) - 1)).count_ones());
        let mut n = word;
        while n > 0 {
            before += u64::from(self.tree[n]);
            n &= n - 1;
        }
        Some((at, self.live as u64 - before))
    }

    /// Takes a block out of its place, to use it or to forget it. To caches that do not reach down to it a use brings it in: it
    /// fills their hole, the one nearest to the top, and to those that have it its old place is the hole then.
    #[inline]
    fn take(&mut self, block: u32, forget: bool) -> Option<u64> {
        let found = self.find(block);
        let mut gone = found.map(|(at, _)| at);
        if !forget
            && let Some(hole) = self
                .holes
                .last()
                .copied()
                .filter(|h| gone.is_none_or(|at| at < *h as usize))
        {
            self.holes.remove(&hole);
            if let Some(at) = gone {
                self.owner[at] = HOLE;
                self.holes.insert(at as u32);
            }
            gone = Some(hole as usize);
        }
        if let Some(at) = gone {
            self.bits[at / 64] &= !(1 << (at % 64));
            self.add(at / 64, u32::MAX);
            self.live -= 1;
        }
        let (_, distance) = found?;
        self.place[block as usize] = NOWHERE;
        Some(distance)
    }

    /// Adds (with wrapping, so that `u32::MAX` subtracts 1) to a word's count.
    #[inline]
    fn add(&mut self, word: usize, what: u32) {
        let mut n = word + 1;
        while n < self.tree.len() {
            self.tree[n] = self.tree[n].wrapping_add(what);
            n += n & n.wrapping_neg();
        }
    }

    /// Moves all bits to the beginning, in their order.
    #[cold]
    fn pack(&mut self) {
        let mut order = Vec::with_capacity(self.live);
        for (n, word) in self.bits.iter().enumerate() {
            let mut left = *word;
            while left != 0 {
                order.push(self.owner[n * 64 + left.trailing_zeros() as usize]);
                left &= left - 1;
            }
        }
        self.line((self.live * 2).max(LEAST));
        self.owner.fill(NOWHERE);
        self.holes.clear();
        for (at, &block) in order.iter().enumerate() {
            if block == HOLE {
                self.holes.insert(at as u32);
            } else {
                self.place[block as usize] = at as u32;
            }
            self.owner[at] = block;
            self.bits[at / 64] |= 1 << (at % 64);
        }
        for n in 0..self.bits.len() {
            self.tree[n + 1] = self.bits[n].count_ones();
        }
        for n in 1..self.tree.len() {
            let up = n + (n & n.wrapping_neg());
            if up < self.tree.len() {
                self.tree[up] += self.tree[n];
            }
        }
        self.now = order.len();
    }
}

/// LRU's exact curve: the hits of every size, in one pass. Removed blocks leave holes. Blocks that are read ahead come to its
/// top without being counted; where one is in the stack already, LRU leaves it and the curve does not, so the curve is exact
/// for traces without readahead.
///
/// # Errors
/// [`SimError::Spill`].
pub fn lru_curve(trace: &Loaded) -> Result<Curve, SimError> {
    let mut stack = Stack::new();
    // Whole numbers: the curve's sums are exact.
    let mut counts: Vec<u64> = Vec::new();
    let mut first = 0_u64;
    for chunk in trace.chunks() {
        chunk?.for_each(|block, _, kind| match kind {
            Kind::Remove => drop(stack.remove(block)),
            Kind::Readahead => drop(stack.touch(block)),
            Kind::Read | Kind::Write => match stack.touch(block) {
                Some(distance) => {
                    let at = distance as usize;
                    if at >= counts.len() {
                        counts.resize((at + 1).max(counts.len() * 2), 0);
                    }
                    counts[at] += 1;
                }
                None => first += 1,
            },
            _ => {}
        });
    }
    let mut curve = Curve::default();
    for (distance, &count) in counts.iter().enumerate().filter(|(_, n)| **n > 0) {
        curve.add(Some(distance as u64), count as f64);
    }
    curve.add(None, first as f64);
    Ok(curve)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_a_list() {
        let mut stack = Stack::new();
        let mut list: Vec<u32> = Vec::new();
        let mut x = 7_u64;
        for n in 0..60_000 {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let block = if n % 3 == 0 {
                (x >> 54) as u32
            } else {
                (x >> 59) as u32
            };
            let found = list.iter().rev().position(|b| *b == block);
            list.retain(|b| *b != block);
            let distance = found.map(|n| n as u64 + 1);
            if n % 97 == 0 {
                assert_eq!(stack.forget(block), distance);
            } else {
                assert_eq!(stack.touch(block), distance, "at {n}");
                list.push(block);
            }
            assert_eq!(stack.len(), list.len());
        }
    }
}
