//! Where blocks come from and go to.

use std::collections::BTreeMap;
use std::fs::File as SystemFile;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

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

/// Files of the system, each given to the storage under a number. Files that were opened with `O_DIRECT` work: blocks are
/// aligned to pages.
///
/// ```
/// use larder::cache::{FileId, Files, Storage};
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
    files: RwLock<BTreeMap<FileId, Arc<SystemFile>>>,
}

impl Files {
    /// Takes a file under a number; the one that had the number before is returned.
    pub fn add(&self, id: FileId, file: SystemFile) -> Option<Arc<SystemFile>> {
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        files.insert(id, Arc::new(file))
    }

    /// Gives a file up.
    pub fn remove(&self, id: FileId) -> Option<Arc<SystemFile>> {
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        files.remove(&id)
    }

    fn get(&self, id: FileId) -> io::Result<Arc<SystemFile>> {
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        files.get(&id).cloned().ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("storage: no file was added as number {}", id.0),
            )
        })
    }
}

impl Storage for Files {
    fn read(&self, file: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.get(file)?.read_at(into, offset)
    }

    fn write(&self, file: FileId, offset: u64, from: &[u8]) -> io::Result<usize> {
        self.get(file)?.write_at(from, offset)
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        self.get(file)?.sync_data()
    }
}
