//! What the process-ids experiment concludes from samples whose truth is known.

use crate::record::{record, spoiled};
use crate::said::{answer, tables};
use larder_lab::experiments::process_ids::PROCESS_IDS;
use larder_lab::measure::{Depth, Experiment};
use larder_lab::model::{Analysis, Cell, GoalState, Measures, RunRecord, Value};
use larder_lab::published;

/// A machine on which algo-0 costs its square, the sweeps cost three passes, and a map costs nothing to speak of; the
/// counts are those of 2002.
fn truth(group: &str, cell: &Cell) -> Measures {
    let tasks = cell.params.int("tasks").unwrap_or(1) as f64;
    if group == "counts" {
        return counted(cell);
    }
    let pass = tasks / 1000.0;
    let cost = match cell.contestant.as_str() {
        "algo-0" if tasks >= 32_767.0 => 2e6,
        "algo-0" => pass * (1.0 + tasks / 10_000.0),
        "algo-1" | "algo-1-locked" | "algo-2" | "algo-2-locked" => pass * 3.0,
        "algo-2-256" => pass * 6.0,
        "larder" | "pidmap" => 0.01,
        _ => pass,
    };
    let measures = Measures::new()
        .with("us_per_alloc", cost)
        .with("allocations", 100.0)
        .with("searches", 50.0)
        .with("passes", 1.0 + tasks / 10_000.0)
        .with("task_lines", tasks)
        .with(
            "ns_per_alloc",
            if cell.contestant == "large-larder" {
                5.0
            } else {
                10.0
            },
        );
    let measures = match cell.contestant.as_str() {
        "mark-pass" => measures.with("ns_per_task", 1.9),
        "mark-pass-locked" => measures.with("ns_per_task", 2.66),
        _ => measures.with("ns_per_task", 1.0),
    };
    measures
        .with("least", 7.0)
        .with("median", 9.0)
        .with("share.03", 1.0)
}

fn counted(cell: &Cell) -> Measures {
    let series = cell.params.text("series").unwrap_or("algo-1");
    let mut measures = Measures::new().with("searches", 1.0);
    for (row, bounded) in published::franke_getpid()
        .iter()
        .zip(published::franke_limit256())
    {
        let searches = match series {
            "algo-0" => row.searches_algo0,
            "algo-1" => row.searches_algo1,
            "algo-2" => row.searches_algo2,
            _ => bounded.searches_algo2_256,
        };
        measures = measures
            .with(&format!("searches.{}", row.tasks), f64::from(searches))
            .with(
                &format!("allocations.{}", row.tasks),
                f64::from(row.allocations),
            );
    }
    measures
}

/// As [`record`], with counts that are exact.
fn made(depth: Depth) -> RunRecord {
    let mut run = record(&PROCESS_IDS, depth, 8, truth);
    for sample in run.samples.iter_mut().filter(|s| s.group == "counts") {
        sample.measures = counted(&sample.cell);
    }
    run
}

#[test]
fn counts_as_printed_are_said_to_be_so() {
    let analysis = PROCESS_IDS.analyse(&made(Depth::Quick));
    assert!(answer(&analysis, "redone").contains("348 of 348"));
    let facts = |analysis: &Analysis| format!("{:?}", table(analysis, "The test of 2002"));
    assert!(facts(&analysis).contains("87 of 87"));
    assert!(answer(&analysis, "3604").contains("30 of 30 counts"));
    assert!(answer(&analysis, "identical but in 2 cases").contains("at 150 and 1000 live ids"));
    let mut other = made(Depth::Quick);
    for sample in &mut other.samples {
        if matches!(sample.cell.contestant.as_str(), "replay" | "average")
            && let Some(s) = sample.measures.0.get_mut("searches.22000")
        {
            *s *= 1.2;
        }
    }
    let analysis = PROCESS_IDS.analyse(&other);
    assert!(answer(&analysis, "redone").contains("344 of 348"));
    assert!(facts(&analysis).contains("+20.0 %"));
}

