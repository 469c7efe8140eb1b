//! What zero-fill counts by process: resident memory and page tables.

use crate::alone::alone;
use crate::zero_fill_counts::contestant;
use larder_lab::contestants::mapping::region::{HUGE_KIB, small_sizes};
use larder_lab::model::Params;

fn region(name: &str, faults: std::ops::RangeInclusive<f64>) {
    let mut params = Params::new().with("mib", 16);
    if let (Some(kib), "region-mthp") = (small_sizes().0.first(), name) {
        params = params.with(HUGE_KIB, *kib);
    }
    let contestant = contestant(name);
    if let Err(why) = contestant.available() {
        println!("skipped {name}: {why}");
        return;
    }
    let measures = contestant.run(&params).unwrap();
    let found = measures.get("faults_per_op").unwrap();
    assert!(faults.contains(&found), "{name}: {found}");
    // All 4096 pages are there after the touch, give or take the kernel's batched counters.
    let held = measures.get("held_bytes").unwrap();
    assert!(held > 15.0 * 1024.0 * 1024.0, "{name}: {held}");
}

#[test]
fn a_region_is_wholly_touched() {
    alone("zero_fill_alone::a_region_is_wholly_touched", || {
        region("region-touch", 1.0..=1.1);
        region("region-default", 0.0..=1.1);
        region("region-populate", 0.0..=1.1);
        region("region-thp", 0.0..=1.1);
        region("region-thp-populate", 0.0..=1.1);
        region("region-mthp", 0.0..=0.6);
        region("region-pool", 0.0..=1.1);
        region("region-pool-small", 0.0..=1.1);
    });
}

#[test]
fn a_placed_block_needs_the_page_tables_that_were_asked_for() {
    alone(
        "zero_fill_alone::a_placed_block_needs_the_page_tables_that_were_asked_for",
        || {
            for (pages, tables) in [(1, 0), (1, 1), (16, 0), (16, 1), (16, 2), (64, 2)] {
                let params = Params::new()
                    .with("pages", pages)
                    .with("tables", tables)
                    .with("ops", 200);
                let measures = contestant("mmap-placed").run(&params).unwrap();
                let faults = measures.get("faults_per_op").unwrap();
                let expected = pages as f64;
                assert!((expected..expected + 0.2).contains(&faults), "{faults}");
                if let Some(found) = measures.get("tables_per_op") {
                    assert_eq!(found, tables as f64, "{pages} pages, {tables} tables");
                }
            }
        },
    );
}
