//! A model of the default rule as a whole, from its description: the queues in vectors, the six settings in miniature beside
//! it, and the comparison that chooses among them. Nothing is shared with the rule; the finaliser of MurmurHash3, which says whether
//! a block is in the sample and in which set of the miniatures' directory it stands, is written again here. The model is for caches of
//! up to 256 frames, whose settings have as many ghosts a frame as those of their miniatures.

use super::drive::{Arrival, Naive, Victim};
use super::proportions::{Queues, SETTINGS, Setting};
use std::collections::{HashMap, HashSet};

/// The places of two settings.
const FREQUENCY: usize = 4;
const LRU: usize = 5;

/// How often blocks came, in two counters each of up to 15, by place. For each frame there is a row of sixteen; a block's two are in one
/// row, and the lesser of them is right. Each row is halved once in eight arrivals a frame, one after the other.
struct Counts {
    rows: Vec<[u8; 16]>,
    arrivals: usize,
    period: usize,
}

impl Counts {
    fn new(frames: usize) -> Self {
        let rows = frames.next_power_of_two().max(8);
        Self {
            rows: vec![[0; 16]; rows],
            arrivals: 0,
            period: (8 * frames / rows).max(1),
        }
    }

    fn add(&mut self, block: u64) -> u8 {
        let mixed = (hash(block) >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let rows = self.rows.len();
        let row = &mut self.rows[(mixed >> 32) as usize % rows];
        let places = [mixed >> 26, mixed >> 23].map(|bits| bits as usize % 8);
        let places = [places[0], places[1] + 8];
        let count = places.map(|place| row[place]).into_iter().min().unwrap();
        let count = (count + 1).min(15);
        for place in places {
            row[place] = row[place].max(count);
        }
        self.arrivals += 1;
        if self.arrivals.is_multiple_of(self.period) {
            let next = (self.arrivals / self.period - 1) % rows;
            self.rows[next].iter_mut().for_each(|count| *count /= 2);
        }
        count
    }
}

/// What a setting's miniature knows of a block.
#[derive(Clone, Copy, PartialEq)]
enum Word {
    Nothing,
    In(u32),
    Ghost(u64),
}

#[derive(Clone, Copy)]
struct Entry {
    block: u64,
    words: [Word; 6],
}

const EMPTY: Entry = Entry {
    block: 0,
    words: [Word::Nothing; 6],
};

impl Entry {
    fn is_free(&self) -> bool {
        self.words == EMPTY.words
    }
    fn is_in(&self) -> bool {
        self.words.iter().any(|word| matches!(word, Word::In(_)))
    }
}

/// Frames of the miniatures: up to 64 as many as the cache has, and all blocks are in the sample.
fn sampled_frames(capacity: usize) -> usize {
    assert!(capacity <= 256);
    capacity.min(64)
}

/// The six settings, each over so many frames, and what was compared.
struct Miniatures {
    queues: Vec<Queues>,
    /// By setting and frame: the entry of the block in it.
    holds: Vec<HashMap<u32, usize>>,
    /// Sets of eight.
    entries: Vec<Entry>,
    counts: Counts,
    uses: usize,
    frames: usize,
    /// Hits of the second where the first had none, less the contrary; and how often they differed.
    lead: [[f64; 6]; 6],
    differ: [[f64; 6]; 6],
    compared: u32,
    ruling: usize,
    switches: u64,
    guard: Guard,
    trial: Trial,
    /// By setting, how often it failed lately.
    doubts: [u32; 6],
}

/// Whether the setting that rules brings what it promised.
#[derive(Default)]
struct Trial {
    before: usize,
    uses: usize,
    /// Hits that the setting that rules has in miniature and the cache has not, less the contrary, and the least that this ever was; the
    /// same for the setting before.
    promised: (i64, i64),
    missed: (i64, i64),
}

/// The hits of the cache beside those of LRU, and for how long LRU must rule.
struct Guard {
    /// Hits of the cache less those of LRU at each access since the last fall or reward; and how much the most of these is above
    /// the last.
    ahead: i64,
    behind: i64,
    /// How many more falls than rewards there were, and for how many accesses the last one still holds.
    depth: u32,
    held: u64,
}

pub(crate) fn hash(mut word: u64) -> u64 {
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53_u64] {
        word = (word ^ (word >> 33)).wrapping_mul(factor);
    }
    word ^ (word >> 33)
}

