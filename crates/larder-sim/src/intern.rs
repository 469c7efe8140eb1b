//! Blocks as dense numbers.

use super::{Record, SimError};

/// Blocks that are numbered at once.
pub(super) const GROUP: usize = 64;

const EMPTY: u32 = u32::MAX;
/// Most blocks: numbers above are kept for marks.
const MOST_DENSE: u32 = u32::MAX - 16;

#[derive(Debug, Clone, Copy)]
struct Slot {
    /// An empty one has a block that another slot would be the first for.
    block: u64,
    dense: u32,
}

/// So many empty slots, a power of two that is more than 1, in an array without any.
fn empty(mut slots: Vec<Slot>, len: usize) -> Vec<Slot> {
    let slot = |block| Slot {
        block,
        dense: EMPTY,
    };
    slots.resize(len, slot(0));
    // Block 0 belongs there, and block 1 does not.
    slots[0] = slot(1);
    slots
}

/// Numbers blocks densely in order of arrival. A table with open addressing, 16 bytes a slot, at most half full.
///
/// ```
/// use larder_sim::Interner;
///
/// let mut interner = Interner::new();
/// assert_eq!([900, 7, 900].map(|block| interner.number(block)), [Some(0), Some(1), Some(0)]);
/// assert_eq!((interner.len(), interner.known(7), interner.known(8)), (2, Some(1), None));
/// ```
#[derive(Debug)]
pub struct Interner {
    slots: Vec<Slot>,
    /// 64 - log2 of the number of slots.
    shift: u32,
    len: u32,
}

impl Default for Interner {
    fn default() -> Self {
        Self::new()
    }
}

/// Fibonacci hashing of a mixed number: the upper bits of a product. Runs of neighbours spread evenly.
#[inline]
fn hash(block: u64) -> u64 {
    let mixed = block ^ (block >> 32);
    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Interner {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self {
            slots: empty(Vec::new(), 1 << 10),
            shift: 54,
            len: 0,
        }
    }

    /// Blocks that have a number.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Bytes of the table.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        size_of_val(self.slots.as_slice()) as u64
    }

    /// No block has come yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of a block, a new one if it has none; none if there is no memory or no number left. Expected O(1).
    #[inline]
    pub fn number(&mut self, block: u64) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = (hash(block) >> self.shift) as usize;
        loop {
            let slot = self.slots[at & mask];
            if slot.dense == EMPTY {
                return self.add(block, at & mask);
            }
            if slot.block == block {
                return Some(slot.dense);
            }
            at += 1;
        }
    }

    /// The number that a block has. Expected O(1).
    #[must_use]
    pub fn known(&self, block: u64) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = (hash(block) >> self.shift) as usize;
        loop {
            let slot = self.slots[at & mask];
            if slot.dense == EMPTY {
                return None;
            }
            if slot.block == block {
                return Some(slot.dense);
            }
            at += 1;
        }
    }

    fn add(&mut self, block: u64, at: usize) -> Option<u32> {
        if self.len >= MOST_DENSE {
            return None;
        }
        let dense = self.len;
        self.slots[at] = Slot { block, dense };
        self.len += 1;
        if self.len as usize * 2 > self.slots.len() {
            self.grow()?;
        }
        Some(dense)
    }

    #[cold]
    fn grow(&mut self) -> Option<()> {
        let slots = self.slots.len().checked_mul(2)?;
        let mut larger = Vec::new();
        larger.try_reserve_exact(slots).ok()?;
        let mut larger = empty(larger, slots);
        self.shift -= 1;
        for slot in self.slots.iter().filter(|s| s.dense != EMPTY) {
            let mut at = (hash(slot.block) >> self.shift) as usize;
            while larger[at & (slots - 1)].dense != EMPTY {
                at += 1;
            }
            larger[at & (slots - 1)] = *slot;
        }
        self.slots = larger;
        Some(())
    }

    /// [`number`](Self::number) of the block of each record, in this order; none if there is none for one of them. Most blocks are in the
    /// first slot that may have them: all of these are loaded before anything is decided, so that the loads overlap.
    #[inline]
    pub(super) fn numbers(&mut self, records: &[Record; GROUP]) -> Option<[u32; GROUP]> {
        let mask = self.slots.len() - 1;
        let mut others = 0_u64;
        let mut numbers = [0; GROUP];
        for (n, (record, number)) in records.iter().zip(&mut numbers).enumerate() {
            let slot = self.slots[(hash(record.block) >> self.shift) as usize & mask];
            *number = slot.dense;
            others |= u64::from(slot.block != record.block) << n;
        }
        while others != 0 {
            let n = others.trailing_zeros() as usize;
            numbers[n] = self.number(records[n].block)?;
            others &= others - 1;
        }
        Some(numbers)
    }

    /// Why [`number`](Self::number) gave none.
    pub(super) fn full(&self, trace: &str) -> SimError {
        SimError::TooMuch {
            trace: trace.to_owned(),
            fault: format!(
                "no room for more than {} different blocks; take a part of it with --limit",
                self.len
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn numbers_are_those_of_a_map() {
        let mut map = HashMap::new();
        let mut interner = Interner::new();
        let mut x = 1_u64;
        for n in 0..200_000_u64 {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            // Neighbours, far ones, and the extremes.
            let block = match n % 4 {
                0 => x >> 40,
                1 => (x >> 50) << 40,
                2 => u64::MAX - (x >> 52),
                _ => x % 5,
            };
            let next = map.len() as u32;
            let dense = *map.entry(block).or_insert(next);
            assert_eq!(interner.number(block), Some(dense));
        }
        assert_eq!(interner.len() as usize, map.len());
    }
}
