//! A queue of offsets in blocks.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::mem;

use crate::ids::IdError;

/// An offset, as small as the range allows.
pub(crate) trait Slot: Copy + Default + Debug {
    fn of(at: u64) -> Self;
    fn at(self) -> u64;
}

impl Slot for u32 {
    #[inline]
    fn of(at: u64) -> Self {
        at as u32
    }
    #[inline]
    fn at(self) -> u64 {
        self.into()
    }
}

impl Slot for u64 {
    #[inline]
    fn of(at: u64) -> Self {
        at
    }
    #[inline]
    fn at(self) -> u64 {
        self
    }
}

/// Offsets in a block that is not made larger any more.
const BLOCK: usize = 4096;

/// No offset of the block stands there.
const BARRED: usize = usize::MAX;

/// Offsets in the order in which they came, in blocks: one to which offsets are added, one from which they are taken, and
/// the full ones between. So neither end wraps around, nothing is copied when the queue grows, and blocks that are
/// used up go back to the system, except for one.
///
/// The quick way out can be barred. Then the quick way finds nothing, by its index alone, and offsets are taken the slow way.
#[derive(Debug)]
pub(crate) struct Line<T> {
    out: Vec<T>,
    /// The front one's index in `out`, or `BARRED`; then `held` is the index.
    next: usize,
    held: usize,
    into: Vec<T>,
    between: VecDeque<Vec<T>>,
    /// How many are in the blocks between.
    many: usize,
    /// Empty.
    spare: Vec<T>,
}

impl<T: Slot> Line<T> {
    /// Empty, and barred.
    pub(crate) fn new() -> Self {
        Self {
            out: Vec::new(),
            next: BARRED,
            held: 0,
            into: Vec::new(),
            between: VecDeque::new(),
            many: 0,
            spare: Vec::new(),
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
        self.out.len() - self.head() + self.many + self.into.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        let between: usize = self.between.iter().map(Vec::capacity).sum();
        let slots = self.out.capacity() + self.into.capacity() + self.spare.capacity() + between;
        slots * size_of::<T>() + self.between.capacity() * size_of::<Vec<T>>()
    }

    /// Bars the quick way out.
    pub(crate) fn bar(&mut self) {
        self.held = self.head();
        self.next = BARRED;
    }

    /// Opens it again.
    pub(crate) fn open(&mut self) {
        self.next = self.head();
    }

    /// The one at the front, where the quick way is open and the block is not used up.
    #[inline]
    pub(crate) fn front_quickly(&self) -> Option<T> {
        self.out.get(self.next).copied()
    }

    /// Drops the one that [`front_quickly`](Line::front_quickly) found.
    #[inline]
    pub(crate) fn pop_quickly(&mut self) {
        self.next += 1;
    }

    /// The one at the front.
    pub(crate) fn front(&mut self) -> Option<T> {
        if self.head() == self.out.len() {
            self.advance();
        }
        self.out.get(self.head()).copied()
    }

    /// Drops the one that [`front`](Line::front) found.
    pub(crate) fn pop(&mut self) {
        self.set_head(self.head() + 1);
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
    fn keep(&mut self, empty: Vec<T>) {
        if empty.capacity() > self.spare.capacity() {
            self.spare = empty;
        }
    }

    /// Makes room for one more.
    pub(crate) fn reserve(&mut self) -> Result<(), IdError> {
        let oom = |_| IdError::OutOfMemory;
        let len = self.into.len();
        if len < self.into.capacity() {
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
        self.into.len() < self.into.capacity()
    }

    /// Adds one at the back; there is room.
    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        if self.has_room() {
            self.into.push(value);
        }
    }

    /// Drops the one at the back, which was pushed after the last one was dropped at the front.
    pub(crate) fn pop_back(&mut self) {
        while self.into.pop().is_none() {
            let Some(last) = self.between.pop_back() else {
                self.out.pop();
                return;
            };
            self.many -= last.len();
            let empty = mem::replace(&mut self.into, last);
            self.keep(empty);
        }
    }

    /// Drops those for which `keep` is false; asks for each of them, from the front to the back.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(T) -> bool) {
        self.out.drain(..self.head());
        self.set_head(0);
        self.out.retain(|&slot| keep(slot));
        for block in &mut self.between {
            block.retain(|&slot| keep(slot));
        }
        self.between.retain(|block| !block.is_empty());
        self.many = self.between.iter().map(Vec::len).sum();
        self.into.retain(|&slot| keep(slot));
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;

    use super::*;

    /// Whatever is pushed and popped, it does what a plain queue does.
    #[test]
    fn what_went_in_first_comes_out_first() {
        let mut line = Line::<u32>::new();
        let mut model = VecDeque::new();
        let mut n = 0;
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
            if n % 2 == 0 {
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
        let mut line = Line::<u32>::new();
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
