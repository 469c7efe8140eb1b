//! The plan is whole, every shape runs, and what is wrong is refused.

use std::time::Duration;

use super::{BLOCK_CACHE, INSTRUCTIONS, shapes};
use crate::contestants::block_cache::Larder;
use crate::experiments::tests::plan_of;
use crate::measure::{Depth, Experiment, Group};
use crate::model::Params;

fn groups(depth: Depth) -> Vec<Group> {
    plan_of(&BLOCK_CACHE, depth).groups
}

#[test]
fn the_quick_form_is_quick() {
    let all: Duration = groups(Depth::Quick)
        .iter()
        .map(|g| g.round_guess * g.min_rounds)
        .sum();
    assert!(all <= Duration::from_secs(10), "{all:?}");
}

#[test]
fn every_cell_runs_when_it_is_small() {
    let all = BLOCK_CACHE.contestants();
    for group in groups(Depth::Full) {
        if group.name == INSTRUCTIONS {
            continue;
        }
        for cell in group.cells {
            let mut params = cell.params.clone().with("blocks", 2000);
            if params.int("turns").is_ok() {
                params = params.with("turns", 3000);
            }
            if params.int("milliseconds").is_ok() {
                params = params.with("milliseconds", 2);
            }
            let contestant = all.iter().find(|c| c.name() == cell.contestant);
            let measures = contestant.expect("known").run(&params).expect("runs");
            let value = measures.get(group.metric).expect("reported");
            assert!(value >= 0.0, "{cell}: {value}");
        }
    }
}

#[test]
fn nothing_is_asked_for_in_vain() {
    let wrong = Params::new()
        .with_text("shape", "hit")
        .with("blocks", 0)
        .with("turns", 1);
    let error = shapes::hit::<Larder>(&wrong)
        .expect_err("no blocks")
        .to_string();
    assert!(error.contains("must be at least 1"), "{error}");
    let unknown = wrong.with_text("shape", "round");
    for contestant in BLOCK_CACHE.contestants() {
        if !["loop", "instructions"].contains(&contestant.name()) {
            let error = contestant
                .run(&unknown)
                .expect_err("no such shape")
                .to_string();
            assert!(error.contains("the shapes are"), "{error}");
        }
    }
}
