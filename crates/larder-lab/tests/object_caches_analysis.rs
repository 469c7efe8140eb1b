//! What the object-caches experiment concludes from samples whose truth is known.

mod page_record;

use larder_lab::experiments::object_caches::ObjectCaches;
use larder_lab::measure::{Depth, Experiment};
use larder_lab::model::{Analysis, Block, Cell, Goal, GoalState, Measures, RunRecord, Value};
use larder_lab::report::{self, Document, Style};
use page_record::record;

fn text<'a>(cell: &'a Cell, name: &str) -> &'a str {
    cell.params.text(name).unwrap_or_default()
}

/// The blocks of the arrays share a line of the slab, hashed-2 shares the arrays' lines too, the lock is handed over, and
/// malloc scales. rpmalloc is the best peer; the handle costs half of it.
fn truth(_: &str, cell: &Cell) -> Measures {
    let threads = cell.params.int("threads").unwrap_or(1) as f64;
    let two_cpus = text(cell, "cpus") != "one";
    let his = text(cell, "slab") == "his";
    let name = cell.contestant.as_str();
    let contended = threads > 1.0 && two_cpus;
    let slow = match name {
        "hashed-16" | "explicit-handle" if contended && his => 6.0,
        "hashed-2" if contended => 7.0,
        "hashed-mutex" | "global-locked" if contended => 9.0,
        _ => 1.0,
    };
    let share = match (threads > 1.0, two_cpus) {
        (true, true) => threads / 2.0,
        (true, false) => threads,
        _ => 1.0,
    };
    // Three threads fight half as much.
    let relief = if threads > 2.0 { 0.5 } else { 1.0 };
    let seconds = 0.1 * (1.0 + (slow - 1.0) * relief) * share;
    let sleeps = match name {
        "hashed-mutex" | "global-locked" if contended => 500.0,
        _ => 0.0,
    };
    let cost = match name {
        "object-handle" | "heap" => 3.0,
        "global" => 5.0,
        "object-cache" => 4.0,
        "rpmalloc" => 6.0,
        "mimalloc" => 7.0,
        _ => 12.0,
    };
    let constructor = if name.starts_with("object-") {
        0.0
    } else {
        100.0
    };
    Measures::new()
        .with("seconds", seconds)
        .with("mcycles_per_s", 10.0 * threads / seconds)
        .with("cpu_ns_per_cycle", 10.0)
        .with("sleeps_per_million", sleeps)
        .with("preemptions_per_million", 1.0)
        .with("ns_per_pair", cost)
        .with("ns_per_object", cost + constructor)
        .with("constructor_ns", 100.0)
        .with("held_bytes", 8192.0)
}

fn analysis() -> Analysis {
    ObjectCaches.analyse(&record(&ObjectCaches, Depth::Quick, 8, truth))
}

fn answer(analysis: &Analysis, begin: &str) -> String {
    analysis
        .findings
        .iter()
        .map(|f| f.answer.clone())
        .find(|a| a.starts_with(begin))
        .unwrap_or_else(|| panic!("no finding begins with '{begin}'"))
}

fn goal<'a>(analysis: &'a Analysis, what: &str) -> &'a Goal {
    analysis
        .goals
        .iter()
        .find(|goal| goal.what.contains(what))
        .unwrap_or_else(|| panic!("no goal '{what}'"))
}

#[test]
fn each_variant_has_its_own_reason() {
    let analysis = analysis();
    let says = |name: &str, words: &str| {
        let answer = answer(&analysis, &format!("{name}: two threads"));
        assert!(answer.contains(words), "{answer}");
    };
    says("hashed-16", "what the slab hands out lies side by side");
    says(
        "explicit-handle",
        "what the slab hands out lies side by side",
    );
    says("hashed-2", "false sharing in the arrays");
    says("hashed-mutex", "the lock is handed over");
    says("global-locked", "the lock is handed over");
    says("malloc", "costs nothing");
    says("hashed-16", "6.00 [");
}

#[test]
fn who_is_slowest_with_two_is_named() {
    let answer = answer(&analysis(), "Two threads together are slower");
    let (slowest, not) = answer.split_once("They are not").expect("two lists");
    for name in ["hashed-16", "hashed-2", "explicit-handle", "global-locked"] {
        assert!(slowest.contains(name), "{answer}");
    }
    assert!(not.contains("malloc"), "{answer}");
}

