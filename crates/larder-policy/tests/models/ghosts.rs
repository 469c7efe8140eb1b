//! Models of the rules with lists of ghosts.

use super::drive::{Arrival, Naive, Victim};
use super::queues::first_unpinned;

/// How often a block that was read ahead may be asked: nothing of it counts before the first use.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Ahead {
    /// Used.
    No,
    /// Not used, and it had this decision.
    Decided(u64),
}

/// The ghosts of a list, oldest first.
#[derive(Default)]
pub(crate) struct GhostList {
    pub(crate) names: Vec<u64>,
}

/// Names for ghosts.
#[derive(Default)]
pub(crate) struct Names(u64);

impl Names {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

impl GhostList {
    pub(crate) fn take(&mut self, ghost: Option<u64>) -> bool {
        let at = self.names.iter().position(|&name| Some(name) == ghost);
        at.map(|at| self.names.remove(at)).is_some()
    }
    pub(crate) fn keep(&mut self, most: usize) {
        while self.names.len() > most {
            self.names.remove(0);
        }
    }
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }
}

pub(crate) struct TwoQ {
    /// Oldest first.
    a1in: Vec<(u32, Ahead)>,
    am: Vec<u32>,
    a1out: GhostList,
    names: Names,
    capacity: usize,
}

impl TwoQ {
    fn kout(&self) -> usize {
        (self.capacity / 2).max(1)
    }
}

impl Naive for TwoQ {
    const RULE: &'static str = "2q";
    fn new(capacity: usize) -> Self {
        Self {
            a1in: Vec::new(),
            am: Vec::new(),
            a1out: GhostList::default(),
            names: Names::default(),
            capacity,
        }
    }
    fn miss(&mut self, _: u64, ghost: Option<u64>, _: bool) -> u64 {
        self.a1out.take(ghost).into()
    }
    fn insert(&mut self, frame: u32, arrival: Arrival) {
        if arrival.ahead {
            self.a1in.push((frame, Ahead::Decided(arrival.decision)));
        } else if arrival.decision == 1 {
            self.am.push(frame);
        } else {
            self.a1in.push((frame, Ahead::No));
        }
    }
    fn touch(&mut self, frame: u32, _: u32) {
        if let Some(at) = self.am.iter().position(|&other| other == frame) {
            self.am.remove(at);
            self.am.push(frame);
            return;
        }
        let at = self.a1in.iter().position(|at| at.0 == frame).unwrap();
        if self.a1in[at].1 == Ahead::Decided(1) {
            self.a1in.remove(at);
            self.am.push(frame);
        } else {
            self.a1in[at].1 = Ahead::No;
        }
    }
    fn evict(&mut self, unpinned: &dyn Fn(u32) -> bool) -> Option<Victim> {
        let inside: Vec<u32> = self.a1in.iter().map(|at| at.0).collect();
        let from_in = first_unpinned(&inside, unpinned);
        let from_main = first_unpinned(&self.am, unpinned);
        let prefer_in = self.a1in.len() > self.capacity / 4;
        if let (true, Some(at)) = (prefer_in || from_main.is_none(), from_in) {
            let frame = self.a1in.remove(at).0;
            let name = self.names.next();
            self.a1out.keep(self.kout() - 1);
            self.a1out.names.push(name);
            return Some((frame, Some(name)));
        }
        from_main.map(|at| (self.am.remove(at), None))
    }
    fn remove(&mut self, frame: u32) {
        self.a1in.retain(|at| at.0 != frame);
        self.am.retain(|&other| other != frame);
    }
    fn resize(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.a1out.keep(self.kout());
    }
}

pub(crate) struct Arc {
    t1: Vec<(u32, Ahead)>,
    t2: Vec<u32>,
    b1: GhostList,
    b2: GhostList,
    p: f64,
    last_from_b2: bool,
    names: Names,
    c: usize,
}

impl Arc {
    fn learn_b1(&mut self, b1: usize, b2: usize) {
        let step = if b1 >= b2 { 1.0 } else { b2 as f64 / b1 as f64 };
        self.p = (self.p + step).min(self.c as f64);
    }
    fn learn_b2(&mut self, b1: usize, b2: usize) {
        let step = if b2 >= b1 { 1.0 } else { b1 as f64 / b2 as f64 };
        self.p = (self.p - step).max(0.0);
    }
}

