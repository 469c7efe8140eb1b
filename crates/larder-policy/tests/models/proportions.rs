//! A model of the default rule's queues, with one setting.

use super::drive::Victim;
use std::collections::{HashMap, VecDeque};

/// Thousandths for the small queue, thousandths remembered, how many small caches remember at least, but at most four times their frames, whether a block that comes back must win against the oldest, and whether a new one must have come more often. A small
/// queue of all frames is in the order of the last use.
pub(crate) type Setting = (usize, usize, usize, bool, bool);

pub(crate) const SETTINGS: [Setting; 6] = [
    (100, 900, 1024, true, false),
    (250, 900, 0, false, false),
    (20, 2000, 1024, false, false),
    (10, 900, 0, true, false),
    (10, 900, 1024, false, true),
    (1000, 900, 0, false, false),
];

/// In the main queue uses are counted up to this.
const MOST_USES: u8 = 3;

#[derive(Clone, Copy)]
struct Page {
    frame: u32,
    /// How often after the first use, as far as that counts.
    uses: u8,
    /// In the small queue: how many had come to it. In the main queue: how many had left the cache at the last use. Where it
    /// waits: how many had come to the cache.
    since: u64,
}

/// What came while the cache filled, in a FIFO, and a small FIFO before a CLOCK, oldest first, with one setting. Beside them a FIFO of
/// what was read ahead and not used yet, and of what could not leave in its turn.
pub(crate) struct Queues {
    first: VecDeque<Page>,
    /// A setting that counts has ruled: what is in `first` has not been used since it left the small queue, or the main one.
    probation: bool,
    /// By frame: how often its block had come; once where nothing was noted.
    counts: HashMap<u32, u8>,
    /// None left yet.
    fills: bool,
    /// How many were to leave.
    leaving: u64,
    /// What speaks against the first ones, less what speaks for them.
    against: i64,
    /// By period of departures: did the first ones stay? And the period for which that was asked last.
    stayed: HashMap<u64, bool>,
    period: Option<u64>,
    /// They had to leave once.
    parted: bool,
    /// The setting for loops took over, and first ones may begin anew; and when they did, in departures.
    refills: bool,
    begun: u64,
    /// Departures of a period.
    long: u64,
    small: VecDeque<Page>,
    main: VecDeque<Page>,
    /// True with those that their next use takes to the main queue.
    waiting: VecDeque<(Page, bool)>,
    /// The blocks that left the small queue, by number, oldest first.
    ghosts: VecDeque<u64>,
    left: u64,
    /// To the small queue and the first one.
    came: u64,
    /// To the cache.
    inserted: u64,
    capacity: usize,
    setting: Setting,
}

impl Queues {
    pub(crate) fn new(capacity: usize, setting: Setting) -> Self {
        Self {
            first: VecDeque::new(),
            probation: false,
            counts: HashMap::new(),
            fills: true,
            leaving: 0,
            against: 0,
            stayed: HashMap::new(),
            refills: false,
            begun: 0,
            period: None,
            parted: false,
            // A sixteenth of the frames, rounded down to a power of two.
            long: 1 << (capacity / 16).clamp(1, 64).ilog2(),
            small: VecDeque::new(),
            main: VecDeque::new(),
            waiting: VecDeque::new(),
            ghosts: VecDeque::new(),
            left: 0,
            came: 0,
            inserted: 0,
            capacity,
            setting,
        }
    }

    pub(crate) fn set(&mut self, setting: Setting) {
        self.setting = setting;
        self.refills = setting.0 == 10 && setting.3 && !self.fills;
        self.forget();
    }

    pub(crate) fn is_lru(&self) -> bool {
        self.setting.0 == 1000
    }

    /// Of any setting: four times the frames, but no more than 1024 or twice the frames.
    fn most_ghosts(&self) -> usize {
        (4 * self.capacity).min(1024.max(2 * self.capacity))
    }

    /// Frames that the small queue may have before it gives some.
    fn target(&self) -> usize {
        (self.capacity * self.setting.0 / 1000).max(1)
    }

