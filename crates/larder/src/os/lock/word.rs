//! The word that a lock is made of: the kernel's futex, or loom's model of one.

use core::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex;

/// What the lock's protocol asks of its word.
pub(crate) trait Word {
    /// Puts `new` in the place of `old`; false, without an order, when it is another.
    fn replace(&self, old: u32, new: u32, order: Ordering) -> bool;
    /// Puts `new` there and says what it was.
    fn swap(&self, new: u32, order: Ordering) -> u32;
    /// Sleeps until it is woken, if the word is still `seen`. May return for no reason.
    fn wait(&self, seen: u32);
    /// Wakes one who sleeps.
    fn wake(&self);
    /// Passes a moment.
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

/// A futex as loom knows one: the kernel compares and goes to sleep under a lock that whoever wakes takes, too.
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