impl Miniatures {
    fn new(frames: usize) -> Self {
        Self {
            queues: SETTINGS.map(|setting| Queues::new(frames, setting)).into(),
            holds: vec![HashMap::new(); 6],
            entries: vec![EMPTY; frames.next_power_of_two() * 8],
            counts: Counts::new(frames),
            uses: 0,
            frames,
            lead: [[0.0; 6]; 6],
            differ: [[0.0; 6]; 6],
            compared: 0,
            ruling: 0,
            switches: 0,
            guard: Guard {
                ahead: 0,
                behind: 0,
                depth: 0,
                held: 0,
            },
            trial: Trial::default(),
            doubts: [0; 6],
        }
    }

    fn rule(&mut self, setting: usize, before: usize) {
        self.ruling = setting;
        self.switches += 1;
        self.trial = Trial {
            before,
            ..Trial::default()
        };
    }

    /// Says whether the setting that rules is a miss a frame and four standard deviations behind its own miniature, and behind that of
    /// the one before. After 16 uses a frame it is doubted once less.
    fn fails(&mut self, hits: &[bool], own: bool) -> bool {
        let trial = &mut self.trial;
        let behind = |(sum, least): &mut (i64, i64), setting: usize| {
            *sum += i64::from(hits[setting]) - i64::from(own);
            *least = (*least).min(*sum);
            *sum - *least
        };
        let promised = behind(&mut trial.promised, self.ruling);
        let missed = behind(&mut trial.missed, trial.before);
        trial.uses += 1;
        let doubts = &mut self.doubts[self.ruling];
        if trial.uses.is_multiple_of(16 * self.frames) {
            *doubts = doubts.saturating_sub(1);
        }
        let most = self.frames as i64 + (16.0 * self.frames as f64).sqrt() as i64;
        let fails = self.ruling != trial.before && promised > most && missed > most;
        if fails {
            *doubts = 3.min(*doubts + 1);
        }
        fails
    }

    /// The entry of a block: its own, or the first of its set that is free, or the first whose block is in nowhere.
    fn entry(&mut self, block: u64) -> Option<usize> {
        let sets = self.entries.len() / 8;
        let first = (hash(block) >> 32) as usize % sets * 8;
        let mut set = first..first + 8;
        let own = |at: &usize| self.entries[*at].block == block && !self.entries[*at].is_free();
        if let Some(at) = set.clone().find(own) {
            return Some(at);
        }
        let free = set.clone().find(|&at| self.entries[at].is_free());
        let at = free.or_else(|| set.find(|&at| !self.entries[at].is_in()))?;
        self.entries[at] = Entry { block, ..EMPTY };
        Some(at)
    }

    /// A use; the setting to take over, if one does better than the one that rules.
    fn access(&mut self, block: u64, own: Option<bool>) -> Option<Setting> {
        // One entry at each use: ghosts that are forgotten leave it.
        let at = self.uses % self.entries.len();
        self.uses += 1;
        for (word, queues) in self.entries[at].words.iter_mut().zip(&self.queues) {
            if matches!(*word, Word::Ghost(ghost) if !queues.remembers(ghost)) {
                *word = Word::Nothing;
            }
        }
        let entry = self.entry(block)?;
        let count = match self.entries[entry].words[FREQUENCY] {
            Word::In(_) => 0,
            _ => self.counts.add(block),
        };
        let hits: Vec<bool> = (0..6)
            .map(|expert| self.access_one(expert, entry, count))
            .collect();
        self.compare(&hits, own)
    }

