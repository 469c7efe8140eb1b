//! The quick form is quick, and its loads run, on SQLite's own cache: this process keeps it. With larder's, they run in processes of
//! their own, see `tests/contestants`.

use std::time::Duration;

use super::{DEFAULT, HITS, MEMORY, MISSES, MIXED, OWN, PAGES, SQLITE, TRANSACTION, loads};
use crate::experiments::scratch::Scratch;
use crate::experiments::tests::plan_of;
use crate::measure::{Depth, Experiment};
use crate::model::Params;

#[test]
fn a_run_of_all_experiments_gives_it_eight_seconds() {
    let plan = plan_of(&SQLITE, Depth::Quick);
    let brief = plan
        .groups
        .iter()
        .filter(|g| [HITS, MIXED, MEMORY].contains(&&*g.name));
    let all: Duration = brief.map(|g| g.round_guess * g.min_rounds).sum();
    assert!(all <= Duration::from_secs(8), "{all:?}");
}

#[test]
fn every_load_runs_when_it_is_small() {
    let all = SQLITE.contestants();
    let own = all.iter().find(|c| c.name() == OWN).expect("there");
    let mut seen = Vec::new();
    for group in plan_of(&SQLITE, Depth::Full).groups {
        for cell in group.cells.iter().filter(|cell| cell.contestant == OWN) {
            let mut params = cell.params.clone();
            for (factor, small) in [("lookups", 500), ("rows", 300), ("scale", 500)] {
                if params.int(factor).is_ok() {
                    params = params.with(factor, small);
                }
            }
            if group.name == MEMORY {
                params = params.with("mb", 1);
            }
            let measures = own.run(&params).expect("runs");
            assert!(
                measures.get(group.metric).is_some_and(|value| value >= 0.0),
                "{cell}"
            );
        }
        seen.push(group.name);
    }
    assert_eq!(seen, [HITS, MIXED, MEMORY, TRANSACTION, MISSES]);
}

#[test]
fn the_default_rule_is_the_library_s() {
    assert_eq!(
        larder_sqlite::Config::new(),
        larder_sqlite::Config::new().rule(DEFAULT)
    );
}

/// With so many rows the database is larger than the cache, so a check of it afterwards misses pages.
#[test]
fn the_check_of_the_database_is_not_counted() {
    const ROWS: i64 = 20_000;
    let scratch = Scratch::open("sqlite-test").expect("there is room");
    let (db, _) = loads::run_statements(&scratch.path("db"), ROWS).expect("run");
    let missed = loads::missed(&db);
    drop(db);
    let params = Params::new().with_text("load", MIXED).with("rows", ROWS);
    let measures = loads::run(&params).expect("runs");
    assert_eq!(measures.get(PAGES), Some(missed));
}
