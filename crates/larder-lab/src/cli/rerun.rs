//! `rerun`: takes a stored run again, from its record.

use std::io::Write;

use clap::Args;

use super::failure::{Failure, Outcome};
use super::global::Global;
use super::{measure, output, results};

/// Take a stored run again, with the same seed and options.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  larder rerun latest
  larder rerun 3f9a && larder compare 3f9a latest")]
pub(super) struct Rerun {
    /// The run.
    #[arg(value_name = "RUN")]
    run: String,
    /// Measure with --full even though the machine is busy.
    #[arg(long)]
    allow_noise: bool,
}

pub(super) fn run(global: &Global, args: &Rerun, out: &mut dyn Write) -> Outcome {
    let store = results::open(global)?;
    let record = results::one(&store, &args.run)?;
    drop(store);
    let line = record.argv.join(" ");
    let unreadable = || {
        Failure::refused(format!(
            "run {} holds no command line that this version knows: '{}'",
            record.id,
            output::plain(&line)
        ))
    };
    let mut again = measure::stored(&record.argv).ok_or_else(unreadable)?;
    again.allow_noise = args.allow_noise;
    output::hint(global, &format!("again: {}", output::plain(&line)));
    measure::run(global, &again, out)
}
