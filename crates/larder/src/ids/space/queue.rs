//! Threads that wait for an identifier, the longest first.

use std::collections::VecDeque;

use super::sync::thread::Thread;
use crate::ids::IdError;

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    thread: Thread,
    /// It looks from time to time, and need not be woken for that.
    looks: bool,
}

/// The threads that wait, and what was found for those that have not collected it yet.
#[derive(Debug, Default)]
pub(super) struct Queue {
    next_ticket: u64,
    waiting: VecDeque<Waiter>,
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
        self.waiting.push_back(Waiter {
            ticket: self.next_ticket,
            thread,
            looks: false,
        });
        Ok(self.next_ticket)
    }

    /// Whether no thread waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Gives offset `at` to the thread that waits longest, and wakes it. At least one thread waits.
    pub(super) fn grant(&mut self, at: u64) {
        if let Some(first) = self.waiting.pop_front() {
            self.granted.push((first.ticket, at));
            first.thread.unpark();
        }
    }

    /// Wakes the thread that waits longest, to look from time to time, unless it does so already.
    pub(super) fn wake_first(&mut self) {
        if let Some(first) = self.waiting.front_mut()
            && !first.looks
        {
            first.looks = true;
            first.thread.unpark();
        }
    }

    /// Notes whether the owner of this ticket looks from time to time, which only the first in the queue does, and only
    /// if it is worth it; says so.
    pub(super) fn looks(&mut self, ticket: u64, worth_it: bool) -> bool {
        match self.waiting.front_mut() {
            Some(first) if first.ticket == ticket => {
                first.looks = worth_it;
                worth_it
            }
            _ => false,
        }
    }

    /// What was found for this ticket, which ends then.
    pub(super) fn collect(&mut self, ticket: u64) -> Option<u64> {
        let i = self.granted.iter().position(|&(t, _)| t == ticket)?;
        Some(self.granted.swap_remove(i).1)
    }

    /// Ends a ticket for which nothing was found.
    pub(super) fn leave(&mut self, ticket: u64) {
        self.waiting.retain(|waiter| waiter.ticket != ticket);
    }

    /// Forgets all threads. Returns what was granted and not collected.
    pub(super) fn forget(&mut self) -> Vec<(u64, u64)> {
        self.waiting.clear();
        core::mem::take(&mut self.granted)
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}
