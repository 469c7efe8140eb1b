//! What a block cache does, in one thread.

use crate::common::{Call, Faulty, cache};
use larder_cache::{BlockCache, CacheError, FileId};

const FILE: FileId = FileId(1);

fn size() -> u64 {
    larder::os::page_size() as u64
}

#[test]
fn blocks_are_read_once_and_found_again() {
    let storage = Faulty::default();
    let cache = cache(&storage, 10);
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    for _ in 0..3 {
        for index in 0..10 {
            assert!(
                handle
                    .read(&file, index)
                    .unwrap()
                    .iter()
                    .all(|&byte| byte == 0)
            );
        }
    }
    handle.report();
    assert_eq!(storage.reads(), 10);
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses, stats.resident), (20, 10, 10));
    assert_eq!((file.stats().hits, file.stats().misses), (20, 10));
}

#[test]
fn short_and_interrupted_calls_are_continued() {
    let storage = Faulty::default();
    let cache = cache(&storage, 4);
    let file = cache.file(FILE).unwrap();
    storage
        .0
        .at_most
        .store(1000, std::sync::atomic::Ordering::SeqCst);
    Faulty::say(&storage.0.interrupt, true);
    let mut handle = cache.handle();
    for index in 0..8 {
        handle
            .overwrite(&file, index)
            .unwrap()
            .fill(index as u8 + 1);
    }
    file.sync().unwrap();
    for index in 0..8 {
        let block = handle.read(&file, index).unwrap();
        assert!(block.iter().all(|&byte| byte == index as u8 + 1));
        drop(block);
        let stored = storage.stored(FILE, index * size(), size() as usize);
        assert!(stored.iter().all(|&byte| byte == index as u8 + 1));
    }
}

#[test]
fn a_failed_read_leaves_nothing_behind() {
    let storage = Faulty::default();
    let cache = cache(&storage, 3);
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    Faulty::say(&storage.0.fail_reads, true);
    for _ in 0..10 {
        let error = handle.read(&file, 7).unwrap_err().to_string();
        assert_eq!(
            error,
            "block cache: reading block 7 of file 1: the disk is gone"
        );
    }
    assert_eq!((cache.stats().resident, cache.stats().read_errors), (0, 10));
    Faulty::say(&storage.0.fail_reads, false);
    for index in 0..9 {
        assert!(handle.read(&file, index).is_ok());
    }
}

#[test]
fn a_storage_that_panics_leaves_nothing_behind() {
    let storage = Faulty::default();
    let cache = cache(&storage, 3);
    let file = cache.file(FILE).unwrap();
    Faulty::say(&storage.0.panic_on_read, true);
    for _ in 0..10 {
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            drop(cache.handle().read(&file, 7));
        }));
        assert!(panicked.is_err());
    }
    Faulty::say(&storage.0.panic_on_read, false);
    assert_eq!(cache.stats().resident, 0);
    for index in 0..9 {
        assert!(cache.handle().read(&file, index).is_ok());
    }
}

#[test]
fn dirty_blocks_are_written_in_order() {
    let storage = Faulty::default();
    let cache = cache(&storage, 16);
    let files = [
        cache.file(FileId(20)).unwrap(),
        cache.file(FileId(10)).unwrap(),
    ];
    let mut handle = cache.handle();
    for at in [5, 2, 7, 0] {
        for file in &files {
            handle.overwrite(file, at).unwrap().fill(at as u8);
        }
    }
    cache.write_back().unwrap();
    let writes: Vec<(u64, u64)> = storage
        .calls()
        .iter()
        .filter_map(|call| match call {
            Call::Write(file, offset, _) => Some((file.0, offset / size())),
            _ => None,
        })
        .collect();
    // by file, in the order of opening, and by offset
    let expected = [
        (20, 0),
        (20, 2),
        (20, 5),
        (20, 7),
        (10, 0),
        (10, 2),
        (10, 5),
        (10, 7),
    ];
    assert_eq!(writes, expected);
}

#[test]
fn clean_blocks_leave_before_dirty_ones() {
    let storage = Faulty::default();
    let cache = cache(&storage, 8);
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    for index in 0..4 {
        handle.overwrite(&file, index).unwrap().fill(1);
    }
    for index in 4..100 {
        handle.read(&file, index).unwrap();
    }
    assert_eq!((cache.stats().dirty, cache.stats().written), (4, 0));
}