    /// Says whether LRU must rule from now on: half a miss a frame is lost, and one. Of what is won a miss and a half a frame
    /// are worth a fall.
    fn falls(&mut self, lru: bool, own: Option<bool>) -> bool {
        let (frames, guard) = (self.frames as i64, &mut self.guard);
        if guard.held > 0 {
            guard.held -= 1;
            return false;
        }
        let won = own.map_or(0, |own| i64::from(own) - i64::from(lru));
        guard.ahead += won;
        guard.behind = 0.max(guard.behind - won);
        let most = (frames / 2 + 1) * 4_i64.pow(self.doubts[LRU]);
        if guard.ahead >= most + frames {
            guard.ahead = 0;
            guard.depth = guard.depth.saturating_sub(1);
        }
        let falls = guard.behind >= most;
        if falls {
            guard.held = 2 * self.frames as u64 * 2_u64.pow(guard.depth);
            (guard.ahead, guard.behind) = (0, 0);
            guard.depth += 1;
        }
        falls
    }

    fn access_one(&mut self, expert: usize, entry: usize, count: u8) -> bool {
        let queues = &mut self.queues[expert];
        let returns = match self.entries[entry].words[expert] {
            Word::In(frame) => {
                queues.touch(frame);
                return true;
            }
            Word::Ghost(ghost) => queues.returns(ghost),
            Word::Nothing => false,
        };
        let mut frame = self.holds[expert].len() as u32;
        if queues.len() == self.frames {
            let (gone, ghost) = queues.evict(&|_| true).unwrap();
            frame = gone;
            // 15 bits say which ghost it was, and none that it was none.
            let ghost = ghost.filter(|ghost| ghost % (1 << 15) != 0);
            let left = self.holds[expert][&gone];
            self.entries[left].words[expert] = ghost.map_or(Word::Nothing, Word::Ghost);
        }
        queues.insert(frame, returns, false);
        queues.set_count(frame, count);
        self.holds[expert].insert(frame, entry);
        self.entries[entry].words[expert] = Word::In(frame);
        false
    }

    /// After 64 uses: a lead of more than one deviation, a tenth of a miss for each frame that the border moves (to LRU three),
    /// a tenth for each frame where blocks are counted from then on, and two.
    /// What is counted halves in 16 uses a frame, but not sooner than in 4000.
    fn compare(&mut self, hits: &[bool], own: Option<bool>) -> Option<Setting> {
        for (loser, winner) in (0..36).map(|pair| (pair / 6, pair % 6)) {
            if !hits[loser] && hits[winner] {
                self.lead[loser][winner] += 1.0;
                self.lead[winner][loser] -= 1.0;
                self.differ[loser][winner] += 1.0;
                self.differ[winner][loser] += 1.0;
            }
        }
        if own.is_some_and(|own| self.fails(hits, own)) {
            let failed = self.ruling;
            for other in 0..6 {
                self.lead[other][failed] = self.lead[other][failed].min(0.0);
                self.lead[failed][other] = self.lead[failed][other].max(0.0);
            }
            if failed == LRU {
                let depth = self.guard.depth.saturating_sub(1);
                self.guard = Guard {
                    ahead: 0,
                    behind: 0,
                    depth,
                    held: 0,
                };
            }
            self.rule(self.trial.before, self.trial.before);
            return Some(SETTINGS[self.ruling]);
        }
        if self.falls(hits[LRU], own) {
            for other in 0..6 {
                self.lead[LRU][other] = self.lead[LRU][other].min(0.0);
                self.lead[other][LRU] = self.lead[other][LRU].max(0.0);
            }
            if self.ruling == LRU {
                return None;
            }
            self.rule(LRU, self.ruling);
            return Some(SETTINGS[LRU]);
        }
        self.compared += 1;
        if !self.compared.is_multiple_of(64) {
            return None;
        }
        let mine = SETTINGS[self.ruling].0 as f64;
        let leads = self.lead[self.ruling];
        let enough = |&expert: &usize| {
            let moved = (mine - SETTINGS[expert].0 as f64).abs() / 1000.0;
            let chance = self.differ[self.ruling][expert].sqrt();
            let cost = match expert {
                LRU => 0.3 * moved,
                FREQUENCY => 0.1 * moved + 0.1,
                _ => 0.1 * moved,
            };
            let doubt = 0.25 * (4_f64.powi(self.doubts[expert] as i32) - 1.0);
            leads[expert] > chance + (cost + doubt) * self.frames as f64 + 2.0
        };
        // Of equal leads the first.
        let better = (0..6)
            .filter(|expert| self.guard.held == 0 && enough(expert))
            .rev()
            .max_by(|&a, &b| leads[a].total_cmp(&leads[b]));
        let decay = 0.5_f64.powf(64.0 / (16.0 * self.frames as f64).max(4000.0));
        for pair in self.lead.iter_mut().chain(&mut self.differ).flatten() {
            *pair *= decay;
        }
        let better = better?;
        self.rule(better, self.ruling);
        Some(SETTINGS[better])
    }
}

