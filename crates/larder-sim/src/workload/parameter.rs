//! The parameters of a workload and their values.

use std::path::{Path, PathBuf};

/// The values that a parameter may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Range {
    /// A whole number from the first to the second, both included.
    Whole(u64, u64),
    /// A number from the first to the second, both included.
    Real(f64, f64),
    /// The name of a file.
    File,
}

/// A parameter of a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its default.
    pub default: &'static str,
    /// Its possible values.
    pub range: Range,
    /// What it is, in half a sentence.
    pub about: &'static str,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Whole(u64),
    Real(f64),
    File(PathBuf),
}

/// The values of a workload, by their parameters.
#[derive(Debug, Clone)]
pub(super) struct Values(pub(super) Vec<(&'static str, Value)>);

impl Values {
    fn find(&self, name: &str) -> Option<&Value> {
        let value = self.0.iter().find(|(given, _)| *given == name);
        value.map(|(_, value)| value)
    }

    /// A whole number, already within its range.
    pub(super) fn whole(&self, name: &str) -> u64 {
        match self.find(name) {
            Some(Value::Whole(n)) => *n,
            _ => 0,
        }
    }

    /// The same, for parameters whose range fits.
    pub(super) fn small(&self, name: &str) -> u32 {
        u32::try_from(self.whole(name)).unwrap_or(u32::MAX)
    }

    pub(super) fn real(&self, name: &str) -> f64 {
        match self.find(name) {
            Some(Value::Real(x)) => *x,
            _ => 0.0,
        }
    }

    pub(super) fn file(&self, name: &str) -> &Path {
        match self.find(name) {
            Some(Value::File(path)) => path,
            _ => Path::new(""),
        }
    }
}

impl Parameter {
    /// The default.
    pub(super) fn or_else(&self) -> String {
        let named = match self.range {
            Range::File => std::env::var("LARDER_DBENCH").ok(),
            _ => None,
        };
        named.unwrap_or_else(|| self.default.to_owned())
    }

    pub(super) fn value(&self, text: &str) -> Result<Value, String> {
        let value = match self.range {
            Range::Whole(least, most) => whole(text)
                .filter(|n| (least..=most).contains(n))
                .map(Value::Whole),
            Range::Real(least, most) => text
                .parse()
                .ok()
                .filter(|x| (least..=most).contains(x))
                .map(Value::Real),
            Range::File => (!text.is_empty()).then(|| Value::File(PathBuf::from(text))),
        };
        value.ok_or_else(|| format!("{} is '{text}'; it is {}", self.name, self.range))
    }
}

/// `1000`, `1e6` or `2.5e6`.
fn whole(text: &str) -> Option<u64> {
    if let Ok(n) = text.parse() {
        return Some(n);
    }
    let x: f64 = text.parse().ok()?;
    // Below 2^53 every whole number is exact.
    let exact = x.fract() == 0.0 && (0.0..9_007_199_254_740_992.0).contains(&x);
    (exact
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || b".eE+".contains(&b)))
    .then_some(x as u64)
}

impl core::fmt::Display for Range {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Whole(least, most) => write!(f, "a whole number from {least} to {most}"),
            Self::Real(least, most) => write!(f, "a number from {least} to {most}"),
            Self::File => f.write_str("the name of a file, without a comma"),
        }
    }
}
