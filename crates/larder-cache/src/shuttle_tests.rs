//! The cache under shuttle's scheduler, over a disk that takes its time, fails and forgets:
//! `RUSTFLAGS="--cfg shuttle" cargo test -p larder --lib --target-dir target/shuttle cache::blocks`.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, OnceLock};

use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicU64, Ordering::SeqCst};
use shuttle::thread;

use super::{BlockCache, CacheError, CachedFile, FileId, Storage, TenantId};
use larder::pages::PagePool;

const FILE: FileId = FileId(1);

/// First bytes of blocks: those that were written, and those that are safe.
#[derive(Default)]
struct Contents {
    written: BTreeMap<u64, u8>,
    safe: BTreeMap<u64, u8>,
}

#[derive(Default)]
struct State {
    contents: Mutex<Contents>,
    reads: AtomicU64,
    /// So many syncs fail, and the disk forgets what was written since the last one.
    failing: AtomicU64,
}

#[derive(Clone, Default)]
struct Disk(Arc<State>);

impl Disk {
    fn safe(&self, index: u64) -> Option<u8> {
        self.0.contents.lock().unwrap().safe.get(&index).copied()
    }

    fn fill(&self, blocks: u64, byte: u8) {
        let all = (0..blocks).map(|index| (index, byte));
        self.0.contents.lock().unwrap().written.extend(all);
    }
}

impl Storage for Disk {
    fn read(&self, _: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.0.reads.fetch_add(1, SeqCst);
        let index = offset / into.len() as u64;
        let byte = self.0.contents.lock().unwrap().written.get(&index).copied();
        let half = into.len() / 2;
        into[..half].fill(byte.unwrap_or(0));
        thread::yield_now();
        into[half..].fill(byte.unwrap_or(0));
        Ok(into.len())
    }

    fn write(&self, _: FileId, offset: u64, from: &[u8]) -> io::Result<usize> {
        let first = from[0];
        thread::yield_now();
        assert!(from.iter().all(|&byte| byte == first), "torn");
        let index = offset / from.len() as u64;
        self.0.contents.lock().unwrap().written.insert(index, first);
        Ok(from.len())
    }

    fn sync(&self, _: FileId) -> io::Result<()> {
        thread::yield_now();
        let mut contents = self.0.contents.lock().unwrap();
        let less = |left: u64| left.checked_sub(1);
        if self.0.failing.fetch_update(SeqCst, SeqCst, less).is_ok() {
            contents.written = contents.safe.clone();
            return Err(io::Error::other("the cable is loose"));
        }
        contents.safe = contents.written.clone();
        Ok(())
    }
}

/// Schedules for each test; `LARDER_SCHEDULES` says otherwise.
const SCHEDULES: usize = 1000;

fn explore(blocks: usize, ahead: usize, test: fn(BlockCache, Disk, CachedFile)) {
    static POOL: OnceLock<PagePool> = OnceLock::new();
    let said = std::env::var("LARDER_SCHEDULES").ok();
    let schedules = said.and_then(|n| n.parse().ok()).unwrap_or(SCHEDULES);
    let one = move || {
        let disk = Disk::default();
        let cache = BlockCache::builder(disk.clone())
            .bytes(blocks * larder::os::page_size())
            .policy("fifo")
            .read_ahead(ahead)
            .pool(POOL.get_or_init(|| PagePool::new().unwrap()).clone())
            .build()
            .unwrap();
        let file = cache.file(FILE).unwrap();
        test(cache, disk, file);
    };
    shuttle::check_random(one, schedules);
    shuttle::check_pct(one, schedules, 3);
}

