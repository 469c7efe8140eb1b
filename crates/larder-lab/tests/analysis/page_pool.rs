//! What the page-pool experiment concludes from samples whose truth is known.

use crate::record::{cut, record, without};
use crate::said::goal_against;
use larder_lab::experiments::page_pool::PAGE_POOL;
use larder_lab::measure::{Depth, Experiment};
use larder_lab::model::{Analysis, Cell, GoalState, Measures};

/// jemalloc is the best peer for pairs and threads, mimalloc for the rest; the pool costs a fifth of either.
fn truth(group: &str, cell: &Cell) -> Measures {
    let jemalloc_wins = group == "pair" || group == "threads";
    let cost = match cell.contestant.as_str() {
        "pool" => 20.0,
        "pool-handle" => 12.0,
        "array-stack" => 10.0,
        "memset" => 20.0,
        "empty-loop" => 1.0,
        "mimalloc" => {
            if jemalloc_wins {
                110.0
            } else {
                100.0
            }
        }
        "jemalloc" => {
            if jemalloc_wins {
                100.0
            } else {
                110.0
            }
        }
        _ => 300.0,
    };
    let threads = cell.params.int("threads").unwrap_or(1) as f64;
    let scaling = if cell.contestant.starts_with("pool") {
        1.9
    } else {
        1.5
    };
    let held = match cell.contestant.as_str() {
        "pool" => 1e6 + 100.0 * threads,
        _ => 1e6 + 100_000.0 * threads,
    };
    Measures::new()
        .with("ns_per_page", cost)
        .with(
            "mops_per_s",
            1000.0 / cost * if threads > 1.0 { scaling } else { 1.0 },
        )
        .with("held_bytes", held)
        .with("growth_bytes", 4096.0)
        .with("growth_bytes_per_s", 1.0)
        .with("instructions", 2.0 * cost)
}

const PAIR: &str = "a warm page there and back, against";
const DEEP: &str = "a page, 256 in use, against";
const ZEROED: &str = "zeroed pages, 1 to 256 deep, against";
const HANDED: &str = "a page to another thread, against";
const RATE: &str = "pairs a second, 2 to 64 threads";
const SCALING: &str = "scaling to 2 to 64 threads";

#[test]
fn the_best_peer_is_chosen_by_group_and_the_worst_cell_stands_for_both_forms() {
    let analysis = PAGE_POOL.analyse(&record(&PAGE_POOL, Depth::Quick, 10, truth));
    assert_eq!(analysis.goals.len(), 13);
    let pair = goal_against(&analysis, PAIR, "jemalloc");
    assert_eq!(
        (pair.state, &*pair.note),
        (GoalState::Met, "worst at pool in pair")
    );
    let ratio = pair.measured.expect("measured");
    assert!((ratio.value - 0.2).abs() < 0.01, "{ratio:?}");
    assert!(pair.held_bytes.is_some());
    for (what, against) in [
        (DEEP, "mimalloc"),
        (PAIR, "array-stack"),
        (ZEROED, "memset"),
        (HANDED, "mimalloc"),
    ] {
        let state = goal_against(&analysis, what, against).state;
        assert_eq!(state, GoalState::Met, "{what} {against}");
    }
    // The terminal's summary shows this many characters.
    assert!(analysis.goals.iter().all(|goal| goal.what.len() <= 50));
}

#[test]
fn scaling_is_a_ratio_of_ratios_and_memory_a_slope() {
    let analysis = PAGE_POOL.analyse(&record(&PAGE_POOL, Depth::Quick, 10, truth));
    let scaling = goal_against(&analysis, SCALING, "jemalloc");
    assert_eq!(scaling.state, GoalState::Met);
    let ratio = scaling.measured.expect("measured");
    assert!((ratio.value - 1.9 / 1.5).abs() < 0.01, "{ratio:?}");
    let bounded = goal_against(&analysis, "bytes held for each thread", "one page");
    assert_eq!(bounded.unit, "bytes");
    assert_eq!(bounded.state, GoalState::Met);
    let slope = bounded.measured.expect("measured");
    assert!(slope.value.abs() < 1000.0, "{slope:?}");
    let greedy = record(&PAGE_POOL, Depth::Quick, 10, |group, cell| {
        let mut measures = truth(group, cell);
        if cell.contestant == "pool" {
            let threads = cell.params.int("threads").unwrap_or(1) as f64;
            measures
                .0
                .insert("held_bytes".to_owned(), 50_000.0 * threads);
        }
        measures
    });
    let greedy = PAGE_POOL.analyse(&greedy);
    assert_eq!(
        goal_against(&greedy, "bytes held for each thread", "one page").state,
        GoalState::Missed
    );
}

