//! What `BlockCache::sync` makes safe, and what it reports.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Call, Faulty, Stop, cache};
use larder_cache::{BlockCache, CacheError, FileId, MemoryStorage};

const FILES: [FileId; 2] = [FileId(1), FileId(2)];

/// Writes the first block of a file, which is closed then.
fn write(cache: &BlockCache, id: FileId, byte: u8) {
    let file = cache.file(id).unwrap();
    cache.handle().overwrite(&file, 0).unwrap().fill(byte);
}

/// Brings more blocks of another file than a small cache has frames.
fn push_out(cache: &BlockCache) {
    let other = cache.file(FileId(9)).unwrap();
    let mut handle = cache.handle();
    for index in 0..9 {
        handle.read(&other, index).unwrap();
    }
}

/// The files that were synced, in order.
fn synced(storage: &Faulty) -> Vec<FileId> {
    let calls = storage.calls();
    let of = |call: &Call| match call {
        Call::Sync(file) => Some(*file),
        _ => None,
    };
    calls.iter().filter_map(of).collect()
}

#[test]
fn files_that_were_closed_are_written_and_synced_and_others_are_left_alone() {
    let storage = Faulty::default();
    let cache = cache(&storage, 8);
    // One is written already, the other is dirty.
    write(&cache, FILES[0], 1);
    cache.write_back().unwrap();
    write(&cache, FILES[1], 2);
    let read = cache.file(FileId(3)).unwrap();
    cache.handle().read(&read, 0).unwrap();
    cache.sync().unwrap();
    assert_eq!(synced(&storage), FILES);
    assert_eq!(FILES.map(|id| storage.safe(id, 0)), [Some(1), Some(2)]);
    assert_eq!(cache.stats().dirty, 0);
    // Nothing is to be done any more.
    cache.sync().unwrap();
    assert_eq!(synced(&storage), FILES);
    assert_eq!(cache.check(), Ok(()));
}

#[test]
fn a_file_whose_blocks_have_left_is_synced_and_then_forgotten() {
    let storage = Faulty::default();
    let cache = cache(&storage, 2);
    write(&cache, FILES[0], 1);
    cache.write_back().unwrap();
    push_out(&cache);
    assert_eq!(cache.stats().files, 2);
    cache.sync().unwrap();
    assert_eq!(synced(&storage), FILES[..1]);
    assert_eq!(cache.stats().files, 1);
}

#[test]
fn a_failed_sync_is_reported_and_each_open_file_reports_it_too() {
    let storage = Faulty::default();
    let cache = cache(&storage, 8);
    let openers = [0; 2].map(|_| cache.file(FILES[0]).unwrap());
    write(&cache, FILES[0], 1);
    write(&cache, FILES[1], 2);
    storage.0.syncs_to_fail.store(1, Ordering::SeqCst);
    let error = cache.sync();
    assert!(matches!(error, Err(CacheError::Sync { file, .. }) if file == FILES[0]));
    // The other file is safe, and what the failure took is written again.
    assert_eq!(storage.safe(FILES[1], 0), Some(2));
    assert_eq!(cache.stats().dirty, 1);
    cache.sync().unwrap();
    assert_eq!(storage.safe(FILES[0], 0), Some(1));
    for file in &openers {
        assert!(matches!(file.sync(), Err(CacheError::Sync { .. })));
        file.sync().unwrap();
    }
}

#[test]
fn a_block_that_cannot_be_written_is_reported_and_the_other_files_are_synced() {
    let storage = Faulty::default();
    let cache = cache(&storage, 8);
    let open = cache.file(FILES[0]).unwrap();
    write(&cache, FILES[0], 1);
    write(&cache, FILES[1], 2);
    storage.0.bad_file.store(FILES[0].0, Ordering::SeqCst);
    let error = cache.sync();
    assert!(matches!(error, Err(CacheError::Write { file, .. }) if file == FILES[0]));
    assert_eq!(storage.safe(FILES[1], 0), Some(2));
    storage.0.bad_file.store(0, Ordering::SeqCst);
    // The write that failed before this call is done again. Only those that have the file open learn of it.
    cache.sync().unwrap();
    assert_eq!(storage.safe(FILES[0], 0), Some(1));
    assert!(matches!(open.sync(), Err(CacheError::Write { .. })));
    open.sync().unwrap();
}

