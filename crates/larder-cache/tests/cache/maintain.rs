//! What `BlockCache::maintain` writes.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use larder_cache::{BlockCache, CacheError, FileId, Storage};

/// Calls in which all dirty blocks are gone over.
const ROUND: usize = 30;

/// Counts the writes of each block; or they fail.
#[derive(Default)]
struct Counting {
    writes: Mutex<BTreeMap<(u64, u64), usize>>,
    fail: AtomicBool,
}

impl Counting {
    fn of(&self, file: u64, index: u64) -> usize {
        let writes = self.writes.lock().unwrap();
        writes.get(&(file, index)).copied().unwrap_or(0)
    }
}

impl Storage for Counting {
    fn read(&self, _: FileId, _: u64, into: &mut [u8]) -> io::Result<usize> {
        into.fill(0);
        Ok(into.len())
    }

    fn write(&self, file: FileId, offset: u64, from: &[u8]) -> io::Result<usize> {
        if self.fail.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let block = offset / larder::os::page_size() as u64;
        *self
            .writes
            .lock()
            .unwrap()
            .entry((file.0, block))
            .or_default() += 1;
        Ok(from.len())
    }

    fn sync(&self, _: FileId) -> io::Result<()> {
        Ok(())
    }
}

fn cache(blocks: usize) -> (Arc<Counting>, BlockCache) {
    let storage = Arc::new(Counting::default());
    let cache = BlockCache::builder(Arc::clone(&storage))
        .bytes(blocks * larder::os::page_size())
        .read_ahead(0)
        .pressure(|| None)
        .build()
        .unwrap();
    (storage, cache)
}

#[test]
fn a_block_that_is_changed_all_the_time_is_written_once_in_a_round() {
    let (storage, cache) = cache(100);
    let file = cache.file(FileId(1)).unwrap();
    let mut handle = cache.handle();
    for call in 0..3 * ROUND {
        handle.write(&file, 3).unwrap()[0] += 1;
        cache.maintain().unwrap();
        assert_eq!(storage.of(1, 3), call / ROUND + 1);
        assert_eq!(cache.check(), Ok(()));
    }
    assert_eq!(cache.stats().written, 3);
}

#[test]
fn a_round_ends_although_blocks_before_its_place_become_dirty_as_fast_as_it_goes() {
    let (storage, cache) = cache(16_000);
    let (busy, quiet) = (
        cache.file(FileId(1)).unwrap(),
        cache.file(FileId(2)).unwrap(),
    );
    let mut handle = cache.handle();
    drop(handle.overwrite(&quiet, 0).unwrap());
    let mut next = 0;
    for _ in 0..2 * ROUND {
        for _ in 0..200 {
            drop(handle.overwrite(&busy, next).unwrap());
            next += 1;
        }
        cache.maintain().unwrap();
        // A part with each call, and not all at once.
        assert!(cache.stats().dirty > 100 || storage.of(2, 0) > 0);
    }
    assert!(storage.of(2, 0) > 0);
}

#[test]
fn what_is_held_is_passed_over_and_written_in_the_next_round() {
    let (storage, cache) = cache(100);
    let file = cache.file(FileId(1)).unwrap();
    let mut handle = cache.handle();
    drop(handle.overwrite(&file, 5).unwrap());
    let held = handle.overwrite(&file, 4).unwrap();
    cache.maintain().unwrap();
    assert_eq!((storage.of(1, 4), storage.of(1, 5)), (0, 1));
    drop(held);
    for _ in 0..ROUND {
        cache.maintain().unwrap();
    }
    assert_eq!((storage.of(1, 4), storage.of(1, 5)), (1, 1));
    assert_eq!(cache.stats().dirty, 0);
}

#[test]
fn what_cannot_be_written_stays_dirty_and_is_reported_at_the_next_sync() {
    let (storage, cache) = cache(100);
    let file = cache.file(FileId(1)).unwrap();
    drop(cache.handle().overwrite(&file, 5).unwrap());
    storage.fail.store(true, Ordering::SeqCst);
    cache.maintain().unwrap();
    assert_eq!((cache.stats().dirty, cache.stats().write_errors), (1, 1));
    storage.fail.store(false, Ordering::SeqCst);
    assert!(matches!(file.sync(), Err(CacheError::Write { .. })));
    assert_eq!((cache.stats().dirty, storage.of(1, 5)), (0, 1));
    assert!(file.sync().is_ok());
}
