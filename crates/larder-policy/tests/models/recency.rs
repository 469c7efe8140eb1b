//! Models of LIRS, with its stack, and of CLOCK-Pro, with a vector for its clock.

use super::drive::{Arrival, Naive, Victim};
use super::ghosts::Names;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Status {
    Lir,
    Hir,
    Gone,
}

/// An entry of the stack S: a frame, or the name of a ghost.
#[derive(Clone, Copy)]
struct Entry {
    name: u64,
    status: Status,
}

/// LIRS as published: a stack with ghosts in it, pruned at the bottom, and the queue Q. Frames have even names, ghosts odd ones.
pub(crate) struct Lirs {
    /// Bottom first.
    stack: Vec<Entry>,
    /// Oldest first.
    queue: Vec<u32>,
    /// Frames read ahead and not used, with the ghost that they had.
    unused: Vec<(u32, Option<u64>)>,
    names: Names,
    capacity: usize,
}

fn of_frame(frame: u32) -> u64 {
    u64::from(frame) * 2
}

impl Lirs {
    fn lir_most(&self) -> usize {
        self.capacity - (self.capacity / 100).max(1)
    }
    fn lirs(&self) -> usize {
        self.stack
            .iter()
            .filter(|entry| entry.status == Status::Lir)
            .count()
    }
    fn at(&self, name: u64) -> Option<usize> {
        self.stack.iter().position(|entry| entry.name == name)
    }
    fn prune(&mut self) {
        while self
            .stack
            .first()
            .is_some_and(|entry| entry.status != Status::Lir)
        {
            self.stack.remove(0);
        }
    }
    fn demote(&mut self) {
        while self.lirs() > self.lir_most() {
            let bottom = self.stack.remove(0);
            self.queue.push((bottom.name / 2) as u32);
            self.prune();
        }
    }
    /// A use of a block that is not LIR, and whose entry in the stack, if any, has this name.
    fn used(&mut self, frame: u32, entry: Option<u64>) {
        let there = entry
            .and_then(|name| self.at(name))
            .map(|at| self.stack.remove(at));
        let near = there.is_some() || self.lirs() < self.lir_most();
        let status = if near { Status::Lir } else { Status::Hir };
        let name = of_frame(frame);
        self.stack.push(Entry { name, status });
        if !near {
            self.queue.push(frame);
        }
        self.prune();
        self.demote();
    }
}

impl Naive for Lirs {
    const RULE: &'static str = "lirs";
    fn new(capacity: usize) -> Self {
        Self {
            stack: Vec::new(),
            queue: Vec::new(),
            unused: Vec::new(),
            names: Names::default(),
            capacity,
        }
    }
    fn miss(&mut self, _: u64, ghost: Option<u64>, _: bool) -> u64 {
        ghost.unwrap_or(0)
    }
    fn insert(&mut self, frame: u32, arrival: Arrival) {
        let ghost = Some(arrival.decision).filter(|&name| name > 0);
        if arrival.ahead {
            self.queue.push(frame);
            self.unused.push((frame, ghost));
        } else {
            self.used(frame, ghost);
        }
    }
    fn touch(&mut self, frame: u32, _: u32) {
        let at = self.at(of_frame(frame));
        if let Some(at) = at.filter(|&at| self.stack[at].status == Status::Lir) {
            let entry = self.stack.remove(at);
            self.stack.push(entry);
            self.prune();
            return;
        }
        self.queue.retain(|&other| other != frame);
        let mut entry = Some(of_frame(frame));
        if let Some(at) = self.unused.iter().position(|at| at.0 == frame) {
            entry = self.unused.remove(at).1;
        }
        self.used(frame, entry);
    }
    fn evict(&mut self, unpinned: &dyn Fn(u32) -> bool) -> Option<Victim> {
        if let Some(at) = self.queue.iter().position(|&frame| unpinned(frame)) {
            let frame = self.queue.remove(at);
            if let Some(at) = self.unused.iter().position(|at| at.0 == frame) {
                let ghost = self.unused.remove(at).1;
                return Some((frame, ghost.filter(|&name| self.at(name).is_some())));
            }
            let ghost = self.at(of_frame(frame)).map(|at| {
                let name = self.names.next() * 2 + 1;
                self.stack[at] = Entry {
                    name,
                    status: Status::Gone,
                };
                name
            });
            return Some((frame, ghost));
        }
        // All of the queue are pinned: the LIR block used longest ago.
        let lir = |entry: &Entry| entry.status == Status::Lir && unpinned((entry.name / 2) as u32);
        let at = self.stack.iter().position(lir)?;
        let frame = (self.stack[at].name / 2) as u32;
        let name = self.names.next() * 2 + 1;
        self.stack[at] = Entry {
            name,
            status: Status::Gone,
        };
        self.prune();
        Some((frame, self.at(name).map(|_| name)))
    }
    fn remove(&mut self, frame: u32) {
        self.queue.retain(|&other| other != frame);
        self.unused.retain(|at| at.0 != frame);
        self.stack.retain(|entry| entry.name != of_frame(frame));
        self.prune();
    }
    fn resize(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.demote();
    }
}

/// A page of the clock.
#[derive(Clone, Copy)]
struct Page {
    name: u64,
    /// None: a ghost.
    frame: Option<u32>,
    hot: bool,
    test: bool,
    used: bool,
    /// Read ahead; it was in its test period, or not.
    unused: Option<bool>,
}

/// CLOCK-Pro; the hot hand is at the first page, the head at the last.
pub(crate) struct ClockPro {
    pages: Vec<Page>,
    /// Names of the pages that the hands are at.
    cold_hand: Option<u64>,
    test_hand: Option<u64>,
    m_c: usize,
    m: usize,
    names: Names,
}

