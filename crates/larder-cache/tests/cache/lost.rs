//! What is said of blocks that were written and left before a sync: lost when they are, and only then. And what becomes of dirty
//! blocks when the cache is dropped.

use std::sync::atomic::Ordering;

use crate::common::{Call, Faulty};
use larder_cache::{BlockCache, CacheError, CachedFile, FileId};

const FILE: FileId = FileId(1);

/// What came first leaves first.
fn made(blocks: usize) -> (Faulty, BlockCache, CachedFile) {
    let storage = Faulty::default();
    let cache = BlockCache::builder(storage.clone())
        .bytes(blocks * larder::os::page_size())
        .policy("fifo")
        .read_ahead(0)
        .build()
        .unwrap();
    let file = cache.file(FILE).unwrap();
    (storage, cache, file)
}

/// Block 0 was written and then left, without a sync.
fn left() -> (Faulty, BlockCache, CachedFile) {
    let (storage, cache, file) = made(2);
    let mut handle = cache.handle();
    handle.overwrite(&file, 0).unwrap().fill(1);
    cache.write_back().unwrap();
    for index in 1..8 {
        handle.read(&file, index).unwrap();
    }
    drop(handle);
    (storage, cache, file)
}

/// It was written before, and a failed sync took that: the next one must not say that all is well.
#[test]
fn a_written_block_that_is_invalidated_is_lost_with_a_failed_sync() {
    let (storage, cache, file) = made(4);
    cache.handle().overwrite(&file, 0).unwrap().fill(1);
    cache.write_back().unwrap();
    file.invalidate(0..1).unwrap();
    storage.0.syncs_to_fail.store(1, Ordering::SeqCst);
    assert!(matches!(file.sync(), Err(CacheError::Lost { file: FILE })));
    assert_eq!(storage.safe(FILE, 0), None);
    assert!(matches!(file.sync(), Err(CacheError::Lost { file: FILE })));
}

/// What was never written is forgotten as if it had not been changed.
#[test]
fn a_dirty_block_that_is_invalidated_is_not_lost() {
    let (storage, cache, file) = made(4);
    cache.handle().overwrite(&file, 0).unwrap().fill(1);
    file.invalidate(0..1).unwrap();
    storage.0.syncs_to_fail.store(1, Ordering::SeqCst);
    assert!(matches!(file.sync(), Err(CacheError::Sync { .. })));
    file.sync().unwrap();
}

/// A block that leaves and comes again is written again when a sync fails, changed in between or not: nothing is lost.
#[test]
fn a_block_that_left_and_came_again_is_not_lost() {
    for change in [false, true] {
        let (storage, cache, file) = left();
        let mut handle = cache.handle();
        let expected = if change {
            handle.write(&file, 0).unwrap()[0] = 2;
            2
        } else {
            handle.read(&file, 0).unwrap()[0]
        };
        storage.0.syncs_to_fail.store(1, Ordering::SeqCst);
        assert!(matches!(file.sync(), Err(CacheError::Sync { .. })));
        file.sync().unwrap();
        assert_eq!(storage.safe(FILE, 0), Some(expected));
    }
}

/// What is written from front to end takes the place of what left.
#[test]
fn a_block_that_left_and_is_overwritten_is_not_lost() {
    let (storage, cache, file) = left();
    let mut handle = cache.handle();
    handle.overwrite(&file, 0).unwrap().fill(2);
    storage.0.syncs_to_fail.store(1, Ordering::SeqCst);
    assert!(matches!(file.sync(), Err(CacheError::Sync { .. })));
    file.sync().unwrap();
    assert_eq!(storage.safe(FILE, 0), Some(2));
}

