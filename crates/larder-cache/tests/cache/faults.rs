//! A storage that fails, panics or takes its time while others use the cache.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc::channel};
use std::thread::sleep;
use std::time::Duration;

use crate::common::Faulty;
use larder_cache::{AccessKind, BlockCache, CacheError, CachedFile, FileId};

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

/// Says when it is dropped.
struct Owned(Arc<AtomicBool>);

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_recorder_that_panics_is_not_asked_again() {
    let (_storage, cache, file) = made(4, 0);
    cache.handle().read(&file, 0).unwrap();
    let (calls, dropped) = (Arc::new(AtomicU64::new(0)), Arc::default());
    let (count, owned) = (Arc::clone(&calls), Owned(Arc::clone(&dropped)));
    cache.record(Some(Box::new(move |_| {
        let _ = &owned;
        count.fetch_add(1, Ordering::SeqCst);
        panic!("as asked");
    })));
    // The first use is reported with the miss, and the last one when the handle is dropped.
    let uses = || {
        let mut handle = cache.handle();
        for index in [0, 1, 1] {
            handle.read(&file, index).unwrap();
        }
    };
    assert!(!panics(uses));
    cache.handle().read(&file, 2).unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses), (2, 3));
    assert_eq!(cache.check(), Ok(()));
    // What it owns may use the cache as it is dropped, so that is not done in the middle of a use.
    assert!(!dropped.load(Ordering::SeqCst));
    cache.record(None);
    assert!(dropped.load(Ordering::SeqCst));
}

#[test]
fn a_recorder_that_panics_during_readahead_leaves_nothing_half_done() {
    let (_storage, cache, file) = made(16, 8);
    let mut ahead = 0;
    cache.record(Some(Box::new(move |access| {
        ahead += usize::from(access.kind == AccessKind::Readahead);
        assert!(ahead < 3, "as asked");
    })));
    let (sender, ends) = channel();
    let (reader, read) = (cache.clone(), file.clone());
    // It is not joined: if it waited for a lock that it has, the test would not end.
    std::thread::spawn(move || {
        let mut handle = reader.handle();
        let all = (0..8).filter(|&index| handle.read(&read, index).is_ok());
        let _ = sender.send(all.count());
    });
    assert_eq!(ends.recv_timeout(Duration::from_secs(20)), Ok(8));
    assert!(cache.stats().read_ahead >= 3);
    assert_eq!(cache.check(), Ok(()));
}

/// The uses and removals that are recorded of a cache from now on: which block, as what, and whether it was there.
fn recorded(cache: &BlockCache) -> Arc<Mutex<Vec<(u64, AccessKind, bool)>>> {
    let log = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&log);
    cache.record(Some(Box::new(move |access| {
        let entry = (access.index, access.kind, access.hit);
        if !access.kind.is_state() {
            into.lock().unwrap().push(entry);
        }
    })));
    log
}

#[test]
fn a_miss_that_finds_no_room_because_a_write_fails_is_recorded_as_removed() {
    let (storage, cache, file) = made(2, 0);
    let mut handle = cache.handle();
    for index in 0..2 {
        handle.overwrite(&file, index).unwrap().fill(1);
    }
    let log = recorded(&cache);
    Faulty::say(&storage.0.fail_writes, true);
    assert!(matches!(
        handle.read(&file, 2),
        Err(CacheError::Write { .. })
    ));
    let expected = [(2, AccessKind::Read, false), (2, AccessKind::Remove, false)];
    assert_eq!(*log.lock().unwrap(), expected);
    assert_eq!(cache.stats().misses, 3);
}

#[test]
fn a_use_that_waits_for_room_counts_once_when_another_thread_brings_its_block() {
    let (storage, cache, file) = made(2, 0);
    let mut handle = cache.handle();
    handle.overwrite(&file, 0).unwrap().fill(1);
    let held = handle.read(&file, 1).unwrap();
    let log = recorded(&cache);
    storage.0.written.close();
    std::thread::scope(|threads| {
        let waits = threads.spawn(|| cache.handle().read(&file, 2).map(|block| block[0]));
        // It has block 0 written, the only one that could make room.
        storage.0.written.await_calls(1);
        drop(held);
        handle.read(&file, 2).unwrap();
        storage.0.written.open();
        waits.join().unwrap().unwrap();
    });
    let expected = [(2, AccessKind::Read, false), (2, AccessKind::Read, true)];
    assert_eq!(*log.lock().unwrap(), expected);
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses), (1, 3));
}

