//! A queue of offsets.

use alloc::vec::Vec;

use crate::ids::IdError;

/// A ring of offsets: 4 bytes each in ranges of at most 2^32, else 8.
#[derive(Debug)]
pub(crate) enum Ring {
    Narrow(RingOf<u32>),
    Wide(RingOf<u64>),
}

macro_rules! each {
    ($self:expr, $ring:ident => $call:expr) => {
        match $self {
            Ring::Narrow($ring) => $call,
            Ring::Wide($ring) => $call,
        }
    };
}

impl Ring {
    pub(crate) fn new(last: u64) -> Self {
        if u32::try_from(last).is_ok() {
            Self::Narrow(RingOf::default())
        } else {
            Self::Wide(RingOf::default())
        }
    }

    pub(crate) fn len(&self) -> usize {
        each!(self, ring => ring.len())
    }

    pub(crate) fn bytes(&self) -> usize {
        each!(self, ring => size_of_val(&*ring.slots))
    }

    /// Makes room for one more.
    #[inline]
    pub(crate) fn reserve(&mut self) -> Result<(), IdError> {
        each!(self, ring => ring.reserve())
    }

    /// Adds one at the back; there is room.
    #[inline]
    pub(crate) fn push(&mut self, at: u64) {
        match self {
            Self::Narrow(ring) => ring.push(at as u32),
            Self::Wide(ring) => ring.push(at),
        }
    }

    /// The one at the front.
    #[inline]
    pub(crate) fn front(&self) -> Option<u64> {
        match self {
            Self::Narrow(ring) => ring.front().map(u64::from),
            Self::Wide(ring) => ring.front(),
        }
    }

    /// Drops the one at the front; there is one.
    #[inline]
    pub(crate) fn pop(&mut self) {
        each!(self, ring => ring.head = ring.head.wrapping_add(1));
    }

    /// Drops the one at the back; there is one.
    pub(crate) fn pop_back(&mut self) {
        each!(self, ring => ring.tail = ring.tail.wrapping_sub(1));
    }
}

/// A power of two of slots.
#[derive(Debug, Default)]
pub(crate) struct RingOf<T> {
    slots: Vec<T>,
    /// Both count on and wrap around; the slot is what remains of them.
    head: usize,
    tail: usize,
}

impl<T: Copy + Default> RingOf<T> {
    #[inline]
    fn len(&self) -> usize {
        self.tail.wrapping_sub(self.head)
    }

    #[inline]
    fn reserve(&mut self) -> Result<(), IdError> {
        if self.len() == self.slots.len() {
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

    #[inline]
    fn push(&mut self, value: T) {
        let slot = self.slot(self.tail);
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = value;
            self.tail = self.tail.wrapping_add(1);
        }
    }

    #[inline]
    fn front(&self) -> Option<T> {
        if self.head == self.tail {
            return None;
        }
        self.slots.get(self.slot(self.head)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_in_first_comes_out_first_also_after_growth() {
        for last in [100, u64::MAX] {
            let mut ring = Ring::new(last);
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
