//! Any source of one thread behind a mutex.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::super::{IdSource, Rng, Start};
use super::Common;

/// The standard library's mutex over a source.
#[derive(Debug)]
pub struct Locked<S>(Mutex<S>);

impl<S> Locked<S> {
    #[inline]
    fn lock(&self) -> MutexGuard<'_, S> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: IdSource + Send> Common for Locked<S> {
    const ABOUT: &'static str =
        "the source that it is named after, cyclic, under the standard library's mutex";

    fn make(count: u64) -> anyhow::Result<Self> {
        let start = Start::random(count, 0, &mut Rng::new(1))?;
        Ok(Self(Mutex::new(S::start(&start)?)))
    }

    #[inline]
    fn get(&self) -> Option<u64> {
        self.lock().alloc()
    }

    #[inline]
    fn put(&self, id: u64) -> bool {
        self.lock().free(id)
    }
}
