//! Where blocks come from and go to.

use std::io;
use std::ops::Deref;
use std::sync::Arc;

use crate::key::FileId;
use larder::internal::order::{Rank, calls};

/// What lies under a cache. All calls may come from several threads at once.
///
/// One of your own needs three calls:
///
/// ```
/// use larder_cache::{BlockCache, FileId, Storage};
/// use std::io;
///
/// /// Files that are as many bytes long as their number says, and all of one byte; they cannot be written.
/// struct Constant;
///
/// impl Storage for Constant {
///     fn read(&self, file: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize> {
///         let n = file.0.saturating_sub(offset).min(into.len() as u64) as usize;
///         into[..n].fill(7);
///         Ok(n)
///     }
///     fn write(&self, _: FileId, _: u64, _: &[u8]) -> io::Result<usize> {
///         Err(io::ErrorKind::ReadOnlyFilesystem.into())
///     }
///     fn sync(&self, _: FileId) -> io::Result<()> {
///         Ok(())
///     }
/// }
///
/// let cache = BlockCache::builder(Constant).build()?;
/// let file = cache.file(FileId(10))?;
/// assert_eq!(cache.handle().read(&file, 0)?[8..12], [7, 7, 0, 0]);
/// # Ok::<(), larder_cache::CacheError>(())
/// ```
pub trait Storage: Send + Sync + 'static {
    /// Reads from `offset` bytes on, as much as there is, up to the buffer's length; 0 is the end of the file. The cache calls
    /// again for the rest, and takes what lies behind the end as zeroes.
    ///
    /// # Errors
    /// Whatever keeps it from reading; [`io::ErrorKind::Interrupted`] is tried again.
    fn read(&self, file: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize>;

    /// Writes at `offset`, as much as it can; the cache calls again for the rest.
    ///
    /// # Errors
    /// Whatever keeps it from writing; [`io::ErrorKind::Interrupted`] is tried again.
    fn write(&self, file: FileId, offset: u64, from: &[u8]) -> io::Result<usize>;

    /// Returns when all that was written to the file is safe.
    ///
    /// # Errors
    /// Whatever keeps it from being safe.
    fn sync(&self, file: FileId) -> io::Result<()>;

    /// Reads several parts, a block and those behind it: one after the other, unless the storage knows better. What it leaves
    /// `None` in [`Part::done`], or reads in part, the cache reads with [`read`](Self::read).
    fn read_many(&self, parts: &mut [Part<&mut [u8]>]) {
        for part in parts {
            part.done = Some(self.read(part.file, part.offset, part.bytes));
        }
    }

    /// Writes several parts that do not overlap, in any order, as [`read_many`](Self::read_many) reads.
    fn write_many(&self, parts: &mut [Part<&[u8]>]) {
        for part in parts {
            part.done = Some(self.write(part.file, part.offset, part.bytes));
        }
    }

    /// Writes several parts of one file, with which it becomes longer, from the first on, and none behind one that was not
    /// written whole: so the file never has a hole where something is yet to be written. The cache calls
    /// [`write`](Self::write) for what is left, in the same order. One after the other, unless the storage knows better.
    fn write_in_order(&self, parts: &mut [Part<&[u8]>]) {
        for part in parts {
            let done = self.write(part.file, part.offset, part.bytes);
            let whole = matches!(done, Ok(n) if n >= part.bytes.len());
            part.done = Some(done);
            if !whole {
                break;
            }
        }
    }
}

/// One that others have as well: a test that looks at it, a program that adds files.
impl<S: Storage + ?Sized> Storage for Arc<S> {
    fn read(&self, file: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        (**self).read(file, offset, into)
    }

    fn write(&self, file: FileId, offset: u64, from: &[u8]) -> io::Result<usize> {
        (**self).write(file, offset, from)
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        (**self).sync(file)
    }

    fn read_many(&self, parts: &mut [Part<&mut [u8]>]) {
        (**self).read_many(parts);
    }

    fn write_many(&self, parts: &mut [Part<&[u8]>]) {
        (**self).write_many(parts);
    }

