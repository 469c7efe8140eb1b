//! The plan is whole, every cell runs, and goals follow the counts.

use super::plan::{DEFAULT, LRU, MADE, OPT, PUBLIC, plan};
use super::standing::{Standing, mean_gap};
use super::{HITS, contestants};
use crate::experiments::scratch::Scratch;
use crate::measure::Depth;

fn names() -> Vec<&'static str> {
    contestants::all().iter().map(|c| c.name()).collect()
}

#[test]
fn without_traces_the_workloads_are_left_and_a_line() {
    for depth in [Depth::Quick, Depth::Full] {
        let plan = plan(depth, &names(), None);
        assert_eq!(plan.groups.len(), 1);
        assert_eq!(plan.groups[0].name, MADE);
        assert!(plan.groups[0].cells.contains(&plan.groups[0].reference));
        assert!(plan.skipped[0].why.contains("LARDER_TRACES"));
    }
}

#[test]
fn traces_that_are_there_are_taken() {
    let scratch = Scratch::open("test").expect("room");
    scratch.write("lirs-sprite.txt.gz", "").expect("written");
    scratch.write("arc-P3.lis.zst", "").expect("written");
    let traces = |depth| -> Vec<String> {
        let plan = plan(depth, &names(), Some(scratch.folder().to_owned()));
        let public = plan.groups.iter().find(|group| group.name == PUBLIC);
        let mut traces: Vec<String> = public
            .expect("some are there")
            .cells
            .iter()
            .map(|cell| cell.params.text("trace").expect("named").to_owned())
            .collect();
        traces.dedup();
        traces
    };
    assert_eq!(traces(Depth::Quick), ["lirs-sprite.txt.gz"]);
    assert_eq!(
        traces(Depth::Full),
        ["lirs-sprite.txt.gz", "arc-P3.lis.zst"]
    );
}

#[test]
fn made_workloads_run_under_the_rules_that_are_looked_at() {
    let group = plan(Depth::Quick, &names(), None).groups.remove(0);
    let all = contestants::all();
    for cell in &group.cells {
        if ![LRU, DEFAULT, OPT].contains(&cell.contestant.as_str()) {
            continue;
        }
        let found = all.iter().find(|c| c.name() == cell.contestant);
        let measures = found.expect("known").run(&cell.params).expect("runs");
        let hits = measures.get(HITS).expect("reported");
        assert!((0.0..100.0).contains(&hits), "{cell}: {hits}");
        assert!(cell.contestant == LRU || hits > 0.0, "{cell}");
    }
}

fn standing(lru: f64, adaptive: f64, other: f64, opt: f64) -> Standing {
    let hits = [(LRU, lru), (DEFAULT, adaptive), ("arc", other), (OPT, opt)];
    Standing {
        trace: "t",
        size: 1,
        hits: hits.map(|(name, hits)| (name.to_owned(), hits)).to_vec(),
    }
}

#[test]
fn shares_and_distances_are_those_of_the_definition() {
    let one = standing(20.0, 30.0, 31.0, 40.0);
    assert_eq!(one.gap(DEFAULT), Some(50.0));
    assert_eq!(one.best(), Some(("arc", 31.0)));
    assert_eq!(one.behind(), Some(1.0));
    let two = standing(20.0, 15.0, 10.0, 40.0);
    assert_eq!((two.gap(DEFAULT), two.behind()), (Some(-25.0), Some(5.0)));
    assert_eq!(two.best(), Some((LRU, 20.0)));
    assert_eq!(mean_gap(&[one.clone(), two], DEFAULT), Some(12.5));
    let flat = standing(20.0, 20.0, 20.0, 20.0);
    assert_eq!(flat.gap(DEFAULT), None);
    assert_eq!(mean_gap(&[one, flat], DEFAULT), None);
    assert_eq!(mean_gap(&[], DEFAULT), None);
}
