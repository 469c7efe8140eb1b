//! How fast the weights learn: a rate that climbs as long as the hit ratio climbs with it.

use super::super::random::Dice;

/// The rate's bounds.
const LEAST: f64 = 0.001;
const MOST: f64 = 1.0;
/// Differences of rates and of hit ratios are taken between numbers rounded to this part of one.
const THOUSANDTHS: f64 = 1000.0;
/// So many periods without a gain set the rate back to the first.
const PATIENCE: u32 = 10;
/// A step without a direction, up or down.
const UP: f64 = 1.25;
const DOWN: f64 = 0.75;
/// Where such a step goes from the bounds.
const BELOW_MOST: f64 = 0.9;
const ABOVE_LEAST: f64 = 0.005;

fn rounded(value: f64) -> f64 {
    (value * THOUSANDTHS).round() / THOUSANDTHS
}

/// The rate, looked at again once in as many accesses as there are frames.
#[derive(Debug)]
pub(super) struct Rate {
    value: f64,
    /// In the period before.
    before: f64,
    first: f64,
    period: u32,
    /// Accesses until the period ends.
    left: u32,
    hits: u32,
    /// The hit ratio of the period before.
    ratio: f64,
    /// Periods with fewer hits, or none.
    idle: u32,
    /// Periods with fewer hits.
    worse: u32,
}

impl Rate {
    pub(super) fn new(frames: usize) -> Self {
        let value = (2.0 * core::f64::consts::LN_2 / frames as f64).sqrt();
        Self {
            value,
            before: 0.0,
            first: value.clamp(LEAST, MOST),
            period: frames as u32,
            left: frames as u32,
            hits: 0,
            ratio: 0.0,
            idle: 0,
            worse: 0,
        }
    }

    pub(super) fn value(&self) -> f64 {
        self.value
    }

    /// An access. The last of a period ends it and counts for the next.
    #[inline]
    pub(super) fn access(&mut self, hit: bool, dice: &mut Dice) {
        self.left -= 1;
        if self.left == 0 {
            self.left = self.period;
            self.end_period(dice);
        }
        self.hits += u32::from(hit);
    }

    #[cold]
    fn end_period(&mut self, dice: &mut Dice) {
        let ratio = rounded(f64::from(self.hits) / f64::from(self.period));
        let gain = rounded(ratio - self.ratio);
        let moved = rounded(self.value) - rounded(self.before);
        self.before = self.value;
        self.ratio = ratio;
        self.hits = 0;
        if gain * moved != 0.0 {
            // The rate goes on in the direction that paid.
            let step = (self.value * moved).abs().copysign(gain * moved);
            self.value = (self.value + step).clamp(LEAST, MOST);
            (self.idle, self.worse) = (0, 0);
            return;
        }
        if gain < 0.0 {
            self.worse += 1;
            self.idle += 1;
        } else if gain == 0.0 && ratio == 0.0 {
            self.idle += 1;
        }
        if self.idle >= PATIENCE {
            self.idle = 0;
            self.value = self.first;
        } else if gain < 0.0 && self.worse >= PATIENCE {
            self.worse = 0;
            self.value = self.first;
        } else if gain < 0.0 {
            self.value = self.anywhere(dice);
        }
    }

    fn anywhere(&self, dice: &mut Dice) -> f64 {
        if self.value >= MOST {
            BELOW_MOST
        } else if self.value <= LEAST {
            ABOVE_LEAST
        } else if dice.part() < 0.5 {
            (self.value * UP).min(MOST)
        } else {
            (self.value * DOWN).max(LEAST)
        }
    }
}
