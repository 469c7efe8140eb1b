//! What a rule wants to be shown when a block comes back, as an owner keeps it.

mod compressed;

use super::{Block, Policy, Shadow};
use compressed::{CompressedShadows, Memory};

const FREE: u32 = 0;
const FIRST: usize = 64;
/// Entries that are looked at with each that comes, for such as the rule has forgotten.
const SWEEP: usize = 8;

/// What was left of blocks, by block, in the least room that the rule allows: 5 bytes each if it
/// [says](Policy::shadow_bits) how few bits it needs, else 8 to 11. There are at most four for each frame, or six of a small cache.
/// When memory is short they are lost, which costs hits and nothing else.
///
/// ```
/// use larder_policy::{Arrival, Block, Policy, PolicyError, Reason, S3Fifo, Shadows};
///
/// let (mut rule, mut shadows) = (S3Fifo::new(10)?, Shadows::new(10));
/// let admission = rule.miss(Block(7), shadows.take(Block(7), &rule), Reason::Demand);
/// rule.insert(0, Arrival::demand(Block(7), 0, admission));
/// if let Some(shadow) = rule.invalidate(0) {
///     shadows.put(Block(7), shadow, &rule);
/// }
/// assert!(shadows.take(Block(7), &rule).is_none()); // it was used once
/// # Ok::<(), PolicyError>(())
/// ```
#[derive(Debug)]
pub struct Shadows {
    compressed: Option<CompressedShadows>,
    whole: WholeShadows,
    /// There are few bytes beside a frame.
    roomy: bool,
}

/// Entries of roomy shadows, so that a small cache whose rule remembers many blocks has no full table.
const ROOMY: usize = 1536;
/// But not more for each frame: with so many, all are swept before three times as many blocks left as there are frames.
const MOST_ROOMY: usize = 6;

/// Compressed entries for a rule of so many frames: at first, and at most.
fn entries(frames: usize, roomy: bool) -> (usize, usize) {
    let most = frames.saturating_mul(4);
    if !roomy {
        return (frames, most);
    }
    let small = ROOMY.min(frames.saturating_mul(MOST_ROOMY));
    let first = frames.saturating_mul(2).max(small);
    (first, most.max(first))
}

/// Every bit depends on all bits of the block: both halves of a product of 128 bits (wyhash, Wang Yi 2019). 4 instructions.
#[inline]
fn hash(block: Block) -> u64 {
    let product = u128::from(block.0) * 0xd6e8_feb8_6659_fd93;
    product as u64 ^ (product >> 64) as u64
}

/// A rule, asked for what it remembers.
struct RuleMemory<'p, P>(&'p P);

impl<P: Policy> Memory for RuleMemory<'_, P> {
    fn remembers(&self, shadow: Shadow) -> bool {
        self.0.remembers(shadow)
    }

    fn whole(&self, low: u64) -> Shadow {
        self.0.whole_shadow(low)
    }
}

impl Shadows {
    /// None yet, for a rule of so many frames. Allocates nothing.
    pub fn new(frames: usize) -> Self {
        Self {
            compressed: None,
            whole: WholeShadows::new(frames),
            roomy: false,
        }
    }

    /// The same with twice the entries, or up to six times for less than 768 frames, where these are few bytes beside a frame: a full
    /// table costs a put several hundred instructions.
    pub fn roomy(frames: usize) -> Self {
        Self {
            roomy: true,
            ..Self::new(frames)
        }
    }

    /// Notes what was left of a block.
    pub fn put<P: Policy>(&mut self, block: Block, shadow: Shadow, rule: &P) {
        let bits = rule.shadow_bits();
        if self.compressed.as_ref().map(CompressedShadows::bits) != bits {
            // Numbers of another length belong to another memory, which is lost.
            let frames = rule.capacity();
            let (first, most) = entries(frames, self.roomy);
            self.compressed = bits.and_then(|bits| CompressedShadows::new(bits, first, most));
        }
        match &mut self.compressed {
            Some(compressed) => compressed.put(block, shadow, &RuleMemory(rule)),
            None => self
                .whole
                .put(block, shadow, |shadow| rule.remembers(shadow)),
        }
    }

