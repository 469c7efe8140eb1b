//! The source's files as the storage of the block cache, with counts, and with a slow disk before it where one is asked for.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use larder_cache::{FileId, Part, Storage};

use crate::gate::Waits;
use crate::options::DiskModel;

/// Parts that go into one call: IOV_MAX.
const MOST_PARTS: usize = 1024;

const SHARDS: usize = 16;

thread_local! {
    /// The thread has called the source for a name or for attributes.
    static ASKED: Cell<bool> = const { Cell::new(false) };
}

/// Whether `work` called the source for a name or for attributes.
pub(crate) fn asks<T>(work: impl FnOnce() -> T) -> (T, bool) {
    ASKED.set(false);
    let out = work();
    (out, ASKED.get())
}

/// The data of a file of the source.
#[derive(Debug)]
pub(crate) struct Backing {
    file: RwLock<Arc<File>>,
    /// It was opened for writing too.
    writable: AtomicBool,
    /// So many calls want a sync of its attributes as well.
    full: AtomicU32,
    /// Its times are not those of the last look any more, by a write of ours.
    touched: AtomicBool,
}

impl Backing {
    pub(crate) fn new(file: File, writable: bool) -> Self {
        Self {
            file: RwLock::new(Arc::new(file)),
            writable: AtomicBool::new(writable),
            full: AtomicU32::new(0),
            touched: AtomicBool::new(false),
        }
    }

    pub(crate) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.writable.load(Ordering::Acquire)
    }

    /// From now on by a descriptor that can write.
    pub(crate) fn make_writable(&self, file: File) {
        *self.file.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(file);
        self.writable.store(true, Ordering::Release);
    }

    pub(crate) fn touch(&self) {
        self.touched.store(true, Ordering::Release);
    }

    pub(crate) fn is_touched(&self) -> bool {
        self.touched.load(Ordering::Acquire)
    }

    /// The source's times are known again.
    pub(crate) fn seen(&self) {
        self.touched.store(false, Ordering::Release);
    }

    /// Within `work` a sync covers the attributes too.
    pub(crate) fn with_attributes<T>(&self, yes: bool, work: impl FnOnce() -> T) -> T {
        self.full.fetch_add(u32::from(yes), Ordering::AcqRel);
        let out = work();
        self.full.fetch_sub(u32::from(yes), Ordering::AcqRel);
        out
    }
}

/// Calls of the source for data.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    pub(crate) reads: AtomicU64,
    pub(crate) read_bytes: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) written_bytes: AtomicU64,
    pub(crate) syncs: AtomicU64,
}

/// A disk of which the head stands somewhere.
struct Disk {
    model: DiskModel,
    at: Mutex<(u64, u64)>,
}

/// The files of the source that are open, by their numbers in the cache.
pub(crate) struct Source {
    files: [RwLock<HashMap<u64, Arc<Backing>>>; SHARDS],
    disk: Option<Disk>,
    /// Waits for names and attributes.
    pub(crate) names: Waits,
    /// Waits for data.
    pub(crate) data: Waits,
    pub(crate) calls: Calls,
}

impl Source {
    pub(crate) fn new(model: Option<DiskModel>) -> Self {
        Self {
            files: std::array::from_fn(|_| RwLock::default()),
            disk: model.map(|model| Disk {
                model,
                at: Mutex::default(),
            }),
            names: Waits::default(),
            data: Waits::default(),
            calls: Calls::default(),
        }
    }

    /// A wait for the source's data.
    fn wait<T>(&self, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let out = work();
        self.data.add(begun.elapsed());
        out
    }

    fn shard(&self, number: u64) -> &RwLock<HashMap<u64, Arc<Backing>>> {
        &self.files[number as usize % SHARDS]
    }

    pub(crate) fn add(&self, number: u64, backing: Arc<Backing>) {
        let mut files = self
            .shard(number)
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        files.insert(number, backing);
    }

    pub(crate) fn remove(&self, number: u64) {
        let mut files = self
            .shard(number)
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let gone = files.remove(&number);
        drop(files);
        drop(gone);
    }

    fn get(&self, file: FileId) -> io::Result<Arc<Backing>> {
        let files = self
            .shard(file.0)
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let backing = files.get(&file.0).cloned();
        backing.ok_or_else(|| io::Error::from_raw_os_error(libc::ESTALE))
    }

    /// A call for names or attributes: takes as long as the model says.
    pub(crate) fn call(&self) {
        ASKED.set(true);
        if let Some(disk) = &self.disk
            && !disk.model.per_call.is_zero()
        {
            std::thread::sleep(disk.model.per_call);
        }
    }

