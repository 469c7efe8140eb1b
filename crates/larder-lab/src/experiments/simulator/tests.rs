//! The plan is whole, both forms of a trace are the same trace, and what is wrong is refused.

use std::time::Duration;

use super::ours::Larder;
use super::plan::{OURS, PEER, plan};
use super::{HITS, SPEED, Simulator, trace};
use crate::experiments::scratch::Scratch;
use crate::measure::{Contestant, Depth, Experiment, Plan, PlanRequest};
use crate::model::{
    Cell, GoalState, GroupRecord, MachineRecord, Measures, NoiseRecord, Params, RunRecord, Sample,
    StopReason,
};
use crate::sim::{Loaded, ReadOptions};

fn planned(depth: Depth, peer: Result<(), String>) -> Plan {
    let machine = MachineRecord::default();
    let request = PlanRequest {
        depth,
        machine: &machine,
        seed: 1,
    };
    plan(&request, peer)
}

#[test]
fn groups_hold_their_reference_and_no_cell_twice() {
    for depth in [Depth::Quick, Depth::Full] {
        for group in planned(depth, Ok(())).groups {
            assert!(group.cells.contains(&group.reference), "{}", group.name);
            let mut cells = group.cells.clone();
            cells.sort();
            cells.dedup();
            assert_eq!(cells.len(), group.cells.len(), "{}", group.name);
        }
    }
}

#[test]
fn the_quick_form_is_quick() {
    let groups = planned(Depth::Quick, Ok(())).groups;
    let all: Duration = groups.iter().map(|g| g.round_guess * g.min_rounds).sum();
    assert!(all <= Duration::from_secs(40), "{all:?}");
}

#[test]
fn a_peer_that_is_not_there_is_said_once() {
    let plan = planned(Depth::Quick, Err("pip install it".to_owned()));
    let cells = plan.groups.iter().flat_map(|group| &group.cells);
    assert!(cells.into_iter().all(|cell| cell.contestant == OURS));
    assert_eq!(plan.skipped.len(), 1);
    assert_eq!(
        (&*plan.skipped[0].what, &*plan.skipped[0].why),
        (PEER, "pip install it")
    );
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
            let measures = Larder.run(&small(cell)).expect("runs");
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
    let trace = trace::load(&params).expect("made");
    for name in ["a.oracleGeneral.zst", "a.oracleGeneral.bin"] {
        let path = scratch.path(name);
        trace::write(&trace, &path).expect("written");
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
        let error = Larder.run(&params).expect_err("refused").to_string();
        assert!(error.contains(words), "{error}");
    }
}

/// A run in which ours is `times` as fast, and the hits differ by `apart` points.
fn record(times: f64, apart: f64) -> RunRecord {
    let plan = planned(Depth::Quick, Ok(()));
    let (mut groups, mut samples) = (Vec::new(), Vec::new());
    for group in plan.groups {
        for round in 0..8 {
            let noise = 1.0 + 0.001 * f64::from(round % 3);
            for (slot, cell) in group.cells.iter().enumerate() {
                let ours = cell.contestant == OURS;
                samples.push(Sample {
                    group: group.name.clone(),
                    cell: cell.clone(),
                    round,
                    slot: slot as u32,
                    at_us: samples.len() as u64,
                    measures: Measures::new()
                        .with(SPEED, if ours { 4.0 * times } else { 4.0 } * noise)
                        .with(HITS, if ours { 70.0 } else { 70.0 - apart }),
                });
            }
        }
        groups.push(GroupRecord {
            name: group.name,
            reference: group.reference,
            metric: group.metric.to_owned(),
            rounds: 8,
            stopped: StopReason::Rounds,
        });
    }
    RunRecord {
        schema: 1,
        id: String::new(),
        experiment: Simulator.name().to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        seconds: 1.0,
        version: String::new(),
        argv: Vec::new(),
        seed: 1,
        depth: "quick".to_owned(),
        machine: MachineRecord::default(),
        noise: NoiseRecord::default(),
        groups,
        skipped: Vec::new(),
        samples,
    }
}

#[test]
fn goals_are_met_by_the_ratio_and_not_otherwise() {
    let states = |times| -> Vec<GoalState> {
        let analysis = Simulator.analyse(&record(times, 0.0));
        analysis.goals.iter().map(|goal| goal.state).collect()
    };
    use GoalState::{Met, Missed};
    assert_eq!(states(30.0), [Met; 10]);
    assert_eq!(states(5.0)[..4], [Missed; 4]);
    assert_eq!(states(5.0)[4..8], [Met; 4]);
    assert_eq!(states(5.0)[8..], [Missed; 2]);
}

#[test]
fn hits_that_differ_are_told() {
    let answer = |apart| {
        let analysis = Simulator.analyse(&record(12.0, apart));
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
    let analysis = Simulator.analyse(&record(12.0, 0.0));
    let rows: Vec<usize> = analysis.sections[0]
        .blocks
        .iter()
        .map(|block| match block {
            crate::model::Block::Table(table) => table.rows.len(),
            _ => 0,
        })
        .collect();
    assert_eq!(rows, [5, 5, 2]);
}
