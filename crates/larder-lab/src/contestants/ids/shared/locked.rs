//! Any source of one thread behind a mutex.

use std::sync::{Mutex, PoisonError};

use super::super::{IdSource, Rng, Start};
use super::{LocalIds, SharedIds};

/// The standard library's mutex over a source.
#[derive(Debug)]
pub struct Locked<S>(Mutex<S>);

impl<S: IdSource + Send> SharedIds for Locked<S> {
    const ABOUT: &'static str =
        "the source that it is named after, cyclic, under the standard library's mutex";

    type Local<'a>
        = &'a Self
    where
        S: 'a;

    fn new(count: u64) -> anyhow::Result<Self> {
        let start = Start::random(count, 0, &mut Rng::new(1))?;
        Ok(Self(Mutex::new(S::start(&start)?)))
    }

    fn local(&self, _: usize, _: usize) -> &Self {
        self
    }
}

impl<S: IdSource + Send> LocalIds for &Locked<S> {
    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .alloc()
    }

    #[inline]
    fn free(&mut self, id: u64) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .free(id)
    }
}
