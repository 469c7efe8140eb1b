//! What several test files need.

use larder_lab::model::{
    Cell, Field, GroupRecord, MachineRecord, Measures, NoiseRecord, Params, RunRecord, Sample,
    Skipped, StopReason,
};
use larder_lab::store::{SCHEMA, Store, id_of};

/// A record with awkward names and these values as samples of two cells.
pub(crate) fn run(experiment: &str, started: &str, values: &[f64]) -> RunRecord {
    let cell = Cell::new(
        "a'b \"c\" <d> ü\n",
        Params::new().with("n", -3).with_text("t", "x;--"),
    );
    let mut run = RunRecord {
        schema: SCHEMA,
        id: String::new(),
        experiment: experiment.to_owned(),
        started: started.to_owned(),
        seconds: 0.1 + 0.2,
        version: "0.1.0".to_owned(),
        argv: vec!["larder".to_owned(), "measure".to_owned()],
        seed: u64::MAX,
        depth: "quick".to_owned(),
        machine: MachineRecord {
            fingerprint: "f".to_owned(),
            fields: [
                ("a".to_owned(), Field::Known("1".to_owned())),
                ("b".to_owned(), Field::Unknown("why".to_owned())),
            ]
            .into(),
        },
        noise: NoiseRecord {
            load: Some((0.5, 1.0 / 3.0)),
            ..NoiseRecord::default()
        },
        groups: vec![GroupRecord {
            name: "g".to_owned(),
            reference: cell.clone(),
            metric: "ns".to_owned(),
            rounds: 1,
            stopped: StopReason::Rounds,
        }],
        skipped: vec![Skipped {
            what: "x".to_owned(),
            why: "y".to_owned(),
        }],
        samples: Vec::new(),
    };
    for (i, v) in (0u32..).zip(values) {
        run.samples.push(Sample {
            group: "g".to_owned(),
            cell: if i % 2 == 0 {
                cell.clone()
            } else {
                cell.as_twin()
            },
            round: i / 2,
            slot: i % 2,
            at_us: 1 << 40,
            measures: Measures::new().with("ns", *v).with("proc.faults", 2.0 * *v),
        });
    }
    run.id = id_of(&run);
    run
}

/// An empty database in a directory that the store had to make.
pub(crate) fn fresh() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(&dir.path().join("deep/er/results.sqlite")).unwrap();
    (dir, store)
}
