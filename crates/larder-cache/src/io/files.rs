//! Files of the system as a storage, with the system's own cache or past it.

use std::collections::BTreeMap;
use std::fs::{File as SystemFile, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Deref;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use super::storage::{Part, Storage};
use crate::key::FileId;
use crate::sync::Stored;
use larder::internal::RwLock;

/// Parts that go into one call: IOV_MAX.
const MOST_PARTS: usize = 1024;

/// Direct I/O goes by units of the disk's blocks, which are no larger than this; the cache's blocks are.
const UNIT: usize = 4096;

/// A file, opened twice for direct I/O. What is not whole units, the last piece of a file, goes the ordinary way: the kernel writes
/// its own copy out before a direct read and drops it after a direct write, so that both ways show the same file.
#[derive(Debug)]
pub(super) struct Opened {
    plain: SystemFile,
    direct: Option<SystemFile>,
}

/// Whole units, in the file and in memory.
fn is_whole(offset: u64, bytes: &[u8]) -> bool {
    (offset | bytes.len() as u64 | bytes.as_ptr() as u64).is_multiple_of(UNIT as u64)
}

impl Opened {
    /// The opening by which these bytes go.
    pub(super) fn by(&self, offset: u64, bytes: &[u8]) -> &SystemFile {
        let direct = self.direct.as_ref();
        direct
            .filter(|_| is_whole(offset, bytes))
            .unwrap_or(&self.plain)
    }

    /// The opening by which all parts go, if there is one.
    fn by_all<B: Deref<Target = [u8]>>(&self, run: &[Part<B>]) -> Option<&SystemFile> {
        let Some(direct) = &self.direct else {
            return Some(&self.plain);
        };
        let mut all = run.iter();
        all.all(|part| is_whole(part.offset, &part.bytes))
            .then_some(direct)
    }
}

/// Files of the system, each given to the storage under a number. Blocks that follow each other are read and written with one
/// call. A file that is [opened for direct I/O](Self::open_direct) has its blocks in this cache, and not in the system's as well.
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
/// assert!(files.remove(FileId(1)) && !files.remove(FileId(1)));
/// # std::fs::remove_file(path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Files(RwLock<Stored<BTreeMap<FileId, Arc<Opened>>>>);

impl Files {
    /// Takes a file under a number. The one that had the number before is closed when nothing of it is under way.
    pub fn add(&self, id: FileId, file: SystemFile) {
        let (plain, direct) = (file, None);
        self.put(id, Opened { plain, direct });
    }

    /// Opens a file that exists, for reading and writing past the system's cache (`O_DIRECT`), as [`add`](Self::add) takes one.
    ///
    /// ```
    /// use larder_cache::{BlockCache, FileId, Files};
    /// let path = std::env::temp_dir().join(format!("larder-direct-{}", std::process::id()));
    /// std::fs::write(&path, vec![7; 5000])?;
    /// let files = Files::default();
    /// if files.open_direct(FileId(1), &path).is_ok() {
    ///     let cache = BlockCache::builder(files).build()?;
    ///     let file = cache.file(FileId(1))?;
    ///     assert_eq!(cache.handle().read(&file, 1)?[..], [[7; 904].as_slice(), &[0; 3192]].concat());
    /// } // else the file system has no direct I/O
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The system's; `InvalidInput` of a file system that has no direct I/O: [`add`](Self::add) the file there.
    pub fn open_direct(&self, id: FileId, path: impl AsRef<Path>) -> io::Result<()> {
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
                    Some(libc::EINVAL) => "; its file system has none, so add the file without it",
                    _ => "",
                }
            );
            io::Error::new(error.kind(), text)
        })?;
        let (plain, direct) = (open(0)?, Some(direct));
        self.put(id, Opened { plain, direct });
        Ok(())
    }

    /// Gives a file up, which is closed when nothing of it is under way. False if there was none.
    pub fn remove(&self, id: FileId) -> bool {
        self.0.write(|files| files.0.remove(&id)).is_some()
    }

    fn put(&self, id: FileId, file: Opened) {
        let former = self.0.write(|files| files.0.insert(id, Arc::new(file)));
        drop(former);
    }

    /// # Errors
    /// `NotFound`: no file has this number.
    pub(super) fn get(&self, id: FileId) -> io::Result<Arc<Opened>> {
        let file = self.0.read(|files| files.0.get(&id).cloned());
        file.ok_or_else(|| {
            let text = format!(
                "storage: no file was given as number {}; add or open it first",
                id.0
            );
            io::Error::new(io::ErrorKind::NotFound, text)
        })
    }

    /// Does parts that follow each other with one `call`. What cannot go so, and what fails, is left to be tried part by part, so
    /// that each has its own error. If it goes `in_order`, nothing is done behind what was not done whole.
    fn many<B: Deref<Target = [u8]>>(
        &self,
        mut parts: &mut [Part<B>],
        in_order: bool,
        call: impl Fn(&SystemFile, u64, &mut [Part<B>]) -> rustix::io::Result<usize>,
    ) {
        while let Some(first) = parts.first() {
            let (file, offset) = (self.get(first.file), first.offset);
            let (run, others) = parts.split_at_mut(run(parts));
            parts = others;
            let mut whole = false;
            if let Ok(file) = &file
                && let Some(file) = file.by_all(run)
                && let Ok(mut have) = call(file, offset, run)
            {
                whole = have == run.iter().map(|part| part.bytes.len()).sum::<usize>();
                for part in run {
                    // A part that was not reached is tried again: a read may have been short for other reasons than the file's
                    // end, and only the part's own write can say why.
                    let mine = have.min(part.bytes.len());
                    have -= mine;
                    part.done = (mine > 0).then_some(Ok(mine));
                }
            }
            if in_order && !whole {
                return;
            }
        }
    }
}

