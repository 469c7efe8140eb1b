//! The contestants of process-ids, run once each.

use larder_lab::contestants::getpid::passes_at;
use larder_lab::experiments::process_ids::PROCESS_IDS;
use larder_lab::measure::{Contestant, Experiment};
use larder_lab::model::{Measures, Params};

fn contestant(name: &str) -> Box<dyn Contestant> {
    PROCESS_IDS
        .contestants()
        .into_iter()
        .find(|c| c.name() == name)
        .unwrap_or_else(|| panic!("no contestant '{name}'"))
}

fn run(name: &str, params: &Params) -> anyhow::Result<Measures> {
    contestant(name).run(params)
}

fn timed(tasks: i64) -> Params {
    Params::new()
        .with("tasks", tasks)
        .with("deletes", 20)
        .with("rounds", 2)
        .with_text("memory", "packed")
        .with_text("start", "aged")
}

#[test]
fn every_algorithm_runs_in_every_memory_and_start() {
    for contestant in PROCESS_IDS.contestants().iter().take(15) {
        let name = contestant.name();
        for memory in ["near", "scattered", "packed"] {
            for start in ["aged", "fresh"] {
                let params = timed(200)
                    .with_text("memory", memory)
                    .with_text("start", start);
                let measures = contestant.run(&params).unwrap();
                assert_eq!(measures.get("allocations"), Some(40.0), "{name}");
                assert!(measures.get("us_per_alloc").unwrap() > 0.0);
                assert!(measures.0.values().all(|v| v.is_finite()));
            }
        }
    }
}

#[test]
fn wrong_factors_are_refused_by_name() {
    let error = |params: &Params| run("algo-0", params).unwrap_err().to_string();
    assert!(error(&timed(1)).contains("tasks is 1"));
    assert!(error(&timed(32_768)).contains("Franke's A"));
    assert!(error(&timed(50).with_text("memory", "far")).contains("memory is 'far'"));
    assert!(error(&timed(50).with_text("start", "old")).contains("start is 'old'"));
    assert!(error(&Params::new()).contains("missing"));
    let counts = Params::new()
        .with("first", 10)
        .with_text("series", "algo-1");
    let measures = run("replay", &counts).unwrap();
    assert_eq!(measures.get("searches.60"), Some(21.0));
    assert_eq!(measures.get("allocations.10"), Some(80.0));
    let error = run("replay", &counts.clone().with("first", 11)).unwrap_err();
    assert!(error.to_string().contains("begins with 11"));
    let error = run("average", &counts.clone().with_text("series", "algo-9")).unwrap_err();
    assert!(error.to_string().contains("algo-9"));
    assert!(run("variant", &counts.with_text("rule", "x")).is_err());
}

#[test]
fn passes_per_search_are_those_that_the_adaptive_form_counts_with() {
    for (tasks, deletes) in [(8000, 1000), (22_000, 400), (28_000, 200)] {
        let measures = run("algo-0", &timed(tasks).with("deletes", deletes)).unwrap();
        let passes = measures.get("passes").unwrap();
        let known = passes_at(tasks as u32);
        assert!(
            (passes / known - 1.0).abs() < 0.3,
            "{tasks}: {passes} for {known}"
        );
    }
}

#[test]
fn the_cap_ends_a_cell_that_takes_too_long() {
    let params = timed(30_000).with("deletes", 2000).with("cap_ms", 1);
    let measures = run("algo-0", &params).unwrap();
    assert_eq!(measures.get("capped"), Some(1.0));
    assert!(measures.get("allocations").unwrap() < 2000.0);
}

#[test]
fn passes_take_time_and_bad_factors_are_refused() {
    for name in ["compare-pass", "mark-pass", "mark-pass-locked"] {
        let params = Params::new()
            .with("tasks", 300)
            .with_text("memory", "packed");
        assert!(run(name, &params).unwrap().get("ns_per_task").unwrap() > 0.0);
        assert!(run(name, &params.with("tasks", 0)).is_err());
    }
}

#[test]
fn large_spaces_churn_at_every_level() {
    for name in ["large-pidmap", "large-idr", "large-larder"] {
        for level in [100, 5000, 9900, 9999] {
            let measures = run(name, &Params::new().with("bits", 16).with("used", level)).unwrap();
            assert!(measures.get("ns_per_alloc").unwrap() > 0.0);
        }
        assert!(run(name, &Params::new().with("bits", 99).with("used", 1)).is_err());
    }
    let error = run(
        "large-idr",
        &Params::new().with("bits", 32).with("used", 100),
    )
    .unwrap_err();
    assert!(error.to_string().contains("tens of GB"));
}

fn reuse(rule: &str, live: i64) -> Measures {
    let params = Params::new()
        .with_text("rule", rule)
        .with("live", live)
        .with("churns", 40_000);
    run("reuse", &params).expect("a known rule")
}

#[test]
fn lowest_first_returns_at_once_and_cyclic_goes_round() {
    for rule in [
        "algo-0",
        "algo-1-post",
        "algo-2",
        "bill",
        "pidmap",
        "idr",
        "larder cyclic",
        "larder lowest",
    ] {
        let measures = reuse(rule, 1000);
        let shares: f64 = (0..18)
            .map(|b| measures.get(&format!("share.{b:02}")).unwrap())
            .sum();
        assert!((shares - 1.0).abs() < 1e-6, "{rule}: {shares}");
    }
    assert_eq!(reuse("larder lowest", 1000).get("median"), Some(0.0));
    assert!(reuse("larder cyclic", 1000).get("median").unwrap() > 30_000.0);
    assert!(reuse("pidmap", 1000).get("least").unwrap() > 10_000.0);
    assert_eq!(reuse("pidmap", 32_000).get("least"), Some(0.0));
}
