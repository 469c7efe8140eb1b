//! Blocks on their way from thread to thread. The same for every allocator; its own memory is the C library's.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::stamp::Block;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A mailbox for each thread. Nobody waits: what does not fit comes back.
#[derive(Debug)]
pub(super) struct Mailboxes {
    boxes: Vec<Mutex<Vec<Block>>>,
    room: usize,
}

impl Mailboxes {
    /// `threads` boxes with room for about `room` blocks each.
    pub(super) fn new(threads: usize, room: usize) -> Self {
        Self {
            // A box never grows: its memory would come from an allocator that may be the one that is measured.
            boxes: (0..threads)
                .map(|_| Mutex::new(Vec::with_capacity(2 * room)))
                .collect(),
            room,
        }
    }

    /// Puts blocks into a box; they stay in `blocks` when it is full.
    pub(super) fn send(&self, to: usize, blocks: &mut Vec<Block>) {
        let mut mailbox = lock(&self.boxes[to % self.boxes.len()]);
        if mailbox.len() + blocks.len() <= 2 * self.room {
            mailbox.append(blocks);
        }
    }

    /// Takes what lies in a box; `into` is empty and becomes the box.
    pub(super) fn receive(&self, own: usize, into: &mut Vec<Block>) {
        std::mem::swap(into, &mut *lock(&self.boxes[own]));
    }

    /// A vector as large as a box.
    pub(super) fn vector(&self) -> Vec<Block> {
        Vec::with_capacity(2 * self.room)
    }

    /// Everything that is left, when the threads have ended.
    pub(super) fn rest(self) -> Vec<Block> {
        self.boxes
            .into_iter()
            .flat_map(|mailbox| mailbox.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect()
    }
}

/// A queue of batches between producers and consumers, who wait for each other.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// Something came or the queue was closed.
    filled: Condvar,
    /// Something went or the queue was closed.
    emptied: Condvar,
    room: usize,
}

#[derive(Debug, Default)]
struct State {
    batches: VecDeque<Vec<Block>>,
    producers: usize,
    consumers: usize,
}

impl Queue {
    /// A queue for so many of each, with room for `room` batches.
    pub(super) fn new(producers: usize, consumers: usize, room: usize) -> Self {
        Self {
            state: Mutex::new(State {
                producers,
                consumers,
                ..State::default()
            }),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            room,
        }
    }

    /// Adds a batch, waiting for room. When all consumers are gone the batch comes back.
    pub(super) fn push(&self, batch: Vec<Block>) -> Option<Vec<Block>> {
        let mut state = lock(&self.state);
        while state.batches.len() >= self.room && state.consumers > 0 {
            state = self
                .emptied
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if state.consumers == 0 {
            return Some(batch);
        }
        state.batches.push_back(batch);
        drop(state);
        self.filled.notify_one();
        None
    }

    /// Takes a batch, waiting for one; `None` when all producers are gone and nothing is left.
    pub(super) fn pop(&self) -> Option<Vec<Block>> {
        let mut state = lock(&self.state);
        loop {
            if let Some(batch) = state.batches.pop_front() {
                drop(state);
                self.emptied.notify_one();
                return Some(batch);
            }
            if state.producers == 0 {
                return None;
            }
            state = self
                .filled
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Says, when it is dropped, that a producer is gone, however it ended.
    pub(super) fn producer(&self) -> impl Drop + '_ {
        Gone(self, true)
    }

    /// Says, when it is dropped, that a consumer is gone, however it ended.
    pub(super) fn consumer(&self) -> impl Drop + '_ {
        Gone(self, false)
    }

    /// Everything that is left, when the threads have ended.
    pub(super) fn rest(self) -> Vec<Block> {
        let state = self
            .state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        state.batches.into_iter().flatten().collect()
    }
}

struct Gone<'a>(&'a Queue, bool);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        let Self(queue, producer) = *self;
        let mut state = lock(&queue.state);
        match producer {
            true => state.producers -= 1,
            false => state.consumers -= 1,
        }
        drop(state);
        queue.filled.notify_all();
        queue.emptied.notify_all();
    }
}
