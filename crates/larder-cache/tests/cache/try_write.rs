//! Writes of a range that wait for nothing: all of its blocks are written, or none.

use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use crate::common::{Faulty, cache};
use larder_cache::{Access, AccessKind, BlockCache, CacheError, CachedFile, FileId, TenantId};

const FILE: FileId = FileId(1);

fn size() -> u64 {
    larder::os::page_size() as u64
}

/// So many blocks.
fn blocks(n: u64, byte: u8) -> Vec<u8> {
    vec![byte; (n * size()) as usize]
}

/// A cache, half of which may be dirty, and a file that ends somewhere.
struct Tried {
    storage: Faulty,
    cache: BlockCache,
    file: CachedFile,
}

impl Tried {
    fn new(frames: usize, end: u64) -> Self {
        let storage = Faulty::default();
        let cache = cache(&storage, frames);
        let file = cache.open_at(FILE, end).unwrap();
        Self {
            storage,
            cache,
            file,
        }
    }

    /// Whether it was written. The storage is not asked for that.
    #[track_caller]
    fn write_to(&self, file: &CachedFile, offset: u64, bytes: &[u8]) -> bool {
        let asked = || {
            let tried = self.storage.0.tried.load(Ordering::SeqCst);
            (self.storage.calls().len(), tried)
        };
        let before = asked();
        let written = self.cache.handle().try_write_at(file, offset, bytes);
        assert_eq!(asked(), before, "the storage was asked");
        assert_eq!(self.cache.check(), Ok(()));
        written.unwrap()
    }

    #[track_caller]
    fn write(&self, offset: u64, bytes: &[u8]) -> bool {
        self.write_to(&self.file, offset, bytes)
    }

    /// It is not written, and all is as before.
    #[track_caller]
    fn refuses(&self, offset: u64, bytes: &[u8]) {
        let now = || {
            let stats = self.cache.stats();
            let counts = (stats.hits, stats.misses, stats.evictions);
            (counts, stats.resident, stats.dirty, self.file.end())
        };
        let before = now();
        assert!(!self.write(offset, bytes), "it was written");
        assert_eq!(now(), before);
    }

    /// What the file has from its beginning on, in the cache.
    fn content(&self, blocks: u64) -> Vec<u8> {
        let mut handle = self.cache.handle();
        let mut all = Vec::new();
        for index in 0..blocks {
            all.extend_from_slice(&handle.read(&self.file, index).unwrap());
        }
        all
    }

    /// What is used and removed from now on.
    fn recorded(&self) -> Arc<Mutex<Vec<Access>>> {
        let log: Arc<Mutex<Vec<Access>>> = Arc::default();
        let into = Arc::clone(&log);
        let record = move |access: Access| {
            if !access.kind.is_state() {
                into.lock().unwrap().push(access);
            }
        };
        self.cache.record(Some(Box::new(record)));
        log
    }
}

#[test]
fn a_range_is_written_and_nothing_is_read() {
    let tried = Tried::new(64, 0);
    let text: Vec<u8> = (0..20 * size() + 9).map(|at| (at % 251) as u8).collect();
    assert!(tried.write(100, &text));
    let end = 100 + text.len() as u64;
    assert_eq!(tried.file.end(), Some(end));
    let stats = tried.cache.stats();
    assert_eq!((stats.misses, stats.hits, stats.dirty), (21, 0, 21));
    // Now each of them is in memory.
    assert!(tried.write(50, &text));
    assert_eq!(tried.file.end(), Some(end));
    let stats = tried.cache.stats();
    assert_eq!((stats.misses, stats.hits, stats.dirty), (21, 21, 21));
    let mut expected = vec![0; 50];
    expected.extend_from_slice(&text);
    expected.extend_from_slice(&text[text.len() - 50..]);
    let content = tried.content(21);
    assert!(content[..expected.len()] == expected, "the bytes");
    assert!(content[expected.len()..].iter().all(|&byte| byte == 0));
    tried.file.sync().unwrap();
    assert!(tried.storage.stored(FILE, 0, expected.len()) == expected);
    assert_eq!(tried.storage.reads(), 0);
}

