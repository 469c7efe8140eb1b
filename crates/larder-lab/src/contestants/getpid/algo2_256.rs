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

impl Default for Window256 {
    /// Begins with a search at id 1.
    fn default() -> Self {
        Self {
            reserved: 1,
            last: 0,
            next_safe: 1,
            counts: Counts::default(),
        }
    }
}

impl Window256 {
    #[inline(never)]
    fn search<L: Layout>(&mut self, tasks: &Tasks<L>) -> Option<u32> {
        self.counts.searches += 1;
        let mut from = self.last;
        // Once around, and the first piece again for the ids before the candidate.
        for _ in 0..=PID_MAX.div_ceil(WINDOW) {
            let map = self.window(tasks, from);
            let most = WINDOW.min(PID_MAX - from);
            let used = |at: &u32| map[(at >> 5) as usize] & (1 << (at & 31)) != 0;
            if let Some(free) = (0..most).find(|at| !used(at)) {
                let end = most.min(free + LONGEST);
                self.last = from + free;
                self.next_safe = from + (free + 1..end).find(used).unwrap_or(end);
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
            for id in task.ids() {
                let at = id.wrapping_sub(from);
                if at < WINDOW {
                    map[(at >> 5) as usize] |= 1 << (at & 31);
                }
            }
            true
        });
        self.counts.visited += tasks.len() as u64;
        map
    }
}

impl GetPid for Window256 {
    fn after(mut self, last: u32, next_safe: u32) -> Self {
        self.last = last.min(PID_MAX - 1);
        self.next_safe = next_safe.min(PID_MAX);
        self
    }

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
