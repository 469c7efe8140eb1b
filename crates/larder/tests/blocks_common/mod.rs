//! A storage that fails, loses and waits as it is told.

#![allow(dead_code, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use larder::cache::{FileId, MemoryStorage, Storage};

/// What was asked of the storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    Read(FileId, u64),
    Write(FileId, u64, Vec<u8>),
    Sync(FileId),
}

#[derive(Default)]
pub(crate) struct State {
    memory: MemoryStorage,
    pub(crate) calls: Mutex<Vec<Call>>,
    pub(crate) fail_reads: AtomicBool,
    pub(crate) fail_writes: AtomicBool,
    pub(crate) fail_syncs: AtomicBool,
    pub(crate) panic_on_read: AtomicBool,
    /// Bytes that a call reads or writes at most; 0 is no limit.
    pub(crate) at_most: AtomicU64,
    /// Each second call is interrupted.
    pub(crate) interrupt: AtomicBool,
    interrupted: AtomicBool,
    gate: Mutex<bool>,
    opened: Condvar,
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
        *self.0.gate.lock().unwrap() = true;
    }

    pub(crate) fn open_gate(&self) {
        *self.0.gate.lock().unwrap() = false;
        self.0.opened.notify_all();
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
        let closed = self.0.gate.lock().unwrap();
        drop(self.0.opened.wait_while(closed, |closed| *closed).unwrap());
        assert!(!self.0.panic_on_read.load(Ordering::SeqCst), "as told");
        if self.0.fail_reads.load(Ordering::SeqCst) {
            return Err(io::Error::other("the disk is gone"));
        }
        let n = self.part(into.len());
        self.0.memory.read(file, offset, &mut into[..n])
    }

    fn write(&self, file: FileId, offset: u64, from: &[u8]) -> io::Result<usize> {
        self.interrupted()?;
        if self.0.fail_writes.load(Ordering::SeqCst) {
            return Err(io::Error::other("the disk is full"));
        }
        let n = self.part(from.len());
        let call = Call::Write(file, offset, from[..n].to_vec());
        self.0.calls.lock().unwrap().push(call);
        self.0.memory.write(file, offset, &from[..n])
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        if self.0.fail_syncs.load(Ordering::SeqCst) {
            return Err(io::Error::other("the cable is loose"));
        }
        self.0.calls.lock().unwrap().push(Call::Sync(file));
        Ok(())
    }
}

/// What a disk holds on which only the first `n` calls were done, and of the last one only the first half of its bytes.
pub(crate) fn after(calls: &[Call], n: usize) -> BTreeMap<(FileId, u64), u8> {
    let mut disk = BTreeMap::new();
    for (at, call) in calls[..n].iter().enumerate() {
        if let Call::Write(file, offset, bytes) = call {
            let torn = if at + 1 == n {
                bytes.len() / 2
            } else {
                bytes.len()
            };
            for (by, &byte) in bytes[..torn].iter().enumerate() {
                disk.insert((*file, offset + by as u64), byte);
            }
        }
    }
    disk
}
