//! A thread that reaps a family's caches periodically, whether or not the program calls the family.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use super::family::{Family, Inner};
use crate::os::lock::order::sleeps;
use crate::os::{fork, lower_priority};

/// The thread, as its family holds it.
#[derive(Debug)]
pub(super) struct Reaper {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
    generation: u32,
}

impl Family {
    /// Starts a thread that calls [`maintain`](Self::maintain) every `interval`, or replaces it: memory that is unused for a few
    /// intervals goes back without a call by the program. The thread runs at the lowest priority, and ends with the family.
    ///
    /// ```
    /// let family = larder::objects::Family::new()?;
    /// family.start_reaper(std::time::Duration::from_secs(1))?;
    /// family.stop_reaper();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When no thread can be started. This needs the global allocator.
    pub fn start_reaper(&self, interval: Duration) -> io::Result<()> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        // Not an owner: the family goes when its last owner goes.
        let family = Arc::downgrade(&self.inner);
        let thread = std::thread::Builder::new()
            .name("larder-reaper".to_owned())
            .spawn(move || {
                lower_priority();
                loop {
                    std::thread::park_timeout(interval);
                    if stopped.load(Ordering::Acquire) {
                        return;
                    }
                    let Some(family) = family.upgrade() else {
                        return;
                    };
                    // A destructor that panics must not end the upkeep; its message was printed.
                    let _ = catch_unwind(AssertUnwindSafe(|| family.reap_unasked()));
                }
            })?;
        let reaper = Reaper {
            stop,
            thread,
            generation: fork::generation(),
        };
        let former = self.inner.reaper.lock().replace(reaper);
        if let Some(former) = former {
            former.end();
        }
        Ok(())
    }

    /// What the reaper does in each interval.
    pub(crate) fn reap_unasked(&self) {
        self.inner.reap_unasked();
    }

    /// Stops the thread if there is one, and waits for it.
    ///
    /// ```
    /// # let family = larder::objects::Family::new()?;
    /// family.start_reaper(std::time::Duration::from_secs(1))?;
    /// family.stop_reaper();
    /// family.stop_reaper();                       // there is none any more
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stop_reaper(&self) {
        let reaper = self.inner.reaper.lock().take();
        if let Some(reaper) = reaper {
            reaper.end();
        }
    }
}

impl Inner {
    fn reap_unasked(&self) {
        self.maintain();
        self.pool.maintain();
    }
}

impl Reaper {
    /// Tells the thread to stop.
    pub(super) fn leave(self) {
        self.stop.store(true, Ordering::Release);
        // The child of a fork does not have the thread, and must not wake or wait for it.
        if self.generation == fork::generation() {
            self.thread.thread().unpark();
        } else {
            core::mem::forget(self.thread);
        }
    }

    /// Tells the thread to stop and waits for it.
    fn end(self) {
        self.stop.store(true, Ordering::Release);
        if self.generation != fork::generation() {
            core::mem::forget(self.thread);
        } else {
            self.thread.thread().unpark();
            // A destructor may call this from the thread itself.
            if self.thread.thread().id() != std::thread::current().id() {
                sleeps("a reaper");
                let _ = self.thread.join();
            }
        }
    }
}
