//! The plan is whole, both forms of a trace are the same trace, and what is wrong is refused.

use std::time::Duration;

use super::run::{load, write};
use super::*;
use crate::experiments::scratch::Scratch;
use crate::experiments::tests::is_whole;
use crate::measure::Depth;
use crate::model::{Cell, GoalState, MachineRecord, Measures, RunRecord, Sample};
use larder_sim::{Loaded, ReadOptions};

fn planned(depth: Depth, peer: Result<(), String>) -> Plan {
    let machine = MachineRecord::default();
    let request = PlanRequest {
        depth,
        machine: &machine,
        seed: 1,
    };
    super::planned(&request, peer)
}

#[test]
fn with_the_peer_the_plan_is_whole() {
    for depth in [Depth::Quick, Depth::Full] {
        is_whole(&SIMULATOR, &planned(depth, Ok(())));
    }
}

#[test]
fn the_quick_form_is_quick() {
    let groups = planned(Depth::Quick, Ok(())).groups;
    let all: Duration = groups.iter().map(|g| g.round_guess * g.min_rounds).sum();
    assert!(all <= Duration::from_secs(15), "{all:?}");
}

#[test]
fn a_peer_that_is_not_there_is_said_once() {
    let plan = planned(Depth::Quick, Err("pip install it".to_owned()));
    let cells = plan.groups.iter().flat_map(|group| &group.cells);
    assert!(cells.into_iter().all(|cell| cell.contestant == OURS));
    let mut told = plan.skipped.iter().filter(|line| line.what == PEER);
    assert_eq!(told.next().expect("said").why, "pip install it");
    assert!(told.next().is_none(), "{:?}", plan.skipped);
}

fn small(cell: &Cell) -> Params {
    cell.params
        .clone()
        .with("blocks", 500)
        .with("requests", 20_000)
        .with("size", 160)
}

#[test]
fn every_cell_of_ours_runs_and_both_forms_have_the_same_hits() {
    let mut hits = std::collections::BTreeMap::<String, f64>::new();
    for group in planned(Depth::Full, Ok(())).groups {
        for cell in group.cells.iter().filter(|cell| cell.contestant == OURS) {
            let measures = larder(&small(cell)).expect("runs");
            assert!(measures.get(SPEED).expect("reported") > 0.0, "{cell}");
            let found = measures.get(HITS).expect("reported");
            let rule = cell.params.text("rule").expect("named").to_owned();
            let before = *hits.entry(rule).or_insert(found);
            assert!((before - found).abs() < 1e-12, "{cell}: {before} {found}");
        }
    }
    assert!(hits["opt"] > hits["lru"], "{hits:?}");
}

#[test]
fn the_file_is_the_trace() {
    let params = Params::new()
        .with("blocks", 300)
        .with("requests", 5000)
        .with("seed", 9);
    let scratch = Scratch::open("test").expect("room");
    let trace = load(&params).expect("made");
    for name in ["a.oracleGeneral.zst", "a.oracleGeneral.bin"] {
        let path = scratch.path(name);
        write(&trace, &path).expect("written");
        let read = Loaded::read(&path, &ReadOptions::default(), |_| {}).expect("read");
        assert_eq!(read.counts, trace.counts, "{name}");
    }
}

#[test]
fn nothing_is_simulated_in_vain() {
    let cell = &planned(Depth::Quick, Ok(())).groups[0].cells[0];
    for (params, words) in [
        (small(cell).with("requests", 0), "both must be at least 1"),
        (small(cell).with("size", 0), "no blocks"),
        (small(cell).with_text("form", "round"), "the forms are"),
    ] {
        let error = larder(&params).expect_err("refused").to_string();
        assert!(error.contains(words), "{error}");
    }
}

/// A full run in which ours is `times` as fast, and the hits differ by `apart` points.
fn record(times: f64, apart: f64) -> RunRecord {
    record_at(Depth::Full, times, apart)
}

fn record_at(depth: Depth, times: f64, apart: f64) -> RunRecord {
    let plan = planned(depth, Ok(()));
    let mut samples = Vec::new();
    for group in plan.groups {
        for (round, cell) in (0..8).flat_map(|round| group.cells.iter().map(move |c| (round, c))) {
            let noise = 1.0 + 0.001 * f64::from(round % 3);
            let is_ours = cell.contestant == OURS;
            samples.push(Sample {
                group: group.name.clone(),
                cell: cell.clone(),
                round,
                slot: 0,
                at_us: samples.len() as u64,
                measures: Measures::new()
                    .with(SPEED, if is_ours { 4.0 * times } else { 4.0 } * noise)
                    .with(HITS, if is_ours { 70.0 } else { 70.0 - apart }),
            });
        }
    }
    RunRecord {
        samples,
        ..RunRecord::default()
    }
}

#[test]
fn goals_are_met_by_the_ratio_and_not_otherwise() {
    let states = |times| -> Vec<GoalState> {
        let analysis = SIMULATOR.analyse(&record(times, 0.0));
        analysis.goals.iter().map(|goal| goal.state).collect()
    };
    use GoalState::{Met, Missed, Skipped};
    assert_eq!(states(30.0), [Met; 6]);
    // In memory, from a file under two bounds, compressed, and two sweeps.
    assert_eq!(states(8.0), [Missed, Missed, Met, Met, Missed, Missed]);
    assert_eq!(states(5.0), [Missed, Missed, Missed, Met, Missed, Missed]);
    let mut alone = record(30.0, 0.0);
    alone.samples.retain(|s| s.cell.contestant == OURS);
    let goals = SIMULATOR.analyse(&alone).goals;
    let states: Vec<_> = goals.iter().map(|goal| goal.state).collect();
    assert_eq!(states, [Skipped, Skipped, Skipped, Skipped, Met, Met]);
}

#[test]
fn the_least_lead_is_the_answer_and_the_own_speed_where_there_is_none() {
    let mut run = record(12.0, 0.0);
    let slow = |s: &&mut Sample| {
        s.cell.contestant == OURS && s.cell.params.text("rule").ok() == Some("arc")
    };
    for sample in run.samples.iter_mut().filter(slow) {
        sample.measures.0.insert(SPEED.to_owned(), 20.0);
    }
    let answer = |run: &RunRecord| SIMULATOR.analyse(run).findings[0].answer.clone();
    let of_both = answer(&run);
    assert!(of_both.contains("at least 5.00 ["), "{of_both}");
    assert!(of_both.ends_with("under arc."), "{of_both}");
    run.samples.retain(|s| s.cell.contestant == OURS);
    assert!(
        answer(&run).contains("million, under arc"),
        "{}",
        answer(&run)
    );
}

#[test]
fn hits_that_differ_are_told() {
    let answer = |apart| {
        let analysis = SIMULATOR.analyse(&record(12.0, apart));
        let last = analysis.findings.last().expect("told");
        last.answer.clone()
    };
    assert!(answer(0.0).starts_with("Yes"), "{}", answer(0.0));
    assert!(
        answer(0.25).contains("lru by 0.25 points"),
        "{}",
        answer(0.25)
    );
}

#[test]
fn tables_have_a_row_for_each_rule() {
    let rows = |depth| -> Vec<usize> {
        let analysis = SIMULATOR.analyse(&record_at(depth, 12.0, 0.0));
        let blocks = analysis.sections[0].blocks.iter();
        let rows = blocks.map(|block| match block {
            Block::Table(table) => table.rows.len(),
            _ => 0,
        });
        rows.collect()
    };
    assert_eq!(rows(Depth::Full), [5, 5, 5, 2]);
    assert_eq!(rows(Depth::Quick), [5, 3, 2]);
}
