//! Blocks that readers hold by a pin of their handle: they are as safe as those whose readers are counted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::common::Faulty;
use larder_cache::{BlockCache, BlockRef, CacheError, CacheHandle, CachedFile, FileId};

const FILE: FileId = FileId(1);

fn cache(blocks: usize) -> (BlockCache, CachedFile) {
    let bytes = blocks * larder::os::page_size();
    let builder = BlockCache::builder(Faulty::default()).bytes(bytes);
    let cache = builder.read_ahead(0).build().unwrap();
    let file = cache.file(FILE).unwrap();
    (cache, file)
}

/// More uses than it takes until blocks are pinned.
const LONG: u64 = 5000;

fn warm(handle: &mut CacheHandle, file: &CachedFile, blocks: u64) {
    for at in 0..LONG {
        handle.read(file, at % blocks).unwrap();
    }
}

#[test]
fn what_is_held_neither_leaves_nor_is_forgotten_whichever_thread_ends_the_guard() {
    let (cache, file) = cache(8);
    let mut handle = cache.handle();
    warm(&mut handle, &file, 8);
    // More than a handle has pins, of more blocks than one and of one more than once.
    let mut held: Vec<BlockRef<'_>> = (0..20)
        .map(|at| handle.read(&file, at % 4).unwrap())
        .collect();
    // They outlive their handle.
    drop(handle);
    let all = || (0..4).map(|index| file.invalidate(index..index + 1).is_err());
    assert!(all().all(|held| held));
    let mut other = cache.handle();
    for index in 100..120 {
        other.read(&file, index).unwrap();
    }
    assert!(all().all(|held| held), "they have left");
    // Another thread ends the first guards, which were pinned.
    std::thread::scope(|threads| {
        let first: Vec<_> = held.drain(..16).collect();
        threads.spawn(move || drop(first));
    });
    assert!(all().all(|held| held), "the last ones hold each block yet");
    drop(held);
    assert!(all().all(|held| !held));
    cache.check().unwrap();
}

#[test]
fn a_cache_all_of_whose_blocks_are_held_says_so() {
    let (cache, file) = cache(4);
    let mut handle = cache.handle();
    warm(&mut handle, &file, 4);
    let held: Vec<_> = (0..4)
        .map(|index| handle.read(&file, index).unwrap())
        .collect();
    let refused = handle.read(&file, 9).map(drop);
    assert!(
        matches!(refused, Err(CacheError::Pinned { .. })),
        "{refused:?}"
    );
    drop(held);
    handle.read(&file, 9).unwrap();
}

/// The blocks behind one that is held cannot be written, since the storage's file would have a hole.
#[test]
fn a_miss_waits_for_a_block_that_keeps_others_from_being_written() {
    let (cache, _) = cache(8);
    let file = cache.open_at(FileId(2), 0).unwrap();
    let size = larder::os::page_size() as u64;
    let fill = |handle: &mut CacheHandle, index: u64| {
        let block = handle.write_until(&file, index, (index + 1) * size);
        block.map(|mut block| block.fill(7))
    };
    let mut handle = cache.handle();
    let written = AtomicU64::new(0);
    std::thread::scope(|threads| {
        let block = handle.write_until(&file, 0, size).unwrap();
        let writer = threads.spawn(|| {
            let mut handle = cache.handle();
            (1..30).try_for_each(|index| {
                written.store(index, Ordering::SeqCst);
                fill(&mut handle, index)
            })
        });
        // The eighth has no room.
        while written.load(Ordering::SeqCst) < 8 && !writer.is_finished() {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(50));
        assert!(!writer.is_finished());
        drop(block);
        writer.join().unwrap().unwrap();
    });
    // It does not wait for ever, since it may be this thread that holds it.
    cache.write_back().unwrap();
    let mut holder = cache.handle();
    let block = holder.write_until(&file, 30, 31 * size).unwrap();
    let refused = (31..60).try_for_each(|index| fill(&mut handle, index));
    assert!(
        matches!(refused, Err(CacheError::Pinned { .. })),
        "{refused:?}"
    );
    drop(block);
    (31..60)
        .try_for_each(|index| fill(&mut handle, index))
        .unwrap();
    cache.write_back().unwrap();
    assert_eq!(file.end(), Some(60 * size));
    cache.check().unwrap();
}

#[test]
fn a_thread_that_changes_a_block_waits_until_none_reads_it() {
    let (cache, file) = cache(4);
    let mut handle = cache.handle();
    let changed = AtomicBool::new(false);
    for byte in 1..=20 {
        cache.write_back().unwrap();
        warm(&mut handle, &file, 4);
        changed.store(false, Ordering::SeqCst);
        let block = handle.read(&file, 0).unwrap();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                cache.handle().write(&file, 0).unwrap().fill(byte);
                changed.store(true, Ordering::SeqCst);
            });
            for _ in 0..100 {
                std::thread::yield_now();
                assert!(block.iter().all(|&seen| seen == byte - 1));
            }
            assert!(!changed.load(Ordering::SeqCst));
            drop(block);
        });
        assert_eq!(handle.read(&file, 0).unwrap()[9], byte);
    }
}

/// Two threads read blocks that are pinned most of the time, each byte of which must be the same; a third one changes some, takes
/// others out and brings others in, as often as the readers have read for a while.
#[test]
fn readers_see_whole_blocks_while_others_are_changed_and_leave() {
    let (cache, file) = cache(64);
    let reads = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for seed in [1_u64, 2] {
            let (cache, file, reads, done) = (&cache, &file, &reads, &done);
            threads.spawn(move || {
                let mut handle = cache.handle();
                let mut word = seed;
                while !done.load(Ordering::Relaxed) {
                    word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let index = (word >> 33) % 48;
                    let block = handle.read(file, index).unwrap();
                    let (first, last) = (block[0], block[block.len() - 1]);
                    assert_eq!(first, last, "torn");
                    assert!(
                        first == 0 || u64::from(first) == index + 1,
                        "another block's"
                    );
                    drop(block);
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut handle = cache.handle();
        for round in 0..150_u64 {
            let from = reads.load(Ordering::Relaxed);
            while reads.load(Ordering::Relaxed) < from + 2 * LONG {
                std::thread::yield_now();
            }
            for index in [round, round + 7, round + 13].map(|at| at % 48) {
                handle.write(&file, index).unwrap().fill(index as u8 + 1);
            }
            for index in 0..30 {
                handle.overwrite(&file, 1000 + index).unwrap().fill(255);
            }
            // What readers hold just now stays.
            drop(file.invalidate(0..1));
            cache.write_back().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    cache.check().unwrap();
}