/// Each write makes one more block dirty behind all others, as a thread does that appends faster than the disk writes.
#[test]
fn what_is_appended_meanwhile_is_not_written_by_a_sync_or_a_write_back() {
    for sync in [true, false] {
        let (storage, cache, file) = made(1000, 0);
        for index in 0..5 {
            cache.handle().overwrite(&file, index).unwrap().fill(1);
        }
        let (appends, to) = (cache.clone(), file.clone());
        let mut next = 5;
        storage.0.on_write.set(move |_, _| {
            // With an end, so that a test that fails has one.
            if next < 200 {
                appends.handle().overwrite(&to, next).unwrap().fill(2);
                next += 1;
            }
        });
        match sync {
            true => file.sync().unwrap(),
            false => cache.write_back().unwrap(),
        }
        storage.0.on_write.clear();
        let stats = file.stats();
        assert_eq!((stats.written, stats.dirty), (5, 5));
        file.sync().unwrap();
        let stats = file.stats();
        assert_eq!((stats.written, stats.dirty), (10, 0));
        file.write_back().unwrap();
        assert_eq!(cache.check(), Ok(()));
    }
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

/// A thread that knows the new end writes behind it, in the middle of whatever the truncation has the storage do.
#[test]
fn what_is_written_behind_a_new_end_is_not_zeroed_by_the_truncation_that_said_it() {
    let storage = Faulty::default();
    // A thread that makes one more block dirty has one written first.
    let builder = BlockCache::builder(storage.clone()).dirty_share(0.0);
    let cache = builder.read_ahead(0).build().unwrap();
    let [file, other] = [FILE, FileId(2)].map(|id| cache.file(id).unwrap());
    let mut handle = cache.handle();
    handle.overwrite(&file, 0).unwrap().fill(5);
    file.sync().unwrap();
    handle.overwrite(&other, 0).unwrap().fill(1);
    let (appends, to) = (cache.clone(), file.clone());
    let append = move || {
        if to.end() == Some(10) {
            let mut handle = appends.handle();
            handle.write_until(&to, 0, 20).unwrap()[10..].fill(7);
        }
    };
    let meanwhile = append.clone();
    storage.0.on_write.set(move |_, _| meanwhile());
    file.truncate(10).unwrap();
    storage.0.on_write.clear();
    // If there was no such moment.
    append();
    assert_eq!(file.end(), Some(20));
    let expected = [&[5_u8; 10][..], &[7; 10], &[0; 10]].concat();
    assert_eq!(handle.read(&file, 0).unwrap()[..30], expected);
    file.sync().unwrap();
    assert_eq!(storage.stored(FILE, 0, 20), expected[..20]);
}

/// The storage has these bytes still, and the file is longer again before the block is written.
#[test]
fn what_a_block_had_behind_a_new_end_does_not_come_back_when_the_file_is_longer_again() {
    for resident in [true, false] {
        let (storage, cache, file) = made(4, 0);
        let mut handle = cache.handle();
        handle.overwrite(&file, 0).unwrap().fill(5);
        file.sync().unwrap();
        if !resident {
            file.invalidate(0..1).unwrap();
        }
        file.truncate(10).unwrap();
        handle
            .overwrite_until(&file, 1, size() + 3)
            .unwrap()
            .fill(6);
        let expected = [&[5_u8; 10][..], &[0; 10]].concat();
        assert_eq!(handle.read(&file, 0).unwrap()[..20], expected);
        file.sync().unwrap();
        assert_eq!(storage.stored(FILE, 0, 20), expected);
    }
}

#[test]
fn a_truncation_whose_last_block_cannot_be_read_changes_nothing() {
    let (storage, cache, file) = made(4, 0);
    let mut handle = cache.handle();
    for index in 0..2 {
        handle.overwrite(&file, index).unwrap().fill(1);
    }
    file.sync().unwrap();
    file.invalidate(0..1).unwrap();
    Faulty::say(&storage.0.fail_reads, true);
    assert!(matches!(
        file.truncate(1),
        Err(CacheError::Read { index: 0, .. })
    ));
    assert_eq!((file.end(), file.stats().resident), (None, 1));
    Faulty::say(&storage.0.fail_reads, false);
    file.truncate(1).unwrap();
    assert_eq!((file.end(), file.stats().resident), (Some(1), 1));
}

/// Behind the end there are zeroes already: such a block may be held, and stays.
#[test]
fn a_truncation_asks_for_no_block_behind_the_end_that_there_was() {
    let (_storage, cache, file) = made(8, 0);
    let mut handle = cache.handle();
    for index in 0..3 {
        handle.overwrite(&file, index).unwrap().fill(1);
    }
    file.set_end(3 * size());
    let held = handle.read(&file, 5).unwrap();
    for end in [2 * size() + 10, size(), 4 * size(), 10] {
        file.truncate(end).unwrap();
        assert_eq!(file.end(), Some(end));
    }
    assert!(held.iter().all(|&byte| byte == 0));
    // One that was inside is asked for.
    file.truncate(6 * size()).unwrap();
    assert!(matches!(
        file.truncate(size()),
        Err(CacheError::Held { index: 5, .. })
    ));
    drop(held);
    file.truncate(size()).unwrap();
    assert_eq!(file.stats().resident, 1);
    assert_eq!(cache.check(), Ok(()));
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