/// What is read while a sync fails may be what was there before: to write that would be to lose the block in silence.
#[test]
fn a_block_that_comes_again_during_a_failed_sync_is_lost() {
    for change in [false, true] {
        let (storage, cache, file) = left();
        let mut handle = cache.handle();
        storage.0.syncs_to_fail.store(1, Ordering::SeqCst);
        storage.0.syncing.close();
        std::thread::scope(|threads| {
            let sync = threads.spawn(|| file.sync());
            storage.0.syncing.await_calls(1);
            match change {
                true => handle.write(&file, 0).unwrap()[0] = 2,
                false => drop(handle.read(&file, 0).unwrap()),
            }
            storage.0.syncing.open();
            assert!(matches!(sync.join().unwrap(), Err(CacheError::Lost { .. })));
        });
    }
}

/// As many as the cache has frames are known one by one. Of more than that, one that came again counts as lost, too.
#[test]
fn blocks_that_left_are_remembered_one_by_one_or_together_and_never_forgotten() {
    for (blocks, lost) in [(2, false), (9, true)] {
        let (storage, cache, file) = made(2);
        let mut handle = cache.handle();
        for index in 0..blocks {
            handle.overwrite(&file, index).unwrap().fill(1);
            cache.write_back().unwrap();
        }
        for index in 20..28 {
            handle.read(&file, index).unwrap();
        }
        for index in 0..2 {
            handle.read(&file, index).unwrap();
        }
        storage.0.syncs_to_fail.store(1, Ordering::SeqCst);
        let error = file.sync().unwrap_err();
        assert_eq!(matches!(error, CacheError::Lost { .. }), lost, "{error}");
    }
}

/// The end of a file takes what is behind it out of every promise, and nothing else.
#[test]
fn blocks_behind_the_end_are_not_lost_and_others_are() {
    for (end, lost) in [(1, false), (3, true)] {
        let (storage, cache, file) = made(4);
        let mut handle = cache.handle();
        handle.overwrite(&file, 2).unwrap().fill(1);
        cache.write_back().unwrap();
        for index in 10..30 {
            handle.read(&file, index).unwrap();
        }
        file.truncate(end * cache.block_size() as u64).unwrap();
        storage.0.syncs_to_fail.store(1, Ordering::SeqCst);
        let error = file.sync().unwrap_err();
        assert_eq!(matches!(error, CacheError::Lost { .. }), lost, "{error}");
    }
}

/// Written, and not synced; a guard that was forgotten is not waited for.
#[test]
fn a_cache_that_is_dropped_writes_what_is_dirty() {
    let (storage, cache, file) = made(8);
    let mut handle = cache.handle();
    for index in 0..4 {
        handle
            .overwrite(&file, index)
            .unwrap()
            .fill(1 + index as u8);
    }
    file.invalidate(1..2).unwrap();
    std::mem::forget(handle.write(&file, 2).unwrap());
    drop(handle);
    drop(file);
    let last = cache.clone();
    drop(cache);
    assert_eq!(storage.calls(), [], "it has an owner yet");
    drop(last);
    let size = larder::os::page_size() as u64;
    let first = |index| storage.stored(FILE, index * size, 1)[0];
    assert_eq!([0, 1, 2, 3].map(first), [1, 0, 0, 4]);
    assert!(
        storage
            .calls()
            .iter()
            .all(|call| matches!(call, Call::Write(..)))
    );
}

#[test]
fn a_cache_is_dropped_when_its_storage_fails_or_panics() {
    for panics in [false, true] {
        let (storage, cache, file) = made(8);
        cache.handle().overwrite(&file, 0).unwrap().fill(1);
        let flag = match panics {
            true => &storage.0.panic_on_write,
            false => &storage.0.fail_writes,
        };
        Faulty::say(flag, true);
        drop((cache, file));
        assert_eq!(storage.0.tried.load(Ordering::SeqCst), 1);
    }
}

