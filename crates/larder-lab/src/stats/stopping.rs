//! When a group has had enough rounds: at fixed looks, by precision, and never by significance.
//!
//! A runner that looks after every round and stops when a difference shows finds differences that do not
//! exist. So a group is looked at after 10, 15, 22, 33, 50 and 75 rounds only. A look asks how wide the
//! intervals are, not where they lie, and all looks share the 5 % that a single look would have.

use crate::model::StopReason;

use super::defaults::{LEVEL, LOOKS, QUICK_FIRST_LOOK, STEADY_SHARE};
use super::paired_ratio;

/// The rounds at which a group of these limits is looked at, the last of them `max_rounds`.
///
/// `min_rounds` under 10 puts a look there (not under 6, where no interval exists).
///
/// ```
/// use larder_lab::stats::stopping::looks;
/// assert_eq!(looks(10, 40), [10, 15, 22, 33, 40]);
/// assert_eq!(looks(6, 15), [6, 10, 15]);
/// assert_eq!(looks(4, 4), [4]);
/// ```
#[must_use]
pub fn looks(min_rounds: u32, max_rounds: u32) -> Vec<u32> {
    let first = min_rounds.max(QUICK_FIRST_LOOK);
    let mut looks: Vec<u32> = std::iter::once(first)
        .chain(LOOKS)
        .filter(|n| *n >= first && *n < max_rounds)
        .collect();
    looks.dedup();
    looks.push(max_rounds);
    looks
}

/// Half the width of the interval of a / b in logarithms: 0.05 means about five percent to either side.
/// `None` while no interval of this level exists.
#[must_use]
pub fn half_width(a: &[f64], b: &[f64], level: f64) -> Option<f64> {
    let ratio = paired_ratio(a, b, level).ok()?;
    Some(0.5 * (ratio.hi.ln() - ratio.lo.ln()))
}

/// The stopping rule of one group, with what it saw at earlier looks.
///
/// ```
/// use larder_lab::{model::StopReason, stats::stopping::Stopping};
/// let mut rule = Stopping::new(10, 75, 0.02);
/// assert!(!rule.is_look(9) && rule.is_look(10));
/// assert_eq!(rule.decide(10, Some(0.08)), None);
/// assert_eq!(rule.decide(15, Some(0.018)), Some(StopReason::Precise));
/// ```
#[derive(Debug, Clone)]
pub struct Stopping {
    looks: Vec<u32>,
    target: f64,
    /// Round and widest half width of the looks so far.
    seen: Vec<(u32, f64)>,
}

impl Stopping {
    /// The rule for a group that wants `target` as the half width of its widest ratio.
    #[must_use]
    pub fn new(min_rounds: u32, max_rounds: u32, target: f64) -> Self {
        Self {
            looks: looks(min_rounds, max_rounds),
            target,
            seen: Vec::new(),
        }
    }

    /// Whether to call [`decide`](Self::decide) after this many complete rounds.
    #[must_use]
    pub fn is_look(&self, rounds: u32) -> bool {
        self.looks.contains(&rounds) || self.looks.last().is_some_and(|last| rounds >= *last)
    }

