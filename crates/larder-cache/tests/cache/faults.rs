//! A storage that fails, panics or takes its time while others use the cache.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use crate::common::Faulty;
use larder_cache::{BlockCache, CacheError, CachedFile, FileId};

const FILE: FileId = FileId(1);
/// Long enough for a thread to go wrong, and nothing waits for it to go right.
const A_WHILE: Duration = Duration::from_millis(50);

fn size() -> u64 {
    larder::os::page_size() as u64
}

/// What came first leaves first.
fn made(blocks: usize, ahead: usize) -> (Faulty, BlockCache, CachedFile) {
    let storage = Faulty::default();
    let cache = BlockCache::builder(storage.clone())
        .bytes(blocks * size() as usize)
        .policy("fifo")
        .read_ahead(ahead)
        .build()
        .unwrap();
    let file = cache.file(FILE).unwrap();
    (storage, cache, file)
}

fn panics(work: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(work)).is_err()
}

#[test]
fn two_syncs_at_once_do_not_hide_a_failure_from_each_other() {
    let (storage, cache, one) = made(4, 0);
    let two = cache.file(FILE).unwrap();
    cache.handle().overwrite(&one, 0).unwrap().fill(7);
    storage.0.syncs_to_fail.store(1, Ordering::SeqCst);
    storage.0.syncing.close();
    std::thread::scope(|threads| {
        let first = threads.spawn(|| one.sync());
        storage.0.syncing.await_calls(1);
        let second = threads.spawn(|| two.sync());
        sleep(A_WHILE);
        assert_eq!(storage.0.syncing.came(), 1, "the second one waits");
        storage.0.syncing.open();
        assert!(first.join().unwrap().is_err());
        assert!(second.join().unwrap().is_err());
    });
    // The second wrote the block again before it synced.
    assert_eq!(storage.safe(FILE, 0), Some(7));
    one.sync().unwrap();
    two.sync().unwrap();
}

#[test]
fn what_was_written_while_a_sync_failed_is_written_again() {
    let (storage, cache, file) = made(4, 0);
    cache.handle().overwrite(&file, 0).unwrap().fill(1);
    storage.0.syncs_to_fail.store(1, Ordering::SeqCst);
    storage.0.syncing.close();
    std::thread::scope(|threads| {
        let sync = threads.spawn(|| file.sync());
        storage.0.syncing.await_calls(1);
        cache.handle().overwrite(&file, 1).unwrap().fill(2);
        cache.write_back().unwrap();
        storage.0.syncing.open();
        assert!(sync.join().unwrap().is_err());
    });
    assert_eq!(cache.stats().dirty, 2);
    file.sync().unwrap();
    let safe = [0, 1].map(|index| storage.safe(FILE, index * size()));
    assert_eq!(safe, [Some(1), Some(2)]);
}

#[test]
fn a_write_that_ends_after_a_failed_sync_is_done_again() {
    let (storage, cache, file) = made(4, 0);
    let other = cache.file(FILE).unwrap();
    cache.handle().overwrite(&file, 0).unwrap().fill(1);
    storage.0.written.close();
    std::thread::scope(|threads| {
        let write = threads.spawn(|| cache.write_back());
        storage.0.written.await_calls(1);
        // A sync of the same file through the storage's other users, or one begun before: it fails, and takes the write along.
        storage.0.syncs_to_fail.store(1, Ordering::SeqCst);
        let sync = threads.spawn(|| other.sync());
        sleep(A_WHILE);
        storage.0.written.open();
        write.join().unwrap().unwrap();
        assert!(sync.join().unwrap().is_err());
    });
    other.sync().unwrap();
    assert_eq!(storage.safe(FILE, 0), Some(1));
}

