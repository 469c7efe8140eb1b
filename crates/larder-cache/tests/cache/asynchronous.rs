//! Reads that a thread of the cache does.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, ThreadId};
use std::time::Duration;

use crate::common::{Faulty, cache};
use larder_cache::{BlockCache, BlockRef, CacheError, FileId};

type Reply = (ThreadId, Result<Vec<u8>, CacheError>);

/// A completion that says which thread called it, and with what.
fn reply(
    sender: &Sender<Reply>,
) -> impl FnOnce(Result<Vec<BlockRef<'_>>, CacheError>) + Send + 'static {
    let sender = sender.clone();
    move |blocks| {
        let bytes = blocks.map(|blocks| blocks.iter().map(|block| block[0]).collect());
        sender.send((thread::current().id(), bytes)).unwrap();
    }
}

/// The only reply there is.
fn one(replies: &Receiver<Reply>) -> Reply {
    let first = replies.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(
        replies.recv_timeout(Duration::from_millis(5)).is_err(),
        "twice"
    );
    first
}

#[test]
fn the_caller_goes_on_while_another_thread_reads() {
    let storage = Faulty::default();
    let cache = cache(&storage, 16);
    let file = cache.file(FileId(1)).unwrap();
    let mut handle = cache.handle();
    handle.overwrite(&file, 2).unwrap().fill(7);
    let (sender, replies) = channel();
    storage.close_gate();
    assert!(handle.try_read(&file, 1).unwrap().is_none());
    handle.start_read(&file, 1..4, reply(&sender));
    storage.0.reading.await_calls(1);
    assert!(replies.try_recv().is_err());
    // What is on its way is not there, and what is there is.
    assert!(handle.try_read(&file, 1).unwrap().is_none());
    assert_eq!(handle.try_read(&file, 2).unwrap().unwrap()[0], 7);
    storage.open_gate();
    let (by, blocks) = one(&replies);
    assert_ne!(by, thread::current().id());
    assert_eq!(blocks.unwrap(), [0, 7, 0]);
    assert!(handle.try_read(&file, 1).unwrap().is_some());
    drop(handle);
    // Of the looks only two found their block; of the read's three blocks one was there.
    let stats = cache.stats();
    assert_eq!((stats.misses, stats.hits), (3, 3));
}

#[test]
fn what_goes_wrong_is_said_once() {
    let storage = Faulty::default();
    let cache = cache(&storage, 16);
    let file = cache.file(FileId(1)).unwrap();
    let mut handle = cache.handle();
    let (sender, replies) = channel();
    let mut ask = |blocks| {
        handle.start_read(&file, blocks, reply(&sender));
        one(&replies).1
    };
    Faulty::say(&storage.0.fail_reads, true);
    assert!(matches!(ask(0..3), Err(CacheError::Read { index: 0, .. })));
    Faulty::say(&storage.0.panic_on_read, true);
    assert!(matches!(ask(0..3), Err(CacheError::Read { index: 0, .. })));
    Faulty::say(&storage.0.panic_on_read, false);
    Faulty::say(&storage.0.fail_reads, false);
    assert!(matches!(ask(0..17), Err(CacheError::Pinned { .. })));
    assert!(matches!(
        ask(u64::MAX - 1..u64::MAX),
        Err(CacheError::Index { .. })
    ));
    assert!(matches!(ask(0..u64::MAX), Err(CacheError::Index { .. })));
    assert_eq!(ask(5..5).unwrap(), []);
    assert_eq!(ask(0..16).unwrap(), [0; 16]);
    // A completion that panics ends no thread.
    handle.start_read(&file, 0..1, |_| panic!("as asked"));
    for _ in 0..9 {
        handle.start_read(&file, 0..1, reply(&sender));
        assert_eq!(one(&replies).1.unwrap(), [0]);
    }
    assert_eq!(cache.check(), Ok(()));
}

#[test]
fn a_read_that_was_begun_ends_without_its_cache() {
    let storage = Faulty::default();
    let (sender, replies) = channel();
    storage.close_gate();
    let cache = cache(&storage, 64);
    let file = cache.file(FileId(1)).unwrap();
    cache.handle().overwrite(&file, 40).unwrap().fill(9);
    let mut handle = cache.handle();
    // More than there are threads.
    for at in 0..9 {
        handle.start_read(&file, at..at + 1, reply(&sender));
    }
    storage.0.reading.await_calls(1);
    drop((handle, file, cache));
    assert!(replies.try_recv().is_err());
    storage.open_gate();
    for _ in 0..9 {
        let (_, blocks) = replies.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!(blocks.unwrap(), [0]);
    }
    // The last of them wrote what was dirty, and the cache let go of the storage.
    for _ in 0..20_000 {
        if Arc::strong_count(&storage.0) == 1 {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(Arc::strong_count(&storage.0), 1);
    let size = larder::os::page_size();
    assert_eq!(storage.stored(FileId(1), 40 * size as u64, size)[0], 9);
}

#[test]
fn blocks_behind_a_reader_in_order_come_too() {
    let storage = Faulty::default();
    let builder = BlockCache::builder(storage.clone());
    let cache = builder.read_ahead(8).build().unwrap();
    let file = cache.file(FileId(1)).unwrap();
    let mut handle = cache.handle();
    let (sender, replies) = channel();
    let mut missed = 0;
    for index in 0..100 {
        if handle.try_read(&file, index).unwrap().is_none() {
            missed += 1;
            handle.start_read(&file, index..index + 1, reply(&sender));
            one(&replies).1.unwrap();
        }
    }
    assert!((10..20).contains(&missed), "{missed}");
}

#[test]
fn a_range_that_no_file_has_is_refused_before_anything_is_read_ahead() {
    let cache = BlockCache::builder(Faulty::default()).build().unwrap();
    let files = [1, 2].map(|id| cache.file(FileId(id)).unwrap());
    let mut handle = cache.handle();
    let (sender, replies) = channel();
    for file in &files {
        for blocks in [5..u64::MAX, 5..(1 << 40) + 1] {
            handle.start_read(file, blocks, reply(&sender));
            assert!(matches!(one(&replies).1, Err(CacheError::Index { .. })));
        }
        handle.start_read(file, (1 << 40) - 1..1 << 40, reply(&sender));
        assert_eq!(one(&replies).1.unwrap(), [0]);
    }
    assert_eq!(cache.stats().read_ahead, 0);
}

/// The thread that reads reports what it found when it has found all.
#[test]
fn a_recorder_that_panics_keeps_no_completion_from_being_called() {
    let cache = cache(&Faulty::default(), 16);
    let file = cache.file(FileId(1)).unwrap();
    let mut handle = cache.handle();
    handle.read(&file, 0).unwrap();
    handle.report();
    cache.record(Some(Box::new(|_| panic!("as asked"))));
    let (sender, replies) = channel();
    handle.start_read(&file, 0..1, reply(&sender));
    assert_eq!(one(&replies).1.unwrap(), [0]);
}
