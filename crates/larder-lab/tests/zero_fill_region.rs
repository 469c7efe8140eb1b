//! Large regions are wholly touched. Alone in its process, because resident memory is counted by process.

use larder_lab::contestants::mapping::region::{self, Region};
use larder_lab::measure::Contestant;
use larder_lab::model::Params;

fn region<B: region::Bulk + 'static>(faults: std::ops::RangeInclusive<f64>) {
    let params = Params::new().with("mib", 16);
    let contestant = Region::<B>::new();
    if let Err(why) = contestant.available() {
        println!("skipped {}: {why}", B::NAME);
        return;
    }
    let measures = contestant.run(&params).unwrap();
    let found = measures.get("faults_per_op").unwrap();
    assert!(faults.contains(&found), "{}: {found}", B::NAME);
    // All 4096 pages are there after the touch, give or take the kernel's batched counters.
    let held = measures.get("held_bytes").unwrap();
    assert!(held > 15.0 * 1024.0 * 1024.0, "{}: {held}", B::NAME);
}

#[test]
fn a_region_is_wholly_touched() {
    region::<region::Plain>(1.0..=1.1);
    region::<region::ByDefault>(0.0..=1.1);
    region::<region::Populate>(0.0..=1.1);
    region::<region::Thp>(0.0..=1.1);
    region::<region::ThpPopulate>(0.0..=1.1);
    region::<region::SmallThp>(0.0..=0.6);
}
