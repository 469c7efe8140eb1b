//! A queue of offsets in blocks.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem;

use crate::ids::IdError;

/// Offsets as small as the range allows: one slot of 32 bits each, or two in ranges beyond 2^32.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Width(usize);

impl Width {
    pub(crate) fn of(last: u64) -> Self {
        Self(1 + usize::from(u32::try_from(last).is_err()))
    }

    /// How many offsets so many slots are.
    #[inline]
    pub(crate) fn count(self, slots: usize) -> usize {
        slots >> (self.0 - 1)
    }

    /// The offset at a place.
    #[inline]
    pub(crate) fn read(self, slots: &[u32], place: usize) -> Option<u64> {
        let slots = slots.get(place..place + self.0)?;
        let high = slots.get(1).copied().unwrap_or_default();
        Some(u64::from(high) << 32 | u64::from(slots[0]))
    }

    /// The last one.
    #[inline]
    pub(crate) fn last(self, slots: &[u32]) -> Option<u64> {
        self.read(slots, slots.len().checked_sub(self.0)?)
    }

    #[inline]
    pub(crate) fn has_room(self, slots: &Vec<u32>) -> bool {
        slots.capacity() - slots.len() >= self.0
    }

    /// Adds one at the end; there is room.
    #[inline]
    pub(crate) fn push(self, slots: &mut Vec<u32>, at: u64) {
        if self.has_room(slots) {
            slots.push(at as u32);
            if self.0 == 2 {
                slots.push((at >> 32) as u32);
            }
        }
    }

    /// Drops the last one; false when there is none.
    #[inline]
    pub(crate) fn pop(self, slots: &mut Vec<u32>) -> bool {
        let left = slots.len().checked_sub(self.0);
        slots.truncate(left.unwrap_or(0));
        left.is_some()
    }

    /// Drops those for which `keep` is false; asks for each of them, from the first to the last.
    pub(crate) fn retain(self, slots: &mut Vec<u32>, mut keep: impl FnMut(u64) -> bool) {
        let mut kept = 0;
        for place in (0..slots.len()).step_by(self.0) {
            if self.read(slots, place).is_some_and(&mut keep) {
                slots.copy_within(place..place + self.0, kept);
                kept += self.0;
            }
        }
        slots.truncate(kept);
    }
}

/// Slots of a block that is not made larger any more.
const BLOCK: usize = 4096;

/// No offset of the block stands there.
const BARRED: usize = usize::MAX;

/// Offsets in the order in which they came, in blocks: one to which offsets are added, one from which they are taken, and
/// the full ones between. So neither end wraps around, nothing is copied when the queue grows, and blocks that are
/// used up go back to the system, except for one.
///
/// The quick way out can be barred. Then the quick way finds nothing, by its index alone, and offsets are taken the slow way. Of
/// two slots each it is never open.
#[derive(Debug)]
pub(crate) struct Line {
    out: Vec<u32>,
    /// The front one's index in `out`, or `BARRED`; then `held` is the index.
    next: usize,
    held: usize,
    into: Vec<u32>,
    between: VecDeque<Vec<u32>>,
    /// Slots of the blocks between.
    many: usize,
    /// Empty.
    spare: Vec<u32>,
    width: Width,
}

impl Line {
    /// Empty, and barred.
    pub(crate) fn new(width: Width) -> Self {
        Self {
            out: Vec::new(),
            next: BARRED,
            held: 0,
            into: Vec::new(),
            between: VecDeque::new(),
            many: 0,
            spare: Vec::new(),
            width,
        }
    }

    #[inline]
    fn head(&self) -> usize {
        if self.next == BARRED {
            self.held
        } else {
            self.next
        }
    }

    fn set_head(&mut self, head: usize) {
        if self.next == BARRED {
            self.held = head;
        } else {
            self.next = head;
        }
    }

    pub(crate) fn len(&self) -> usize {
        let slots = self.out.len() - self.head() + self.many + self.into.len();
        self.width.count(slots)
    }

    pub(crate) fn bytes(&self) -> usize {
        let between: usize = self.between.iter().map(Vec::capacity).sum();
        let slots = self.out.capacity() + self.into.capacity() + self.spare.capacity() + between;
        slots * size_of::<u32>() + self.between.capacity() * size_of::<Vec<u32>>()
    }

    /// Bars the quick way out.
    pub(crate) fn bar(&mut self) {
        self.held = self.head();
        self.next = BARRED;
    }

    /// Opens it again.
    pub(crate) fn open(&mut self) {
        if self.width.0 == 1 {
            self.next = self.head();
        }
    }

    /// The one at the front, where the quick way is open and the block is not used up.
    #[inline(always)]
    pub(crate) fn front_quickly(&self) -> Option<u64> {
        self.out.get(self.next).map(|&at| at.into())
    }

    /// Drops the one that [`front_quickly`](Line::front_quickly) found.
    #[inline]
    pub(crate) fn pop_quickly(&mut self) {
        self.next += 1;
    }

    /// The one at the front.
    pub(crate) fn front(&mut self) -> Option<u64> {
        if self.head() == self.out.len() {
            self.advance();
        }
        self.width.read(&self.out, self.head())
    }

