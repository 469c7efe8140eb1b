//! The settings among which the rule chooses.

/// Proportions of the two queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Knobs {
    /// Share of the small queue, in thousandths of the capacity.
    pub(super) small: u32,
    /// How many blocks that left are remembered, in thousandths of the capacity.
    pub(super) ghosts: u32,
    /// A block that comes back takes a place in the main queue only if it was away for less time than the oldest there.
    pub(super) contest: bool,
    /// A block takes a place in the main queue only if it came to the cache more often than the block that it replaces.
    pub(super) frequency: bool,
}

/// Half of the small queue: touches there count as correlated with the first one (Clock2Q+).
pub(super) const WINDOW: u32 = 2;

/// Ghosts that cost little, also in a small cache.
const FEW: usize = 1024;

/// Most ghosts of any setting, for a cache of this many frames.
pub(super) fn most_ghosts(capacity: usize) -> usize {
    FEW.clamp(capacity.saturating_mul(2), capacity.saturating_mul(4))
}

/// So many thousandths of the frames.
pub(super) fn share(capacity: usize, thousandths: u32) -> usize {
    (capacity as u64 * u64::from(thousandths) / 1000) as usize
}

impl Knobs {
    /// One queue with all frames, in the order of the last use.
    pub(super) fn is_lru(self) -> bool {
        self.small == 1000
    }

    /// Those of the expert for loops: hardly any frames for new blocks, and what comes back must win against what is there.
    #[inline]
    pub(super) fn is_for_loops(self) -> bool {
        self.contest && self.small <= 10
    }
}

/// A setting and what it is good at.
#[derive(Debug)]
pub(super) struct Expert {
    /// For statistics: its misses in miniature stand under this name.
    pub(super) name: &'static str,
    knobs: Knobs,
    /// A small cache remembers more, up to four times its frames, and so knows loops of several times the frames.
    far: bool,
}

impl Expert {
    /// The setting in a cache of this many frames, and in its miniatures.
    pub(super) fn knobs(&self, capacity: usize) -> Knobs {
        let few = FEW.min(capacity.saturating_mul(4)) * 1000 / capacity;
        let least = if self.far { few as u32 } else { 0 };
        Knobs {
            ghosts: self.knobs.ghosts.max(least),
            ..self.knobs
        }
    }

    /// Thousandths of the small queue.
    pub(super) fn small(&self) -> u32 {
        self.knobs.small
    }
}

const fn expert(name: &'static str, small: u32, ghosts: u32, far: bool, contest: bool) -> Expert {
    Expert {
        name,
        knobs: Knobs {
            small,
            ghosts,
            contest,
            frequency: false,
        },
        far,
    }
}

const fn by_frequency(name: &'static str, small: u32, ghosts: u32) -> Expert {
    let mut expert = expert(name, small, ghosts, true, false);
    expert.knobs.frequency = true;
    expert
}

/// How many there are.
pub(super) const COUNT: usize = 6;

/// The first rules until the miniatures know better.
pub(super) static EXPERTS: [Expert; COUNT] = [
    expert("misses, balanced", 100, 900, true, true),
    expert("misses, recency", 250, 900, false, false),
    expert("misses, long memory", 20, 2000, true, false),
    expert("misses, loops", 10, 900, false, true),
    // In the mean of four hashes this expert closes 1.4 percentage points more of the gap in 144 cells, and 4 in caches under 100 frames.
    by_frequency("misses, frequency", 10, 900),
    expert("misses, LRU", 1000, 900, false, false),
];

/// The one that counts how often blocks come.
pub(super) const BY_FREQUENCY: usize = COUNT - 2;

/// The last one. The guard falls back to it.
pub(super) const AS_LRU: usize = COUNT - 1;
