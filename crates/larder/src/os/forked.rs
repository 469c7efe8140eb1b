//! A lock that is taken around every fork, so that the child finds what it protects whole.

use core::ops::Deref;

use rustix::io::Errno;

use super::lock::Lock;
use super::lock::order::Ranked;
use super::{OsError, fork};

/// A [`Lock`] that the fork handlers know. Its memory comes from the global allocator once, when it is made.
#[derive(Debug)]
pub(crate) struct ForkLock<T>(Box<[Lock<T>]>);

impl<T> ForkLock<T> {
    /// A free lock around `value`.
    ///
    /// # Errors
    /// When there is no memory for it, or to remember it.
    pub(crate) fn new(value: T) -> Result<Self, OsError>
    where
        T: Ranked,
    {
        let refused = OsError::new("fork handler", size_of::<Lock<T>>(), Errno::NOMEM);
        let mut boxed = Vec::new();
        boxed.try_reserve_exact(1).map_err(|_| refused)?;
        boxed.push(Lock::new(value));
        let boxed = boxed.into_boxed_slice();
        // SAFETY: the lock is boxed and stays where it is until `drop`, which unregisters it.
        if unsafe { fork::register(boxed[0].raw()) } {
            Ok(Self(boxed))
        } else {
            Err(refused)
        }
    }
}

impl<T> Deref for ForkLock<T> {
    type Target = Lock<T>;
    fn deref(&self) -> &Lock<T> {
        &self.0[0]
    }
}

impl<T> Drop for ForkLock<T> {
    fn drop(&mut self) {
        fork::unregister(self.raw());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_lock() {
        let lock = ForkLock::new(1_u64).unwrap();
        *lock.lock() += 1;
        assert_eq!(*lock.lock(), 2);
    }
}