/// As many parts, from the first on, as follow each other in one file and go into one call; at least one, if there is one.
fn run<B: Deref<Target = [u8]>>(parts: &[Part<B>]) -> usize {
    let mut before = None;
    let follows = |part: &&Part<B>| {
        let len = part.bytes.len() as u64;
        let end = before.replace((part.file, part.offset.saturating_add(len)));
        end.is_none_or(|end| end == (part.file, part.offset))
    };
    parts.iter().take(MOST_PARTS).take_while(follows).count()
}

fn write_run(file: &SystemFile, offset: u64, run: &mut [Part<&[u8]>]) -> rustix::io::Result<usize> {
    let from = run.iter().map(|part| IoSlice::new(part.bytes));
    rustix::io::pwritev(file, &from.collect::<Vec<_>>(), offset)
}

impl Storage for Files {
    fn read(&self, file: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.get(file)?.by(offset, into).read_at(into, offset)
    }

    fn write(&self, file: FileId, offset: u64, from: &[u8]) -> io::Result<usize> {
        self.get(file)?.by(offset, from).write_at(from, offset)
    }

    fn sync(&self, file: FileId) -> io::Result<()> {
        // Of the file, not of one of its openings; each of them reports errors by itself.
        let file = self.get(file)?;
        let plain = file.plain.sync_data();
        let direct = file.direct.as_ref().map_or(Ok(()), SystemFile::sync_data);
        direct.and(plain)
    }

    fn read_many(&self, parts: &mut [Part<&mut [u8]>]) {
        self.many(parts, false, |file, offset, run| {
            let into = run.iter_mut().map(|part| IoSliceMut::new(part.bytes));
            rustix::io::preadv(file, &mut into.collect::<Vec<_>>(), offset)
        });
    }

    fn write_many(&self, parts: &mut [Part<&[u8]>]) {
        self.many(parts, false, write_run);
    }

    fn write_in_order(&self, parts: &mut [Part<&[u8]>]) {
        self.many(parts, true, write_run);
    }
}