/// The fork's child has a copy of what was dirty then; its parent may have written something newer since.
#[test]
fn the_child_of_a_fork_writes_nothing_when_it_drops_the_cache() {
    let path = std::env::temp_dir().join(format!("larder-child-{}", std::process::id()));
    let files = larder_cache::Files::default();
    files.add(FILE, std::fs::File::create_new(&path).unwrap());
    let cache = BlockCache::builder(files).build().unwrap();
    let file = cache.file(FILE).unwrap();
    cache.handle().overwrite(&file, 0).unwrap().fill(1);
    let (wait, go) = std::io::pipe().unwrap();
    // SAFETY: the child waits, drops its copy of the cache, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(go);
        drop(std::io::read_to_string(wait));
        drop((cache, file));
        // SAFETY: it ends this process.
        unsafe { libc::_exit(0) };
    }
    cache.handle().overwrite(&file, 0).unwrap().fill(2);
    file.sync().unwrap();
    drop(go);
    let mut status = 0;
    // SAFETY: the child is this process's, and the status is written to a place of its type.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!((status, bytes[0]), (0, 2));
}

/// Fails the next sync, which says that something is lost, or that there was no more than the failure.
fn is_lost_with_the_next_sync(storage: &Faulty, file: &CachedFile) -> bool {
    storage.0.syncs_to_fail.store(1, Ordering::SeqCst);
    match file.sync() {
        Err(CacheError::Lost { .. }) => true,
        Err(CacheError::Sync { .. }) => false,
        other => panic!("{other:?}"),
    }
}

/// As many blocks of another file as are remembered were written, and left.
fn fill_with(cache: &BlockCache, other: FileId) {
    let other = cache.file(other).unwrap();
    let mut handle = cache.handle();
    for index in 0..2 {
        handle.overwrite(&other, index).unwrap().fill(1);
    }
    cache.write_back().unwrap();
    for index in 10..14 {
        handle.read(&other, index).unwrap();
    }
}

#[test]
fn blocks_that_are_truncated_take_no_place_among_those_that_left() {
    let (storage, cache, file) = made(2);
    fill_with(&cache, FileId(2));
    cache.handle().overwrite(&file, 5).unwrap().fill(1);
    cache.write_back().unwrap();
    file.truncate(cache.block_size() as u64).unwrap();
    assert!(!is_lost_with_the_next_sync(&storage, &file));
}

#[test]
fn a_file_that_is_never_synced_does_not_make_others_be_lost() {
    let (storage, cache, file) = made(2);
    fill_with(&cache, FileId(9));
    let mut handle = cache.handle();
    handle.overwrite(&file, 0).unwrap().fill(1);
    cache.write_back().unwrap();
    for index in 10..14 {
        handle.read(&file, index).unwrap();
    }
    handle.read(&file, 0).unwrap();
    assert!(!is_lost_with_the_next_sync(&storage, &file));
    assert!(is_lost_with_the_next_sync(
        &storage,
        &cache.file(FileId(9)).unwrap()
    ));
}

#[test]
fn what_lies_behind_an_end_that_was_said_is_not_lost() {
    for (end, lost) in [(0, false), (6, true)] {
        let (storage, cache, file) = made(2);
        let mut handle = cache.handle();
        handle.overwrite(&file, 5).unwrap().fill(1);
        cache.write_back().unwrap();
        for index in 10..14 {
            handle.read(&file, index).unwrap();
        }
        file.set_end(end * cache.block_size() as u64);
        assert_eq!(is_lost_with_the_next_sync(&storage, &file), lost);
    }
}

#[test]
fn a_block_that_comes_again_during_a_good_sync_is_not_lost() {
    let (storage, cache, file) = made(2);
    storage.0.syncing.close();
    std::thread::scope(|threads| {
        let sync = threads.spawn(|| file.sync());
        storage.0.syncing.await_calls(1);
        let mut handle = cache.handle();
        handle.overwrite(&file, 0).unwrap().fill(1);
        cache.write_back().unwrap();
        for index in (1..5).chain([0]) {
            handle.read(&file, index).unwrap();
        }
        storage.0.syncing.open();
        sync.join().unwrap().unwrap();
    });
    assert!(!is_lost_with_the_next_sync(&storage, &file));
    file.sync().unwrap();
    assert_eq!(storage.safe(FILE, 0), Some(1));
}
