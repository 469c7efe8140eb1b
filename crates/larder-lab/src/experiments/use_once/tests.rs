//! The analysis on constructed records.

use crate::measure::Experiment;
use crate::model::{Cell, MachineRecord, Measures, NoiseRecord, RunRecord, Sample};

use super::UseOnce;
use super::plan::{
    BUILD, CLIENTS, CORRELATED, DBENCH, FIELD, PATCHED, SEEDS, VANILLA, build_cell,
    correlated_cell, dbench_cell, field_cell, loadfile_cell,
};

fn sample(group: &str, cell: Cell, measures: Measures) -> Sample {
    Sample {
        group: group.to_owned(),
        cell,
        measures,
        round: 0,
        slot: 0,
        at_us: 0,
    }
}

fn empty() -> RunRecord {
    RunRecord {
        schema: 1,
        id: String::new(),
        experiment: "use-once".to_owned(),
        started: "2026-11-22T00:00:00Z".to_owned(),
        seconds: 1.0,
        version: String::new(),
        argv: Vec::new(),
        seed: 1,
        depth: "quick".to_owned(),
        machine: MachineRecord::default(),
        noise: NoiseRecord::default(),
        groups: Vec::new(),
        skipped: Vec::new(),
        samples: Vec::new(),
    }
}

/// A record in which the patch gives `gain` percent from 16 clients on.
fn record(gain: f64) -> RunRecord {
    let mut run = empty();
    for clients in CLIENTS {
        for seed in SEEDS {
            let rate = 100.0 / clients as f64 + seed as f64 * 0.01;
            let better = if clients >= 16 {
                1.0 + gain / 100.0
            } else {
                1.0
            };
            for (rule, rate) in [(VANILLA, rate), (PATCHED, rate * better)] {
                let measures = Measures::new()
                    .with("modelled_mb_per_s", rate)
                    .with("pages_read", 1_000.0 / rate)
                    .with("pages_written", 10.0);
                run.samples.push(sample(
                    DBENCH,
                    dbench_cell(rule, clients, seed, 2),
                    measures,
                ));
            }
        }
    }
    for (rule, hits) in [
        (VANILLA, 58.0),
        (PATCHED, 69.8),
        ("mglru", 71.0),
        ("opt", 81.9),
    ] {
        let measures = Measures::new().with("bare_hit_percent", hits);
        run.samples
            .push(sample(FIELD, field_cell(rule, 16, 1, 2), measures));
    }
    for (rule, rate, hits) in [(VANILLA, 10.0, 58.0), (PATCHED, 12.0, 69.0)] {
        let measures = Measures::new()
            .with("modelled_mb_per_s", rate)
            .with("hit_percent", hits)
            .with("pages_read", 7.0);
        run.samples
            .push(sample("loadfile", loadfile_cell(rule, 32, true), measures));
    }
    for (touches, misses) in [(1, 100.0), (2, 150.0), (4, 150.0), (8, 160.0)] {
        let measures = Measures::new().with("pages_read", misses);
        run.samples.push(sample(
            CORRELATED,
            correlated_cell(PATCHED, touches, "apart"),
            measures,
        ));
    }
    let merged = Measures::new().with("pages_read", 100.0);
    run.samples.push(sample(
        CORRELATED,
        correlated_cell(PATCHED, 4, "merged"),
        merged,
    ));
    for (rule, seconds, hits) in [(VANILLA, 100.0, 60.0), (PATCHED, 89.0, 80.0)] {
        let measures = Measures::new()
            .with("modelled_s", seconds)
            .with("first_hit_percent", hits);
        run.samples
            .push(sample(BUILD, build_cell(rule, 60_000, true), measures));
    }
    run
}

fn answers(run: &RunRecord) -> String {
    let analysis = UseOnce.analyse(run);
    analysis
        .findings
        .iter()
        .map(|finding| finding.answer.clone() + "\n")
        .collect()
}

