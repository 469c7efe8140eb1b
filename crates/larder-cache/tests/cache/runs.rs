//! Blocks that are read with one call.

use std::io;
use std::sync::{Arc, Mutex};

use larder_cache::{BlockCache, CacheError, FileId, MemoryStorage, Part, Storage};

use crate::common::Rng;

const FILE: FileId = FileId(1);

/// Counts calls, and says which blocks each one read.
#[derive(Default)]
struct Counting {
    memory: MemoryStorage,
    calls: Mutex<Vec<Vec<u64>>>,
    /// This block cannot be read.
    bad: Mutex<Option<u64>>,
}

fn size() -> u64 {
    larder::os::page_size() as u64
}

impl Counting {
    fn take(&self) -> Vec<Vec<u64>> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    fn try_read(&self, file: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        if *self.bad.lock().unwrap() == Some(offset / size()) {
            return Err(io::Error::other("a scratch"));
        }
        self.memory.read(file, offset, into)
    }
}

impl Storage for Counting {
    fn read(&self, file: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.calls.lock().unwrap().push(vec![offset / size()]);
        self.try_read(file, offset, into)
    }

    fn write(&self, file: FileId, offset: u64, from: &[u8]) -> io::Result<usize> {
        self.memory.write(file, offset, from)
    }

    fn sync(&self, _: FileId) -> io::Result<()> {
        Ok(())
    }

    fn read_many(&self, parts: &mut [Part<&mut [u8]>]) {
        let blocks = parts.iter().map(|part| part.offset / size());
        self.calls.lock().unwrap().push(blocks.collect());
        for part in parts {
            part.done = Some(self.try_read(part.file, part.offset, part.bytes));
        }
    }
}

fn cache(blocks: u64, read_ahead: usize) -> (Arc<Counting>, BlockCache) {
    let storage = Arc::new(Counting::default());
    for index in 0..400 {
        storage
            .write(FILE, index * size(), &index.to_le_bytes())
            .unwrap();
    }
    let cache = BlockCache::builder(Arc::clone(&storage))
        .bytes((blocks * size()) as usize)
        .read_ahead(read_ahead)
        .build()
        .unwrap();
    (storage, cache)
}

fn number(block: &[u8]) -> u64 {
    u64::from_le_bytes(block[..8].try_into().unwrap())
}

#[test]
fn what_is_not_there_is_read_with_one_call_and_counted_once() {
    let (storage, cache) = cache(400, 8);
    let file = cache.open_at(FILE, 60 * size()).unwrap();
    let mut handle = cache.handle();
    for index in [12, 17] {
        handle.read(&file, index).unwrap();
    }
    storage.take();
    let mut blocks = Vec::new();
    handle.read_many(&file, 10..20, &mut blocks).unwrap();
    assert_eq!(storage.take(), [vec![10, 11, 13, 14, 15, 16, 18, 19]]);
    handle.read_many(&file, 10..20, &mut blocks).unwrap();
    let numbers: Vec<u64> = blocks.drain(..).map(|block| number(&block)).collect();
    assert_eq!(
        numbers,
        [(10..20).collect::<Vec<_>>(), (10..20).collect()].concat()
    );
    assert_eq!(storage.take(), [[]; 0]);
    handle.report();
    let stats = cache.stats();
    assert_eq!((stats.misses, stats.hits), (2 + 8, 2 + 10));
    // A reader from front to end is read ahead of, as far as the file goes.
    handle.read_many(&file, 20..30, &mut blocks).unwrap();
    handle.read_many(&file, 30..44, &mut blocks).unwrap();
    handle.read_many(&file, 44..54, &mut blocks).unwrap();
    blocks.clear();
    assert_eq!(spans(&storage), [(20, 33), (34, 51), (52, 59)]);
    // Nothing, and what cannot be.
    handle.read_many(&file, 9..9, &mut blocks).unwrap();
    let wrong = handle.read_many(&file, 5..u64::MAX, &mut blocks);
    assert!(matches!(wrong, Err(CacheError::Index { .. })) && blocks.is_empty());
    assert_eq!(cache.check(), Ok(()));
}

/// First and last block of each call.
fn spans(storage: &Counting) -> Vec<(u64, u64)> {
    let calls = storage.take();
    let span = |call: &Vec<u64>| (call[0], call[call.len() - 1]);
    calls.iter().map(span).collect()
}

#[test]
fn a_reader_of_more_than_comes_at_once_is_one_reader() {
    let (storage, cache) = cache(2000, 8);
    // The file is long enough, so no read comes back short and is asked for again.
    storage.write(FILE, 2000 * size() - 1, &[1]).unwrap();
    let file = cache.open_at(FILE, 2000 * size()).unwrap();
    let mut handle = cache.handle();
    let mut blocks = Vec::new();
    for run in [0..10, 10..20, 20..620] {
        handle.read_many(&file, run, &mut blocks).unwrap();
        blocks.clear();
    }
    // 4 ahead of the second run, and 8 of the third: when the last of its blocks are read.
    let expected = [(0, 9), (10, 23), (24, 280), (281, 537), (538, 627)];
    assert_eq!(spans(&storage), expected);
}

#[test]
fn what_fails_is_named_and_leaves_no_guard() {
    let (storage, cache) = cache(400, 0);
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    let mut blocks = vec![handle.read(&file, 1).unwrap()];
    *storage.bad.lock().unwrap() = Some(6);
    let failed = handle.read_many(&file, 2..9, &mut blocks);
    assert!(matches!(failed, Err(CacheError::Read { index: 6, .. })));
    assert_eq!(blocks.len(), 1);
    *storage.bad.lock().unwrap() = None;
    storage.take();
    handle.read_many(&file, 2..9, &mut blocks).unwrap();
    assert_eq!(storage.take(), [[6]]);
    drop(blocks);
    file.invalidate(0..9).unwrap();
    // More than there is room for.
    let (_, small) = self::cache(8, 0);
    let file = small.file(FILE).unwrap();
    let mut blocks = Vec::new();
    let mut handle = small.handle();
    let failed = handle.read_many(&file, 0..9, &mut blocks);
    assert!(matches!(failed, Err(CacheError::Pinned { .. })) && blocks.is_empty());
    handle.read_many(&file, 0..8, &mut blocks).unwrap();
    assert_eq!(small.check(), Ok(()));
}

#[test]
fn threads_that_read_runs_and_write_in_order_do_not_wait_for_each_other() {
    let (_, cache) = cache(64, 4);
    let file = cache.file(FILE).unwrap();
    std::thread::scope(|threads| {
        for thread in 0..4 {
            let (cache, file) = (&cache, &file);
            threads.spawn(move || {
                let (mut handle, mut rng) = (cache.handle(), Rng(thread));
                let mut blocks = Vec::new();
                for _ in 0..3000 {
                    let from = rng.below(100) as u64;
                    if rng.below(3) == 0 {
                        let first = handle.write(file, from).unwrap();
                        let second = handle.write(file, from + 1 + rng.below(3) as u64).unwrap();
                        assert_eq!((number(&first), number(&second) > from), (from, true));
                        continue;
                    }
                    let to = from + 1 + rng.below(10) as u64;
                    handle.read_many(file, from..to, &mut blocks).unwrap();
                    assert!(blocks.drain(..).map(|block| number(&block)).eq(from..to));
                }
            });
        }
    });
    assert_eq!(cache.check(), Ok(()));
}