    /// The confidence at which to compute the half width at this look, so that all looks together stay
    /// within 5 %.
    #[must_use]
    pub fn level(&self, rounds: u32) -> f64 {
        let alpha = 1.0 - LEVEL;
        let share = alpha / self.looks.len() as f64;
        // With few samples no interval is that sure; such a look spends what the surest one costs.
        let least = |n: u32| 0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX) - 1);
        let dear: Vec<f64> = self
            .looks
            .iter()
            .map(|n| least(*n))
            .filter(|cost| *cost > share)
            .collect();
        let cheap = self.looks.len() - dear.len();
        if least(rounds) > share {
            return 1.0 - least(rounds);
        }
        1.0 - ((alpha - dear.iter().sum::<f64>()) / cheap.max(1) as f64).max(least(rounds))
    }

    /// Whether to stop after `rounds` complete rounds. `widest` is the largest [`half_width`] among the
    /// group's cells against the reference at [`level`](Self::level); `None` when one of them has no interval.
    ///
    /// - [`StopReason::Precise`]: the widest is at most the target;
    /// - [`StopReason::Rounds`]: the last look has come;
    /// - [`StopReason::NoiseSteady`]: at this look and the one before the width fell by less than half of
    ///   what more rounds should have given (`1 - sqrt(before / now)`): waiting longer buys nothing.
    pub fn decide(&mut self, rounds: u32, widest: Option<f64>) -> Option<StopReason> {
        if !self.is_look(rounds) {
            return None;
        }
        if let Some(width) = widest.filter(|w| w.is_finite()) {
            self.seen.push((rounds, width));
            if width <= self.target {
                return Some(StopReason::Precise);
            }
        }
        if self.looks.last().is_some_and(|last| rounds >= *last) {
            return Some(StopReason::Rounds);
        }
        self.steady().then_some(StopReason::NoiseSteady)
    }

    fn steady(&self) -> bool {
        let stalls = self
            .seen
            .windows(2)
            .rev()
            .take_while(|two| {
                let (before, now) = (two[0], two[1]);
                let hoped = 1.0 - (f64::from(before.0) / f64::from(now.0)).sqrt();
                before.1 - now.1 < STEADY_SHARE * hoped * before.1
            })
            .count();
        stalls >= 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_fixed_and_end_at_the_most() {
        assert_eq!(looks(10, 75), LOOKS);
        assert_eq!(looks(6, 22), [6, 10, 15, 22]);
        assert_eq!(looks(12, 20), [12, 15, 20]);
        assert_eq!(looks(1, 12), [6, 10, 12]);
        assert_eq!(looks(10, 100), [10, 15, 22, 33, 50, 75, 100]);
        assert_eq!(looks(10, 10), [10]);
        // Limits the wrong way round, and none.
        assert_eq!(looks(30, 8), [8]);
        assert_eq!(looks(0, 0), [0]);
    }

    #[test]
    fn all_looks_together_spend_five_percent() {
        for (least, most) in [
            (10, 75),
            (6, 22),
            (6, 10),
            (6, 6),
            (7, 75),
            (10, 10),
            (6, 75),
        ] {
            let rule = Stopping::new(least, most, 0.02);
            let spent: f64 = looks(least, most)
                .iter()
                .map(|n| 1.0 - rule.level(*n))
                .sum();
            assert!(spent <= 0.05 + 1e-12, "{least} {most}: {spent}");
            // At every look an interval exists, or the look could never stop.
            for n in looks(least, most) {
                let x: Vec<f64> = (1..=n).map(f64::from).collect();
                let ones = vec![1.0; x.len()];
                assert!(
                    half_width(&x, &ones, rule.level(n)).is_some(),
                    "{least} {most} {n}"
                );
            }
        }
    }

    #[test]
    fn nothing_is_decided_between_looks() {
        let mut rule = Stopping::new(10, 75, 0.02);
        for rounds in [0, 6, 9, 11, 14, 32] {
            assert_eq!(rule.decide(rounds, Some(0.0)), None);
        }
        assert_eq!(rule.decide(22, Some(0.0)), Some(StopReason::Precise));
    }

    #[test]
    fn the_last_look_stops_whatever_it_sees() {
        for widest in [None, Some(9.0), Some(f64::NAN), Some(f64::INFINITY)] {
            let mut rule = Stopping::new(10, 33, 0.02);
            assert_eq!(rule.decide(33, widest), Some(StopReason::Rounds));
            assert_eq!(rule.decide(34, widest), Some(StopReason::Rounds));
        }
    }

    #[test]
    fn noise_that_falls_as_it_should_goes_on() {
        let mut rule = Stopping::new(10, 75, 0.01);
        for n in [10, 15, 22, 33, 50] {
            assert_eq!(rule.decide(n, Some(0.3 / f64::from(n).sqrt())), None);
        }
    }

    #[test]
    fn noise_that_does_not_fall_at_two_looks_stops() {
        let mut rule = Stopping::new(10, 75, 0.01);
        assert_eq!(rule.decide(10, Some(0.10)), None);
        assert_eq!(rule.decide(15, Some(0.099)), None);
        assert_eq!(rule.decide(22, Some(0.101)), Some(StopReason::NoiseSteady));
        // One stall alone may be chance.
        let mut rule = Stopping::new(10, 75, 0.01);
        assert_eq!(rule.decide(10, Some(0.10)), None);
        assert_eq!(rule.decide(15, Some(0.099)), None);
        assert_eq!(rule.decide(22, Some(0.07)), None);
        assert_eq!(rule.decide(33, Some(0.07)), None);
    }
}
