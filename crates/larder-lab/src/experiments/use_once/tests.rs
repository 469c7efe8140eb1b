//! The analysis on constructed records.

use crate::measure::Experiment;
use crate::model::{Cell, Measures, RunRecord, Sample, Value};

use super::USE_ONCE;
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

/// A record in which the patch gives `gain` percent from 16 clients on.
fn record(gain: f64) -> RunRecord {
    let mut run = RunRecord::default();
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
    let analysis = USE_ONCE.analyse(run);
    analysis
        .findings
        .iter()
        .map(|finding| finding.answer.clone() + "\n")
        .collect()
}

/// The texts of the table of the finding under this question, row by row.
fn table(run: &RunRecord, question: &str) -> Vec<Vec<String>> {
    let findings = USE_ONCE.analyse(run).findings.into_iter();
    let mut here = findings.filter(|finding| finding.question.contains(question));
    let table = here.next().and_then(|finding| finding.table);
    let written = |value: &Value| match value {
        Value::Text(text) => text.clone(),
        Value::Count(n) => n.to_string(),
        other => format!("{other:?}"),
    };
    let rows = table.map_or(Vec::new(), |table| table.rows);
    rows.iter()
        .map(|row| row.iter().map(written).collect())
        .collect()
}

#[test]
fn the_load_from_which_it_helps_is_found() {
    let run = record(20.0);
    let found = answers(&run);
    assert!(
        found.contains("more than 2 % at 16, 32, 48, 64 clients and loses as much at none of Lord's loads; +20.0 % [+20.0, +20.0] at 64 clients. dbench's own load file is absent"),
        "{found}"
    );
    let by_clients = table(&run, "Is dbench faster");
    let row = |clients: &str| {
        by_clients
            .iter()
            .find(|row| row[0] == clients)
            .expect("a row")
    };
    assert_eq!(row("16")[1..3], ["+15.7 %", "+20.0 % [+20.0, +20.0]"]);
    assert_eq!(row("4")[1..3], ["+0.1 %", "+0.0 % [+0.0, +0.0]"]);
    assert_eq!(row("32")[3], "+20.0 %");
    let none = answers(&record(0.5));
    assert!(
        none.contains("more than 2 % at none of Lord's loads"),
        "{none}"
    );
    let worse = answers(&record(-10.0));
    assert!(worse.contains("; -10.0 % [-10.0, -10.0] at 64"), "{worse}");
}

#[test]
fn each_question_has_its_answer() {
    let run = record(29.0);
    let found = answers(&run);
    for part in [
        "The model cannot tell: both kernels read the same 20 pages",
        "dbench on a mounted file system under both rules would settle it",
        "Two touches a use change the misses of use-once by +50.0 %",
        "Of all rules mglru finds most at 16 clients: 71.0 % of the uses (one seed; --full has three)",
        "Reproduced: the modelled time of both changes by -11.0 %. The model has no cost of the compiler",
        "+29 % at 64 clients is reproduced: the model has +29.0 %",
    ] {
        assert!(found.contains(part), "{part}\n{found}");
    }
    let sections = format!("{:?}", USE_ONCE.analyse(&run).sections);
    assert!(sections.contains("16.5 %"), "the spread of Lord's runs");
    let added = table(&run, "25 years");
    let rules: Vec<&str> = added.iter().map(|row| &*row[0]).collect();
    assert_eq!(rules, ["opt", "mglru", PATCHED, VANILLA]);
    let build = table(&run, "build faster");
    assert_eq!(build[0][3], "-2.9 %");
    assert_eq!(build[1][3], "-22.3 %");
    assert_eq!(build[5][1..3], ["60.0 %", "80.0 %"]);
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
    let analysis = USE_ONCE.analyse(&run);
    let loads = &analysis.findings[0].answer;
    assert!(
        loads.starts_with("Not settled, two loads have opposite signs: +20.0 %")
            && loads.contains("-10.0 % under dbench 4.0's own load file"),
        "{loads}"
    );
    for sample in &mut run.samples {
        let own = sample.group == "loadfile" && sample.cell.contestant == PATCHED;
        if let Some(rate) = sample
            .measures
            .0
            .get_mut("modelled_mb_per_s")
            .filter(|_| own)
        {
            *rate = 11.0;
        }
    }
    let agrees = answers(&run);
    assert!(
        agrees.contains("dbench 4.0's own load file agrees: +10.0 %."),
        "{agrees}"
    );
    assert_eq!(
        analysis.answers[0].answer,
        "not settled: two loads, +20.0 and -10.0 % at 64"
    );
}

#[test]
fn the_table_of_2001_stands_even_without_samples() {
    let analysis = USE_ONCE.analyse(&RunRecord::default());
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
        let _ = USE_ONCE.analyse(&run);
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
fn the_loads_at_which_it_costs_are_named() {
    let slower = with(
        record(20.0),
        "modelled_mb_per_s",
        of(DBENCH, PATCHED, 4),
        |_| 0.9,
    );
    let found = answers(&slower);
    assert!(
        found.contains("at 16, 32, 48, 64 clients and loses as much at 4 clients;"),
        "{found}"
    );
}

#[test]
fn two_clients_are_a_number_only_where_the_rule_had_a_choice() {
    let run = with(record(20.0), "pages_read", of(DBENCH, PATCHED, 2), |_| 33.0);
    let slower = with(run, "modelled_mb_per_s", of(DBENCH, PATCHED, 2), |v| {
        v / 2.0
    });
    let found = answers(&slower);
    assert!(
        found.contains("The model changes by -50.0 % [-50.0, -50.0] and reads other pages")
            && !found.contains("cannot tell"),
        "{found}"
    );
}

#[test]
fn the_rows_that_are_given_are_said_to_differ_when_they_do() {
    let run = record(5.0);
    let found = answers(&run);
    assert!(
        found.contains("is not reproduced: the model has +5.0 %"),
        "{found}"
    );
    let so = |run: &RunRecord| {
        let rows = table(run, "numbers of 2001");
        let so = rows[1..3].iter().map(|row| row[3].contains("given"));
        so.collect::<Vec<_>>()
    };
    assert_eq!(so(&run), [false, true]);
    let one = with(run, "modelled_mb_per_s", of(DBENCH, VANILLA, 1), |_| 32.0);
    assert_eq!(so(&one), [true, true]);
    let two = with(one, "modelled_mb_per_s", of(DBENCH, VANILLA, 2), |_| 60.0);
    assert_eq!(so(&two), [true, false]);
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
        found.contains(
            "mglru finds most at 16 clients: 76.0 % [75.0, 77.0] of the uses (with each of the seeds)"
        ),
        "{found}"
    );
    let patched = &table(&run, "25 years")[1];
    assert_eq!(patched[1], "71.0 % [70.0, 72.0]");
    let tables = format!("{:?}", USE_ONCE.analyse(&run).sections);
    assert!(tables.contains("71.0 % [70.0, 72.0]"), "{tables}");
    let found = answers(&three([75.0, 70.5, 76.0]));
    assert!(
        found.contains("in the middle of the seeds, not with each of them"),
        "{found}"
    );
}
