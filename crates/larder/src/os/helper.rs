//! A thread that works for its owner until the owner ends it: the upkeep of a pool, a family or a block cache.

use core::sync::atomic::{AtomicBool, Ordering};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::fork;
use super::lock::order::sleeps;

/// The thread, as its owner holds it.
#[derive(Debug)]
pub struct HelperThread {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
    /// Of the process that has the thread: the child of a fork has not, and must not wake it or wait for it.
    generation: u32,
}

impl HelperThread {
    /// Starts it. `run` parks between its tasks, and returns once the flag is set.
    ///
    /// # Errors
    /// When no thread can be started. This needs the global allocator.
    pub fn start(name: &str, run: impl FnOnce(&AtomicBool) + Send + 'static) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || run(&stopped))?;
        Ok(Self {
            stop,
            thread,
            generation: fork::generation(),
        })
    }

    /// Ends its pause.
    pub(crate) fn wake(&self) {
        self.thread.thread().unpark();
    }

    /// Tells the thread to end.
    pub(crate) fn leave(self) {
        self.stop.store(true, Ordering::Release);
        if self.generation == fork::generation() {
            self.wake();
        } else {
            core::mem::forget(self.thread);
        }
    }

    /// Tells the thread to end, and waits for it.
    pub fn end(self) {
        self.stop.store(true, Ordering::Release);
        if self.generation != fork::generation() {
            core::mem::forget(self.thread);
            return;
        }
        self.wake();
        // A destructor may call this from the thread itself.
        if self.thread.thread().id() != std::thread::current().id() {
            sleeps("a helper");
            let _ = self.thread.join();
        }
    }
}