    /// Drops the one that [`front`](Line::front) found.
    pub(crate) fn pop(&mut self) {
        self.set_head(self.head() + self.width.0);
    }

    /// The block in front is used up: the next takes its place.
    fn advance(&mut self) {
        self.set_head(0);
        self.out.clear();
        if let Some(next) = self.between.pop_front() {
            self.many -= next.len();
            let old = mem::replace(&mut self.out, next);
            self.keep(old);
        } else {
            mem::swap(&mut self.out, &mut self.into);
        }
    }

    /// Keeps one empty block, the larger one.
    fn keep(&mut self, empty: Vec<u32>) {
        if empty.capacity() > self.spare.capacity() {
            self.spare = empty;
        }
    }

    /// Makes room for one more.
    pub(crate) fn reserve(&mut self) -> Result<(), IdError> {
        let oom = |_| IdError::OutOfMemory;
        let len = self.into.len();
        if self.has_room() {
            return Ok(());
        }
        if len < BLOCK {
            let more = len.clamp(64, BLOCK - len.min(BLOCK - 64));
            return self.into.try_reserve_exact(more).map_err(oom);
        }
        self.between.try_reserve(1).map_err(oom)?;
        if self.spare.capacity() == 0 {
            self.spare.try_reserve_exact(BLOCK).map_err(oom)?;
        }
        let full = mem::replace(&mut self.into, mem::take(&mut self.spare));
        self.many += len;
        self.between.push_back(full);
        Ok(())
    }

    /// Whether there is room for one more.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.width.has_room(&self.into)
    }

    /// Adds one slot at the back if there is room.
    #[inline(always)]
    pub(crate) fn push_quickly(&mut self, at: u64) -> bool {
        let room = self.into.len() < self.into.capacity();
        if room {
            self.into.push(at as u32);
        }
        room
    }

    /// Drops what [`push_quickly`](Line::push_quickly) has just added.
    #[inline]
    pub(crate) fn unpush(&mut self) {
        self.into.pop();
    }

    /// Adds one at the back; there is room.
    #[inline]
    pub(crate) fn push(&mut self, at: u64) {
        self.width.push(&mut self.into, at);
    }

    /// Drops the one at the back, which was pushed after the last one was dropped at the front.
    pub(crate) fn pop_back(&mut self) {
        while !self.width.pop(&mut self.into) {
            let Some(last) = self.between.pop_back() else {
                self.width.pop(&mut self.out);
                return;
            };
            self.many -= last.len();
            let empty = mem::replace(&mut self.into, last);
            self.keep(empty);
        }
    }

    /// Drops those for which `keep` is false; asks for each of them, from the front to the back.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(u64) -> bool) {
        self.out.drain(..self.head());
        self.set_head(0);
        self.width.retain(&mut self.out, &mut keep);
        for block in &mut self.between {
            self.width.retain(block, &mut keep);
        }
        self.between.retain(|block| !block.is_empty());
        self.many = self.between.iter().map(Vec::len).sum();
        self.width.retain(&mut self.into, keep);
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;

    use super::*;

    /// Whatever is pushed and popped, it does what a plain queue does.
    #[test]
    fn what_went_in_first_comes_out_first() {
        for last in [9, 1 << 40] {
            follows_a_queue(Line::new(Width::of(last)), last / 10 * 9);
        }
    }

    fn follows_a_queue(mut line: Line, mut n: u64) {
        let mut model = VecDeque::new();
        for (ins, outs) in [
            (1, 1),
            (5000, 100),
            (3, 4000),
            (20_000, 7),
            (0, 15_000),
            (9000, 14_000),
            (70, 0),
        ] {
            for _ in 0..ins {
                line.reserve().unwrap();
                line.push(n);
                model.push_back(n);
                n += 1;
            }
            if n.is_multiple_of(2) {
                line.open();
            } else {
                line.bar();
            }
            for turn in 0..outs {
                let found = line.front_quickly();
                assert!(found.is_none() || found == model.front().copied());
                if found.is_some() && turn % 3 == 0 {
                    line.pop_quickly();
                } else {
                    assert_eq!(line.front(), model.front().copied());
                    if model.is_empty() {
                        break;
                    }
                    line.pop();
                }
                model.pop_front();
            }
            assert_eq!(line.len(), model.len());
            line.retain(|slot| slot % 7 != 0);
            model.retain(|slot| slot % 7 != 0);
            for _ in 0..ins.min(model.len()) / 2 {
                line.pop_back();
                model.pop_back();
            }
            assert_eq!(line.len(), model.len());
            assert_eq!(line.front(), model.front().copied());
        }
    }

    #[test]
    fn memory_follows_what_waits() {
        let mut line = Line::new(Width::of(9));
        for n in 0..100_000 {
            line.reserve().unwrap();
            line.push(n);
        }
        assert!(
            line.bytes() <= 100_000 * 4 + 5 * BLOCK * 4,
            "{}",
            line.bytes()
        );
        while line.front().is_some() {
            line.pop();
        }
        assert!(line.bytes() <= 4 * BLOCK * 4, "{}", line.bytes());
    }
}
