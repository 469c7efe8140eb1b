//! Mark and sweep: one walk marks every id in a map, and the map says where the next free interval is.

use super::bits::{Bits, WORDS};
use super::{Counts, GetPid, Layout, PID_MAX, Tasks};

/// Where a search in the map begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// After the id that was handed out last, and once more from the beginning.
    Last,
    /// Always from the beginning of the space.
    Beginning,
}

/// Which ids of the first word are left out because the search begins after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mask {
    /// All below the candidate.
    Meant,
    /// Those that the posted code leaves out. Its mask is `2 b - 1` where `2^b - 1` is meant: of the 32 ids of the
    /// first word it leaves out the wrong ones, and all of them when the candidate is the first.
    Posted,
}

/// Where an interval ends at the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// At the next id in use.
    None,
    /// After this many ids.
    Ids(u32),
    /// As the posted code bounds it: eight words on, but counted from the id where the index of its word is meant, so
    /// that from id 1016 on there is no bound at all.
    Posted,
}

/// A sweep with its rules.
#[derive(Debug)]
pub struct Sweep<B> {
    start: Start,
    keep: bool,
    mask: Mask,
    bound: Bound,
    reserved: u32,
    map: B,
    last: u32,
    next_safe: u32,
    counts: Counts,
}

impl<B: Bits> Sweep<B> {
    /// A sweep that begins with a search. `keep` says whether the marks of the last walk stay: ids that were freed
    /// since are then passed over until nothing else is found.
    #[must_use]
    pub fn new(start: Start, keep: bool, mask: Mask, bound: Bound) -> Self {
        Self {
            start,
            keep,
            mask,
            bound,
            reserved: 1,
            map: B::new(),
            last: 0,
            next_safe: 1,
            counts: Counts::default(),
        }
    }

    /// The id handed out last, and the first after it that may be in use.
    #[must_use]
    pub fn cursor(&self) -> (u32, u32) {
        (self.last, self.next_safe)
    }

    /// Sets what [`cursor`](Self::cursor) tells.
    pub fn set_cursor(&mut self, (last, next_safe): (u32, u32)) {
        self.last = last.min(PID_MAX - 1);
        self.next_safe = next_safe.min(PID_MAX);
    }

    /// The next id, where `mark` marks all that live, `live` of them: for a caller that keeps them in another form.
    pub fn get_marked(&mut self, live: u64, mark: impl FnMut(&mut B)) -> Option<u32> {
        self.last += 1;
        if self.last >= PID_MAX {
            self.last = self.reserved;
        } else if self.last < self.next_safe {
            return Some(self.last);
        }
        self.search(live, mark)
    }

    /// The search: mark, find, and once more where that was in vain.
    fn search(&mut self, live: u64, mut mark: impl FnMut(&mut B)) -> Option<u32> {
        self.counts.searches += 1;
        let mut from = match self.start {
            Start::Last => self.last,
            Start::Beginning => self.reserved,
        };
        let mut fresh = !self.keep;
        for _ in 0..2 {
            if fresh {
                self.map.clear();
            }
            mark(&mut self.map);
            self.counts.visited += live;
            if let Some(found) = self.interval(from) {
                return Some(found);
            }
            if fresh {
                // The map is true: what is not found from the beginning is nowhere.
                if from != self.reserved
                    && let Some(found) = self.interval(self.reserved)
                {
                    return Some(found);
                }
                break;
            }
            from = self.reserved;
            fresh = true;
        }
        self.next_safe = self.reserved;
        self.last = 0;
        None
    }

    /// The first free id not below `from` by the map, and with it the end of its interval.
    fn interval(&mut self, from: u32) -> Option<u32> {
        let mut i = (from >> 5) as usize;
        let below = match self.mask {
            Mask::Meant => (1u32 << (from & 31)) - 1,
            Mask::Posted => ((from & 31) << 1).wrapping_sub(1),
        };
        // 0 is never handed out.
        let mut word = self.map.word(i) | below | u32::from(i == 0);
        while word == u32::MAX {
            i += 1;
            if i >= WORDS {
                return None;
            }
            word = self.map.word(i);
        }
        let bit = word.trailing_ones();
        let found = (i as u32) * 32 + bit;
        let mut used = word & !((1u32 << bit) - 1);
        let end = match self.bound {
            Bound::Posted => WORDS.min(found as usize + 8),
            Bound::None | Bound::Ids(_) => WORDS,
        };
        while used == 0 {
            i += 1;
            if i >= end {
                break;
            }
            used = self.map.word(i);
        }
        let at = (i as u32) * 32;
        self.next_safe = match self.bound {
            _ if i >= WORDS => PID_MAX,
            // `ffs` of an empty word is 0, less 1.
            Bound::Posted if used == 0 => at - 1,
            Bound::Ids(most) => (at + used.trailing_zeros()).min(found + most),
            _ => at + used.trailing_zeros(),
        };
        if let (Bound::Ids(most), true) = (self.bound, i >= WORDS) {
            self.next_safe = PID_MAX.min(found + most);
        }
        self.last = found;
        Some(found)
    }
}

impl<B: Bits> GetPid for Sweep<B> {
    fn get<L: Layout>(&mut self, tasks: &Tasks<L>) -> Option<u32> {
        self.get_marked(tasks.len() as u64, |map| mark_pass(tasks, map))
    }

    fn after(mut self, last: u32, next_safe: u32) -> Self {
        self.set_cursor((last, next_safe));
        self
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}

/// algo-1 as the post describes it (Franke 2002): clear the map, mark all ids in one walk, find the next free interval
/// "starting from last_pid".
#[must_use]
pub fn algo_1<B: Bits>() -> Sweep<B> {
    Sweep::new(Start::Last, false, Mask::Meant, Bound::None)
}

/// algo-1 as it was measured. In the harness of March 2002 the lines of algo-1, switched off but still there, begin
/// every search at the first id of the space; the post of August says so in passing ("rather than always start from
/// the beginning again"). Short intervals then come first, and that is why its S is fifty times that of algo-0 at
/// 2000 tasks. Its 256-id bound was on too, which shows in one row of the table.
#[must_use]
pub fn algo_1_post<B: Bits>() -> Sweep<B> {
    Sweep::new(Start::Beginning, false, Mask::Posted, Bound::Posted)
}

/// algo-2 as the post describes it (Franke 2002): the map is kept and marked on top of; only when no free interval is
/// found is it cleared and marked once more.
#[must_use]
pub fn algo_2<B: Bits>() -> Sweep<B> {
    Sweep::new(Start::Last, true, Mask::Meant, Bound::None)
}

/// algo-2 as it was measured: with the mask of the posted code, which leaves out the wrong ids of the first word. It
/// costs or saves about one search in a hundred.
#[must_use]
pub fn algo_2_post<B: Bits>() -> Sweep<B> {
    Sweep::new(Start::Last, true, Mask::Posted, Bound::None)
}

/// One marking pass over all tasks.
#[inline(never)]
pub fn mark_pass<L: Layout, B: Bits>(tasks: &Tasks<L>, map: &mut B) {
    tasks.walk(|task| {
        for id in task.ids() {
            map.mark(id);
        }
        true
    });
}

/// One whole comparing pass over all tasks, as the last pass of algo-0's search is: the next id in use after `last`,
/// which no task may hold.
#[inline(never)]
pub fn compare_pass<L: Layout>(tasks: &Tasks<L>, last: u32) -> Option<u32> {
    let mut next = PID_MAX;
    tasks
        .walk(|task| task.passes(last, &mut next))
        .then_some(next)
}