#[test]
fn lost_blocks_are_reported_until_their_file_begins_anew() {
    let storage = Faulty::default();
    let cache = cache(&storage, 2);
    write(&cache, FILES[0], 1);
    cache.write_back().unwrap();
    push_out(&cache);
    storage.0.syncs_to_fail.store(1, Ordering::SeqCst);
    for _ in 0..2 {
        let error = cache.sync();
        assert!(matches!(error, Err(CacheError::Lost { file }) if file == FILES[0]));
    }
    cache.file(FILES[0]).unwrap().truncate(0).unwrap();
    cache.sync().unwrap();
}

#[test]
fn a_storage_that_panics_makes_nothing_safe_and_every_file_is_closed() {
    let storage = Faulty::default();
    let cache = cache(&storage, 8);
    for id in FILES {
        write(&cache, id, 7);
    }
    Faulty::say(&storage.0.panic_on_sync, true);
    assert!(catch_unwind(AssertUnwindSafe(|| cache.sync())).is_err());
    Faulty::say(&storage.0.panic_on_sync, false);
    cache.sync().unwrap();
    assert_eq!(FILES.map(|id| storage.safe(id, 0)), [Some(7); 2]);
    // No opener is left, so the files go with their blocks.
    cache.trim(usize::MAX).unwrap();
    assert_eq!(cache.stats().files, 0);
    assert_eq!(cache.check(), Ok(()));
}

/// Each write, to either file, makes one more block of the first file dirty.
#[test]
fn what_is_appended_meanwhile_is_left_to_the_next_call() {
    let storage = Faulty::default();
    let cache = cache(&storage, 1000);
    let files = FILES.map(|id| cache.file(id).unwrap());
    for file in &files {
        for index in 0..5 {
            cache.handle().overwrite(file, index).unwrap().fill(1);
        }
    }
    let (appends, to) = (cache.clone(), files[0].clone());
    let mut next = 5;
    storage.0.on_write.set(move |_, _| {
        // With an end, so that a test that fails has one.
        if next < 200 {
            appends.handle().overwrite(&to, next).unwrap().fill(2);
            next += 1;
        }
    });
    cache.sync().unwrap();
    storage.0.on_write.clear();
    let stats = [&files[0], &files[1]].map(|file| (file.stats().written, file.stats().dirty));
    assert_eq!(stats, [(5, 10), (5, 0)]);
    cache.sync().unwrap();
    assert_eq!(cache.stats().dirty, 0);
    assert_eq!(cache.check(), Ok(()));
}

#[test]
fn it_ends_beside_a_thread_that_appends_all_the_time() {
    let builder = BlockCache::builder(MemoryStorage::default());
    let builder = builder.bytes(256 * larder::os::page_size());
    let cache = builder.read_ahead(0).build().unwrap();
    let [growing, other] = FILES.map(|id| cache.file(id).unwrap());
    let stop = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut handle = cache.handle();
            // From the front again at some time, so that the storage does not take all memory.
            for index in (0..4000).cycle() {
                handle.overwrite(&growing, index).unwrap().fill(3);
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let _stop = Stop(&stop);
        let mut handle = cache.handle();
        for round in 1..20 {
            handle.overwrite(&other, 0).unwrap().fill(round);
            cache.sync().unwrap();
            assert_eq!(other.stats().dirty, 0);
        }
    });
    cache.sync().unwrap();
    assert_eq!(cache.stats().dirty, 0);
}