/// The byte of a block, which all of it must agree on. A cache all of whose blocks are held has none.
fn look(cache: &BlockCache, file: &CachedFile, index: u64) -> Option<u8> {
    match cache.handle().read(file, index) {
        Ok(block) => {
            let byte = block[0];
            thread::yield_now();
            assert!(block.iter().all(|&other| other == byte), "torn");
            Some(byte)
        }
        Err(CacheError::Pinned { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

fn put(cache: &BlockCache, file: &CachedFile, index: u64, byte: u8) -> bool {
    match cache.handle().overwrite(file, index) {
        Ok(mut block) => {
            let half = block.len() / 2;
            block[..half].fill(byte);
            thread::yield_now();
            block[half..].fill(byte);
            true
        }
        Err(CacheError::Pinned { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

type Worker = thread::JoinHandle<()>;

fn spawn(
    cache: &BlockCache,
    file: &CachedFile,
    work: impl FnOnce(&BlockCache, &CachedFile) + Send + 'static,
) -> Worker {
    let (cache, file) = (cache.clone(), file.clone());
    thread::spawn(move || work(&cache, &file))
}

fn join(workers: impl IntoIterator<Item = Worker>) {
    workers
        .into_iter()
        .for_each(|worker| worker.join().unwrap());
}

#[test]
fn shuttle_one_read_for_all_threads_that_wait() {
    explore(4, 0, |cache, disk, file| {
        disk.fill(1, 7);
        let work = |cache: &BlockCache, file: &CachedFile| {
            assert_eq!(look(cache, file, 0), Some(7));
        };
        join([0; 3].map(|_| spawn(&cache, &file, work)));
        assert_eq!(disk.0.reads.load(SeqCst), 1);
        let stats = cache.stats();
        assert_eq!((stats.hits, stats.misses), (2, 1));
    });
}

#[test]
fn shuttle_a_sync_covers_all_writes_before_it() {
    explore(4, 0, |cache, disk, file| {
        let written = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&written);
        let writer = spawn(&cache, &file, move |cache, file| {
            for byte in 1..4 {
                assert!(put(cache, file, 0, byte));
                count.store(u64::from(byte), SeqCst);
            }
        });
        let syncer = spawn(&cache, &file, move |_, file| {
            for _ in 0..2 {
                let before = written.load(SeqCst);
                file.sync().unwrap();
                let safe = disk.safe(0).unwrap_or(0);
                assert!(u64::from(safe) >= before, "{safe} after {before}");
            }
        });
        join([writer, syncer]);
    });
}

#[test]
fn shuttle_a_failed_sync_loses_nothing_that_is_said_to_be_safe() {
    explore(4, 0, |cache, disk, file| {
        disk.0.failing.store(1, SeqCst);
        assert!(put(&cache, &file, 0, 1));
        let (one, two) = (disk.clone(), disk.clone());
        let workers = [
            spawn(&cache, &file, move |_, file| {
                if file.sync().is_ok() {
                    assert_eq!(one.safe(0), Some(1));
                }
            }),
            spawn(&cache, &file, move |cache, file| {
                assert!(put(cache, file, 1, 2));
                if file.sync().is_ok() {
                    assert_eq!(two.safe(1), Some(2));
                }
            }),
            spawn(&cache, &file, |cache, _| drop(cache.write_back())),
        ];
        join(workers);
        let last = cache.file(FILE).unwrap();
        last.sync().unwrap();
        assert_eq!([disk.safe(0), disk.safe(1)], [Some(1), Some(2)]);
    });
}

#[test]
fn shuttle_blocks_that_leave_are_read_again() {
    explore(2, 0, |cache, disk, file| {
        disk.fill(4, 9);
        let read = |cache: &BlockCache, file: &CachedFile| {
            for index in [0, 1, 2, 0] {
                assert!(look(cache, file, index).is_none_or(|byte| byte == 9));
            }
        };
        let write = |cache: &BlockCache, file: &CachedFile| {
            for byte in 1..3 {
                if put(cache, file, 3, byte) {
                    assert!(look(cache, file, 3).is_none_or(|seen| seen == byte));
                }
            }
        };
        join([
            spawn(&cache, &file, read),
            spawn(&cache, &file, read),
            spawn(&cache, &file, write),
        ]);
        assert!(cache.stats().resident <= 2);
        file.sync().unwrap();
        file.invalidate(0..9).unwrap();
        assert_eq!(cache.stats().resident, 0);
    });
}

#[test]
fn shuttle_a_pinned_block_neither_leaves_nor_changes() {
    explore(2, 0, |cache, disk, file| {
        disk.fill(3, 9);
        // By now the reader's block may be pinned.
        const LONG: u64 = 8;
        let reads = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&reads);
        let reader = spawn(&cache, &file, move |cache, file| {
            let mut handle = cache.handle();
            for _ in 0..14 {
                if let Ok(block) = handle.read(file, 0) {
                    let byte = block[0];
                    thread::yield_now();
                    assert!(block.iter().all(|&other| other == byte), "torn");
                    assert!(matches!(byte, 1 | 9), "{byte} is another block's");
                }
                count.fetch_add(1, SeqCst);
            }
        });
        let others = [0, 1, 2].map(|index| {
            let reads = Arc::clone(&reads);
            spawn(&cache, &file, move |cache, file| {
                while reads.load(SeqCst) < LONG {
                    thread::yield_now();
                }
                let byte = [1, 8, 7][index as usize];
                if put(cache, file, index, byte) {
                    assert!(look(cache, file, index).is_none_or(|seen| seen == byte));
                }
            })
        });
        join(others.into_iter().chain([reader]));
        cache.check().unwrap();
    });
}

#[test]
fn shuttle_nothing_behind_the_end_is_seen_after_truncate() {
    explore(6, 3, |cache, disk, file| {
        disk.fill(5, 9);
        let reader = spawn(&cache, &file, |cache, file| {
            for index in 0..3 {
                let seen = look(cache, file, index).unwrap();
                assert!(seen == 9 || index > 0 && seen == 0);
            }
        });
        let size = larder::os::page_size() as u64;
        let cut = spawn(&cache, &file, move |cache, file| {
            match file.truncate(size) {
                Ok(()) => (1..5).for_each(|index| assert_eq!(look(cache, file, index), Some(0))),
                Err(CacheError::Held { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        });
        join([reader, cut]);
    });
}

/// The end and the zeroes behind it come at once: a thread that knows the end writes behind it, and that stays.
#[test]
fn shuttle_what_is_written_behind_a_new_end_stays() {
    explore(2, 0, |cache, _, file| {
        assert!(put(&cache, &file, 0, 7));
        let appended = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&appended);
        let cut = spawn(&cache, &file, |_, file| file.truncate(10).unwrap());
        let append = spawn(&cache, &file, move |cache, file| {
            if file.end() == Some(10) {
                let mut handle = cache.handle();
                handle.write_until(file, 0, 20).unwrap()[10..].fill(7);
                count.store(10, SeqCst);
            }
        });
        join([cut, append]);
        let end = 10 + appended.load(SeqCst);
        assert_eq!(file.end(), Some(end));
        let mut handle = cache.handle();
        let block = handle.read(&file, 0).unwrap();
        let (inside, behind) = block.split_at(end as usize);
        assert!(inside.iter().all(|&byte| byte == 7));
        assert!(behind.iter().all(|&byte| byte == 0));
    });
}

#[test]
fn shuttle_what_is_behind_an_end_that_was_said_is_the_same_in_memory_and_below() {
    explore(4, 0, |cache, disk, file| {
        assert!(put(&cache, &file, 1, 1) && put(&cache, &file, 0, 1));
        let writer = spawn(&cache, &file, |cache, file| {
            assert!(put(cache, file, 1, 2));
            assert!(put(cache, file, 1, 3));
        });
        let end = spawn(&cache, &file, |_, file| file.set_end(0));
        let sync = spawn(&cache, &file, |_, file| file.sync().unwrap());
        join([writer, end, sync]);
        let seen = look(&cache, &file, 1);
        assert!(seen == Some(0) || seen == Some(3), "{seen:?}");
        file.sync().unwrap();
        if seen == Some(3) {
            assert_eq!(disk.safe(1), seen);
        }
        file.invalidate(0..9).unwrap();
        assert_eq!(look(&cache, &file, 1), seen);
    });
}

#[test]
fn shuttle_nothing_of_a_discarded_file_is_written_or_missed() {
    explore(3, 2, |cache, disk, file| {
        assert!(put(&cache, &file, 0, 1) && put(&cache, &file, 1, 1));
        disk.0.failing.store(1, SeqCst);
        let reader = spawn(&cache, &file, |cache, file| {
            for index in [1, 0, 2] {
                let seen = look(cache, file, index);
                assert!(seen.is_none_or(|byte| byte <= 1), "{seen:?}");
            }
        });
        let writes = spawn(&cache, &file, |cache, file| {
            drop(file.sync());
            drop(cache.write_back());
        });
        file.discard();
        let seen = [0, 1].map(|index| look(&cache, &file, index).unwrap_or(0));
        assert_eq!(seen, [0, 0]);
        join([reader, writes]);
        file.discard();
        assert!(!matches!(file.sync(), Err(CacheError::Lost { .. })));
        file.sync().unwrap();
        let stats = cache.stats();
        assert_eq!((stats.resident, stats.dirty), (0, 0));
        cache.check().unwrap();
    });
}

#[test]
fn shuttle_a_thread_that_gives_blocks_up_waits_for_the_cache_only() {
    explore(4, 0, |cache, _disk, file| {
        assert!(put(&cache, &file, 0, 1));
        let workers = [
            spawn(&cache, &file, |cache, _| cache.write_back().unwrap()),
            spawn(&cache, &file, |_, file| file.sync().unwrap()),
        ];
        // Only the cache itself has the block.
        file.invalidate(0..1).unwrap();
        join(workers);
        assert_eq!((cache.stats().dirty, cache.stats().resident), (0, 0));
    });
}

/// The cache's own threads hold blocks, too, and they are not what `Held` is for.
#[test]
fn shuttle_only_guards_keep_blocks_from_being_invalidated() {
    explore(4, 0, |cache, _, file| {
        let write_back = |cache: &BlockCache, file: &CachedFile| {
            file.sync().unwrap();
            cache.write_back().unwrap();
        };
        let end = |_: &BlockCache, file: &CachedFile| file.set_end(10);
        let workers = [
            spawn(&cache, &file, write_back),
            spawn(&cache, &file, end),
            spawn(&cache, &file, write_back),
        ];
        for byte in 1..3 {
            assert!(put(&cache, &file, 0, byte));
            file.invalidate(0..1).unwrap();
        }
        join(workers);
    });
}

/// Each thread holds the blocks it has when it asks for the next one, and all ask in ascending order; others read them away.
#[test]
fn shuttle_threads_that_take_blocks_in_one_order_all_get_on() {
    /// What the test reads and writes, and holds while it goes on.
    fn hold(cache: &BlockCache, file: &CachedFile, blocks: &[u64]) {
        let mut handle = cache.handle();
        let mut held = Vec::new();
        for &index in blocks {
            match handle.write(file, index) {
                Ok(block) => held.push(block),
                Err(CacheError::Pinned { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
    for frames in [2, 3] {
        explore(frames, 0, |cache, _, file| {
            let pass = |cache: &BlockCache, file: &CachedFile| {
                for index in [2, 3] {
                    look(cache, file, index);
                }
                hold(cache, file, &[0, 1]);
            };
            let end = |_: &BlockCache, file: &CachedFile| {
                file.set_end(2);
                file.sync().unwrap();
            };
            join([
                spawn(&cache, &file, |cache, file| hold(cache, file, &[1, 2])),
                spawn(&cache, &file, pass),
                spawn(&cache, &file, |cache, file| {
                    hold(cache, file, &[0, 2, 3, 4])
                }),
                spawn(&cache, &file, end),
            ]);
            cache.check().unwrap();
        });
    }
}

#[test]
fn shuttle_the_size_changes_under_readers() {
    explore(4, 2, |cache, disk, file| {
        disk.fill(8, 9);
        let read = |cache: &BlockCache, file: &CachedFile| {
            for index in 0..4 {
                assert!(look(cache, file, index).is_none_or(|byte| byte == 9));
            }
        };
        let resize = |cache: &BlockCache, _: &CachedFile| {
            for blocks in [1, 3] {
                cache.set_bytes(blocks * cache.block_size()).unwrap();
            }
        };
        join([
            spawn(&cache, &file, read),
            spawn(&cache, &file, read),
            spawn(&cache, &file, resize),
        ]);
        look(&cache, &file, 7).unwrap();
        assert!(cache.stats().resident <= 3);
    });
}

#[test]
fn shuttle_each_read_that_was_begun_ends_once_also_without_the_cache() {
    explore(3, 0, |cache, disk, file| {
        disk.fill(4, 9);
        let ends = Arc::new([0; 4].map(|_| AtomicU64::new(0)));
        let readers = [0, 2].map(|from| {
            let ends = Arc::clone(&ends);
            spawn(&cache, &file, move |cache, file| {
                let mut handle = cache.handle();
                for index in from..from + 2 {
                    let ends = Arc::clone(&ends);
                    handle.start_read(file, index..index + 1, move |blocks| {
                        if let Ok(blocks) = blocks {
                            assert!(blocks[0].iter().all(|&byte| byte == 9));
                        }
                        ends[index as usize].fetch_add(1, SeqCst);
                    });
                }
            })
        });
        drop((cache, file));
        join(readers);
        let mut turns = 0;
        while ends.iter().any(|end| end.load(SeqCst) == 0) {
            thread::yield_now();
            turns += 1;
            assert!(turns < 10_000, "{ends:?}");
        }
        // Another owner of the disk is the cache, whose last owner may be one of its threads.
        while Arc::strong_count(&disk.0) > 1 {
            thread::yield_now();
            turns += 1;
            assert!(turns < 10_000, "the cache is still there");
        }
        assert!(ends.iter().all(|end| end.load(SeqCst) == 1));
    });
}

#[test]
fn shuttle_a_tenant_gets_a_limit_under_readers_and_writers() {
    explore(5, 0, |cache, disk, file| {
        disk.fill(6, 9);
        let tenant = TenantId::default();
        let read = |cache: &BlockCache, file: &CachedFile| {
            for index in 0..4 {
                assert!(look(cache, file, index).is_none_or(|byte| byte == 9));
            }
        };
        let write = move |cache: &BlockCache, file: &CachedFile| {
            for byte in 1..3 {
                if put(cache, file, 5, byte) {
                    assert!(look(cache, file, 5).is_none_or(|seen| seen == byte));
                }
            }
        };
        let limit = move |cache: &BlockCache, _: &CachedFile| {
            let size = cache.block_size();
            cache.limit_tenant(tenant, 3 * size, Some("lru")).unwrap();
            cache.limit_tenant(tenant, size, None).unwrap();
            cache.unlimit_tenant(tenant).unwrap();
            cache.limit_tenant(tenant, 2 * size, Some("arc")).unwrap();
        };
        join([
            spawn(&cache, &file, read),
            spawn(&cache, &file, write),
            spawn(&cache, &file, limit),
        ]);
        look(&cache, &file, 4).unwrap();
        assert!(cache.stats().resident <= 2);
        cache.check().unwrap();
    });
}

/// Three threads hold one block each at most, so one of four can always leave once it is written, by whichever thread.
#[test]
fn shuttle_room_that_another_thread_makes_is_found() {
    explore(4, 0, |cache, _, file| {
        let work = |first: u64| {
            move |cache: &BlockCache, file: &CachedFile| {
                for index in [first, first + 1] {
                    assert!(put(cache, file, index, 1), "there is room");
                }
            }
        };
        let others = [2, 4].map(|first| spawn(&cache, &file, work(first)));
        work(0)(&cache, &file);
        for other in others {
            other.join().unwrap();
        }
    });
}
