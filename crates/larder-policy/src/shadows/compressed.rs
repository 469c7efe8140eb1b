//! Compressed shadows: 5 bytes each, for a rule whose shadows have few bits.

use super::hash;
use crate::{Block, Shadow};

/// Bytes of an entry, and entries of a set.
const BYTES: usize = 5;
const WAYS: usize = 8;
const BITS: u32 = BYTES as u32 * 8;
/// Shadows for which the rule is asked at a time whether it has forgotten them. It forgets about one for each that comes.
const STEPS: usize = 16;
/// With each of so many that come a further set is looked at. A rule gives the bits of a forgotten shadow again after four times as many
/// blocks left as there are frames, and there are never more entries than that: as many sets as half of those blocks.
const SWEEP: u64 = 4;
/// Least entries.
const FIRST: usize = 64;

/// What the owner of the shadows knows of them.
pub(super) trait Memory {
    /// The rule still knows it.
    fn remembers(&self, shadow: Shadow) -> bool;

    /// The one of which these are the low bits.
    fn whole(&self, low: u64) -> Shadow;
}

/// Shadows by 32 bits of the block's hash. A block has two sets of 8 entries, which two numbers of 32 bits name that follow from
/// one another; what the set does not say of the number stands in the entry, with the low bits of the shadow and which of the two
/// it is. So an entry can be moved to its other set, and to another table when that grows. Those that the rule has forgotten
/// stay until another one comes to their set, or until they are swept.
#[derive(Debug)]
pub(super) struct CompressedShadows {
    entries: Vec<u8>,
    /// By set: a bit for each entry that is in use.
    used: Vec<u8>,
    sets: usize,
    /// 2^64 by the sets, rounded up.
    inverse: u64,
    /// The low bits of a shadow that are kept.
    bits: u32,
    /// The latest shadow, and one up to which all are forgotten: low bits of both.
    latest: u64,
    horizon: u64,
    /// Most entries.
    most: usize,
    /// The set that is looked at next.
    sweep: usize,
}

/// One of two names of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Name {
    word: u32,
    second: bool,
}

/// Where an entry of a name is.
#[derive(Debug, Clone, Copy)]
struct Home {
    set: usize,
    /// The entry without its shadow.
    tag: u64,
}

/// An entry of a set, with bits of the next one above it.
#[inline(always)]
fn word(set: &[u8], way: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&set[way * BYTES..way * BYTES + 8]);
    u64::from_le_bytes(word)
}

const STEP: u32 = 0x9e37_79b1;
/// The inverse of [`STEP`] modulo 2^32.
const BACK: u32 = 0x0e8b_2f51;

impl Name {
    fn of(block: Block) -> Self {
        Self {
            word: (hash(block) >> 32) as u32,
            second: false,
        }
    }

    fn other(self) -> Self {
        let by = if self.second { BACK } else { STEP };
        Self {
            word: self.word.wrapping_mul(by),
            second: !self.second,
        }
    }
}

impl CompressedShadows {
    /// For shadows of so many bits; none if they are too many, or there is no memory.
    pub(super) fn new(bits: u32, expected: usize, most: usize) -> Option<Self> {
        let mut new = Self {
            entries: Vec::new(),
            used: Vec::new(),
            sets: 0,
            inverse: 0,
            bits,
            latest: 0,
            horizon: u64::MAX,
            most: most.max(FIRST),
            sweep: 0,
        };
        let sets = expected.max(FIRST).div_ceil(WAYS);
        (new.fits(sets) && new.allocate(sets)).then_some(new)
    }

    pub(super) fn bits(&self) -> u32 {
        self.bits
    }

    /// Is an entry enough for what so many sets do not say? One more than the part of a name is kept, so that no entry is 0.
    fn fits(&self, sets: usize) -> bool {
        let parts = (1_u64 << 32) / sets as u64 + 2;
        self.bits + 1 + parts.ilog2() < BITS
    }

    fn allocate(&mut self, sets: usize) -> bool {
        let (mut entries, mut used) = (Vec::new(), Vec::new());
        // An entry is read as a word of 8 bytes.
        let len = sets * WAYS * BYTES + 8 - BYTES;
        if entries.try_reserve_exact(len).is_err() || used.try_reserve_exact(sets).is_err() {
            return false;
        }
        entries.resize(len, 0);
        used.resize(sets, 0);
        (self.entries, self.used, self.sets, self.sweep) = (entries, used, sets, 0);
        self.inverse = u64::MAX / sets as u64 + 1;
        true
    }

