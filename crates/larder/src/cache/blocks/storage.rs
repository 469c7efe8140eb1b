//! Where blocks come from and go to.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use super::batch::{ReadPart, WritePart};
use super::key::FileId;

/// What lies under a cache. All calls may come from several threads at once.
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

/// Files in memory, for tests and for what need not last.
///
/// ```
/// use larder::cache::{FileId, MemoryStorage, Storage};
/// let storage = MemoryStorage::default();
/// storage.write(FileId(1), 2, b"ab")?;
/// let mut all = [9; 5];
/// assert_eq!(storage.read(FileId(1), 0, &mut all)?, 4);
/// assert_eq!(all, [0, 0, b'a', b'b', 9]);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct MemoryStorage {
    files: Mutex<BTreeMap<FileId, Vec<u8>>>,
}

impl Storage for MemoryStorage {
    fn read(&self, file: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let all = files.get(&file).map_or(&[][..], Vec::as_slice);
        let from = all.get(offset as usize..).unwrap_or(&[]);
        let n = from.len().min(into.len());
        into[..n].copy_from_slice(&from[..n]);
        Ok(n)
    }

    fn write(&self, file: FileId, offset: u64, from: &[u8]) -> io::Result<usize> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let all = files.entry(file).or_default();
        let end = offset as usize + from.len();
        if all.len() < end {
            all.try_reserve(end - all.len())
                .map_err(|_| io::ErrorKind::OutOfMemory)?;
            all.resize(end, 0);
        }
        all[offset as usize..end].copy_from_slice(from);
        Ok(from.len())
    }

    fn sync(&self, _: FileId) -> io::Result<()> {
        Ok(())
    }
}
