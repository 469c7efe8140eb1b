//! Two runs whose truth is known, compared from the command line.

use crate::home::Home;
use larder_lab::measure::changes;
use larder_lab::model::{
    Better, Cell, Field, GroupRecord, MachineRecord, Measures, NoiseRecord, Params, RunRecord,
    Sample, StopReason,
};
use larder_lab::stats::Verdict;
use larder_lab::store::{SCHEMA, Store, id_of};

/// 20 rounds of a reference at 100, its twin, and a cell at `ratio` of it, on a machine that is `speed` as slow.
fn run(minute: u32, machine: &str, speed: f64, ratio: f64) -> RunRecord {
    let reference = Cell::new("array-stack", Params::new());
    let cells = [
        (reference.clone(), 1.0),
        (reference.as_twin(), 1.0),
        (Cell::new("pool\u{1b}[31m", Params::new()), ratio),
    ];
    let mut samples = Vec::new();
    for round in 0..20u32 {
        for (slot, (cell, factor)) in (0u32..).zip(&cells) {
            // A wobble of half a percent that differs by cell and round.
            let wobble = 1.0 + f64::from((round * 7 + slot * 3 + minute) % 11) / 2000.0;
            samples.push(Sample {
                group: "pair".to_owned(),
                cell: cell.clone(),
                round,
                slot,
                at_us: u64::from(round * 10 + slot),
                measures: Measures::new().with("ns_per_page", 100.0 * speed * factor * wobble),
            });
        }
    }
    let mut record = RunRecord {
        schema: SCHEMA,
        id: String::new(),
        experiment: "page-pool".to_owned(),
        started: format!("2026-01-01T00:{minute:02}:00Z"),
        seconds: 1.0,
        version: "0.1.0".to_owned(),
        argv: vec![
            "rm".to_owned(),
            "-rf".to_owned(),
            "\u{1b}]0;x\u{7}".to_owned(),
        ],
        seed: 1,
        depth: "full".to_owned(),
        machine: MachineRecord {
            fingerprint: machine.to_owned(),
            fields: [(
                "cpu.model".to_owned(),
                Field::Known(format!("CPU {machine}")),
            )]
            .into(),
        },
        noise: NoiseRecord::default(),
        groups: vec![GroupRecord {
            name: "pair".to_owned(),
            reference,
            metric: "ns_per_page".to_owned(),
            rounds: 20,
            stopped: StopReason::Rounds,
        }],
        skipped: Vec::new(),
        samples,
    };
    record.id = id_of(&record);
    record
}

/// A home whose database holds these runs; returns their names.
fn home(runs: &[RunRecord]) -> (Home, Vec<String>) {
    let home = Home::new();
    let mut store = Store::create(&home.data("larder.sqlite")).unwrap();
    for r in runs {
        store.put(r).unwrap();
    }
    (home, runs.iter().map(|r| r.id.clone()).collect())
}

#[test]
fn a_planted_change_is_found_and_a_slower_machine_is_none() {
    let before = run(0, "m", 1.0, 0.5);
    let verdict = |after: &RunRecord| {
        let c = changes(&before, after, |_| Better::Lower);
        assert_eq!(c.changes.len(), 1);
        (c.changes[0].verdict, c.changes[0].change.unwrap())
    };
    let (slower, change) = verdict(&run(1, "m", 1.0, 0.6));
    assert_eq!(slower, Verdict::Slower);
    assert!(change.lo < 1.2 && 1.2 < change.hi, "{change:?}");
    assert_eq!(verdict(&run(2, "m", 1.0, 0.4)).0, Verdict::Faster);
    // Three times as slow, reference and all: the ratios say the same.
    let (same, change) = verdict(&run(3, "m", 3.0, 0.5));
    assert!(matches!(same, Verdict::Same { .. }), "{same:?} {change:?}");
}

#[test]
fn times_are_shown_on_one_machine_only() {
    let before = run(0, "m", 1.0, 0.5);
    let here = changes(&before, &run(1, "m", 1.0, 0.5), |_| Better::Lower);
    assert!(here.no_times.is_none() && here.changes[0].times.is_some());
    let there = changes(&before, &run(1, "n", 1.0, 0.5), |_| Better::Lower);
    assert!(there.changes[0].times.is_none());
    let why = there.no_times.unwrap();
    assert!(why.contains("CPU m and CPU n"), "{why}");
}

