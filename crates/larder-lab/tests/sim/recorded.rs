//! What a block cache recorded with readahead, writes, removals and time is simulated by the program to the same counts, also where
//! dirty blocks stay in memory longer than their rule would keep them.

use std::fs;
use std::sync::{Arc, Mutex};

use crate::home::Home;
use larder_cache::{Access, AccessKind, BlockCache, CacheStats, FileId, MemoryStorage};
use larder_policy::rules;

const FRAMES: usize = 512;

/// Three files, read from front to end in places, written whole, given up, and read here and there.
fn recorded(rule: &str) -> (Vec<Access>, CacheStats) {
    let page = larder::os::page_size();
    let cache = BlockCache::builder(MemoryStorage::default())
        .bytes(FRAMES * page)
        .policy(rule)
        .read_ahead(4)
        .pressure(|| None)
        .build()
        .unwrap();
    let log: Arc<Mutex<Vec<Access>>> = Arc::default();
    let into = Arc::clone(&log);
    cache.record(Some(Box::new(move |access| {
        into.lock().unwrap().push(access)
    })));
    let files: Vec<_> = (0..3).map(|id| cache.file(FileId(id)).unwrap()).collect();
    files
        .iter()
        .for_each(|file| file.set_end(400 * page as u64));
    let mut handle = cache.handle();
    let mut word = 7_u64;
    for _ in 0..3000 {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let number = word >> 33;
        let file = &files[(number % 3) as usize];
        let start = number / 64 % 300;
        match number / 4 % 8 {
            0 => handle.request(|handle| {
                (start..start + 10).for_each(|index| drop(handle.read(file, index).unwrap()));
            }),
            1 => (start..start + 3).for_each(|index| drop(handle.overwrite(file, index).unwrap())),
            2 => {
                handle.report();
                file.invalidate(start..start + 2).unwrap();
            }
            3 if number.is_multiple_of(13) => {
                handle.report();
                file.sync().unwrap();
                cache.maintain().unwrap();
            }
            _ => drop(handle.read(file, number / 64 % 60).unwrap()),
        }
    }
    drop(handle);
    let log = log.lock().unwrap();
    (log.clone(), cache.stats())
}

/// The record as a trace, of what a filter lets through. What is about no block names the last one.
fn trace(log: &[Access], keeps: impl Fn(AccessKind) -> bool) -> String {
    let mut text = "op,id,request\n".to_owned();
    let mut last = 0;
    for access in log.iter().filter(|access| keeps(access.kind)) {
        if access.kind != AccessKind::Tick {
            last = access.block.0;
        }
        text += &format!("{},{last},{}\n", access.kind.name(), access.request);
    }
    text
}

/// What the program says of a trace under a rule, in as many frames as the cache had.
fn simulated(home: &Home, trace: &str, rule: &str) -> serde_json::Value {
    fs::write(home.path().join("recorded.csv"), trace).unwrap();
    let size = FRAMES.to_string();
    home.json(&[
        "sim",
        "recorded.csv",
        "--policy",
        rule,
        "--size",
        &size,
        "--json",
    ])
}

#[test]
fn what_a_cache_did_comes_through_the_program_as_it_was() {
    let home = Home::new();
    for rule in rules() {
        let rule = rule.name;
        let (log, stats) = recorded(rule);
        let row = simulated(&home, &trace(&log, |_| true), rule);
        let count = |kind| log.iter().filter(|access| access.kind == kind).count() as u64;
        let writes = count(AccessKind::Write);
        let states = log.iter().filter(|access| access.kind.is_state()).count() as u64;
        assert!(writes > 400 && stats.read_ahead > 1000 && count(AccessKind::Remove) > 400);
        assert!(count(AccessKind::Dirty) > 400 && count(AccessKind::Clean) > 100);
        assert!(count(AccessKind::Tick) > 10);
        for (name, found, there) in [
            ("hits", &row["tally"]["hits"], stats.hits),
            ("misses", &row["tally"]["misses"], stats.misses),
            ("fetched", &row["tally"]["fetched"], stats.read_ahead),
            ("writes", &row["counts"]["writes"], writes),
            ("readahead", &row["counts"]["readahead"], stats.read_ahead),
            (
                "removed",
                &row["counts"]["removed"],
                count(AccessKind::Remove),
            ),
            ("states", &row["counts"]["states"], states),
            ("uses", &row["counts"]["uses"], stats.hits + stats.misses),
        ] {
            assert_eq!(found, there, "{rule}: {name}");
        }
        assert_eq!(row["tally"]["lost"], 0);
        if rule == "lru" {
            let row = simulated(&home, &trace(&log, |kind| !kind.is_state()), rule);
            assert_ne!(
                row["tally"]["hits"], stats.hits,
                "dirty blocks were in the way"
            );
        }
    }
}