    /// Takes what was left of a block.
    pub fn take(&mut self, block: Block, rule: &impl Policy) -> Option<Shadow> {
        let found = self
            .compressed
            .as_mut()
            .filter(|shadows| Some(shadows.bits()) == rule.shadow_bits())
            .and_then(|shadows| shadows.take(block))
            .map(|low| rule.whole_shadow(low));
        found.or_else(|| self.whole.take(block))
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.compressed.as_ref().map_or(0, CompressedShadows::bytes) + self.whole.bytes()
    }
}

/// Shadows by 32 bits of the block's hash: open addressing, at most 13 sixteenths full. Those that the rule has forgotten go as others
/// come, so that there is hardly more room than for those that it remembers; it grows by eighths until it has four entries for
/// each frame, and forgets each second one then. 8 bytes an entry, 9 to 11 for each shadow that is remembered.
#[derive(Debug, Default)]
struct WholeShadows {
    tags: Vec<u32>,
    low: Vec<u32>,
    /// Only once a rule has given a shadow of more than 32 bits.
    high: Vec<u32>,
    len: usize,
    most: usize,
    /// The entry that is looked at next.
    sweep: usize,
}

impl WholeShadows {
    fn new(frames: usize) -> Self {
        Self {
            most: frames.saturating_mul(4).max(FIRST),
            ..Self::default()
        }
    }

    fn tag(block: Block) -> u32 {
        ((hash(block) >> 32) as u32).max(1)
    }

    /// The entry where a tag would best be: its share of the way from the first to the last.
    fn home(&self, tag: u32) -> usize {
        let spread = tag.wrapping_mul(0x9e37_79b1);
        ((u64::from(spread) * self.tags.len() as u64) >> 32) as usize
    }

    fn next(&self, at: usize) -> usize {
        if at + 1 == self.tags.len() { 0 } else { at + 1 }
    }

    /// How far it is from one entry to another, going on only.
    fn way(&self, from: usize, to: usize) -> usize {
        if to >= from {
            to - from
        } else {
            to + self.tags.len() - from
        }
    }

    fn full(&self) -> bool {
        self.len * 16 >= self.tags.len() * 13
    }

    /// Notes what was left of a block. `remembers` says of a shadow whether the rule still knows it.
    fn put(&mut self, block: Block, shadow: Shadow, remembers: impl Fn(Shadow) -> bool) {
        self.forget(&remembers);
        if self.full() && !self.make_room() {
            return;
        }
        self.insert(Self::tag(block), shadow.get());
    }

    /// Looks at some entries, and takes out what the rule has forgotten.
    fn forget(&mut self, remembers: &impl Fn(Shadow) -> bool) {
        for _ in 0..SWEEP.min(self.tags.len()) {
            let at = self.sweep;
            if self.tags[at] != FREE && !remembers(Shadow::new(self.shadow(at))) {
                // Another one may be there now, which is looked at next.
                self.remove(at);
            } else {
                self.sweep = self.next(at);
            }
        }
    }