pub(crate) struct Adaptive {
    queues: Queues,
    miniatures: Miniatures,
    /// From when frequency first rules.
    counts: Option<Counts>,
    capacity: usize,
    /// The blocks whose uses the miniatures see, by frame.
    shown: HashMap<u32, u64>,
    /// The frames that were used since a block last came: they do not see further uses that change nothing in the queues.
    seen: HashSet<u32>,
}

impl Adaptive {
    /// The setting that rules, and how often that has changed.
    pub(crate) fn ruling(&self) -> (usize, u64) {
        (self.miniatures.ruling, self.miniatures.switches)
    }

    /// The lower half of the hash is as small as the sample is beside all blocks.
    fn is_sampled(&self, block: u64) -> bool {
        let share = sampled_frames(self.capacity) as f64 / self.capacity as f64;
        ((hash(block) as u32) as f64) < share * 2_f64.powi(32)
    }

    fn learn(&mut self, block: u64, own: Option<bool>) {
        if self.is_sampled(block)
            && let Some(setting) = self.miniatures.access(block, own)
        {
            if setting.4 && self.counts.is_none() {
                self.counts = Some(Counts::new(self.capacity));
            }
            self.queues.set(setting);
        }
    }
}

impl Naive for Adaptive {
    const RULE: &'static str = "adaptive";
    fn new(capacity: usize) -> Self {
        Self {
            queues: Queues::new(capacity, SETTINGS[0]),
            miniatures: Miniatures::new(sampled_frames(capacity)),
            counts: None,
            capacity,
            shown: HashMap::new(),
            seen: HashSet::new(),
        }
    }
    fn miss(&mut self, block: u64, ghost: Option<u64>, ahead: bool) -> u64 {
        let returns = ghost.is_some_and(|ghost| self.queues.returns(ghost));
        if !ahead {
            self.learn(block, Some(false));
        }
        let count = self.counts.as_mut().map_or(0, |counts| counts.add(block));
        u64::from(returns) + 2 * u64::from(count)
    }
    fn insert(&mut self, frame: u32, arrival: Arrival) {
        if self.is_sampled(arrival.block) {
            self.shown.insert(frame, arrival.block);
        }
        self.seen.clear();
        if !arrival.ahead {
            self.seen.insert(frame);
        }
        self.queues
            .insert(frame, arrival.decision % 2 == 1, arrival.ahead);
        if self.counts.is_some() {
            let count = (arrival.decision / 2) as u8;
            self.queues.set_count(frame, count.max(1));
        }
    }
    fn touch(&mut self, frame: u32, _: u32) {
        // What waits may have been read ahead, of which the miniatures know nothing.
        let own = (!self.queues.waits(frame)).then_some(true);
        let changed = self.queues.touch(frame);
        let first = self.seen.insert(frame);
        if let Some(&block) = self.shown.get(&frame)
            && (changed || first)
        {
            self.learn(block, own);
        }
    }
    fn evict(&mut self, unpinned: &dyn Fn(u32) -> bool) -> Option<Victim> {
        let victim = self.queues.evict(unpinned)?;
        self.shown.remove(&victim.0);
        Some(victim)
    }
    fn remove(&mut self, frame: u32) {
        self.queues.remove(frame);
        self.shown.remove(&frame);
    }
    /// The pages stay where they are; what was remembered and learnt is lost, and pages of before are not shown any more.
    fn resize(&mut self, capacity: usize) {
        self.queues.resize(capacity);
        self.miniatures = Miniatures::new(sampled_frames(capacity));
        self.counts = None;
        self.capacity = capacity;
        self.shown.clear();
    }
}
