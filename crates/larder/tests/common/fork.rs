//! Children of a fork.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use larder::os::rseq::Mode;

use super::{Stop, stress};

/// A child that hangs is ended by its alarm and so fails the test; nothing here waits that long otherwise.
const CHILD_SECONDS: u32 = 40;

/// Runs `body` in a child of a fork and says how the child ended: 0 is well.
pub(crate) fn fork(body: impl FnOnce()) -> i32 {
    // SAFETY: the child calls what a child of a process with threads may call with glibc: malloc and our own code.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        0 => {
            // SAFETY: sets a timer; its signal ends the child.
            unsafe { libc::alarm(CHILD_SECONDS) };
            let well = catch_unwind(AssertUnwindSafe(body)).is_ok();
            // SAFETY: ends the child without running the parent's exit handlers.
            unsafe { libc::_exit(i32::from(!well)) }
        }
        child => {
            let mut status = 0;
            // SAFETY: waits for our own child.
            let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
            assert_eq!(waited, child);
            status
        }
    }
}

/// What is forked, and for how long: `least` children, and as many more as there is time for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Storm {
    pub(crate) mode: Mode,
    pub(crate) threads: u64,
    pub(crate) least: u64,
    pub(crate) seconds: f64,
}

impl Storm {
    /// Forks again and again while threads are at work, each with its number from 1 on, until they shall stop. A child gets its
    /// number and what the parent prepared for it; then the parent looks at that again.
    pub(crate) fn rage<T>(
        self,
        work: impl Fn(u64, &AtomicBool) + Sync,
        prepare: impl Fn() -> T,
        child: impl Fn(u64, &mut T),
        after: impl Fn(T),
    ) {
        let stop = AtomicBool::new(false);
        std::thread::scope(|s| {
            let _stopper = Stop(&stop);
            for me in 1..=self.threads {
                let (work, stop) = (&work, &stop);
                s.spawn(move || work(me, stop));
            }
            let end = Instant::now() + stress(self.mode, self.seconds);
            let mut forks = 0;
            while forks < self.least || Instant::now() < end {
                let mut mine = prepare();
                let status = fork(|| child(forks, &mut mine));
                assert_eq!(status, 0, "child {forks} in mode {}", self.mode);
                after(mine);
                forks += 1;
            }
            stop.store(true, Ordering::Relaxed);
            println!("{forks} forks");
        });
    }
}
