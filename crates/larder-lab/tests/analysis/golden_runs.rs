//! What the experiments say of stored runs: every number stays what it was, bit for bit.
//!
//! `golden/runs` has a run of each experiment, thinned by `golden/make_runs.py`, and `golden/numbers` every median of its
//! analysis, with the lower and the upper end where it has an interval. Where an experiment changes its numbers on purpose,
//! `LARDER_GOLDEN=write cargo test -p larder-lab --test analysis golden_runs` writes them; look at the difference before you
//! commit it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use larder_lab::experiments;
use larder_lab::model::{
    Cell, Field, GroupRecord, MachineRecord, Measures, RunRecord, Sample, Skipped,
};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Thinned {
    experiment: String,
    depth: String,
    seed: u64,
    fields: BTreeMap<String, Field>,
    groups: Vec<GroupRecord>,
    skipped: Vec<Skipped>,
    cells: Vec<ThinnedCell>,
}

#[derive(Deserialize)]
struct ThinnedCell {
    group: String,
    cell: Cell,
    measures: BTreeMap<String, Vec<Option<f64>>>,
}

impl Thinned {
    fn run(self) -> RunRecord {
        let mut samples = Vec::new();
        for round in 0.. {
            let before = samples.len();
            for (slot, cell) in (0..).zip(&self.cells) {
                let values = cell.measures.iter();
                let of_round = values
                    .filter_map(|(name, v)| Some((name.as_str(), (*v.get(round as usize)?)?)));
                let measures = of_round.fold(Measures::new(), |m, (name, v)| m.with(name, v));
                if !measures.0.is_empty() {
                    samples.push(Sample {
                        group: cell.group.clone(),
                        cell: cell.cell.clone(),
                        round,
                        slot,
                        at_us: u64::from(round) * 1_000_000 + u64::from(slot),
                        measures,
                    });
                }
            }
            if samples.len() == before {
                break;
            }
        }
        RunRecord {
            experiment: self.experiment,
            depth: self.depth,
            seed: self.seed,
            machine: MachineRecord {
                fields: self.fields,
                ..MachineRecord::default()
            },
            groups: self.groups,
            skipped: self.skipped,
            samples,
            ..RunRecord::default()
        }
    }
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

fn run(experiment: &str) -> RunRecord {
    let path = folder("runs").join(experiment).with_extension("json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str::<Thinned>(&text).unwrap().run()
}

/// Every median, alone or with its interval, with the shortest digits that give it back exactly.
fn numbers(analysis: &Value, found: &mut BTreeSet<String>) {
    if let (Some(value), Some(lo), Some(hi)) = (
        analysis.get("value"),
        analysis.get("lo"),
        analysis.get("hi"),
    ) {
        found.insert(format!("{value} {lo} {hi}"));
        return;
    }
    if let Some(value) = analysis.get("number").and_then(|n| n.get(0)) {
        found.insert(value.to_string());
    }
    match analysis {
        Value::Array(all) => all.iter().for_each(|v| numbers(v, found)),
        Value::Object(all) => all.values().for_each(|v| numbers(v, found)),
        _ => {}
    }
}

#[test]
fn stored_runs_are_read_as_before() {
    let write = std::env::var("LARDER_GOLDEN").is_ok_and(|v| v == "write");
    let mut differ = Vec::new();
    for experiment in experiments::all() {
        let analysis = experiment.analyse(&run(experiment.name()));
        let mut found = BTreeSet::new();
        numbers(&serde_json::to_value(&analysis).unwrap(), &mut found);
        let path = folder("numbers")
            .join(experiment.name())
            .with_extension("txt");
        if write {
            let lines: String = found.iter().map(|n| format!("{n}\n")).collect();
            std::fs::write(&path, lines).unwrap();
            continue;
        }
        let known = std::fs::read_to_string(&path).unwrap();
        let known: BTreeSet<String> = known.lines().map(str::to_owned).collect();
        let gone = known.difference(&found).count();
        let new = found.difference(&known).count();
        if gone + new > 0 {
            let name = experiment.name();
            differ.push(format!(
                "{name}: of {} numbers {gone} are gone, {new} are new",
                known.len()
            ));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}
