//! algo-0: the walk over all tasks of Linux 2.4.

use super::{Counts, GetPid, Layout, PID_MAX, Tasks};

/// `get_pid` of Linux 2.4, as Franke's harness has it (2002): ids from `last` up to `next_safe` are known to be free.
/// When they are used up, every task is looked at. A task that holds the candidate sends the search to the next id and to
/// the beginning of the list again; all others narrow the interval. Near a full space this is quadratic.
///
/// One difference from the kernel of that time is Franke's: the thread group narrows the interval too.
#[derive(Debug, Clone)]
pub struct Algo0 {
    reserved: u32,
    last: u32,
    next_safe: u32,
    counts: Counts,
}

impl Algo0 {
    /// After the last id it begins again at `reserved`, which was 300 in the kernel ("skip daemons") and is 1 in the
    /// harness. `next_safe` is where the first search comes: 1 to search at once, 32768 for an empty list.
    #[must_use]
    pub fn new(reserved: u32, next_safe: u32) -> Self {
        Self {
            reserved: reserved.clamp(1, PID_MAX - 1),
            last: 0,
            next_safe: next_safe.min(PID_MAX),
            counts: Counts::default(),
        }
    }

    /// The search. Kept apart so that its loop is easy to find in a disassembly.
    #[inline(never)]
    fn search<L: Layout>(&mut self, tasks: &Tasks<L>, begin: u32) -> Option<u32> {
        self.counts.searches += 1;
        self.next_safe = PID_MAX;
        // The harness looks only for the return to `begin`, which never comes for one below `reserved`.
        for _ in 0..=PID_MAX {
            let (last, mut next, mut visited) = (self.last, self.next_safe, 0u64);
            let whole = tasks.walk(|task| {
                visited += 1;
                task.passes(last, &mut next)
            });
            self.counts.visited += visited;
            self.next_safe = next;
            if whole {
                return Some(last);
            }
            self.last += 1;
            if self.last >= self.next_safe {
                if self.last >= PID_MAX {
                    self.last = self.reserved;
                }
                self.next_safe = PID_MAX;
            }
            if self.last == begin {
                return None;
            }
        }
        None
    }

    pub(super) fn cursor(&self) -> (u32, u32) {
        (self.last, self.next_safe)
    }

    pub(super) fn set_cursor(&mut self, (last, next_safe): (u32, u32)) {
        self.last = last;
        self.next_safe = next_safe;
    }
}

impl GetPid for Algo0 {
    fn get<L: Layout>(&mut self, tasks: &Tasks<L>) -> Option<u32> {
        let mut begin = self.last;
        self.last += 1;
        if self.last >= PID_MAX {
            self.last = self.reserved;
            begin = self.reserved;
        } else if self.last < self.next_safe {
            return Some(self.last);
        }
        self.search(tasks, begin)
    }

    fn after(mut self, last: u32, next_safe: u32) -> Self {
        self.set_cursor((last.min(PID_MAX - 1), next_safe.min(PID_MAX)));
        self
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}
