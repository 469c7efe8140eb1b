//! The contestants of `zero-fill` do the work that they are timed for: counts, never times.

use larder_lab::contestants::mapping;
use larder_lab::contestants::mapping::bill::{Source, Use};
use larder_lab::measure::Contestant;
use larder_lab::model::{Measures, Params};

fn block(pages: i64, touch: i64) -> Params {
    Params::new()
        .with("pages", pages)
        .with("touch", touch)
        .with("ops", 200)
}

fn batch(pages: i64) -> Params {
    Params::new().with("pages", pages).with("batches", 20)
}

fn get(measures: &Measures, name: &str) -> f64 {
    measures
        .get(name)
        .unwrap_or_else(|| panic!("no measure {name} in {measures:?}"))
}

pub(crate) fn contestant(name: &str) -> Box<dyn Contestant> {
    let mut all = mapping::all().into_iter();
    all.find(|c| c.name() == name).unwrap()
}

/// Runs it where it is available; says in one line why not.
fn run(name: &str, params: &Params) -> Option<Measures> {
    let contestant = contestant(name);
    if let Err(why) = contestant.available() {
        println!("skipped {}: {why}", contestant.name());
        return None;
    }
    let measures = contestant.run(params).unwrap();
    for (name, value) in &measures.0 {
        assert!(
            value.is_finite(),
            "{}: {name} is {value}",
            contestant.name()
        );
    }
    Some(measures)
}

/// Faults per operation within what a stray fault of the process itself may add.
#[track_caller]
fn assert_faults(measures: &Measures, expected: f64) {
    let faults = get(measures, "faults_per_op");
    assert!(
        (expected..expected + 0.2).contains(&faults),
        "{faults} faults per operation, {expected} expected"
    );
}

fn faults_of(way: &str, pages: i64, touch: i64, expected: f64) {
    if let Some(measures) = run(way, &block(pages, touch)) {
        assert_faults(&measures, expected);
    }
}

#[test]
fn a_touched_page_is_one_fault() {
    for pages in [1, 2, 16] {
        faults_of("mmap", pages, 1, pages as f64);
        faults_of("dontneed", pages, 1, pages as f64);
        faults_of("memfd", pages, 1, pages as f64);
    }
}

#[test]
fn the_four_loops_of_2003_fault_as_often_as_they_touch() {
    let params = Params::new().with_text("loops", "four").with("ops", 400);
    let measures = run("mmap", &params).unwrap();
    assert_faults(&measures, 1.0);
    let two = get(&measures, "faults2_per_op");
    assert!((2.0..2.2).contains(&two), "{two}");
    // The headline is the second timing: one page, touched.
    assert_eq!(
        get(&measures, "cpu_ns_per_op"),
        get(&measures, "alloc1_fault_cpu_ns")
    );
}

#[test]
fn an_untouched_page_is_none() {
    faults_of("mmap", 2, 0, 0.0);
    faults_of("dontneed", 2, 0, 0.0);
    faults_of("memfd", 2, 0, 0.0);
}

#[test]
fn a_lazily_freed_page_comes_back_without_a_fault() {
    faults_of("madv-free", 4, 1, 0.0);
}

#[test]
fn the_touch_after_populating_faults_no_more_than_the_populating() {
    for touch in [0, 1] {
        if let Some(measures) = run("mmap-populate", &block(8, touch)) {
            // The kernel may count the pages that it populates as faults; the touch adds none.
            let faults = get(&measures, "faults_per_op");
            assert!(
                faults < 0.2 || (8.0..8.2).contains(&faults),
                "{faults} faults per block of 8"
            );
        }
    }
}

#[test]
fn a_huge_page_is_one_fault_however_much_is_touched() {
    for pages in [1, 64] {
        let params = Params::new()
            .with("pages", pages)
            .with("touch", 1)
            .with("ops", 10);
        if let Some(measures) = run("thp", &params) {
            // Small pages are what the kernel falls back to when no huge one is free.
            let faults = get(&measures, "faults_per_op");
            assert!((1.0..=pages as f64 + 0.2).contains(&faults), "{faults}");
        }
    }
}

fn step_faults(step: &str, pages: i64, expected: f64) {
    if let Some(measures) = run(step, &batch(pages)) {
        assert_faults(&measures, expected);
    }
}

