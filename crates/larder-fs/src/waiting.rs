//! Reads that wait for the source while the threads that took them answer others. A program that is killed waits no longer.
//!
//! Whichever thread takes a read out of here answers it, so it is answered once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::reply::Reply;

/// Bytes that a read takes while it waits, about: its place here and in the cache's queue, and what it needs for its answer.
pub(crate) const WAITING_BYTES: usize = 512;

/// A read that waits.
struct Read {
    /// The thread that asked.
    thread: u32,
    reply: Reply,
}

/// By the kernel's numbers of them.
pub(crate) struct Waiting {
    reads: Mutex<HashMap<u64, Read>>,
    most: usize,
}

impl Waiting {
    pub(crate) fn new(most: usize) -> Self {
        let reads = Mutex::default();
        Self { reads, most }
    }

    fn reads(&self) -> MutexGuard<'_, HashMap<u64, Read>> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the way of the answer. False if too many wait already.
    pub(crate) fn add(&self, unique: u64, thread: u32, reply: &mut Reply) -> bool {
        let mut reads = self.reads();
        let room = reads.len() < self.most;
        if room {
            let reply = reply.detach();
            reads.insert(unique, Read { thread, reply });
        }
        room
    }

    /// The way of the answer; none if another thread has answered it.
    pub(crate) fn take(&self, unique: u64) -> Option<Reply> {
        self.reads().remove(&unique).map(|read| read.reply)
    }

    /// Takes a read that the kernel asks to interrupt, if the thread that asked was killed. Others go on, as they do on a disk: programs
    /// do not expect that a signal for which they have a handler ends the read of a file.
    pub(crate) fn interrupt(&self, unique: u64) -> Option<Reply> {
        let thread = self.reads().get(&unique)?.thread;
        is_killed(thread).then(|| self.take(unique))?
    }
}

/// Whether a thread ends as soon as it waits no longer: all that ends a program is SIGKILL to each of its threads, but for a core dump.
/// False of threads that this process may not know: the kernel gives them the number 0.
fn is_killed(thread: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status"));
    let pending = |status: String| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("SigPnd:"))?;
        u64::from_str_radix(line.trim(), 16).ok()
    };
    let pending = status.ok().and_then(pending).unwrap_or(0);
    pending & 1 << (libc::SIGKILL - 1) != 0
}
