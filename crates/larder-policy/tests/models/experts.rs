//! Models of the rules that estimate, draw or weigh.

use super::counts::first_least;
use super::drive::{Arrival, Naive, Victim};
use super::ghosts::Names;

/// The same draws as the rules': xorshift64*, from the golden ratio on.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
    pub(crate) fn next(&mut self) -> u64 {
        let mut x = self.0;
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.0 = x;
        x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32
    }
}

/// Counters one by one: word and place in it.
struct Sketch {
    counters: Vec<[u8; 16]>,
    additions: usize,
    period: usize,
}

impl Sketch {
    fn new(capacity: usize) -> Self {
        Self {
            counters: vec![[0; 16]; capacity.next_power_of_two().max(8)],
            additions: 0,
            period: 10 * capacity,
        }
    }
    fn places(&self, block: u64) -> Vec<(usize, usize)> {
        let mixed = (block ^ (block >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32;
        let rows = [
            0xc3a5_c85c_97cb_3127_u64,
            0xb492_b66f_be98_f273,
            0x9ae1_6a3b_2f90_404f,
            0xcbf2_9ce4_8422_2325,
        ];
        let place = |(row, factor): (usize, &u64)| {
            let word = (hash.wrapping_mul(*factor) >> 32) as usize % self.counters.len();
            (word, (hash % 4) as usize * 4 + row)
        };
        rows.iter().enumerate().map(place).collect()
    }
    fn add(&mut self, block: u64) {
        let mut added = 0;
        for (word, at) in self.places(block) {
            if self.counters[word][at] < 15 {
                self.counters[word][at] += 1;
                added = 1;
            }
        }
        self.additions += added;
        if self.additions >= self.period {
            self.additions /= 2;
            self.counters
                .iter_mut()
                .flatten()
                .for_each(|counter| *counter /= 2);
        }
    }
    fn count(&self, block: u64) -> u8 {
        let places = self.places(block).into_iter();
        places
            .map(|(word, at)| self.counters[word][at])
            .min()
            .unwrap()
    }
}

/// Frames with their blocks, oldest first.
type Segment = Vec<(u32, u64)>;

fn find(segment: &Segment, frame: u32) -> Option<usize> {
    segment.iter().position(|at| at.0 == frame)
}

pub(crate) struct WindowTinyLfu<const CLIMB: bool> {
    sketch: Sketch,
    window: Segment,
    probation: Segment,
    protected: Segment,
    window_most: usize,
    outcomes: Vec<bool>,
    ratio: f64,
    step: f64,
    capacity: usize,
}

impl<const CLIMB: bool> WindowTinyLfu<CLIMB> {
    fn climb(&mut self, hit: bool) {
        self.outcomes.push(hit);
        if !CLIMB || self.outcomes.len() < 10 * self.capacity {
            return;
        }
        let hits = self.outcomes.iter().filter(|&&hit| hit).count();
        let ratio = hits as f64 / self.outcomes.len() as f64;
        let change = ratio - self.ratio;
        let amount = if change < 0.0 { -self.step } else { self.step };
        self.step = amount * 0.98;
        if change.abs() >= 0.05 {
            self.step = 0.0625 * self.capacity as f64 * amount.signum();
        }
        self.ratio = ratio;
        self.outcomes.clear();
        let window = (self.window_most as f64 + amount).round().max(1.0) as usize;
        self.window_most = window.min((self.capacity * 80 / 100).max(1));
    }
    fn start(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.window_most = (capacity / 100).max(1);
        self.step = -0.0625 * capacity as f64;
    }
}

impl<const CLIMB: bool> Naive for WindowTinyLfu<CLIMB> {
    const RULE: &'static str = if CLIMB {
        "w-tinylfu-climbing"
    } else {
        "w-tinylfu"
    };
    fn new(capacity: usize) -> Self {
        let mut model = Self {
            sketch: Sketch::new(capacity),
            window: Vec::new(),
            probation: Vec::new(),
            protected: Vec::new(),
            window_most: 0,
            outcomes: Vec::new(),
            ratio: 0.0,
            step: 0.0,
            capacity,
        };
        model.start(capacity);
        model
    }
    fn miss(&mut self, block: u64, _: Option<u64>, ahead: bool) -> u64 {
        if !ahead {
            self.sketch.add(block);
            self.climb(false);
        }
        0
    }
    fn insert(&mut self, frame: u32, arrival: Arrival) {
        self.window.push((frame, arrival.block));
        let main = |model: &Self| model.probation.len() + model.protected.len();
        while self.window.len() > self.window_most && main(self) < self.capacity - self.window_most
        {
            self.probation.push(self.window.remove(0));
        }
    }
    fn touch(&mut self, frame: u32, _: u32) {
        let mut all = self
            .window
            .iter()
            .chain(&self.probation)
            .chain(&self.protected);
        let block = all.find(|at| at.0 == frame).unwrap().1;
        self.sketch.add(block);
        self.climb(true);
        if let Some(at) = find(&self.window, frame) {
            self.window.remove(at);
            self.window.push((frame, block));
            return;
        }
        let promoted = find(&self.probation, frame).map(|at| self.probation.remove(at));
        self.protected.retain(|at| at.0 != frame);
        self.protected.push((frame, block));
        let most = (self.capacity - self.window_most) * 80 / 100;
        while promoted.is_some() && self.protected.len() > most {
            self.probation.push(self.protected.remove(0));
        }
    }
    fn evict(&mut self, unpinned: &dyn Fn(u32) -> bool) -> Option<Victim> {
        let main = self.probation.iter().chain(&self.protected);
        let victim = main.clone().find(|at| unpinned(at.0)).copied();
        let candidate = self.window.iter().find(|at| unpinned(at.0)).copied();
        let contest = victim.is_none() || self.window.len() >= self.window_most;
        let gone = match (candidate, victim) {
            (None, victim) => victim?,
            (Some(candidate), None) => candidate,
            (Some(_), Some(victim)) if !contest => victim,
            (Some(candidate), Some(victim)) => {
                if self.sketch.count(candidate.1) > self.sketch.count(victim.1) {
                    self.window.retain(|&at| at != candidate);
                    self.probation.push(candidate);
                    victim
                } else {
                    candidate
                }
            }
        };
        self.remove(gone.0);
        Some((gone.0, None))
    }
    fn remove(&mut self, frame: u32) {
        for segment in [&mut self.window, &mut self.probation, &mut self.protected] {
            segment.retain(|at| at.0 != frame);
        }
    }
    fn resize(&mut self, capacity: usize) {
        if capacity.next_power_of_two().max(8) > self.sketch.counters.len() {
            self.sketch = Sketch::new(capacity);
        }
        self.sketch.period = 10 * capacity;
        self.start(capacity);
    }
}

/// Frame, time of arrival, uses.
pub(crate) struct Hyperbolic {
    residents: Vec<(u32, u64, u64)>,
    now: u64,
    dice: Dice,
}

impl Naive for Hyperbolic {
    const RULE: &'static str = "hyperbolic";
    fn new(_: usize) -> Self {
        Self {
            residents: Vec::new(),
            now: 0,
            dice: Dice::new(),
        }
    }
    fn insert(&mut self, frame: u32, arrival: Arrival) {
        let uses = u64::from(!arrival.ahead);
        self.now += uses;
        self.residents.push((frame, self.now, uses));
    }
    fn touch(&mut self, frame: u32, _: u32) {
        self.now += 1;
        let found = self.residents.iter_mut().find(|at| at.0 == frame);
        found.unwrap().2 += 1;
    }
    fn evict(&mut self, unpinned: &dyn Fn(u32) -> bool) -> Option<Victim> {
        if self.residents.is_empty() {
            return None;
        }
        let worth = |at: &(u32, u64, u64)| at.2 as f64 / (self.now - at.1 + 1) as f64;
        let len = self.residents.len() as u64;
        let drawn = (0..64).map(|_| self.residents[((self.dice.next() * len) >> 32) as usize]);
        let drawn: Vec<_> = drawn.filter(|at| unpinned(at.0)).collect();
        let least = first_least(&drawn, worth).or_else(|| {
            let mut all = self.residents.iter();
            all.find(|at| unpinned(at.0)).copied()
        })?;
        self.remove(least.0);
        Some((least.0, None))
    }
    fn remove(&mut self, frame: u32) {
        let at = self.residents.iter().position(|at| at.0 == frame).unwrap();
        self.residents.swap_remove(at);
    }
    fn resize(&mut self, _: usize) {}
}

/// A block with its uses and the time of the last; of a ghost, when it left.
#[derive(Clone, Copy)]
struct Known {
    name: u64,
    uses: u64,
    time: u64,
}

pub(crate) struct LeCaR {
    /// By recency; the names are frames.
    blocks: Vec<Known>,
    /// Of LRU and of LFU, oldest first.
    history: [Vec<Known>; 2],
    weights: [f64; 2],
    now: u64,
    dice: Dice,
    names: Names,
    n: usize,
}

impl LeCaR {
    fn history_most(&self) -> usize {
        (self.n / 2).max(1)
    }
    fn regret(&mut self, expert: usize, since: u64) {
        // Regrets are discounted by 0.005 for each n accesses; the learning rate is 0.45. The clock has 64 steps in n accesses.
        let step = (self.n as u64 / 64).max(1);
        let gone = (self.now / step - since / step) * step;
        let regret = 0.005_f64.powf(gone as f64 / self.n as f64);
        self.weights[expert] *= (-0.45 * regret).exp();
        let sum = self.weights[0] + self.weights[1];
        self.weights[0] = (self.weights[0] / sum).clamp(0.01, 0.99);
        self.weights[1] = 1.0 - self.weights[0];
    }
    fn used(&mut self, frame: u32, uses: u64) {
        self.now += 1;
        self.blocks.push(Known {
            name: frame.into(),
            uses,
            time: self.now,
        });
    }
}

impl Naive for LeCaR {
    const RULE: &'static str = "lecar";
    fn new(capacity: usize) -> Self {
        Self {
            blocks: Vec::new(),
            history: [Vec::new(), Vec::new()],
            weights: [0.5; 2],
            now: 0,
            dice: Dice::new(),
            names: Names::default(),
            n: capacity,
        }
    }
    fn miss(&mut self, _: u64, ghost: Option<u64>, ahead: bool) -> u64 {
        for expert in [0, 1] {
            let is_it = |known: &Known| Some(known.name) == ghost;
            if let Some(at) = self.history[expert].iter().position(is_it) {
                let known = self.history[expert].remove(at);
                if !ahead {
                    self.regret(expert, known.time);
                }
                return known.uses;
            }
        }
        0
    }
    fn insert(&mut self, frame: u32, arrival: Arrival) {
        self.used(frame, arrival.decision + u64::from(!arrival.ahead));
    }
    fn touch(&mut self, frame: u32, _: u32) {
        let at = self
            .blocks
            .iter()
            .position(|known| known.name == frame.into());
        let uses = self.blocks.remove(at.unwrap()).uses;
        self.used(frame, uses + 1);
    }
    fn evict(&mut self, unpinned: &dyn Fn(u32) -> bool) -> Option<Victim> {
        let may = |known: &&Known| unpinned(known.name as u32);
        let lru = *self.blocks.iter().find(may)?;
        let may = self.blocks.iter().filter(may);
        let lfu = *may.min_by_key(|known| (known.uses, known.time))?;
        let drawn = self.dice.next() as f64 / 4_294_967_296.0;
        let expert = usize::from(drawn >= self.weights[0]);
        let victim = [lru, lfu][expert];
        self.remove(victim.name as u32);
        if lru.name == lfu.name {
            return Some((victim.name as u32, None));
        }
        let (most, name) = (self.history_most(), self.names.next());
        let history = &mut self.history[expert];
        history.push(Known {
            name,
            uses: victim.uses,
            time: self.now,
        });
        if history.len() > most {
            history.remove(0);
        }
        Some((victim.name as u32, Some(name)))
    }
    fn remove(&mut self, frame: u32) {
        self.blocks.retain(|known| known.name != frame.into());
    }
    fn resize(&mut self, capacity: usize) {
        self.n = capacity;
        self.history = [Vec::new(), Vec::new()];
    }
}