#[test]
fn a_block_that_left_during_a_sync_is_not_taken_for_safe() {
    let (storage, cache, file) = made(2, 0);
    storage.0.syncing.close();
    std::thread::scope(|threads| {
        let sync = threads.spawn(|| file.sync());
        storage.0.syncing.await_calls(1);
        let mut handle = cache.handle();
        handle.overwrite(&file, 0).unwrap().fill(1);
        cache.write_back().unwrap();
        for index in 1..10 {
            handle.read(&file, index).unwrap();
        }
        storage.0.syncing.open();
        sync.join().unwrap().unwrap();
    });
    storage.0.syncs_to_fail.store(1, Ordering::SeqCst);
    assert!(matches!(file.sync(), Err(CacheError::Lost { .. })));
}

#[test]
fn a_block_that_left_before_a_good_sync_is_safe() {
    let (storage, cache, file) = made(2, 0);
    let mut handle = cache.handle();
    handle.overwrite(&file, 0).unwrap().fill(1);
    cache.write_back().unwrap();
    for index in 1..10 {
        handle.read(&file, index).unwrap();
    }
    file.sync().unwrap();
    storage.0.syncs_to_fail.store(1, Ordering::SeqCst);
    assert!(matches!(file.sync(), Err(CacheError::Sync { .. })));
    file.sync().unwrap();
}

/// It may have reached the disk before it was given up.
#[test]
fn a_block_that_is_invalidated_during_a_failed_sync_is_lost() {
    let (storage, cache, file) = made(4, 0);
    cache.handle().overwrite(&file, 0).unwrap().fill(1);
    storage.0.syncs_to_fail.store(1, Ordering::SeqCst);
    storage.0.syncing.close();
    std::thread::scope(|threads| {
        let sync = threads.spawn(|| file.sync());
        storage.0.syncing.await_calls(1);
        file.invalidate(0..1).unwrap();
        storage.0.syncing.open();
        assert!(matches!(sync.join().unwrap(), Err(CacheError::Lost { .. })));
    });
    file.truncate(0).unwrap();
    file.sync().unwrap();
}

#[test]
fn a_sync_that_panics_makes_nothing_safe() {
    let (storage, cache, file) = made(4, 0);
    cache.handle().overwrite(&file, 0).unwrap().fill(1);
    Faulty::say(&storage.0.panic_on_sync, true);
    assert!(panics(|| drop(file.sync())));
    Faulty::say(&storage.0.panic_on_sync, false);
    assert_eq!(cache.stats().dirty, 1);
    let error = file.sync().unwrap_err().to_string();
    assert_eq!(error, "block cache: syncing file 1: the storage panicked");
    assert_eq!(storage.safe(FILE, 0), Some(1));
    file.sync().unwrap();
}

#[test]
fn a_write_that_panics_leaves_all_as_it_was() {
    // When more than half of it is dirty, a miss has some written first.
    let (storage, cache, file) = made(14, 0);
    let mut handle = cache.handle();
    for index in 0..8 {
        handle.overwrite(&file, index).unwrap().fill(1);
    }
    Faulty::say(&storage.0.panic_on_write, true);
    assert!(panics(|| drop(file.sync())));
    assert!(panics(|| drop(cache.write_back())));
    assert!(panics(|| drop(cache.handle().read(&file, 9))));
    assert!(panics(|| drop(cache.set_bytes(size() as usize))));
    Faulty::say(&storage.0.panic_on_write, false);
    assert_eq!((cache.stats().dirty, cache.stats().resident), (8, 8));
    // Nothing is held, nothing waits for a write that will not end.
    handle.write(&file, 3).unwrap()[0] = 9;
    file.invalidate(7..8).unwrap();
    file.sync().unwrap();
    assert_eq!(storage.safe(FILE, 3 * size()), Some(9));
    assert_eq!(storage.safe(FILE, 7 * size()), None);
}

