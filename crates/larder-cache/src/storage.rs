//! Where blocks come from and go to.

use std::io;
use std::sync::Arc;

use super::batch::{ReadPart, WritePart};
use super::key::FileId;

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
