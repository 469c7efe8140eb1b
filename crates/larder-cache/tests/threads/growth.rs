//! Files of a known size, which grow and are cut while others write them, invalidate them and have them written back: what the
//! storage has is always a file that was, from its beginning on, without a hole.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Run, all_runs, steps};
use crate::common::Rng;
use larder_cache::{BlockCache, CacheError, CachedFile, FileId, Storage};

const FILES: usize = 2;
const THREADS: usize = 6;
/// Blocks that a file has at most.
const MOST: u64 = 100;

fn size() -> u64 {
    larder::os::page_size() as u64
}

/// What every file has at a place, whichever thread writes it.
fn pattern(at: u64) -> u8 {
    (at % 251) as u8 + 1
}

fn is_pattern(at: u64, bytes: &[u8]) -> bool {
    bytes
        .iter()
        .zip(at..)
        .all(|(&byte, at)| byte == pattern(at))
}

#[derive(Default)]
struct Stored {
    bytes: Vec<u8>,
    /// The file is no longer than this.
    most: u64,
}

struct Disk {
    files: [Mutex<Stored>; FILES],
    rng: Mutex<Rng>,
    fails: AtomicBool,
    wrong: Mutex<Option<String>>,
}

impl Storage for Disk {
    fn read(&self, file: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let stored = self.files[file.0 as usize].lock().unwrap();
        let from = stored.bytes.get(offset as usize..).unwrap_or(&[]);
        let n = from.len().min(into.len());
        into[..n].copy_from_slice(&from[..n]);
        Ok(n)
    }

    fn write(&self, file: FileId, offset: u64, from: &[u8]) -> io::Result<usize> {
        let how = self.rng.lock().unwrap().below(20);
        let fails = self.fails.load(SeqCst);
        if how == 0 && fails {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let n = if how == 1 && fails {
            from.len().div_ceil(3)
        } else {
            from.len()
        };
        std::thread::yield_now();
        let mut stored = self.files[file.0 as usize].lock().unwrap();
        let (had, end) = (stored.bytes.len() as u64, offset + n as u64);
        if offset > had || end > stored.most || !is_pattern(offset, &from[..n]) {
            let bad = from
                .iter()
                .zip(offset..)
                .position(|(&byte, at)| byte != pattern(at));
            let what = format!(
                "{n} bytes at {offset}, where {had} of {} are; not as it should be from {bad:?} on",
                stored.most
            );
            self.wrong.lock().unwrap().get_or_insert(what);
        }
        stored.bytes.resize(had.max(end) as usize, 0);
        stored.bytes[offset as usize..end as usize].copy_from_slice(&from[..n]);
        Ok(n)
    }

    fn sync(&self, _: FileId) -> io::Result<()> {
        Ok(())
    }
}

struct World {
    rule: &'static str,
    disk: Arc<Disk>,
    cache: BlockCache,
    files: Vec<CachedFile>,
    /// How long each file is; held by the thread that changes that.
    lens: [Mutex<u64>; FILES],
    taken: AtomicU64,
}

impl World {
    fn new(rule: &'static str, frames: usize, seed: u64) -> Self {
        let disk = Arc::new(Disk {
            files: Default::default(),
            rng: Mutex::new(Rng(seed)),
            fails: AtomicBool::new(true),
            wrong: Mutex::new(None),
        });
        let rng = &mut Rng(seed);
        let cache = BlockCache::builder(Arc::clone(&disk))
            .bytes(frames * size() as usize)
            .policy(rule)
            .read_ahead(rng.below(3) * 2)
            .dirty_age(Duration::from_millis([0, 20][rng.below(2)]))
            .dirty_share([0.1, 0.5, 1.0][rng.below(3)])
            .build()
            .unwrap();
        let files = (0..FILES as u64).map(|id| cache.open_at(FileId(id), 0).unwrap());
        Self {
            rule,
            disk,
            files: files.collect(),
            cache,
            lens: Default::default(),
            taken: AtomicU64::new(0),
        }
    }

    /// What a block has is the pattern, and zeroes behind the end.
    #[track_caller]
    fn look(&self, index: u64, bytes: &[u8]) {
        let some = bytes.iter().position(|&byte| byte == 0);
        let (some, none) = bytes.split_at(some.unwrap_or(bytes.len()));
        let right = is_pattern(index * size(), some) && none.iter().all(|&byte| byte == 0);
        assert!(
            right,
            "{}: block {index} is not as it was written",
            self.rule
        );
    }

