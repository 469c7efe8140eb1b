//! The plan is whole, every cell runs, and goals follow the counts.

use std::path::PathBuf;

use super::*;
use crate::experiments::scratch::Scratch;
use crate::measure::Depth;
use crate::model::{GoalState, MachineRecord};

fn plan(depth: Depth, folder: Option<PathBuf>) -> Plan {
    let machine = MachineRecord::default();
    let request = PlanRequest {
        depth,
        machine: &machine,
        seed: 1,
    };
    planned(&request, folder)
}

#[test]
fn without_traces_the_workloads_are_left_and_a_line() {
    for depth in [Depth::Quick, Depth::Full] {
        let plan = plan(depth, None);
        assert_eq!(plan.groups.len(), 1);
        assert_eq!(plan.groups[0].name, MADE);
        assert_eq!(plan.groups[0].reference.contestant, LRU);
        assert!(plan.skipped[0].why.contains("LARDER_TRACES"));
    }
}

#[test]
fn traces_that_are_there_are_taken_and_quickly_under_three_rules() {
    let scratch = Scratch::open("test").expect("room");
    scratch.write("lirs-sprite.txt.gz", "").expect("written");
    scratch.write("arc-P3.lis.zst", "").expect("written");
    scratch.write("lirs-cs.txt.gz", "").expect("written");
    let cells = |depth, group: &str, trace: &str| {
        let plan = plan(depth, Some(scratch.folder().to_owned()));
        let cells = plan.groups.into_iter().filter(|g| g.name == group);
        let named = |cell: &Cell| cell.params.text("trace").ok() == Some(trace);
        cells.flat_map(|g| g.cells).filter(named).count()
    };
    let rules = REPLACEMENT.contestants().len();
    for (depth, rules) in [(Depth::Quick, 3), (Depth::Full, rules)] {
        assert_eq!(cells(depth, PUBLIC, "lirs-sprite.txt.gz"), rules);
        assert_eq!(cells(depth, PUBLIC, "arc-P3.lis.zst"), 2 * rules);
        assert_eq!(cells(depth, PUBLIC, "lirs-loop.txt.gz"), 0);
        assert_eq!(cells(depth, "elsewhere", "lirs-cs.txt.gz"), rules);
    }
}

#[test]
fn made_workloads_run_under_the_rules_that_are_looked_at() {
    let group = plan(Depth::Quick, None).groups.remove(0);
    let all = REPLACEMENT.contestants();
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
    assert_eq!(gaps(&[one.clone(), two], DEFAULT), Some((12.5, -25.0)));
    let flat = standing(20.0, 20.0, 20.0, 20.0);
    assert_eq!(flat.gap(DEFAULT), None);
    assert_eq!(gaps(&[one, flat], DEFAULT), None);
    assert_eq!(gaps(&[], DEFAULT), None);
}

#[test]
fn goals_need_every_cell_and_the_last_one_every_rule() {
    use GoalState::{Met, Missed, Skipped};
    let good = standing(20.0, 30.0, 29.0, 40.0);
    for traces in [&GROUPS[0], &GROUPS[2]] {
        let states = |standings: &[Standing]| {
            let goals = goals(traces, standings);
            assert!(goals.iter().all(|goal| goal.what.ends_with(traces.on)));
            goals.iter().map(|goal| goal.state).collect::<Vec<_>>()
        };
        let mut all = vec![good.clone(); traces.sizes().count()];
        assert_eq!(states(&all[1..]), [Skipped], "one row says so for all");
        assert_eq!(states(&all), [Met; 3]);
        all[3].hits.retain(|(rule, _)| rule != "arc");
        assert_eq!(states(&all), [Met, Met, Skipped]);
        all[3] = standing(20.0, 19.0, 19.6, 40.0);
        assert_eq!(states(&all), [Met, Missed, Missed]);
    }
}

#[test]
fn rules_are_ranked_by_their_means() {
    let all = [
        standing(20.0, 40.0, 21.0, 40.0),
        standing(20.0, 25.0, 30.0, 40.0),
    ];
    let table = ranking(&all);
    let rules: Vec<&Value> = table.rows.iter().map(|row| &row[0]).collect();
    let named = [OPT, DEFAULT, "arc", LRU].map(text);
    assert_eq!(rules, named.iter().collect::<Vec<_>>());
}

