//! A model of the default rule's queues, with one setting.

use super::drive::Victim;
use std::collections::{HashMap, VecDeque};

/// Thousandths for the small queue, thousandths remembered, and whether who comes back must win against the oldest.
pub(crate) type Setting = (usize, usize, bool);

pub(crate) const SETTINGS: [Setting; 5] = [
    (100, 900, false),
    (250, 900, false),
    (20, 900, false),
    (20, 2000, false),
    (10, 900, true),
];

/// In the main queue uses are counted up to this.
const MOST_USES: u8 = 3;

#[derive(Clone, Copy, PartialEq)]
enum Use {
    /// Read ahead and not used yet; true if it came back.
    Never(bool),
    /// So often after the first, as far as that counts.
    Again(u8),
}

#[derive(Clone, Copy)]
struct Page {
    frame: u32,
    used: Use,
    /// In the small queue: how many had come to it. In the main queue: how many had left the cache at the last use.
    since: u64,
}

/// What came while the cache filled, in a FIFO, and a small FIFO before a CLOCK, oldest first, with one setting.
pub(crate) struct Queues {
    first: VecDeque<Page>,
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
    /// Departures of a period.
    long: u64,
    small: VecDeque<Page>,
    main: VecDeque<Page>,
    /// Who left the small queue, by number, oldest first.
    ghosts: VecDeque<u64>,
    left: u64,
    came: u64,
    capacity: usize,
    setting: Setting,
}

impl Queues {
    pub(crate) fn new(capacity: usize, setting: Setting) -> Self {
        Self {
            first: VecDeque::new(),
            fills: true,
            leaving: 0,
            against: 0,
            stayed: HashMap::new(),
            period: None,
            parted: false,
            // A sixteenth of the frames, rounded down to a power of two.
            long: 1 << (capacity / 16).clamp(1, 64).ilog2(),
            small: VecDeque::new(),
            main: VecDeque::new(),
            ghosts: VecDeque::new(),
            left: 0,
            came: 0,
            capacity,
            setting,
        }
    }

    pub(crate) fn set(&mut self, setting: Setting) {
        self.setting = setting;
        self.forget();
    }

    /// Frames that the small queue may have before it gives some.
    fn target(&self) -> usize {
        (self.capacity * self.setting.0 / 1000).max(1)
    }

    /// A use within so many arrivals is an echo of the first.
    fn window(&self) -> u64 {
        self.target() as u64 / 2
    }

    /// As many are remembered as the setting says, and of them those among the latest that left: twice the most that any setting
    /// remembers, at least 64, rounded up to a power of two, less two.
    fn forget(&mut self) {
        let most = self.capacity * self.setting.1 / 1000;
        let latest = (2 * (2 * self.capacity).max(32)).next_power_of_two() as u64 - 2;
        while self.ghosts.len() > most {
            self.ghosts.pop_front();
        }
        let left = self.left;
        self.ghosts.retain(|ghost| left - ghost < latest);
    }

    pub(crate) fn len(&self) -> usize {
        self.first.len() + self.small.len() + self.main.len()
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
        if !self.first.is_empty() && self.stayed.get(&(ghost / self.long)) == Some(&true) {
            self.against += 1;
        }
        let full = self.len() >= self.capacity && self.main.len() + self.target() >= self.capacity;
        let (left, waiting) = (self.left, self.small.len() as u64);
        let Some(oldest) = self.main.front_mut() else {
            return true;
        };
        if !self.setting.2 || !full || oldest.used == Use::Again(0) {
            return true;
        }
        let (away, idle) = (left - ghost + waiting, left - oldest.since);
        if idle > away {
            oldest.used = Use::Again(0);
        }
        idle > away
    }

    pub(crate) fn insert(&mut self, frame: u32, returns: bool, ahead: bool) {
        if ahead {
            self.enter_small(frame, Use::Never(returns));
        } else if returns {
            self.enter_main(frame);
        } else if self.fills && self.len() + self.target() < self.capacity {
            self.enter_small(frame, Use::Again(0));
            self.first.extend(self.small.pop_back());
        } else {
            self.enter_small(frame, Use::Again(0));
        }
    }

