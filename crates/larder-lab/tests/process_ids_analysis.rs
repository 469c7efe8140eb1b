//! What the process-ids experiment concludes from samples whose truth is known.

mod page_record;

use larder_lab::experiments::process_ids::ProcessIds;
use larder_lab::measure::{Depth, Experiment};
use larder_lab::model::{Analysis, Block, Cell, GoalState, Measures, RunRecord, Value};
use larder_lab::published;
use page_record::record;

/// A machine on which algo-0 costs its square, the sweeps cost three passes, and a map costs nothing to speak of; the
/// counts are his.
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
    let mut run = record(&ProcessIds, depth, 8, truth);
    for sample in run.samples.iter_mut().filter(|s| s.group == "counts") {
        sample.measures = counted(&sample.cell);
    }
    run
}

fn answer<'a>(analysis: &'a Analysis, question: &str) -> &'a str {
    &analysis
        .findings
        .iter()
        .find(|finding| finding.question.contains(question))
        .unwrap_or_else(|| panic!("no finding under '{question}'"))
        .answer
}

#[test]
fn counts_that_are_his_are_said_to_be_his() {
    let analysis = ProcessIds.analyse(&made(Depth::Quick));
    assert!(answer(&analysis, "Volunteers").contains("348 of 348"));
    assert!(answer(&analysis, "3604").contains("30 of the 30 rows"));
    assert!(answer(&analysis, "identical, but in 2 cases").contains("at 150 and 1000 tasks"));
    assert!(answer(&analysis, "Why is T 80").contains("87 of 87"));
    let mut other = made(Depth::Quick);
    for sample in &mut other.samples {
        if matches!(sample.cell.contestant.as_str(), "replay" | "average")
            && let Some(s) = sample.measures.0.get_mut("searches.22000")
        {
            *s *= 1.2;
        }
    }
    let analysis = ProcessIds.analyse(&other);
    let text = answer(&analysis, "Volunteers");
    assert!(
        text.contains("344 of 348") && text.contains("+20.0 %"),
        "{text}"
    );
    let table = table(&analysis, "S of algo-0 and algo-2");
    let row = table
        .iter()
        .find(|row| row[0] == Value::Count(22_000))
        .unwrap();
    assert_eq!(row[5], Value::Text("deviates".to_owned()));
}

fn table<'a>(analysis: &'a Analysis, title: &str) -> &'a [Vec<Value>] {
    analysis
        .sections
        .iter()
        .flat_map(|section| &section.blocks)
        .find_map(|block| match block {
            Block::Table(table) if table.title.contains(title) => Some(table.rows.as_slice()),
            _ => None,
        })
        .unwrap_or_else(|| panic!("no table '{title}'"))
}

#[test]
fn the_crossing_is_found_and_explained() {
    let analysis = ProcessIds.analyse(&made(Depth::Quick));
    let text = answer(&analysis, "~ 22K");
    // 1 + A / 10000 meets 3 at 20000.
    assert!(
        text.contains("algo-1 costs less above 2") || text.contains("algo-1 costs less above 19"),
        "{text}"
    );
    let text = answer(&analysis, "cross where they do");
    assert!(
        text.contains("k = 1.90") && text.contains("a crossing at 22"),
        "{text}"
    );
    assert!(text.contains("to 280") || text.contains("to 281"), "{text}");
    let text = answer(&analysis, "4096 bytes");
    assert!(
        text.contains("It is not") && text.contains("of the map"),
        "{text}"
    );
    let text = answer(&analysis, "32-bit");
    assert!(text.contains("0.50 ["), "{text}");
    assert!(answer(&analysis, "partial maximum").contains("2.00 ["));
}

#[test]
fn the_full_form_finds_the_crossing_in_every_memory() {
    let analysis = ProcessIds.analyse(&made(Depth::Full));
    let text = answer(&analysis, "~ 22K");
    // 1 + A / 10000 meets 3 at 20000.
    for place in ["near each other", "scattered over memory", "of 28 bytes"] {
        let part = text.split("With ").find(|part| part.contains(place));
        let part = part.unwrap_or_else(|| panic!("nothing of tasks {place}: {text}"));
        for sweep in ["algo-1", "algo-1-locked", "algo-2", "algo-2-locked"] {
            let at = |from: &str| part.contains(&format!("{sweep} costs less above {from}"));
            assert!(at("19") || at("20"), "{place}, {sweep}: {text}");
        }
        assert!(part.contains("algo-0 and algo-2-256: "), "{text}");
    }
    assert_eq!(table(&analysis, "tasks are scattered").len(), 12);
    assert_eq!(table(&analysis, "tasks of 28 bytes").len(), 12);
}

/// A wide interval of k predicts a wide place.
#[test]
fn a_k_that_is_not_known_predicts_no_crossing() {
    let mut run = made(Depth::Quick);
    for sample in run.samples.iter_mut() {
        if sample.cell.contestant == "mark-pass" {
            let ns = sample.measures.0.get_mut("ns_per_task").expect("a pass");
            *ns *= if sample.round % 2 == 0 { 0.05 } else { 200.0 };
        }
    }
    let analysis = ProcessIds.analyse(&run);
    let text = answer(&analysis, "cross where they do");
    assert!(
        text.contains("its interval allows each of the two to win everywhere"),
        "{text}"
    );
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
    ProcessIds.analyse(&run)
}

