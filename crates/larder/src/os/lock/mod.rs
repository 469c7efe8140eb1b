//! A lock for slow paths that owns no heap memory and whose holder may be a forking thread.
//!
//! `std::sync::Mutex` would do but for two things: its guard cannot be released by a fork handler, and the malloc
//! front needs a lock that never allocates. This is Drepper's three-state futex ("Futexes Are Tricky", 2011).

#[cfg(all(test, loom))]
mod loom_tests;
mod mutex;
pub mod order;
mod word;

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};

use super::tries::LOCK_SPINS;
pub use mutex::{Condvar, Mutex, MutexGuard, RwLock};
use order::{Place, Rank, Ranked};
#[cfg(all(test, loom))]
pub(crate) use word::Modelled;
use word::Word;

const FREE: u32 = 0;
const HELD: u32 = 1;
const AWAITED: u32 = 2;

/// The lock without what it protects.
#[derive(Debug)]
#[cfg_attr(loom, derive(Default))]
pub(crate) struct RawLock<W = AtomicU32> {
    word: W,
    place: Place,
}

// Only debug builds know a lock's place.
#[cfg(not(debug_assertions))]
const _: () = assert!(size_of::<RawLock>() == size_of::<AtomicU32>());

impl RawLock {
    /// A free lock.
    #[must_use]
    pub(crate) const fn new(rank: Rank) -> Self {
        Self {
            word: AtomicU32::new(FREE),
            place: Place::of(rank),
        }
    }
}

#[cfg(all(test, loom))]
impl RawLock<Modelled> {
    /// A free lock; the order is not checked in models.
    pub(crate) fn new(_: Rank) -> Self {
        Self::default()
    }
}

impl<W: Word> RawLock<W> {
    /// Takes it if it is free.
    pub(crate) fn try_lock(&self) -> bool {
        let taken = self.take();
        if taken {
            self.place.taken();
        }
        taken
    }

    /// Takes it, sleeping if need be.
    pub(crate) fn lock(&self) {
        self.place.before();
        self.lock_around_fork();
    }

    /// Takes it for the time of a fork, whose handler takes all locks in an order of its own.
    pub(crate) fn lock_around_fork(&self) {
        self.wait();
        self.place.taken();
    }

    fn take(&self) -> bool {
        self.word.replace(FREE, HELD, Ordering::Acquire)
    }

    fn wait(&self) {
        for _ in 0..LOCK_SPINS {
            if self.take() {
                return;
            }
            W::spin();
        }
        while self.word.swap(AWAITED, Ordering::Acquire) != FREE {
            // A spurious return or a changed word only leads to another look.
            self.word.wait(AWAITED);
        }
    }

    /// Releases it.
    pub(crate) fn unlock(&self) {
        if self.word.swap(FREE, Ordering::Release) == AWAITED {
            self.word.wake();
        }
        self.place.released();
    }
}

/// A value behind a [`RawLock`].
#[derive(Debug)]
pub(crate) struct Lock<T> {
    raw: RawLock,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through a guard, and there is one guard at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// A free lock around `value`, which says its rank.
    pub(crate) const fn new(value: T) -> Self
    where
        T: Ranked,
    {
        Self {
            raw: <RawLock>::new(T::RANK),
            value: UnsafeCell::new(value),
        }
    }

    /// Takes the lock until the guard is dropped. There is no poisoning: what is protected here is kept consistent
    /// at every point where a panic could start.
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.raw.lock();
        Guard {
            lock: self,
            of: PhantomData,
        }
    }

    /// Takes the lock if it is free.
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.raw.try_lock().then_some(Guard {
            lock: self,
            of: PhantomData,
        })
    }

    /// The lock alone, for [`fork`](super::fork).
    pub(crate) fn raw(&self) -> &RawLock {
        &self.raw
    }
}

/// Access to the value of a [`Lock`].
#[derive(Debug)]
pub(crate) struct Guard<'a, T> {
    lock: &'a Lock<T>,
    /// A guard lends its value out by reference, so it may be shared only if the value may.
    of: PhantomData<*mut T>,
}

// SAFETY: a shared guard gives out `&T` and nothing more.
unsafe impl<T: Sync> Sync for Guard<'_, T> {}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard exists, so the lock is held by its owner.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.lock.raw.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Ranked for u64 {
        const RANK: Rank = Rank::PoolPages;
    }

    #[test]
    fn no_increment_is_lost() {
        let lock = Lock::new(0_u64);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..20_000 {
                        *lock.lock() += 1;
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), 80_000);
    }

    #[test]
    fn try_lock_sees_the_holder() {
        let lock = Lock::new(0_u64);
        let guard = lock.lock();
        assert!(lock.try_lock().is_none());
        drop(guard);
        assert!(lock.try_lock().is_some());
    }
}
