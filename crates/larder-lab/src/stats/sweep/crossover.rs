//! Where one curve falls below another.

use super::ascending;
use crate::stats::defaults::RESAMPLES;
use crate::stats::error::{positive, tail};
use crate::stats::hodges_lehmann::centre;
use crate::stats::{Estimate, PairedTest, StatsError, bootstrap, holm, log_ratios, paired_ratio};

/// One place where two curves cross.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crossing {
    /// The size at which they are equal, by interpolation in its logarithm, with a BCa interval over
    /// resampled rounds. Approximate.
    pub at: Estimate,
    /// The nearest measured size on either side at which the two are surely apart.
    pub between: (f64, f64),
    /// True when a costs more below and less above.
    pub a_wins_above: bool,
}

/// Whether and where two curves cross.
#[derive(Debug, Clone, PartialEq)]
pub enum Crossover {
    /// One is ahead at every size.
    NoneInRange {
        /// True when it is a.
        a_ahead: bool,
    },
    /// They cross once.
    One(Crossing),
    /// They cross more than once, in order of size.
    Several(Vec<Crossing>),
    /// At these sizes they cannot be distinguished, and at no size does the sign of the difference surely change.
    Touches {
        /// The sizes.
        at: Vec<f64>,
    },
}

/// Where the costs of `a` and `b` cross over `sizes`, both measured at the same sizes in the same rounds:
/// `a[round][size]`.
///
/// At each size the logarithm of the paired ratio is tested, with Holm over the sizes; a crossing lies between
/// two sizes with opposite sure signs. Within them it is where the line through the Hodges-Lehmann centres, in
/// the logarithm of size, passes zero (the middle of the first and last passage if there are several).
///
/// # Errors
/// [`StatsError::BadArgument`] when sizes do not ascend or are not positive, [`StatsError::Unpaired`],
/// [`StatsError::NotPositive`], [`StatsError::NotFinite`], [`StatsError::TooFew`] under 6 rounds at 95 %.
pub fn crossover(
    sizes: &[f64],
    a: &[Vec<f64>],
    b: &[Vec<f64>],
    level: f64,
    seed: u64,
) -> Result<Crossover, StatsError> {
    const WHAT: &str = "a crossover";
    let tail = tail(level)?;
    ascending(WHAT, sizes)?;
    positive(WHAT, sizes)?;
    if sizes.is_empty() {
        return Err(StatsError::TooFew {
            what: WHAT,
            have: 0,
            need: 1,
        });
    }
    let curves = Curves::new(WHAT, sizes, a, b)?;
    let signs = curves.signs(level)?;
    let sure: Vec<usize> = (0..signs.len()).filter(|j| signs[*j] != 0).collect();
    let crossings: Vec<Crossing> = sure
        .windows(2)
        .filter(|two| signs[two[0]] != signs[two[1]])
        .map(|two| curves.crossing(two[0], two[1], signs[two[0]] > 0, (tail, level), seed))
        .collect();
    Ok(match (crossings.as_slice(), signs.contains(&0)) {
        ([], false) => Crossover::NoneInRange {
            a_ahead: signs[0] < 0,
        },
        ([], true) => Crossover::Touches {
            at: (0..sizes.len())
                .filter(|j| signs[*j] == 0)
                .map(|j| sizes[j])
                .collect(),
        },
        ([one], _) => Crossover::One(*one),
        _ => Crossover::Several(crossings),
    })
}

struct Curves {
    ln_sizes: Vec<f64>,
    sizes: Vec<f64>,
    /// ln(a / b), by size, then by round.
    logs: Vec<Vec<f64>>,
    rounds: usize,
}

