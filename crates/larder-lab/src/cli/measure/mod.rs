//! `measure`: takes the samples, stores them and says what they mean.

mod line;
mod resume;
mod session;

pub(super) use line::stored;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use resume::Earlier;

use super::args::{FailOn, Measure};
use super::failure::{Code, Failure, Outcome};
use super::global::Global;
use super::output::print_json;
use super::{output, plan, preloads, report, results, settings};
use crate::experiments;
use crate::machine::{self, NoiseMeter, Root};
use crate::measure::{BadSelection, Experiment, Interrupt};
use crate::model::{GoalState, NoiseRecord};
use crate::report::{Document, Summary};

/// How long the machine is watched before the first cell.
const LOOK: Duration = Duration::from_secs(1);

pub(super) fn run(global: &Global, args: &Measure, out: &mut dyn Write) -> Outcome {
    if args.resume {
        let (words, earlier) = resume::load(global, args)?;
        return take(global, &words, Some(earlier), out);
    }
    take(global, args, None, out)
}

/// Measures what the words say, or what is left of an earlier measurement by the same words.
fn take(global: &Global, args: &Measure, earlier: Option<Earlier>, out: &mut dyn Write) -> Outcome {
    let chosen = chosen(&args.experiments)?;
    preloads::build(global, args, &chosen);
    let machine = machine::capture();
    let options = line::options(args);
    let chosen = options.select(chosen, &machine)?;
    if args.plan {
        return plan::print(&chosen, &options, &machine, global.json, out);
    }
    // Three minutes of measuring must not end at a file that cannot be written.
    let mut store = match args.no_save {
        true => None,
        false => Some(results::create(global)?),
    };
    args.out.as_deref().map_or(Ok(()), output::directory)?;
    gate(global, args)?;
    let interrupt = Interrupt::new();
    interrupt
        .listen()
        .map_err(|e| Failure::io(format!("Ctrl-C cannot be caught: {e}")))?;
    let earlier = earlier.unwrap_or_else(|| Earlier::of(&args.experiments, &options, &machine));
    let runs = session::take(
        global, &chosen, &options, &machine, &interrupt, &mut store, earlier,
    )?;
    let empty = runs.iter().all(|(r, _)| r.samples.is_empty());
    let document = Document {
        runs,
        submissions: Vec::new(),
    };
    let files = match args.no_save {
        true => Files::default(),
        false => write_files(global, args, &document)?,
    };
    show(global, args.details || empty, &document, &files, out)?;
    if empty {
        return Err(Failure::refused(
            "nothing was measured; the reasons are above, and `larder measure --plan` shows what each group needs",
        ));
    }
    match args.fail_on {
        Some(FailOn::Missed) => judge(&document),
        None => Ok(()),
    }
}

fn chosen(names: &[String]) -> Result<Vec<Box<dyn Experiment>>, Failure> {
    if names.is_empty() {
        return Ok(experiments::all());
    }
    names.iter().map(|n| results::experiment(n)).collect()
}

impl From<BadSelection> for Failure {
    fn from(e: BadSelection) -> Self {
        match e {
            BadSelection::Word(why) => Self::usage(why),
            BadSelection::Missing(why) => Self::refused(why),
        }
    }
}

/// Looks at the machine while the lab does nothing. A quick run is exploratory and goes on with a warning; a full
/// one makes claims, so it does not begin on a busy machine unless the user insists.
fn gate(global: &Global, args: &Measure) -> Outcome {
    let noise = NoiseMeter::idle_look(Root::system(), LOOK);
    for warning in &noise.warnings {
        output::hint(global, &format!("before the run: {warning}"));
    }
    if refused(&noise, args.full, args.allow_noise) {
        return Err(Failure::refused(
            "the machine is too busy for --full; wait until it is quiet, take --quick, or insist with --allow-noise",
        ));
    }
    Ok(())
}

