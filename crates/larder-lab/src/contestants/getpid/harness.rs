//! Franke's harness of 2002, played again with its own random numbers: it counts, and it makes the state that is timed.

use super::{Bits, Bound, GetPid, Mask, PID_MAX, Plain, Random31, Start, Sweep, algo_2_post};
use crate::published;

/// Which algorithm counts its searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Series {
    /// algo-0. The walk's decisions depend only on which ids live, so they are made from a set of them; a test plays
    /// the walk itself against it.
    List,
    /// A sweep with these rules: where it starts, whether it keeps its marks, mask and bound.
    Sweep(Start, bool, Mask, Bound),
}

use self::Series::Sweep as By;
use super::Start::{Beginning, Last};
use super::{Bound as B, Mask as M};

/// The four series of the tables of 2002 as they were measured.
pub const POSTED: [(&str, Series); 4] = [
    ("algo-0", Series::List),
    ("algo-1", By(Beginning, false, M::Posted, B::Posted)),
    ("algo-2", By(Last, true, M::Posted, B::None)),
    ("algo-2-256", By(Last, true, M::Posted, B::Posted)),
];

/// What could be behind the S1 column, and the other series as the post's text describes them.
#[rustfmt::skip]
pub const VARIANTS: [(&str, Series); 8] = [
    ("forward from last_pid, as the text says", By(Last, false, M::Meant, B::None)),
    ("forward, with the posted mask", By(Last, false, M::Posted, B::None)),
    ("forward, intervals of 256 at most", By(Last, false, M::Meant, B::Ids(256))),
    ("forward, intervals of 8 at most", By(Last, false, M::Meant, B::Ids(8))),
    ("from the beginning, stale map kept", By(Beginning, true, M::Posted, B::None)),
    ("from the beginning, intervals of 256 at most", By(Beginning, false, M::Posted, B::Ids(256))),
    ("from the beginning", By(Beginning, false, M::Posted, B::None)),
    ("from the beginning, with the bound of the posted code", By(Beginning, false, M::Posted, B::Posted)),
];

/// One of Franke's runs: rows of one process, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Franke's A.
    pub tasks: Vec<u32>,
    /// Franke's D.
    pub deletes: u32,
}

/// Franke's runs, from the table: rows with one D and one step of A.
#[must_use]
pub fn batches() -> Vec<Batch> {
    let mut all: Vec<Batch> = Vec::new();
    for row in published::franke_getpid() {
        let goes_on = all.last().is_some_and(|batch| {
            batch.deletes == row.deletes
                && batch.tasks.last().is_some_and(|a| {
                    let step = match row.deletes {
                        50 => 50..=100,
                        1000 => 1000..=1000,
                        _ => 1..=10,
                    };
                    step.contains(&row.tasks.saturating_sub(*a))
                })
        });
        match all.last_mut() {
            Some(batch) if goes_on => batch.tasks.push(row.tasks),
            _ => all.push(Batch {
                tasks: vec![row.tasks],
                deletes: row.deletes,
            }),
        }
    }
    all
}

/// What one row counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Franke's A.
    pub tasks: u32,
    /// Franke's T.
    pub allocations: u64,
    /// Franke's S.
    pub searches: u64,
}

/// The harness: a set of live ids and one algorithm.
#[derive(Debug)]
pub struct Harness {
    live: Plain,
    born: Vec<u64>,
    births: u64,
    count: u32,
    series: Series,
    sweep: Sweep<Plain>,
    list_searches: u64,
    random: Random31,
}

impl Harness {
    /// Fills the space; then twice a quarter dies at random and all but 1000 of them are born again. `shaken` is
    /// `false` for the version of the harness that did not yet do the latter.
    #[must_use]
    pub fn new(series: Series, seed: u32, shaken: bool) -> Self {
        let sweep = match series {
            Series::List => algo_2_post(),
            Series::Sweep(start, keep, mask, bound) => Sweep::new(start, keep, mask, bound),
        };
        let mut harness = Self {
            live: Plain::new(),
            born: vec![0; PID_MAX as usize],
            births: 0,
            count: 0,
            series,
            sweep: sweep.after(0, PID_MAX),
            list_searches: 0,
            random: Random31::new(seed),
        };
        harness.fill(PID_MAX);
        if shaken {
            for _ in 0..2 {
                let died = harness.kill(PID_MAX / 4);
                harness.fill(died.saturating_sub(1000));
            }
        }
        harness
    }

