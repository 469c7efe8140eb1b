//! What the alloc-workloads experiment concludes from samples whose truth is known.

use crate::record::{cut, record, spoiled, without};
use crate::said::{draw, goal, table};
use larder_lab::experiments::alloc_workloads::ALLOC_WORKLOADS;
use larder_lab::measure::{Depth, Experiment};
use larder_lab::model::{Cell, GoalState, Measures, RunRecord, Value};

/// mimalloc is the fastest and jemalloc, 5 % slower, the leanest; rpmalloc is leaner still but far too slow.
fn truth(_: &str, cell: &Cell) -> Measures {
    let (ns, peak) = match cell.contestant.as_str() {
        "mimalloc" => (20.0, 10e6),
        "jemalloc" => (21.0, 8e6),
        "rpmalloc" => (40.0, 4e6),
        _ => (50.0, 9e6),
    };
    Measures::new()
        .with("ns_per_op", ns)
        .with("cpu_ns_per_op", ns)
        .with("peak_bytes", peak)
        .with("held_bytes", 1e6)
}

/// The record without the library's allocators.
fn peers(depth: Depth) -> RunRecord {
    let ours = ["heap", "classes", "global", "heap-whole"];
    without(&record(&ALLOC_WORKLOADS, depth, 8, truth), &ours)
}

/// The record with an allocator of ours in it: as fast as `factor` says of mimalloc.
fn with_ours(depth: Depth, factor: impl Fn(&str) -> f64, peak: f64) -> RunRecord {
    let mut run = peers(depth);
    let ours: Vec<_> = run
        .samples
        .iter()
        .filter(|s| s.cell.contestant == "mimalloc" && !s.cell.twin)
        .map(|s| {
            let mut own = s.clone();
            own.cell.contestant = "global".to_owned();
            for (name, value) in &mut own.measures.0 {
                match name.as_str() {
                    "ns_per_op" => *value *= factor(&own.group),
                    "peak_bytes" => *value = peak * (*value / 10e6),
                    _ => {}
                }
            }
            own
        })
        .collect();
    run.samples.extend(ours);
    run
}

#[test]
fn peers_alone_have_no_goals_and_are_ranked() {
    let analysis = ALLOC_WORKLOADS.analyse(&peers(Depth::Quick));
    assert!(analysis.goals.is_empty());
    let fastest = &analysis.findings[0];
    let said = "mimalloc is nearest to the fastest of each cell: 1.00 of it in the geometric mean.";
    assert_eq!(fastest.answer, said);
    let first = &fastest.table.as_ref().expect("a row for each").rows[0];
    assert_eq!(first[2], Value::Count(15));
    let leanest = &analysis.findings[1];
    assert!(
        leanest
            .answer
            .starts_with("rpmalloc is nearest to the leanest")
    );
    let rows = &leanest.table.as_ref().expect("a row for each").rows;
    let jemalloc = rows
        .iter()
        .find(|row| row[0] == Value::Text("jemalloc".to_owned()));
    let jemalloc = jemalloc.expect("it ran");
    assert!(matches!(jemalloc[1], Value::Number(mean, _) if (mean - 2.0).abs() < 0.01));
    assert_eq!(jemalloc[2], Value::Count(0));
}

#[test]
fn the_share_of_cells_and_the_worst_of_them_are_counted() {
    let analysis = ALLOC_WORKLOADS.analyse(&with_ours(Depth::Full, |_| 0.9, 8e6));
    assert_eq!(goal(&analysis, "share of the cells").state, GoalState::Met);
    assert_eq!(goal(&analysis, "worst cell").state, GoalState::Met);
    // Slower in two groups of fifteen, and much in one of them.
    let some = |group: &str| match group {
        "larson" => 1.1,
        "cfrac" => 1.5,
        _ => 0.9,
    };
    let analysis = ALLOC_WORKLOADS.analyse(&with_ours(Depth::Quick, some, 8e6));
    let share = goal(&analysis, "share of the cells");
    assert_eq!(share.state, GoalState::Met);
    assert!((share.measured.expect("measured").value - 13.0 / 15.0).abs() < 1e-9);
    let worst = goal(&analysis, "worst cell");
    assert_eq!(worst.state, GoalState::Missed);
    assert!(worst.note.contains("cfrac"), "{}", worst.note);
    let analysis = ALLOC_WORKLOADS.analyse(&with_ours(Depth::Quick, |_| 1.1, 8e6));
    assert_eq!(
        goal(&analysis, "share of the cells").state,
        GoalState::Missed
    );
    assert_eq!(goal(&analysis, "worst cell").state, GoalState::Met);
}

