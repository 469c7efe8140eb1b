//! The command line as types. Flags win over the environment, which wins over defaults.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::calc::Calc;
use super::compare::Compare;
use super::exchange::{Export, Import};
use super::global::Global;
use super::install::Install;
use super::machine::Machine;
use super::mount::{Mount, MountStatsArgs, Mounts, OneMount, Tune};
use super::report::Report;
use super::rerun::Rerun;
use super::run::Run;
use super::settings::SettingsArgs;
use super::sim::Sim;
use super::trace::Trace;
use crate::measure::FactorFilter;

/// Measures on this machine what pages, objects, heaps, identifiers and cached blocks cost, simulates block caches
/// on traces, and says which setting is best and how sure that is.
#[derive(Debug, Parser)]
#[command(name = "larder", version, max_term_width = 100, after_help = AFTER)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

const AFTER: &str = "\
Examples:
  larder measure                   everything in quick form, in at most 3 minutes
  larder measure page-buffers --full
  larder report latest --open      the last run as a page in the browser
  larder settings --write          what was measured, as a settings file for the library

Exit codes:
  0 done   1 a --fail-on condition is met   2 wrong usage   3 inconclusive under --fail-on
  4 refused: too noisy, or something is missing   5 reading or writing failed
  `run` and `trace record` end with the code of their program, 128 + n where signal n ended it";

#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one, and clap makes it")]
pub(super) enum Command {
    Measure(Measure),
    List(List),
    Report(Report),
    Compare(Compare),
    Rerun(Rerun),
    Run(Run),
    Install(Install),
    Machine(Machine),
    Export(Export),
    Import(Import),
    Calc(Calc),
    Settings(SettingsArgs),
    Sim(Sim),
    Trace(Trace),
    Mount(Mount),
    /// Write back all that is dirty, and unmount.
    #[command(after_help = "Examples:\n  larder unmount /mnt/fast")]
    Unmount(OneMount),
    /// Write all that is dirty in a mount to the source's disk; sync(1) does not reach it.
    #[command(after_help = "Examples:\n  larder sync /mnt/fast")]
    Sync(OneMount),
    /// Write back and forget what a mount has in its cache.
    #[command(after_help = "Examples:\n  larder drop /mnt/fast")]
    Drop(OneMount),
    Mounts(Mounts),
    MountStats(MountStatsArgs),
    Tune(Tune),
    Completions(Completions),
    Man(Man),
    #[command(hide = true)]
    Worker(Worker),
}

/// Take samples, store them, and say what they mean.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Rounds of all contestants in random order, each in a fresh process. Ctrl-C finishes the current cell, \
keeps all complete rounds and reports them; a second Ctrl-C quits at once. --continue then takes what was left.

Examples:
  larder measure                           every experiment, quick, at most 3 minutes in total
  larder measure page-buffers --full       the document's own counts, and more rounds
  larder measure zero-fill --loop          until it is stable
  larder measure page-pool --details       with all findings and tables
  larder measure --plan                    what would run, and for how long
  larder measure --continue                the rest of what Ctrl-C interrupted
  larder measure --json | jq .runs[0].run.seed")]
pub(super) struct Measure {
    /// Names of experiments (see `larder list`) [default: all].
    #[arg(value_name = "EXPERIMENT")]
    pub(super) experiments: Vec<String>,
    /// Small counts, few rounds, marked exploratory [default].
    #[arg(long, conflicts_with = "full")]
    pub(super) quick: bool,
    /// The document's own counts, and more rounds: ten or more in most experiments.
    #[arg(long)]
    pub(super) full: bool,
    /// Print what would run, and for how long; measure nothing.
    #[arg(long)]
    pub(super) plan: bool,
    /// Go on with the last interrupted measurement of the database: same experiments, depth, seed and filters, only the
    /// rounds that are missing. Refused where machine, program or plan are not the same.
    #[arg(
        long = "continue",
        conflicts_with_all = [
            "experiments", "quick", "full", "plan", "seed", "time_cap", "rounds", "group", "contestant", "factors",
            "cell_limit", "until_stable", "no_save",
        ]
    )]
    pub(super) resume: bool,
    /// Repeat the orders and workloads of an earlier run [default: a random one].
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Time for all experiments together, for instance 90s, 3m, 1h [default: 172s for --quick, none for --full].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) time_cap: Option<Duration>,
    /// Rounds of each group at most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) rounds: Option<u32>,
    /// Only groups whose name contains TEXT (may be repeated); like every filter, an error where nothing matches.
    #[arg(long, value_name = "TEXT")]
    pub(super) group: Vec<String>,
    /// Only these contestants, beside each group's reference (may be repeated).
    #[arg(long, value_name = "NAME")]
    pub(super) contestant: Vec<String>,
    /// Only cells with these values of a factor, beside each group's reference (may be repeated).
    #[arg(long = "where", value_name = "FACTOR=VALUE,…")]
    pub(super) factors: Vec<FactorFilter>,
    /// End a single cell after this time and leave it out.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "2m")]
    pub(super) cell_limit: Duration,
    /// End with 1 when a goal is missed, with 3 when none is but some are open or could not be measured.
    #[arg(long, value_enum, value_name = "STATE")]
    pub(super) fail_on: Option<FailOn>,
    /// Take rounds until the intervals are narrow or stop narrowing.
    #[arg(long = "loop")]
    pub(super) until_stable: bool,
    /// Write the HTML report here [default: beside the database].
    #[arg(long, value_name = "FILE.html")]
    pub(super) out: Option<PathBuf>,
    /// Print everything after the summary: findings, goals, tables.
    #[arg(long)]
    pub(super) details: bool,
    /// Store nothing and write no files: print only.
    #[arg(long, conflicts_with = "out")]
    pub(super) no_save: bool,
    /// Measure with --full even though the machine is busy.
    #[arg(long)]
    pub(super) allow_noise: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FailOn {
    /// A goal was missed.
    Missed,
}

