//! The block cache with several threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::common::{Faulty, Stop};
use larder_cache::{BlockCache, CacheError, FileId};
use larder_policy::rules;

const FILE: FileId = FileId(1);

fn size() -> u64 {
    larder::os::page_size() as u64
}

fn cache(storage: &Faulty, blocks: usize, rule: &str) -> BlockCache {
    let bytes = blocks * larder::os::page_size();
    let builder = BlockCache::builder(storage.clone()).bytes(bytes);
    builder.read_ahead(0).policy(rule).build().unwrap()
}

#[test]
fn many_threads_that_want_one_block_cause_one_read() {
    let storage = Faulty::default();
    let cache = cache(&storage, 4, "adaptive");
    let file = cache.file(FILE).unwrap();
    storage.close_gate();
    let begun = AtomicU64::new(0);
    std::thread::scope(|threads| {
        for _ in 0..16 {
            threads.spawn(|| {
                begun.fetch_add(1, Ordering::SeqCst);
                assert_eq!(cache.handle().read(&file, 3).unwrap()[0], 0);
            });
        }
        while begun.load(Ordering::SeqCst) < 16 || storage.reads() == 0 {
            std::thread::yield_now();
        }
        // each thread that has begun has had time to ask, and a second read would be seen
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(storage.reads(), 1);
        storage.open_gate();
    });
    assert_eq!(storage.reads(), 1);
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses), (15, 1));
}

#[test]
fn a_miss_while_all_blocks_are_being_read_waits_for_one() {
    let storage = Faulty::default();
    let cache = cache(&storage, 2, "adaptive");
    let file = cache.file(FILE).unwrap();
    storage.close_gate();
    // Once blocks have been read, their readers may keep both frames for a moment: a miss is refused then.
    let may_be_refused = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let readers: Vec<_> = (0..4)
            .map(|index| {
                let (cache, file, may_be_refused) = (&cache, &file, &may_be_refused);
                threads.spawn(move || {
                    loop {
                        match cache.handle().read(file, index).map(|block| block[0]) {
                            Err(CacheError::Pinned { .. })
                                if may_be_refused.load(Ordering::SeqCst) =>
                            {
                                std::thread::yield_now();
                            }
                            read => return read,
                        }
                    }
                })
            })
            .collect();
        while storage.reads() < 2 {
            std::thread::yield_now();
        }
        // The other two have had time to ask.
        std::thread::sleep(Duration::from_millis(20));
        may_be_refused.store(true, Ordering::SeqCst);
        storage.open_gate();
        for reader in readers {
            assert_eq!(reader.join().unwrap().unwrap(), 0);
        }
    });
    assert_eq!(storage.reads(), 4);
}

/// The recorder is called under the cache's lock. A thread that changes a block that is dirty already does not wait for it.
#[test]
fn to_change_a_dirty_block_again_takes_no_lock() {
    let storage = Faulty::default();
    let cache = cache(&storage, 8, "fifo");
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    handle.overwrite(&file, 0).unwrap().fill(1);
    // a block that was written back, the end that was said, a truncation: each of them takes the lock once
    cache.write_back().unwrap();
    handle.write(&file, 0).unwrap().fill(2);
    file.set_end(10);
    handle.write(&file, 0).unwrap().fill(3);
    file.truncate(20).unwrap();
    handle.write(&file, 0).unwrap().fill(4);
    let (locked, is_locked) = std::sync::mpsc::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    cache.record(Some(Box::new(move |_| {
        locked.send(()).unwrap();
        let _ = may_go_on.recv_timeout(Duration::from_secs(20));
    })));
    std::thread::scope(|threads| {
        threads.spawn(|| cache.handle().read(&file, 7).map(drop).unwrap());
        is_locked.recv().unwrap();
        let (done, is_done) = std::sync::mpsc::channel();
        let (file, mut handle) = (&file, handle);
        threads.spawn(move || {
            handle.write(file, 0).unwrap()[0] = 5;
            handle.overwrite(file, 0).unwrap()[1] = 6;
            done.send(()).unwrap();
        });
        let end = is_done.recv_timeout(Duration::from_secs(10));
        drop(go_on);
        end.unwrap();
    });
    cache.record(None);
    file.sync().unwrap();
    assert_eq!(storage.stored(FILE, 0, 3), [5, 6, 4]);
    // all of it: none of the three left the file shorter than what was written
    assert_eq!(storage.stored(FILE, size() - 1, 1), [4]);
}