    fn write_in_order(&self, parts: &mut [Part<&[u8]>]) {
        (**self).write_in_order(parts);
    }
}

/// The storage below a cache. Its calls may take any time, so they are made with no lock of the cache but that of a sync.
pub(crate) struct Below<S>(pub(crate) S);

impl<S: Storage> Below<S> {
    fn call<T>(&self, f: impl FnOnce(&S) -> T) -> T {
        let _outside = calls("a storage", Rank::BlockCache);
        f(&self.0)
    }
}

impl<S: Storage> Storage for Below<S> {
    fn read(&self, file: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.call(|storage| storage.read(file, offset, into))
    }
    fn write(&self, file: FileId, offset: u64, from: &[u8]) -> io::Result<usize> {
        self.call(|storage| storage.write(file, offset, from))
    }
    fn sync(&self, file: FileId) -> io::Result<()> {
        self.call(|storage| storage.sync(file))
    }
    fn read_many(&self, parts: &mut [Part<&mut [u8]>]) {
        self.call(|storage| storage.read_many(parts));
    }
    fn write_many(&self, parts: &mut [Part<&[u8]>]) {
        self.call(|storage| storage.write_many(parts));
    }
    fn write_in_order(&self, parts: &mut [Part<&[u8]>]) {
        self.call(|storage| storage.write_in_order(parts));
    }
}

/// A part of a file that a storage reads or writes along with others: with `&mut [u8]` a read, see [`Storage::read_many`], with
/// `&[u8]` a write, see [`Storage::write_many`].
///
/// ```
/// use larder_cache::{FileId, MemoryStorage, Part, Storage};
/// let storage = MemoryStorage::default();
/// storage.write(FileId(1), 0, b"ab")?;
/// let (mut one, mut two) = ([0; 1], [9; 4]);
/// let mut parts = [Part::new(FileId(1), 0, &mut one[..]), Part::new(FileId(1), 1, &mut two[..])];
/// storage.read_many(&mut parts);
/// assert!(matches!(parts[1].done, Some(Ok(1))));
/// assert_eq!((one, two), (*b"a", [b'b', 9, 9, 9]));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Part<B> {
    /// The file.
    pub file: FileId,
    /// Where in it, in bytes.
    pub offset: u64,
    /// Where to, or what is written.
    pub bytes: B,
    /// What [`Storage::read`] or [`Storage::write`] would have returned; `None` as long as it was not tried.
    pub done: Option<io::Result<usize>>,
}

impl<B> Part<B> {
    /// A part that was not tried yet.
    pub fn new(file: FileId, offset: u64, bytes: B) -> Self {
        Self {
            file,
            offset,
            bytes,
            done: None,
        }
    }
}

impl<B: Deref<Target = [u8]>> Part<B> {
    /// Does what is missing, piece by piece, with `call`, from a place in the part on. Returns how many bytes of the part there are
    /// then: fewer than it has if a call does none.
    fn finish(
        &mut self,
        mut call: impl FnMut(&mut B, FileId, u64, usize) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut have = 0;
        while have < self.bytes.len() {
            let done = self.done.take();
            let (file, at) = (self.file, self.offset + have as u64);
            match done.unwrap_or_else(|| call(&mut self.bytes, file, at, have)) {
                Ok(0) => break,
                Ok(n) => have += n.min(self.bytes.len() - have),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(have)
    }
}

impl Part<&mut [u8]> {
    /// Reads what is missing; what lies behind the end of the file is zeroes.
    pub(super) fn read(mut self, storage: &dyn Storage) -> io::Result<()> {
        let have =
            self.finish(|bytes, file, at, have| storage.read(file, at, &mut bytes[have..]))?;
        if have < self.bytes.len() {
            self.bytes[have..].fill(0);
        }
        Ok(())
    }
}

impl Part<&[u8]> {
    /// Writes what is missing.
    pub(super) fn write(mut self, storage: &dyn Storage) -> io::Result<()> {
        let have = self.finish(|bytes, file, at, have| storage.write(file, at, &bytes[have..]))?;
        match have < self.bytes.len() {
            true => Err(io::ErrorKind::WriteZero.into()),
            false => Ok(()),
        }
    }
}
