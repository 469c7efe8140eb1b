//! What is measured: a contestant with the values of its factors, and what one run of it yields.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The value of one factor of a sweep.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Factor {
    /// A count or a size; the factor's name implies its unit.
    Int(i64),
    /// A choice by name.
    Text(String),
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(n) => n.fmt(f),
            Self::Text(s) => s.fmt(f),
        }
    }
}

/// The factors of one cell by name, in a fixed order so that equal cells have equal text.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Params(BTreeMap<String, Factor>);

impl Params {
    /// No factors.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a whole-number factor.
    #[must_use]
    pub fn with(mut self, name: &str, value: i64) -> Self {
        self.0.insert(name.to_owned(), Factor::Int(value));
        self
    }

    /// Adds or replaces a factor that is a name.
    #[must_use]
    pub fn with_text(mut self, name: &str, value: &str) -> Self {
        self.0
            .insert(name.to_owned(), Factor::Text(value.to_owned()));
        self
    }

    /// A whole-number factor.
    ///
    /// # Errors
    /// Names the factor when it is absent or not a number.
    pub fn int(&self, name: &str) -> anyhow::Result<i64> {
        match self.0.get(name) {
            Some(Factor::Int(n)) => Ok(*n),
            Some(Factor::Text(s)) => anyhow::bail!("factor '{name}' is '{s}', not a whole number"),
            None => anyhow::bail!("factor '{name}' is missing"),
        }
    }

    /// A whole-number factor that counts something.
    ///
    /// # Errors
    /// Names the factor when it is absent, not a number, or negative.
    pub fn count(&self, name: &str) -> anyhow::Result<usize> {
        let n = self.int(name)?;
        usize::try_from(n)
            .map_err(|_| anyhow::anyhow!("factor '{name}' is {n}, but it counts something"))
    }

    /// A factor that is a name.
    ///
    /// # Errors
    /// Names the factor when it is absent or a number.
    pub fn text(&self, name: &str) -> anyhow::Result<&str> {
        match self.0.get(name) {
            Some(Factor::Text(s)) => Ok(s),
            Some(Factor::Int(n)) => anyhow::bail!("factor '{name}' is {n}, not a name"),
            None => anyhow::bail!("factor '{name}' is missing"),
        }
    }

    /// All factors in name order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Factor)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v))
    }
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (k, v)) in self.iter().enumerate() {
            if i > 0 {
                f.write_str(" ")?;
            }
            write!(f, "{k}={v}")?;
        }
        Ok(())
    }
}

/// One thing that is timed: a contestant with its factors.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Cell {
    /// The contestant's name, unique within its experiment.
    pub contestant: String,
    /// Its factors.
    #[serde(default)]
    pub params: Params,
    /// True for the second name under which the group's reference runs: the A/A twin, whose distance
    /// from the reference is the floor below which differences are not differences.
    #[serde(default)]
    pub twin: bool,
}

impl Cell {
    /// A cell of a contestant.
    #[must_use]
    pub fn new(contestant: &str, params: Params) -> Self {
        Self {
            contestant: contestant.to_owned(),
            params,
            twin: false,
        }
    }

    /// The A/A twin of this cell.
    #[must_use]
    pub fn as_twin(&self) -> Self {
        Self {
            twin: true,
            ..self.clone()
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.contestant)?;
        if self.params.iter().next().is_some() {
            write!(f, " {}", self.params)?;
        }
        if self.twin {
            f.write_str(" (twin)")
        } else {
            Ok(())
        }
    }
}

/// Which direction of a metric is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Times and costs.
    Lower,
    /// Rates.
    Higher,
    /// Counts that explain and do not judge.
    Neither,
}

/// A number that a contestant reports, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Key in [`Measures`], for instance `ns_per_page`.
    pub name: &'static str,
    /// Unit as printed, for instance `ns`.
    pub unit: &'static str,
    /// Which direction is good.
    pub better: Better,
    /// What it is, in half a sentence.
    pub about: &'static str,
}

impl Metric {
    /// A time or a cost: less is better.
    #[must_use]
    pub const fn cost(name: &'static str, unit: &'static str, about: &'static str) -> Self {
        Self::new(name, unit, Better::Lower, about)
    }

    /// A rate: more is better.
    #[must_use]
    pub const fn rate(name: &'static str, unit: &'static str, about: &'static str) -> Self {
        Self::new(name, unit, Better::Higher, about)
    }

    /// A number that explains and does not judge.
    #[must_use]
    pub const fn count(name: &'static str, unit: &'static str, about: &'static str) -> Self {
        Self::new(name, unit, Better::Neither, about)
    }

    const fn new(
        name: &'static str,
        unit: &'static str,
        better: Better,
        about: &'static str,
    ) -> Self {
        Self {
            name,
            unit,
            better,
            about,
        }
    }
}

/// What one run of one cell yields: metric name to value. All values are finite.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Measures(pub BTreeMap<String, f64>);

impl Measures {
    /// No measures yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one measure.
    #[must_use]
    pub fn with(mut self, name: &str, value: f64) -> Self {
        self.0.insert(name.to_owned(), value);
        self
    }

    /// One measure by metric name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }
}
