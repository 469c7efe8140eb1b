//! Andrea Arcangeli's getpid, which the post names but did not measure.

use super::bits::Bits;
use super::{Counts, GetPid, Layout, PID_MAX, Tasks};

/// `get_pid` of the -aa kernels (2.4.19pre7aa2), as its author posted it: "get_pid fixes against 2.4.19pre7",
/// linux-kernel, 26 April 2002. It is algo-1 of Franke's text: a cleared map, one walk that marks it with `set_bit`, the
/// next zero bit after `last_pid`, else from the beginning. During the walk it also narrows the interval as 2.4 did,
/// in the hope that the candidate is free.
///
/// Kept as posted: when no id in use follows the one that was found, the interval ends before it began, and the next
/// call searches again.
#[derive(Debug)]
pub struct Andrea<B> {
    first: u32,
    map: B,
    last: u32,
    next_unsafe: u32,
    counts: Counts,
}

impl<B: Bits> Default for Andrea<B> {
    /// Begins with a search; wraps to id 1 (2 in the kernel, where 1 is init).
    fn default() -> Self {
        Self {
            first: 1,
            map: B::new(),
            last: 0,
            next_unsafe: 1,
            counts: Counts::default(),
        }
    }
}

impl<B: Bits> Andrea<B> {
    #[inline(never)]
    fn search<L: Layout>(&mut self, tasks: &Tasks<L>, candidate: u32) -> Option<u32> {
        self.counts.searches += 1;
        self.counts.visited += tasks.len() as u64;
        self.map.clear();
        let map = &mut self.map;
        let mut next = PID_MAX;
        tasks.walk(|task| {
            for id in task.ids() {
                map.mark(id);
            }
            task.narrow(candidate, &mut next);
            true
        });
        self.next_unsafe = next;
        let free_in = |from, end| self.map.find(from, false).filter(|id| *id < end);
        let found = match free_in(candidate, PID_MAX) {
            Some(found) => found,
            None => {
                self.next_unsafe = 0;
                free_in(self.first, candidate)?
            }
        };
        if found > self.next_unsafe
            && let Some(used) = self.map.find(found + 1, true)
        {
            self.next_unsafe = used;
        }
        self.last = found;
        Some(found)
    }
}

impl<B: Bits> GetPid for Andrea<B> {
    fn get<L: Layout>(&mut self, tasks: &Tasks<L>) -> Option<u32> {
        let candidate = self.last + 1;
        if candidate < self.next_unsafe {
            self.last = candidate;
            return Some(candidate);
        }
        self.search(tasks, candidate)
    }

    fn after(mut self, last: u32, next_unsafe: u32) -> Self {
        self.last = last.min(PID_MAX - 1);
        self.next_unsafe = next_unsafe.min(PID_MAX);
        self
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}
