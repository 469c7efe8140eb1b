//! Why a statistic could not be computed.

/// Input that a statistic refuses, with what to do about it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StatsError {
    /// No interval of the asked level exists for so few samples.
    #[error("{what} needs at least {need} samples, got {have}: take more rounds")]
    TooFew {
        /// The statistic.
        what: &'static str,
        /// Samples given.
        have: usize,
        /// Samples needed.
        need: usize,
    },
    /// A sample is infinite or not a number.
    #[error("{what}: sample {index} is {value}, not a finite number: drop the sample or its cell")]
    NotFinite {
        /// The statistic.
        what: &'static str,
        /// Place in the input, from 0.
        index: usize,
        /// The sample.
        value: f64,
    },
    /// A ratio was asked of a sample that is zero or negative.
    #[error(
        "{what}: sample {index} is {value}, a ratio needs positive numbers: compare differences instead"
    )]
    NotPositive {
        /// The statistic.
        what: &'static str,
        /// Place in the input, from 0.
        index: usize,
        /// The sample.
        value: f64,
    },
    /// Paired input of different lengths.
    #[error("{what} needs pairs, got {a} and {b} samples: pair them by round first")]
    Unpaired {
        /// The statistic.
        what: &'static str,
        /// Length of the first.
        a: usize,
        /// Length of the second.
        b: usize,
    },
    /// A confidence level outside (0, 1).
    #[error("a confidence level lies between 0 and 1, got {0}: 0.95 is usual")]
    BadLevel(f64),
    /// An argument out of its range.
    #[error("{what}: {name} is {value}, it must be {must}")]
    BadArgument {
        /// The statistic.
        what: &'static str,
        /// The argument.
        name: &'static str,
        /// Its value.
        value: f64,
        /// What it must be.
        must: &'static str,
    },
    /// The columns of a fit depend on one another.
    #[error(
        "the fit has no unique answer: column {column} depends on the others: leave it out or vary it"
    )]
    Singular {
        /// The column, from 0.
        column: usize,
    },
}

/// The level as the probability left on each side.
pub(crate) fn tail(level: f64) -> Result<f64, StatsError> {
    if level > 0.0 && level < 1.0 {
        Ok((1.0 - level) / 2.0)
    } else {
        Err(StatsError::BadLevel(level))
    }
}

/// All finite, or the first that is not.
pub(crate) fn finite(what: &'static str, xs: &[f64]) -> Result<(), StatsError> {
    match xs.iter().position(|x| !x.is_finite()) {
        None => Ok(()),
        Some(index) => Err(StatsError::NotFinite {
            what,
            index,
            value: xs[index],
        }),
    }
}

/// All finite and above zero, or the first that is not.
pub(crate) fn positive(what: &'static str, xs: &[f64]) -> Result<(), StatsError> {
    finite(what, xs)?;
    match xs.iter().position(|x| *x <= 0.0) {
        None => Ok(()),
        Some(index) => Err(StatsError::NotPositive {
            what,
            index,
            value: xs[index],
        }),
    }
}

/// A sorted copy.
pub(crate) fn sorted(xs: &[f64]) -> Vec<f64> {
    let mut sorted = xs.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}