#[test]
fn each_opener_learns_once_of_a_write_that_failed_to_make_room() {
    let storage = Faulty::default();
    let cache = cache(&storage, 2);
    let (one, two) = (cache.file(FILE).unwrap(), cache.file(FILE).unwrap());
    let mut handle = cache.handle();
    handle.overwrite(&one, 0).unwrap().fill(1);
    handle.overwrite(&one, 1).unwrap().fill(1);
    Faulty::say(&storage.0.fail_writes, true);
    let error = handle.read(&one, 2).unwrap_err().to_string();
    assert_eq!(
        error,
        "block cache: writing block 0 of file 1: the disk is full"
    );
    Faulty::say(&storage.0.fail_writes, false);
    // The latest that failed, although nothing fails any more.
    let error = one.sync().unwrap_err().to_string();
    assert_eq!(
        error,
        "block cache: writing block 1 of file 1: the disk is full"
    );
    one.sync().unwrap();
    assert!(matches!(two.sync(), Err(CacheError::Write { .. })));
    two.sync().unwrap();
    let late = cache.file(FILE).unwrap();
    late.sync().unwrap();
    assert_eq!(storage.stored(FILE, 0, 2), [1, 1], "and nothing is lost");
}

#[test]
fn what_could_not_be_synced_is_written_again() {
    let storage = Faulty::default();
    let cache = cache(&storage, 4);
    let file = cache.file(FILE).unwrap();
    cache.handle().overwrite(&file, 1).unwrap().fill(3);
    Faulty::say(&storage.0.fail_syncs, true);
    assert!(
        file.sync()
            .unwrap_err()
            .to_string()
            .ends_with("the cable is loose")
    );
    Faulty::say(&storage.0.fail_syncs, false);
    assert_eq!(cache.stats().dirty, 1);
    file.sync().unwrap();
    let writes = storage.calls();
    assert!(matches!(
        writes[..],
        [Call::Write(..), Call::Write(..), Call::Sync(FILE)]
    ));
}

#[test]
fn a_block_that_left_before_a_failed_sync_is_reported_for_good() {
    let storage = Faulty::default();
    let cache = cache(&storage, 2);
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    handle.overwrite(&file, 0).unwrap().fill(3);
    cache.write_back().unwrap();
    for index in 1..10 {
        handle.read(&file, index).unwrap();
    }
    Faulty::say(&storage.0.fail_syncs, true);
    assert!(matches!(file.sync(), Err(CacheError::Lost { file: FILE })));
    Faulty::say(&storage.0.fail_syncs, false);
    assert!(matches!(file.sync(), Err(CacheError::Lost { .. })));
    file.truncate(0).unwrap();
    file.sync().unwrap();
}

#[test]
fn the_end_of_a_file_is_kept() {
    let storage = Faulty::default();
    let cache = cache(&storage, 4);
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    handle.overwrite(&file, 0).unwrap().fill(1);
    handle.overwrite(&file, 2).unwrap().fill(1);
    file.truncate(100).unwrap();
    file.sync().unwrap();
    let stored = storage.stored(FILE, 0, 4 * size() as usize);
    assert!(stored[..100].iter().all(|&byte| byte == 1));
    assert!(stored[100..].iter().all(|&byte| byte == 0));
    assert!(matches!(&storage.calls()[0], Call::Write(_, 0, bytes) if bytes.len() == 100));
    assert_eq!(handle.read(&file, 0).unwrap()[99..101], [1, 0]);
    handle.overwrite(&file, 1).unwrap().fill(2);
    file.sync().unwrap();
    assert_eq!(storage.stored(FILE, 2 * size() - 1, 1), [2]);
}

#[test]
fn what_lies_behind_an_end_that_was_said_is_zeroes_at_once_and_later() {
    let storage = Faulty::default();
    let cache = cache(&storage, 8);
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    for index in 0..5 {
        handle.overwrite(&file, index).unwrap().fill(1);
    }
    file.set_end(2 * size() + 10);
    for round in 0..3 {
        for index in 0..5 {
            let whole = size() as usize;
            let within = [whole, whole, 10, 0, 0][index];
            let block = handle.read(&file, index as u64).unwrap();
            let there = block.iter().filter(|&&byte| byte == 1).count();
            assert_eq!(there, within, "block {index}, round {round}");
            assert!(block[within..].iter().all(|&byte| byte == 0));
        }
        match round {
            0 => file.sync().unwrap(),
            _ => file.invalidate(0..u64::MAX).unwrap(),
        }
    }
    // to be longer again brings nothing back
    file.set_end(5 * size());
    assert_eq!(handle.read(&file, 2).unwrap()[9..11], [1, 0]);
}

