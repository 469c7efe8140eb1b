//! Ctrl-C: the first one finishes what is being measured and keeps it, the second one quits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// A request to stop after the current cell, shared between the signal handler and the runner.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
    // Process group of the worker that runs now, 0 when none does.
    worker: Arc<AtomicI32>,
}

impl Interrupt {
    /// An interrupt that was not requested.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the runner to stop after the current cell.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::SeqCst);
    }

    /// Whether it was requested.
    #[must_use]
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// Listens to SIGINT, SIGTERM and SIGHUP from here on. The second signal ends the worker and the program
    /// with status 130.
    ///
    /// Workers run in process groups of their own, so that the terminal's Ctrl-C does not reach them.
    ///
    /// # Errors
    /// When a handler is installed already, or the system refuses one.
    pub fn listen(&self) -> anyhow::Result<()> {
        let this = self.clone();
        ctrlc::set_handler(move || {
            if this.asked.swap(true, Ordering::SeqCst) {
                this.end_worker();
                std::process::exit(130);
            }
            eprintln!(
                "larder: finishing the current cell; complete rounds are kept. Once more to quit at once."
            );
        })?;
        Ok(())
    }

    /// Notes the worker that runs now; `None` when it has ended.
    pub(crate) fn set_worker(&self, pid: Option<u32>) {
        let pid = pid.and_then(|p| i32::try_from(p).ok()).unwrap_or(0);
        self.worker.store(pid, Ordering::SeqCst);
    }

    fn end_worker(&self) {
        let pid = self.worker.load(Ordering::SeqCst);
        if let Some(pid) = rustix::process::Pid::from_raw(pid) {
            // It may have ended by itself a moment ago; then there is nothing to end.
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }
}