#[test]
fn a_read_ahead_that_panics_or_fails_leaves_nothing_behind() {
    let (storage, cache, file) = made(16, 8);
    let mut handle = cache.handle();
    handle.read(&file, 0).unwrap();
    Faulty::say(&storage.0.panic_on_read, true);
    assert!(panics(|| drop(handle.read(&file, 1))));
    Faulty::say(&storage.0.panic_on_read, false);
    assert_eq!(cache.stats().resident, 1);
    Faulty::say(&storage.0.fail_reads, true);
    assert!(handle.read(&file, 1).is_err());
    assert_eq!((cache.stats().resident, cache.stats().read_errors), (1, 1));
    Faulty::say(&storage.0.fail_reads, false);
    for index in 0..40 {
        handle.read(&file, index).unwrap();
    }
}

#[test]
fn a_recorder_that_panics_is_not_asked_again() {
    let (_storage, cache, file) = made(4, 0);
    cache.handle().read(&file, 0).unwrap();
    cache.record(Some(Box::new(|_| panic!("as asked"))));
    // The use is reported when the handle is dropped; while a panic goes up, another one would end the process.
    assert!(panics(|| {
        let mut handle = cache.handle();
        handle.read(&file, 0).unwrap();
        handle.read(&file, 1).unwrap();
    }));
    cache.handle().read(&file, 2).unwrap();
}

#[test]
fn an_invalidation_waits_for_what_is_read_ahead() {
    let (storage, cache, file) = made(16, 4);
    let mut handle = cache.handle();
    handle.read(&file, 0).unwrap();
    storage.close_gate();
    std::thread::scope(|threads| {
        let reader = threads.spawn(|| handle.read(&file, 1).map(|block| block[0]));
        storage.0.reading.await_calls(2);
        let other = threads.spawn(|| file.invalidate(2..6));
        sleep(A_WHILE);
        storage.open_gate();
        reader.join().unwrap().unwrap();
        other.join().unwrap().unwrap();
    });
    assert_eq!(cache.stats().resident, 2);
}

#[test]
fn a_truncation_waits_for_what_is_read_ahead() {
    let (storage, cache, file) = made(16, 4);
    let mut handle = cache.handle();
    for index in 0..8 {
        handle.overwrite(&file, index).unwrap().fill(0xff);
    }
    file.sync().unwrap();
    file.invalidate(0..8).unwrap();
    handle.read(&file, 0).unwrap();
    storage.close_gate();
    std::thread::scope(|threads| {
        let reader = threads.spawn(|| handle.read(&file, 1).map(|block| block[0]));
        storage.0.reading.await_calls(2);
        let other = threads.spawn(|| file.truncate(2 * size()));
        sleep(A_WHILE);
        storage.open_gate();
        assert_eq!(reader.join().unwrap().unwrap(), 0xff);
        other.join().unwrap().unwrap();
    });
    let mut handle = cache.handle();
    let seen = [1, 2, 3].map(|index| handle.read(&file, index).unwrap()[0]);
    assert_eq!(seen, [0xff, 0, 0]);
}

#[test]
fn a_truncation_that_is_refused_changes_nothing() {
    let (storage, cache, file) = made(4, 0);
    let mut handle = cache.handle();
    handle.overwrite(&file, 0).unwrap().fill(1);
    handle.overwrite(&file, 3).unwrap().fill(1);
    let held = handle.read(&file, 3).unwrap();
    assert!(matches!(
        file.truncate(1),
        Err(CacheError::Held { index: 3, .. })
    ));
    drop(held);
    file.sync().unwrap();
    assert_eq!(storage.stored(FILE, 3 * size(), 1), [1]);
}

#[test]
fn an_invalidation_waits_for_what_is_written() {
    let (storage, cache, file) = made(4, 0);
    cache.handle().overwrite(&file, 0).unwrap().fill(1);
    storage.0.written.close();
    std::thread::scope(|threads| {
        let writer = threads.spawn(|| cache.write_back());
        storage.0.written.await_calls(1);
        let other = threads.spawn(|| file.invalidate(0..1));
        sleep(A_WHILE);
        storage.0.written.open();
        writer.join().unwrap().unwrap();
        other.join().unwrap().unwrap();
    });
    assert_eq!((cache.stats().resident, cache.stats().dirty), (0, 0));
}

