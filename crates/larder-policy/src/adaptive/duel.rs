//! Which expert does better, and is the difference more than chance?

use super::guard::Guard;
use super::knobs::{AS_LRU, BY_FREQUENCY, COUNT, EXPERTS};
use super::trial::Trial;

/// Accesses between two decisions.
const EPOCH: u32 = 64;
/// Accesses, in frames of a miniature, after which an observation counts half; and the fewest, since a small cache cannot tell the
/// experts apart sooner.
const HALF_LIFE: f64 = 16.0;
const LEAST_HALF_LIFE: f64 = 4000.0;
/// A lead of so few is none.
const LEAST_LEAD: f64 = 2.0;
/// A lead counts from this many standard deviations on. More would keep the rule from settings that are slightly better, as in loops,
/// where each setting keeps other blocks and all are often right. A needless change costs no more than the move.
const DEVIATIONS: f64 = 1.0;
/// The cost of moving the border between the queues, in misses for each frame of the move; and where there will be no border, since
/// then the main queue is given up. Measured in 144 cells of public traces, as the expert's hits that the cache lacked until two uses a
/// frame after the move: 0.18 in the mean of moves within the queues, 0.14 of those to LRU, and under 0.1 in most. The constants stay: what
/// each cache measured changed no figure in their stead, and one constant for both put a cell 12 points behind the best rule.
const MOVE_COST: f64 = 0.1;
const MOVE_TO_LRU_COST: f64 = 0.3;
/// What a move to the expert by frequency costs besides, in misses a frame: the cache has no counts when it first rules, and old ones
/// later. Without it one or two cells of 144 more are below LRU.
const MOVE_TO_FREQUENCY_COST: f64 = 0.1;

/// What an expert that did not keep what it promised must be ahead besides, in misses a frame, times 3, 15 and 63 for one doubt, two and three.
const DOUBT: f64 = 0.25;

/// Compares the experts in pairs, on the accesses where one of the two hit and the other did not. The lead among these is a sum
/// of signs, whose variance under the hypothesis that both are equal is their number (McNemar's test); both decay, so that the
/// rule follows a workload that changes.
#[derive(Debug)]
pub(super) struct Duel {
    /// By loser and winner: hits of the second where the first missed, less the contrary.
    lead: [[f64; COUNT]; COUNT],
    /// By pair: accesses on which they differed.
    differ: [[f64; COUNT]; COUNT],
    /// Accesses since the last decision, by the experts that hit, a bit each.
    seen: [u32; 1 << COUNT],
    decay: f64,
    frames: f64,
    accesses: u32,
    ruling: usize,
    switches: u64,
    guard: Guard,
    trial: Trial,
}

impl Duel {
    pub(super) fn new(frames: usize) -> Self {
        let half_life = (HALF_LIFE * frames as f64).max(LEAST_HALF_LIFE);
        Self {
            lead: [[0.0; COUNT]; COUNT],
            differ: [[0.0; COUNT]; COUNT],
            seen: [0; 1 << COUNT],
            decay: 0.5_f64.powf(f64::from(EPOCH) / half_life),
            frames: frames as f64,
            accesses: 0,
            ruling: 0,
            switches: 0,
            guard: Guard::new(frames),
            trial: Trial::new(frames),
        }
    }

    /// Counts which experts hit on one access, a bit each, and whether the cache itself did, if that can be compared. Returns the expert that
    /// rules from now on, if that changes.
    pub(super) fn observe(&mut self, hits: u8, own: Option<bool>) -> Option<usize> {
        self.seen[usize::from(hits)] += 1;
        if let Some(before) = own.and_then(|own| self.trial.observe(self.ruling, hits, own)) {
            return Some(self.go_back(before));
        }
        let doubts = self.trial.doubts(AS_LRU);
        if self.guard.observe(hits >> AS_LRU & 1 == 1, own, doubts) {
            return self.fall_back();
        }
        self.accesses += 1;
        if self.accesses < EPOCH {
            return None;
        }
        self.accesses = 0;
        self.count();
        let better = match self.guard.holds() {
            true => None,
            false => self.better(),
        };
        for pair in self.lead.iter_mut().chain(&mut self.differ).flatten() {
            *pair *= self.decay;
        }
        if let Some(expert) = better {
            self.rule(expert);
        }
        better
    }

    /// An expert rules from now on, and must keep what its miniature promises.
    fn rule(&mut self, expert: usize) {
        self.switches += 1;
        self.trial.begin(self.ruling);
        self.ruling = expert;
    }

    /// The expert that rules has not kept what its miniature promised, and the one before would have done better. What it was ahead is
    /// forgotten.
    fn go_back(&mut self, before: usize) -> usize {
        self.count();
        let failed = self.ruling;
        if failed == AS_LRU {
            self.guard.let_go();
        }
        (0..COUNT).for_each(|other| self.forget_lead(failed, other));
        self.switches += 1;
        self.ruling = before;
        before
    }

    /// LRU rules. What the others were ahead of it is forgotten.
    fn fall_back(&mut self) -> Option<usize> {
        self.count();
        (0..COUNT).for_each(|other| self.forget_lead(other, AS_LRU));
        let changes = self.ruling != AS_LRU;
        if changes {
            self.rule(AS_LRU);
        }
        changes.then_some(AS_LRU)
    }

    /// What one expert was ahead of another is forgotten.
    fn forget_lead(&mut self, winner: usize, loser: usize) {
        let lead = &mut self.lead[loser][winner];
        *lead = lead.min(0.0);
        self.lead[winner][loser] = -*lead;
    }

    /// Adds what was seen since the last decision.
    fn count(&mut self) {
        for (hits, seen) in self.seen.iter_mut().enumerate() {
            let times = f64::from(core::mem::take(seen));
            if times == 0.0 {
                continue;
            }
            let hit = |at: &usize| hits >> at & 1 == 1;
            for loser in (0..COUNT).filter(|at| !hit(at)) {
                for winner in (0..COUNT).filter(hit) {
                    self.lead[loser][winner] += times;
                    self.lead[winner][loser] -= times;
                    self.differ[loser][winner] += times;
                    self.differ[winner][loser] += times;
                }
            }
        }
    }

    /// The expert with the largest lead over the one that rules, among those whose lead is neither chance nor less than the
    /// move would cost.
    fn better(&self) -> Option<usize> {
        let mine = EXPERTS[self.ruling].small();
        let mut best = None;
        let mut most = 0.0;
        for (other, &lead) in self.lead[self.ruling].iter().enumerate() {
            let moved = f64::from(mine.abs_diff(EXPERTS[other].small())) / 1000.0;
            let chance = DEVIATIONS * self.differ[self.ruling][other].sqrt();
            let cost = match other {
                AS_LRU => MOVE_TO_LRU_COST * moved,
                BY_FREQUENCY => MOVE_COST * moved + MOVE_TO_FREQUENCY_COST,
                _ => MOVE_COST * moved,
            };
            let doubt = DOUBT * f64::from((1_u32 << (2 * self.trial.doubts(other))) - 1);
            if lead > chance + (cost + doubt) * self.frames + LEAST_LEAD && lead > most {
                (best, most) = (Some(other), lead);
            }
        }
        best
    }

    pub(super) fn ruling(&self) -> usize {
        self.ruling
    }

    pub(super) fn switches(&self) -> u64 {
        self.switches
    }

    /// How often the guard gave the cache to LRU.
    pub(super) fn falls(&self) -> u64 {
        self.guard.falls()
    }
}