impl Curves {
    fn new(
        what: &'static str,
        sizes: &[f64],
        a: &[Vec<f64>],
        b: &[Vec<f64>],
    ) -> Result<Self, StatsError> {
        let unpaired = |a: usize, b: usize| Err(StatsError::Unpaired { what, a, b });
        if a.len() != b.len() {
            return unpaired(a.len(), b.len());
        }
        let mut logs = vec![Vec::with_capacity(a.len()); sizes.len()];
        for (a, b) in a.iter().zip(b) {
            if a.len() != sizes.len() || b.len() != sizes.len() {
                return unpaired(a.len(), b.len());
            }
            for (logs, log) in logs.iter_mut().zip(log_ratios(a, b)?) {
                logs.push(log);
            }
        }
        Ok(Self {
            ln_sizes: sizes.iter().map(|s| s.ln()).collect(),
            sizes: sizes.to_vec(),
            logs,
            rounds: a.len(),
        })
    }

    /// The sure sign of ln(a / b) at each size; 0 where it is not sure.
    fn signs(&self, level: f64) -> Result<Vec<i8>, StatsError> {
        let alpha = 1.0 - level;
        let test = PairedTest::choose(self.rounds, self.sizes.len(), alpha);
        let mut p = Vec::with_capacity(self.logs.len());
        for logs in &self.logs {
            // An interval must exist, whatever the test could say of fewer rounds.
            paired_ratio(&vec![1.0; logs.len()], &vec![1.0; logs.len()], level)?;
            p.push(test.p(logs)?);
        }
        Ok(holm(&p)
            .into_iter()
            .zip(&self.logs)
            .map(|(p, logs)| match (p <= alpha, centre(logs) > 0.0) {
                (false, _) => 0,
                (true, true) => 1,
                (true, false) => -1,
            })
            .collect())
    }

    fn crossing(
        &self,
        from: usize,
        to: usize,
        a_wins_above: bool,
        (tail, level): (f64, f64),
        seed: u64,
    ) -> Crossing {
        let all: Vec<usize> = (0..self.rounds).collect();
        let value = self.passage(from, to, a_wins_above, &all);
        let mut found = Vec::with_capacity(RESAMPLES);
        bootstrap::rounds(self.rounds, RESAMPLES, seed, |drawn| {
            found.push(self.passage(from, to, a_wins_above, drawn));
        });
        let without: Vec<f64> = (0..self.rounds)
            .map(|out| {
                let rest: Vec<usize> = all.iter().copied().filter(|r| *r != out).collect();
                self.passage(from, to, a_wins_above, &rest)
            })
            .collect();
        let (lo, hi) = bootstrap::bca(&found, value, &without, tail);
        Crossing {
            at: Estimate {
                value: value.exp(),
                lo: lo.min(value).exp(),
                hi: hi.max(value).exp(),
                n: self.rounds,
                level,
            },
            between: (self.sizes[from], self.sizes[to]),
            a_wins_above,
        }
    }

    /// The logarithm of the size, between two indices, at which the centres of some rounds pass zero. Where
    /// an end has the wrong sign in these rounds, that end.
    fn passage(&self, from: usize, to: usize, falling: bool, rounds: &[usize]) -> f64 {
        let heights: Vec<f64> = (from..=to)
            .map(|j| {
                let drawn: Vec<f64> = rounds.iter().map(|r| self.logs[j][*r]).collect();
                if falling {
                    centre(&drawn)
                } else {
                    -centre(&drawn)
                }
            })
            .collect();
        let xs = &self.ln_sizes[from..=to];
        let last = heights.len() - 1;
        if heights[0] <= 0.0 {
            return xs[0];
        }
        if heights[last] >= 0.0 {
            return xs[last];
        }
        let passages: Vec<f64> = (0..last)
            .filter(|j| (heights[*j] > 0.0) != (heights[j + 1] > 0.0))
            .map(|j| {
                let share = heights[j] / (heights[j] - heights[j + 1]);
                xs[j] + share * (xs[j + 1] - xs[j])
            })
            .collect();
        match (passages.first(), passages.last()) {
            (Some(first), Some(last)) => 0.5 * (first + last),
            _ => xs[0],
        }
    }
}
