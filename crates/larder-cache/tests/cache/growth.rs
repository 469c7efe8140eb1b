//! Files whose size is known: the storage's file is never longer than the file, and never has a hole where something was
//! written.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use larder_cache::{BlockCache, CachedFile, FileId, Storage};
use larder_policy::rules;
use proptest::prelude::*;

use crate::common::Faulty;

const FILES: usize = 2;
/// Bytes that a file has at most.
const MOST: usize = 20 * 4096;

fn size() -> usize {
    larder::os::page_size()
}

/// Files of a storage, and what they are to be.
#[derive(Default)]
struct Files {
    stored: BTreeMap<FileId, Vec<u8>>,
    is: [Vec<u8>; FILES],
    wrong: Option<String>,
}

#[derive(Default)]
struct Watched {
    files: Mutex<Files>,
    fails: AtomicBool,
    /// Writes end in the middle.
    short: AtomicBool,
}

impl Storage for Watched {
    fn read(&self, file: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let files = self.files.lock().unwrap();
        let stored = files.stored.get(&file).map_or(&[][..], Vec::as_slice);
        let from = stored.get(offset as usize..).unwrap_or(&[]);
        let n = from.len().min(into.len());
        into[..n].copy_from_slice(&from[..n]);
        Ok(n)
    }

    fn write(&self, file: FileId, offset: u64, from: &[u8]) -> io::Result<usize> {
        let offset = offset as usize;
        if self.fails.load(Ordering::SeqCst) && offset / size() % 3 == 1 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let n = match self.short.load(Ordering::SeqCst) {
            true => from.len().div_ceil(2),
            false => from.len(),
        };
        let Files { stored, is, wrong } = &mut *self.files.lock().unwrap();
        let (stored, is) = (stored.entry(file).or_default(), &is[file.0 as usize]);
        if offset + n > stored.len() {
            let hole = is.get(stored.len()..offset).unwrap_or(&[]);
            if hole.iter().any(|&byte| byte != 0) {
                let had = stored.len();
                *wrong = Some(format!("{n} bytes at {offset} behind {had}: a hole"));
            }
            if offset + n > is.len() {
                *wrong = Some(format!("{n} bytes at {offset} of {}", is.len()));
            }
            stored.resize(offset + n, 0);
        }
        stored[offset..offset + n].copy_from_slice(&from[..n]);
        Ok(n)
    }

    fn sync(&self, _: FileId) -> io::Result<()> {
        Ok(())
    }
}

impl Watched {
    fn is(&self, file: usize) -> Vec<u8> {
        self.files.lock().unwrap().is[file].clone()
    }

    fn resize(&self, file: usize, bytes: usize) {
        let Files { stored, is, .. } = &mut *self.files.lock().unwrap();
        is[file].resize(bytes, 0);
        stored
            .entry(FileId(file as u64))
            .or_default()
            .truncate(bytes);
    }
}