#[test]
fn each_question_has_one_finding_whose_verdict_names_both() {
    let analysis = PAGE_POOL.analyse(&record(&PAGE_POOL, Depth::Quick, 10, truth));
    let questions: Vec<&str> = analysis
        .findings
        .iter()
        .map(|finding| finding.question.as_str())
        .collect();
    let mut once = questions.clone();
    once.dedup();
    assert_eq!((questions.len(), &questions), (5, &once));
    let pair = &analysis.findings[0];
    assert!(pair.answer.contains("0.20 ["), "{}", pair.answer);
    assert_eq!(pair.reading, "larder's pool is faster than jemalloc");
    // mimalloc is the best peer but of pairs and threads, and its memory follows the threads.
    let memory = analysis.findings.last().expect("there are some");
    let added = memory.table.as_ref().expect("of each supplier");
    assert_eq!(added.rows.len(), 5);
    assert!(memory.answer.contains("adds 101 ["), "{}", memory.answer);
}

#[test]
fn a_slow_pool_misses() {
    let slow = record(&PAGE_POOL, Depth::Quick, 10, |group, cell| {
        let mut measures = truth(group, cell);
        if cell.contestant.starts_with("pool") {
            measures.0.insert("ns_per_page".to_owned(), 90.0);
        }
        measures
    });
    let analysis = PAGE_POOL.analyse(&slow);
    for (what, against) in [(PAIR, "jemalloc"), (DEEP, "mimalloc"), (ZEROED, "memset")] {
        let state = goal_against(&analysis, what, against).state;
        assert_eq!(state, GoalState::Missed, "{what} {against}");
    }
    let handed = goal_against(&analysis, HANDED, "mimalloc");
    assert_eq!(handed.state, GoalState::Met, "90 is still below 100");
}

#[test]
fn a_goal_below_the_cost_of_memset_says_so() {
    let run = record(&PAGE_POOL, Depth::Quick, 10, |group, cell| {
        let mut measures = truth(group, cell);
        if cell.contestant == "memset" {
            measures.0.insert("ns_per_page".to_owned(), 66.0);
        }
        measures
    });
    let analysis = PAGE_POOL.analyse(&run);
    let zeroed = goal_against(&analysis, ZEROED, "mimalloc");
    assert!(zeroed.note.contains("memset alone"), "{}", zeroed.note);
}

#[test]
fn goals_name_the_peers_that_did_not_run() {
    let full = record(&PAGE_POOL, Depth::Quick, 10, truth);
    let without = |gone: &[&str]| PAGE_POOL.analyse(&without(&full, gone));
    let note =
        |analysis: &Analysis, what, against| goal_against(analysis, what, against).note.clone();
    let all = without(&[]);
    // The quick form leaves malloc out where many pages are out.
    let deep = note(&all, DEEP, "mimalloc");
    assert_eq!(deep, "absent: malloc; worst at pool in deep-256");
    let some = without(&["mimalloc"]);
    let pair = note(&some, PAIR, "jemalloc");
    assert_eq!(pair, "absent: mimalloc; worst at pool in pair");
    let rate = note(&some, RATE, "jemalloc");
    assert!(
        rate.starts_with("absent: malloc, mimalloc; worst at pool with"),
        "{rate}"
    );
    let scaling = note(&some, SCALING, "jemalloc");
    assert!(
        scaling.contains("times; absent: malloc, mimalloc; worst at pool"),
        "{scaling}"
    );
    let none = without(&["malloc", "mimalloc", "jemalloc"]);
    let gone = "the best peer did not run; absent: malloc, mimalloc, jemalloc; worst at pool";
    for what in [PAIR, RATE] {
        let note = note(&none, what, "best peer");
        assert!(note.starts_with(gone), "{note}");
    }
}

#[test]
fn memory_over_ten_minutes_comes_from_the_long_run() {
    let mut quick = record(&PAGE_POOL, Depth::Full, 10, truth);
    let analysis = PAGE_POOL.analyse(&quick);
    let growth = goal_against(&analysis, "memory gained in ten minutes", "on their way");
    assert_eq!(growth.state, GoalState::Met);
    assert!((growth.measured.expect("measured").value - 600.0).abs() < 10.0);
    quick.samples.retain(|sample| sample.group != "growth");
    let analysis = PAGE_POOL.analyse(&quick);
    // The moment of the other groups says nothing of ten minutes.
    let growth = goal_against(&analysis, "memory gained in ten minutes", "on their way");
    assert_eq!((growth.state, growth.measured), (GoalState::Skipped, None));
    assert!(
        growth.note.contains("--full --group growth"),
        "{}",
        growth.note
    );
}

#[test]
fn partial_runs_are_read_without_panic() {
    let full = record(&PAGE_POOL, Depth::Full, 7, truth);
    for run in cut(&full, 17) {
        let _ = PAGE_POOL.analyse(&run);
    }
    for name in [
        "pool",
        "pool-handle",
        "mimalloc",
        "jemalloc",
        "malloc",
        "memset",
        "array-stack",
    ] {
        let analysis = PAGE_POOL.analyse(&without(&full, &[name]));
        assert!(
            analysis
                .goals
                .iter()
                .all(|goal| goal.measured.is_some() || !goal.note.is_empty())
        );
    }
    let empty = record(&PAGE_POOL, Depth::Quick, 0, truth);
    let analysis = PAGE_POOL.analyse(&empty);
    assert!(
        analysis
            .goals
            .iter()
            .all(|goal| goal.state == GoalState::Skipped)
    );
}
