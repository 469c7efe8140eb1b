//! The interchange: JSON lines of runs and machines' rows, from anybody.
//!
//! A record's id is a hash of its content, which a mutation always breaks; so every line that is a run is also stored
//! under its right id, read back, and analysed and drawn like any run.

#![no_main]

use std::path::Path;

use arbitrary::Unstructured;
use larder_fuzz::mutate_from;
use larder_fuzz::records::run_of;
use larder_lab::calc::{Submission, Timings};
use larder_lab::experiments;
use larder_lab::model::RunRecord;
use larder_lab::report::{self, Document};
use larder_lab::store::{Store, export, id_of};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

/// A file with one small run of each experiment, and one with a machine's row.
fn seeds() -> Vec<String> {
    let submission = Submission {
        machine: "m".to_owned(),
        os: "o".to_owned(),
        timings: Timings::new(1.0, 2.0, None, 3.0).expect("three times"),
        date: "2026-01-01".to_owned(),
    };
    let mut files = vec![text(&[], vec![submission])];
    for experiment in experiments::all() {
        let mut run =
            run_of(experiment.as_ref(), &mut Unstructured::new(&[255; 64])).expect("a run");
        run.samples.truncate(2);
        run.groups.truncate(1);
        run.id = id_of(&run);
        files.push(text(&[run], vec![]));
    }
    files
}

fn text(runs: &[RunRecord], rows: Vec<Submission>) -> String {
    let mut out = Vec::new();
    export(runs.iter().cloned(), rows, &mut out).expect("a vector takes everything");
    String::from_utf8(out).expect("JSON is text")
}

fn empty() -> Store {
    Store::create(Path::new(":memory:")).expect("memory can be written")
}

fn good_ones_are_taken() {
    for seed in seeds() {
        let taken = empty().import_from(seed.as_bytes(), Path::new("seed"));
        assert!(taken.is_ok(), "{taken:?}: {seed}");
    }
}

fn as_run(line: &str) -> Option<RunRecord> {
    let mut value: serde_json::Value = serde_json::from_str(line).ok()?;
    serde_json::from_value(value.get_mut("run")?.take()).ok()
}

fuzz_target!(init: good_ones_are_taken(), |data: &[u8]| {
    let mut store = empty();
    match store.import_from(data, Path::new("fuzz")) {
        Ok(imported) => assert_eq!(store.list().expect("a list").len(), imported.runs),
        Err(error) => {
            assert!(error.to_string().contains("fuzz"), "{error}");
            assert!(store.list().expect("a list").is_empty(), "all of a file or nothing");
        }
    }
    let text = String::from_utf8_lossy(data);
    for mut run in text.lines().filter_map(as_run) {
        run.id = id_of(&run);
        if store.put(&run).is_err() {
            continue;
        }
        let back = store.get(&run.id).expect("it was put");
        assert_eq!(id_of(&back), run.id, "a record changed on its way through the database");
        let analysis = experiments::find(&back.experiment)
            .map(|e| e.analyse(&back))
            .unwrap_or_default();
        let document = Document {
            runs: vec![(back, analysis)],
            submissions: store.submissions().expect("rows"),
        };
        let _ = report::markdown(&document);
        let _ = report::html(&document);
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    thread_local!(static SEEDS: Vec<String> = seeds());
    SEEDS.with(|seeds| mutate_from(seeds, data, size, max_size, seed))
});