fn table<'a>(analysis: &'a Analysis, title: &str) -> &'a [Vec<Value>] {
    let of_findings = analysis.findings.iter().filter_map(|f| f.table.as_ref());
    tables(analysis)
        .chain(of_findings)
        .find(|table| table.title.contains(title))
        .map(|table| table.rows.as_slice())
        .unwrap_or_else(|| panic!("no table '{title}'"))
}

fn crossings(analysis: &Analysis) -> Vec<(String, Vec<Value>)> {
    let rows = table(analysis, "above which a sweep costs less").iter();
    let named = rows.map(|row| match &row[0] {
        Value::Text(name) => (name.clone(), row[1..].to_vec()),
        other => panic!("{other:?} is no name"),
    });
    named.collect()
}

/// 1 + A / 10000 meets 3 at 20000.
fn near_20000(value: &Value) -> bool {
    matches!(value, Value::Estimate(at, _) if (19_000.0..21_000.0).contains(&at.value))
}

#[test]
fn the_crossing_is_found_and_explained() {
    let analysis = PROCESS_IDS.analyse(&made(Depth::Full));
    let text = answer(&analysis, "should one switch");
    assert!(
        text.starts_with("Switch from the walk") && text.contains("(algo-2) at 19992 ["),
        "{text}"
    );
    let reading = |question: &str| {
        let mut all = analysis.findings.iter();
        all.find(|f| f.question.contains(question))
            .map(|f| f.reading.as_str())
    };
    let kept = reading("kept up to date").unwrap_or_default();
    assert!(kept.ends_with(" is faster than andrea"), "{kept}");
    for (name, places) in crossings(&analysis) {
        let plain = name == "algo-1" || name == "algo-2";
        assert!(!plain || near_20000(&places[0]), "{name}: {places:?}");
    }
    let rows = table(&analysis, "what it predicts");
    let k = |row: &[Value]| match &row[2] {
        Value::Estimate(k, _) => (k.value * 100.0).round() / 100.0,
        other => panic!("{other:?} is no ratio"),
    };
    assert_eq!((rows.len(), k(&rows[0]), k(&rows[1])), (6, 1.9, 2.66));
    let predicted = |row: &[Value]| format!("{:?}", row[3]);
    assert!(predicted(&rows[0]).contains("22"), "{:?}", rows[0]);
    assert!(predicted(&rows[1]).contains("280"), "{:?}", rows[1]);
    // 1.9 predicts 22000, and they cross at 20000: the cause is not confirmed.
    let text = answer(&analysis, "cost more than a sweep from");
    assert!(text.contains("predicts 0 of 6"), "{text}");
    assert!(answer(&analysis, "4096 bytes").starts_with("No: at 30000"));
    let text = answer(&analysis, "32 bits");
    assert!(
        text.starts_with("Yes, by a map that is kept: with 99.99 % of 2^32")
            && text.contains("0.50 ["),
        "{text}"
    );
    assert!(answer(&analysis, "partial map").contains("2.00 ["));
}

#[test]
fn the_full_form_finds_the_crossing_in_every_memory() {
    let analysis = PROCESS_IDS.analyse(&made(Depth::Full));
    let found = crossings(&analysis);
    assert_eq!(found.len(), 5);
    for (name, places) in found {
        assert_eq!(places.len(), 3, "{name}");
        let bounded = name == "algo-2-256";
        assert!(
            bounded || places.iter().all(near_20000),
            "{name}: {places:?}"
        );
    }
    assert_eq!(table(&analysis, "tasks are scattered").len(), 12);
    assert_eq!(table(&analysis, "tasks of 28 bytes").len(), 12);
}