    fn len(&self) -> usize {
        self.sets * WAYS
    }

    fn entry(&self, at: usize) -> u64 {
        let at = at * BYTES;
        let mut word = [0; 8];
        word.copy_from_slice(&self.entries[at..at + 8]);
        u64::from_le_bytes(word) & ((1 << BITS) - 1)
    }

    fn put_entry(&mut self, at: usize, entry: u64) {
        self.used[at / WAYS] |= 1 << (at % WAYS);
        let at = at * BYTES;
        self.entries[at..at + BYTES].copy_from_slice(&entry.to_le_bytes()[..BYTES]);
    }

    /// The entry is free, and 0 so that it is no block's.
    fn free_entry(&mut self, at: usize) {
        self.put_entry(at, 0);
        self.used[at / WAYS] &= !(1 << (at % WAYS));
    }

    /// Its set is its share of the way from the first to the last.
    #[inline]
    fn home(&self, name: Name) -> Home {
        let product = u64::from(name.word) * self.sets as u64;
        // How many names of the set are less: what the multiplication by which the set is found leaves says that. By the sets:
        // exact for 32 bits (Lemire, Kaser, Kurz, 2019).
        let rest = u128::from(product as u32);
        let part = ((u128::from(self.inverse) * rest) >> 64) as u64 + 1;
        Home {
            set: (product >> 32) as usize,
            tag: (part << 1 | u64::from(name.second)) << self.bits,
        }
    }

    #[inline]
    fn homes(&self, name: Name) -> [Home; 2] {
        [name, name.other()].map(|name| self.home(name))
    }

    fn low(&self, entry: u64) -> u64 {
        entry & ((1 << self.bits) - 1)
    }

    /// The name of which there is an entry here.
    fn name(&self, at: usize, entry: u64) -> Name {
        let tag = entry >> self.bits;
        let least = (((at / WAYS) as u64) << 32).div_ceil(self.sets as u64);
        Name {
            word: (least + (tag >> 1) - 1) as u32,
            second: tag & 1 != 0,
        }
    }

    /// The entries of a set.
    #[inline(always)]
    fn bytes_of(&self, set: usize) -> &[u8] {
        &self.entries[set * WAYS * BYTES..][..WAYS * BYTES + 8 - BYTES]
    }

    fn find(&self, name: Name) -> Option<usize> {
        // Without what is behind an entry, and without its shadow.
        let part = ((1 << BITS) - 1) ^ ((1 << self.bits) - 1);
        for Home { set, tag } in self.homes(name) {
            let set_bytes = self.bytes_of(set);
            for way in 0..WAYS {
                if (word(set_bytes, way) ^ tag) & part == 0 {
                    return Some(set * WAYS + way);
                }
            }
        }
        None
    }

    fn is_full(&self, home: Home) -> bool {
        self.used[home.set] == u8::MAX
    }

    /// Puts it into a set that has room.
    #[inline]
    fn store(&mut self, Home { set, tag }: Home, low: u64) {
        let way = self.used[set].trailing_ones() as usize;
        self.put_entry(set * WAYS + way, tag | low);
    }

    /// The emptier one of two sets, if one has room.
    #[inline]
    fn emptier(&self, homes: [Home; 2]) -> Option<Home> {
        let entries = |home: Home| self.used[home.set].count_ones();
        match homes.map(|home| self.is_full(home)) {
            [true, true] => None,
            [false, true] => Some(homes[0]),
            [true, false] => Some(homes[1]),
            [false, false] => Some(homes[usize::from(entries(homes[1]) < entries(homes[0]))]),
        }
    }

    /// Makes room in one of two sets, of which nothing is forgotten: one entry moves to its other set, if what is forgotten there goes
    /// first.
    fn clear(&mut self, homes: [Home; 2], memory: &impl Memory) -> bool {
        self.shift(homes)
            || homes.into_iter().any(|Home { set, .. }| {
                (set * WAYS..(set + 1) * WAYS).any(|at| {
                    let other = self.other(at);
                    self.drop_from(other.set, memory) && self.shift(homes)
                })
            })
    }

    /// The other home of an entry.
    fn other(&self, at: usize) -> Home {
        self.home(self.name(at, self.entry(at)).other())
    }