#[test]
fn his_numbers_stand_beside_ours_as_published() {
    let analysis = analysis();
    let tables: Vec<_> = analysis
        .sections
        .iter()
        .flat_map(|s| &s.blocks)
        .filter_map(|b| match b {
            Block::Table(t) => Some(t),
            _ => None,
        })
        .collect();
    let first = tables[0];
    assert!(first.title.contains("arrays indexed by thread"));
    let two = &first.rows[1];
    assert_eq!(two[0], Value::Count(2));
    assert!(
        matches!(&two[1], Value::Estimate(e, _) if (e.value - 0.6).abs() < 0.01),
        "{two:?}"
    );
    assert_eq!(two[2], Value::Published(8.25, "s".to_owned()));
    let shapes = tables
        .iter()
        .find(|t| t.title.starts_with("The same as ratios"))
        .expect("there");
    assert!(matches!(&shapes.rows[1][2], Value::Published(x, _) if (x - 8.25 / 1.52).abs() < 1e-9));
    assert!(
        tables
            .iter()
            .all(|t| t.rows.iter().all(|r| r.len() == t.columns.len()))
    );
}

#[test]
fn goals_are_against_the_best_linked_peer() {
    let analysis = analysis();
    let handle = goal(&analysis, "64 bytes, there and back: object-handle");
    assert_eq!(
        (handle.state, handle.against.as_str()),
        (GoalState::Met, "rpmalloc")
    );
    assert!((handle.measured.expect("measured").value - 0.5).abs() < 0.01);
    assert_eq!(
        goal(&analysis, "64 bytes, there and back: object-cache").state,
        GoalState::Met
    );
    assert_eq!(
        goal(&analysis, "constructor of 100 ns: object-cache").state,
        GoalState::Met
    );
    for bytes in [16, 64, 1024, 8192] {
        let global = goal(
            &analysis,
            &format!("a block of {bytes} bytes, there and back: global"),
        );
        assert_eq!(global.state, GoalState::Met);
    }
    let slow = record(&ObjectCaches, Depth::Quick, 8, |group, cell| {
        let mut measures = truth(group, cell);
        if cell.contestant.starts_with("object-") || ["heap", "global"].contains(&&*cell.contestant)
        {
            measures.0.insert("ns_per_pair".to_owned(), 5.9);
            measures.0.insert("ns_per_object".to_owned(), 105.0);
        }
        measures
    });
    let slow = ObjectCaches.analyse(&slow);
    assert!(slow.goals.iter().all(|g| g.state == GoalState::Missed));
}

/// Draws a run in every format: none may show a number that is none.
fn draw(run: &RunRecord) {
    let document = Document {
        runs: vec![(run.clone(), ObjectCaches.analyse(run))],
        submissions: Vec::new(),
    };
    assert!(!report::markdown(&document).contains("NaN"));
    let page = report::html(&document).expect("every analysis can be drawn");
    let outside = page
        .split("</script>")
        .map(|part| part.split("<script").next());
    assert!(outside.flatten().all(|text| !text.contains("NaN")));
    report::terminal(&document, &Style::plain(), &mut Vec::new())
        .expect("a vector takes everything");
}

#[test]
fn partial_and_absurd_runs_are_read_without_panic() {
    let full = record(&ObjectCaches, Depth::Full, 6, truth);
    for keep in (0..full.samples.len()).step_by(37) {
        let mut run = full.clone();
        run.samples.truncate(keep);
        let _ = ObjectCaches.analyse(&run);
    }
    for (i, odd) in [0.0, -1.0, f64::MAX, f64::MIN_POSITIVE]
        .into_iter()
        .enumerate()
    {
        let mut run = full.clone();
        for sample in run.samples.iter_mut().skip(i).step_by(3) {
            for value in sample.measures.0.values_mut() {
                *value = odd;
            }
        }
        let analysis = ObjectCaches.analyse(&run);
        assert!(analysis.findings.iter().all(|f| !f.answer.contains("NaN")));
        draw(&run);
    }
    let empty = record(&ObjectCaches, Depth::Quick, 0, truth);
    let analysis = ObjectCaches.analyse(&empty);
    assert!(
        analysis
            .goals
            .iter()
            .all(|g| g.state == GoalState::Skipped && !g.note.is_empty())
    );
    assert!(analysis.findings.is_empty(), "{:?}", analysis.findings);
}
