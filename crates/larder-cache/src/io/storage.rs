//! Where blocks come from and go to.

use std::io;
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
    /// `None` in [`ReadPart::done`], or reads in part, the cache reads with [`read`](Self::read).
    fn read_many(&self, parts: &mut [ReadPart<'_>]) {
        for part in parts {
            part.done = Some(self.read(part.file, part.offset, part.into));
        }
    }

    /// Writes several parts that do not overlap, in any order, as [`read_many`](Self::read_many) reads.
    fn write_many(&self, parts: &mut [WritePart<'_>]) {
        for part in parts {
            part.done = Some(self.write(part.file, part.offset, part.from));
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

    fn read_many(&self, parts: &mut [ReadPart<'_>]) {
        (**self).read_many(parts);
    }

    fn write_many(&self, parts: &mut [WritePart<'_>]) {
        (**self).write_many(parts);
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
    fn read_many(&self, parts: &mut [ReadPart<'_>]) {
        self.call(|storage| storage.read_many(parts));
    }
    fn write_many(&self, parts: &mut [WritePart<'_>]) {
        self.call(|storage| storage.write_many(parts));
    }
}

/// A read of a batch, see [`Storage::read_many`].
///
/// ```
/// use larder_cache::{FileId, MemoryStorage, ReadPart, Storage};
/// let storage = MemoryStorage::default();
/// storage.write(FileId(1), 0, b"ab")?;
/// let (mut one, mut two) = ([0; 1], [9; 4]);
/// let mut parts = [ReadPart::new(FileId(1), 0, &mut one), ReadPart::new(FileId(1), 1, &mut two)];
/// storage.read_many(&mut parts);
/// assert!(matches!(parts[1].done, Some(Ok(1))));
/// assert_eq!((one, two), (*b"a", [b'b', 9, 9, 9]));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct ReadPart<'p> {
    /// The file.
    pub file: FileId,
    /// Where in it, in bytes.
    pub offset: u64,
    /// Where to.
    pub into: &'p mut [u8],
    /// What [`Storage::read`] would have returned; `None` as long as it was not tried.
    pub done: Option<io::Result<usize>>,
}

impl<'p> ReadPart<'p> {
    /// A read that was not tried yet.
    ///
    /// ```
    /// # use larder_cache::{FileId, ReadPart};
    /// let mut page = [0; 4096];
    /// let part = ReadPart::new(FileId(1), 8192, &mut page);
    /// assert!(part.done.is_none() && part.offset == 8192);
    /// ```
    pub fn new(file: FileId, offset: u64, into: &'p mut [u8]) -> Self {
        Self {
            file,
            offset,
            into,
            done: None,
        }
    }

    /// Reads what is missing, piece by piece; what lies behind the end of the file is zeroes.
    pub(crate) fn finish(self, storage: &dyn Storage) -> io::Result<()> {
        let Self {
            file,
            offset,
            into,
            mut done,
        } = self;
        let mut have = 0;
        while have < into.len() {
            let rest = &mut into[have..];
            let read = done.take();
            match read.unwrap_or_else(|| storage.read(file, offset + have as u64, rest)) {
                Ok(0) => break,
                Ok(n) => have += n.min(into.len() - have),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if have < into.len() {
            into[have..].fill(0);
        }
        Ok(())
    }
}

/// A write of a batch, see [`Storage::write_many`].
///
/// ```
/// use larder_cache::{FileId, MemoryStorage, Storage, WritePart};
/// let mut parts = [WritePart::new(FileId(1), 0, b"a"), WritePart::new(FileId(2), 0, b"bc")];
/// MemoryStorage::default().write_many(&mut parts);
/// assert!(matches!(parts[1].done, Some(Ok(2))));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct WritePart<'p> {
    /// The file.
    pub file: FileId,
    /// Where in it, in bytes.
    pub offset: u64,
    /// What is written.
    pub from: &'p [u8],
    /// What [`Storage::write`] would have returned; `None` as long as it was not tried.
    pub done: Option<io::Result<usize>>,
}

impl<'p> WritePart<'p> {
    /// A write that was not tried yet.
    ///
    /// ```
    /// # use larder_cache::{FileId, WritePart};
    /// let part = WritePart::new(FileId(1), 0, b"a");
    /// assert!(part.done.is_none() && part.from == b"a");
    /// ```
    pub fn new(file: FileId, offset: u64, from: &'p [u8]) -> Self {
        Self {
            file,
            offset,
            from,
            done: None,
        }
    }

    /// Writes what is missing, piece by piece.
    pub(crate) fn finish(self, storage: &dyn Storage) -> io::Result<()> {
        let Self {
            file,
            offset,
            from,
            mut done,
        } = self;
        let mut have = 0;
        while have < from.len() {
            let written = done.take();
            let write = || storage.write(file, offset + have as u64, &from[have..]);
            match written.unwrap_or_else(write) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => have += n.min(from.len() - have),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