    /// A use within this many arrivals is an echo of the first.
    fn window(&self) -> u64 {
        self.target() as u64 / 2
    }

    /// As many are remembered as the setting says, and of them those among the latest that left: twice the most that any setting
    /// remembers, at least 64, rounded up to a power of two, less two.
    fn forget(&mut self) {
        let least = self.setting.2.min(4 * self.capacity) * 1000 / self.capacity;
        let most = self.capacity * self.setting.1.max(least) / 1000;
        let latest = (2 * self.most_ghosts().max(32)).next_power_of_two() as u64 - 2;
        while self.ghosts.len() > most {
            self.ghosts.pop_front();
        }
        let left = self.left;
        self.ghosts.retain(|ghost| left - ghost < latest);
    }

    pub(crate) fn len(&self) -> usize {
        self.first.len() + self.small.len() + self.main.len() + self.waiting.len()
    }

    pub(crate) fn remembers(&self, ghost: u64) -> bool {
        self.ghosts.contains(&ghost)
    }

    /// One comes back: does it belong to the main queue?
    pub(crate) fn returns(&mut self, ghost: u64) -> bool {
        if !self.remembers(ghost) {
            return false;
        }
        self.ghosts.retain(|&other| other != ghost);
        if self.setting.4 {
            return false;
        }
        let would_be_here = self.left - ghost < self.capacity as u64;
        let stayed = self.stayed.get(&(ghost / self.long)) == Some(&true);
        let waits = !self.first.is_empty() && !self.probation;
        if waits && would_be_here {
            self.against += i64::from(stayed && ghost > self.begun);
        } else if waits && self.setting.3 && !self.parted {
            return false;
        }
        let large = self.main.len() + self.waiting.len() + self.target();
        let full = self.len().min(large) >= self.capacity;
        let (left, waiting) = (self.left, self.small.len() as u64);
        let Some(oldest) = self.main.front_mut() else {
            return true;
        };
        if !self.setting.3 || !full || oldest.uses == 0 {
            return true;
        }
        let (away, idle) = (left - ghost + waiting, left - oldest.since);
        if idle > away {
            oldest.uses = 0;
        }
        idle > away
    }

    pub(crate) fn insert(&mut self, frame: u32, returns: bool, ahead: bool) {
        self.inserted += 1;
        if ahead {
            self.wait(frame, returns);
        } else {
            self.enter(frame, returns);
        }
    }

    fn wait(&mut self, frame: u32, returns: bool) {
        let (uses, since) = (0, self.inserted);
        self.waiting
            .push_back((Page { frame, uses, since }, returns));
    }

    fn enter(&mut self, frame: u32, returns: bool) {
        if returns && !self.is_lru() {
            return self.enter_main(frame);
        }
        self.came += 1;
        let page = Page {
            frame,
            uses: returns.into(),
            since: self.came,
        };
        if self.fills && self.len() + self.target() < self.capacity {
            self.first.push_back(page);
        } else {
            self.small.push_back(page);
        }
    }

    fn enter_main(&mut self, frame: u32) {
        self.main.push_back(Page {
            frame,
            uses: 0,
            since: self.left,
        });
    }

    pub(crate) fn waits(&self, frame: u32) -> bool {
        self.waiting.iter().any(|page| page.0.frame == frame)
    }

    /// Under LRU: takes the page out of its queue and makes it the newest of the small one.
    fn renew(&mut self, frame: u32) {
        let newest = self.small.back().is_some_and(|page| page.frame == frame);
        let mut used = None;
        for queue in [&mut self.first, &mut self.small, &mut self.main] {
            let at = queue.iter().position(|page| page.frame == frame);
            used = used.or(at.and_then(|at| queue.remove(at)));
        }
        let mut page = used.unwrap();
        page.uses = (page.uses + 1).min(MOST_USES);
        if !newest {
            self.came += 1;
            page.since = self.came;
        }
        self.small.push_back(page);
    }

