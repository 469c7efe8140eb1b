//! Uses of saturated blocks, which are not reported to the rule, change nothing but the time they take.

use larder_cache::{BlockCache, CacheStats, FileId, MemoryStorage};

const FRAMES: usize = 2048;

fn cache(rule: &str) -> BlockCache {
    BlockCache::builder(MemoryStorage::default())
        .bytes(FRAMES * larder::os::page_size())
        .policy(rule)
        .read_ahead(0)
        .build()
        .unwrap()
}

/// Runs of `hits` hits on few blocks, on which blocks are saturated, and between them blocks that come, leave and come back.
/// With a recorder every use is reported.
fn run(rule: &str, hits: u64, reported: bool) -> (CacheStats, Vec<bool>) {
    let cache = cache(rule);
    if reported {
        cache.record(Some(Box::new(|_| {})));
    }
    let file = cache.file(FileId(1)).unwrap();
    let mut handle = cache.handle();
    let mut misses = Vec::new();
    let mut word = 5_u64;
    let mut draw = |below: u64| {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (word >> 33) % below
    };
    for round in 0..300_u64 {
        let hot = round / 40 * 300;
        for at in 0..hits {
            let mut block = hot + draw(400);
            // Some are written, which are dirty from then on.
            if at % 512 == 9 {
                handle.write(&file, block).unwrap()[0] = 1;
                block += 1;
            }
            handle.read(&file, block).unwrap();
        }
        for _ in 0..40 {
            handle.read(&file, draw(6000)).unwrap();
        }
        handle.report();
        misses.push(cache.stats().misses);
    }
    drop(handle);
    cache.check().unwrap();
    let all = misses.windows(2).map(|pair| pair[0] != pair[1]).collect();
    (cache.stats(), all)
}

#[test]
fn decisions_are_those_of_a_rule_that_hears_of_every_use() {
    for rule in ["adaptive", "fifo", "clock", "gclock", "sieve"] {
        // Too short for blocks to be pinned, and long enough.
        for hits in [400, 6000] {
            let (reported, here) = run(rule, hits, true);
            let (spared, there) = run(rule, hits, false);
            assert!(
                reported.evictions > 2000 && reported.hits > 100_000,
                "{reported:?}"
            );
            assert_eq!(here, there, "{rule}, {hits}");
            assert_eq!(reported, spared, "{rule}, {hits}");
        }
    }
}

#[test]
fn every_use_is_counted_once_for_its_file() {
    let cache = cache("adaptive");
    let files: Vec<_> = (0..3).map(|id| cache.file(FileId(id)).unwrap()).collect();
    let mut handle = cache.handle();
    let mut counts = [0_u64; 3];
    for at in 0..100_000_u64 {
        // runs of one file, and turns by all
        let which = if at % 1000 < 500 {
            at % 3
        } else {
            at / 1000 % 3
        };
        handle.read(&files[which as usize], at % 50).unwrap();
        counts[which as usize] += 1;
    }
    let clone = files[0].clone();
    handle.read(&clone, 0).unwrap();
    counts[0] += 1;
    handle.report();
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses), (100_001 - 150, 150));
    for (file, count) in files.iter().zip(counts) {
        let stats = file.stats();
        assert_eq!((stats.hits, stats.misses), (count - 50, 50));
    }
}
