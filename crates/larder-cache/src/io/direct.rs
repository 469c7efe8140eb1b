//! Files that the system does not cache a second time.

#[cfg(feature = "io-uring")]
use std::any::Any;
use std::fs::{File as SystemFile, OpenOptions};
use std::io;
#[cfg(feature = "io-uring")]
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
#[cfg(feature = "io-uring")]
use std::sync::Arc;

use super::numbered::Numbered;
use super::storage::{ReadPart, Storage, WritePart};
use crate::key::FileId;

/// Direct I/O goes by units of the disk's blocks, which are no larger than this; the cache's blocks are.
const UNIT: usize = 4096;

/// A file opened twice. What is not whole units, the last piece of a file, goes the ordinary way: the kernel writes its own
/// copy out before a direct read and drops it after a direct write, so that both ways show the same file.
#[derive(Debug)]
struct Direct {
    direct: SystemFile,
    plain: SystemFile,
}

/// Whole units, in the file and in memory.
fn is_whole(offset: u64, bytes: &[u8]) -> bool {
    (offset | bytes.len() as u64 | bytes.as_ptr() as u64).is_multiple_of(UNIT as u64)
}

impl Direct {
    fn by(&self, offset: u64, bytes: &[u8]) -> &SystemFile {
        if is_whole(offset, bytes) {
            &self.direct
        } else {
            &self.plain
        }
    }
}

/// Files of the system read and written with `O_DIRECT`: their blocks are in this cache, and not in the system's as well.
///
/// ```
/// use larder_cache::{BlockCache, DirectFiles, FileId};
/// let path = std::env::temp_dir().join(format!("larder-direct-{}", std::process::id()));
/// std::fs::write(&path, vec![7; 5000])?;
/// let files = DirectFiles::default();
/// if files.open(FileId(1), &path).is_ok() {
///     let cache = BlockCache::builder(files).build()?;
///     let file = cache.file(FileId(1))?;
///     assert_eq!(cache.handle().read(&file, 1)?[..], [[7; 904].as_slice(), &[0; 3192]].concat());
/// } // else the file system has no direct I/O
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct DirectFiles {
    files: Numbered<Direct>,
}

impl DirectFiles {
    /// Opens a file that exists, for reading and writing, under a number; the one that had the number before is closed.
    ///
    /// ```
    /// use larder_cache::{DirectFiles, FileId};
    /// let files = DirectFiles::default();
    /// let error = files.open(FileId(1), "/no/such/file").unwrap_err();
    /// assert!(error.to_string().contains("/no/such/file"));
    /// ```
    ///
    /// # Errors
    /// The system's; `InvalidInput` of a file system that has no direct I/O: take [`Files`](crate::Files) there.
    pub fn open(&self, id: FileId, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let open = |flags| {
            let mut options = OpenOptions::new();
            options
                .read(true)
                .write(true)
                .custom_flags(flags)
                .open(path)
        };
        let direct = open(libc::O_DIRECT).map_err(|error| {
            let text = format!(
                "storage: opening {} for direct I/O: {error}{}",
                path.display(),
                match error.raw_os_error() {
                    Some(libc::EINVAL) => "; its file system has none, so use Files",
                    _ => "",
                }
            );
            io::Error::new(error.kind(), text)
        })?;
        let file = Direct {
            direct,
            plain: open(0)?,
        };
        self.files.put(id, file);
        Ok(())
    }

    /// Closes a file, once nothing of it is under way. False if there was none.
    ///
    /// ```
    /// use larder_cache::{DirectFiles, FileId};
    /// let files = DirectFiles::default();
    /// let path = std::env::temp_dir().join(format!("larder-close-{}", std::process::id()));
    /// std::fs::write(&path, "some")?;
    /// if files.open(FileId(1), &path).is_ok() {
    ///     assert!(files.close(FileId(1)));
    /// } // else the file system has no direct I/O
    /// assert!(!files.close(FileId(1)));
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn close(&self, id: FileId) -> bool {
        self.files.take(id).is_some()
    }
}

impl Storage for DirectFiles {
    fn read(&self, file: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.files.get(file)?.by(offset, into).read_at(into, offset)
    }

    fn write(&self, file: FileId, offset: u64, from: &[u8]) -> io::Result<usize> {
        self.files
            .get(file)?
            .by(offset, from)
            .write_at(from, offset)
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        // Of the file, not of one of its two openings; each of them reports errors by itself.
        let file = self.files.get(file)?;
        let (direct, plain) = (file.direct.sync_data(), file.plain.sync_data());
        direct.and(plain)
    }

    fn read_many(&self, parts: &mut [ReadPart<'_>]) {
        self.files.read_many(parts, |file, run| {
            let whole = |part: &ReadPart<'_>| is_whole(part.offset, part.bytes);
            run.iter().all(whole).then_some(&file.direct)
        });
    }

    fn write_many(&self, parts: &mut [WritePart<'_>]) {
        self.files.write_many(parts, |file, run| {
            let whole = |part: &WritePart<'_>| is_whole(part.offset, part.bytes);
            run.iter().all(whole).then_some(&file.direct)
        });
    }
}

#[cfg(feature = "io-uring")]
impl super::ring::Descriptors for DirectFiles {
    fn descriptor(
        &self,
        file: FileId,
        offset: u64,
        bytes: &[u8],
    ) -> io::Result<(Arc<dyn Any + Send + Sync>, RawFd)> {
        let file = self.files.get(file)?;
        let descriptor = file.by(offset, bytes).as_raw_fd();
        Ok((file, descriptor))
    }
}
