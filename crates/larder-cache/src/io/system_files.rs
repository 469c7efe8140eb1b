//! Files of the system as a storage.

#[cfg(feature = "io-uring")]
use std::any::Any;
use std::fs::File as SystemFile;
use std::io;
#[cfg(feature = "io-uring")]
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::numbered::Numbered;
use super::storage::{ReadPart, Storage, WritePart};
use crate::key::FileId;

/// Files of the system, each given to the storage under a number. Blocks that follow each other are read and written with one
/// call. For files without the system's own cache see [`DirectFiles`](crate::DirectFiles).
///
/// ```
/// use larder_cache::{FileId, Files, Storage};
/// let files = Files::default();
/// let path = std::env::temp_dir().join(format!("larder-doc-{}", std::process::id()));
/// files.add(FileId(1), std::fs::File::options().read(true).write(true).create(true).truncate(true).open(&path)?);
/// files.write(FileId(1), 0, b"hello")?;
/// let mut all = [0; 5];
/// files.read(FileId(1), 0, &mut all)?;
/// assert_eq!(&all, b"hello");
/// # std::fs::remove_file(path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Files {
    files: Numbered<SystemFile>,
}

impl Files {
    /// Takes a file under a number; the one that had the number before is returned.
    ///
    /// ```
    /// # use larder_cache::{FileId, Files, Storage};
    /// let files = Files::default();
    /// assert!(files.add(FileId(1), std::fs::File::open("/proc/self/exe")?).is_none());
    /// let mut magic = [0; 4];
    /// files.read(FileId(1), 0, &mut magic)?;
    /// assert_eq!(&magic, b"\x7fELF");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn add(&self, id: FileId, file: SystemFile) -> Option<Arc<SystemFile>> {
        self.files.put(id, file)
    }

    /// Gives a file up. It is closed when nothing of it is under way and what is returned is dropped.
    ///
    /// ```
    /// use larder_cache::{FileId, Files};
    /// let files = Files::default();
    /// files.add(FileId(1), std::fs::File::open("/proc/self/exe")?);
    /// assert!(files.remove(FileId(1)).is_some());
    /// assert!(files.remove(FileId(1)).is_none());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn remove(&self, id: FileId) -> Option<Arc<SystemFile>> {
        self.files.take(id)
    }
}

impl Storage for Files {
    fn read(&self, file: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.files.get(file)?.read_at(into, offset)
    }

    fn write(&self, file: FileId, offset: u64, from: &[u8]) -> io::Result<usize> {
        self.files.get(file)?.write_at(from, offset)
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        self.files.get(file)?.sync_data()
    }

    fn read_many(&self, parts: &mut [ReadPart<'_>]) {
        self.files.read_many(parts, |file, _| Some(file));
    }

    fn write_many(&self, parts: &mut [WritePart<'_>]) {
        self.files.write_many(parts, |file, _| Some(file));
    }
}

#[cfg(feature = "io-uring")]
impl super::ring::Descriptors for Files {
    fn descriptor(
        &self,
        file: FileId,
        _: u64,
        _: &[u8],
    ) -> io::Result<(Arc<dyn Any + Send + Sync>, RawFd)> {
        let file = self.files.get(file)?;
        let descriptor = file.as_raw_fd();
        Ok((file, descriptor))
    }
}
