//! Hit ratios of every rule on traces, against values that others published or computed, and against noted ones of `adaptive`.

#![allow(clippy::unwrap_used)]

mod cells;
mod dbench;
mod traces;

use larder_policy::replay::Replay;
use larder_policy::{Policy, PolicyError, Visitor, rules, with_rule};
use std::time::Instant;

use cells::CELLS;
use traces::{Trace, directory};

/// Runs a trace: hits in percent, and the seconds that it took.
struct Run<'t>(&'t Trace);

impl Visitor for Run<'_> {
    type Out = Result<(f64, f64), PolicyError>;
    fn visit<P: Policy>(self, _: &'static str, rule: P) -> Self::Out {
        let Self(trace) = self;
        let mut cache = Replay::with(rule, trace.blocks)?;
        let begin = Instant::now();
        cache.run(&trace.accesses, 0);
        let seconds = begin.elapsed().as_secs_f64();
        cache.rule().check().unwrap();
        assert_eq!(cache.lost(), 0);
        Ok((
            cache.hits() as f64 * 100.0 / trace.accesses.len() as f64,
            seconds,
        ))
    }
}

fn run(rule: &str, trace: &Trace, capacity: usize) -> (f64, f64) {
    with_rule(rule, capacity, Run(trace)).unwrap().unwrap()
}

/// Hits in percent on a trace, at a capacity.
fn percent(rule: &str, trace: &Trace, capacity: usize) -> f64 {
    run(rule, trace, capacity).0
}

/// Belady, Nelson, Shedler, CACM 12(6), 1969: a FIFO may miss more often with more memory; LRU never does.
#[test]
fn the_anomaly_of_1969_is_found_where_it_was_and_nowhere_else() {
    let trace = Trace::of([1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5]);
    let misses = |rule: &str, capacity| {
        let hits = percent(rule, &trace, capacity);
        12 - (hits * 12.0 / 100.0).round() as u64
    };
    assert_eq!([3, 4, 5].map(|frames| misses("fifo", frames)), [9, 10, 5]);
    assert_eq!([3, 4, 5].map(|frames| misses("lru", frames)), [10, 8, 5]);
    for rule in rules() {
        assert_eq!(misses(rule.name, 5), 5, "{} with room for all", rule.name);
    }
}

/// A loop of 100 blocks over a cache of 90: what uses recency alone finds nothing, what resists keeps most.
#[test]
fn a_loop_that_does_not_fit_tells_the_rules_apart() {
    let trace = Trace::of((0..20_000).map(|at| at % 100));
    let hits = |rule| percent(rule, &trace, 90);
    for rule in ["fifo", "lru", "clock", "arc", "lru-2", "sieve", "car", "mq"] {
        assert_eq!(hits(rule), 0.0, "{rule}");
    }
    for rule in ["lirs", "clock-pro"] {
        assert!((87.0..89.1).contains(&hits(rule)), "{rule}: {}", hits(rule));
    }
    for rule in ["2q", "s3-fifo", "clock2q+", "w-tinylfu"] {
        assert!(hits(rule) > 50.0, "{rule}: {}", hits(rule));
    }
}

#[test]
fn every_cell_is_equal_to_a_twentieth_of_a_point() {
    let Some(directory) = directory() else { return };
    let mut wrong = Vec::new();
    for of_trace in CELLS.chunk_by(|a, b| a.file == b.file) {
        let trace = Trace::read(&directory, of_trace[0].file);
        for cells in of_trace {
            for &(rule, expected) in cells.hits {
                let ours = percent(rule, &trace, cells.capacity);
                if (ours - expected).abs() > 0.05 {
                    let (file, capacity) = (cells.file, cells.capacity);
                    wrong.push(format!(
                        "{file} {capacity} {rule}: {ours:.3}, not {expected}"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Prints hit ratios and speeds: `LARDER_TRACES=… cargo test --release -p larder-policy --test golden speed -- --ignored --nocapture`.
/// `LARDER_RULES` names some of the rules.
#[test]
#[ignore = "prints, and claims nothing"]
fn speed() {
    let Some(directory) = directory() else { return };
    let only = std::env::var("LARDER_RULES").unwrap_or_default();
    for (file, sizes) in [
        ("arc-OLTP.lis.zst", &[1000, 5000, 15000][..]),
        ("arc-P3.lis.zst", &[32768, 131_072]),
        ("cloudphysics-w106.u32be.xz", &[1000, 10000, 33764]),
        ("cloudPhysicsIO.oracleGeneral.bin", &[4000, 10000]),
        ("lirs-sprite.txt.gz", &[400]),
        ("lirs-multi2.txt.gz", &[2000]),
        ("lirs-loop.txt.gz", &[900]),
    ] {
        let trace = Trace::read(&directory, file);
        println!(
            "{file}: {} accesses, {} blocks",
            trace.accesses.len(),
            trace.blocks
        );
        for rule in rules() {
            if !only.is_empty() && !only.split(',').any(|name| name == rule.name) {
                continue;
            }
            print!("  {:14}", rule.name);
            for &size in sizes {
                let mut seconds = f64::MAX;
                let mut hits = 0.0;
                for _ in 0..3 {
                    let took;
                    (hits, took) = run(rule.name, &trace, size);
                    seconds = seconds.min(took);
                }
                let rate = trace.accesses.len() as f64 / seconds / 1e6;
                print!("  {size:6}: {hits:6.2} % {rate:6.1} M/s");
            }
            println!();
        }
    }
}