/// A wide interval of k predicts nothing, and a crossing where k says is its success.
#[test]
fn k_is_judged_by_the_crossing() {
    let marked = |ns: &dyn Fn(u32) -> f64| {
        let mut run = made(Depth::Full);
        for sample in run.samples.iter_mut() {
            if sample.cell.contestant == "mark-pass" {
                let round = sample.round;
                *sample.measures.0.get_mut("ns_per_task").expect("a pass") = ns(round);
            }
        }
        PROCESS_IDS.analyse(&run)
    };
    let unknown = marked(&|round| if round % 2 == 0 { 0.05 } else { 200.0 });
    let row = format!("{:?}", table(&unknown, "what it predicts")[0]);
    assert!(row.contains("anything is possible"), "{row}");
    let right = marked(&|round| 1.72 + 0.01 * f64::from(round));
    let text = answer(&right, "cost more than a sweep from");
    assert!(text.contains("predicts 3 of 6"), "{text}");
}

/// The same run with a measure of some cells made another.
fn changed(measure: &str, of: impl Fn(&Cell) -> bool, value: impl Fn(f64) -> f64) -> Analysis {
    let mut run = made(Depth::Quick);
    for sample in run.samples.iter_mut().filter(|s| of(&s.cell)) {
        for (name, found) in &mut sample.measures.0 {
            if name.starts_with(measure) {
                *found = value(*found);
            }
        }
    }
    PROCESS_IDS.analyse(&run)
}

/// A sentence that would stand there whatever was measured says nothing.
#[test]
fn each_answer_follows_its_number() {
    let found = PROCESS_IDS.analyse(&made(Depth::Quick));
    for (lines, begin) in [(10_000.0, "No: "), (100.0, "In part: "), (1.0, "Yes: ")] {
        let all = changed("task_lines", |_| true, |_| lines);
        let text = answer(&all, "4096 bytes");
        assert!(text.starts_with(begin), "{text}");
    }

    let text = answer(&found, "32 bits");
    assert!(
        text.starts_with("By a map that is kept 22 bits are reached, and 32 bits were not tested"),
        "{text}"
    );
    let ours = |cell: &Cell| cell.contestant == "large-larder";
    let slow = changed("ns_per_alloc", ours, |_| 1e9);
    let text = answer(&slow, "32 bits");
    assert!(text.starts_with("Not even by a map"), "{text}");
    // Where the curves meet twice, or one is below everywhere, no number is told.
    let sweep = |cell: &Cell| cell.contestant == "algo-2";
    let cheap = changed("us_per_alloc", sweep, |us| us / 100.0);
    let text = answer(&cheap, "should one switch");
    assert!(
        text.starts_with("Nowhere: the sweep over a kept bitmap"),
        "{text}"
    );
    let twice = |cell: &Cell| sweep(cell) && cell.params.int("tasks").is_ok_and(|a| a == 8000);
    let twice = changed("us_per_alloc", twice, |us| us / 100.0);
    let text = answer(&twice, "should one switch");
    assert!(text.starts_with("Not decided: "), "{text}");

    let kept = |analysis: &Analysis| {
        let rows = table(analysis, "Reuse distance");
        let last = |row: &Vec<Value>| row.last() == Some(&Value::Text("no".to_owned()));
        rows.iter().filter(|row| last(row)).count()
    };
    let far = changed("least", |_| true, |_| 40_000.0);
    assert_eq!((kept(&found), kept(&far)), (12, 0));

    assert!(answer(&found, "3604").contains("searched from the beginning"));
    // A slip explains the table of 2002 only where it gives that table.
    assert!(answer(&found, "identical but").contains("as printed"));
    let slip = |cell: &Cell| cell.params.text("series").is_ok_and(|s| s == "algo-2-256");
    let other = changed("searches.", slip, |s| s + 1.0);
    let text = answer(&other, "identical but");
    assert!(text.contains("the slip does not explain it"), "{text}");
    let other = changed("allocations.", |_| true, |t| t + 1.0);
    let facts = format!("{:?}", table(&other, "The test of 2002"));
    assert!(facts.contains("0 of 87"), "{facts}");

    let variants = |cell: &Cell| cell.contestant == "variant";
    let riddle = changed("searches.", variants, |s| 1.5 * s + 1.0);
    let text = answer(&riddle, "3604");
    assert!(
        text.starts_with("Not known") && text.contains("0 of 30 counts"),
        "{text}"
    );
}