#[test]
fn set_end_waits_for_the_holder_of_the_last_block() {
    let storage = Faulty::default();
    let cache = cache(&storage, 8);
    let file = cache.file(FILE).unwrap();
    let mut block = cache.handle().overwrite(&file, 0).unwrap();
    std::thread::scope(|threads| {
        let other = threads.spawn(|| file.set_end(10));
        std::thread::sleep(std::time::Duration::from_millis(30));
        block.fill(1);
        drop(block);
        other.join().unwrap();
    });
    assert_eq!(cache.handle().read(&file, 0).unwrap()[9..11], [1, 0]);
    file.sync().unwrap();
    assert!(matches!(&storage.calls()[0], Call::Write(_, 0, bytes) if bytes.len() == 10));
}

#[test]
fn what_the_storage_has_behind_the_end_is_not_read() {
    let storage = Faulty::default();
    let cache = cache(&storage, 4);
    let file = cache.file(FILE).unwrap();
    for index in 0..2 {
        cache.handle().overwrite(&file, index).unwrap().fill(0xff);
    }
    file.sync().unwrap();
    file.truncate(10).unwrap();
    file.sync().unwrap();
    file.invalidate(0..u64::MAX).unwrap();
    let first = cache.handle().read(&file, 0).unwrap()[..20].to_vec();
    assert_eq!(first, [[0xff; 10], [0; 10]].concat());
    assert_eq!(cache.handle().read(&file, 1).unwrap()[0], 0);
    // what is written behind the end is not lost, whenever it is written back
    cache.handle().write(&file, 0).unwrap()[100..200].fill(7);
    cache.write_back().unwrap();
    file.set_end(200);
    file.sync().unwrap();
    assert_eq!(storage.stored(FILE, 100, 100), [7; 100]);
}

#[test]
fn changes_of_resident_blocks_do_not_make_all_of_them_dirty() {
    let storage = Faulty::default();
    let cache = cache(&storage, 16);
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    for index in 0..16 {
        handle.read(&file, index).unwrap();
    }
    for index in 0..16 {
        handle.write(&file, index).unwrap().fill(1);
        assert!(cache.stats().dirty <= 9, "{:?}", cache.stats());
    }
    assert_eq!(cache.stats().misses, 16);
    // those that are being changed are passed over, and that is no error
    let held: Vec<_> = (0..16)
        .map(|index| handle.write(&file, index).unwrap())
        .collect();
    assert_eq!(cache.stats().dirty, 16);
    drop(held);
    file.sync().unwrap();
    assert_eq!(cache.stats().dirty, 0);
}

#[test]
fn readers_from_front_to_end_are_read_ahead_of_and_others_are_not() {
    let storage = Faulty::default();
    let build = || BlockCache::builder(storage.clone()).bytes(256 * size() as usize);
    let cache = build().build().unwrap();
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    for index in 0..100 {
        handle.read(&file, index).unwrap();
    }
    handle.report();
    let stats = cache.stats();
    // 0 alone, 1 with 4, then with 8, 16, 32, 32
    assert_eq!(stats.misses, 7);
    assert_eq!(stats.hits, 93);
    assert!(stats.read_ahead >= 93, "{stats:?}");

    let cache = build().build().unwrap();
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    for index in 0..100 {
        handle.read(&file, index * 37 % 101).unwrap();
    }
    assert_eq!(cache.stats().read_ahead, 0);
}

/// In a small cache there is never room for more than four blocks ahead.
#[test]
fn readahead_goes_on_where_fewer_blocks_came_than_were_asked_for() {
    let storage = Faulty::default();
    let builder = BlockCache::builder(storage).bytes(16 * size() as usize);
    let cache = builder.policy("fifo").build().unwrap();
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    for index in 0..61 {
        handle.read(&file, index).unwrap();
    }
    handle.report();
    let stats = cache.stats();
    // 0 alone, then 1, 6, 11 and so on, each with four.
    assert_eq!((stats.misses, stats.hits), (13, 48));
    assert_eq!(stats.read_ahead, 48);
}

