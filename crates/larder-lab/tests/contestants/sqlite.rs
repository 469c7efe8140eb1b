//! A worker's SQLite has the page cache of its contestant, and this process's does not.

use std::path::PathBuf;
use std::time::Duration;

use larder_lab::experiments::sqlite::SQLITE;
use larder_lab::measure::{Interrupt, Launcher, OwnProcess};
use larder_lab::model::{Cell, Params};

#[test]
fn a_rule_reads_fewer_pages_of_a_loop_in_a_process_of_its_own() {
    let params = Params::new()
        .with_text("load", "misses")
        .with_text("lookups", "scans of a small table alone")
        .with("mb", 10)
        .with("scale", 64);
    let program = PathBuf::from(env!("CARGO_BIN_EXE_larder"));
    let mut launcher = OwnProcess::of(program, &Interrupt::new());
    let mut pages = |name: &str| {
        let cell = Cell::new(name, params.clone());
        let measures = launcher
            .launch(&SQLITE, &cell, Duration::from_secs(100))
            .unwrap();
        measures.get("misses").unwrap()
    };
    let [own, lru, lirs] = ["sqlite", "lru", "lirs"].map(&mut pages);
    // 30 scans of 1562 rows of 200 bytes, and LRU has none of them when the next scan comes by.
    assert!(
        own > 30.0 * 70.0 && (0.98..1.02).contains(&(lru / own)),
        "{own} {lru}"
    );
    assert!(lirs < 0.8 * own, "{own} {lirs}");
    // The same again: a count.
    assert_eq!(pages("lirs"), lirs);
}
