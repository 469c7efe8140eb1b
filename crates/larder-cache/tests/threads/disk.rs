//! A disk with a volatile and a durable image, that fails, takes its time, tears writes, and forgets what it could not sync.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use larder_cache::{FileId, Storage};

use crate::common::Rng;

/// Files of a run, and blocks of each.
pub(crate) const FILES: usize = 2;
pub(crate) const BLOCKS: usize = 96;

/// A word of each block says which one it is and which version: a torn block has different words.
pub(crate) fn word(file: usize, block: usize, version: u64) -> u64 {
    match version {
        0 => 0,
        _ => ((file * BLOCKS + block + 1) as u64) << 40 | version,
    }
}

/// The version that a word is of, if it is one of this block.
pub(crate) fn version(file: usize, block: usize, found: u64) -> Option<u64> {
    let version = found & ((1 << 40) - 1);
    (word(file, block, version) == found).then_some(version)
}

/// A block as its words change along it: where each run of equal words begins, from 0 on.
pub(crate) fn runs(bytes: &[u8]) -> Vec<(usize, u64)> {
    let mut runs: Vec<(usize, u64)> = Vec::new();
    for (at, chunk) in bytes.chunks_exact(8).enumerate() {
        let word = chunk
            .iter()
            .rev()
            .fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        if runs.last().is_none_or(|&(_, last)| last != word) {
            runs.push((at, word));
        }
    }
    runs
}

pub(crate) fn fill(bytes: &mut [u8], word: u64) {
    for chunk in bytes.chunks_exact_mut(8) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
}

type Block = Vec<(usize, u64)>;

/// What a file has, as the programs of the machine see it, and as it would be after a power cut.
#[derive(Default)]
struct Image {
    volatile: BTreeMap<usize, Block>,
    durable: BTreeMap<usize, Block>,
    /// Written since the last sync, and how often anything was written before: the next sync makes them durable. What a failed sync
    /// took is in here no more, although some of it can still be read.
    unsynced: BTreeMap<usize, u64>,
    /// What failed syncs took, and was not written again.
    taken: BTreeSet<usize>,
    writes: u64,
    /// How often the file was erased, and the latest version of each block by then. None of these comes again.
    erased: u64,
    gone: Vec<u64>,
    /// The first that came nevertheless.
    returned: Option<usize>,
}

impl Image {
    /// A sync fails.
    fn take(&mut self, reverts: bool) {
        for (block, _) in std::mem::take(&mut self.unsynced) {
            self.taken.insert(block);
            if reverts || block % 3 == 0 {
                match self.durable.get(&block).cloned() {
                    Some(was) => self.volatile.insert(block, was),
                    None => self.volatile.remove(&block),
                };
            }
        }
    }
}

/// In how many of a thousand calls it happens.
#[derive(Clone, Copy, Default)]
pub(crate) struct Rates {
    pub(crate) reads_fail: usize,
    pub(crate) writes_fail: usize,
    pub(crate) writes_are_short: usize,
    pub(crate) syncs_fail: usize,
    /// A call gives way to other threads in its middle.
    pub(crate) delays: usize,
}

struct State {
    images: Mutex<[Image; FILES]>,
    rates: Mutex<(Rates, Rng)>,
}

/// Cloning gives the same disk.
#[derive(Clone)]
pub(crate) struct Disk(Arc<State>);

fn failed(what: &str) -> io::Error {
    io::Error::other(format!("the disk failed to {what}"))
}

impl Disk {
    pub(crate) fn new(rates: Rates, seed: u64) -> Self {
        Self(Arc::new(State {
            images: Mutex::default(),
            rates: Mutex::new((rates, Rng(seed))),
        }))
    }

    /// Returns the former ones.
    pub(crate) fn set_rates(&self, rates: Rates) -> Rates {
        std::mem::replace(&mut self.0.rates.lock().unwrap().0, rates)
    }

    fn happens(&self, rate: fn(&Rates) -> usize) -> bool {
        let (rates, rng) = &mut *self.0.rates.lock().unwrap();
        rng.below(1000) < rate(rates)
    }

    fn some(&self, below: usize) -> usize {
        self.0.rates.lock().unwrap().1.below(below)
    }

    fn delay(&self) {
        if self.happens(|rates| rates.delays) {
            std::thread::yield_now();
        }
    }

