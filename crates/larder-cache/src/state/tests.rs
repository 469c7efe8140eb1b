//! Tests that look into a cache, or break one.

use crate::io::Shared;
use crate::key::Key;
use crate::{BlockCache, FileId, MemoryStorage};

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
