//! Which expert does better, and is the difference more than chance?

use super::knobs::{COUNT, EXPERTS};

/// Accesses between two decisions.
const EPOCH: u32 = 64;
/// Accesses, in frames of a miniature, after which an observation counts half.
const HALF_LIFE: f64 = 16.0;
/// A lead counts from this many standard deviations on. More would keep the rule from settings that are slightly better, as in loops,
/// where each setting keeps other blocks and all are often right. A needless change costs no more than the move.
const DEVIATIONS: f64 = 1.0;
/// The cost of moving the border between the queues, in misses for each frame of the move.
const MOVE_COST: f64 = 0.1;

/// Compares the experts in pairs, on the accesses where one of the two hit and the other did not. The lead among these is a sum
/// of signs, whose variance under the hypothesis that both are equal is their number (McNemar's test); both decay, so that the
/// rule follows a workload that changes.
#[derive(Debug)]
pub(super) struct Duel {
    /// By loser and winner: hits of the second where the first missed, less the contrary.
    lead: [[f64; COUNT]; COUNT],
    /// By pair: accesses on which they differed.
    differ: [[f64; COUNT]; COUNT],
    decay: f64,
    frames: f64,
    accesses: u32,
    ruling: usize,
    switches: u64,
}

impl Duel {
    pub(super) fn new(frames: usize) -> Self {
        Self {
            lead: [[0.0; COUNT]; COUNT],
            differ: [[0.0; COUNT]; COUNT],
            decay: 0.5_f64.powf(f64::from(EPOCH) / (HALF_LIFE * frames as f64)),
            frames: frames as f64,
            accesses: 0,
            ruling: 0,
            switches: 0,
        }
    }

    /// Counts which experts hit on one access. Returns the expert that rules from now on, if that changes.
    pub(super) fn observe(&mut self, hits: [bool; COUNT]) -> Option<usize> {
        if hits.iter().any(|&hit| hit != hits[0]) {
            self.count(hits);
        }
        self.accesses += 1;
        if self.accesses < EPOCH {
            return None;
        }
        self.accesses = 0;
        let better = self.better();
        for pair in self.lead.iter_mut().chain(&mut self.differ).flatten() {
            *pair *= self.decay;
        }
        if let Some(expert) = better {
            self.ruling = expert;
            self.switches += 1;
        }
        better
    }

    fn count(&mut self, hits: [bool; COUNT]) {
        for loser in (0..COUNT).filter(|&at| !hits[at]) {
            for winner in (0..COUNT).filter(|&at| hits[at]) {
                self.lead[loser][winner] += 1.0;
                self.lead[winner][loser] -= 1.0;
                self.differ[loser][winner] += 1.0;
                self.differ[winner][loser] += 1.0;
            }
        }
    }

    /// The expert with the largest lead over the one that rules, among those whose lead is neither chance nor less than the
    /// move would cost.
    fn better(&self) -> Option<usize> {
        let mine = EXPERTS[self.ruling].knobs.small;
        let mut best = None;
        let mut most = 0.0;
        for (other, &lead) in self.lead[self.ruling].iter().enumerate() {
            let moved = f64::from(mine.abs_diff(EXPERTS[other].knobs.small)) / 1000.0;
            let chance = DEVIATIONS * self.differ[self.ruling][other].sqrt();
            if lead > chance + MOVE_COST * moved * self.frames + 1.0 && lead > most {
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
}