    fn image<T>(&self, file: FileId, work: impl FnOnce(&mut Image) -> T) -> T {
        let mut images = self.0.images.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut images[file.0 as usize])
    }

    /// What would be there after a power cut.
    pub(crate) fn durable(&self, file: usize, block: usize) -> Block {
        let of = |image: &mut Image| image.durable.get(&block).cloned();
        self.image(FileId(file as u64), of)
            .unwrap_or_else(|| vec![(0, 0)])
    }

    /// A failed sync took what was written to the block last.
    pub(crate) fn is_taken(&self, file: usize, block: usize) -> bool {
        self.image(FileId(file as u64), |image| image.taken.contains(&block))
    }

    /// What can be read.
    pub(crate) fn readable(&self, file: usize, block: usize) -> Block {
        let of = |image: &mut Image| image.volatile.get(&block).cloned();
        self.image(FileId(file as u64), of)
            .unwrap_or_else(|| vec![(0, 0)])
    }

    /// What would be there if all that was written and not taken were synced.
    pub(crate) fn would_be(&self, file: usize, block: usize) -> Block {
        let of = |image: &mut Image| {
            let lasting = match image.unsynced.contains_key(&block) {
                true => &image.volatile,
                false => &image.durable,
            };
            lasting.get(&block).cloned()
        };
        self.image(FileId(file as u64), of)
            .unwrap_or_else(|| vec![(0, 0)])
    }

    /// The file has nothing any more, and no block is written again with what is `gone`: its latest version of each.
    pub(crate) fn erase(&self, file: usize, gone: Vec<u64>) {
        self.image(FileId(file as u64), |image| {
            *image = Image {
                erased: image.erased + 1,
                returned: image.returned,
                gone,
                ..Image::default()
            };
        });
    }

    /// A block that was written with what was gone, if there is one.
    pub(crate) fn returned(&self, file: usize) -> Option<usize> {
        self.image(FileId(file as u64), |image| image.returned)
    }
}

impl Storage for Disk {
    fn read(&self, file: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let size = larder::os::page_size();
        assert_eq!((offset as usize % size, into.len() % 8), (0, 0));
        self.delay();
        if self.happens(|rates| rates.reads_fail) {
            return Err(failed("read"));
        }
        let block = self.image(file, |image| {
            image.volatile.get(&(offset as usize / size)).cloned()
        });
        into.fill(0);
        let words = into.len() / 8;
        let runs = block.unwrap_or_default();
        for (at, &(from, word)) in runs.iter().enumerate() {
            let to = runs.get(at + 1).map_or(words, |&(next, _)| next);
            // No more than up to the end of the file is read.
            fill(&mut into[from.min(words) * 8..to.min(words) * 8], word);
        }
        self.delay();
        Ok(into.len())
    }

    fn write(&self, file: FileId, offset: u64, from: &[u8]) -> io::Result<usize> {
        let size = larder::os::page_size();
        let (block, skip) = (offset as usize / size, offset as usize % size / 8);
        let words = from.len() / 8;
        let fails = self.happens(|rates| rates.writes_fail);
        // What fails may have written a part.
        let part = match fails || self.happens(|rates| rates.writes_are_short) {
            true => self.some(words + 1),
            false => words,
        };
        self.delay();
        self.image(file, |image| {
            let had = image
                .volatile
                .get(&block)
                .cloned()
                .unwrap_or_else(|| vec![(0, 0)]);
            let new = runs(&from[..part * 8]);
            let gone = image.gone.get(block).copied().unwrap_or(0);
            let old = |&(_, word)| {
                version(file.0 as usize, block, word).is_some_and(|it| (1..=gone).contains(&it))
            };
            if new.iter().any(old) {
                image.returned.get_or_insert(block);
            }
            // The old words up to `skip`, the new ones, and the old ones behind them.
            let before = had.iter().copied().filter(|&(at, _)| at < skip);
            let now = new.iter().map(|&(at, word)| (skip + at, word));
            let end = skip + part;
            let behind = had
                .iter()
                .rev()
                .find(|&&(at, _)| at <= end)
                .map(|&(_, word)| (end, word));
            let behind = behind.filter(|_| end < size / 8);
            let after = had.iter().copied().filter(|&(at, _)| at > end);
            let mut all: Block = before.chain(now).chain(behind).chain(after).collect();
            all.dedup_by_key(|&mut (_, word)| word);
            image.writes += 1;
            image.volatile.insert(block, all);
            image.unsynced.insert(block, image.writes);
            // The rest of a short write follows. A sync that fails in between takes the block again, and the rest brings back no whole.
            if !fails && skip == 0 {
                image.taken.remove(&block);
            }
        });
        self.delay();
        match fails {
            true => Err(failed("write")),
            false => Ok(part * 8),
        }
    }

    /// What was written before it began is durable when it succeeds. When it fails, all that was written until it ends is taken: some
    /// can still be read, some is at once what it was before, none is ever made durable by a later sync.
    fn sync(&self, file: FileId) -> io::Result<()> {
        let (erased, going) = self.image(file, |image| {
            let all = image.unsynced.iter();
            let block = |(&block, &at)| (block, at, image.volatile[&block].clone());
            (image.erased, all.map(block).collect::<Vec<_>>())
        });
        if self.happens(|rates| rates.syncs_fail) {
            let reverts = self.some(2) == 0;
            self.image(file, |image| image.take(reverts));
            // What is read now is read while the sync runs, and may be what was there before.
            std::thread::sleep(Duration::from_micros(200));
            self.image(file, |image| image.take(reverts));
            return Err(failed("sync"));
        }
        // Long enough for other threads to write what this sync does not cover.
        if self.happens(|rates| 3 * rates.delays) {
            std::thread::sleep(Duration::from_micros(200));
        }
        self.image(file, |image| {
            // Of a file that was erased meanwhile nothing is left.
            let going = going.into_iter().filter(|_| image.erased == erased);
            for (block, at, words) in going {
                image.durable.insert(block, words);
                if image.unsynced.get(&block) == Some(&at) {
                    image.unsynced.remove(&block);
                }
            }
        });
        Ok(())
    }
}
