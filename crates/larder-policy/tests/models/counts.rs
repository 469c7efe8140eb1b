//! Models of the rules that count uses or time them.

use super::drive::{Arrival, Naive, Victim};
use std::collections::HashMap;

/// The first of those with the least key.
pub(crate) fn first_least<T: Copy>(all: &[T], key: impl Fn(&T) -> f64) -> Option<T> {
    let least = |a: T, b: T| if key(&b) < key(&a) { b } else { a };
    all.iter().copied().reduce(least)
}

/// What LRU-2 knows of a page.
#[derive(Clone, Copy)]
struct Times {
    frame: u32,
    /// HIST(1), HIST(2), LAST.
    hist: [Option<u64>; 2],
    last: u64,
    request: u32,
    unused: bool,
    /// Its correlated period was over when a victim was looked for; it stays so when the period changes.
    ripe: bool,
}

/// LRU-2 by its definition: the victim is searched among all pages.
pub(crate) struct Lru2 {
    pages: Vec<Times>,
    /// Uses. A ghost is named by its HIST(1).
    now: u64,
    capacity: u64,
}

impl Naive for Lru2 {
    const RULE: &'static str = "lru-2";
    fn new(capacity: usize) -> Self {
        Self {
            pages: Vec::new(),
            now: 0,
            capacity: capacity as u64,
        }
    }
    fn miss(&mut self, _: u64, ghost: Option<u64>, _: bool) -> u64 {
        ghost
            .filter(|time| self.now - time <= 2 * self.capacity)
            .unwrap_or(0)
    }
    fn insert(&mut self, frame: u32, arrival: Arrival) {
        self.now += u64::from(!arrival.ahead);
        let before = Some(arrival.decision).filter(|&time| time > 0);
        self.pages.push(Times {
            frame,
            hist: [(!arrival.ahead).then_some(self.now), before],
            last: self.now,
            request: arrival.request,
            unused: arrival.ahead,
            ripe: false,
        });
    }
    fn touch(&mut self, frame: u32, request: u32) {
        self.now += 1;
        // Pages of one LAST (those read ahead) are told apart by their order here.
        let at = self
            .pages
            .iter()
            .position(|page| page.frame == frame)
            .unwrap();
        let mut page = self.pages.remove(at);
        if page.unused {
            page.hist[0] = Some(self.now);
            page.unused = false;
        } else if self.now - page.last > self.capacity / 5 && page.request != request {
            page.hist = [Some(self.now), Some(page.last)];
        }
        page.last = self.now;
        page.request = request;
        page.ripe = false;
        self.pages.push(page);
    }
    fn evict(&mut self, unpinned: &dyn Fn(u32) -> bool) -> Option<Victim> {
        for page in &mut self.pages {
            page.ripe |= self.now + 1 - page.last > self.capacity / 5;
        }
        let best = self
            .pages
            .iter()
            .filter(|page| unpinned(page.frame))
            // Those past their correlated period, then the least HIST(2), then the least LAST, then the first to come.
            .min_by_key(|page| match page.ripe {
                true => (0, page.hist[1].unwrap_or(0), page.last),
                false => (1, page.last, 0),
            })?
            .frame;
        let at = self.pages.iter().position(|page| page.frame == best)?;
        let page = self.pages.remove(at);
        let ghost = if page.unused {
            page.hist[1]
        } else {
            page.hist[0]
        };
        Some((best, ghost))
    }
    fn remove(&mut self, frame: u32) {
        self.pages.retain(|page| page.frame != frame);
    }
    fn resize(&mut self, capacity: usize) {
        self.capacity = capacity as u64;
    }
}

/// LFU-DA by search: frame, key, time of the last use, uses.
pub(crate) struct LfuDa {
    pages: Vec<(u32, u64, u64, u64)>,
    age: u64,
    now: u64,
}