#[test]
fn a_block_that_is_held_keeps_all_from_being_written() {
    let tried = &Tried::new(64, 0);
    assert!(tried.write(0, &blocks(5, 1)));
    let mut handle = tried.cache.handle();
    let reads = handle.read(&tried.file, 3).unwrap();
    tried.refuses(0, &blocks(5, 2));
    // Some would come for it.
    tried.refuses(3 * size(), &blocks(9, 2));
    assert!(tried.write(0, &blocks(3, 2)), "the others");
    drop(reads);
    let writes = handle.write(&tried.file, 4).unwrap();
    tried.refuses(0, &blocks(5, 3));
    drop(writes);
    // By a pin: a clean block that was used often.
    tried.file.sync().unwrap();
    for _ in 0..5000 {
        handle.read(&tried.file, 3).unwrap();
    }
    let pins = handle.read(&tried.file, 3).unwrap();
    tried.refuses(0, &blocks(5, 3));
    drop(pins);
    std::thread::scope(|threads| {
        let (holds, held) = channel();
        let (let_go, may_go) = channel::<()>();
        threads.spawn(move || {
            let mut handle = tried.cache.handle();
            let block = handle.write(&tried.file, 2).unwrap();
            holds.send(()).unwrap();
            let _ = may_go.recv();
            drop(block);
        });
        held.recv().unwrap();
        tried.refuses(0, &blocks(5, 3));
        drop(let_go);
    });
    let as_before = [blocks(3, 2), blocks(2, 1)].concat();
    assert!(tried.content(5) == as_before, "nothing was written");
    assert!(tried.write(0, &blocks(5, 3)));
    assert!(tried.content(5) == blocks(5, 3));
}

#[test]
fn a_block_on_its_way_keeps_all_from_being_written() {
    let tried = &Tried::new(64, 10 * size());
    let storage = &tried.storage.0;
    storage.reading.close();
    std::thread::scope(|threads| {
        let read = threads.spawn(|| tried.cache.handle().read(&tried.file, 1).unwrap()[0]);
        storage.reading.await_calls(1);
        tried.refuses(0, &blocks(3, 1));
        assert!(tried.write(2 * size(), &blocks(2, 1)), "the others");
        storage.reading.open();
        assert_eq!(read.join().unwrap(), 0);
    });
    assert!(tried.write(0, &blocks(3, 2)));
    storage.written.close();
    std::thread::scope(|threads| {
        let write_back = threads.spawn(|| tried.file.write_back().unwrap());
        storage.written.await_calls(1);
        tried.refuses(0, &blocks(3, 3));
        storage.written.open();
        write_back.join().unwrap();
    });
    assert!(tried.content(4) == [blocks(3, 2), blocks(1, 1)].concat());
    assert!(tried.write(0, &blocks(3, 3)));
}

#[test]
fn a_block_that_would_have_to_be_read_keeps_all_from_being_written() {
    let tried = Tried::new(64, 10 * size());
    let block = size() as usize;
    for (offset, len) in [
        (1, block),
        (0, 2 * block - 1),
        (size() - 1, 2),
        (size(), 1),
        (9 * size() + 1, block),
    ] {
        tried.refuses(offset, &vec![7; len]);
    }
    assert_eq!(tried.cache.stats().resident, 0);
    let mut handle = tried.cache.handle();
    for edge in [1, 4] {
        handle.read(&tried.file, edge).unwrap();
    }
    let len = 4 * block - 2;
    assert!(tried.write(size() + 1, &vec![7; len]));
    let mut expected = blocks(6, 0);
    expected[block + 1..block + 1 + len].fill(7);
    assert!(tried.content(6) == expected);
}

#[test]
fn what_is_behind_the_end_is_not_read_and_the_file_ends_with_the_bytes() {
    use larder_cache::Storage;
    let tried = Tried::new(64, 10);
    tried.storage.write(FILE, 0, &[9; 10]).unwrap();
    tried.refuses(5, &[1; 100]);
    tried.refuses(0, &[1; 9]);
    assert!(tried.write(0, &[1; 10]), "all that it has");
    assert_eq!(tried.file.end(), Some(10));
    assert!(tried.write(4, &[2; 20]));
    assert_eq!(tried.file.end(), Some(24));
    let far = 3 * size() + 5;
    assert!(tried.write(far, &[3; 7]), "behind its end");
    assert_eq!(tried.file.end(), Some(far + 7));
    // Of what lies between, the storage may have something.
    tried.refuses(size() + 5, &[4; 7]);
    let mut expected = blocks(4, 0);
    expected[..4].fill(1);
    expected[4..24].fill(2);
    expected[far as usize..far as usize + 7].fill(3);
    assert!(tried.content(4) == expected);
    tried.file.sync().unwrap();
    let len = far as usize + 7;
    assert!(tried.storage.stored(FILE, 0, len) == expected[..len]);
    // A file of which no end was said has all of each block.
    let endless = tried.cache.file(FileId(2)).unwrap();
    assert!(!tried.write_to(&endless, 0, &[5; 10]));
    assert!(tried.write_to(&endless, 0, &blocks(1, 5)));
    assert_eq!(endless.end(), None);
}

#[test]
fn no_more_becomes_dirty_than_may_be() {
    let tried = Tried::new(16, 0);
    assert!(tried.write(0, &blocks(8, 1)));
    tried.refuses(8 * size(), &blocks(1, 2));
    tried.refuses(7 * size(), &blocks(2, 2));
    assert!(tried.write(0, &blocks(8, 2)), "they are dirty already");
    tried.file.write_back().unwrap();
    tried.refuses(0, &blocks(9, 3));
    assert!(tried.write(0, &blocks(8, 3)));
    assert_eq!(tried.cache.stats().dirty, 8);
}

