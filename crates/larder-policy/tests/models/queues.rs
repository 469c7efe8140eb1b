//! Models of the rules without memory of what left.

use super::drive::{Arrival, Naive, Victim};

/// Takes the first that `unpinned` says may leave.
pub(crate) fn first_unpinned(list: &[u32], unpinned: &dyn Fn(u32) -> bool) -> Option<usize> {
    list.iter().position(|&frame| unpinned(frame))
}

/// Oldest first.
pub(crate) struct Fifo(Vec<u32>);

impl Naive for Fifo {
    const RULE: &'static str = "fifo";
    fn new(_: usize) -> Self {
        Self(Vec::new())
    }
    fn insert(&mut self, frame: u32, _: Arrival) {
        self.0.push(frame);
    }
    fn touch(&mut self, _: u32, _: u32) {}
    fn evict(&mut self, unpinned: &dyn Fn(u32) -> bool) -> Option<Victim> {
        first_unpinned(&self.0, unpinned).map(|at| (self.0.remove(at), None))
    }
    fn remove(&mut self, frame: u32) {
        self.0.retain(|&other| other != frame);
    }
    fn resize(&mut self, _: usize) {}
}

/// A FIFO in which a use makes new.
pub(crate) struct Lru(Fifo);

impl Naive for Lru {
    const RULE: &'static str = "lru";
    fn new(capacity: usize) -> Self {
        Self(Fifo::new(capacity))
    }
    fn insert(&mut self, frame: u32, arrival: Arrival) {
        self.0.insert(frame, arrival);
    }
    fn touch(&mut self, frame: u32, _: u32) {
        self.0.remove(frame);
        self.0.0.push(frame);
    }
    fn evict(&mut self, unpinned: &dyn Fn(u32) -> bool) -> Option<Victim> {
        self.0.evict(unpinned)
    }
    fn remove(&mut self, frame: u32) {
        self.0.remove(frame);
    }
    fn resize(&mut self, _: usize) {}
}

/// A page in the ring: it was read ahead and never used, or has a count.
#[derive(Clone, Copy)]
enum Page {
    Unused,
    Count(u32),
}

/// Frames in a ring, in the order of their numbers.
pub(crate) struct Sweep<const FIRST: u8, const MOST: u8> {
    ring: Vec<Option<Page>>,
    hand: usize,
}

pub(crate) type Clock = Sweep<0, 1>;
pub(crate) type Gclock = Sweep<1, 5>;

impl<const FIRST: u8, const MOST: u8> Naive for Sweep<FIRST, MOST> {
    const RULE: &'static str = if MOST == 1 { "clock" } else { "gclock" };
    fn new(capacity: usize) -> Self {
        Self {
            ring: vec![None; capacity],
            hand: 0,
        }
    }
    fn insert(&mut self, frame: u32, arrival: Arrival) {
        self.ring[frame as usize] = Some(if arrival.ahead {
            Page::Unused
        } else {
            Page::Count(FIRST.into())
        });
    }
    fn touch(&mut self, frame: u32, _: u32) {
        let page = self.ring[frame as usize].as_mut().unwrap();
        *page = match *page {
            Page::Unused => Page::Count(FIRST.into()),
            Page::Count(count) => Page::Count((count + 1).min(MOST.into())),
        };
    }
    fn evict(&mut self, unpinned: &dyn Fn(u32) -> bool) -> Option<Victim> {
        let any = |(frame, page): (usize, &Option<Page>)| page.is_some() && unpinned(frame as u32);
        if !self.ring.iter().enumerate().any(any) {
            // A hand that finds nothing has gone round once.
            return None;
        }
        loop {
            let at = self.hand;
            self.hand = (at + 1) % self.ring.len();
            match self.ring[at] {
                Some(_) if !unpinned(at as u32) => {}
                Some(Page::Count(count)) if count > 0 => {
                    self.ring[at] = Some(Page::Count(count - 1));
                }
                Some(_) => {
                    self.ring[at] = None;
                    return Some((at as u32, None));
                }
                None => {}
            }
        }
    }
    fn remove(&mut self, frame: u32) {
        self.ring[frame as usize] = None;
    }
    fn resize(&mut self, capacity: usize) {
        let len = self.ring.len().max(capacity);
        self.ring.resize(len, None);
    }
}

/// Oldest first, each with its uses after the first, capped at one; the hand is a frame.
pub(crate) struct Sieve {
    list: Vec<(u32, i32)>,
    hand: Option<u32>,
}

impl Sieve {
    fn at(&self, frame: u32) -> usize {
        self.list.iter().position(|at| at.0 == frame).unwrap()
    }
    fn after(&self, at: usize) -> Option<u32> {
        self.list.get(at + 1).map(|at| at.0)
    }
}

impl Naive for Sieve {
    const RULE: &'static str = "sieve";
    fn new(_: usize) -> Self {
        Self {
            list: Vec::new(),
            hand: None,
        }
    }
    fn insert(&mut self, frame: u32, arrival: Arrival) {
        self.list.push((frame, if arrival.ahead { -1 } else { 0 }));
    }
    fn touch(&mut self, frame: u32, _: u32) {
        let at = self.at(frame);
        self.list[at].1 = (self.list[at].1 + 1).min(1);
    }
    fn evict(&mut self, unpinned: &dyn Fn(u32) -> bool) -> Option<Victim> {
        if !self.list.iter().any(|at| unpinned(at.0)) {
            return None;
        }
        loop {
            let at = self.hand.map_or(0, |frame| self.at(frame));
            self.hand = self.after(at);
            let (frame, uses) = self.list[at];
            if !unpinned(frame) {
                continue;
            }
            if uses > 0 {
                self.list[at].1 = 0;
            } else {
                self.list.remove(at);
                return Some((frame, None));
            }
        }
    }
    fn remove(&mut self, frame: u32) {
        let at = self.at(frame);
        if self.hand == Some(frame) {
            self.hand = self.after(at);
        }
        self.list.remove(at);
    }
    fn resize(&mut self, _: usize) {}
}
