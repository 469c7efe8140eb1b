//! `measure --continue`: what an interrupted measurement lacks, and whether it may be measured on this machine now.

use super::super::args::Measure;
use super::super::failure::Failure;
use super::super::global::Global;
use super::super::{output, results};
use super::line;
use crate::experiments;
use crate::machine::{self, fnv1a};
use crate::measure::{Experiment, Options};
use crate::model::{MachineRecord, RunRecord};
use crate::store::{Store, StoreError, Unfinished};

/// An interrupted measurement, as the database has it.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// Its key there.
    pub(super) key: Option<i64>,
    /// What was asked, and what of it is done.
    pub(super) left: Unfinished,
    /// The runs of the experiments that ended.
    pub(super) runs: Vec<RunRecord>,
    /// The run that was interrupted, with the options that it had.
    pub(super) broken: Option<(RunRecord, Options)>,
}

impl Earlier {
    /// Of a measurement that begins now: nothing is done.
    pub(super) fn of(experiments: &[String], options: &Options, machine: &MachineRecord) -> Self {
        let names: Vec<&str> = experiments.iter().map(String::as_str).collect();
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
        let left = Unfinished {
            started: now.to_string(),
            argv: line::argv(&names, options),
            machine: machine.clone(),
            ..Unfinished::default()
        };
        Self {
            left,
            ..Self::default()
        }
    }
}

/// The last interrupted measurement, and the words that asked for it.
pub(super) fn load(global: &Global, args: &Measure) -> Result<(Measure, Earlier), Failure> {
    let none = |path: &std::path::Path| {
        Failure::refused(format!(
            "there is no interrupted measurement in {}; take one with `larder measure`",
            path.display()
        ))
    };
    let store = match Store::open(&results::path(global)?) {
        Err(StoreError::Missing { path }) => return Err(none(&path)),
        other => other?,
    };
    let (key, left) = store.unfinished()?.ok_or_else(|| none(store.path()))?;
    let refused = |why: String| {
        Failure::refused(format!(
            "the measurement of {} cannot be continued: {}; or measure anew with `{}`",
            output::plain(&left.started),
            output::plain(&why),
            output::plain(&left.argv.join(" "))
        ))
    };
    if left.program != program() {
        return Err(refused(
            "another build of larder took it, and rounds of two builds are not one run; run that build".to_owned(),
        ));
    }
    let changed = differences(&left.machine, &machine::capture());
    if !changed.is_empty() {
        let changed = changed.join(", ");
        return Err(refused(format!(
            "the machine is not the same ({changed}); set it back"
        )));
    }
    let unknown = || refused("this version does not know its command line".to_owned());
    let words = line::stored(&left.argv).ok_or_else(unknown)?;
    let mut runs = Vec::new();
    for id in left.done.iter().filter_map(|(_, id)| id.as_ref()) {
        runs.push(store.get(id)?);
    }
    let mut broken = None;
    if let Some(b) = &left.broken {
        let run = store.get(&b.run)?;
        let own = line::stored(&run.argv).ok_or_else(unknown)?;
        let options = Options {
            argv: run.argv.clone(),
            ..line::options(&own)
        };
        let experiment = experiments::find(&run.experiment).ok_or_else(unknown)?;
        if plan(experiment.as_ref(), &options, &run.machine) != b.plan {
            return Err(refused(format!(
                "the plan of '{}' is not the same: a contestant, a tool or a file came or went, see `larder list \
                 --missing`",
                run.experiment
            )));
        }
        broken = Some((run, options));
    }
    let what = left.argv.join(" ");
    output::hint(global, &format!("continued: {}", output::plain(&what)));
    let words = Measure {
        out: args.out.clone(),
        details: args.details,
        fail_on: args.fail_on,
        allow_noise: args.allow_noise,
        ..words
    };
    let earlier = Earlier {
        key: Some(key),
        left,
        runs,
        broken,
    };
    Ok((words, earlier))
}

/// A hash of the running program: two builds of one version differ, too.
pub(super) fn program() -> String {
    let bytes = std::fs::read("/proc/self/exe").unwrap_or_default();
    format!("{:016x}", fnv1a(&bytes))
}

/// A hash of the groups and cells of an experiment.
pub(super) fn plan(
    experiment: &dyn Experiment,
    options: &Options,
    machine: &MachineRecord,
) -> String {
    let groups = options.plan(experiment, machine).groups;
    format!("{:016x}", fnv1a(format!("{groups:?}").as_bytes()))
}

/// What changes while the machine stays the same: how busy it is, and what another boot or clock makes of it. Memory that
/// was added or taken away changes the fingerprint.
const VOLATILE: [&str; 4] = ["boot.time", "load", "memory.available", "memory.total"];

/// The settings of a machine that changed.
fn differences(then: &MachineRecord, now: &MachineRecord) -> Vec<String> {
    let names = then.fields.keys().chain(now.fields.keys());
    let mut names: Vec<&String> = names.filter(|n| !VOLATILE.contains(&n.as_str())).collect();
    names.sort();
    names.dedup();
    let was = |n: &str| format!("{n} was {} and is {}", then.text(n), now.text(n));
    let changed = names.into_iter().filter(|n| then.text(n) != now.text(n));
    let changed: Vec<String> = changed.map(|n| was(n)).collect();
    match changed.is_empty() && then.fingerprint != now.fingerprint {
        true => vec![was("memory.total")],
        false => changed,
    }
}
