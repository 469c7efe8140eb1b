//! Which values of a factor the user wants.

use std::fmt;
use std::str::FromStr;

use crate::model::Params;

/// Values of one factor, written `FACTOR=VALUE[,VALUE…]`.
///
/// ```
/// use larder_lab::measure::FactorFilter;
/// use larder_lab::model::Params;
///
/// let few: FactorFilter = "pages=16,64".parse()?;
/// assert!(few.keeps(&Params::new().with("pages", 64)));
/// assert!(!few.keeps(&Params::new().with("pages", 17)));
/// assert!(few.keeps(&Params::new().with("depth", 17)), "without the factor there is nothing to object to");
/// # Ok::<(), larder_lab::measure::BadFilter>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactorFilter {
    factor: String,
    values: Vec<String>,
}

/// A filter that does not say what it keeps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no filter; write FACTOR=VALUE[,VALUE…], for instance pages=16,64")]
pub struct BadFilter(String);

impl FromStr for FactorFilter {
    type Err = BadFilter;

    fn from_str(text: &str) -> Result<Self, BadFilter> {
        let bad = || BadFilter(text.to_owned());
        let (factor, values) = text.split_once('=').ok_or_else(bad)?;
        let values: Vec<_> = values.split(',').map(|v| v.trim().to_owned()).collect();
        if factor.trim().is_empty() || values.iter().any(String::is_empty) {
            return Err(bad());
        }
        Ok(Self {
            factor: factor.trim().to_owned(),
            values,
        })
    }
}

impl fmt::Display for FactorFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.factor, self.values.join(","))
    }
}

impl FactorFilter {
    /// The factor's name.
    pub(super) fn factor(&self) -> &str {
        &self.factor
    }

    /// The values to keep.
    pub(super) fn values(&self) -> &[String] {
        &self.values
    }

    /// The filter with those of its values that pass; `None` where none does.
    pub(super) fn only(&self, passes: impl Fn(&str) -> bool) -> Option<Self> {
        let values: Vec<String> = self.values.iter().filter(|v| passes(v)).cloned().collect();
        (!values.is_empty()).then(|| Self {
            factor: self.factor.clone(),
            values,
        })
    }

    /// Whether a cell with these factors is wanted.
    #[must_use]
    pub fn keeps(&self, params: &Params) -> bool {
        params
            .iter()
            .find(|(name, _)| *name == self.factor)
            .is_none_or(|(_, value)| self.values.contains(&value.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_nothing_is_refused_with_an_example() {
        for text in ["", "pages", "=1", "pages=", "pages=1,,2", " = "] {
            let error = text.parse::<FactorFilter>().unwrap_err().to_string();
            assert!(error.contains(&format!("'{text}'")), "{error}");
            assert!(error.contains("pages=16,64"), "{error}");
        }
    }

    #[test]
    fn names_are_values_too() {
        let filter: FactorFilter = "shape=pair, deep".parse().unwrap();
        assert!(filter.keeps(&Params::new().with_text("shape", "deep")));
        assert!(!filter.keeps(&Params::new().with_text("shape", "zeroed")));
    }
}