#[test]
fn a_sync_waits_for_a_write_of_another_and_does_not_repeat_it() {
    let (storage, cache, file) = made(4, 0);
    cache.handle().overwrite(&file, 0).unwrap().fill(1);
    storage.0.written.close();
    std::thread::scope(|threads| {
        let writer = threads.spawn(|| cache.write_back());
        storage.0.written.await_calls(1);
        let sync = threads.spawn(|| file.sync());
        sleep(A_WHILE);
        assert_eq!(storage.0.syncing.came(), 0);
        storage.0.written.open();
        writer.join().unwrap().unwrap();
        sync.join().unwrap().unwrap();
    });
    assert_eq!(storage.0.written.came(), 1);
    assert_eq!(storage.safe(FILE, 0), Some(1));
}

#[test]
fn a_smaller_size_comes_true_when_what_is_read_has_come() {
    let (storage, cache, file) = made(8, 0);
    storage.close_gate();
    std::thread::scope(|threads| {
        for index in 0..4 {
            let (cache, file) = (&cache, &file);
            threads.spawn(move || cache.handle().read(file, index).map(drop).unwrap());
        }
        storage.0.reading.await_calls(4);
        cache.set_bytes(size() as usize).unwrap();
        storage.open_gate();
    });
    cache.handle().read(&file, 9).unwrap();
    assert_eq!(cache.stats().resident, 1);
}

#[test]
fn all_threads_that_wait_for_a_read_that_fails_get_an_answer() {
    let (storage, cache, file) = made(4, 0);
    storage.close_gate();
    Faulty::say(&storage.0.fail_reads, true);
    std::thread::scope(|threads| {
        for _ in 0..16 {
            let (cache, file) = (&cache, &file);
            threads.spawn(move || assert!(cache.handle().read(file, 0).is_err()));
        }
        storage.0.reading.await_calls(1);
        sleep(A_WHILE);
        storage.open_gate();
    });
    Faulty::say(&storage.0.fail_reads, false);
    cache.handle().read(&file, 0).unwrap();
}

#[test]
fn one_bad_file_does_not_keep_the_others_from_being_written() {
    let (storage, cache, bad) = made(1000, 0);
    let good = cache.file(FileId(2)).unwrap();
    storage.0.bad_file.store(1, Ordering::SeqCst);
    let mut handle = cache.handle();
    // the rest of the room is for the good one
    let held: Vec<_> = (0..400).map(|at| handle.read(&good, at).unwrap()).collect();
    for index in 0..600 {
        let file = if index < 500 { &bad } else { &good };
        let at = if index < 500 { index } else { index + 400 };
        handle.overwrite(file, at).unwrap().fill(1);
    }
    let before = storage.0.tried.load(Ordering::SeqCst);
    handle.read(&good, 5000).unwrap();
    let tried = storage.0.tried.load(Ordering::SeqCst) - before;
    assert!(tried <= 3 * 64, "{tried} writes for one block");
    drop(held);
}

#[test]
fn a_pool_at_its_limit_has_dirty_blocks_written() {
    let storage = Faulty::default();
    let pool = larder::pages::PagePool::builder()
        .limit_bytes(1 << 20)
        .build()
        .unwrap();
    let builder = BlockCache::builder(storage.clone()).bytes(64 << 20);
    let cache = builder.pool(pool).read_ahead(0).build().unwrap();
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    for index in 0..1000 {
        handle.overwrite(&file, index).unwrap().fill(index as u8);
    }
    file.sync().unwrap();
    for index in 0..1000 {
        assert_eq!(storage.stored(FILE, index * size(), 1), [index as u8]);
    }
}