/// A range is written at once as often as no reader is in the way, and each reader finds its block as one of the writes left it.
#[test]
fn a_range_that_is_written_at_once_is_torn_in_no_block() {
    let storage = Faulty::default();
    let cache = cache(&storage, 16, "adaptive");
    let file = cache.open_at(FILE, 4 * size()).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let stop_all = Stop(&stop);
        for _ in 0..2 {
            threads.spawn(|| {
                let mut handle = cache.handle();
                while !stop.load(Ordering::Relaxed) {
                    for index in 0..4 {
                        let block = handle.read(&file, index).unwrap();
                        assert!(block.iter().all(|&byte| byte == block[0]), "torn");
                    }
                    std::thread::yield_now();
                }
            });
        }
        threads.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                file.sync().unwrap();
                // A reader may hold one of them.
                let _ = file.invalidate(0..4);
                std::thread::yield_now();
            }
        });
        let mut handle = cache.handle();
        for byte in (0..=250_u8).cycle().take(1000) {
            let bytes = vec![byte; 4 * size() as usize];
            handle.try_write_at(&file, 0, &bytes).unwrap();
        }
        drop(stop_all);
    });
    assert_eq!(cache.check(), Ok(()));
}

/// Each block is stamped with its number and with how often it was written. Writers add one; no reader may ever see a
/// block of another number, a torn one, or a count that goes back, whatever else happens to the cache.
#[test]
fn blocks_stay_what_they_are_under_every_rule() {
    const BLOCKS: u64 = 200;
    for rule in rules() {
        let storage = Faulty::default();
        let cache = cache(&storage, 32, rule.name);
        let file = cache.file(FILE).unwrap();
        let counts: Vec<AtomicU64> = (0..BLOCKS).map(|_| AtomicU64::new(0)).collect();
        let stop = AtomicBool::new(false);
        std::thread::scope(|threads| {
            let workers: Vec<_> = (0..4_u64)
                .map(|worker| {
                    let (cache, file, counts) = (&cache, &file, &counts);
                    threads.spawn(move || work(worker, cache, file, counts))
                })
                .collect();
            threads.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    for blocks in [8, 32, 20] {
                        let _ = cache.set_bytes(blocks * larder::os::page_size());
                        let _ = cache.trim(4 * larder::os::page_size());
                        file.sync().unwrap();
                        cache.maintain().unwrap();
                    }
                }
            });
            // The other thread ends also when one of these failed.
            let ends: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
            stop.store(true, Ordering::SeqCst);
            ends.into_iter().for_each(|end| end.unwrap());
        });
        file.sync().unwrap();
        file.invalidate(0..u64::MAX).unwrap();
        let mut handle = cache.handle();
        for (index, count) in (0..).zip(&counts) {
            let block = handle.read(&file, index).unwrap();
            let count = count.load(Ordering::SeqCst);
            let number = if count == 0 { 0 } else { index };
            assert_eq!(stamp(&block), (number, count), "{}", rule.name);
        }
    }
}

fn work(worker: u64, cache: &BlockCache, file: &larder_cache::CachedFile, counts: &[AtomicU64]) {
    let mut handle = cache.handle();
    let mut word = worker + 1;
    for _ in 0..1500 {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let index = (word >> 33) % counts.len() as u64;
        let count = &counts[index as usize];
        if word >> 60 < 5 {
            match handle.write(file, index) {
                Ok(mut block) => {
                    let (number, before) = stamp(&block);
                    assert!(number == index || before == 0, "{number} in {index}");
                    assert_eq!(before, count.load(Ordering::SeqCst));
                    for part in block.chunks_exact_mut(16) {
                        part[..8].copy_from_slice(&index.to_le_bytes());
                        part[8..].copy_from_slice(&(before + 1).to_le_bytes());
                    }
                    count.store(before + 1, Ordering::SeqCst);
                }
                Err(CacheError::Pinned { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        } else {
            let least = count.load(Ordering::SeqCst);
            match handle.read(file, index) {
                Ok(block) => {
                    let (number, seen) = stamp(&block);
                    assert!(number == index || seen == 0, "{number} in {index}");
                    assert!(seen >= least, "{seen} after {least}");
                }
                Err(CacheError::Pinned { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// The number and the count, which all parts of the block must agree on.
fn stamp(block: &[u8]) -> (u64, u64) {
    let word = |at: usize| u64::from_le_bytes(block[at..at + 8].try_into().unwrap());
    for part in block.chunks_exact(16) {
        assert_eq!(part, &block[..16], "torn");
    }
    (word(0), word(8))
}
