//! Blocks on their way from thread to thread. The same for every allocator; its own memory is the C library's.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::stamp::{Block, Lost, give_all};
use crate::contestants::heaps::{Heap, Heaps};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A mailbox for each thread. No thread waits: what does not fit comes back.
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

    /// Two empty vectors as large as a box: for what goes and for what comes.
    pub(super) fn vectors(&self) -> [Vec<Block>; 2] {
        [(); 2].map(|()| Vec::with_capacity(2 * self.room))
    }

    /// Sends the blocks that are `away` to the next thread, and gives back what came, and what finds no room there.
    ///
    /// # Errors
    /// A block is not as its owner left it.
    pub(super) fn exchange<H: Heap>(
        &self,
        heap: &mut H,
        thread: usize,
        [away, came]: &mut [Vec<Block>; 2],
    ) -> Result<(), Lost> {
        let mut next = lock(&self.boxes[(thread + 1) % self.boxes.len()]);
        if next.len() + away.len() <= 2 * self.room {
            next.append(away);
        }
        drop(next);
        give_all(away.drain(..), heap)?;
        // The empty vector becomes the box.
        std::mem::swap(came, &mut *lock(&self.boxes[thread]));
        give_all(came.drain(..), heap)
    }

    /// Gives everything back that is left when the threads have ended.
    ///
    /// # Errors
    /// As [`exchange`](Self::exchange).
    pub(super) fn end<H: Heaps>(self, heaps: &H) -> anyhow::Result<()> {
        let boxes = self.boxes.into_iter();
        let rest = boxes.flat_map(|own| own.into_inner().unwrap_or_else(PoisonError::into_inner));
        Ok(give_all(rest, &mut heaps.local()?)?)
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
        let is_full = |s: &mut State| s.batches.len() >= self.room && s.consumers > 0;
        let state = self.emptied.wait_while(lock(&self.state), is_full);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
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
        let is_empty = |s: &mut State| s.batches.is_empty() && s.producers > 0;
        let state = self.filled.wait_while(lock(&self.state), is_empty);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let batch = state.batches.pop_front()?;
        drop(state);
        self.emptied.notify_one();
        Some(batch)
    }

    /// Says, when it is dropped, that a producer is gone, however it ended.
    pub(super) fn producer(&self) -> impl Drop + '_ {
        Gone(self, true)
    }

    /// Says, when it is dropped, that a consumer is gone, however it ended.
    pub(super) fn consumer(&self) -> impl Drop + '_ {
        Gone(self, false)
    }

    /// Gives everything back that is left when the threads have ended.
    ///
    /// # Errors
    /// A block is not as its owner left it.
    pub(super) fn end<H: Heaps>(self, heaps: &H) -> anyhow::Result<()> {
        let state = self.state.into_inner();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        let rest = state.batches.into_iter().flatten();
        Ok(give_all(rest, &mut heaps.local()?)?)
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
