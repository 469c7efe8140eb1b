//! A model of Cacheus, after the paper and its authors' program.

use super::drive::{Arrival, Naive, Victim};
use super::experts::Dice;
use super::ghosts::Names;

#[derive(Clone, Copy)]
struct Page {
    frame: u32,
    uses: u64,
    /// The access of its last use.
    time: u64,
    demoted: bool,
    new: bool,
    /// Read ahead, not used, and was in a history.
    unused: bool,
    returns: bool,
}

struct Ghost {
    name: u64,
    uses: u64,
    new: bool,
}

/// Thousandths, for learning rates and hit ratios.
fn rounded(x: f64) -> f64 {
    (x * 1000.0).round() / 1000.0
}

struct LearningRate {
    value: f64,
    previous: f64,
    reset: f64,
    time: u64,
    period: u64,
    hits: u64,
    hit_ratio: f64,
    zeros: u32,
    negatives: u32,
}

impl LearningRate {
    fn new(n: usize) -> Self {
        let value = (2.0 * 2.0_f64.ln() / n as f64).sqrt();
        Self {
            value,
            previous: 0.0,
            reset: value.clamp(0.001, 1.0),
            time: 0,
            period: n as u64,
            hits: 0,
            hit_ratio: 0.0,
            zeros: 0,
            negatives: 0,
        }
    }
    fn access(&mut self, hit: bool, dice: &mut Dice) {
        self.time += 1;
        if self.time.is_multiple_of(self.period) {
            let ratio = rounded(self.hits as f64 / self.period as f64);
            let difference = rounded(ratio - self.hit_ratio);
            let moved = rounded(self.value) - rounded(self.previous);
            self.previous = self.value;
            self.hit_ratio = ratio;
            self.hits = 0;
            let delta = moved * difference;
            if delta > 0.0 {
                self.value = (self.value + (self.value * moved).abs()).min(1.0);
            } else if delta < 0.0 {
                self.value = (self.value - (self.value * moved).abs()).max(0.001);
            }
            if delta != 0.0 {
                self.zeros = 0;
                self.negatives = 0;
            } else if difference <= 0.0 {
                self.without_direction(ratio, difference, dice);
            }
        }
        self.hits += u64::from(hit);
    }
    fn without_direction(&mut self, ratio: f64, difference: f64, dice: &mut Dice) {
        if (ratio <= 0.0 && difference == 0.0) || difference < 0.0 {
            self.zeros += 1;
        }
        self.negatives += u32::from(difference < 0.0);
        if self.zeros >= 10 {
            self.value = self.reset;
            self.zeros = 0;
        } else if difference < 0.0 {
            if self.negatives >= 10 {
                self.value = self.reset;
                self.negatives = 0;
            } else if self.value >= 1.0 {
                self.value = 0.9;
            } else if self.value <= 0.001 {
                self.value = 0.005;
            } else if (dice.next() as f64) < 2_147_483_648.0 {
                self.value = (self.value * 1.25).min(1.0);
            } else {
                self.value = (self.value * 0.75).max(0.001);
            }
        }
    }
}

pub(crate) struct Cacheus {
    /// Oldest first: blocks used again, and blocks that are to leave.
    s: Vec<Page>,
    q: Vec<Page>,
    /// Of SR-LRU and of CR-LFU.
    history: [Vec<Ghost>; 2],
    weights: [f64; 2],
    rate: LearningRate,
    s_limit: usize,
    q_limit: usize,
    full: bool,
    now: u64,
    dice: Dice,
    names: Names,
    n: usize,
}

fn half_up(many: usize, few: usize) -> usize {
    ((many as f64 / few.max(1) as f64 + 0.5) as usize).max(1)
}

impl Cacheus {
    fn limits(n: usize) -> (usize, usize) {
        let q = ((0.01 * n as f64 + 0.5) as usize).max(1);
        (n - q, q)
    }
    fn nor_count(&self) -> usize {
        self.history[0].iter().filter(|ghost| ghost.new).count()
    }
    fn dem_count(&self) -> usize {
        self.q.iter().filter(|page| page.demoted).count()
    }
    fn demote_while(&mut self, too_many: impl Fn(usize, usize) -> bool) {
        while !self.s.is_empty() && too_many(self.s.len(), self.s_limit) {
            let mut page = self.s.remove(0);
            page.demoted = true;
            self.q.push(page);
        }
    }
    /// What the first use of a block does.
    fn first_use(&mut self, mut page: Page) {
        let cold = !page.returns;
        let returned = page.returns;
        page.unused = false;
        page.returns = false;
        page.demoted = false;
        if returned || (!self.full && self.q.is_empty() && self.s.len() < self.s_limit) {
            self.s.push(page);
        } else {
            page.new = cold && (self.full || self.q.len() >= self.q_limit);
            self.q.push(page);
        }
    }
    fn page(&mut self, frame: u32) -> (bool, usize) {
        match self.s.iter().position(|page| page.frame == frame) {
            Some(at) => (true, at),
            None => {
                let at = self.q.iter().position(|page| page.frame == frame);
                (false, at.unwrap())
            }
        }
    }
}

