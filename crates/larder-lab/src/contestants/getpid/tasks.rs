//! The list of tasks: doubly linked, with the four ids of a task where 2.4 had them.

use std::marker::PhantomData;

use super::PID_MAX;

/// No task.
const NONE: u32 = u32::MAX;

/// How a task structure is laid out, in words of 4 bytes.
pub trait Layout {
    /// Words of one task.
    const WORDS: usize;
    /// Where the word with the index of the next task is.
    const NEXT: usize;
    /// Where the index of the task before is.
    const PREV: usize;
    /// Where the pid is.
    const PID: usize;
    /// Where the process group is.
    const PGRP: usize;
    /// Where the session is.
    const SESSION: usize;
    /// Where the thread group is.
    const TGID: usize;
    /// Cache lines of 64 bytes that a walk touches per task.
    const LINES: usize;
}

/// A task structure of Linux 2.4 on i386: 1.7 KB, links 72 bytes from its start, ids about 50 bytes after them.
#[derive(Debug, Clone, Copy)]
pub struct Near;

impl Layout for Near {
    const WORDS: usize = 424;
    const NEXT: usize = 18;
    const PREV: usize = 19;
    const PID: usize = 31;
    const PGRP: usize = 32;
    const SESSION: usize = 34;
    const TGID: usize = 35;
    const LINES: usize = 2;
}

/// The task structure of Franke's harness: 28 bytes, links and ids and little else.
#[derive(Debug, Clone, Copy)]
pub struct Packed;

impl Layout for Packed {
    const WORDS: usize = 7;
    const NEXT: usize = 0;
    const PREV: usize = 1;
    const PID: usize = 2;
    const PGRP: usize = 3;
    const SESSION: usize = 4;
    const TGID: usize = 5;
    // 28 bytes: two tasks and a bit share a line.
    const LINES: usize = 1;
}

/// The ids of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// Its own.
    pub pid: u32,
    /// Its process group's.
    pub pgrp: u32,
    /// Its session's.
    pub session: u32,
    /// Its thread group's.
    pub tgid: u32,
}

impl Task {
    /// All four.
    #[inline(always)]
    #[must_use]
    pub fn ids(self) -> [u32; 4] {
        [self.pid, self.pgrp, self.tgid, self.session]
    }

    /// Narrows the interval after `last`, which ends at `next`, to what this task leaves free.
    #[inline(always)]
    pub fn narrow(self, last: u32, next: &mut u32) {
        for id in self.ids() {
            if id > last && *next > id {
                *next = id;
            }
        }
    }

    /// The same, and whether no id of this task is `last`: algo-0's step.
    #[inline(always)]
    pub fn passes(self, last: u32, next: &mut u32) -> bool {
        if self.pid == last || self.pgrp == last || self.tgid == last || self.session == last {
            return false;
        }
        self.narrow(last, next);
        true
    }
}

/// All tasks, in a list in the order in which they were added; memory is taken at once and reused, last freed first.
#[derive(Debug)]
pub struct Tasks<L> {
    words: Vec<u32>,
    free: Vec<u32>,
    by_pid: Vec<u32>,
    first: u32,
    last: u32,
    len: usize,
    layout: PhantomData<L>,
}

impl<L: Layout> Tasks<L> {
    /// Room for `most` tasks that are near each other: neighbours in the list are neighbours in memory at first.
    #[must_use]
    pub fn new(most: usize) -> Self {
        let most = most.min(PID_MAX as usize);
        Self::with_places((0..most as u32).rev().collect())
    }

    /// Room for `most` tasks that are scattered over memory, by `draw`, a source of random numbers.
    #[must_use]
    pub fn scattered(most: usize, mut draw: impl FnMut() -> u32) -> Self {
        let mut places: Vec<u32> = (0..most.min(PID_MAX as usize) as u32).collect();
        for i in (1..places.len()).rev() {
            places.swap(i, draw() as usize % (i + 1));
        }
        Self::with_places(places)
    }

    fn with_places(free: Vec<u32>) -> Self {
        Self {
            words: vec![0; free.len() * L::WORDS],
            free,
            by_pid: vec![NONE; PID_MAX as usize],
            first: NONE,
            last: NONE,
            len: 0,
            layout: PhantomData,
        }
    }

    /// How many tasks live.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none lives.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether a task has this pid.
    #[must_use]
    pub fn has(&self, pid: u32) -> bool {
        self.by_pid.get(pid as usize).is_some_and(|t| *t != NONE)
    }

    /// Adds a task that leads its own group and session, at the end of the list. `false` when the pid is taken or out
    /// of range, or when there is no room.
    pub fn add(&mut self, pid: u32) -> bool {
        if pid >= PID_MAX || self.has(pid) {
            return false;
        }
        let Some(place) = self.free.pop() else {
            return false;
        };
        let last = self.last;
        let task = self.at_mut(place);
        task[L::NEXT] = NONE;
        task[L::PREV] = last;
        for id in [L::PID, L::PGRP, L::SESSION, L::TGID] {
            task[id] = pid;
        }
        match last {
            NONE => self.first = place,
            last => self.at_mut(last)[L::NEXT] = place,
        }
        self.last = place;
        self.by_pid[pid as usize] = place;
        self.len += 1;
        true
    }

    /// Removes the task of a pid; `false` when there is none.
    pub fn remove(&mut self, pid: u32) -> bool {
        let Some(place) = self
            .by_pid
            .get(pid as usize)
            .copied()
            .filter(|t| *t != NONE)
        else {
            return false;
        };
        let (next, prev) = {
            let task = self.at_mut(place);
            (task[L::NEXT], task[L::PREV])
        };
        match prev {
            NONE => self.first = next,
            prev => self.at_mut(prev)[L::NEXT] = next,
        }
        match next {
            NONE => self.last = prev,
            next => self.at_mut(next)[L::PREV] = prev,
        }
        self.by_pid[pid as usize] = NONE;
        self.free.push(place);
        self.len -= 1;
        true
    }

    fn at_mut(&mut self, place: u32) -> &mut [u32] {
        let from = place as usize * L::WORDS;
        &mut self.words[from..from + L::WORDS]
    }

    /// Walks the list in its order until `visit` says `false`; returns whether it came to the end.
    ///
    /// One bounds check a task; the ids are read from its two lines as the kernel read them.
    #[inline(always)]
    pub fn walk(&self, mut visit: impl FnMut(Task) -> bool) -> bool {
        let mut at = self.first;
        while at != NONE {
            let from = at as usize * L::WORDS;
            let task = &self.words[from..from + L::WORDS];
            let ids = Task {
                pid: task[L::PID],
                pgrp: task[L::PGRP],
                session: task[L::SESSION],
                tgid: task[L::TGID],
            };
            if !visit(ids) {
                return false;
            }
            at = task[L::NEXT];
        }
        true
    }
}