impl ClockPro {
    fn least(&self) -> usize {
        (self.m / 100).max(1)
    }
    fn at(&self, name: u64) -> usize {
        self.pages
            .iter()
            .position(|page| page.name == name)
            .unwrap()
    }
    fn at_frame(&self, frame: u32) -> usize {
        self.pages
            .iter()
            .position(|page| page.frame == Some(frame))
            .unwrap()
    }
    fn hot(&self) -> usize {
        self.pages.iter().filter(|page| page.hot).count()
    }
    fn ghosts(&self) -> usize {
        self.pages
            .iter()
            .filter(|page| page.frame.is_none())
            .count()
    }
    fn after(&self, at: usize) -> u64 {
        self.pages[(at + 1) % self.pages.len()].name
    }
    fn take(&mut self, at: usize) -> Page {
        let name = self.pages[at].name;
        let next = Some(self.after(at)).filter(|_| self.pages.len() > 1);
        if self.cold_hand == Some(name) {
            self.cold_hand = next;
        }
        if self.test_hand == Some(name) {
            self.test_hand = next;
        }
        self.pages.remove(at)
    }
    fn renew(&mut self, at: usize) {
        let page = self.pages.remove(at);
        self.pages.push(page);
    }
    fn more_cold(&mut self) {
        self.m_c = (self.m_c + 1).min(self.m);
    }
    fn end_test(&mut self, at: usize) {
        if self.pages[at].test && !self.pages[at].used {
            self.m_c = (self.m_c - 1).max(self.least());
        }
        self.pages[at].test = false;
    }
    fn cool(&mut self) {
        while self.hot() > self.m - self.m_c {
            if !self.pages[0].hot {
                self.end_test(0);
                if self.pages[0].frame.is_none() {
                    self.take(0);
                    continue;
                }
            } else if self.pages[0].used {
                self.pages[0].used = false;
            } else {
                self.pages[0].hot = false;
            }
            self.renew(0);
        }
    }
    fn forget(&mut self) {
        while self.ghosts() > self.m {
            loop {
                let at = self.test_hand.map_or(0, |name| self.at(name));
                self.test_hand = Some(self.after(at));
                if self.pages[at].hot {
                    continue;
                }
                self.end_test(at);
                if self.pages[at].frame.is_none() {
                    self.take(at);
                    break;
                }
            }
        }
    }
    fn heat(&mut self, at: usize) {
        let page = &mut self.pages[at];
        (page.hot, page.test, page.used, page.unused) = (true, false, false, None);
        self.renew(at);
        self.cool();
    }
}

impl Naive for ClockPro {
    const RULE: &'static str = "clock-pro";
    fn new(capacity: usize) -> Self {
        let mut model = Self {
            pages: Vec::new(),
            cold_hand: None,
            test_hand: None,
            m_c: 0,
            m: capacity,
            names: Names::default(),
        };
        model.m_c = model.least();
        model
    }
    fn miss(&mut self, _: u64, ghost: Option<u64>, ahead: bool) -> u64 {
        let ghost = |page: &Page| page.frame.is_none() && Some(page.name) == ghost;
        let Some(at) = self.pages.iter().position(ghost) else {
            return 0;
        };
        self.take(at);
        if !ahead {
            self.more_cold();
        }
        1
    }
    fn insert(&mut self, frame: u32, arrival: Arrival) {
        let room = self.hot() < self.m - self.m_c;
        let hot = !arrival.ahead && (arrival.decision == 1 || room);
        self.pages.push(Page {
            name: self.names.next(),
            frame: Some(frame),
            hot,
            test: !arrival.ahead && !hot,
            used: false,
            unused: arrival.ahead.then_some(arrival.decision == 1),
        });
        self.cool();
    }
    fn touch(&mut self, frame: u32, _: u32) {
        let at = self.at_frame(frame);
        match self.pages[at].unused {
            None => self.pages[at].used = true,
            Some(true) => {
                self.more_cold();
                self.heat(at);
            }
            Some(false) => {
                self.pages[at].unused = None;
                self.pages[at].test = true;
                self.renew(at);
            }
        }
    }
    fn evict(&mut self, unpinned: &dyn Fn(u32) -> bool) -> Option<Victim> {
        loop {
            let may = |page: &Page| page.frame.is_some_and(unpinned);
            if !self.pages.iter().any(|page| !page.hot && may(page)) {
                let at = self.pages.iter().position(|page| page.hot && may(page))?;
                self.pages[at].hot = false;
                self.pages[at].used = false;
                self.cold_hand = Some(self.pages[at].name);
            }
            let at = self.cold_hand.map_or(0, |name| self.at(name));
            self.cold_hand = Some(self.after(at));
            let page = self.pages[at];
            let Some(frame) = page.frame.filter(|&frame| !page.hot && unpinned(frame)) else {
                continue;
            };
            match (page.used, page.test) {
                (false, false) => {
                    self.take(at);
                    return Some((frame, None));
                }
                (false, true) => {
                    self.pages[at].frame = None;
                    self.forget();
                    return Some((frame, Some(page.name)));
                }
                (true, true) => {
                    self.more_cold();
                    self.heat(at);
                }
                (true, false) => {
                    self.pages[at].used = false;
                    self.pages[at].test = true;
                    self.renew(at);
                }
            }
        }
    }
    fn remove(&mut self, frame: u32) {
        let at = self.at_frame(frame);
        self.take(at);
    }
    fn resize(&mut self, capacity: usize) {
        self.m = capacity;
        self.m_c = self.m_c.clamp(self.least(), capacity);
        self.cool();
        self.forget();
    }
}