/// One of a half, with so many frames and uses a frame.
fn spot(half: &'static str, frames: f64, uses: f64, hits: [f64; 4]) -> halves::Spot {
    let [lru, adaptive, other, opt] = hits;
    halves::Spot {
        half,
        share: "1%",
        frames,
        uses_per_frame: uses,
        standing: standing(lru, adaptive, other, opt),
    }
}

#[test]
fn a_summary_counts_what_its_words_say() {
    let spots = [
        spot("A", 50.0, 100.0, [20.0, 30.0, 31.0, 40.0]),
        // Nothing is possible here, so there is no share of it.
        spot("A", 500.0, 100.0, [20.0, 20.0, 20.0, 20.4]),
        // Below LRU after long enough, and far behind the best.
        spot("B", 500.0, 60.0, [20.0, 19.0, 24.0, 40.0]),
        // Below it, but soon over; and so little below that it does not count.
        spot("B", 500.0, 40.0, [20.0, 17.5, 20.0, 30.0]),
        spot("B", 500.0, 60.0, [20.0, 19.6, 20.0, 30.0]),
    ];
    let all = halves::Summary::of(spots.iter());
    let mean = (50.0 - 5.0 - 25.0 - 4.0) / 4.0;
    assert!((all.gap.expect("a mean") - mean).abs() < 1e-9);
    assert_eq!(all.gap_small, Some(50.0));
    assert_eq!(all.near, 80.0);
    assert_eq!((all.furthest_behind, all.furthest_below), (5.0, 2.5));
    assert_eq!((all.below, all.below_long), (2, 1));
    let none = halves::Summary::of([].iter());
    assert_eq!((none.gap, none.below), (None, 0));
}

#[test]
fn the_halves_have_their_traces_at_all_shares_and_are_judged_as_a_whole() {
    let scratch = Scratch::open("test").expect("room");
    scratch.write("lirs-cs.txt.gz", "").expect("written");
    let cells = |depth| {
        let plan = plan(depth, Some(scratch.folder().to_owned()));
        let of = plan.groups.into_iter().filter(|g| g.name == halves::GROUP);
        of.flat_map(|g| g.cells).count()
    };
    // Eight sizes under six rules.
    assert_eq!((cells(Depth::Quick), cells(Depth::Full)), (0, 48));
    let good = spot("A", 50.0, 100.0, [20.0, 30.0, 29.0, 40.0]);
    let other = spot("B", 50.0, 100.0, [20.0, 30.0, 29.0, 40.0]);
    let states = |spots: &[halves::Spot]| {
        let goals = halves::goals(spots);
        goals.iter().map(|goal| goal.state).collect::<Vec<_>>()
    };
    let mut all = vec![good; 72];
    all.extend(vec![other; 72]);
    assert_eq!(states(&all[1..]), [GoalState::Skipped]);
    assert_eq!(states(&all), [GoalState::Met; 6]);
    all[100] = spot("B", 50.0, 100.0, [20.0, 9.0, 20.0, 40.0]);
    let mut wanted = [GoalState::Met; 6];
    (wanted[3], wanted[5]) = (GoalState::Missed, GoalState::Missed);
    assert_eq!(states(&all), wanted);
    // The halves go 50 and 35 % of the way, and no cache of the second one is small, long used or near the best.
    all[72..].fill(spot("B", 500.0, 40.0, [20.0, 27.0, 32.0, 40.0]));
    let mut wanted = [GoalState::Met; 6];
    (wanted[1], wanted[4]) = (GoalState::Missed, GoalState::Missed);
    assert_eq!(states(&all), wanted);
}

#[test]
fn a_share_is_one_of_the_blocks_of_the_trace() {
    let params = Params::new()
        .with_text("trace", "loop:blocks=3000,requests=30000")
        .with_text("share", "10%");
    let measures = simulate(LRU, &params).expect("runs");
    assert_eq!(measures.get(FRAMES), Some(300.0));
    assert_eq!(measures.get(USES), Some(30_000.0));
}
