//! The mutex, the read-write lock and the condition of the standard library, with a place in the [order](super::order) of locks.
//!
//! For locks that are not taken around a fork, and for threads that wait for a condition.

use core::fmt;
use core::ops::{Deref, DerefMut};
use std::sync::{self, LockResult, PoisonError, TryLockError, TryLockResult};

use super::order::{Place, Ranked, sleeps};

/// A value behind `std`'s mutex.
#[derive(Default)]
pub struct Mutex<T>(sync::Mutex<T>);

impl<T: Ranked> Mutex<T> {
    /// A free lock around `value`.
    pub const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// Takes the lock until the guard is dropped.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        Place::of(T::RANK).before();
        match self.0.lock() {
            Ok(guard) => Ok(MutexGuard::new(guard)),
            Err(poisoned) => Err(PoisonError::new(MutexGuard::new(poisoned.into_inner()))),
        }
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Ok(MutexGuard::new(guard)),
            Err(TryLockError::Poisoned(poisoned)) => Err(TryLockError::Poisoned(PoisonError::new(
                MutexGuard::new(poisoned.into_inner()),
            ))),
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Access to the value of a [`Mutex`].
pub struct MutexGuard<'a, T: Ranked> {
    guard: sync::MutexGuard<'a, T>,
    held: Held,
}

/// Released after the lock itself.
struct Held(Place);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.released();
    }
}

impl<'a, T: Ranked> MutexGuard<'a, T> {
    fn new(guard: sync::MutexGuard<'a, T>) -> Self {
        let place = Place::of(T::RANK);
        place.taken();
        Self {
            guard,
            held: Held(place),
        }
    }
}

impl<T: Ranked> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T: Ranked> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// What threads wait for under a [`Mutex`].
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

impl Condvar {
    /// A condition for which no thread waits yet.
    pub const fn new() -> Self {
        Self(sync::Condvar::new())
    }

    /// Releases the lock, sleeps until it is notified (or wakes spuriously), and takes the lock again.
    pub fn wait<'a, T: Ranked>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let MutexGuard { guard, held } = guard;
        drop(held);
        sleeps("a condition");
        match self.0.wait(guard) {
            Ok(guard) => Ok(MutexGuard::new(guard)),
            Err(poisoned) => Err(PoisonError::new(MutexGuard::new(poisoned.into_inner()))),
        }
    }

    /// Wakes all threads that wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    /// Wakes one thread that waits.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }
}

/// A value behind `std`'s lock for readers and writers.
#[derive(Debug, Default)]
pub struct RwLock<T>(sync::RwLock<T>);

impl<T: Ranked> RwLock<T> {
    /// Calls `f` beside other readers.
    pub fn read<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        let _held = Self::take();
        f(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Calls `f` alone.
    pub fn write<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let _held = Self::take();
        f(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn take() -> Held {
        let place = Place::of(T::RANK);
        place.before();
        place.taken();
        Held(place)
    }
}