    /// A transfer: it waits for those before it.
    fn transfer(&self, file: u64, offset: u64, bytes: usize) {
        let Some(Disk { model, at }) = &self.disk else {
            return;
        };
        self.call();
        let mut at = at.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = Instant::now();
        let seek = if *at == (file, offset) {
            Duration::ZERO
        } else {
            model.seek
        };
        let nanoseconds = (bytes as u64 * 1_000_000_000).checked_div(model.bytes_per_second);
        let time = seek + Duration::from_nanos(nanoseconds.unwrap_or(0));
        if !time.is_zero() {
            std::thread::sleep(time.saturating_sub(begun.elapsed()));
        }
        *at = (file, offset + bytes as u64);
    }

    fn did_read(&self, file: FileId, offset: u64, bytes: usize) {
        self.calls.reads.fetch_add(1, Ordering::Relaxed);
        self.calls
            .read_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
        self.transfer(file.0, offset, bytes);
    }

    fn did_write(&self, file: FileId, offset: u64, bytes: usize) {
        self.calls.writes.fetch_add(1, Ordering::Relaxed);
        self.calls
            .written_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
        self.transfer(file.0, offset, bytes);
    }

    /// Does parts that follow each other with one `call`. What it does not do whole is left to be tried part by part, so that each
    /// part has its own error. If it goes `in_order`, nothing is done behind what was not done whole.
    fn many<B: Deref<Target = [u8]>>(
        mut parts: &mut [Part<B>],
        in_order: bool,
        call: impl Fn(FileId, u64, &mut [Part<B>]) -> io::Result<usize>,
    ) {
        while let Some(first) = parts.first() {
            let (file, offset) = (first.file, first.offset);
            let (run, others) = parts.split_at_mut(run(parts));
            parts = others;
            let wanted: usize = run.iter().map(|part| part.bytes.len()).sum();
            let mut have = call(file, offset, run).unwrap_or(0);
            let whole = have == wanted;
            for part in run {
                let mine = have.min(part.bytes.len());
                have -= mine;
                part.done = (mine > 0).then_some(Ok(mine));
            }
            if in_order && !whole {
                return;
            }
        }
    }

    fn write_parts(&self, file: FileId, offset: u64, run: &mut [Part<&[u8]>]) -> io::Result<usize> {
        let backing = self.get(file)?;
        backing.touch();
        let from: Vec<_> = run.iter().map(|part| IoSlice::new(part.bytes)).collect();
        self.wait(|| {
            let done = rustix::io::pwritev(&*backing.file(), &from, offset)?;
            self.did_write(file, offset, done);
            Ok(done)
        })
    }
}

/// As many parts, from the first on, as follow each other in one file and go into one call; at least one, if there is one.
fn run<B: Deref<Target = [u8]>>(parts: &[Part<B>]) -> usize {
    let mut before = None;
    let follows = |part: &&Part<B>| {
        let end = before.replace((part.file, part.offset + part.bytes.len() as u64));
        end.is_none_or(|end| end == (part.file, part.offset))
    };
    parts.iter().take(MOST_PARTS).take_while(follows).count()
}

impl Storage for Source {
    fn read(&self, file: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let backing = self.get(file)?;
        self.wait(|| {
            let done = backing.file().read_at(into, offset)?;
            self.did_read(file, offset, done);
            Ok(done)
        })
    }

    fn write(&self, file: FileId, offset: u64, from: &[u8]) -> io::Result<usize> {
        let backing = self.get(file)?;
        backing.touch();
        self.wait(|| {
            let done = backing.file().write_at(from, offset)?;
            self.did_write(file, offset, done);
            Ok(done)
        })
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        self.calls.syncs.fetch_add(1, Ordering::Relaxed);
        let backing = self.get(file)?;
        let file = backing.file();
        self.wait(|| {
            self.call();
            match backing.full.load(Ordering::Acquire) {
                0 => file.sync_data(),
                _ => file.sync_all(),
            }
        })
    }

    fn read_many(&self, parts: &mut [Part<&mut [u8]>]) {
        Self::many(parts, false, |file, offset, run| {
            let backing = self.get(file)?;
            let mut into: Vec<_> = run
                .iter_mut()
                .map(|part| IoSliceMut::new(part.bytes))
                .collect();
            self.wait(|| {
                let done = rustix::io::preadv(&*backing.file(), &mut into, offset)?;
                self.did_read(file, offset, done);
                Ok(done)
            })
        });
    }

    fn write_many(&self, parts: &mut [Part<&[u8]>]) {
        Self::many(parts, false, |file, offset, run| {
            self.write_parts(file, offset, run)
        });
    }

    fn write_in_order(&self, parts: &mut [Part<&[u8]>]) {
        Self::many(parts, true, |file, offset, run| {
            self.write_parts(file, offset, run)
        });
    }
}
