//! What the rule wants to be shown when a block comes back.

use crate::cache::policy::Shadow;

use super::key::Key;

const FREE: u32 = 0;

/// Shadows by 32 bits of the key's hash: open addressing, at most three quarters full. Grows until it has four entries for each
/// frame, and forgets the least likely ones then: what the rule itself has forgotten first.
#[derive(Debug, Default)]
pub(super) struct Shadows {
    tags: Vec<u32>,
    low: Vec<u32>,
    /// Only once a rule has given a shadow of more than 32 bits.
    high: Vec<u32>,
    len: usize,
    most: usize,
}

impl Shadows {
    pub(super) fn new(frames: usize) -> Self {
        Self {
            most: (frames * 4).next_power_of_two(),
            ..Self::default()
        }
    }

    fn tag(key: Key) -> u32 {
        ((key.hash() >> 32) as u32).max(1)
    }

    fn mask(&self) -> usize {
        self.tags.len() - 1
    }

    fn home(&self, tag: u32) -> usize {
        (tag.wrapping_mul(0x9e37_79b1) as usize) & self.mask()
    }

    /// Notes what was left of a block. `remembers` says of a shadow whether the rule still knows it.
    pub(super) fn put(&mut self, key: Key, shadow: Shadow, remembers: impl Fn(Shadow) -> bool) {
        if self.len * 4 >= self.tags.len() * 3 && !self.make_room(remembers) {
            return;
        }
        self.insert(Self::tag(key), shadow.get());
    }

    fn insert(&mut self, tag: u32, shadow: u64) {
        let high = (shadow >> 32) as u32;
        if high != 0 && self.high.is_empty() {
            let mut words = Vec::new();
            if words.try_reserve_exact(self.tags.len()).is_err() {
                return;
            }
            words.resize(self.tags.len(), 0);
            self.high = words;
        }
        let mut at = self.home(tag);
        while self.tags[at] != FREE && self.tags[at] != tag {
            at = (at + 1) & self.mask();
        }
        self.len += usize::from(self.tags[at] == FREE);
        self.tags[at] = tag;
        self.low[at] = shadow as u32;
        if let Some(word) = self.high.get_mut(at) {
            *word = high;
        }
    }

    fn shadow(&self, at: usize) -> u64 {
        let high = self.high.get(at).copied().unwrap_or(0);
        u64::from(high) << 32 | u64::from(self.low[at])
    }

    /// Drops what the rule has forgotten, and doubles when that is little. False if there is no room.
    fn make_room(&mut self, remembers: impl Fn(Shadow) -> bool) -> bool {
        let all: Vec<(u32, u64)> = (0..self.tags.len())
            .filter(|&at| self.tags[at] != FREE)
            .map(|at| (self.tags[at], self.shadow(at)))
            .filter(|&(_, shadow)| remembers(Shadow::new(shadow)))
            .collect();
        let mut len = self.tags.len().max(64);
        if all.len() * 2 > len && len < self.most {
            len *= 2;
        }
        let (mut tags, mut low) = (Vec::new(), Vec::new());
        if tags.try_reserve_exact(len).is_err() || low.try_reserve_exact(len).is_err() {
            return false;
        }
        tags.resize(len, FREE);
        low.resize(len, 0);
        (self.tags, self.low, self.high, self.len) = (tags, low, Vec::new(), 0);
        // When all are remembered and the table may not grow, each second one goes.
        let keep = if all.len() * 4 >= len * 3 { 2 } else { 1 };
        for (tag, shadow) in all.into_iter().step_by(keep) {
            self.insert(tag, shadow);
        }
        true
    }

    /// Takes what was left of a block.
    pub(super) fn take(&mut self, key: Key) -> Option<Shadow> {
        if self.tags.is_empty() {
            return None;
        }
        let tag = Self::tag(key);
        let mask = self.mask();
        let mut hole = self.home(tag);
        while self.tags[hole] != tag {
            if self.tags[hole] == FREE {
                return None;
            }
            hole = (hole + 1) & mask;
        }
        let shadow = Shadow::new(self.shadow(hole));
        let mut at = (hole + 1) & mask;
        while self.tags[at] != FREE {
            let home = self.home(self.tags[at]);
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.tags[hole] = self.tags[at];
                self.low[hole] = self.low[at];
                if !self.high.is_empty() {
                    self.high[hole] = self.high[at];
                }
                hole = at;
            }
            at = (at + 1) & mask;
        }
        self.tags[hole] = FREE;
        self.len -= 1;
        Some(shadow)
    }

    pub(super) fn bytes(&self) -> usize {
        (self.tags.capacity() + self.low.capacity() + self.high.capacity()) * size_of::<u32>()
    }
}
