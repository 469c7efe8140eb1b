//! Dirty blocks that the cache writes by itself, so that they do not keep the cache.

use crate::common::{Call, Faulty};
use larder_cache::{BlockCache, FileId};

const FILE: FileId = FileId(1);

fn size() -> u64 {
    larder::os::page_size() as u64
}

#[test]
fn blocks_that_were_written_once_do_not_keep_the_cache() {
    let cache = BlockCache::builder(Faulty::default())
        .bytes(16 * size() as usize)
        .read_ahead(0)
        .build()
        .unwrap();
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    for index in 0..15 {
        handle.overwrite(&file, index).unwrap().fill(1);
    }
    for _ in 0..20 {
        for index in 100..112 {
            handle.read(&file, index).unwrap();
        }
    }
    handle.report();
    assert!(cache.stats().hits > 100, "{:?}", cache.stats());
}

#[test]
fn the_rule_has_written_what_would_have_left_and_not_what_is_changed_all_the_time() {
    let storage = Faulty::default();
    let cache = BlockCache::builder(storage.clone())
        .bytes(64 * size() as usize)
        .read_ahead(0)
        .build()
        .unwrap();
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    let (hot, cold) = (0..8, 100..112);
    // What comes while the cache fills has its turn later.
    for index in 2000..2064 {
        handle.read(&file, index).unwrap();
    }
    for index in hot.clone().chain(cold.clone()) {
        handle.overwrite(&file, index).unwrap().fill(1);
    }
    for round in 0..40 {
        for index in hot.clone() {
            handle.write(&file, index).unwrap()[0] = round;
        }
        for index in 0..10 {
            let index = 1000 + u64::from(round) * 10 + index;
            handle.read(&file, index).unwrap();
        }
    }
    let calls = storage.calls();
    let written = |blocks: &std::ops::Range<u64>| {
        let inside = |offset: u64| blocks.contains(&(offset / size()));
        let writes = calls.iter();
        writes
            .filter(|call| matches!(call, Call::Write(_, offset, _) if inside(*offset)))
            .count()
    };
    assert_eq!(
        (written(&cold), written(&hot)),
        (12, 0),
        "{:?}",
        cache.stats()
    );
}
