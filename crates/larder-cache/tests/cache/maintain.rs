//! What `BlockCache::maintain` writes.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use larder_cache::{BlockCache, CacheError, FileId, Storage};

/// Counts the writes of each block; or they fail, or panic.
#[derive(Default)]
struct Counting {
    writes: Mutex<BTreeMap<(u64, u64), usize>>,
    fail: AtomicBool,
    panics: AtomicBool,
    tried: AtomicU64,
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
        self.tried.fetch_add(1, Ordering::SeqCst);
        assert!(!self.panics.load(Ordering::SeqCst), "as asked");
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

fn cache(age: Duration, share: f64) -> (Arc<Counting>, BlockCache) {
    let storage = Arc::new(Counting::default());
    let cache = BlockCache::builder(Arc::clone(&storage))
        .bytes(100 * larder::os::page_size())
        .read_ahead(0)
        .dirty_age(age)
        .dirty_share(share)
        .pressure(|| None)
        .build()
        .unwrap();
    (storage, cache)
}

const LONG: Duration = Duration::from_secs(1_000_000);

#[test]
fn what_is_dirty_for_less_than_the_age_stays_and_what_is_beyond_the_share_goes() {
    let (storage, cache) = cache(LONG, 0.5);
    let file = cache.file(FileId(1)).unwrap();
    let mut handle = cache.handle();
    for index in 0..50 {
        drop(handle.overwrite(&file, index).unwrap());
    }
    cache.maintain().unwrap();
    assert_eq!(cache.stats().dirty, 50);
    // A smaller cache has a smaller share.
    cache.set_bytes(60 * larder::os::page_size()).unwrap();
    cache.maintain().unwrap();
    assert!(cache.stats().dirty <= 30, "{}", cache.stats().dirty);
    assert_eq!(storage.of(1, 0), 1);
    assert_eq!(cache.check(), Ok(()));
    assert!(matches!(
        BlockCache::builder(Counting::default())
            .dirty_share(1.5)
            .build(),
        Err(CacheError::Share { .. })
    ));
}

#[test]
fn what_is_held_is_passed_over_and_written_by_the_next_call() {
    let (storage, cache) = cache(Duration::ZERO, 1.0);
    let file = cache.file(FileId(1)).unwrap();
    let mut handle = cache.handle();
    drop(handle.overwrite(&file, 5).unwrap());
    let held = handle.overwrite(&file, 4).unwrap();
    cache.maintain().unwrap();
    assert_eq!((storage.of(1, 4), storage.of(1, 5)), (0, 1));
    drop(held);
    cache.maintain().unwrap();
    assert_eq!((storage.of(1, 4), storage.of(1, 5)), (1, 1));
    assert_eq!(cache.stats().dirty, 0);
}

#[test]
fn the_helper_writes_survives_a_panic_of_the_storage_and_ends_with_the_cache() {
    let (storage, cache) = cache(Duration::ZERO, 1.0);
    let file = cache.file(FileId(1)).unwrap();
    storage.panics.store(true, Ordering::SeqCst);
    drop(cache.handle().overwrite(&file, 5).unwrap());
    cache.start_helper(Duration::from_millis(1)).unwrap();
    cache.start_helper(Duration::from_millis(1)).unwrap();
    let wait = |what: &dyn Fn() -> bool| {
        for _ in 0..20_000 {
            if what() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("it does not come");
    };
    wait(&|| storage.tried.load(Ordering::SeqCst) > 1);
    storage.panics.store(false, Ordering::SeqCst);
    wait(&|| cache.stats().dirty == 0);
    let other = cache.clone();
    drop(cache);
    drop(other.handle().overwrite(&file, 6).unwrap());
    wait(&|| other.stats().dirty == 0);
    drop(other);
    // The thread is no owner any more.
    drop(file);
    assert_eq!(Arc::strong_count(&storage), 1);
}

#[test]
fn what_cannot_be_written_stays_dirty_and_is_reported_at_the_next_sync() {
    let (storage, cache) = cache(Duration::ZERO, 1.0);
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
