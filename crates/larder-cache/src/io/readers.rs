//! Threads of a cache that read blocks for others, which go on meanwhile.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};

use crate::limits::MOST_READS;
use crate::sync::{Condvar, Mutex, MutexGuard, Queued, spawn};
use larder::internal::fork_generation;

/// A read, and what is to be done when it has ended. It owns the cache, so none is left when the last owner is dropped.
pub(crate) type Read = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub(crate) struct Reads {
    waiting: VecDeque<Read>,
    threads: usize,
    /// Of them, those that have nothing to do, or do not know yet that they have.
    idle: usize,
    closed: bool,
}

#[derive(Default)]
struct Queue {
    reads: Mutex<Queued<Reads>>,
    /// There is one to do, or there will be none any more.
    came: Condvar,
}

impl Queue {
    fn reads(&self) -> MutexGuard<'_, Queued<Reads>> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What each of the threads does.
    fn work(&self) {
        let mut reads = self.reads();
        loop {
            if let Some(read) = reads.0.waiting.pop_front() {
                drop(reads);
                // A completion that panics must not end the thread; its message was printed.
                let _ = catch_unwind(AssertUnwindSafe(read));
                reads = self.reads();
            } else if reads.0.closed {
                return;
            } else {
                reads.0.idle += 1;
                reads = self
                    .came
                    .wait(reads)
                    .unwrap_or_else(PoisonError::into_inner);
                reads.0.idle -= 1;
            }
        }
    }
}

/// The threads, which are started as they are needed. They own their queue and not the cache.
pub(crate) struct Readers {
    queue: Arc<Queue>,
    /// Most threads.
    most: usize,
    generation: u32,
}

impl Readers {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            queue: Arc::default(),
            most,
            generation: fork_generation(),
        }
    }

    /// Has a thread do a read.
    ///
    /// # Errors
    /// The read, if no thread can be had for it, or too many wait for one.
    pub(crate) fn start(&self, read: Read) -> Result<(), Read> {
        let mut guard = self.queue.reads();
        let reads = &mut guard.0;
        if reads.waiting.len() >= MOST_READS || reads.waiting.try_reserve(1).is_err() {
            return Err(read);
        }
        if reads.idle <= reads.waiting.len() && reads.threads < self.most {
            let queue = Arc::clone(&self.queue);
            let started = spawn("larder-reads", move || queue.work());
            reads.threads += usize::from(started.is_ok());
        }
        if reads.threads == 0 {
            return Err(read);
        }
        reads.waiting.push_back(read);
        drop(guard);
        self.queue.came.notify_one();
        Ok(())
    }
}

/// The threads end by themselves; one of them may be what drops this. In the child of a fork there are none, and one of them may have
/// had the lock.
impl Drop for Readers {
    fn drop(&mut self) {
        if self.generation == fork_generation() {
            self.queue.reads().0.closed = true;
            self.queue.came.notify_all();
        }
    }
}
