//! A thread that maintains a cache until its owner ends it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::sync::{Helped, Mutex};
use larder::internal::fork_generation;
use larder::internal::order::sleeps;

/// The thread, as its owner holds it.
#[derive(Debug)]
pub(crate) struct HelperThread {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
    /// Of the process that has the thread: the child of a fork has not, and must not wake it or wait for it.
    generation: u32,
}

impl HelperThread {
    /// Calls `work` every `interval`.
    ///
    /// # Errors
    /// When no thread can be started.
    fn start(interval: Duration, work: impl Fn() + Send + 'static) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let run = move || {
            while !stopped.load(Ordering::Acquire) {
                std::thread::park_timeout(interval);
                if !stopped.load(Ordering::Acquire) {
                    // A storage that panics must not end the upkeep; its message was printed.
                    let _ = catch_unwind(AssertUnwindSafe(&work));
                }
            }
        };
        Ok(Self {
            stop,
            thread: std::thread::Builder::new()
                .name("larder-blocks".to_owned())
                .spawn(run)?,
            generation: fork_generation(),
        })
    }

    /// Tells the thread to end, and waits for it.
    fn end(self) {
        self.stop.store(true, Ordering::Release);
        if self.generation != fork_generation() {
            core::mem::forget(self.thread);
            return;
        }
        self.thread.thread().unpark();
        // A storage may be the last owner of a cache, and end it from the thread itself.
        if self.thread.thread().id() != std::thread::current().id() {
            sleeps("a helper");
            let _ = self.thread.join();
        }
    }
}

/// Where the owners of a cache find its thread. The last of them ends it.
#[derive(Debug, Default)]
pub(crate) struct Helper(Mutex<Helped>);

impl Helper {
    pub(crate) fn start(
        &self,
        interval: Duration,
        work: impl Fn() + Send + 'static,
    ) -> io::Result<()> {
        self.replace(Some(HelperThread::start(interval, work)?));
        Ok(())
    }

    pub(crate) fn stop(&self) {
        self.replace(None);
    }

    fn replace(&self, new: Option<HelperThread>) {
        let mut helped = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let former = core::mem::replace(&mut helped.0, new);
        drop(helped);
        if let Some(former) = former {
            former.end();
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // No other owner is left. In the child of a fork another thread may have had the lock, and nothing is to be ended.
        let former = self
            .0
            .try_lock()
            .ok()
            .and_then(|mut helped| helped.0.take());
        if let Some(former) = former {
            former.end();
        }
    }
}
