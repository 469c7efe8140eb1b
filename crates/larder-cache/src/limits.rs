//! Sizes that a model checker makes small, so that it explores their edges: loom and shuttle try every order of few steps.

/// Picks the size for loom, for shuttle, or for a real run.
const fn size(loom: usize, shuttle: usize, real: usize) -> usize {
    if cfg!(loom) {
        loom
    } else if cfg!(shuttle) {
        shuttle
    } else {
        real
    }
}

/// Pins of a handle: a cache line of them. Further blocks of the handle are counted in their latches.
pub(crate) const PINS: usize = size(2, 8, 8);

/// Rows of pins in the first chunk.
pub(crate) const FIRST_ROWS: usize = size(1, 4, 4);

/// Uses after which a handle reports them to the rule, if no other thread has the cache's lock.
pub(crate) const REPORT: u8 = size(64, 2, 64) as u8;

/// Reports after which an epoch is long: the barrier at its end costs as much as some hundred hits.
pub(crate) const LONG_EPOCH: u32 = size(16, 1, 16) as u32;

/// Blocks of a partition that leave, or pages that go back to the pool, under one lock.
pub(crate) const LEAVE_AT_ONCE: usize = size(2, 2, 256);

/// How often a thread looks again for a block whose holder the cache does not know, before it takes the holder for a guard.
pub(crate) const PATIENCE: u32 = size(32, 4, 32) as u32;

/// Reads that wait for a thread of the cache. A thread that asks for one more does it itself.
pub(crate) const MOST_READS: usize = size(1, 2, 1024);

/// The number of a closed file rests until so many others were given: by then the rule has forgotten most of the file's blocks.
pub(crate) const RESTING_FILES: u64 = if cfg!(test) { 4 } else { 1024 };
