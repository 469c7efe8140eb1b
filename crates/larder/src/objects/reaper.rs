//! A thread that reaps a family's caches periodically, whether or not the program calls the family.

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::family::{Family, Inner, Reaper};
use crate::os::{HelperThread, coarse_now, lower_priority};

impl Family {
    /// Starts a thread that calls [`maintain`](Self::maintain) every `interval`, or replaces it: memory that is unused for a few
    /// intervals goes back without a call by the program. The thread runs at the lowest priority, and ends with the family.
    ///
    /// ```
    /// let family = larder::objects::Family::new()?;
    /// family.start_helper(std::time::Duration::from_secs(1))?;
    /// family.stop_helper();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When no thread can be started. This needs the global allocator.
    pub fn start_helper(&self, interval: Duration) -> io::Result<()> {
        // Not an owner: the family goes when its last owner goes.
        let family = Arc::downgrade(&self.inner);
        let reaper = HelperThread::start("larder-reaper", move |stop| {
            lower_priority();
            loop {
                std::thread::park_timeout(interval);
                if stop.load(Ordering::Acquire) {
                    return;
                }
                let Some(family) = family.upgrade() else {
                    return;
                };
                // A destructor that panics must not end the upkeep; its message was printed.
                let _ = catch_unwind(AssertUnwindSafe(|| family.reap_unasked()));
            }
        })?;
        let former = self.inner.reaper.lock().replace(Reaper(reaper));
        if let Some(Reaper(former)) = former {
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
    /// family.start_helper(std::time::Duration::from_secs(1))?;
    /// family.stop_helper();
    /// family.stop_helper();                       // there is none any more
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stop_helper(&self) {
        let reaper = self.inner.reaper.lock().take();
        if let Some(Reaper(reaper)) = reaper {
            reaper.end();
        }
    }
}

impl Inner {
    fn reap_unasked(&self) {
        self.maintain(coarse_now());
        self.pool.maintain();
    }
}