/// A sentence that would stand there whatever was measured says nothing.
#[test]
fn each_answer_follows_its_number() {
    let found = ProcessIds.analyse(&made(Depth::Quick));
    let map = |lines: f64| {
        let all = changed("task_lines", |_| true, |_| lines);
        answer(&all, "4096 bytes").to_owned()
    };
    let list = " Most of the lines are the list's";
    for (lines, begin, blames_the_list) in [
        (10_000.0, "It is not. At", true),
        (100.0, "It is a part, and the smaller one. At", true),
        (1.0, "It is: the map is the larger part. At", false),
    ] {
        let text = map(lines);
        assert!(text.starts_with(begin), "{text}");
        assert_eq!(text.contains(list), blames_the_list, "{text}");
    }

    // What no count of the run tests is not said.
    let bound = answer(&found, "partial maximum");
    assert!(!bound.contains("cannot keep"), "{bound}");
    assert!(
        bound.contains("cache lines of tasks an allocation"),
        "{bound}"
    );
    let kernel = found
        .findings
        .iter()
        .find(|f| f.question.contains("kernel of today"));
    assert!(kernel.is_none_or(|f| !f.answer.contains("still alive")));
    // He asked what stands in quotation marks.
    for f in &found.findings {
        let quoted = f.question.starts_with('"');
        assert_eq!(
            f.asked_by.contains("Franke"),
            quoted,
            "{}: {}",
            f.asked_by,
            f.question
        );
    }

    let text = answer(&found, "32-bit");
    assert!(text.starts_with("Not by walking tasks"), "{text}");
    let ours = |cell: &Cell| cell.contestant == "large-larder";
    let slow = changed("ns_per_alloc", ours, |_| 1e9);
    let text = answer(&slow, "32-bit");
    assert!(
        text.starts_with("Not by a map that is kept either"),
        "{text}"
    );

    let text = answer(&found, "reuse distance");
    assert!(text.contains("Going round does not bound it"), "{text}");
    assert!(text.contains("Promises not kept"), "{text}");
    let far = changed("least", |_| true, |_| 20_000.0);
    let text = answer(&far, "reuse distance");
    assert!(!text.contains("does not bound it"), "{text}");
    assert!(
        text.contains("gave at least as many as were free, 10767"),
        "{text}"
    );

    let text = answer(&found, "3604");
    assert!(
        text.contains("began every search at the first id"),
        "{text}"
    );
    assert!(
        !text.contains("exactly as often as algo-0"),
        "his algo-1 is not: {text}"
    );
    // A slip explains his table only where it gives his table.
    assert!(answer(&found, "certainly sufficient").contains(", as in his table"));
    let slip = |cell: &Cell| cell.params.text("series").is_ok_and(|s| s == "algo-2-256");
    let other = changed("searches.", slip, |s| s + 1.0);
    let text = answer(&other, "certainly sufficient");
    assert!(text.contains("the slip does not explain it"), "{text}");
    assert!(answer(&found, "Why is T 80").contains("deletions spare the last task"));
    let other = changed("allocations.", |_| true, |t| t + 1.0);
    let text = answer(&other, "Why is T 80");
    assert!(
        text.contains("not known") && !text.contains("spare"),
        "{text}"
    );

    let variants = |cell: &Cell| cell.contestant == "variant";
    let riddle = changed("searches.", variants, |s| 1.5 * s + 1.0);
    let text = answer(&riddle, "3604");
    assert!(
        text.contains("0 of the 30 rows") && text.contains("30 rows remain a riddle"),
        "{text}"
    );
    assert!(!text.contains("began every search"), "{text}");
}

#[test]
fn every_cure_has_its_curve() {
    let analysis = ProcessIds.analyse(&made(Depth::Full));
    let names: Vec<&str> = analysis
        .sections
        .iter()
        .flat_map(|section| &section.blocks)
        .filter_map(|block| match block {
            Block::Chart(chart) if chart.title.starts_with("G here") => Some(chart),
            _ => None,
        })
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
    let quick = ProcessIds.analyse(&made(Depth::Quick));
    assert_eq!(quick.goals[0].state, GoalState::Skipped);
    assert!(quick.goals[0].note.contains("--full"));
    let full = ProcessIds.analyse(&made(Depth::Full));
    assert_eq!(full.goals[0].state, GoalState::Met);
    assert!(full.goals[0].measured.unwrap().value > 1e8);
}

#[test]
fn his_tables_stand_beside_ours() {
    let analysis = ProcessIds.analyse(&made(Depth::Quick));
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
    for block in analysis.sections.iter().flat_map(|s| &s.blocks) {
        if let Block::Table(table) = block {
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
}

#[test]
fn nothing_and_nonsense_are_read_without_a_panic() {
    let mut empty = made(Depth::Quick);
    empty.samples.clear();
    let analysis = ProcessIds.analyse(&empty);
    assert!(analysis.findings.is_empty(), "{:?}", analysis.findings);
    for bad in [0.0, -1.0, 1e300, f64::NAN, f64::INFINITY] {
        let mut run = made(Depth::Full);
        for sample in run.samples.iter_mut().skip(1).step_by(2) {
            for value in sample.measures.0.values_mut() {
                *value = bad;
            }
        }
        let _ = ProcessIds.analyse(&run);
        run.samples.truncate(40);
        let _ = ProcessIds.analyse(&run);
    }
}
