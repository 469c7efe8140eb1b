//! A queue of offsets.

use alloc::vec::Vec;
use core::fmt::Debug;

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

/// A ring of a power of two of slots.
#[derive(Debug, Default)]
pub(crate) struct Ring<T> {
    slots: Vec<T>,
    /// Both count on and wrap around; the slot is what remains of them.
    head: usize,
    tail: usize,
}

impl<T: Copy + Default> Ring<T> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.tail.wrapping_sub(self.head)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<T>()
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.len() == self.slots.len()
    }

    /// Makes room for one more.
    #[inline]
    pub(crate) fn reserve(&mut self) -> Result<(), IdError> {
        if self.is_full() {
            self.grow()?;
        }
        Ok(())
    }

    #[cold]
    fn grow(&mut self) -> Result<(), IdError> {
        let len = self.slots.len();
        let more = len.max(64);
        self.slots
            .try_reserve_exact(more)
            .map_err(|_| IdError::OutOfMemory)?;
        // The ring is full: put the front at the first slot, and the new slots come behind the back.
        if let Some(front) = self.head.checked_rem(len) {
            self.slots.rotate_left(front);
        }
        self.slots.resize(len + more, T::default());
        self.head = 0;
        self.tail = len;
        Ok(())
    }

    #[inline]
    fn slot(&self, n: usize) -> usize {
        n & self.slots.len().wrapping_sub(1)
    }

    /// Adds one at the back; there is room.
    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        let slot = self.slot(self.tail);
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = value;
            self.tail = self.tail.wrapping_add(1);
        }
    }

    /// The one at the front.
    #[inline]
    pub(crate) fn front(&self) -> Option<T> {
        if self.head == self.tail {
            return None;
        }
        self.slots.get(self.slot(self.head)).copied()
    }

    /// Drops the one at the front; there is one.
    #[inline]
    pub(crate) fn pop(&mut self) {
        self.head = self.head.wrapping_add(1);
    }

    /// Drops the one at the back; there is one.
    pub(crate) fn pop_back(&mut self) {
        self.tail = self.tail.wrapping_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_in_first_comes_out_first_also_after_growth() {
        {
            let mut ring = Ring::default();
            let (mut next_in, mut next_out) = (0, 0);
            for round in 0..200 {
                for _ in 0..round {
                    ring.reserve().unwrap();
                    ring.push(next_in);
                    next_in += 1;
                }
                for _ in 0..round / 2 {
                    assert_eq!(ring.front(), Some(next_out));
                    ring.pop();
                    next_out += 1;
                }
            }
            assert_eq!(ring.len() as u64, next_in - next_out);
            ring.pop_back();
            while ring.front().is_some() {
                assert_eq!(ring.front(), Some(next_out));
                ring.pop();
                next_out += 1;
            }
            assert_eq!(next_out, next_in - 1);
        }
    }
}
