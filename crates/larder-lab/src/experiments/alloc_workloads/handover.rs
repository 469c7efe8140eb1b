//! Blocks on their way from thread to thread. The same for every allocator; its own memory is the C library's.

use std::sync::{Mutex, MutexGuard, PoisonError};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A mailbox for each thread. No thread waits: what does not fit comes back.
#[derive(Debug)]
pub(in crate::experiments) struct Mailboxes<T> {
    boxes: Vec<Mutex<Vec<T>>>,
    room: usize,
}

impl<T> Mailboxes<T> {
    /// `threads` boxes with room for about `room` blocks each.
    pub(in crate::experiments) fn new(threads: usize, room: usize) -> Self {
        Self {
            // A box never grows: its memory would come from an allocator that may be the one that is measured.
            boxes: (0..threads)
                .map(|_| Mutex::new(Vec::with_capacity(2 * room)))
                .collect(),
            room,
        }
    }

    /// Two empty vectors as large as a box: for what goes and for what comes.
    pub(in crate::experiments) fn vectors(&self) -> [Vec<T>; 2] {
        [(); 2].map(|()| Vec::with_capacity(2 * self.room))
    }

    /// Whether so many blocks more find room in the next thread's box.
    pub(in crate::experiments) fn has_room(&self, thread: usize, blocks: usize) -> bool {
        self.fits(&lock(self.next(thread)), blocks)
    }

    fn fits(&self, waiting: &[T], blocks: usize) -> bool {
        waiting.len() + blocks <= 2 * self.room
    }

    fn next(&self, thread: usize) -> &Mutex<Vec<T>> {
        &self.boxes[(thread + 1) % self.boxes.len()]
    }

    /// Sends the blocks that are `away` to the next thread, and gives back what came, and what finds no room there. Says whether all went.
    ///
    /// # Errors
    /// The first one of `give`; the rest is given up.
    pub(in crate::experiments) fn exchange<E>(
        &self,
        thread: usize,
        [away, came]: &mut [Vec<T>; 2],
        mut give: impl FnMut(T) -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut next = lock(self.next(thread));
        if self.fits(&next, away.len()) {
            next.append(away);
        }
        drop(next);
        let went = away.is_empty();
        away.drain(..).try_for_each(&mut give)?;
        // The empty vector becomes the box.
        std::mem::swap(came, &mut *lock(&self.boxes[thread]));
        came.drain(..).try_for_each(give)?;
        Ok(went)
    }

    /// What is left when the threads have ended.
    pub(in crate::experiments) fn rest(self) -> impl Iterator<Item = T> {
        let boxes = self.boxes.into_iter();
        boxes.flat_map(|own| own.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}