#[test]
fn goals_name_the_peers_that_did_not_run() {
    let notes = |gone: &[&str]| {
        let run = without(&with_ours(Depth::Quick, |_| 0.9, 8e6), gone);
        let analysis = ALLOC_WORKLOADS.analyse(&run);
        ["share of the cells", "worst cell", "peak memory"]
            .map(|what| goal(&analysis, what).note.clone())
    };
    for note in notes(&["snmalloc"]) {
        assert!(note.ends_with("; absent: snmalloc"), "{note}");
    }
    for note in notes(&["jemalloc", "snmalloc"]) {
        assert!(note.ends_with("; absent: jemalloc, snmalloc"), "{note}");
    }
}

#[test]
fn a_peak_is_held_against_the_leanest_of_the_fast() {
    for (peak, state) in [(8.5e6, GoalState::Met), (9.5e6, GoalState::Missed)] {
        let analysis = ALLOC_WORKLOADS.analyse(&with_ours(Depth::Full, |_| 0.9, peak));
        let goal = goal(&analysis, "peak memory");
        assert_eq!(goal.state, state, "{goal:?}");
        assert!(goal.against.starts_with("jemalloc"), "{}", goal.against);
        let beside = table(&analysis, "Beside the best peer");
        for workload in ["larson", "mstress", "xmalloc-test", "sh8bench"] {
            let column = format!("peak in {workload}");
            let at = beside.columns.iter().position(|c| *c == column);
            let value = &beside.rows[0][at.expect("a column")];
            let is_it = |ratio: f64| (ratio - peak / 8e6).abs() < 0.01;
            assert!(
                matches!(value, Value::Estimate(e, _) if is_it(e.value)),
                "{value:?}"
            );
        }
    }
}

#[test]
fn the_path_that_was_taken_is_told() {
    let path = |least: f64| {
        let run = record(&ALLOC_WORKLOADS, Depth::Quick, 8, |group, cell| {
            let share = if group == "larson" { least } else { 0.98 };
            match cell.contestant.as_str() {
                "classes" => truth(group, cell).with("path_share", share),
                _ => truth(group, cell),
            }
        });
        let analysis = ALLOC_WORKLOADS.analyse(&run);
        let shares = table(&analysis, "Blocks of classes that came");
        (format!("{:?}", shares.rows), analysis.warnings)
    };
    let ((good, none), (_, warnings)) = (path(0.9), path(0.0));
    assert!(good.contains("larson") && none.is_empty(), "{none:?}");
    let said = "classes in group larson: only 0 % of the blocks came from a CPU's magazines";
    assert_eq!(warnings, [said]);
    let peers = ALLOC_WORKLOADS.analyse(&peers(Depth::Quick));
    assert!(peers.sections.iter().all(|s| s.title != "The path"));
}

#[test]
fn partial_and_absurd_runs_are_read_without_panic() {
    let full = with_ours(Depth::Full, |_| 1.0, 8e6);
    for run in cut(&full, 97) {
        let _ = ALLOC_WORKLOADS.analyse(&run);
    }
    for (i, odd) in [0.0, -1.0, f64::MAX, f64::MIN_POSITIVE]
        .into_iter()
        .enumerate()
    {
        for step in [1, 3] {
            let run = spoiled(&full, i, step, odd);
            let analysis = draw(&ALLOC_WORKLOADS, &run);
            let mut answers = analysis.findings.iter().map(|f| &f.answer);
            assert!(
                answers.all(|a| !a.contains("NaN") && !a.contains("inf")),
                "{odd:e}"
            );
            let measured = analysis.goals.iter().filter_map(|g| g.measured);
            assert!(measured.map(|e| e.value).all(|v| !v.is_nan()), "{odd:e}");
        }
    }
    let run = without(&full, &["malloc", "mimalloc", "jemalloc", "rpmalloc"]);
    let analysis = ALLOC_WORKLOADS.analyse(&run);
    assert!(
        analysis
            .goals
            .iter()
            .all(|g| g.state == GoalState::Skipped && !g.note.is_empty())
    );
}
