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
}

/// Half of the small queue: touches there count as correlated with the first one (Clock2Q+).
pub(super) const WINDOW: u32 = 2;

/// Most ghosts of any setting, in thousandths.
pub(super) const MOST_GHOSTS: u32 = 2000;

/// A setting and what it is good at.
#[derive(Debug)]
pub(super) struct Expert {
    /// For statistics: its misses in miniature stand under this name.
    pub(super) name: &'static str,
    pub(super) knobs: Knobs,
}

const fn expert(name: &'static str, small: u32, ghosts: u32, contest: bool) -> Expert {
    Expert {
        name,
        knobs: Knobs {
            small,
            ghosts,
            contest,
        },
    }
}

/// How many there are.
pub(super) const COUNT: usize = 5;

/// The first rules until the miniatures know better.
pub(super) static EXPERTS: [Expert; COUNT] = [
    expert("misses, balanced", 100, 900, false),
    expert("misses, recency", 250, 900, false),
    expert("misses, frequency", 20, 900, false),
    expert("misses, long memory", 20, 2000, false),
    expert("misses, loops", 10, 900, true),
];
