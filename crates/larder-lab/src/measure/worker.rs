//! The inside of a fresh process: one contestant, one run, one line of JSON.

use std::io::Write;

use anyhow::{Context, bail};

use super::{Experiment, Usage};
use crate::model::{Measures, Params};

/// Runs one contestant of an experiment in this process and returns its measures with the process's own costs.
///
/// # Errors
/// An unknown contestant, one that is not available here, one that fails, and measures that are not finite.
pub fn work(
    experiment: &dyn Experiment,
    contestant: &str,
    params: &Params,
) -> anyhow::Result<Measures> {
    let contestants = experiment.contestants();
    let Some(found) = contestants.iter().find(|c| c.name() == contestant) else {
        let known: Vec<_> = contestants.iter().map(|c| c.name()).collect();
        bail!(
            "experiment '{}' has no contestant '{contestant}'; it has: {}",
            experiment.name(),
            known.join(", ")
        );
    };
    found.available().map_err(anyhow::Error::msg)?;
    let before = Usage::of_this_process();
    let measures = found.run(params)?;
    let measures = Usage::of_this_process().since(before, measures);
    finite(&measures)?;
    Ok(measures)
}

/// JSON has no infinity and an interval of one means nothing: a contestant that divides by zero must say so.
fn finite(measures: &Measures) -> anyhow::Result<()> {
    match measures.0.iter().find(|(_, v)| !v.is_finite()) {
        Some((name, v)) => bail!("measure '{name}' is {v}, not a finite number"),
        None => Ok(()),
    }
}

/// The body of the hidden subcommand: prints one line of JSON.
///
/// # Errors
/// Those of [`work`], and a closed standard output.
pub(crate) fn serve(
    experiment: &dyn Experiment,
    contestant: &str,
    params: &str,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    // When the lab is killed, its worker must not run on and disturb the next measurement.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let params: Params =
        serde_json::from_str(params).with_context(|| format!("--params is not JSON: {params}"))?;
    let measures = work(experiment, contestant, &params)?;
    writeln!(out, "{}", serde_json::to_string(&measures)?)?;
    Ok(())
}
