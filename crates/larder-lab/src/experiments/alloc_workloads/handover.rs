//! Blocks on their way from thread to thread. The same for every allocator; its own memory is the C library's.

use std::sync::{Mutex, MutexGuard, PoisonError};

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