/// The experiments, their contestants and metrics; or the stored runs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  larder list              experiments
  larder list page-buffers contestants and metrics of one
  larder list --missing    what is not here, and what brings it
  larder list --runs       what is stored")]
pub(super) struct List {
    /// Show one experiment in full.
    #[arg(value_name = "EXPERIMENT", conflicts_with = "runs")]
    pub(super) experiment: Option<String>,
    /// Peers, inputs and tools that are not on this machine, each with what brings it.
    #[arg(long, conflicts_with = "runs")]
    pub(super) missing: bool,
    /// The stored runs, newest first.
    #[arg(long)]
    pub(super) runs: bool,
}

/// Print completions for a shell.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  larder completions bash > ~/.local/share/bash-completion/completions/larder
  larder completions zsh > ~/.zfunc/_larder
  larder completions fish > ~/.config/fish/completions/larder.fish")]
pub(super) struct Completions {
    /// The shell.
    #[arg(value_name = "SHELL", value_enum)]
    pub(super) shell: clap_complete::Shell,
}

/// Print the manual page, or write one for each command.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  larder man | man -l -
  larder man ~/.local/share/man/man1")]
pub(super) struct Man {
    /// Write larder.1 and a page for each command here.
    #[arg(value_name = "DIR")]
    pub(super) dir: Option<PathBuf>,
}

/// One cell in this process; the lab starts it.
#[derive(Debug, Args)]
pub(super) struct Worker {
    #[arg(long)]
    pub(super) experiment: String,
    #[arg(long)]
    pub(super) contestant: String,
    #[arg(long)]
    pub(super) params: String,
}

/// A time such as `90s`, `3m`, `1.5h`; a bare number is seconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let why = || format!("'{text}' is not a time; write for instance 90s, 3m or 1h");
    let (number, unit) = match text.trim() {
        t if t.ends_with("ms") => (t.trim_end_matches("ms"), 0.001),
        t if t.ends_with('s') => (t.trim_end_matches('s'), 1.0),
        t if t.ends_with('m') => (t.trim_end_matches('m'), 60.0),
        t if t.ends_with('h') => (t.trim_end_matches('h'), 3600.0),
        t => (t, 1.0),
    };
    let n: f64 = number.trim().parse().map_err(|_| why())?;
    let seconds = n * unit;
    if !seconds.is_finite() || seconds <= 0.0 {
        return Err(format!("'{text}' is no time at all; give more than zero"));
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| why())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        fn each(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            let help = command.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            // `install` is run before there is a `larder`: behind `cargo run --`.
            let words = path[1..].strip_prefix("larder ").unwrap_or("larder ");
            let example = help
                .lines()
                .any(|line| line.starts_with("  ") && line.contains(words));
            assert!(help.contains("Examples:") && example, "{path}: {help}");
            command
                .get_subcommands()
                .filter(|c| !c.is_hide_set())
                .for_each(|c| each(c, &path));
        }
        each(&Cli::command(), "");
    }

    #[test]
    fn help_speaks_of_things_and_not_of_somebody() {
        fn each(command: &clap::Command) {
            let help = command.clone().render_long_help().to_string();
            let words = help.split(|c: char| !c.is_alphanumeric());
            for word in words {
                let private = [
                    "he", "his", "who", "whoever", "somebody", "nobody", "told", "tells",
                ];
                assert!(
                    !private.contains(&word),
                    "{}: '{word}' in {help}",
                    command.get_name()
                );
            }
            command.get_subcommands().for_each(each);
        }
        let mut cli = Cli::command();
        cli.build();
        each(&cli);
    }

    #[test]
    fn times_have_units() {
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1h"), Ok(Duration::from_secs(3600)));
        for bad in ["", "m", "-3m", "0", "nan", "inf", "3x", "1e300h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
