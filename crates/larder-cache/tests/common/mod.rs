//! What the tests share: a storage that fails, loses and waits on demand, and random numbers.

#![allow(dead_code, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use larder_cache::{BlockCache, FileId, MemoryStorage, Storage};

/// What was asked of the storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    Read(FileId, u64),
    Write(FileId, u64, Vec<u8>),
    Sync(FileId),
}

/// Where calls wait while it is closed; not for ever, so that a test that fails ends.
#[derive(Default)]
pub(crate) struct Gate {
    closed: Mutex<bool>,
    opened: Condvar,
    /// Calls that have come here.
    came: AtomicU64,
}

impl Gate {
    pub(crate) fn close(&self) {
        *self.closed.lock().unwrap() = true;
    }

    pub(crate) fn open(&self) {
        *self.closed.lock().unwrap() = false;
        self.opened.notify_all();
    }

    fn pass(&self) {
        self.came.fetch_add(1, Ordering::SeqCst);
        let closed = self.closed.lock().unwrap();
        let limit = Duration::from_secs(20);
        drop(
            self.opened
                .wait_timeout_while(closed, limit, |closed| *closed),
        );
    }

    pub(crate) fn came(&self) -> u64 {
        self.came.load(Ordering::SeqCst)
    }

    /// Returns when that many have come, or after some time.
    pub(crate) fn await_calls(&self, calls: u64) {
        for _ in 0..20_000 {
            if self.came() >= calls {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("{} calls came, not {calls}", self.came());
    }
}

/// What a test does in the middle of a call of the storage.
type Work = Box<dyn FnMut(FileId, u64) + Send>;

/// Work that is done, by the thread that calls, whenever a call comes here: as if another thread did it just then. It must not want
/// the blocks of the call. Its own calls do none.
#[derive(Default)]
pub(crate) struct Hook(Mutex<Option<Work>>);

impl Hook {
    pub(crate) fn set(&self, work: impl FnMut(FileId, u64) + Send + 'static) {
        *self.0.lock().unwrap() = Some(Box::new(work));
    }

    /// Ends it: it may own the cache, which owns the storage.
    pub(crate) fn clear(&self) {
        let work = self.0.lock().unwrap().take();
        drop(work);
    }

    fn pass(&self, file: FileId, offset: u64) {
        let work = self.0.lock().unwrap().take();
        if let Some(mut work) = work {
            work(file, offset);
            *self.0.lock().unwrap() = Some(work);
        }
    }
}

#[derive(Default)]
pub(crate) struct State {
    memory: MemoryStorage,
    pub(crate) calls: Mutex<Vec<Call>>,
    pub(crate) fail_reads: AtomicBool,
    pub(crate) fail_writes: AtomicBool,
    pub(crate) fail_syncs: AtomicBool,
    pub(crate) panic_on_read: AtomicBool,
    pub(crate) panic_on_write: AtomicBool,
    pub(crate) panic_on_sync: AtomicBool,
    /// So many syncs fail from now on.
    pub(crate) syncs_to_fail: AtomicU64,
    /// Writes to this file fail.
    pub(crate) bad_file: AtomicU64,
    /// Writes that were tried.
    pub(crate) tried: AtomicU64,
    /// How many calls there had been when a sync failed, and of which file.
    failed: Mutex<Vec<(usize, FileId)>>,
    /// Before a read, after a write, and before a sync.
    pub(crate) reading: Gate,
    pub(crate) written: Gate,
    pub(crate) syncing: Gate,
    pub(crate) on_read: Hook,
    pub(crate) on_write: Hook,
    /// Bytes that a call reads or writes at most; 0 is no limit.
    pub(crate) at_most: AtomicU64,
    /// Each second call is interrupted.
    pub(crate) interrupt: AtomicBool,
    interrupted: AtomicBool,
}

/// Cloning gives the same storage.
#[derive(Clone, Default)]
pub(crate) struct Faulty(pub(crate) Arc<State>);

impl Faulty {
    pub(crate) fn say(flag: &AtomicBool, what: bool) {
        flag.store(what, Ordering::SeqCst);
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.0.calls.lock().unwrap().clone()
    }

    pub(crate) fn reads(&self) -> usize {
        let calls = self.0.calls.lock().unwrap();
        calls
            .iter()
            .filter(|call| matches!(call, Call::Read(..)))
            .count()
    }

    /// The bytes that the storage has.
    pub(crate) fn stored(&self, file: FileId, offset: u64, len: usize) -> Vec<u8> {
        let mut all = vec![0; len];
        self.0.memory.read(file, offset, &mut all).unwrap();
        all
    }

    /// Reads wait until the gate is opened.
    pub(crate) fn close_gate(&self) {
        self.0.reading.close();
    }

    pub(crate) fn open_gate(&self) {
        self.0.reading.open();
    }

    /// The first byte of a block on a disk that forgets, when a sync fails, whatever was written since the last one,
    /// and reports that once only.
    pub(crate) fn safe(&self, file: FileId, offset: u64) -> Option<u8> {
        let (mut safe, mut pending) = (None, None);
        let failed = self.0.failed.lock().unwrap().clone();
        for (at, call) in self.calls().iter().enumerate() {
            if failed.contains(&(at, file)) {
                pending = None;
            }
            match call {
                Call::Write(to, from, bytes) if (*to, *from) == (file, offset) => {
                    pending = bytes.first().copied();
                }
                Call::Sync(of) if *of == file => safe = pending.or(safe),
                _ => {}
            }
        }
        safe
    }

    /// Before which calls syncs failed, and of which files.
    pub(crate) fn failed(&self) -> Vec<(usize, FileId)> {
        self.0.failed.lock().unwrap().clone()
    }

    fn note_failure(&self, file: FileId) {
        let calls = self.0.calls.lock().unwrap().len();
        self.0.failed.lock().unwrap().push((calls, file));
    }

    fn interrupted(&self) -> io::Result<()> {
        let before = self.0.interrupted.fetch_xor(true, Ordering::SeqCst);
        if self.0.interrupt.load(Ordering::SeqCst) && before {
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(())
    }

    fn part(&self, len: usize) -> usize {
        match self.0.at_most.load(Ordering::SeqCst) as usize {
            0 => len,
            most => len.min(most),
        }
    }
}

impl Storage for Faulty {
    fn read(&self, file: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.interrupted()?;
        self.0.calls.lock().unwrap().push(Call::Read(file, offset));
        self.0.reading.pass();
        self.0.on_read.pass(file, offset);
        assert!(!self.0.panic_on_read.load(Ordering::SeqCst), "as asked");
        if self.0.fail_reads.load(Ordering::SeqCst) {
            return Err(io::Error::other("the disk is gone"));
        }
        let n = self.part(into.len());
        self.0.memory.read(file, offset, &mut into[..n])
    }

    fn write(&self, file: FileId, offset: u64, from: &[u8]) -> io::Result<usize> {
        self.interrupted()?;
        self.0.tried.fetch_add(1, Ordering::SeqCst);
        assert!(!self.0.panic_on_write.load(Ordering::SeqCst), "as asked");
        let bad = self.0.bad_file.load(Ordering::SeqCst);
        if self.0.fail_writes.load(Ordering::SeqCst) || bad != 0 && file.0 == bad {
            return Err(io::Error::other("the disk is full"));
        }
        let n = self.part(from.len());
        let call = Call::Write(file, offset, from[..n].to_vec());
        self.0.calls.lock().unwrap().push(call);
        let written = self.0.memory.write(file, offset, &from[..n]);
        self.0.on_write.pass(file, offset);
        self.0.written.pass();
        written
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        self.0.syncing.pass();
        assert!(!self.0.panic_on_sync.load(Ordering::SeqCst), "as asked");
        let less = |left: u64| left.checked_sub(1);
        let order = Ordering::SeqCst;
        if self
            .0
            .syncs_to_fail
            .fetch_update(order, order, less)
            .is_ok()
        {
            self.note_failure(file);
            return Err(io::Error::other("the cable is loose"));
        }
        if self.0.fail_syncs.load(Ordering::SeqCst) {
            self.note_failure(file);
            return Err(io::Error::other("the cable is loose"));
        }
        self.0.calls.lock().unwrap().push(Call::Sync(file));
        Ok(())
    }
}

/// The first and the last byte of each write, by file and place.
pub(crate) type Disk = BTreeMap<(FileId, u64), u8>;

/// What a disk may hold on which only the first `n` calls were done, and of the last one only the first half of its bytes: with all
/// that was written and not synced, and without. `failed` says before which calls a sync of which file failed: then the disk has
/// forgotten what was written to the file since the last one.
pub(crate) fn after(calls: &[Call], failed: &[(usize, FileId)], n: usize) -> [Disk; 2] {
    let (mut safe, mut pending) = (Disk::new(), Disk::new());
    for (at, call) in calls[..n].iter().enumerate() {
        for (_, forgot) in failed.iter().filter(|(before, _)| *before == at) {
            pending.retain(|(file, _), _| file != forgot);
        }
        match call {
            Call::Write(file, offset, bytes) => {
                let torn = if at + 1 == n { 2 } else { 1 };
                let torn = bytes.len() / torn;
                for by in [0, bytes.len().saturating_sub(1)] {
                    if by < torn {
                        pending.insert((*file, offset + by as u64), bytes[by]);
                    }
                }
            }
            Call::Sync(of) => {
                safe.extend(pending.iter().filter(|((file, _), _)| file == of));
                pending.retain(|(file, _), _| file != of);
            }
            Call::Read(..) => {}
        }
    }
    let mut all = safe.clone();
    all.extend(pending);
    [all, safe]
}

/// A cache of so many blocks that reads nothing ahead, and in which what came first leaves first.
pub(crate) fn cache(storage: &Faulty, blocks: usize) -> BlockCache {
    let bytes = blocks * larder::os::page_size();
    let builder = BlockCache::builder(storage.clone()).bytes(bytes);
    builder.policy("fifo").read_ahead(0).build().unwrap()
}

/// Stops the threads, also when the test fails while they run: their scope would wait for ever.
pub(crate) struct Stop<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Numbers that look random and are the same in every run.
#[derive(Debug, Clone)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.next() % n
    }
}
