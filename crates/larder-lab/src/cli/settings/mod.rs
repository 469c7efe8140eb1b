//! `settings`: what was measured, as a file that the library reads.

mod file;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::failure::{Failure, Outcome};
use super::global::Global;
use super::output::print_json;
use super::{output, results};
use crate::machine;
use crate::model::{Analysis, RunRecord};
use file::Settings;

/// Settings for the library, from the latest runs on this machine.
#[derive(Debug, Args)]
#[command(after_help = "\
PagePool::builder().settings(..) takes the file; so does every program that has LARDER_SETTINGS=FILE in its environment.

Examples:
  larder settings                     print it
  larder settings --write             beside the database
  larder settings --write larder.toml
  larder settings --check larder.toml")]
pub(super) struct SettingsArgs {
    /// Runs to take them from [default: the latest of each experiment on this machine].
    #[arg(value_name = "RUN", conflicts_with = "check")]
    runs: Vec<String>,
    /// Write the file [default: larder-settings.toml beside the database].
    #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with = "check")]
    write: Option<Option<PathBuf>>,
    /// Check that the library accepts a file.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
}

/// Name of the file beside the database.
pub(super) const NAME: &str = "larder-settings.toml";

pub(super) fn run(global: &Global, args: &SettingsArgs, out: &mut dyn Write) -> Outcome {
    if let Some(path) = &args.check {
        return check(global, path, out);
    }
    let store = results::open(global)?;
    let mut runs = results::several(&store, &args.runs)?;
    let imported = store.imported()?;
    if let Some(run) = runs.iter().find(|r| imported.contains(&r.id)) {
        return Err(Failure::refused(format!(
            "run {} was imported; settings come from runs that were taken here: `larder measure {}`",
            run.id,
            output::plain(&run.experiment)
        )));
    }
    if args.runs.is_empty() {
        // Another machine's best setting is no setting for this one.
        let here = machine::capture().fingerprint;
        runs.retain(|r| r.machine.fingerprint == here);
    }
    let analysed: Vec<(RunRecord, Analysis)> = runs
        .into_iter()
        .map(|r| {
            let a = results::analyse(&r);
            (r, a)
        })
        .collect();
    let settings = Settings::from_runs(&analysed).map_err(Failure::io)?;
    tell_refused(global, &settings);
    if settings.is_empty() && !settings.refused().is_empty() {
        return Err(Failure::refused(
            "every run that supports a setting is noisy; measure again when the machine is quiet",
        ));
    }
    if settings.is_empty() {
        return Err(Failure::refused(
            "no run on this machine supports a setting; take one with `larder measure`",
        ));
    }
    let text = settings.to_toml();
    match &args.write {
        None if global.json => print_json(out, &settings.to_json()),
        None => Ok(out.write_all(text.as_bytes())?),
        Some(path) => {
            let path = match path {
                Some(path) => path.clone(),
                None => results::beside(global, NAME)?,
            };
            output::write_file(&path, &text)?;
            if global.json {
                print_json(out, &json!({ "schema": 1, "written": path }))
            } else {
                Ok(writeln!(out, "{}", path.display())?)
            }
        }
    }
}

/// Says which recommendations are not taken, unless the user asked for silence.
fn tell_refused(global: &Global, settings: &Settings<'_>) {
    for why in settings.refused() {
        output::hint(global, &output::plain(why));
    }
}

/// Writes the settings that these runs support; `None` when they support none.
pub(super) fn write(
    global: &Global,
    analysed: &[(RunRecord, Analysis)],
    path: PathBuf,
) -> Result<Option<PathBuf>, Failure> {
    let settings = Settings::from_runs(analysed).map_err(Failure::io)?;
    tell_refused(global, &settings);
    if settings.is_empty() {
        return Ok(None);
    }
    output::write_file(&path, &settings.to_toml())?;
    Ok(Some(path))
}

fn check(global: &Global, path: &std::path::Path, out: &mut dyn Write) -> Outcome {
    larder::settings::Settings::read(path).map_err(Failure::io)?;
    if global.json {
        return print_json(out, &json!({ "schema": 1, "valid": true }));
    }
    writeln!(out, "{}: good", path.display())?;
    Ok(())
}