#[test]
fn each_step_faults_as_often_as_it_says() {
    step_faults("step-syscall", 64, 0.0);
    step_faults("step-write-fault", 64, 1.0);
    step_faults("step-read-fault", 64, 1.0);
    if let Some(measures) = run("step-zeroing", &batch(64)) {
        assert_faults(&measures, 1.0);
    }
    step_faults("step-uffd-zeropage", 64, 0.0);
    step_faults("step-uffd-move", 64, 0.0);
}

#[test]
fn fault_around_needs_fewer_faults_than_pages() {
    if let Some(measures) = run("step-shared-around", &batch(64)) {
        let faults = get(&measures, "faults_per_op");
        assert!(faults > 0.0 && faults <= 1.0, "{faults}");
    }
}

#[test]
fn zeroing_in_place_faults_never_and_takes_time() {
    let params = Params::new()
        .with_text("routine", "portable")
        .with_text("set", "warm")
        .with("passes", 50);
    let measures = run("zero-in-place", &params).unwrap();
    assert_faults(&measures, 0.0);
    assert_eq!(get(&measures, "working_set_bytes"), 64.0 * 4096.0);
    // 4096 bytes in under 4 ns would be 1 TB/s: then the stores were optimised away.
    assert!(get(&measures, "ns_per_op") > 4.0);
}

#[test]
fn the_bill_counts_faults_where_the_kernel_supplies_and_a_helper_where_there_is_one() {
    for (source, name, _) in Source::ALL {
        for usage in Use::ALL {
            let params = Params::new()
                .with_text("use", usage.name())
                .with_text("routine", "fastest")
                .with("batches", 12);
            let Some(measures) = run(name, &params) else {
                continue;
            };
            let faults = get(&measures, "faults_per_op");
            match source {
                Source::Fault => assert!((1.0..1.1).contains(&faults), "{source:?}: {faults}"),
                Source::Populate => assert!(faults < 1.1, "{source:?}: {faults}"),
                _ => assert!(faults < 0.05, "{source:?}: {faults}"),
            }
            let helper = get(&measures, "helper_cpu_ns_per_op");
            assert_eq!(
                helper > 4.0,
                source.is_helped(),
                "{source:?}: helper {helper} ns"
            );
            let total = get(&measures, "total_cpu_ns_per_op");
            assert!((total - get(&measures, "cpu_ns_per_op") - helper).abs() < 1e-9);
        }
    }
}

#[test]
fn whole_page_uses_are_not_optimised_away() {
    for usage in [Use::WriteAll, Use::ReadAll] {
        let params = Params::new()
            .with_text("use", usage.name())
            .with_text("routine", "fastest")
            .with("batches", 40);
        let measures = run("floor-warm", &params).unwrap();
        assert!(get(&measures, "ns_per_op") > 8.0, "{usage:?}: {measures:?}");
    }
}

#[test]
fn factors_that_make_no_sense_are_named() {
    let refusal = |name: &str, p: Params| format!("{:#}", contestant(name).run(&p).unwrap_err());
    assert!(refusal("mmap", block(0, 1)).contains("'pages' is 0"));
    assert!(refusal("mmap", Params::new().with("pages", 1)).contains("'ops' is missing"));
    let three = Params::new().with_text("loops", "three").with("ops", 1);
    assert!(refusal("mmap", three).contains("'four'"));
    let placed = |pages, tables| {
        Params::new()
            .with("pages", pages)
            .with("tables", tables)
            .with("ops", 1)
    };
    assert!(refusal("mmap-placed", placed(1, 2)).contains("one page cannot lie"));
    assert!(refusal("mmap-placed", placed(1, 3)).contains("0, 1 or 2"));
    let used = Params::new().with("batches", 1).with_text("use", "eat");
    assert!(refusal("floor-warm", used).contains("'use' is 'eat'"));
    let zero = Params::new()
        .with("passes", 1)
        .with_text("set", "tepid")
        .with_text("routine", "portable");
    assert!(refusal("zero-in-place", zero).contains("warm or cold"));
    let unknown = Params::new().with_text("routine", "broom");
    assert!(refusal("zero-in-place", unknown).contains("'broom'"));
}
