//! The word that a lock is made of: the kernel's futex, or loom's model of one.

use core::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex;

/// What the lock's protocol asks of its word.
pub(crate) trait Word {
    /// Replaces `old` by `new`; false, without an ordering, when the word has another value.
    fn replace(&self, old: u32, new: u32, order: Ordering) -> bool;
    /// Stores `new` and returns the former value.
    fn swap(&self, new: u32, order: Ordering) -> u32;
    /// Sleeps until another thread wakes this one, if the word is still `seen`. May return spuriously.
    fn wait(&self, seen: u32);
    /// Wakes one sleeping thread.
    fn wake(&self);
    /// Tells the processor that the thread spins.
    fn spin();
}

impl Word for AtomicU32 {
    #[inline(always)]
    fn replace(&self, old: u32, new: u32, order: Ordering) -> bool {
        self.compare_exchange(old, new, order, Ordering::Relaxed)
            .is_ok()
    }
    #[inline(always)]
    fn swap(&self, new: u32, order: Ordering) -> u32 {
        self.swap(new, order)
    }
    #[inline(always)]
    fn wait(&self, seen: u32) {
        let _ = futex::wait(self, futex::Flags::PRIVATE, seen, None);
    }
    #[inline(always)]
    fn wake(&self) {
        let _ = futex::wake(self, futex::Flags::PRIVATE, 1);
    }
    #[inline(always)]
    fn spin() {
        core::hint::spin_loop();
    }
}

/// A model of a futex for loom: the kernel compares and goes to sleep under a lock that the waking thread takes, too.
#[cfg(all(test, loom))]
#[derive(Debug, Default)]
pub(crate) struct Modelled {
    word: loom::sync::atomic::AtomicU32,
    bucket: loom::sync::Mutex<()>,
    woken: loom::sync::Condvar,
}

#[cfg(all(test, loom))]
impl Word for Modelled {
    fn replace(&self, old: u32, new: u32, order: Ordering) -> bool {
        self.word
            .compare_exchange(old, new, order, Ordering::Relaxed)
            .is_ok()
    }
    fn swap(&self, new: u32, order: Ordering) -> u32 {
        self.word.swap(new, order)
    }
    fn wait(&self, seen: u32) {
        let bucket = self.bucket.lock().expect("loom ends a model that panics");
        if self.word.load(Ordering::Relaxed) == seen {
            drop(self.woken.wait(bucket));
        }
    }
    fn wake(&self) {
        let _bucket = self.bucket.lock();
        self.woken.notify_one();
    }
    fn spin() {
        loom::hint::spin_loop();
    }
}