#[test]
fn another_reference_is_another_question() {
    let before = run(0, "m", 1.0, 0.5);
    let mut after = run(1, "m", 1.0, 0.5);
    after.groups[0].reference = Cell::new("other", Params::new());
    let c = changes(&before, &after, |_| Better::Lower);
    assert!(c.changes.is_empty());
    assert!(c.unmatched > 0);
}

#[test]
fn a_gate_tells_worse_from_unknown_and_refuses_times_of_two_machines() {
    let (home, ids) = home(&[
        run(0, "m", 1.0, 0.5),
        run(1, "m", 1.0, 0.5),
        run(2, "m", 1.0, 0.6),
        run(3, "n", 2.0, 0.5),
    ]);
    let compare = |a: usize, b: usize, more: &[&str]| {
        home.run(&[&["compare", &ids[a], &ids[b]], more].concat())
    };
    let (code, out, err) = compare(0, 1, &["--fail-on", "slower"]);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(compare(0, 2, &["--fail-on", "slower"]).0, 1);
    assert_eq!(compare(2, 0, &["--fail-on", "slower"]).0, 0);
    assert_eq!(compare(2, 0, &["--fail-on", "changed"]).0, 1);
    assert_eq!(compare(0, 1, &["--times"]).0, 0);
    let (code, out, err) = compare(0, 3, &["--times"]);
    assert_eq!((code, out.as_str()), (4, ""));
    assert!(err.contains("CPU m and CPU n"), "{err}");
    let (code, out, _) = compare(0, 3, &[]);
    assert_eq!(code, 0);
    assert!(
        out.contains("only ratios are compared") && !out.contains("ns_per_page)"),
        "{out}"
    );
}

#[test]
fn several_runs_a_side_are_named_with_commas() {
    let minutes: Vec<RunRecord> = (0..6)
        .map(|m| run(m, "m", 1.0, if m < 3 { 0.5 } else { 0.6 }))
        .collect();
    let (home, ids) = home(&minutes);
    let (before, after) = (ids[..3].join(","), ids[3..].join(","));
    let json = home.json(&["compare", &before, &after, "--json"]);
    assert_eq!(json["before"], *ids[0]);
    assert_eq!(json["runs_after"].as_array().unwrap().len(), 3);
    let first = &json["compared"]["contestants"][0];
    assert_eq!(first["verdict"]["verdict"], "slower", "{json}");
    assert_eq!(json["compared"]["changes"][0]["change"]["n"], 3);
    let (code, out, _) = home.run(&["compare", &before, &after, "--fail-on", "slower"]);
    assert_eq!(code, 1, "{out}");
    assert!(out.find("contestant").unwrap() < out.find("group").unwrap());
    let (code, _, err) = home.run(&["compare", &before, &ids[0]]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("named twice"), "{err}");
}

#[test]
fn a_noisy_run_alone_shows_no_change() {
    let before = run(0, "m", 1.0, 0.5);
    let mut after = run(1, "m", 1.0, 0.6);
    after.noise.noisy = true;
    let c = changes(&before, &after, |_| Better::Lower);
    let verdicts = c.contestants.iter().map(|c| c.verdict);
    for v in verdicts.chain(c.changes.iter().map(|c| c.verdict)) {
        assert!(!matches!(v, Verdict::Slower | Verdict::Faster), "{c:?}");
    }
}

#[test]
fn names_from_elsewhere_do_not_reach_the_terminal() {
    let (home, ids) = home(&[run(0, "m\u{1b}[2J", 1.0, 0.5), run(1, "m", 1.0, 0.5)]);
    for words in [
        vec!["compare", &ids[0], &ids[1]],
        vec!["list", "--runs"],
        vec!["report", &ids[0]],
        vec!["report", &ids[0], "--format", "markdown"],
    ] {
        let (code, out, err) = home.run(&words);
        assert_eq!(code, 0, "{words:?}: {err}");
        assert!(!out.contains('\u{1b}'), "{words:?}: {out:?}");
    }
}

#[test]
fn a_record_cannot_make_rerun_do_something_else() {
    let (home, ids) = home(&[run(0, "m", 1.0, 0.5)]);
    let (code, _, err) = home.run(&["rerun", &ids[0]]);
    assert_eq!(code, 4, "{err}");
    assert!(
        err.contains("no command line") && !err.contains('\u{1b}'),
        "{err:?}"
    );
}

#[test]
fn settings_of_another_machine_are_not_for_this_one() {
    let (home, _) = home(&[run(0, "m", 1.0, 0.5)]);
    let (code, _, err) = home.run(&["settings"]);
    assert_eq!(code, 4);
    assert!(err.contains("on this machine"), "{err}");
}