#[test]
fn what_franke_proposed_is_compared_with_the_better_of_what_it_replaces() {
    let analysis = PROCESS_IDS.analyse(&made(Depth::Quick));
    // algo-0 takes 1 + A / 10000 passes, algo-2 three, everything else one.
    for (question, contestant) in [
        ("adaptive implementation", "algo-2"),
        ("go forward", "algo-1-post"),
        ("Arcangeli", "algo-1-locked"),
        ("Irwin", "algo-2"),
    ] {
        let text = answer(&analysis, question);
        assert!(text.contains(&format!("of {contestant} (")), "{text}");
    }
    let rows = table(&analysis, "against algo-0 or algo-2");
    let ratios: Vec<f64> = rows
        .iter()
        .filter_map(|row| match &row[2] {
            Value::Ratio(ratio, _) => Some((ratio.value * 100.0).round() / 100.0),
            _ => None,
        })
        .collect();
    assert_eq!(ratios, [0.91, 0.33, 0.33]);
    let words = |f: &larder_lab::model::Finding| {
        f.question.split_whitespace().count() + f.answer.split_whitespace().count()
    };
    assert!(analysis.findings.iter().map(words).sum::<usize>() < 500);
}

#[test]
fn every_cure_has_its_curve() {
    let analysis = PROCESS_IDS.analyse(&made(Depth::Full));
    let charts = analysis.findings.iter().filter_map(|f| f.chart.as_ref());
    let names: Vec<&str> = charts
        .filter(|chart| chart.title.contains("near each other"))
        .flat_map(|chart| chart.series.iter().map(|series| series.name.as_str()))
        .collect();
    for name in [
        "algo-0",
        "algo-2-locked",
        "adaptive",
        "andrea",
        "bill",
        "larder",
    ] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
}

#[test]
fn the_goal_needs_the_full_form() {
    let quick = PROCESS_IDS.analyse(&made(Depth::Quick));
    assert_eq!(quick.goals[0].state, GoalState::Skipped);
    assert!(quick.goals[0].note.contains("--full"));
    let full = PROCESS_IDS.analyse(&made(Depth::Full));
    assert_eq!(full.goals[0].state, GoalState::Met);
    assert!(full.goals[0].measured.unwrap().value > 1e8);
}

#[test]
fn the_tables_of_2002_stand_beside_ours() {
    let analysis = PROCESS_IDS.analyse(&made(Depth::Quick));
    let rows = table(&analysis, "Table 1");
    assert_eq!(rows.len(), 87);
    let row = rows
        .iter()
        .find(|row| row[0] == Value::Count(22_000))
        .unwrap();
    assert_eq!(row[3], Value::Published(5177.0, String::new()));
    assert_eq!(row[4], Value::Number(5177.0, String::new()));
    assert!(matches!(row[6], Value::Estimate(..)));
    assert_eq!(table(&analysis, "Table 2").len(), 87);
    for table in tables(&analysis) {
        assert!(
            table
                .rows
                .iter()
                .all(|row| row.len() == table.columns.len()),
            "{}",
            table.title
        );
    }
}

#[test]
fn nothing_and_nonsense_are_read_without_a_panic() {
    let mut empty = made(Depth::Quick);
    empty.samples.clear();
    let analysis = PROCESS_IDS.analyse(&empty);
    assert!(analysis.findings.is_empty(), "{:?}", analysis.findings);
    for bad in [0.0, -1.0, 1e300, f64::NAN, f64::INFINITY] {
        let mut run = spoiled(&made(Depth::Full), 1, 2, bad);
        let _ = PROCESS_IDS.analyse(&run);
        run.samples.truncate(40);
        let _ = PROCESS_IDS.analyse(&run);
    }
}