impl Naive for Arc {
    const RULE: &'static str = "arc";
    fn new(capacity: usize) -> Self {
        Self {
            t1: Vec::new(),
            t2: Vec::new(),
            b1: GhostList::default(),
            b2: GhostList::default(),
            p: 0.0,
            last_from_b2: false,
            names: Names::default(),
            c: capacity,
        }
    }
    fn miss(&mut self, _: u64, ghost: Option<u64>, ahead: bool) -> u64 {
        let (b1, b2) = (self.b1.len(), self.b2.len());
        self.last_from_b2 = false;
        if self.b1.take(ghost) {
            if !ahead {
                self.learn_b1(b1, b2);
            }
            1
        } else if self.b2.take(ghost) {
            if !ahead {
                self.learn_b2(b1, b2);
                self.last_from_b2 = true;
            }
            2
        } else {
            0
        }
    }
    fn insert(&mut self, frame: u32, arrival: Arrival) {
        self.last_from_b2 = false;
        if arrival.ahead {
            self.t1.push((frame, Ahead::Decided(arrival.decision)));
        } else if arrival.decision == 0 {
            self.t1.push((frame, Ahead::No));
        } else {
            self.t2.push(frame);
        }
        // Case IV A: no more than c blocks and ghosts that were seen once.
        self.b1.keep(self.c.saturating_sub(self.t1.len()));
    }
    fn touch(&mut self, frame: u32, _: u32) {
        if let Some(at) = self.t1.iter().position(|at| at.0 == frame) {
            let (b1, b2) = (self.b1.len(), self.b2.len());
            match self.t1.remove(at).1 {
                Ahead::Decided(0) => return self.t1.push((frame, Ahead::No)),
                Ahead::Decided(1) => self.learn_b1(b1 + 1, b2),
                Ahead::Decided(_) => self.learn_b2(b1, b2 + 1),
                Ahead::No => {}
            }
        }
        self.t2.retain(|&other| other != frame);
        self.t2.push(frame);
    }
    fn evict(&mut self, unpinned: &dyn Fn(u32) -> bool) -> Option<Victim> {
        let t1 = self.t1.len() as f64;
        let once = !self.t1.is_empty() && (t1 > self.p || (self.last_from_b2 && t1 == self.p));
        let list: Vec<u32> = self.t1.iter().map(|at| at.0).collect();
        let from_t1 = first_unpinned(&list, unpinned);
        let from_t2 = first_unpinned(&self.t2, unpinned);
        let (at, from_t1) = match (from_t1, from_t2) {
            (Some(at), None) => (at, true),
            (None, Some(at)) => (at, false),
            (Some(at), Some(_)) if once => (at, true),
            (Some(_), Some(at)) => (at, false),
            (None, None) => return None,
        };
        // Room in the directory: at most c ghosts, those seen once going first where L1 is full.
        while self.b1.len() + self.b2.len() >= self.c {
            let full = self.t1.len() + self.b1.len() >= self.c;
            if self.b2.len() == 0 || (full && self.b1.len() > 0) {
                self.b1.names.remove(0);
            } else {
                self.b2.names.remove(0);
            }
        }
        let name = self.names.next();
        if from_t1 {
            self.b1.names.push(name);
            Some((self.t1.remove(at).0, Some(name)))
        } else {
            self.b2.names.push(name);
            Some((self.t2.remove(at), Some(name)))
        }
    }
    fn remove(&mut self, frame: u32) {
        self.t1.retain(|at| at.0 != frame);
        self.t2.retain(|&other| other != frame);
    }
    fn resize(&mut self, capacity: usize) {
        self.c = capacity;
        self.p = self.p.min(capacity as f64);
        self.b1.keep(capacity.saturating_sub(self.t1.len()));
        while self.b1.len() + self.b2.len() > capacity {
            if self.b2.len() > 0 && self.t1.len() + self.b1.len() < capacity {
                self.b2.names.remove(0);
            } else if self.b1.len() > 0 {
                self.b1.names.remove(0);
            } else {
                self.b2.names.remove(0);
            }
        }
    }
}

/// A block of the small FIFO or the main one.
#[derive(Clone, Copy)]
struct Entry {
    frame: u32,
    uses: u32,
    ahead: Ahead,
    /// How many had come into the small FIFO with it.
    came: u32,
}

pub(crate) struct ThreeQueues<const MOST: u8, const NEEDED: u8, const WINDOW: bool> {
    small: Vec<Entry>,
    main: Vec<Entry>,
    ghosts: GhostList,
    came: u32,
    names: Names,
    capacity: usize,
}

