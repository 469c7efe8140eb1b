//! Reads that wait for the source while the threads that took them answer others.
//!
//! Whichever thread takes a read out of here answers it, so it is answered once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that a read takes while it waits, about: its place here and in the cache's queue, and what it needs for its answer.
pub(crate) const WAITING_BYTES: usize = 512;

/// By the kernel's numbers of them.
pub(crate) struct Waiting {
    reads: Mutex<HashMap<u64, ()>>,
    most: usize,
}

impl Waiting {
    pub(crate) fn new(most: usize) -> Self {
        let reads = Mutex::default();
        Self { reads, most }
    }

    fn reads(&self) -> MutexGuard<'_, HashMap<u64, ()>> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False if too many wait already.
    pub(crate) fn add(&self, unique: u64) -> bool {
        let mut reads = self.reads();
        let room = reads.len() < self.most;
        if room {
            reads.insert(unique, ());
        }
        room
    }

    /// False if another thread has answered it.
    pub(crate) fn take(&self, unique: u64) -> bool {
        self.reads().remove(&unique).is_some()
    }
}