impl Naive for LfuDa {
    const RULE: &'static str = "lfu-da";
    fn new(_: usize) -> Self {
        Self {
            pages: Vec::new(),
            age: 0,
            now: 0,
        }
    }
    fn insert(&mut self, frame: u32, arrival: Arrival) {
        self.now += 1;
        let uses = u64::from(!arrival.ahead);
        self.pages.push((frame, self.age + uses, self.now, uses));
    }
    fn touch(&mut self, frame: u32, _: u32) {
        self.now += 1;
        let page = self.pages.iter_mut().find(|page| page.0 == frame).unwrap();
        let uses = page.3 + 1;
        *page = (frame, self.age + uses, self.now, uses);
    }
    fn evict(&mut self, unpinned: &dyn Fn(u32) -> bool) -> Option<Victim> {
        let pages = self.pages.iter().filter(|page| unpinned(page.0));
        let &(frame, key, ..) = pages.min_by_key(|page| (page.1, page.2))?;
        self.age = key;
        self.remove(frame);
        Some((frame, None))
    }
    fn remove(&mut self, frame: u32) {
        self.pages.retain(|page| page.0 != frame);
    }
    fn resize(&mut self, _: usize) {}
}

/// A block of MQ: its uses are those of its former lives until its first one.
struct Member {
    frame: u32,
    uses: u64,
    queue: usize,
    expires: u64,
}

/// MQ: one list, oldest of each queue first in it.
pub(crate) struct Mq {
    members: Vec<Member>,
    /// Uses by ghost.
    ghosts: HashMap<u64, u64>,
    departures: u64,
    now: u64,
    capacity: u64,
}

impl Mq {
    fn queue(uses: u64) -> usize {
        (0..8).rev().find(|queue| uses >= 1 << queue).unwrap_or(0)
    }
    fn use_now(&mut self, frame: u32, before: u64) {
        let uses = before + 1;
        self.members.push(Member {
            frame,
            uses,
            queue: Self::queue(uses),
            expires: self.now + 2 * self.capacity,
        });
        self.now += 1;
        for queue in 1..8 {
            let at = self.members.iter().position(|member| member.queue == queue);
            if let Some(at) = at.filter(|&at| self.members[at].expires < self.now) {
                let mut member = self.members.remove(at);
                member.queue -= 1;
                member.expires = self.now + 2 * self.capacity;
                self.members.push(member);
            }
        }
    }
}

impl Naive for Mq {
    const RULE: &'static str = "mq";
    fn new(capacity: usize) -> Self {
        Self {
            members: Vec::new(),
            ghosts: HashMap::new(),
            departures: 0,
            now: 0,
            capacity: capacity as u64,
        }
    }
    fn miss(&mut self, _: u64, ghost: Option<u64>, _: bool) -> u64 {
        // The last 4 times the capacity of departures are known.
        let known = ghost.filter(|ghost| self.departures - ghost < 4 * self.capacity);
        known.map_or(0, |ghost| self.ghosts[&ghost])
    }
    fn insert(&mut self, frame: u32, arrival: Arrival) {
        if arrival.ahead {
            self.members.push(Member {
                frame,
                uses: arrival.decision,
                queue: 0,
                expires: u64::MAX,
            });
        } else {
            self.use_now(frame, arrival.decision);
        }
    }
    fn touch(&mut self, frame: u32, _: u32) {
        let at = self
            .members
            .iter()
            .position(|member| member.frame == frame)
            .unwrap();
        let member = self.members.remove(at);
        self.use_now(frame, member.uses);
    }
    fn evict(&mut self, unpinned: &dyn Fn(u32) -> bool) -> Option<Victim> {
        let members = self.members.iter().enumerate();
        let (at, _) = members
            .filter(|(_, member)| unpinned(member.frame))
            .min_by_key(|(at, member)| (member.queue, *at))?;
        let member = self.members.remove(at);
        self.departures += 1;
        self.ghosts.insert(self.departures, member.uses);
        Some((member.frame, Some(self.departures)))
    }
    fn remove(&mut self, frame: u32) {
        self.members.retain(|member| member.frame != frame);
    }
    fn resize(&mut self, capacity: usize) {
        self.capacity = capacity as u64;
    }
}
