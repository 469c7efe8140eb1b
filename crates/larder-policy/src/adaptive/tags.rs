//! Names of the sampled blocks that are in, by frame.

use super::super::{Frame, PolicyError};
use larder_base::table::{grow, table};

const FREE: u64 = u64::MAX;

/// A small table from frame to tag: open addressing, at most seven eighths full, and half full if as many are sampled as expected. It
/// grows to that size, since many a cache is dropped before it is full. Where all blocks are sampled, each frame has the slot of its
/// number.
#[derive(Debug)]
pub(super) struct Tags {
    /// Frame in the high half, tag in the low one.
    slots: Vec<u64>,
    /// By slot: how many blocks had come to the cache when the block was last shown to the miniatures.
    shown: Vec<u32>,
    len: usize,
    /// Most slots.
    most: usize,
    /// All blocks are sampled.
    all: bool,
}

/// Least slots.
const FIRST: usize = 8;

impl Tags {
    /// For all frames.
    pub(super) fn of_all() -> Self {
        Self {
            slots: Vec::new(),
            shown: Vec::new(),
            len: 0,
            most: 0,
            all: true,
        }
    }

    /// Room for at least half as many again as are expected.
    pub(super) fn new(expected: usize) -> Result<Self, PolicyError> {
        Self::of(FIRST, (expected * 2).next_power_of_two().max(FIRST))
    }

    fn of(slots: usize, most: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            slots: table(slots, FREE)?,
            shown: table(slots, 0)?,
            len: 0,
            most,
            all: false,
        })
    }

    /// The same tags in four times the slots, if there is memory for these.
    #[cold]
    fn grow(&mut self) {
        let slots = (self.slots.len() * 4).min(self.most);
        let Ok(mut new) = Self::of(slots, self.most) else {
            return;
        };
        let used = |at: &usize| self.slots[*at] != FREE;
        for at in (0..self.slots.len()).filter(used) {
            new.put(self.slots[at], self.shown[at]);
        }
        *self = new;
    }

    fn home(&self, frame: Frame) -> usize {
        let bits = self.slots.len().trailing_zeros();
        (u64::from(frame).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as usize
    }

    #[inline]
    fn find(&self, frame: Frame) -> Option<usize> {
        if self.all {
            let at = frame as usize;
            return self
                .slots
                .get(at)
                .is_some_and(|&slot| slot != FREE)
                .then_some(at);
        }
        self.search(frame)
    }

    fn search(&self, frame: Frame) -> Option<usize> {
        let mask = self.slots.len() - 1;
        let mut at = self.home(frame);
        while self.slots[at] != FREE {
            if (self.slots[at] >> 32) as u32 == frame {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// The tag of a frame's block, which is shown when this many blocks have come.
    pub(super) fn show(&mut self, frame: Frame, came: u32) -> Option<u32> {
        let at = self.find(frame)?;
        self.shown[at] = came;
        Some(self.slots[at] as u32)
    }

    /// The frame's block was shown, and none has come since.
    pub(super) fn is_shown(&self, frame: Frame, came: u32) -> bool {
        self.find(frame).is_none_or(|at| self.shown[at] == came)
    }

    /// False if there is no room: the frame is not sampled then.
    pub(super) fn insert(&mut self, frame: Frame, tag: u32, shown: u32) -> bool {
        if self.all {
            return self.put_at(frame as usize, tag, shown);
        }
        if self.len * 2 >= self.slots.len() && self.slots.len() < self.most {
            self.grow();
        }
        if self.len * 8 >= self.slots.len() * 7 {
            return false;
        }
        self.put(u64::from(frame) << 32 | u64::from(tag), shown);
        true
    }

    /// Puts a frame's tag into the slot of its number, if there is memory for that.
    fn put_at(&mut self, at: usize, tag: u32, shown: u32) -> bool {
        if at >= self.shown.len() {
            let slots = (at + 1).next_power_of_two().max(FIRST);
            let there = grow(&mut self.slots, slots, FREE).is_ok();
            if !there || grow(&mut self.shown, slots, 0).is_err() {
                return false;
            }
        }
        self.slots[at] = (at as u64) << 32 | u64::from(tag);
        self.shown[at] = shown;
        true
    }

    /// Puts a frame and its tag into a slot; one is free.
    fn put(&mut self, slot: u64, shown: u32) {
        let mask = self.slots.len() - 1;
        let mut at = self.home((slot >> 32) as u32);
        while self.slots[at] != FREE {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
        self.shown[at] = shown;
        self.len += 1;
    }

    /// Takes one out and moves those behind it up, so that no mark of it is left.
    pub(super) fn remove(&mut self, frame: Frame) {
        let Some(mut hole) = self.find(frame) else {
            return;
        };
        if self.all {
            self.slots[hole] = FREE;
            return;
        }
        let mask = self.slots.len() - 1;
        let mut at = (hole + 1) & mask;
        while self.slots[at] != FREE {
            let home = self.home((self.slots[at] >> 32) as u32);
            // It may fill the hole if its home is not between the hole and where it is.
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.slots[hole] = self.slots[at];
                self.shown[hole] = self.shown[at];
                hole = at;
            }
            at = (at + 1) & mask;
        }
        self.slots[hole] = FREE;
        self.len -= 1;
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u64>() + self.shown.capacity() * size_of::<u32>()
    }
}
