//! algo-2-256: intervals of at most 256 ids, and a map that is no larger than it must be.

use super::bits::Bits;
use super::sweep::{Bound, Mask, Start, Sweep};
use super::{Counts, GetPid, Layout, PID_MAX, Tasks};

/// algo-2-256 as it was measured: algo-2 with a bound that is counted from the wrong number, so that it binds only
/// below id 1016. This is why its S differs from algo-2's in two rows of the second table and in no other.
#[must_use]
pub fn algo_2_256_post<B: Bits>() -> Sweep<B> {
    Sweep::new(Start::Last, true, Mask::Posted, Bound::Posted)
}

/// Ids that the small map covers: 256 bytes, the "smaller search chunks" of the post.
const WINDOW: u32 = 2048;
/// The longest interval.
const LONGEST: u32 = 256;

/// algo-2-256 as it was meant: a map of 2048 ids on the stack, one walk for each such piece of the space that has to be
/// looked at, intervals of at most 256. It needs no map that outlives a search, and the space could have 32 bits. What
/// it cannot do is keep its marks. The post describes the idea; this form is a reconstruction.
#[derive(Debug, Clone)]
pub struct Window256 {
    reserved: u32,
    last: u32,
    next_safe: u32,
    counts: Counts,
}

impl Window256 {
    /// Begins with a search at id 1.
    #[must_use]
    pub fn new() -> Self {
        Self {
            reserved: 1,
            last: 0,
            next_safe: 1,
            counts: Counts::default(),
        }
    }

    /// The same after `last` was handed out: ids after it are free up to `next_safe`.
    #[must_use]
    pub fn after(mut self, last: u32, next_safe: u32) -> Self {
        self.last = last.min(PID_MAX - 1);
        self.next_safe = next_safe.min(PID_MAX);
        self
    }

    #[inline(never)]
    fn search<L: Layout>(&mut self, tasks: &Tasks<L>) -> Option<u32> {
        self.counts.searches += 1;
        let mut from = self.last;
        // Once around, and the first piece again for the ids before the candidate.
        for _ in 0..=PID_MAX.div_ceil(WINDOW) {
            let map = self.window(tasks, from);
            let most = WINDOW.min(PID_MAX - from);
            if let Some(free) = (0..most).find(|at| map[(at >> 5) as usize] & (1 << (at & 31)) == 0)
            {
                let longest = LONGEST.min(most - free);
                let run = (1..longest)
                    .find(|on| {
                        let at = free + on;
                        map[(at >> 5) as usize] & (1 << (at & 31)) != 0
                    })
                    .unwrap_or(longest);
                self.last = from + free;
                self.next_safe = self.last + run;
                return Some(self.last);
            }
            from += most;
            if from >= PID_MAX {
                from = self.reserved;
            }
        }
        self.last = 0;
        self.next_safe = self.reserved;
        None
    }

    /// The marks of the ids `from` to `from + 2047`.
    fn window<L: Layout>(&mut self, tasks: &Tasks<L>, from: u32) -> [u32; (WINDOW / 32) as usize] {
        let mut map = [0u32; (WINDOW / 32) as usize];
        tasks.walk(|task| {
            for id in [task.pid, task.pgrp, task.tgid, task.session] {
                let at = id.wrapping_sub(from);
                if at < WINDOW {
                    map[(at >> 5) as usize] |= 1 << (at & 31);
                }
            }
            true
        });
        self.counts.visited += tasks.len() as u64;
        self.counts.map_lines += u64::from(WINDOW / 512);
        map
    }
}

impl Default for Window256 {
    fn default() -> Self {
        Self::new()
    }
}

impl GetPid for Window256 {
    fn get<L: Layout>(&mut self, tasks: &Tasks<L>) -> Option<u32> {
        self.last += 1;
        if self.last >= PID_MAX {
            self.last = self.reserved;
        } else if self.last < self.next_safe {
            return Some(self.last);
        }
        self.search(tasks)
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}