pub(crate) type S3Fifo = ThreeQueues<3, 2, false>;
pub(crate) type S3FifoOneBit = ThreeQueues<1, 1, false>;
pub(crate) type Clock2QPlus = ThreeQueues<1, 1, true>;

impl<const MOST: u8, const NEEDED: u8, const WINDOW: bool> ThreeQueues<MOST, NEEDED, WINDOW> {
    fn small_most(&self) -> usize {
        (self.capacity / 10).max(1)
    }
    fn ghosts_most(&self) -> usize {
        (self.capacity - self.small_most()).max(1)
    }
    fn arrive(&mut self, frame: u32, ahead: Ahead) {
        self.came += 1;
        self.small.push(Entry {
            frame,
            uses: 0,
            ahead,
            came: self.came,
        });
    }
    fn go_on(&mut self, frame: u32) {
        self.main.push(Entry {
            frame,
            uses: 0,
            ahead: Ahead::No,
            came: 0,
        });
    }
    fn evict_small(&mut self, unpinned: &dyn Fn(u32) -> bool) -> Option<Victim> {
        while let Some(at) = self.small.iter().position(|entry| unpinned(entry.frame)) {
            let entry = self.small.remove(at);
            if entry.uses < NEEDED.into() {
                let name = self.names.next();
                self.ghosts.keep(self.ghosts_most() - 1);
                self.ghosts.names.push(name);
                return Some((entry.frame, Some(name)));
            }
            self.go_on(entry.frame);
        }
        None
    }
    fn evict_main(&mut self, unpinned: &dyn Fn(u32) -> bool) -> Option<Victim> {
        loop {
            let at = self.main.iter().position(|entry| unpinned(entry.frame))?;
            let mut entry = self.main.remove(at);
            if entry.uses == 0 {
                return Some((entry.frame, None));
            }
            entry.uses -= 1;
            self.main.push(entry);
        }
    }
}

impl<const MOST: u8, const NEEDED: u8, const WINDOW: bool> Naive
    for ThreeQueues<MOST, NEEDED, WINDOW>
{
    const RULE: &'static str = match (WINDOW, MOST) {
        (true, _) => "clock2q+",
        (_, 1) => "s3-fifo-1bit",
        _ => "s3-fifo",
    };
    fn new(capacity: usize) -> Self {
        Self {
            small: Vec::new(),
            main: Vec::new(),
            ghosts: GhostList::default(),
            came: 0,
            names: Names::default(),
            capacity,
        }
    }
    fn miss(&mut self, _: u64, ghost: Option<u64>, _: bool) -> u64 {
        self.ghosts.take(ghost).into()
    }
    fn insert(&mut self, frame: u32, arrival: Arrival) {
        if arrival.ahead {
            self.arrive(frame, Ahead::Decided(arrival.decision));
        } else if arrival.decision == 1 {
            self.go_on(frame);
        } else {
            self.arrive(frame, Ahead::No);
        }
    }
    fn touch(&mut self, frame: u32, _: u32) {
        if let Some(entry) = self.main.iter_mut().find(|entry| entry.frame == frame) {
            entry.uses = (entry.uses + 1).min(MOST.into());
            return;
        }
        let window = (self.small_most() / 2) as u32;
        let at = self
            .small
            .iter()
            .position(|entry| entry.frame == frame)
            .unwrap();
        let entry = &mut self.small[at];
        match entry.ahead {
            Ahead::Decided(1) => {
                self.small.remove(at);
                self.go_on(frame);
            }
            Ahead::Decided(_) => entry.ahead = Ahead::No,
            // Those that came after it are fewer than half of the small FIFO.
            Ahead::No if WINDOW && self.came - entry.came < window => {}
            Ahead::No => entry.uses = (entry.uses + 1).min(MOST.into()),
        }
    }
    fn evict(&mut self, unpinned: &dyn Fn(u32) -> bool) -> Option<Victim> {
        if self.small.len() < self.small_most()
            && let Some(victim) = self.evict_main(unpinned)
        {
            return Some(victim);
        }
        let victim = self.evict_small(unpinned);
        victim.or_else(|| self.evict_main(unpinned))
    }
    fn remove(&mut self, frame: u32) {
        self.small.retain(|entry| entry.frame != frame);
        self.main.retain(|entry| entry.frame != frame);
    }
    fn resize(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.ghosts.keep(self.ghosts_most());
    }
}
