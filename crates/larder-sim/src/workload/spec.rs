//! A workload by its name and parameters, where a trace may stand: `zipf:blocks=1000,alpha=0.9`.

use std::path::{Path, PathBuf};

use super::super::{ReadOptions, TraceError};
use super::Records;
use super::made::{MADE, Made};

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
enum Value {
    Whole(u64),
    Real(f64),
    File(PathBuf),
}

/// A workload by name.
///
/// ```
/// use larder_sim::{ReadOptions, workload::Spec};
///
/// let spec = Spec::parse("loop:blocks=3,requests=7")?.expect("a workload");
/// let blocks: Vec<u64> = spec.records(&ReadOptions::default())?.map(|record| record.block).collect();
/// assert_eq!(blocks, [0, 1, 2, 0, 1, 2, 0]);
/// assert!(Spec::parse("web.csv")?.is_none());
///
/// let why = Spec::parse("loop:blocks=0").unwrap_err();
/// assert!(why.to_string().contains("blocks is '0'; it is a whole number from 1 to"));
/// # Ok::<(), larder_sim::TraceError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Spec {
    made: &'static Made,
    /// In the order of the workload's parameters.
    values: Vec<Value>,
}

/// Is this name of a trace that of a workload: `NAME:` or `NAME:PARAMETER=VALUE,…`?
fn parts(text: &str) -> Option<(&'static Made, &str)> {
    let (name, rest) = text.split_once(':')?;
    Some((MADE.iter().find(|made| made.name == name)?, rest))
}

/// The message for a missing file that is named like a workload.
pub(in super::super) fn hint(path: &Path) -> Option<String> {
    let name = path.to_str()?;
    let made = MADE.iter().find(|made| made.name == name)?;
    Some(format!(
        "no such file; the workload of this name is written {}:",
        made.name
    ))
}

impl Spec {
    /// Reads a name; none if it is that of a file. A file whose name begins like a workload is named with `./` before it.
    ///
    /// # Errors
    /// [`TraceError::Workload`], which names the parameter and says what is allowed.
    pub fn parse(text: &str) -> Result<Option<Self>, TraceError> {
        let Some((made, rest)) = parts(text) else {
            return Ok(None);
        };
        let fault = |fault| TraceError::Workload {
            workload: made.name,
            fault,
        };
        let mut values: Vec<Option<Value>> = vec![None; made.parameters.len()];
        for given in rest.split(',').filter(|given| !given.trim().is_empty()) {
            let (name, value) = given.split_once('=').unwrap_or((given, ""));
            let (name, value) = (name.trim(), value.trim());
            let at = made.parameters.iter().position(|p| p.name == name);
            let Some(at) = at else {
                return Err(fault(format!(
                    "there is no parameter '{name}'; there are {}",
                    made.names()
                )));
            };
            if values[at].is_some() {
                return Err(fault(format!("{name} is given twice")));
            }
            values[at] = Some(made.parameters[at].value(value).map_err(fault)?);
        }
        let filled = made.parameters.iter().zip(values);
        let values = filled.map(|(parameter, value)| match value {
            Some(value) => Ok(value),
            None => parameter.value(&parameter.or_else()).map_err(fault),
        });
        Ok(Some(Self {
            made,
            values: values.collect::<Result<_, _>>()?,
        }))
    }

    fn find(&self, name: &str) -> Option<&Value> {
        let at = self.made.parameters.iter().position(|p| p.name == name)?;
        self.values.get(at)
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

    /// The workload's records, from the beginning. `options` are for the file that one of them reads.
    ///
    /// # Errors
    /// [`TraceError`] of that file.
    pub fn records(&self, options: &ReadOptions) -> Result<Records, TraceError> {
        (self.made.make)(self, options)
    }
}

impl Parameter {
    /// The default.
    fn or_else(&self) -> String {
        let named = match self.range {
            Range::File => std::env::var("LARDER_DBENCH").ok(),
            _ => None,
        };
        named.unwrap_or_else(|| self.default.to_owned())
    }

    fn value(&self, text: &str) -> Result<Value, String> {
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
