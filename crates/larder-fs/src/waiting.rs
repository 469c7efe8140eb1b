//! Reads that wait for the source while the threads that took them answer others. A program that is killed waits no longer.
//!
//! Whichever thread takes a read out of here answers it, so it is answered once.

use std::collections::{HashMap, VecDeque};
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

/// Interrupts that are remembered. One that comes early is among the latest.
const EARLY: usize = 64;

/// By the kernel's numbers of them.
pub(crate) struct Waiting {
    state: Mutex<State>,
    most: usize,
}

#[derive(Default)]
struct State {
    reads: HashMap<u64, Read>,
    /// The latest interrupts of what does not wait: mostly of what has its answer, but also of a read that another thread has begun
    /// with.
    early: VecDeque<u64>,
}

impl Waiting {
    pub(crate) fn new(most: usize) -> Self {
        let state = Mutex::default();
        Self { state, most }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the way of the answer. False if too many wait already.
    pub(crate) fn add(&self, unique: u64, thread: u32, reply: &mut Reply) -> bool {
        let reads = &mut self.state().reads;
        let room = reads.len() < self.most;
        if room {
            let reply = reply.detach();
            reads.insert(unique, Read { thread, reply });
        }
        room
    }

    /// The way of the answer; none if another thread has answered it.
    pub(crate) fn take(&self, unique: u64) -> Option<Reply> {
        self.state().reads.remove(&unique).map(|read| read.reply)
    }

    /// Takes a read that the kernel asks to interrupt, if the thread that asked was killed. Others go on, as they do on a disk: programs
    /// do not expect that a signal for which they have a handler ends the read of a file.
    pub(crate) fn interrupt(&self, unique: u64) -> Option<Reply> {
        let mut state = self.state();
        let Some(thread) = state.reads.get(&unique).map(|read| read.thread) else {
            if state.early.len() == EARLY {
                state.early.pop_front();
            }
            state.early.push_back(unique);
            return None;
        };
        drop(state);
        is_killed(thread).then(|| self.take(unique))?
    }

    /// Whether the kernel asked to interrupt a read before it was added. Asked once it is.
    pub(crate) fn was_interrupted(&self, unique: u64) -> bool {
        let early = &mut self.state().early;
        let at = early.iter().rposition(|&early| early == unique);
        at.is_some_and(|at| early.remove(at).is_some())
    }
}

/// Whether a thread ends as soon as it waits no longer: all that ends a program is SIGKILL to each of its threads, but for a core dump.
/// False of threads that this process may not know: the kernel gives them the number 0.
pub(crate) fn is_killed(thread: u32) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_may_come_before_its_read_waits() {
        let waiting = Waiting::new(1);
        let mut reply = Reply::Ring(None);
        assert!(waiting.interrupt(7).is_none());
        assert!(waiting.add(7, 0, &mut reply));
        assert!(!waiting.add(8, 0, &mut reply), "one may wait");
        assert!(waiting.was_interrupted(7) && !waiting.was_interrupted(7));
        assert!(waiting.interrupt(7).is_none(), "a thread that is not known");
        assert!(!waiting.was_interrupted(7), "it waits");
        assert!(waiting.take(7).is_some() && waiting.take(7).is_none());
        // Interrupts of what has been answered take no more and more memory.
        (0..10 * EARLY as u64).for_each(|unique| assert!(waiting.interrupt(unique).is_none()));
        assert_eq!(waiting.state().early.len(), EARLY);
    }
}
