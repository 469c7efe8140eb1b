//! A workload by its name and parameters, where a trace may stand: `zipf:blocks=1000,alpha=0.9`.

use std::path::Path;

use super::super::{ReadOptions, SimError};
use super::Records;
use super::made::{MADE, Made};
use super::parameter::{Value, Values};

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
/// # Ok::<(), larder_sim::SimError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Spec {
    made: &'static Made,
    values: Values,
}

/// Is this name of a trace that of a workload: `NAME:` or `NAME:PARAMETER=VALUE,…`?
fn parts(text: &str) -> Option<(&'static Made, &str)> {
    let (name, rest) = text.split_once(':')?;
    Some((MADE.iter().find(|made| made.name == name)?, rest))
}

/// The message for a missing file that is named like a workload.
pub(crate) fn hint(path: &Path) -> Option<String> {
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
    /// [`SimError::Workload`], which names the parameter and says what is allowed.
    pub fn parse(text: &str) -> Result<Option<Self>, SimError> {
        let Some((made, rest)) = parts(text) else {
            return Ok(None);
        };
        let fault = |fault| SimError::Workload {
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
            Some(value) => Ok((parameter.name, value)),
            None => {
                let value = parameter.value(&parameter.or_else()).map_err(fault)?;
                Ok((parameter.name, value))
            }
        });
        Ok(Some(Self {
            made,
            values: Values(values.collect::<Result<_, _>>()?),
        }))
    }

    /// The workload's records, from the beginning. `options` are for the file that one of them reads.
    ///
    /// # Errors
    /// [`SimError`] of that file.
    pub fn records(&self, options: &ReadOptions) -> Result<Records, SimError> {
        (self.made.make)(&self.values, options)
    }
}