#[test]
fn the_load_from_which_it_helps_is_found() {
    let found = answers(&record(20.0));
    assert!(
        found.contains("from 16 clients on; at 64 the model says +20.0 %"),
        "{found}"
    );
    assert!(
        found.contains("16: +20.0 % (+16 %)") && found.contains("4: +0.0 % (+0 %)"),
        "{found}"
    );
    let none = answers(&record(0.5));
    assert!(none.contains("at none of Lord's loads"), "{none}");
    let worse = answers(&record(-10.0));
    assert!(worse.contains("at 64 the model says -10.0 %"), "{worse}");
}

#[test]
fn each_question_has_its_answer() {
    let found = answers(&record(29.0));
    for part in [
        "This model cannot tell. Both read 20 pages from the disk",
        "Lord's three runs with the patch lay 17 % apart",
        "Two touches a use cost use-once +50.0 % misses; of all rules linux-2.4.7-use-once loses most",
        "2.4.7 58.0 %, with use-once 69.8 %, then mglru 71.0 %; the most has mglru with 71.0 %. The best there can be is 81.9 %. One seed; --full has three.",
        "by -11.0 %. The compiler's own time is not in the model. The build finds 60.0 % of its pages in memory with 2.4.7, 80.0 % with the patch, 80.0 % with linux-2.4.7-use-once",
        "with the patch: 32 clients +20.0 % (hits 58.0 to 69.0 %, pages read 7 to 7)",
        "is +29 %, the model's +29.0 %: as far as a model can say the same",
    ] {
        assert!(found.contains(part), "{part}\n{found}");
    }
}

#[test]
fn loads_of_opposite_signs_settle_nothing() {
    let mut run = record(20.0);
    let at_64: Vec<_> = run
        .samples
        .iter()
        .filter(|s| s.group == "loadfile")
        .cloned()
        .collect();
    for mut sample in at_64 {
        let rate = if sample.cell.contestant == PATCHED {
            9.0
        } else {
            10.0
        };
        sample.cell.params = sample.cell.params.with("clients", 64);
        sample.measures = sample.measures.with("modelled_mb_per_s", rate);
        run.samples.push(sample);
    }
    let analysis = UseOnce.analyse(&run);
    let loads = &analysis.findings[0].answer;
    assert!(
        loads.contains("-10.0 % there: two loads of opposite signs"),
        "{loads}"
    );
    assert_eq!(
        analysis.answers[0].answer,
        "not settled: two loads, +20.0 and -10.0 % at 64"
    );
}

#[test]
fn his_table_stands_beside_even_without_samples() {
    let analysis = UseOnce.analyse(&empty());
    assert!(analysis.findings.is_empty());
    let text = format!("{:?}", analysis.sections);
    assert!(
        text.contains("Published(7.03715") && text.contains("Published(9.07137"),
        "{text}"
    );
}

#[test]
fn absurd_samples_do_not_panic() {
    for value in [0.0, -1.0, f64::INFINITY, f64::NAN, 1e308] {
        let mut run = record(10.0);
        for sample in &mut run.samples {
            sample
                .measures
                .0
                .values_mut()
                .for_each(|found| *found = value);
        }
        let _ = UseOnce.analyse(&run);
    }
}

/// Changes a measure of the samples for which `wanted` holds.
fn with(
    mut run: RunRecord,
    name: &str,
    wanted: impl Fn(&Sample) -> bool,
    value: impl Fn(f64) -> f64,
) -> RunRecord {
    for sample in run.samples.iter_mut().filter(|sample| wanted(sample)) {
        let found = sample.measures.0.get_mut(name).expect("is measured");
        *found = value(*found);
    }
    run
}

fn of(group: &str, rule: &str, clients: i64) -> impl Fn(&Sample) -> bool {
    move |sample| {
        sample.group == group
            && sample.cell.contestant == rule
            && sample.cell.params.int("clients").ok() == Some(clients)
    }
}

#[test]
fn a_gain_that_stops_is_not_said_to_go_on() {
    let slower = |at| {
        with(
            record(20.0),
            "modelled_mb_per_s",
            of(DBENCH, PATCHED, at),
            |_| 0.9,
        )
    };
    let found = answers(&slower(64));
    assert!(
        found.contains(
            "at 16, 32, 48 clients, and not from any load on and costs more than that at 64"
        ),
        "{found}"
    );
    let found = answers(&slower(4));
    assert!(
        found.contains("from 16 clients on and costs more than that at 4;"),
        "{found}"
    );
}

