//! Threads that wait for an identifier, the longest first.

use std::collections::VecDeque;

use super::sync::thread::Thread;
use crate::ids::IdError;

/// Who waits, and what was found for those who waited.
#[derive(Debug, Default)]
pub(super) struct Queue {
    next_ticket: u64,
    waiting: VecDeque<(u64, Thread)>,
    granted: Vec<(u64, u64)>,
}

impl Queue {
    /// Puts a thread at the end; its ticket.
    pub(super) fn join(&mut self, thread: Thread) -> Result<u64, IdError> {
        // Room for the grant, too, so that granting cannot fail.
        let room = self.waiting.len() + 1;
        self.waiting
            .try_reserve(1)
            .and_then(|()| self.granted.try_reserve(room))
            .map_err(|_| IdError::OutOfMemory)?;
        self.next_ticket += 1;
        self.waiting.push_back((self.next_ticket, thread));
        Ok(self.next_ticket)
    }

    /// Whether nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Gives offset `at` to the thread that waits longest, and wakes it. Somebody waits.
    pub(super) fn grant(&mut self, at: u64) {
        if let Some((ticket, thread)) = self.waiting.pop_front() {
            self.granted.push((ticket, at));
            thread.unpark();
        }
    }

    /// What was found for this ticket, which ends then.
    pub(super) fn collect(&mut self, ticket: u64) -> Option<u64> {
        let i = self.granted.iter().position(|&(t, _)| t == ticket)?;
        Some(self.granted.swap_remove(i).1)
    }

    /// Ends a ticket for which nothing was found.
    pub(super) fn leave(&mut self, ticket: u64) {
        self.waiting.retain(|&(t, _)| t != ticket);
    }

    /// Forgets everybody; what was granted and not collected.
    pub(super) fn forget(&mut self) -> Vec<(u64, u64)> {
        self.waiting.clear();
        core::mem::take(&mut self.granted)
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}