    /// Says whether the use changed anything that is not the order of LRU.
    pub(crate) fn touch(&mut self, frame: u32) -> bool {
        if self.is_lru() && !self.waits(frame) {
            let first = self.first.iter().find(|page| page.frame == frame);
            let told = first.is_some_and(|page| page.uses == 0 && page.since <= self.leaving);
            self.against -= i64::from(told && !self.probation);
            self.renew(frame);
            return false;
        }
        let (left, came, window) = (self.left, self.came, self.window());
        let this = |page: &&mut Page| page.frame == frame;
        let mut changed = false;
        if let Some(page) = self.main.iter_mut().find(this) {
            changed = page.since != left || page.uses < MOST_USES;
            page.since = left;
            page.uses = (page.uses + 1).min(MOST_USES);
        }
        let late = |page: &&mut Page| this(page) && came.wrapping_sub(page.since) >= window;
        if let Some(page) = self.first.iter_mut().find(late) {
            changed = page.uses < MOST_USES;
            let told = page.uses == 0 && page.since <= self.leaving;
            self.against -= i64::from(told && !self.probation);
            page.uses = (page.uses + 1).min(MOST_USES);
        }
        if let Some(page) = self.small.iter_mut().find(late) {
            changed = page.uses < MOST_USES;
            page.uses = (page.uses + 1).min(MOST_USES);
        }
        if let Some(at) = self.waiting.iter().position(|page| page.0.frame == frame) {
            changed = true;
            let returns = self.waiting.remove(at).unwrap().1;
            self.enter(frame, returns);
        }
        changed
    }

    /// The block that leaves, and its number among the ghosts unless it left from the main queue. A block that may not leave in its
    /// turn waits; each waiting block is asked once.
    pub(crate) fn evict(&mut self, unpinned: &dyn Fn(u32) -> bool) -> Option<Victim> {
        if self.setting.4 {
            self.overflow();
        }
        self.fills = false;
        // What the small queue has too much joins the first ones, until they had to leave once. Where none is left, there are others once the
        // setting for loops has taken over.
        let long = self.small.len() > self.target();
        let mut leaves = false;
        if !self.probation && (!self.first.is_empty() || (long && self.refills)) {
            if self.first.is_empty() {
                (self.parted, self.against, self.refills) = (false, 0, false);
                (self.begun, self.period) = (self.left, None);
                self.leaving = self.small[0].since - 1;
            }
            self.leaving += 1;
            let period = (self.left + 1) / self.long;
            if self.period != Some(period) {
                self.period = Some(period);
                self.stayed.insert(period, self.against <= 0);
                self.parted |= self.against > 0;
                self.against /= 2;
            }
            leaves = !self.stayed[&period];
            if long && !self.parted {
                self.first.extend(self.small.pop_front());
            }
        }
        let patience = (self.capacity as u64 / 4).max(1);
        let mut asked = 0;
        loop {
            let queued = self.len() - self.waiting.len();
            let late = |page: &(Page, bool)| self.inserted - page.0.since >= patience;
            if asked < self.waiting.len() && (queued == 0 || late(&self.waiting[0])) {
                let (page, returns) = self.waiting.pop_front()?;
                if unpinned(page.frame) {
                    return Some(self.ghost_of(page.frame));
                }
                self.wait(page.frame, returns);
                asked += 1;
                continue;
            }
            if self.setting.4 {
                let (frame, from_small) = self.least()?;
                match (unpinned(frame), from_small) {
                    (false, _) => self.wait(frame, true),
                    (true, true) => return Some(self.ghost_of(frame)),
                    (true, false) => return Some((frame, None)),
                }
                continue;
            }
            if self.is_lru() {
                // What was not used since LRU rules, and then the oldest.
                let oldest = self.main.pop_front().map(|page| (page, true));
                let oldest = oldest.or_else(|| self.first.pop_front().map(|page| (page, false)));
                let oldest = oldest.or_else(|| self.small.pop_front().map(|page| (page, false)));
                let (page, main) = oldest?;
                match (unpinned(page.frame), main) {
                    (false, _) => self.wait(page.frame, true),
                    (true, true) => return Some((page.frame, None)),
                    (true, false) => return Some(self.ghost_of(page.frame)),
                }
                continue;
            }
            // A few that wait take no place from the first ones.
            let few = self.small.len() + self.waiting.len().min(self.target() / 4) < self.target();
            let from_first = leaves || few || self.small.is_empty();
            let any_first = !self.first.is_empty();
            if let Some(page) = self.first.pop_front_if(|_| from_first) {
                match page.uses {
                    1.. => self.enter_main(page.frame),
                    _ if !unpinned(page.frame) => self.wait(page.frame, true),
                    _ => return Some(self.ghost_of(page.frame)),
                }
            } else if self.small.len() >= self.target() || self.main.is_empty() || any_first {
                let page = self.small.pop_front()?;
                match page.uses {
                    1.. => self.enter_main(page.frame),
                    _ if !unpinned(page.frame) => self.wait(page.frame, true),
                    _ => return Some(self.ghost_of(page.frame)),
                }
            } else {
                let mut page = self.main.pop_front()?;
                match page.uses {
                    times @ 1.. => {
                        page.uses = times - 1;
                        self.main.push_back(page);
                    }
                    _ if !unpinned(page.frame) => self.wait(page.frame, true),
                    _ => return Some((page.frame, None)),
                }
            }
        }
    }

