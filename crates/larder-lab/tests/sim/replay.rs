//! What a block cache recorded is simulated to the same hits, under every rule; and seconds reach the rules that age by them.

use std::sync::{Arc, Mutex};

use larder_cache::{Access, AccessKind, BlockCache, FileId, MemoryStorage};
use larder_policy::rules;
use larder_sim::{Encoder, Format, Job, Kind, Loaded, ReadOptions, Record, Trace, Watch, sweep};

const FRAMES: usize = 64;

/// Uses of three files, some in several touches of one request.
fn recorded(rule: &str) -> Vec<Access> {
    let cache = BlockCache::builder(MemoryStorage::default())
        .bytes(FRAMES * larder::os::page_size())
        .policy(rule)
        .read_ahead(0)
        .build()
        .unwrap();
    let log: Arc<Mutex<Vec<Access>>> = Arc::default();
    let into = Arc::clone(&log);
    cache.record(Some(Box::new(move |access| {
        into.lock().unwrap().push(access)
    })));
    let files: Vec<_> = (0..3).map(|id| cache.file(FileId(id)).unwrap()).collect();
    let mut handle = cache.handle();
    let mut word = 7_u64;
    for _ in 0..6000 {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let number = word >> 33;
        // no more blocks than the cache keeps shadows of
        let index = number / 3 % if number.is_multiple_of(3) { 20 } else { 60 };
        let file = &files[(number % 7 % 3) as usize];
        handle.request(|handle| {
            for _ in 0..1 + number % 2 {
                handle.read(file, index).unwrap();
            }
        });
    }
    drop(handle);
    let log = log.lock().unwrap();
    log.clone()
}

/// The trace as a file would have it.
fn trace(log: &[Access], options: &ReadOptions) -> Loaded {
    let mut encoder = Encoder::new(Format::Csv, false);
    let mut bytes = Vec::new();
    encoder.begin(&mut bytes);
    // Nothing is dirty or held here.
    for access in log.iter().filter(|access| !access.kind.is_state()) {
        let record = Record {
            block: access.block.0,
            request: access.request,
            kind: if access.kind == AccessKind::Write {
                Kind::Write
            } else {
                Kind::Read
            },
            ..Record::default()
        };
        encoder.record(&record, None, &mut bytes).unwrap();
    }
    let trace = Trace::over("t.csv", std::io::Cursor::new(bytes), options).unwrap();
    Loaded::from_trace(trace, |_| ()).unwrap()
}

fn hits(trace: &Loaded, rule: &str) -> u64 {
    let job = Job {
        policy: rule.to_owned(),
        size: FRAMES,
    };
    let outcomes = sweep(trace, &[job], 1, &Watch::default()).unwrap();
    assert_eq!(outcomes[0].tally.lost, 0);
    outcomes[0].tally.hits
}

#[test]
fn a_recorded_run_has_the_same_hits_in_the_simulator_under_every_rule() {
    for rule in rules() {
        let log = recorded(rule.name);
        let there = log.iter().filter(|access| access.hit).count() as u64;
        assert!(there > 500, "{}: {there} hits", rule.name);
        let trace = trace(&log, &ReadOptions::default());
        assert_eq!(hits(&trace, rule.name), there, "{}", rule.name);
    }
}

#[test]
fn seconds_reach_rules_that_age_by_time_and_no_others() {
    let log = recorded("lru");
    let at = |tick| {
        let options = ReadOptions {
            tick,
            ..ReadOptions::default()
        };
        trace(&log, &options)
    };
    let (never, often) = (at(0), at(1));
    for (rule, ages) in [("lru", false), ("s3-fifo", false), ("linux-2.4.7", true)] {
        assert_eq!(hits(&never, rule) != hits(&often, rule), ages, "{rule}");
    }
    // A second that never comes is none.
    assert_eq!(
        hits(&never, "linux-2.4.7"),
        hits(&at(u32::MAX), "linux-2.4.7")
    );
}