#[test]
fn a_tenant_has_a_limit_of_its_own() {
    let tried = Tried::new(32, 0);
    let tenant = TenantId(7);
    let limit = 8 * size() as usize;
    tried.cache.limit_tenant(tenant, limit, None).unwrap();
    let file = tried.cache.open_at_of(FileId(2), 0, tenant).unwrap();
    assert!(!tried.write_to(&file, 0, &blocks(5, 1)));
    assert!(tried.write_to(&file, 0, &blocks(4, 1)));
    assert!(!tried.write_to(&file, 4 * size(), &blocks(1, 1)));
    // The others have what is left of half of the cache.
    assert!(tried.write(0, &blocks(12, 1)));
    tried.refuses(12 * size(), &blocks(1, 1));
    assert_eq!((file.stats().dirty, tried.file.stats().dirty), (4, 12));
}

#[test]
fn without_frames_for_all_none_is_left() {
    let tried = Tried::new(8, 100 * size());
    let log = tried.recorded();
    let mut handle = tried.cache.handle();
    let read = |index| handle.read(&tried.file, index).unwrap();
    let mut held: Vec<_> = (0..8).map(read).collect();
    // One block may leave.
    held.pop();
    assert!(!tried.write(20 * size(), &blocks(2, 1)));
    let stats = tried.cache.stats();
    assert_eq!((stats.resident, stats.dirty), (7, 0));
    // It is told to the rule and to the recorder alike.
    let told = log.lock().unwrap()[8..].to_vec();
    let told: Vec<_> = told
        .iter()
        .map(|access| (access.index, access.kind))
        .collect();
    let (missed, removed) = (AccessKind::Write, AccessKind::Remove);
    assert_eq!(
        told,
        [(20, missed), (21, missed), (21, removed), (20, removed)]
    );
    for index in [20, 21] {
        assert_eq!(tried.cache.handle().read(&tried.file, index).unwrap()[0], 0);
    }
    assert!(tried.write(20 * size(), &blocks(1, 1)), "one has a frame");
    drop(held);
    assert!(tried.write(20 * size(), &blocks(2, 2)));
    drop(handle);
    let stats = tried.cache.stats();
    let log = log.lock().unwrap();
    let uses = log.iter().filter(|access| access.kind != removed).count();
    assert_eq!(uses as u64, stats.hits + stats.misses);
    assert_eq!((stats.dirty, tried.cache.check()), (2, Ok(())));
}

#[test]
fn the_blocks_are_used_by_one_request() {
    let tried = Tried::new(64, 0);
    let log = tried.recorded();
    assert!(tried.write(size(), &blocks(2, 1)));
    assert!(tried.write(0, &blocks(4, 2)));
    let log = log.lock().unwrap();
    let uses: Vec<_> = log
        .iter()
        .map(|access| (access.index, access.kind, access.hit))
        .collect();
    let (missed, hit) = (AccessKind::Write, AccessKind::Read);
    assert_eq!(
        uses,
        [
            (1, missed, false),
            (2, missed, false),
            (0, missed, false),
            (3, missed, false),
            (1, hit, true),
            (2, hit, true)
        ]
    );
    assert!(log[2..].iter().all(|one| one.request == log[2].request));
}

/// As if it had been overwritten by a call that may wait.
#[test]
fn what_left_before_a_failed_sync_and_was_written_again_is_not_lost() {
    let tried = Tried::new(4, 0);
    assert!(tried.write(0, &blocks(1, 1)));
    tried.cache.write_back().unwrap();
    let mut handle = tried.cache.handle();
    for index in 1..8 {
        handle.read(&tried.file, index).unwrap();
    }
    assert!(tried.write(0, &blocks(1, 2)));
    tried.storage.0.syncs_to_fail.store(1, Ordering::SeqCst);
    assert!(matches!(tried.file.sync(), Err(CacheError::Sync { .. })));
    tried.file.sync().unwrap();
    assert_eq!(tried.storage.safe(FILE, 0), Some(2));
}

#[test]
fn a_range_that_no_file_has_is_an_error_and_a_long_one_is_refused() {
    let tried = Tried::new(2048, 0);
    tried.refuses(0, &blocks(513, 1));
    assert!(tried.write(0, &blocks(512, 1)));
    assert!(tried.write(5, &[]));
    let last = (1_u64 << 40) * size() - 1;
    assert!(tried.write(last, &[1]));
    let mut handle = tried.cache.handle();
    for offset in [u64::MAX, u64::MAX - 2, last] {
        let error = handle.try_write_at(&tried.file, offset, &[1, 2]);
        assert!(matches!(error, Err(CacheError::Index { .. })), "{offset}");
    }
    let other = Tried::new(4, 0);
    let foreign = handle.try_write_at(&other.file, 0, &[1]);
    assert!(matches!(foreign, Err(CacheError::Foreign { .. })));
}