#[test]
fn two_clients_are_said_to_be_what_they_are() {
    for (factor, word) in [
        (0.5, "Two clients are slower"),
        (2.0, "Two clients are faster"),
    ] {
        let run = with(
            record(20.0),
            "modelled_mb_per_s",
            of(DBENCH, PATCHED, 2),
            |v| v * factor,
        );
        let found = answers(&run);
        assert!(
            found.contains(word) && !found.contains("neither slower"),
            "{found}"
        );
    }
    // True by construction, so it is no answer.
    let found = answers(&record(20.0));
    assert!(
        found.contains("This model cannot tell. Both read") && !found.contains("neither slower"),
        "{found}"
    );
    let run = with(record(20.0), "pages_read", of(DBENCH, PATCHED, 2), |_| 33.0);
    let found = answers(&run);
    assert!(
        found.contains("change from 20 to 33, so the two keep different pages")
            && !found.contains("neither evicts"),
        "{found}"
    );
}

#[test]
fn the_loadfile_is_explained_only_where_its_numbers_ask_for_it() {
    // More hits, more throughput, as many pages read.
    let found = answers(&record(20.0));
    assert!(
        found.contains("At no load do hits and throughput go opposite ways")
            && !found.contains("reads more from the disk"),
        "{found}"
    );
    let more = with(
        record(20.0),
        "pages_read",
        of("loadfile", PATCHED, 32),
        |_| 9.0,
    );
    let slower = with(
        more,
        "modelled_mb_per_s",
        of("loadfile", PATCHED, 32),
        |_| 8.0,
    );
    let found = answers(&slower);
    assert!(
        found.contains("go opposite ways at 32 clients. At 32 clients the patch finds more pages and also reads more"),
        "{found}"
    );
}

#[test]
fn the_rows_that_are_given_are_said_to_be_found_otherwise_when_they_are() {
    let found = answers(&record(5.0));
    assert!(
        found.contains("the model's +5.0 %: not the same"),
        "{found}"
    );
    assert!(
        found.contains(
            "and still those two rows are others: 100.0 and 50.0 MB/s where Lord has 32.1 and 48.4"
        ),
        "{found}"
    );
    let one = with(
        record(5.0),
        "modelled_mb_per_s",
        of(DBENCH, VANILLA, 1),
        |_| 32.0,
    );
    let both = with(one, "modelled_mb_per_s", of(DBENCH, VANILLA, 2), |_| 48.5);
    let found = answers(&both);
    assert!(
        found.contains("so those two rows are given, not found: 32.0 and 48.5 MB/s"),
        "{found}"
    );
}

#[test]
fn three_seeds_of_the_field_have_their_span_and_a_winner_only_if_it_wins_with_each() {
    let three = |mglru: [f64; 3]| {
        let mut run = record(20.0);
        run.samples.retain(|sample| sample.group != FIELD);
        for (seed, mglru) in (1..).zip(mglru) {
            for (rule, hits) in [
                (VANILLA, 58.0),
                (PATCHED, 69.0 + seed as f64),
                ("mglru", mglru),
            ] {
                let measures = Measures::new().with("bare_hit_percent", hits);
                let cell = field_cell(rule, 16, seed, 30);
                run.samples.push(sample(FIELD, cell, measures));
            }
        }
        run
    };
    let run = three([75.0, 77.0, 76.0]);
    let found = answers(&run);
    assert!(
        found.contains("with use-once 71.0 % [70.0, 72.0]")
            && found.contains("the most has mglru with 76.0 % [75.0, 77.0]. Medians of 3 seeds, in brackets the least and the most; no rule has more than mglru with any of them."),
        "{found}"
    );
    let tables = format!("{:?}", UseOnce.analyse(&run).sections);
    assert!(tables.contains("71.0 % [70.0, 72.0]"), "{tables}");
    let found = answers(&three([75.0, 70.5, 76.0]));
    assert!(
        found.contains("with seed 2 linux-2.4.7-use-once has more, 71.0 %")
            && !found.contains("no rule has more"),
        "{found}"
    );
}
