//! Stored runs, read again by their experiments.

use std::collections::HashSet;
use std::path::PathBuf;

use super::failure::{Code, Failure};
use super::global::Global;
use super::output;
use crate::experiments;
use crate::measure::{Experiment, RunView, no_such};
use crate::model::{Analysis, RunRecord};
use crate::report::Document;
use crate::store::{self, Selector, Store, StoreError};

impl From<StoreError> for Failure {
    fn from(e: StoreError) -> Self {
        let code = match &e {
            StoreError::BadSelector { .. }
            | StoreError::NoRun { .. }
            | StoreError::OnlyImported { .. }
            | StoreError::Ambiguous { .. } => Code::Usage,
            // Something has to be measured first.
            StoreError::Missing { .. } => Code::Refused,
            _ => Code::Io,
        };
        Self::Because(code, e.to_string())
    }
}

/// An experiment by name, or a sentence with the names that exist.
pub(super) fn experiment(name: &str) -> Result<Box<dyn Experiment>, Failure> {
    experiments::find(name).ok_or_else(|| {
        let known: Vec<String> = experiments::all()
            .iter()
            .map(|e| e.name().to_owned())
            .collect();
        Failure::usage(no_such("experiment", name, &known))
    })
}

/// The database that the user means.
pub(super) fn path(global: &Global) -> Result<PathBuf, Failure> {
    match &global.db {
        Some(path) => Ok(path.clone()),
        None => Ok(store::default_path()?),
    }
}

/// A file beside the database: report, settings.
pub(super) fn beside(global: &Global, name: &str) -> Result<PathBuf, Failure> {
    Ok(path(global)?.with_file_name(name))
}

/// The database, for reading.
pub(super) fn open(global: &Global) -> Result<Store, Failure> {
    Ok(Store::open(&path(global)?)?)
}

/// The database, for writing. The default directory is made where it is missing, one that the user named is not.
pub(super) fn create(global: &Global) -> Result<Store, Failure> {
    if let Some(path) = &global.db {
        output::directory(path)?;
    }
    Ok(Store::create(&path(global)?)?)
}

/// One run as the user names it.
pub(super) fn one(store: &Store, name: &str) -> Result<RunRecord, Failure> {
    let selector: Selector = name.parse()?;
    Ok(store.get(&store.resolve(&selector)?)?)
}

/// The runs that the user names; without a name the latest of each experiment that is known here.
pub(super) fn several(store: &Store, names: &[String]) -> Result<Vec<RunRecord>, Failure> {
    if !names.is_empty() {
        return names.iter().map(|n| one(store, n)).collect();
    }
    let mut runs = Vec::new();
    for experiment in experiments::all() {
        if let Some(id) = store.latest(Some(experiment.name()))? {
            runs.push(store.get(&id)?);
        }
    }
    if runs.is_empty() {
        // Runs of experiments that only another version knows.
        runs.push(one(store, "latest")?);
    }
    Ok(runs)
}

/// The runs that a report shows: where none was taken here, the latest imported ones, or machines' rows alone.
pub(super) fn reported(store: &Store, names: &[String]) -> Result<Vec<RunRecord>, Failure> {
    let all = store.list()?;
    if !names.is_empty() || all.iter().any(|r| !r.imported) {
        return several(store, names);
    }
    let mut seen = Vec::new();
    let mut runs = Vec::new();
    for run in &all {
        if !seen.contains(&&run.experiment) {
            seen.push(&run.experiment);
            runs.push(store.get(&run.id)?);
        }
    }
    if runs.is_empty() && store.submissions()?.is_empty() {
        return several(store, names);
    }
    Ok(runs)
}

/// What the run's experiment says about it, and what its samples say about themselves.
pub(super) fn analyse(run: &RunRecord) -> Analysis {
    let mut analysis = match experiments::find(&run.experiment) {
        Some(experiment) => experiment.analyse(run),
        None => Analysis {
            experiment: run.experiment.clone(),
            title: run.experiment.clone(),
            warnings: vec![format!(
                "This version of larder knows no experiment '{}', so there are samples and no conclusions. \
                 Version {} took them.",
                run.experiment, run.version
            )],
            ..Analysis::default()
        },
    };
    let view = RunView::new(run);
    analysis.floor = view.floor_text();
    analysis.warnings.extend(view.warnings());
    analysis
}

/// Stands first among the warnings of an imported run.
const IMPORTED: &str = "This run was imported: its file says what machine took it and when, and nothing here can confirm \
     that. It is never the latest run, and no settings come from it.";

/// Runs with their analyses, and the machines that were imported.
pub(super) fn document(runs: Vec<RunRecord>, store: Option<&Store>) -> Result<Document, Failure> {
    let (submissions, imported) = match store {
        Some(store) => (store.submissions()?, store.imported()?),
        None => (Vec::new(), HashSet::new()),
    };
    let runs = runs
        .into_iter()
        .map(|run| {
            let mut analysis = analyse(&run);
            if imported.contains(&run.id) {
                analysis.warnings.insert(0, IMPORTED.to_owned());
            }
            (run, analysis)
        })
        .collect();
    Ok(Document { runs, submissions })
}