fn refused(noise: &NoiseRecord, full: bool, allowed: bool) -> bool {
    noise.noisy && full && !allowed
}

/// What was written beside the database.
#[derive(Debug, Default)]
struct Files {
    database: Option<PathBuf>,
    page: Option<PathBuf>,
    settings: Option<PathBuf>,
}

fn write_files(global: &Global, args: &Measure, document: &Document) -> Result<Files, Failure> {
    let page = match &args.out {
        Some(path) => path.clone(),
        None => results::beside(global, report::PAGE)?,
    };
    // A measurement is too dear to be lost to a drawing: the tables and the reason are printed.
    let hint = |what: &str, failure: Failure| {
        if let Failure::Because(_, why) = failure {
            output::hint(global, &format!("{what} was not written: {why}"));
        }
    };
    let page = match report::write_page(document, &page) {
        Ok(()) => Some(page),
        // What the user named must be there.
        Err(failure) if args.out.is_some() => return Err(failure),
        Err(failure) => {
            hint("the page", failure);
            None
        }
    };
    let written = settings::write(
        global,
        &document.runs,
        results::beside(global, settings::NAME)?,
    );
    Ok(Files {
        database: Some(results::path(global)?),
        page,
        settings: written.unwrap_or_else(|failure| {
            hint("the settings file", failure);
            None
        }),
    })
}

fn show(
    global: &Global,
    details: bool,
    document: &Document,
    files: &Files,
    out: &mut dyn Write,
) -> Outcome {
    let mut list = vec![
        ("results", &files.database),
        ("page", &files.page),
        ("settings", &files.settings),
    ];
    if global.json {
        let mut json = crate::report::json(document);
        if let Some(object) = json.as_object_mut() {
            let files: serde_json::Map<_, _> = list
                .iter()
                .map(|(name, path)| ((*name).to_owned(), serde_json::json!(path)))
                .collect();
            object.insert("files".to_owned(), files.into());
        }
        return print_json(out, &json);
    }
    let style = output::style(global);
    if details {
        crate::report::terminal(document, &style, out)?;
    } else {
        let summary = Summary {
            settings_file: files.settings.clone(),
            ..Summary::of(document)
        };
        crate::report::summary(&summary, &style, out)?;
        // Of one experiment there is room for its answers.
        if let [(_, analysis)] = document.runs.as_slice() {
            crate::report::findings(&analysis.findings, &style, out)?;
        }
        // The screen ends with these lines, and names the settings file itself.
        list.pop();
        if files.database.is_none() {
            writeln!(out, "Details: larder measure --details")?;
        }
    }
    for (name, path) in &list {
        if let Some(path) = path {
            let how = match *name {
                "page" => " (larder report --open)",
                _ => "",
            };
            writeln!(out, "{name:<8} {}{how}", path.display())?;
        }
    }
    Ok(())
}

/// `--fail-on missed`.
fn judge(document: &Document) -> Outcome {
    let goals = || document.runs.iter().flat_map(|(_, a)| &a.goals);
    let count = |wanted: &[GoalState]| goals().filter(|g| wanted.contains(&g.state)).count();
    let all = goals().count();
    let missed = count(&[GoalState::Missed]);
    if missed > 0 {
        return Err(Failure::Because(
            Code::Condition,
            format!("{missed} of {all} goals are missed"),
        ));
    }
    let open = count(&[GoalState::Open, GoalState::Skipped]);
    if open > 0 || all == 0 {
        return Err(Failure::Because(
            Code::Inconclusive,
            format!("{open} of {all} goals are open; take more rounds with --full"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_full_run_on_a_noisy_machine_without_leave_is_refused() {
        let noisy = NoiseRecord {
            noisy: true,
            ..NoiseRecord::default()
        };
        assert!(refused(&noisy, true, false));
        assert!(!refused(&noisy, true, true));
        assert!(!refused(&noisy, false, false));
        assert!(!refused(&NoiseRecord::default(), true, false));
    }
}
