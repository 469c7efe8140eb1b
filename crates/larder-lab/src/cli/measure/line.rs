//! A measurement's command line: its options, and the command line that repeats it.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use clap::Parser;

use super::super::args::{Cli, Command, Measure};
use crate::measure::{Depth, Options};

/// Leaves eight seconds of the promised three minutes for starting, analysing and drawing; they take two.
const QUICK_CAP: Duration = Duration::from_secs(172);

/// What the words ask for.
pub(super) fn options(args: &Measure) -> Options {
    let depth = if args.full { Depth::Full } else { Depth::Quick };
    let seed = args.seed.unwrap_or_else(random_seed);
    let cap = match (args.time_cap, depth) {
        (None, Depth::Quick) if !args.until_stable => Some(QUICK_CAP),
        (given, _) => given,
    };
    Options {
        time_cap: cap,
        max_rounds: args.rounds,
        until_stable: args.until_stable,
        cell_limit: args.cell_limit,
        brief: args.experiments.is_empty() && depth == Depth::Quick,
        groups: args.group.clone(),
        contestants: args.contestant.clone(),
        factors: args.factors.clone(),
        ..Options::new(depth, seed)
    }
}

/// 32 bits: short enough to be typed again.
fn random_seed() -> u64 {
    RandomState::new().hash_one(std::process::id()) >> 32
}

/// The command line that repeats a measurement of these experiments; none is all.
pub(super) fn argv(experiments: &[&str], options: &Options) -> Vec<String> {
    let mut argv: Vec<String> = ["larder", "measure"].map(str::to_owned).to_vec();
    argv.extend(experiments.iter().map(|&name| name.to_owned()));
    argv.push(format!("--{}", options.depth.name()));
    argv.push(format!("--seed={}", options.seed));
    if let Some(cap) = options.time_cap {
        argv.push(format!("--time-cap={:.3}s", cap.as_secs_f64().max(0.001)));
    }
    if let Some(n) = options.max_rounds {
        argv.push(format!("--rounds={n}"));
    }
    if options.until_stable {
        argv.push("--loop".to_owned());
    }
    argv.push(format!(
        "--cell-limit={:.3}s",
        options.cell_limit.as_secs_f64().max(0.001)
    ));
    argv.extend(options.groups.iter().map(|g| format!("--group={g}")));
    argv.extend(
        options
            .contestants
            .iter()
            .map(|c| format!("--contestant={c}")),
    );
    argv.extend(options.factors.iter().map(|f| format!("--where={f}")));
    argv
}

/// The words of a stored command line; `None` where this version does not know them.
///
/// A record may come from another machine: it says what is measured, and never where files go.
pub(in crate::cli) fn stored(argv: &[String]) -> Option<Measure> {
    let Command::Measure(args) = Cli::try_parse_from(argv).ok()?.command else {
        return None;
    };
    Some(Measure {
        out: None,
        no_save: false,
        plan: false,
        resume: false,
        allow_noise: false,
        ..args
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_the_time_that_a_quick_run_has() {
        use clap::CommandFactory;
        let mut cli = Cli::command();
        let measure = cli.find_subcommand_mut("measure").expect("measure");
        let help = measure.render_long_help().to_string();
        let words = format!("{}s for --quick", QUICK_CAP.as_secs());
        assert!(help.contains(&words), "{help}");
    }

    #[test]
    fn the_stored_command_line_gives_the_same_options_again() {
        let asked = Options {
            time_cap: Some(Duration::from_millis(61_500)),
            max_rounds: Some(7),
            until_stable: true,
            groups: vec!["--odd name".to_owned()],
            contestants: vec!["a".to_owned(), "b".to_owned()],
            factors: vec!["pages=1,2".parse().unwrap()],
            ..Options::new(Depth::Full, u64::MAX)
        };
        let args = stored(&argv(&["e"], &asked)).unwrap();
        assert_eq!(args.experiments, ["e"]);
        let again = options(&args);
        assert_eq!(format!("{asked:?}"), format!("{again:?}"));
    }
}