    /// Plays one row: fills the space, deletes all but A - 1, and then ten rounds of D deletions and D allocations.
    /// The deletions stop at the last task, which is where a T of 80 and of 9980 comes from.
    pub fn row(&mut self, tasks: u32, deletes: u32) -> Row {
        self.thin_to(tasks);
        let (mut allocations, before) = (0, self.searches());
        for _ in 0..10 {
            for _ in 0..self.kill(deletes) {
                if let Some(id) = self.get() {
                    self.add(id);
                    allocations += 1;
                }
            }
        }
        Row {
            tasks,
            allocations,
            searches: self.searches() - before,
        }
    }

    /// Fills the space and deletes at random until `tasks - 1` live; the next allocation searches.
    pub fn thin_to(&mut self, tasks: u32) {
        self.fill(PID_MAX);
        self.kill(PID_MAX.saturating_sub(tasks));
    }

    /// The live ids in the order of the task list.
    #[must_use]
    pub fn in_list_order(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = (1..PID_MAX).filter(|id| self.lives(*id)).collect();
        ids.sort_by_key(|id| self.born[*id as usize]);
        ids
    }

    /// Searches so far.
    #[must_use]
    pub fn searches(&self) -> u64 {
        match self.series {
            Series::List => self.list_searches,
            Series::Sweep(..) => self.sweep.counts().searches,
        }
    }

    /// Whether an id lives.
    #[must_use]
    pub fn lives(&self, id: u32) -> bool {
        self.live.word((id >> 5) as usize) & (1 << (id & 31)) != 0
    }

    /// Makes an id live, at the end of the list.
    pub fn add(&mut self, id: u32) {
        self.live.mark(id);
        self.births += 1;
        self.born[id as usize] = self.births;
        self.count += 1;
    }

    /// Deletes at random; returns how many. The last task is spared.
    pub fn kill(&mut self, most: u32) -> u32 {
        let mut died = 0;
        while died < most && self.count > 1 {
            let id = self.random.draw() & (PID_MAX - 1);
            if id > 0 && self.live.unmark(id) {
                self.count -= 1;
                died += 1;
            }
        }
        died
    }

    /// Allocates up to `most` by the sweep, whatever is measured: Franke's `populate_all` in its fast form.
    fn fill(&mut self, most: u32) {
        for _ in 0..most {
            match self.sweep_get() {
                Some(id) => self.add(id),
                None => break,
            }
        }
    }

    fn sweep_get(&mut self) -> Option<u32> {
        let live = &self.live;
        self.sweep
            .get_marked(u64::from(self.count), |map| map.mark_all(live))
    }

    /// The next id by the series; the caller adds it. `None` when all live.
    pub fn get(&mut self) -> Option<u32> {
        match self.series {
            Series::Sweep(..) => self.sweep_get(),
            Series::List => {
                let (mut last, next_safe) = self.sweep.cursor();
                let begin = if last + 1 >= PID_MAX { 1 } else { last };
                last += 1;
                if last < next_safe && last < PID_MAX {
                    self.sweep.set_cursor((last, next_safe));
                    return Some(last);
                }
                self.list_searches += 1;
                let first = if last >= PID_MAX { 1 } else { last };
                let free = |from, end| self.live.find(from, false).filter(|id| *id < end);
                let id = free(first, PID_MAX).or_else(|| free(1, begin))?;
                let end = self.live.find(id + 1, true).unwrap_or(PID_MAX);
                self.sweep.set_cursor((id, end));
                Some(id)
            }
        }
    }
}

/// Whether a row of the tables came from the harness that shook the ids first. For algo-0 with D = 50 it did not: the first
/// version was run there, and the other columns came later ("mangled together from the outputs").
#[must_use]
pub fn shaken(series: Series, deletes: u32) -> bool {
    !(series == Series::List && deletes == 50)
}

/// All rows of a batch.
#[must_use]
pub fn play(series: Series, batch: &Batch, seed: u32) -> Vec<Row> {
    let mut harness = Harness::new(series, seed, shaken(series, batch.deletes));
    batch
        .tasks
        .iter()
        .map(|tasks| harness.row(*tasks, batch.deletes))
        .collect()
}