    /// All `at_once` if that needs no wait, or block by block.
    fn append(&self, file: usize, bytes: u64, at_once: bool) {
        let mut len = self.lens[file].lock().unwrap();
        let end = (*len + bytes).min(MOST * size());
        let mut handle = self.cache.handle();
        if at_once {
            let all: Vec<u8> = (*len..end).map(pattern).collect();
            let most = |most| {
                let mut stored = self.disk.files[file].lock().unwrap();
                core::mem::replace(&mut stored.most, most)
            };
            let had = most(end);
            let written = handle.try_write_at(&self.files[file], *len, &all);
            if written.unwrap() {
                *len = end;
                return;
            }
            most(had);
        }
        while *len < end {
            let (index, from) = (*len / size(), (*len % size()) as usize);
            let to = (end - index * size()).min(size()) as usize;
            {
                let mut stored = self.disk.files[file].lock().unwrap();
                stored.most = stored.most.max(index * size() + to as u64);
            }
            let block = match (from, to as u64 == size()) {
                (0, true) => handle.overwrite_until(&self.files[file], index, end),
                _ => handle.write_until(&self.files[file], index, end),
            };
            let Ok(mut block) = block else { return };
            for (byte, at) in block[from..to].iter_mut().zip(*len..) {
                *byte = pattern(at);
            }
            *len = index * size() + to as u64;
        }
    }

    /// The file becomes shorter, here and on the disk.
    fn cut(&self, file: usize, by: u64) {
        let mut len = self.lens[file].lock().unwrap();
        let to = len.saturating_sub(by);
        let on = &self.files[file];
        match on.truncate(to) {
            Ok(()) => {}
            Err(CacheError::Held { .. }) => return,
            // The last block could not be read to be zeroed behind the end; the end it is.
            Err(_) => on.set_end(to),
        }
        *len = to;
        let mut stored = self.disk.files[file].lock().unwrap();
        stored.bytes.truncate(to as usize);
        stored.most = to;
    }

    fn step(&self, rng: &mut Rng) {
        self.taken.fetch_add(1, SeqCst);
        let file = rng.below(FILES);
        let on = &self.files[file];
        let index = rng.below(MOST as usize) as u64;
        let mut handle = self.cache.handle();
        match rng.below(100) {
            0..25 => {
                let bytes = rng.below(3 * size() as usize) as u64 + 1;
                self.append(file, bytes, rng.below(2) == 0);
            }
            25..40 => {
                // As much as the file has of it, and it has it already.
                if let Ok(mut block) = handle.write_until(on, index, 0) {
                    assert!(
                        is_pattern(index * size(), &block),
                        "{}: block {index}",
                        self.rule
                    );
                    for (byte, at) in block.iter_mut().zip(index * size()..) {
                        *byte = pattern(at);
                    }
                }
            }
            40..55 => {
                let mut blocks = Vec::new();
                let to = index + rng.below(10) as u64;
                if handle.read_many(on, index..to, &mut blocks).is_ok() {
                    for (block, index) in blocks.iter().zip(index..) {
                        self.look(index, block);
                    }
                }
            }
            55..65 => {
                if let Ok(block) = handle.read(on, index) {
                    self.look(index, &block);
                }
            }
            65..71 => drop(on.write_back()),
            71..75 => drop(on.sync()),
            75..80 => drop(self.cache.maintain()),
            80..83 => drop(self.cache.write_back()),
            83..88 => self.cut(file, rng.below(2 * size() as usize) as u64),
            88..90 => self.cut(file, u64::MAX),
            90..94 => {
                // What the disk has whole may be dirty again, and is no other then.
                let _len = self.lens[file].lock().unwrap();
                let stored = self.disk.files[file].lock().unwrap().bytes.len() as u64;
                let _ = on.invalidate(0..stored / size());
            }
            94..97 => {
                // A thread that holds a block while others want to write those behind it.
                if let Ok(block) = handle.write_until(on, index, 0) {
                    std::thread::yield_now();
                    drop(self.cache.maintain());
                    drop(block);
                }
            }
            _ => drop(self.cache.trim(size() as usize * rng.below(16))),
        }
        let wrong = self.disk.wrong.lock().unwrap().clone();
        assert_eq!(wrong, None, "{}", self.rule);
    }

    fn end(&self) {
        self.disk.fails.store(false, SeqCst);
        for (file, on) in self.files.iter().enumerate() {
            let _ = on.sync();
            on.sync().unwrap();
            let len = *self.lens[file].lock().unwrap();
            assert_eq!(on.end(), Some(len), "{}", self.rule);
            let stored = self.disk.files[file].lock().unwrap();
            assert_eq!(stored.bytes.len() as u64, len, "{}", self.rule);
            assert!(is_pattern(0, &stored.bytes), "{}", self.rule);
        }
        self.cache.check().unwrap();
    }
}

#[test]
fn a_file_that_grows_has_no_hole_and_no_tail_below() {
    let runs = all_runs();
    let each = steps() / runs.len() as u64;
    for Run { rule, frames, seed } in runs {
        let world = World::new(rule, frames, seed);
        std::thread::scope(|threads| {
            for thread in 0..THREADS {
                let world = &world;
                threads.spawn(move || {
                    let mut rng = Rng(seed * 100 + thread as u64);
                    while world.taken.load(SeqCst) < each {
                        world.step(&mut rng);
                    }
                });
            }
        });
        world.end();
    }
}
