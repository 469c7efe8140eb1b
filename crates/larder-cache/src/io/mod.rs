//! Blocks come from the storage and go to it. No lock of the cache is held over a call of the storage, but that of a sync.

mod discard;
mod files;
mod load;
mod memory;
mod readahead;
mod readers;
#[cfg(feature = "io-uring")]
mod ring;
mod storage;
mod write_back;

pub use files::Files;
pub use memory::MemoryStorage;
#[cfg(feature = "io-uring")]
pub use ring::Uring;
pub use storage::{Part, Storage};

pub(crate) use load::Behind;
pub(crate) use readahead::Streams;
pub(crate) use readers::Readers;
pub(crate) use storage::Below;

use std::sync::{PoisonError, TryLockError};

use crate::limits::PATIENCE;
use crate::state::State;
use crate::sync::{AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, yield_now};
use crate::table::Table;
use larder::internal::fork_generation;
use larder::internal::order::sleeps;

/// What all owners of a cache share: the table, the state behind the cache's lock, and the storage.
pub(crate) struct Shared {
    table: Table,
    state: Mutex<State>,
    /// A block was read or written, or could not be.
    moved: Condvar,
    /// Threads of the cache's own that hold a block, or may, and do not wait for it: those of which the state does not know yet.
    passing: AtomicUsize,
    storage: Box<dyn Storage>,
    readers: Readers,
    /// The process that made it: the child of a fork only has a copy.
    generation: u32,
}

impl Shared {
    pub(crate) fn new(
        table: Table,
        state: State,
        storage: Box<dyn Storage>,
        read_threads: usize,
    ) -> Self {
        Self {
            table,
            state: Mutex::new(state),
            moved: Condvar::new(),
            passing: AtomicUsize::new(0),
            storage,
            readers: Readers::new(read_threads),
            generation: fork_generation(),
        }
    }

    #[inline(always)]
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// The threads that read for others.
    pub(crate) fn readers(&self) -> &Readers {
        &self.readers
    }

    pub(crate) fn block_size(&self) -> usize {
        self.table.frames().block_size()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// [`state`](Self::state), if no other thread has it now.
    pub(crate) fn try_state(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Waits until some block that moved is at rest.
    fn wait_for_move<'c>(&'c self, mut state: MutexGuard<'c, State>) {
        state.begin_wait();
        let waited = self.moved.wait(state);
        waited.unwrap_or_else(PoisonError::into_inner).end_wait();
    }

    /// Lets go of the lock, and wakes the threads that wait for a block: one has come to rest. A thread that comes
    /// later sees that under the lock. Mostly no thread waits, and then this makes no system call.
    fn at_rest(&self, state: MutexGuard<'_, State>) {
        let is_awaited = state.is_awaited();
        drop(state);
        if is_awaited {
            self.moved.notify_all();
        }
    }

    /// Lets other threads go on, which will be through without the cache's lock, or with it for a moment.
    fn give_way<'c>(&'c self, state: MutexGuard<'c, State>) -> MutexGuard<'c, State> {
        drop(state);
        sleeps("a thread that passes a block");
        yield_now();
        self.state()
    }
}

/// A thread of the cache's own holds a block, and the state does not know of it yet. Dropped when it does.
struct Passing<'c>(&'c Shared);

impl<'c> Passing<'c> {
    fn new(shared: &'c Shared) -> Self {
        shared.passing.fetch_add(1, Ordering::SeqCst);
        Self(shared)
    }
}

impl Drop for Passing<'_> {
    fn drop(&mut self) {
        self.0.passing.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How long a thread looks again for a block in the way whose holder the state does not know: a thread that looks into a frame for
/// another block, or writes the block back, lets go at once. After that a guard holds the block.
struct Patience(u32);

impl Patience {
    fn new() -> Self {
        Self(PATIENCE)
    }

    /// False when it is at its end.
    fn lasts(&mut self, shared: &Shared) -> bool {
        if shared.passing.load(Ordering::SeqCst) > 0 {
            return true;
        }
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }
}