    /// What is forgotten leaves a set. Says whether anything did.
    fn drop_from(&mut self, set: usize, memory: &impl Memory) -> bool {
        let mask = (1 << self.bits) - 1;
        // So many are not known to be forgotten.
        let recent = self.latest.wrapping_sub(self.horizon) & mask;
        let (latest, set_bytes) = (self.latest, self.bytes_of(set));
        let mut old = 0;
        for way in 0..WAYS {
            let age = latest.wrapping_sub(word(set_bytes, way)) & mask;
            old |= u8::from(age >= recent) << way;
        }
        match old & self.used[set] {
            0 => false,
            old => self.drop_forgotten(set, old, memory),
        }
    }

    /// Of these entries of a set those leave that are forgotten.
    #[inline(never)]
    fn drop_forgotten(&mut self, set: usize, mut old: u8, memory: &impl Memory) -> bool {
        let mut any = false;
        while old != 0 {
            let at = set * WAYS + old.trailing_zeros() as usize;
            old &= old - 1;
            // The numbers may have come again since the horizon was passed.
            if !memory.remembers(memory.whole(self.low(self.entry(at)))) {
                self.free_entry(at);
                any = true;
            }
        }
        any
    }

    /// What is forgotten leaves one of two full sets, which is enough. Returns it, if anything did.
    fn clean(&mut self, homes: [Home; 2], memory: &impl Memory) -> Option<Home> {
        self.pass(memory);
        homes
            .into_iter()
            .find(|home| self.drop_from(home.set, memory))
    }

    /// Goes on with the horizon up to the first one that is remembered.
    fn pass(&mut self, memory: &impl Memory) {
        let mask = (1 << self.bits) - 1;
        for _ in 0..STEPS {
            let next = self.horizon.wrapping_add(1) & mask;
            if next == self.latest || memory.remembers(memory.whole(next)) {
                return;
            }
            self.horizon = next;
        }
    }

    /// One entry of a full set moves to its other one.
    fn shift(&mut self, homes: [Home; 2]) -> bool {
        for Home { set, .. } in homes {
            for at in set * WAYS..(set + 1) * WAYS {
                let other = self.other(at);
                if !self.is_full(other) {
                    self.store(other, self.low(self.entry(at)));
                    self.free_entry(at);
                    return true;
                }
            }
        }
        false
    }

    /// Notes what was left of a block. What was left of it before has been [taken](Self::take) since, when it came; a second entry,
    /// where two missed the block and one of them came back to it late, is swept when the rule forgets it.
    pub(super) fn put(&mut self, block: Block, shadow: Shadow, memory: &impl Memory) {
        let (name, low) = (Name::of(block), self.low(shadow.get()));
        self.latest = low;
        if self.horizon == u64::MAX {
            self.horizon = low.wrapping_sub(1) & ((1 << self.bits) - 1);
        }
        if low.is_multiple_of(SWEEP) {
            self.drop_from(self.sweep, memory);
            self.sweep += 1;
            if self.sweep == self.sets {
                self.sweep = 0;
            }
        }
        loop {
            let homes = self.homes(name);
            let room = self.emptier(homes).or_else(|| self.clean(homes, memory));
            if let Some(home) = room {
                return self.store(home, low);
            }
            if !self.clear(homes, memory) && !self.make_room() {
                return;
            }
        }
    }

    /// Takes what was left of a block.
    pub(super) fn take(&mut self, block: Block) -> Option<u64> {
        let at = self.find(Name::of(block))?;
        let low = self.low(self.entry(at));
        self.free_entry(at);
        Some(low)
    }

    /// Grows by a sixteenth, or when it may not, drops each second entry. False if there is no memory.
    #[cold]
    fn make_room(&mut self) -> bool {
        let most = self.most / WAYS;
        let mut sets = self.sets;
        while sets < most {
            sets = (sets + sets / 16 + 1).min(most);
            let Some(new) = self.with(sets) else {
                return false;
            };
            // Once in a great while an entry finds no room in the larger table either.
            if let Some(new) = new {
                *self = new;
                return true;
            }
        }
        for at in (0..self.len()).step_by(2) {
            self.free_entry(at);
        }
        true
    }