impl Naive for Cacheus {
    const RULE: &'static str = "cacheus";
    fn new(n: usize) -> Self {
        let (s_limit, q_limit) = Self::limits(n);
        Self {
            s: Vec::new(),
            q: Vec::new(),
            history: [Vec::new(), Vec::new()],
            weights: [0.5; 2],
            rate: LearningRate::new(n),
            s_limit,
            q_limit,
            full: false,
            now: 0,
            dice: Dice::new(),
            names: Names::default(),
            n,
        }
    }
    /// 0: from no history; else one more than its uses.
    fn miss(&mut self, _: u64, ghost: Option<u64>, ahead: bool) -> u64 {
        if !ahead {
            self.rate.access(false, &mut self.dice);
        }
        for expert in [0, 1] {
            let list = &mut self.history[expert];
            let Some(at) = list.iter().position(|known| Some(known.name) == ghost) else {
                continue;
            };
            let known = list.remove(at);
            if ahead {
                return known.uses + 1;
            }
            if known.new {
                let by = half_up(self.dem_count(), self.nor_count());
                self.q_limit = (self.q_limit + by).min((self.n - 1).max(1));
                self.s_limit = self.n - self.q_limit;
            }
            self.weights[expert] *= (-self.rate.value).exp();
            let sum = self.weights[0] + self.weights[1];
            self.weights[0] = (self.weights[0] / sum).clamp(0.01, 0.99);
            self.weights[1] = 1.0 - self.weights[0];
            return known.uses + 1;
        }
        0
    }
    fn insert(&mut self, frame: u32, arrival: Arrival) {
        self.now += 1;
        let returns = arrival.decision > 0;
        let former = arrival.decision.saturating_sub(1);
        let uses = if returns || arrival.ahead { former } else { 1 };
        let page = Page {
            frame,
            uses,
            time: self.now,
            demoted: false,
            new: false,
            unused: arrival.ahead,
            returns,
        };
        if arrival.ahead {
            self.q.push(page);
            return;
        }
        self.first_use(page);
        if self.full || returns {
            self.demote_while(|len, limit| len >= limit);
        }
    }
    fn touch(&mut self, frame: u32, _: u32) {
        let (stacked, at) = self.page(frame);
        let list = if stacked { &mut self.s } else { &mut self.q };
        let mut page = list[at];
        self.now += 1;
        page.time = self.now;
        self.rate.access(!page.unused, &mut self.dice);
        if page.unused {
            list.remove(at);
            page.uses = if page.returns { page.uses } else { 1 };
            self.first_use(page);
            self.demote_while(|len, limit| len >= limit);
            return;
        }
        page.uses += 1;
        if page.demoted {
            let by = half_up(self.nor_count(), self.dem_count());
            self.s_limit = (self.s_limit + by).min(self.n - 1);
            self.q_limit = self.n - self.s_limit;
            page.demoted = false;
        }
        let list = if stacked { &mut self.s } else { &mut self.q };
        list.remove(at);
        self.s.push(page);
        if !stacked {
            self.demote_while(|len, limit| len > limit);
        }
    }
    fn evict(&mut self, unpinned: &dyn Fn(u32) -> bool) -> Option<Victim> {
        let may = |page: &&Page| unpinned(page.frame);
        let lru = *self.q.iter().chain(&self.s).find(may)?;
        let all = self.q.iter().chain(&self.s).filter(may);
        let lfu = *all.min_by_key(|page| (page.uses, u64::MAX - page.time))?;
        let drawn = self.dice.next() as f64 / 4_294_967_296.0;
        let expert = usize::from(drawn >= self.weights[0]);
        let victim = [lru, lfu][expert];
        self.full = true;
        self.remove(victim.frame);
        if lru.frame == lfu.frame {
            return Some((victim.frame, None));
        }
        let name = self.names.next();
        let history = &mut self.history[expert];
        history.push(Ghost {
            name,
            uses: victim.uses,
            new: victim.new && expert == 0,
        });
        if history.len() > (self.n / 2).max(1) {
            history.remove(0);
        }
        Some((victim.frame, Some(name)))
    }
    fn remove(&mut self, frame: u32) {
        self.s.retain(|page| page.frame != frame);
        self.q.retain(|page| page.frame != frame);
    }
    fn resize(&mut self, n: usize) {
        self.n = n;
        self.history = [Vec::new(), Vec::new()];
        self.rate = LearningRate::new(n);
        (self.s_limit, self.q_limit) = Self::limits(n);
        self.demote_while(|len, limit| len > limit);
    }
}
