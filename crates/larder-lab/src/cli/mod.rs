//! The command line: stdout is data, stderr is progress and warnings.

mod args;
mod calc;
mod compare;
mod exchange;
mod failure;
mod global;
mod install;
mod limits;
mod list;
mod machine;
mod measure;
mod missing;
mod mount;
mod output;
mod plan;
mod preloads;
mod report;
mod rerun;
mod results;
mod run;
mod settings;
mod shell;
mod sim;
mod trace;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use failure::{Failure, Outcome};

use crate::measure::serve;

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    if let Err(failure) = limits::check() {
        return failure.report();
    }
    let cli = match Cli::try_parse_from(mount::words()) {
        Ok(cli) => cli,
        Err(e) => {
            // Help into a closed pipe is a success too.
            let _ = e.print();
            return ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(2));
        }
    };
    match dispatch(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn dispatch(cli: Cli) -> Outcome {
    let mut out = io::stdout().lock();
    let global = &cli.global;
    match cli.command {
        Command::Measure(args) => measure::run(global, &args, &mut out)?,
        Command::List(args) => list::run(global, &args, &mut out)?,
        Command::Report(args) => report::run(global, &args, &mut out)?,
        Command::Compare(args) => compare::run(global, &args, &mut out)?,
        Command::Run(args) => run::run(global, &args, &mut out)?,
        Command::Rerun(args) => rerun::run(global, &args, &mut out)?,
        Command::Install(args) => install::run(global, &args, &mut out)?,
        Command::Machine(args) => machine::run(global, &args, &mut out)?,
        Command::Export(args) => exchange::export(global, &args, &mut out)?,
        Command::Import(args) => exchange::import(global, &args, &mut out)?,
        Command::Calc(args) => calc::run(global, &args, &mut out)?,
        Command::Settings(args) => settings::run(global, &args, &mut out)?,
        Command::Sim(args) => sim::run(global, &args, &mut out)?,
        Command::Trace(args) => trace::run(global, &args, &mut out)?,
        Command::Mount(args) => mount::run(global, &args, &mut out)?,
        Command::Unmount(args) => mount::unmount(&args)?,
        Command::Sync(args) => mount::sync(&args)?,
        Command::Drop(args) => mount::drop_caches(&args)?,
        Command::Mounts(_) => mount::mounts(global, &mut out)?,
        Command::MountStats(args) => mount::mount_stats(global, &args, &mut out)?,
        Command::Tune(args) => mount::tune(global, &args)?,
        Command::Completions(args) => shell::completions(&args, &mut out)?,
        Command::Man(args) => shell::man(global, &args, &mut out)?,
        Command::Worker(args) => {
            let experiment = results::experiment(&args.experiment)?;
            serve(
                experiment.as_ref(),
                &args.contestant,
                &args.params,
                &mut out,
            )
            .map_err(|e| Failure::io(format!("{e:#}")))?;
        }
    }
    out.flush()?;
    Ok(())
}