    /// The same entries in so many sets; none if there is no memory, or no room for one.
    fn with(&self, sets: usize) -> Option<Option<Self>> {
        let mut new = Self {
            entries: Vec::new(),
            used: Vec::new(),
            ..*self
        };
        if !new.allocate(sets) {
            return None;
        }
        let used = |at: &usize| self.used[at / WAYS] & 1 << (at % WAYS) != 0;
        for at in (0..self.len()).filter(used) {
            let entry = self.entry(at);
            let (name, low) = (self.name(at, entry), self.low(entry));
            let homes = new.homes(name);
            if new.emptier(homes).is_none() && !new.shift(homes) {
                return Some(None);
            }
            if let Some(home) = new.emptier(homes) {
                new.store(home, low);
            }
        }
        Some(Some(new))
    }

    pub(super) fn bytes(&self) -> usize {
        self.entries.capacity() + self.used.capacity()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn block(index: u64) -> Block {
        Block(1 << 40 | index)
    }

    /// Remembers the shadows after `now - memory`, by their low 32 bits.
    struct Latest {
        now: u64,
        memory: u64,
    }

    impl Memory for Latest {
        fn remembers(&self, shadow: Shadow) -> bool {
            shadow.get() + self.memory > self.now
        }

        fn whole(&self, low: u64) -> Shadow {
            let mask = (1 << BITS_OF_A_NUMBER) - 1;
            Shadow::new(self.now - (self.now.wrapping_sub(low) & mask))
        }
    }

    const BITS_OF_A_NUMBER: u32 = 16;

    /// Blocks leave, of which the rule remembers the latest `memory`, and some come back. Numbers come again ten times.
    fn run(expected: usize, most: usize, memory: u64) -> CompressedShadows {
        let mut shadows = CompressedShadows::new(BITS_OF_A_NUMBER, expected, most).unwrap();
        let mut known = HashMap::new();
        let mut word = 3_u64;
        let mut found = 0;
        for now in 1..10 << BITS_OF_A_NUMBER {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = block((word >> 40) % 30_000);
            let rule = Latest { now, memory };
            let expected = known.remove(&at).filter(|&at| at + memory > now);
            let taken = shadows.take(at).map(|low| rule.whole(low).get());
            match expected {
                // what the rule remembers is never lost
                Some(_) => assert_eq!(taken, expected, "{now}"),
                None => assert!(
                    taken.is_none_or(|at| at + memory <= now),
                    "{now}: {taken:?}"
                ),
            }
            found += u32::from(taken.is_some());
            shadows.put(at, Shadow::new(now), &rule);
            known.insert(at, now);
        }
        assert!(found > 100_000, "{found}");
        shadows
    }

    #[test]
    fn what_the_rule_remembers_is_there_in_hardly_more_room_than_it_needs() {
        let made_for_it = run(10_000, 40_000, 9000);
        assert_eq!(made_for_it.bytes(), 10_000 * BYTES + 3 + 10_000 / WAYS);
        let grown = run(4200, 40_000, 9000);
        assert!(grown.bytes() <= 9000 * BYTES * 12 / 10, "{}", grown.bytes());
    }

    #[test]
    fn each_name_has_two_sets_and_is_found_again_in_its_entry() {
        let shadows = CompressedShadows::new(12, 1000, 4000).unwrap();
        for index in 0..10_000 {
            let one = Name::of(block(index));
            assert_eq!(one.other().other(), one);
            for name in [one, one.other()] {
                let Home { set, tag } = shadows.home(name);
                let entry = tag | 0xfff;
                assert!(entry < 1 << BITS);
                assert_eq!(shadows.name(set * WAYS, entry), name);
            }
        }
    }

    #[test]
    fn a_rule_that_never_forgets_gets_a_bounded_table() {
        let mut shadows = CompressedShadows::new(9, 100, 400).unwrap();
        let rule = Latest {
            now: 60_000,
            memory: 1 << 40,
        };
        for index in 0..10_000 {
            shadows.put(block(index), Shadow::new(index), &rule);
            assert_eq!(shadows.take(block(index)), Some(index % 512));
            shadows.put(block(index), Shadow::new(index), &rule);
        }
        assert!(shadows.len() <= 400);
    }

    #[test]
    fn shadows_of_too_many_bits_are_refused() {
        assert!(CompressedShadows::new(16, 1 << 14, 1 << 16).is_some());
        assert!(CompressedShadows::new(32, 1 << 14, 1 << 16).is_none());
    }
}
