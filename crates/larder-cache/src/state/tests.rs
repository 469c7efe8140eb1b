//! Tests that look into a cache, or break one.

use super::partitions::SHARED;
use crate::io::Shared;
use crate::key::Key;
use crate::{BlockCache, CachedFile, FileId, MemoryStorage, TenantId};
use larder_policy::rules;

/// A cache of 8 frames, of which 3 hold a block, 2 held one, and 3 never did.
fn cache() -> BlockCache {
    let cache = BlockCache::builder(MemoryStorage::default())
        .bytes(8 * larder::os::page_size())
        .read_ahead(0)
        .build()
        .unwrap();
    let file = cache.file(FileId(1)).unwrap();
    let mut handle = cache.handle();
    for index in 0..5 {
        handle.read(&file, index).unwrap();
    }
    file.invalidate(1..3).unwrap();
    drop(handle);
    assert_eq!(cache.check(), Ok(()));
    cache
}

/// What is said after something was done to the free frames.
fn wrong(break_it: impl FnOnce(&Shared)) -> String {
    let cache = cache();
    break_it(&cache.shared);
    let said = cache.check();
    said.expect_err("the check finds nothing")
}

#[test]
fn a_frame_that_is_lost_is_missed() {
    let said = wrong(|shared| {
        shared.state().free.pop(shared.table().frames());
    });
    assert_eq!(
        said,
        "3 frames hold a block and 4 are free, but there are 8"
    );
    let said = wrong(|shared| {
        let mut state = shared.state();
        for _ in 0..3 {
            state.free.pop(shared.table().frames());
        }
    });
    assert_eq!(
        said,
        "3 frames hold a block and 2 are free, but there are 8"
    );
}

#[test]
fn a_frame_is_free_once_and_then_holds_nothing() {
    let said = wrong(|shared| shared.state().free.push(shared.table().frames(), 1));
    assert_eq!(said, "the list of free frames has no end");
    let said = wrong(|shared| shared.state().free.push(shared.table().frames(), 7));
    assert!(said.contains("frame 7 was never taken"), "{said}");
    let said = wrong(|shared| shared.table().frames().set_key(6, Key::free(0)));
    assert!(said.contains("frame 6 was never taken"), "{said}");
    let said = wrong(|shared| {
        shared.table().frames().set_key(1, Key::NONE);
    });
    assert!(said.contains("frame 1, which is not free"), "{said}");
    let said = wrong(|shared| {
        let frames = shared.table().frames();
        frames.try_claim(1).unwrap().give_back();
    });
    assert_eq!(said, "the list of free frames with a page names frame 1");
}

#[test]
fn a_file_that_counts_other_dirty_blocks_than_it_has_is_named() {
    let said = wrong(|shared| shared.state().files.get_mut(0).dirty += 1);
    assert_eq!(said, "0 blocks of file 0 are dirty, not 1");
}

#[test]
fn what_was_dirty_can_be_pinned_when_it_is_written() {
    let builder = BlockCache::builder(MemoryStorage::default()).bytes(8 << 20);
    let cache = builder.read_ahead(0).build().unwrap();
    let file = cache.file(FileId(1)).unwrap();
    let table = cache.shared.table();
    let frames = table.frames();
    let mut handle = cache.handle();
    drop(handle.write(&file, 0).unwrap());
    let mut is_pinned = || {
        for _ in 0..5000 {
            handle.read(&file, 0).unwrap();
        }
        let (number, row) = frames.pins().row().unwrap();
        let (key, pin) = (Key::new(0, 0), row.free().unwrap());
        let hit = table.hit(key, pin, Err);
        let pinned = hit.is_ok();
        if hit.map(drop).is_err() {
            frames.unpin(pin);
        }
        frames.pins().give_back(number);
        pinned
    };
    assert!(
        !is_pinned(),
        "a thread that changes it again would have to wait"
    );
    file.sync().unwrap();
    assert!(is_pinned());
}

const TENANT: TenantId = TenantId(7);

/// A cache of 8 frames, which may all be dirty. A rule that looks at the oldest blocks first had to pass blocks 0 to 3 of its file.
fn passed(rule: &str) -> (BlockCache, CachedFile) {
    let builder = BlockCache::builder(MemoryStorage::default());
    let builder = builder.bytes(8 * larder::os::page_size()).read_ahead(0);
    let cache = builder.policy(rule).dirty_share(1.0).build().unwrap();
    let file = cache.file_of(FileId(1), TENANT).unwrap();
    let mut handle = cache.handle();
    for index in 0..4 {
        handle
            .overwrite(&file, index)
            .unwrap()
            .fill(1 + index as u8);
    }
    for index in 4..20 {
        handle.read(&file, index).unwrap();
    }
    drop(handle);
    assert_eq!(cache.check(), Ok(()));
    (cache, file)
}

/// Which of blocks 0 to 3 are parked.
fn parked(cache: &BlockCache) -> Vec<u64> {
    let table = cache.shared.table();
    let state = cache.shared.state();
    let is_parked = |&index: &u64| {
        let frame = table.find(Key::new(0, index));
        frame.is_some_and(|frame| state.partitions.is_parked(frame))
    };
    (0..4).filter(is_parked).collect()
}