    /// How often the block of a frame had come.
    pub(crate) fn set_count(&mut self, frame: u32, count: u8) {
        self.counts.insert(frame, count);
    }

    fn count(&self, page: &Page) -> u8 {
        self.counts.get(&page.frame).copied().unwrap_or(1)
    }

    /// Of a small queue that is too long two go to the probation.
    fn overflow(&mut self) {
        self.probation = true;
        for _ in 0..2 {
            if self.small.len() > self.target() {
                let page = self.small.pop_front().unwrap();
                self.enter_probation(page);
            }
        }
    }

    /// The newest there, of which every use counts.
    fn enter_probation(&mut self, page: Page) {
        let since = self.came.wrapping_sub(self.capacity as u64);
        self.first.push_back(Page { since, ..page });
    }

    /// Where blocks are counted: the oldest of the small queue or of the probation, whichever came less often, and whether it was the
    /// former. If it is the latter, the former goes to the probation.
    fn least(&mut self) -> Option<(u32, bool)> {
        if self.first.is_empty() && self.main.is_empty() {
            return Some((self.small.pop_front()?.frame, true));
        }
        // Used blocks leave the probation, of which four fifths of what is behind the small queue are protected.
        let most = (self.capacity - self.target()) * 4 / 5;
        loop {
            if self.first.is_empty() || self.main.len() > most {
                let Some(mut page) = self.main.pop_front() else {
                    break;
                };
                if page.uses == 0 {
                    self.enter_probation(page);
                } else {
                    page.uses -= 1;
                    self.main.push_back(page);
                }
            } else if let Some(page) = self.first.pop_front_if(|page| page.uses > 0) {
                self.enter_main(page.frame);
            } else {
                break;
            }
        }
        if self.small.len() >= self.target() {
            let mut newcomer = self.small.pop_front().unwrap();
            if self.count(&newcomer) <= self.count(&self.first[0]) {
                return Some((newcomer.frame, true));
            }
            newcomer.uses = 0;
            self.enter_probation(newcomer);
        }
        Some((self.first.pop_front()?.frame, false))
    }

    /// One leaves and is remembered.
    fn ghost_of(&mut self, frame: u32) -> Victim {
        self.left += 1;
        self.ghosts.push_back(self.left);
        self.forget();
        (frame, Some(self.left))
    }

    pub(crate) fn remove(&mut self, frame: u32) {
        self.first.retain(|page| page.frame != frame);
        self.small.retain(|page| page.frame != frame);
        self.main.retain(|page| page.frame != frame);
        self.waiting.retain(|page| page.0.frame != frame);
    }
}

impl Queues {
    /// The pages stay where they are; what was remembered is lost.
    pub(crate) fn resize(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.ghosts.clear();
        self.counts.clear();
        self.stayed.clear();
        self.period = None;
        self.set(SETTINGS[0]);
    }
}
