//! Guards: a block with a guard stays what and where it is.

use crate::common::{Faulty, cache};
use larder_cache::{CacheError, FileId};

const FILE: FileId = FileId(1);

#[test]
fn when_all_blocks_are_held_there_is_an_error_and_no_deadlock() {
    let storage = Faulty::default();
    let cache = cache(&storage, 3);
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    let reading = handle.read(&file, 0).unwrap();
    let writing = [
        handle.write(&file, 1).unwrap(),
        handle.write(&file, 2).unwrap(),
    ];
    let error = handle.read(&file, 3).unwrap_err();
    assert!(matches!(error, CacheError::Pinned { frames: 3 }), "{error}");
    drop(writing);
    assert!(handle.read(&file, 3).is_ok(), "the dirty ones were written");
    drop(reading);
    assert_eq!(cache.stats().resident, 3);
}

#[test]
fn a_panic_with_a_block_in_hand_leaves_it_usable() {
    let storage = Faulty::default();
    let cache = cache(&storage, 3);
    let file = cache.file(FILE).unwrap();
    let panicked = std::thread::scope(|threads| {
        let writer = threads.spawn(|| {
            let mut handle = cache.handle();
            let mut block = handle.write(&file, 0).unwrap();
            block[0] = 9;
            panic!("in the middle");
        });
        writer.join()
    });
    assert!(panicked.is_err());
    assert_eq!(cache.handle().read(&file, 0).unwrap()[0], 9);
    file.sync().unwrap();
    for index in 1..9 {
        assert!(cache.handle().read(&file, index).is_ok());
    }
    assert_eq!(cache.handle().read(&file, 0).unwrap()[0], 9);
}

#[test]
fn more_guards_of_a_block_than_can_be_counted_are_refused() {
    const MOST: usize = 1 << 15;
    let storage = Faulty::default();
    let cache = cache(&storage, 4);
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    handle.write(&file, 3).unwrap()[0] = 7;
    let mut guards: Vec<_> = (0..MOST).map(|_| handle.read(&file, 3).unwrap()).collect();
    let error = handle.read(&file, 3).unwrap_err();
    assert!(
        matches!(error, CacheError::Guards { index: 3, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("32768 guards"), "{error}");
    // The cache's own reads are none of them.
    file.sync().unwrap();
    guards.pop();
    assert_eq!(handle.read(&file, 3).unwrap()[0], 7);
    drop(guards);
    handle.write(&file, 3).unwrap()[0] = 8;
}

#[test]
fn a_held_block_is_not_invalidated() {
    let storage = Faulty::default();
    let cache = cache(&storage, 4);
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    let held = handle.read(&file, 1).unwrap();
    let error = file.invalidate(0..10).unwrap_err().to_string();
    assert_eq!(
        error,
        "block cache: block 1 of file 1 is held; drop its guard first"
    );
    drop(held);
    file.invalidate(0..10).unwrap();
    assert_eq!(cache.stats().resident, 0);
}

#[test]
fn a_file_is_discarded_as_its_blocks_are_let_go_and_nothing_of_it_is_written() {
    let storage = Faulty::default();
    let cache = cache(&storage, 32);
    let [file, other] = [FILE, FileId(2)].map(|id| cache.file(id).unwrap());
    let mut handle = cache.handle();
    for index in 0..4 {
        handle.overwrite(&file, index).unwrap().fill(9);
        handle.overwrite(&other, index).unwrap().fill(8);
    }
    let (read, written) = (
        handle.read(&file, 1).unwrap(),
        handle.write(&file, 2).unwrap(),
    );
    std::thread::scope(|threads| {
        let discards = threads.spawn(|| file.discard());
        // Block 0 goes, and the thread waits for block 1, then for block 2.
        while file.stats().resident != 3 {
            std::thread::yield_now();
        }
        drop(read);
        while file.stats().resident != 2 {
            std::thread::yield_now();
        }
        assert!(!discards.is_finished());
        drop(written);
        discards.join().unwrap();
    });
    let stats = file.stats();
    assert_eq!((stats.resident, stats.dirty, stats.discarded), (0, 0, 4));
    assert_eq!(handle.read(&file, 3).unwrap()[0], 0);
    file.sync().unwrap();
    other.sync().unwrap();
    assert_eq!((cache.stats().written, cache.stats().discarded), (4, 4));
    assert_eq!(cache.check(), Ok(()));
}

#[test]
fn a_refusal_for_one_held_block_forgets_none() {
    let storage = Faulty::default();
    let cache = cache(&storage, 8);
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    for index in 0..4 {
        handle.overwrite(&file, index).unwrap().fill(9);
    }
    let held = handle.read(&file, 2).unwrap();
    for refused in [file.invalidate(0..4), file.truncate(0)] {
        assert!(matches!(refused, Err(CacheError::Held { index: 2, .. })));
    }
    drop(held);
    file.sync().unwrap();
    for index in 0..4 {
        assert_eq!(handle.read(&file, index).unwrap()[0], 9, "{index}");
    }
    file.invalidate(0..4).unwrap();
    assert_eq!(handle.read(&file, 0).unwrap()[0], 9, "as it was written");
}
