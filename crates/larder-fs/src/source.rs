//! The source's files as the storage of the block cache, with counts, and with a slow disk before it where one is asked for.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::ops::{Deref, Range};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
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
    /// The thread must not wait, and so may not read.
    static IN_PLACE: Cell<bool> = const { Cell::new(false) };
    /// A read was refused for that.
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Whether `work` called the source for a name or for attributes.
pub(crate) fn asks<T>(work: impl FnOnce() -> T) -> (T, bool) {
    ASKED.set(false);
    let out = work();
    (out, ASKED.get())
}

/// Does what must not wait for the source's data. Also says whether it would have read, and failed for that.
pub(crate) fn in_place<T>(work: impl FnOnce() -> T) -> (T, bool) {
    IN_PLACE.set(true);
    REFUSED.set(false);
    let out = work();
    IN_PLACE.set(false);
    (out, REFUSED.get())
}

/// What is done [in place](in_place) would have to wait.
pub(crate) fn refuse() {
    REFUSED.set(true);
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
    /// Bytes that are being read or written by the source, or by a thread that may wait for it.
    moving: Mutex<Vec<Range<u64>>>,
}

/// Bytes of a file that move, until this is dropped.
pub(crate) struct Moving<'b> {
    backing: &'b Backing,
    bytes: Range<u64>,
}

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        let mut moving = self.backing.all_moving();
        if let Some(at) = moving.iter().position(|bytes| *bytes == self.bytes) {
            moving.swap_remove(at);
        }
    }
}

impl Backing {
    pub(crate) fn new(file: File, writable: bool) -> Self {
        Self {
            file: RwLock::new(Arc::new(file)),
            writable: AtomicBool::new(writable),
            full: AtomicU32::new(0),
            touched: AtomicBool::new(false),
            moving: Mutex::default(),
        }
    }

    fn all_moving(&self) -> MutexGuard<'_, Vec<Range<u64>>> {
        self.moving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn moving(&self, bytes: Range<u64>) -> Moving<'_> {
        self.all_moving().push(bytes.clone());
        let backing = self;
        Moving { backing, bytes }
    }

    /// Whether some of these bytes move.
    pub(crate) fn are_moving(&self, bytes: &Range<u64>) -> bool {
        let overlaps = |other: &Range<u64>| other.start < bytes.end && bytes.start < other.end;
        self.all_moving().iter().any(overlaps)
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
    /// Reads that were refused: their misses count twice.
    pub(crate) refused: AtomicU64,
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
            refused: AtomicU64::new(0),
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

    /// # Errors
    /// The thread must not wait.
    fn may_read(&self) -> io::Result<()> {
        if !IN_PLACE.get() {
            return Ok(());
        }
        if !REFUSED.replace(true) {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        Err(io::ErrorKind::WouldBlock.into())
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
        let _moving = backing.moving(bytes(offset, run));
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

/// The bytes of parts that follow each other.
fn bytes<B: Deref<Target = [u8]>>(offset: u64, run: &[Part<B>]) -> Range<u64> {
    let len: usize = run.iter().map(|part| part.bytes.len()).sum();
    offset..offset + len as u64
}

impl Storage for Source {
    fn read(&self, file: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.may_read()?;
        let backing = self.get(file)?;
        let _moving = backing.moving(offset..offset + into.len() as u64);
        self.wait(|| {
            let done = backing.file().read_at(into, offset)?;
            self.did_read(file, offset, done);
            Ok(done)
        })
    }

    fn write(&self, file: FileId, offset: u64, from: &[u8]) -> io::Result<usize> {
        let backing = self.get(file)?;
        backing.touch();
        let _moving = backing.moving(offset..offset + from.len() as u64);
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
            self.may_read()?;
            let backing = self.get(file)?;
            let _moving = backing.moving(bytes(offset, run));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_move_until_each_of_their_calls_ends() {
        let backing = Backing::new(tempfile::tempfile().unwrap(), true);
        let (first, second) = (backing.moving(0..10), backing.moving(0..10));
        assert!(backing.are_moving(&(9..20)) && !backing.are_moving(&(10..20)));
        drop(first);
        assert!(backing.are_moving(&(0..1)));
        drop(second);
        assert!(!backing.are_moving(&(0..100)));
    }

    #[test]
    fn a_thread_that_must_not_wait_reads_nothing() {
        let source = Source::new(None);
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(b"text", 0).unwrap();
        source.add(1, Arc::new(Backing::new(file, true)));
        let mut text = [0; 4];
        let (failed, refused) = in_place(|| source.read(FileId(1), 0, &mut text).is_err());
        assert!(failed && refused);
        assert_eq!(in_place(|| 5), (5, false));
        assert_eq!(source.read(FileId(1), 0, &mut text).unwrap(), 4);
        assert_eq!(
            (&text, source.calls.reads.load(Ordering::Relaxed)),
            (b"text", 1)
        );
    }
}