    fn insert(&mut self, tag: u32, shadow: u64) {
        let high = (shadow >> 32) as u32;
        if high != 0 && self.high.is_empty() {
            let Some(words) = free(self.tags.len()) else {
                return;
            };
            self.high = words;
        }
        let mut at = self.home(tag);
        while self.tags[at] != FREE && self.tags[at] != tag {
            at = self.next(at);
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

    /// Grows, or when it may not, drops each second one. False if there is no memory.
    fn make_room(&mut self) -> bool {
        let old = self.tags.len();
        let len = (old + old / 8).clamp(FIRST, self.most);
        let keep = if len > old { 1 } else { 2 };
        let (Some(tags), Some(low)) = (free(len), free(len)) else {
            return false;
        };
        let before = core::mem::replace(
            self,
            Self {
                tags,
                low,
                most: self.most,
                ..Self::default()
            },
        );
        for at in (0..old).filter(|&at| before.tags[at] != FREE).step_by(keep) {
            self.insert(before.tags[at], before.shadow(at));
        }
        true
    }

    /// Takes what was left of a block.
    fn take(&mut self, block: Block) -> Option<Shadow> {
        if self.tags.is_empty() {
            return None;
        }
        let tag = Self::tag(block);
        let mut at = self.home(tag);
        while self.tags[at] != tag {
            if self.tags[at] == FREE {
                return None;
            }
            at = self.next(at);
        }
        let shadow = Shadow::new(self.shadow(at));
        self.remove(at);
        Some(shadow)
    }

    /// Takes an entry out, and moves those behind it up, so that no mark of it is left.
    fn remove(&mut self, mut hole: usize) {
        let mut at = self.next(hole);
        while self.tags[at] != FREE {
            let home = self.home(self.tags[at]);
            if self.way(home, at) >= self.way(hole, at) {
                self.tags[hole] = self.tags[at];
                self.low[hole] = self.low[at];
                if !self.high.is_empty() {
                    self.high[hole] = self.high[at];
                }
                hole = at;
            }
            at = self.next(at);
        }
        self.tags[hole] = FREE;
        self.len -= 1;
    }

    fn bytes(&self) -> usize {
        (self.tags.capacity() + self.low.capacity() + self.high.capacity()) * size_of::<u32>()
    }
}

/// So many free words; none if there is no memory.
fn free(len: usize) -> Option<Vec<u32>> {
    let mut words = Vec::new();
    words.try_reserve_exact(len).ok()?;
    words.resize(len, FREE);
    Some(words)
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, VecDeque};

    use super::*;

    fn block(index: u64) -> Block {
        Block(1 << 40 | index)
    }

    /// Blocks leave, of which the rule remembers the latest `memory`, and some come back.
    fn run(frames: usize, memory: usize, shift: u32) -> WholeShadows {
        let mut shadows = WholeShadows::new(frames);
        let (mut known, mut order) = (HashMap::new(), VecDeque::new());
        let mut word = 3_u64;
        for number in 0..60_000_u64 {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = block((word >> 40) % 30_000);
            let found = shadows.take(at).map(Shadow::get);
            if found.is_none() {
                // what the rule remembers is never lost
                let oldest = number.saturating_sub(memory as u64);
                assert!(known.get(&at).is_none_or(|&left| left < oldest), "{number}");
            } else {
                assert_eq!(found, known.get(&at).map(|number| (number + 1) << shift));
            }
            known.remove(&at);
            let remembers = |shadow: Shadow| (shadow.get() >> shift) + memory as u64 > number;
            shadows.put(at, Shadow::new((number + 1) << shift), remembers);
            known.insert(at, number);
            order.push_back(at);
        }
        let there = shadows.tags.iter().filter(|&&tag| tag != FREE).count();
        assert_eq!(there, shadows.len);
        shadows
    }

    #[test]
    fn what_the_rule_remembers_is_there_and_takes_little_more_room_than_it_needs() {
        let shadows = run(10_000, 9000, 0);
        assert!(shadows.bytes() <= 9000 * 12, "{} bytes", shadows.bytes());
        assert!(shadows.high.is_empty());
        let wide = run(10_000, 9000, 31);
        assert_eq!(wide.high.len(), wide.tags.len());
    }

    #[test]
    fn a_rule_that_never_forgets_gets_a_bounded_table() {
        let mut shadows = WholeShadows::new(100);
        for index in 0..10_000 {
            shadows.put(block(index), Shadow::new(index), |_| true);
            assert_eq!(shadows.take(block(index)).map(Shadow::get), Some(index));
            shadows.put(block(index), Shadow::new(index), |_| true);
        }
        assert!(shadows.tags.len() <= 400 && shadows.len >= 100);
    }
}