    fn enter_small(&mut self, frame: u32, used: Use) {
        self.came += 1;
        let since = self.came;
        self.small.push_back(Page { frame, used, since });
    }

    fn enter_main(&mut self, frame: u32) {
        self.main.push_back(Page {
            frame,
            used: Use::Again(0),
            since: self.left,
        });
    }

    pub(crate) fn touch(&mut self, frame: u32) {
        let (left, came, window) = (self.left, self.came, self.window());
        if let Some(page) = self.main.iter_mut().find(|page| page.frame == frame) {
            page.since = left;
            if let Use::Again(times) = page.used {
                page.used = Use::Again((times + 1).min(MOST_USES));
            }
            return;
        }
        if let Some(page) = self.first.iter_mut().find(|page| page.frame == frame) {
            if let Use::Again(times) = page.used
                && came - page.since >= window
            {
                self.against -= i64::from(times == 0 && page.since <= self.leaving);
                page.used = Use::Again((times + 1).min(MOST_USES));
            }
            return;
        }
        let at = self.small.iter().position(|page| page.frame == frame);
        let page = &mut self.small[at.unwrap()];
        match page.used {
            Use::Never(returns) => {
                self.small.remove(at.unwrap());
                self.insert(frame, returns, false);
            }
            Use::Again(times) if came - page.since >= window => {
                page.used = Use::Again((times + 1).min(MOST_USES));
            }
            Use::Again(_) => {}
        }
    }

    /// Who leaves, and its number among the ghosts if it left from the small queue. Who may not leave goes round in its queue, at
    /// most as often as there are pages, in the main queue as often for each use and once more.
    pub(crate) fn evict(&mut self, loose: &dyn Fn(u32) -> bool) -> Option<Victim> {
        let (mut steps_small, mut steps_main) = (self.len(), 4 * self.len());
        self.fills = false;
        self.leaving += 1;
        let period = (self.left + 1) / self.long;
        if self.period != Some(period) {
            self.period = Some(period);
            self.stayed.insert(period, self.against <= 0);
            self.against /= 2;
        }
        // Once they had to leave, nobody joins them.
        let stayed = self.stayed.values().all(|&stayed| stayed) && !self.parted;
        self.parted = !stayed;
        let waits = self.small.front().map(|page| page.used);
        if stayed
            && !self.first.is_empty()
            && self.small.len() > self.target()
            && matches!(waits, Some(Use::Again(_)))
        {
            self.first.extend(self.small.pop_front());
        }
        loop {
            let from_first =
                !self.stayed[&period] || self.small.len() < self.target() || steps_small == 0;
            if let Some(page) = self.first.pop_front_if(|_| from_first) {
                match page.used {
                    Use::Again(1..) => self.enter_main(page.frame),
                    _ if !loose(page.frame) => self.small.push_back(page),
                    _ => return Some(self.ghost_of(page.frame)),
                }
                continue;
            }
            let may_small = steps_small > 0 && !self.small.is_empty();
            let may_main = steps_main > 0 && !self.main.is_empty();
            if may_small && (self.small.len() >= self.target() || !may_main) {
                steps_small -= 1;
                let page = self.small.pop_front()?;
                match page.used {
                    Use::Again(1..) => self.enter_main(page.frame),
                    _ if !loose(page.frame) => self.small.push_back(page),
                    _ => return Some(self.ghost_of(page.frame)),
                }
            } else if may_main {
                steps_main -= 1;
                let mut page = self.main.pop_front()?;
                match page.used {
                    Use::Again(times @ 1..) => {
                        page.used = Use::Again(times - 1);
                        self.main.push_back(page);
                    }
                    _ if !loose(page.frame) => self.main.push_back(page),
                    _ => return Some((page.frame, None)),
                }
            } else {
                return None;
            }
        }
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
    }
}

impl Queues {
    /// The pages stay where they are; what was remembered is lost.
    pub(crate) fn resize(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.ghosts.clear();
        self.stayed.clear();
        self.period = None;
        self.set(SETTINGS[0]);
    }
}