/// A block in the way ends a readahead, and not the reader's place.
#[test]
fn readahead_goes_on_behind_a_block_that_is_in_memory() {
    let storage = Faulty::default();
    let builder = BlockCache::builder(storage).bytes(256 * size() as usize);
    let cache = builder.build().unwrap();
    let file = cache.file(FILE).unwrap();
    cache.handle().read(&file, 4).unwrap();
    let mut handle = cache.handle();
    for index in 0..14 {
        handle.read(&file, index).unwrap();
    }
    // 4, 0, 1 with 2 and 3, and 5 with the next eight.
    assert_eq!(cache.stats().misses, 4);
    assert_eq!(cache.stats().read_ahead, 10);
}

#[test]
fn readahead_without_a_use_is_counted() {
    let storage = Faulty::default();
    let cache = BlockCache::builder(storage)
        .bytes(16 * size() as usize)
        .build()
        .unwrap();
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    handle.read(&file, 0).unwrap();
    handle.read(&file, 1).unwrap();
    let ahead = cache.stats().read_ahead;
    assert!(ahead > 0);
    for at in 0..40 {
        handle.read(&file, 1000 + at * 10).unwrap();
    }
    assert_eq!(cache.stats().wasted, ahead);
}

#[test]
fn the_size_changes_while_the_cache_is_used() {
    let storage = Faulty::default();
    let page = size() as usize;
    let cache = BlockCache::builder(storage.clone())
        .bytes(8 * page)
        .most_bytes(64 * page)
        .read_ahead(0)
        .build()
        .unwrap();
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    let mut fill = |n| {
        for index in 0..n {
            handle.write(&file, index).unwrap()[0] = index as u8;
        }
        cache.stats().resident
    };
    assert_eq!(fill(100), 8);
    cache.set_bytes(64 * page).unwrap();
    assert_eq!(fill(100), 64);
    cache.set_bytes(page).unwrap();
    assert_eq!(cache.stats().resident, 1);
    assert_eq!(fill(10), 1);
    cache.set_bytes(3 * page).unwrap();
    assert_eq!(fill(10), 3);
    for wrong in [0, page - 1, 65 * page] {
        assert!(matches!(
            cache.set_bytes(wrong),
            Err(CacheError::Size { .. })
        ));
    }
    file.sync().unwrap();
    for index in 0..100 {
        assert_eq!(storage.stored(FILE, index * size(), 1), [index as u8]);
    }
}

#[test]
fn a_pool_at_its_limit_makes_the_cache_smaller_and_no_error() {
    let storage = Faulty::default();
    let pool = larder::pages::PagePool::builder()
        .limit_bytes(1 << 20)
        .build()
        .unwrap();
    let cache = BlockCache::builder(storage)
        .bytes(64 << 20)
        .pool(pool)
        .read_ahead(0)
        .build()
        .unwrap();
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    for index in 0..2000 {
        handle.read(&file, index).unwrap();
    }
    let resident = cache.stats().resident;
    assert!(
        (100..=256).contains(&resident),
        "{resident} blocks in 1 MiB"
    );
}

#[test]
fn wrong_requests_are_refused_with_the_reason() {
    let storage = Faulty::default();
    let message = |built: Result<BlockCache, CacheError>| built.err().unwrap().to_string();
    let build = || BlockCache::builder(storage.clone());
    assert!(message(build().bytes(1).build()).contains("1 bytes were asked for"));
    assert!(message(build().bytes(1 << 20).most_bytes(1 << 19).build()).contains("1048576"));
    let unknown = message(build().policy("best").build());
    assert!(
        unknown.contains("\"best\"") && unknown.contains("adaptive"),
        "{unknown}"
    );
    let cache = build().build().unwrap();
    let file = cache.file(FILE).unwrap();
    let other = build().build().unwrap();
    let error = other.handle().read(&file, 0).err().unwrap().to_string();
    assert_eq!(
        error,
        "block cache: file 1 was opened in another cache; open it in this one"
    );
    let error = cache.handle().read(&file, 1 << 40).unwrap_err();
    assert!(matches!(error, CacheError::Index { .. }), "{error}");
}