#[derive(Debug, Clone)]
enum Step {
    Write {
        file: usize,
        at: usize,
        len: usize,
        byte: u8,
    },
    Append {
        file: usize,
        len: usize,
        byte: u8,
    },
    /// All at once, or nothing; without a place at the end.
    TryWrite {
        file: usize,
        at: Option<usize>,
        len: usize,
        byte: u8,
    },
    Read {
        file: usize,
        at: usize,
    },
    /// The cache's upkeep, while a block is held.
    Hold {
        file: usize,
        at: usize,
        byte: u8,
    },
    Maintain,
    Sync(usize),
    WriteBack(usize),
    WriteAll,
    Truncate(usize, usize),
    SetEnd(usize, usize),
    Discard(usize),
    Open(usize),
    Trim(usize),
    Fail(bool),
    Short(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let (file, at, byte) = (0..FILES, 0..MOST, 1_u8..);
    let len = prop_oneof![1_usize..100, 1_usize..3 * 4096];
    prop_oneof![
        4 => (file.clone(), at.clone(), len.clone(), byte.clone())
            .prop_map(|(file, at, len, byte)| Step::Write { file, at, len, byte }),
        6 => (file.clone(), len.clone(), byte.clone())
            .prop_map(|(file, len, byte)| Step::Append { file, len, byte }),
        4 => (file.clone(), proptest::option::of(at.clone()), len, byte.clone())
            .prop_map(|(file, at, len, byte)| Step::TryWrite { file, at, len, byte }),
        4 => (file.clone(), at.clone()).prop_map(|(file, at)| Step::Read { file, at }),
        2 => (file.clone(), at.clone(), byte)
            .prop_map(|(file, at, byte)| Step::Hold { file, at, byte }),
        2 => Just(Step::Maintain),
        1 => file.clone().prop_map(Step::Sync),
        2 => file.clone().prop_map(Step::WriteBack),
        1 => Just(Step::WriteAll),
        1 => (file.clone(), at.clone()).prop_map(|(file, at)| Step::Truncate(file, at)),
        1 => (file.clone(), at).prop_map(|(file, at)| Step::SetEnd(file, at)),
        1 => file.clone().prop_map(Step::Discard),
        1 => file.prop_map(Step::Open),
        1 => (1_usize..8).prop_map(Step::Trim),
        1 => any::<bool>().prop_map(Step::Fail),
        1 => any::<bool>().prop_map(Step::Short),
    ]
}

/// Writes so many bytes, block by block; fewer if the cache has no room.
fn write(
    storage: &Watched,
    cache: &BlockCache,
    file: &CachedFile,
    at: usize,
    len: usize,
    byte: u8,
) {
    let mut handle = cache.handle();
    let end = (at + len).min(MOST);
    let mut at = at;
    while at < end {
        let (index, from) = (at / size(), at % size());
        let to = (end - index * size()).min(size());
        let whole = from == 0 && to == size();
        let block = match whole {
            true => handle.overwrite_until(file, index as u64, end as u64),
            false => handle.write_until(file, index as u64, end as u64),
        };
        let Ok(mut block) = block else { return };
        block[from..to].fill(byte);
        let is = &mut storage.files.lock().unwrap().is[file.id().0 as usize];
        is.resize(is.len().max(index * size() + to), 0);
        is[at..index * size() + to].fill(byte);
        at = index * size() + to;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_file_grows_without_a_hole_and_never_beyond_its_end(
        steps in proptest::collection::vec(step(), 1..100),
        which in 0_usize..100,
        age in prop_oneof![Just(Duration::ZERO), Just(Duration::from_secs(3600))],
        share in prop_oneof![Just(0.1), Just(0.5), Just(1.0)],
        ahead in prop_oneof![Just(0_usize), Just(4)],
    ) {
        let storage = Arc::new(Watched::default());
        let all = rules();
        let cache = BlockCache::builder(Arc::clone(&storage))
            .bytes(8 * size())
            .policy(all[which % all.len()].name)
            .read_ahead(ahead)
            .dirty_age(age)
            .dirty_share(share)
            .pressure(|| None)
            .build()
            .unwrap();
        let open = |file: usize| {
            let stored = storage.files.lock().unwrap().stored.get(&FileId(file as u64)).map_or(0, Vec::len);
            cache.open_at(FileId(file as u64), stored as u64).unwrap()
        };
        let mut files = [0, 1].map(open);
        for step in steps {
            match step {
                Step::Write { file, at, len, byte } => write(&storage, &cache, &files[file], at, len, byte),
                Step::Append { file, len, byte } => {
                    let at = storage.is(file).len();
                    write(&storage, &cache, &files[file], at, len, byte);
                }
                Step::TryWrite { file, at, len, byte } => {
                    let at = at.unwrap_or_else(|| storage.is(file).len());
                    let bytes = vec![byte; len.min(MOST - at)];
                    if cache.handle().try_write_at(&files[file], at as u64, &bytes).unwrap() {
                        let is = &mut storage.files.lock().unwrap().is[file];
                        is.resize(is.len().max(at + bytes.len()), 0);
                        is[at..at + bytes.len()].copy_from_slice(&bytes);
                    }
                }
                Step::Read { file, at } => if let Ok(block) = cache.handle().read(&files[file], (at / size()) as u64) {
                    let is = storage.is(file);
                    let byte = is.get(at).copied().unwrap_or(0);
                    prop_assert_eq!(block[at % size()], byte, "byte {} of {}", at, is.len());
                },
                Step::Hold { file, at, byte } => {
                    let mut held = cache.handle();
                    let index = at / size();
                    if let Ok(mut block) = held.write_until(&files[file], index as u64, at as u64 + 1) {
                        {
                            let is = &mut storage.files.lock().unwrap().is[file];
                            is.resize(is.len().max(at + 1), 0);
                            is[at] = byte;
                        }
                        block[at % size()] = byte;
                        cache.maintain().unwrap();
                        for other in index + 1..index + 12 {
                            let _ = cache.handle().read(&files[1 - file], other as u64);
                        }
                    }
                }
                Step::Maintain => drop(cache.maintain().unwrap()),
                Step::Sync(file) => if files[file].sync().is_ok() {
                    prop_assert_eq!(files[file].stats().dirty, 0);
                },
                Step::WriteBack(file) => if files[file].write_back().is_ok() {
                    prop_assert_eq!(files[file].stats().dirty, 0);
                },
                Step::WriteAll => drop(cache.write_back()),
                Step::Truncate(file, at) => {
                    let at = at.min(storage.is(file).len());
                    // Without room for the last block it cannot be zeroed.
                    if files[file].truncate(at as u64).is_ok() {
                        storage.resize(file, at);
                    } else {
                        break;
                    }
                }
                Step::SetEnd(file, at) => {
                    files[file].set_end(at as u64);
                    storage.resize(file, at);
                }
                Step::Discard(file) => {
                    files[file].discard();
                    storage.resize(file, 0);
                }
                Step::Open(file) => files[file] = open(file),
                Step::Trim(blocks) => drop(cache.trim(blocks * size())),
                Step::Fail(fails) => Faulty::say(&storage.fails, fails),
                Step::Short(short) => Faulty::say(&storage.short, short),
            }
            let wrong = storage.files.lock().unwrap().wrong.take();
            prop_assert_eq!(wrong, None);
            for (file, opened) in files.iter().enumerate() {
                prop_assert_eq!(opened.end(), Some(storage.is(file).len() as u64));
            }
            prop_assert_eq!(cache.check(), Ok(()));
        }
        Faulty::say(&storage.fails, false);
        for (file, opened) in files.iter().enumerate() {
            let _ = opened.sync();
            opened.sync().unwrap();
            let mut stored = storage.files.lock().unwrap().stored.get(&FileId(file as u64)).cloned().unwrap_or_default();
            stored.resize(storage.is(file).len(), 0);
            prop_assert!(stored == storage.is(file), "file {file} is not as it was written");
        }
        prop_assert_eq!(storage.files.lock().unwrap().wrong.take(), None);
    }
}

#[test]
fn what_cannot_grow_keeps_what_comes_behind_and_a_write_back_says_so() {
    let storage = Arc::new(Watched::default());
    let cache = BlockCache::builder(Arc::clone(&storage)).build().unwrap();
    let file = cache.open_at(FileId(0), 0).unwrap();
    write(&storage, &cache, &file, 0, 6 * size(), 7);
    Faulty::say(&storage.fails, true);
    for _ in 0..2 {
        // The second block.
        assert!(file.write_back().is_err());
        assert_eq!((file.stats().written, file.stats().dirty), (1, 5));
        cache.maintain().unwrap();
    }
    Faulty::say(&storage.fails, false);
    assert!(file.write_back().is_ok());
    assert!(file.sync().is_err(), "it was not said here yet");
    assert!(file.sync().is_ok());
    let is = storage.is(0);
    assert!(storage.files.lock().unwrap().stored[&FileId(0)] == is);
}
