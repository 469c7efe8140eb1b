//! A thread that maintains a cache until its owner ends it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::sync::{Helped, Mutex};
use larder::internal::HelperThread;

/// Where the owners of a cache find its thread. The last of them ends it.
#[derive(Debug, Default)]
pub(crate) struct Helper(Mutex<Helped>);

impl Helper {
    pub(crate) fn start(
        &self,
        interval: Duration,
        work: impl Fn() + Send + 'static,
    ) -> io::Result<()> {
        let thread = HelperThread::start("larder-blocks", move |stop| {
            loop {
                std::thread::park_timeout(interval);
                if stop.load(Ordering::Acquire) {
                    return;
                }
                // A storage that panics must not end the upkeep; its message was printed.
                let _ = catch_unwind(AssertUnwindSafe(&work));
            }
        })?;
        self.replace(Some(thread));
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
