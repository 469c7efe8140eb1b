//! A storage that fails on demand, for tests.

use std::io;
use std::sync::PoisonError;

use super::key::FileId;
use super::storage::Storage;
use super::sync::Stored;
use larder::internal::{Mutex, MutexGuard};

/// Kind of a call to a storage.
///
/// ```
/// use larder_cache::StorageCall;
/// assert_ne!(StorageCall::Write, StorageCall::Sync);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StorageCall {
    /// [`Storage::read`].
    Read,
    /// [`Storage::write`].
    Write,
    /// [`Storage::sync`].
    Sync,
}

/// Number of kinds of calls.
const KINDS: usize = 3;

/// Calls of one kind: how many there were, and which of them fail.
#[derive(Debug, Clone, Copy, Default)]
struct Kind {
    seen: u64,
    first: u64,
    many: u64,
}

/// Another storage, some of whose calls fail: for tests of programs that must live with that. What fails does not reach the storage
/// below. Batches are done part by part, and each part counts as a call.
///
/// ```
/// use larder_cache::{BlockCache, CacheError, FailingStorage, FileId, MemoryStorage, StorageCall};
/// use std::sync::Arc;
/// let storage = Arc::new(FailingStorage::new(MemoryStorage::default()));
/// let cache = BlockCache::builder(Arc::clone(&storage)).build()?;
/// let file = cache.file(FileId(1))?;
/// cache.handle().overwrite(&file, 0)?.fill(1);
/// storage.fail(StorageCall::Sync, 0, 1); // the next sync
/// assert!(matches!(file.sync(), Err(CacheError::Sync { .. })));
/// file.sync()?; // writes the block again
/// assert_eq!(storage.seen(StorageCall::Write), 2);
/// # Ok::<(), CacheError>(())
/// ```
#[derive(Debug, Default)]
pub struct FailingStorage<S> {
    below: S,
    kinds: Mutex<Stored<[Kind; KINDS]>>,
}

impl<S> FailingStorage<S> {
    /// Over another storage; nothing fails until it is said.
    ///
    /// ```
    /// # use larder_cache::{FailingStorage, FileId, MemoryStorage, Storage};
    /// let storage = FailingStorage::new(MemoryStorage::default());
    /// assert!(storage.sync(FileId(1)).is_ok());
    /// ```
    pub fn new(below: S) -> Self {
        Self {
            below,
            kinds: Mutex::new(Default::default()),
        }
    }

    /// Of the calls of this kind that come from now on, `skip` are done and the `many` after them fail; `u64::MAX` is all of them. What was
    /// said of this kind before is void.
    ///
    /// ```
    /// # use larder_cache::{FailingStorage, FileId, MemoryStorage, Storage, StorageCall};
    /// let storage = FailingStorage::new(MemoryStorage::default());
    /// storage.fail(StorageCall::Sync, 1, 1);
    /// let syncs = [1, 2, 3].map(|_| storage.sync(FileId(1)).is_ok());
    /// assert_eq!(syncs, [true, false, true]);
    /// ```
    pub fn fail(&self, call: StorageCall, skip: u64, many: u64) {
        let kind = &mut self.kinds().0[call as usize];
        (kind.first, kind.many) = (kind.seen.saturating_add(skip), many);
    }

    /// Calls of this kind so far, those that failed as well.
    ///
    /// ```
    /// # use larder_cache::{FailingStorage, FileId, MemoryStorage, Storage, StorageCall};
    /// let storage = FailingStorage::new(MemoryStorage::default());
    /// storage.fail(StorageCall::Sync, 0, u64::MAX);
    /// assert!(storage.sync(FileId(1)).is_err());
    /// assert_eq!((storage.seen(StorageCall::Sync), storage.seen(StorageCall::Read)), (1, 0));
    /// ```
    pub fn seen(&self, call: StorageCall) -> u64 {
        self.kinds().0[call as usize].seen
    }

    /// The storage below.
    ///
    /// ```
    /// # use larder_cache::{FailingStorage, FileId, MemoryStorage, Storage};
    /// let storage = FailingStorage::new(MemoryStorage::default());
    /// storage.write(FileId(1), 0, b"a")?;
    /// let mut byte = [0];
    /// storage.below().read(FileId(1), 0, &mut byte)?;
    /// assert_eq!(&byte, b"a");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn below(&self) -> &S {
        &self.below
    }

    fn kinds(&self) -> MutexGuard<'_, Stored<[Kind; KINDS]>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(&self, call: StorageCall, file: FileId) -> io::Result<()> {
        let kind = &mut self.kinds().0[call as usize];
        let number = kind.seen;
        kind.seen += 1;
        if number >= kind.first && number - kind.first < kind.many {
            let text = format!("{call:?} number {number} of file {} fails as told", file.0);
            return Err(io::Error::other(text));
        }
        Ok(())
    }
}

impl<S: Storage> Storage for FailingStorage<S> {
    fn read(&self, file: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.call(StorageCall::Read, file)?;
        self.below.read(file, offset, into)
    }

    fn write(&self, file: FileId, offset: u64, from: &[u8]) -> io::Result<usize> {
        self.call(StorageCall::Write, file)?;
        self.below.write(file, offset, from)
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        self.call(StorageCall::Sync, file)?;
        self.below.sync(file)
    }
}
