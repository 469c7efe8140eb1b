//! Parts of files that a storage reads or writes in one go.

use std::io;

use super::key::FileId;
use super::storage::Storage;

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
    pub(super) fn finish(self, storage: &dyn Storage) -> io::Result<()> {
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
    pub(super) fn finish(self, storage: &dyn Storage) -> io::Result<()> {
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
