//! A profile of a heap by samples: which stacks allocated how much, and what of it still lives.
//!
//! An allocation of `size` bytes is sampled with probability `1 - exp(-size / interval)`: bytes are counted, and the distance in
//! bytes from one sample to the next is exponential. Each sample stands for the inverse of its probability, so all sums are
//! unbiased, whatever the sizes are. gperftools, tcmalloc and Go sample alike. What counts the bytes and keeps sampled blocks
//! apart from others is the program's heap; this module keeps the samples and writes them.
//!
//! | file | what it is |
//! |---|---|
//! | `gap` | distances between samples, and what a sample stands for |
//! | `samples` | the stacks with their sums, and the sampled blocks that live |
//! | `modules` | the programs and libraries of the process |
//! | `pprof` | the profile as a file |
//! | `live` | the largest stacks of what lives, in words |
//! | `out` | bytes on their way to a file |
//!
//! All memory comes straight from the system, and none of it is allocated while a lock other than the samples' own is held.

pub(super) mod gap;
mod live;
mod modules;
mod out;
mod pprof;
mod samples;

use std::sync::Arc;

use rustix::fd::BorrowedFd;
use rustix::io::Errno;

use super::stacks::Sampler;
use crate::os::forked::ForkLock;
use crate::os::{OsError, System};
use samples::Samples;

/// The interval that is not chosen, in bytes: that of tcmalloc. With a quarter of it, as in Go and jemalloc, the stacks of a compiler's
/// samples were 2.7 % of its instructions.
pub(crate) const INTERVAL: usize = 2 << 20;
/// Intervals that may be chosen.
pub(crate) const INTERVALS: core::ops::RangeInclusive<usize> = 1..=1 << 30;

/// The samples of a heap.
#[derive(Debug)]
pub(crate) struct Profile {
    system: Arc<dyn System>,
    interval: usize,
    samples: ForkLock<Samples>,
    stacks: Sampler,
    /// When it began, in nanoseconds.
    begun: u64,
}

impl Profile {
    /// A profile with a sample for about so many bytes, one of [`INTERVALS`].
    ///
    /// # Errors
    /// The system's refusal of memory.
    pub(crate) fn new(system: Arc<dyn System>, interval: usize) -> Result<Self, OsError> {
        Ok(Self {
            samples: ForkLock::new(Samples::new(&system, interval)?)?,
            system,
            interval,
            stacks: Sampler::new(),
            begun: crate::os::coarse_now(),
        })
    }

    /// Samples have stacks from now on.
    pub(crate) fn begin_stacks(&self) {
        self.stacks.begin();
    }

    /// A block of `size` bytes was sampled, which this thread has just got. Allocates nothing, but the unwinder may.
    pub(crate) fn add(&self, at: usize, size: usize) {
        let frames = self.stacks.stack();
        self.samples.lock().add(at, size, &frames);
    }

    /// A block goes, which may be a sampled one. True if it was.
    pub(crate) fn remove(&self, at: usize) -> bool {
        self.samples.lock().remove(at)
    }

    /// Writes the profile in the format of pprof, uncompressed.
    ///
    /// # Errors
    /// The system's refusal.
    pub(crate) fn write(&self, file: BorrowedFd<'_>) -> Result<(), Errno> {
        pprof::write(self, file)
    }

    /// Says which stacks allocated most of what lives.
    pub(crate) fn say_live(&self) {
        live::say(self);
    }
}
