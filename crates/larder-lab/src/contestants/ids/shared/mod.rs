//! Sources of identifiers that several threads use at once.

mod alone;
#[cfg(feature = "peers")]
mod array_queue;
mod locked;
mod ours;
mod sbitmap;
#[cfg(feature = "peers")]
mod sharded_slab;
#[cfg(test)]
mod tests;

pub use alone::{Alone, Nothing};
#[cfg(feature = "peers")]
pub use array_queue::Queue;
pub use locked::Locked;
pub use sbitmap::Sbitmap;
#[cfg(feature = "peers")]
pub use sharded_slab::ShardedSlab;

/// What all threads of a run share. An identifier is whatever the source says it is; it lies in `0..count` where
/// [`BOUNDED`](SharedIds::BOUNDED) says so.
pub trait SharedIds: Sync + Sized {
    /// What it is, for a list of contestants.
    const ABOUT: &'static str = "";

    /// One thread's way in.
    type Local<'a>: LocalIds
    where
        Self: 'a;

    /// A source of `count` identifiers, all of them free.
    ///
    /// # Errors
    /// No memory.
    fn new(count: u64) -> anyhow::Result<Self>;

    /// The way in of thread number `index` of `threads`.
    fn local(&self, index: usize, threads: usize) -> Self::Local<'_>;

    /// Whether it has `count` identifiers and no more, and says so when the last is taken.
    const BOUNDED: bool = true;
}

/// One thread's way to identifiers.
pub trait LocalIds {
    /// An identifier that no thread has; `None` when all are taken.
    fn alloc(&mut self) -> Option<u64>;

    /// Takes an identifier back, of any thread; `false` when it sees that no thread had it.
    fn free(&mut self, id: u64) -> bool;
}

/// A source that needs nothing of a thread's own: all threads use it alike.
pub trait Common: Sync + Sized {
    /// As in [`SharedIds`].
    const ABOUT: &'static str = "";
    /// As in [`SharedIds`].
    const BOUNDED: bool = true;

    /// A source of `count` identifiers, all of them free.
    ///
    /// # Errors
    /// No memory.
    fn make(count: u64) -> anyhow::Result<Self>;

    /// An identifier that no thread has; `None` when all are taken.
    fn get(&self) -> Option<u64>;

    /// Takes an identifier back; `false` when it sees that no thread had it.
    fn put(&self, id: u64) -> bool;
}

impl<T: Common> SharedIds for T {
    const ABOUT: &'static str = T::ABOUT;
    const BOUNDED: bool = T::BOUNDED;

    type Local<'a>
        = &'a T
    where
        T: 'a;

    fn new(count: u64) -> anyhow::Result<Self> {
        T::make(count)
    }

    fn local(&self, _: usize, _: usize) -> &T {
        self
    }
}

impl<T: Common> LocalIds for &T {
    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        self.get()
    }

    #[inline]
    fn free(&mut self, id: u64) -> bool {
        self.put(id)
    }
}