/// What may happen to parked blocks.
const FATES: [&str; 14] = [
    "a use",
    "a change",
    "a write at once",
    "a write-back",
    "a sync",
    "an invalidation",
    "a truncation",
    "a discard",
    "another rule",
    "another size",
    "pressure",
    "a limit",
    "a limit that ends",
    "a limit with another rule",
];

/// Does that. Returns which of blocks 0 to 3 are parked then, and what they hold.
fn meet(fate: &str, cache: &BlockCache, file: &CachedFile) -> (Vec<u64>, [u8; 4]) {
    let page = larder::os::page_size();
    let limit = |rule| cache.limit_tenant(TENANT, 6 * page, rule).unwrap();
    let all = [1, 2, 3, 4];
    match fate {
        "a use" => {
            drop(cache.handle().read(file, 0).unwrap());
            (vec![1, 2, 3], all)
        }
        "a change" => {
            cache.handle().write(file, 1).unwrap()[0] = 9;
            (vec![0, 2, 3], [1, 9, 3, 4])
        }
        "a write at once" => {
            let (mut handle, bytes) = (cache.handle(), vec![9; page]);
            // It is refused while the rule asks for write-back.
            if !handle.try_write_at(file, page as u64, &bytes).unwrap() {
                handle.overwrite(file, 1).unwrap().fill(9);
            }
            (vec![0, 2, 3], [1, 9, 3, 4])
        }
        "a write-back" => {
            file.write_back().unwrap();
            (vec![], all)
        }
        "a sync" => {
            cache.sync().unwrap();
            (vec![], all)
        }
        "an invalidation" => {
            file.invalidate(1..2).unwrap();
            (vec![0, 2, 3], [1, 0, 3, 4])
        }
        "a truncation" => {
            file.truncate(2 * page as u64).unwrap();
            (vec![0, 1], [1, 2, 0, 0])
        }
        "a discard" => {
            file.discard();
            (vec![], [0; 4])
        }
        "another rule" => {
            cache.set_policy("fifo").unwrap();
            (vec![], all)
        }
        "another size" => {
            cache.set_bytes(8 * page).unwrap();
            (vec![], all)
        }
        "pressure" => {
            assert_eq!(cache.trim(2 * page).unwrap(), 2 * page);
            (vec![0, 1, 2, 3], all)
        }
        // Two clean blocks leave, and the dirty ones are passed for that.
        "a limit" => {
            limit(Some("fifo"));
            (vec![0, 1, 2, 3], all)
        }
        "a limit that ends" => {
            limit(Some("fifo"));
            cache.unlimit_tenant(TENANT).unwrap();
            (vec![], all)
        }
        _ => {
            limit(Some("fifo"));
            limit(Some("sieve"));
            (vec![], all)
        }
    }
}

/// Brings more blocks than there are frames.
fn bring(cache: &BlockCache, file: &CachedFile, first: u64) {
    let mut handle = cache.handle();
    for index in first..first + 40 {
        handle.read(file, index).unwrap();
    }
}

#[test]
fn whatever_happens_to_parked_blocks_they_are_found_and_written() {
    for rule in rules() {
        for fate in FATES {
            let said = format!("{}, {fate}", rule.name);
            let (cache, file) = passed(rule.name);
            match rule.name {
                "fifo" | "lru" => assert_eq!(parked(&cache), [0, 1, 2, 3]),
                "adaptive" => assert_eq!(parked(&cache), [], "they wait apart"),
                _ => {}
            }
            if fate == "an invalidation" && cache.stats().written > 0 {
                // The default rule asked for that. Then the storage has what is to be forgotten.
                continue;
            }
            let (parked_then, holds) = meet(fate, &cache, &file);
            assert_eq!(cache.check(), Ok(()), "{said}");
            if rule.name == "lru" {
                assert_eq!(parked(&cache), parked_then, "{said}");
            }
            let found = || [0, 1, 2, 3].map(|index| cache.handle().read(&file, index).unwrap()[0]);
            assert_eq!(found(), holds, "{said}");
            bring(&cache, &file, 100);
            assert_eq!(cache.check(), Ok(()), "{said}");
            assert_eq!(found(), holds, "{said}");
            cache.write_back().unwrap();
            assert_eq!((parked(&cache), cache.check()), (vec![], Ok(())), "{said}");
            bring(&cache, &file, 200);
            assert_eq!(found(), holds, "{said}");
            assert_eq!(cache.check(), Ok(()), "{said}");
        }
    }
}

#[test]
fn a_clean_block_that_is_parked_is_missed() {
    let (cache, _file) = passed("lru");
    let table = cache.shared.table();
    let clean = table.find(Key::new(0, 19)).unwrap();
    let mut state = cache.shared.state();
    state.partitions.park(SHARED, 8, &[clean]);
    drop(state);
    let said = cache.check().expect_err("the check finds nothing");
    assert_eq!(
        said,
        "5 frames are parked, and 4 of them hold a dirty block"
    );
}
