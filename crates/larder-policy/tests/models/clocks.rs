//! Models of the clocks with ghosts.

use super::drive::{Arrival, Naive, Victim};
use super::ghosts::{Ahead, GhostList, Names};

#[derive(Clone, Copy)]
struct Page {
    frame: u32,
    used: bool,
    ahead: Ahead,
}

/// CAR; the heads of the clocks come first.
pub(crate) struct Car {
    t: [Vec<Page>; 2],
    b: [GhostList; 2],
    p: f64,
    names: Names,
    c: usize,
}

impl Car {
    /// The ghost of a list came back; it is not in it any more.
    fn adapt(&mut self, list: u64) {
        let mut b = [self.b[0].len() as f64, self.b[1].len() as f64];
        b[list as usize] += 1.0;
        if list == 0 {
            self.p = (self.p + f64::max(1.0, b[1] / b[0])).min(self.c as f64);
        } else {
            self.p = (self.p - f64::max(1.0, b[0] / b[1])).max(0.0);
        }
    }
    fn trim(&mut self) {
        let t1 = self.t[0].len();
        self.b[0].keep(self.c.saturating_sub(t1));
        while self.b[0].len() + self.b[1].len() > self.c {
            let list = usize::from(self.b[1].len() > 0);
            self.b[list].names.remove(0);
        }
    }
    fn seen_again(&mut self, frame: u32) {
        self.t[1].push(Page {
            frame,
            used: false,
            ahead: Ahead::No,
        });
    }
}

impl Naive for Car {
    const RULE: &'static str = "car";
    fn new(capacity: usize) -> Self {
        Self {
            t: Default::default(),
            b: Default::default(),
            p: 0.0,
            names: Names::default(),
            c: capacity,
        }
    }
    fn miss(&mut self, _: u64, ghost: Option<u64>, _: bool) -> u64 {
        if self.b[0].take(ghost) {
            1
        } else if self.b[1].take(ghost) {
            2
        } else {
            0
        }
    }
    fn insert(&mut self, frame: u32, arrival: Arrival) {
        if !arrival.ahead && arrival.decision > 0 {
            self.adapt(arrival.decision - 1);
            self.seen_again(frame);
        } else {
            let ahead = match arrival.ahead {
                true => Ahead::Decided(arrival.decision),
                false => Ahead::No,
            };
            self.t[0].push(Page {
                frame,
                used: false,
                ahead,
            });
        }
        self.trim();
    }
    fn touch(&mut self, frame: u32, _: u32) {
        let at = self.t[0].iter().position(|page| page.frame == frame);
        if let Some(at) = at {
            match self.t[0][at].ahead {
                Ahead::No => self.t[0][at].used = true,
                Ahead::Decided(0) => self.t[0][at].ahead = Ahead::No,
                Ahead::Decided(list) => {
                    self.adapt(list - 1);
                    self.t[0].remove(at);
                    self.seen_again(frame);
                }
            }
        } else {
            let page = self.t[1].iter_mut().find(|page| page.frame == frame);
            page.unwrap().used = true;
        }
    }
    fn evict(&mut self, unpinned: &dyn Fn(u32) -> bool) -> Option<Victim> {
        loop {
            let heads =
                [0, 1].map(|at: usize| self.t[at].iter().position(|page| unpinned(page.frame)));
            let prefer = usize::from((self.t[0].len() as f64) < self.p.max(1.0));
            let (clock, at) = match heads[prefer] {
                Some(at) => (prefer, at),
                None => (1 - prefer, heads[1 - prefer]?),
            };
            let page = self.t[clock].remove(at);
            if page.used {
                self.seen_again(page.frame);
                continue;
            }
            let name = self.names.next();
            self.b[clock].names.push(name);
            self.trim();
            return Some((page.frame, Some(name)));
        }
    }
    fn remove(&mut self, frame: u32) {
        self.t
            .iter_mut()
            .for_each(|clock| clock.retain(|page| page.frame != frame));
    }
    fn resize(&mut self, capacity: usize) {
        self.c = capacity;
        self.p = self.p.min(capacity as f64);
        self.trim();
    }
}
