//! `settings`: what was measured, as a file that the library reads.

mod cache;
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
use cache::write_keeping_cache;
pub(super) use cache::{CacheChoice, write_cache};
use file::Settings;

/// Settings for the library, from the latest runs on this machine.
#[derive(Debug, Args)]
#[command(after_help = "\
PagePool::builder().settings(..) takes the file; so does every program that has LARDER_SETTINGS=FILE in its environment. The malloc \
reads no file: `larder run` sets its variables from LARDER_SETTINGS or --settings, and --env prints them.

Examples:
  larder settings                     print it
  larder settings --write             beside the database
  larder settings --write larder.toml
  env $(larder settings --env) LD_PRELOAD=~/.local/lib/liblarder_malloc.so ./server
  larder settings --check larder.toml")]
pub(super) struct SettingsArgs {
    /// Runs to take them from [default: the latest of each experiment on this machine].
    #[arg(value_name = "RUN", conflicts_with = "check")]
    runs: Vec<String>,
    /// Write the file [default: larder-settings.toml beside the database].
    #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with = "check")]
    write: Option<Option<PathBuf>>,
    /// Print the settings of the malloc as the variables that it reads.
    #[arg(long, conflicts_with_all = ["write", "check"])]
    env: bool,
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
    if args.env {
        return variables(global, &text, out);
    }
    match &args.write {
        None if global.json => print_json(out, &settings.to_json()),
        None => Ok(out.write_all(text.as_bytes())?),
        Some(path) => {
            let path = match path {
                Some(path) => path.clone(),
                None => results::beside(global, NAME)?,
            };
            write_keeping_cache(&path, &text)?;
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
    write_keeping_cache(&path, &settings.to_toml())?;
    Ok(Some(path))
}

/// The malloc's part of a file's text, a line for each variable.
fn variables(global: &Global, text: &str, out: &mut dyn Write) -> Outcome {
    let read: larder::settings::Settings = text.parse().map_err(Failure::io)?;
    let variables = read.malloc().environment();
    if global.json {
        let map: serde_json::Map<_, _> = variables
            .into_iter()
            .map(|(name, word)| (name.to_owned(), word.into()))
            .collect();
        return print_json(out, &json!({ "schema": 1, "variables": map }));
    }
    for (name, word) in variables {
        writeln!(out, "{name}={word}")?;
    }
    Ok(())
}

fn check(global: &Global, path: &std::path::Path, out: &mut dyn Write) -> Outcome {
    larder::settings::Settings::read(path).map_err(Failure::io)?;
    if global.json {
        return print_json(out, &json!({ "schema": 1, "valid": true }));
    }
    writeln!(out, "{}: good", path.display())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::args::Cli;

    #[test]
    fn the_mallocs_part_is_printed_as_variables() {
        let text = "version = 1\n[pages]\ncluster_pages = 64\n[malloc]\nmode = \"per-cpu\"\ndecay_ms = 300\n";
        let printed = |words: &[&str], text: &str| {
            let global = Cli::try_parse_from(words).unwrap().global;
            let mut out = Vec::new();
            assert!(variables(&global, text, &mut out).is_ok());
            String::from_utf8(out).unwrap()
        };
        let words = ["larder", "settings", "--env", "--json"];
        let lines = "LARDER_MALLOC_MODE=per-cpu\nLARDER_MALLOC_DECAY=300\n";
        assert_eq!(printed(&words[..3], text), lines);
        assert_eq!(printed(&words[..3], "version = 1\n"), "");
        let json: serde_json::Value = serde_json::from_str(&printed(&words, text)).unwrap();
        assert_eq!(json["variables"]["LARDER_MALLOC_DECAY"], "300");
    }
}
