//! Files of the system as a storage.

#[cfg(feature = "io-uring")]
use std::any::Any;
use std::collections::BTreeMap;
use std::fs::File as SystemFile;
use std::io::{self, IoSlice, IoSliceMut};
#[cfg(feature = "io-uring")]
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, PoisonError, RwLock};

use super::batch::{ReadPart, WritePart};
use super::key::FileId;
use super::storage::Storage;

/// Parts that go into one call: IOV_MAX.
const MOST_PARTS: usize = 1024;

/// Files of the system, each given to the storage under a number. Blocks that follow each other are read and written with one
/// call. For files without the system's own cache see [`DirectFiles`](super::DirectFiles).
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

    pub(super) fn get(&self, id: FileId) -> io::Result<Arc<SystemFile>> {
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

    fn read_many(&self, mut parts: &mut [ReadPart<'_>]) {
        while let Some(first) = parts.first() {
            let file = self.get(first.file);
            let len = run(parts, |part| (part.file, part.offset, part.into.len()));
            let (mine, others) = parts.split_at_mut(len);
            if let Ok(file) = file {
                read_run(&file, mine);
            }
            parts = others;
        }
    }

    fn write_many(&self, mut parts: &mut [WritePart<'_>]) {
        while let Some(first) = parts.first() {
            let file = self.get(first.file);
            let len = run(parts, |part| (part.file, part.offset, part.from.len()));
            let (mine, others) = parts.split_at_mut(len);
            if let Ok(file) = file {
                write_run(&file, mine);
            }
            parts = others;
        }
    }
}

/// As many parts, from the first on, as follow each other in one file and go into one call; at least one, if there is one.
pub(super) fn run<P>(parts: &[P], place: impl Fn(&P) -> (FileId, u64, usize)) -> usize {
    let mut before = None;
    let follows = |part: &&P| {
        let (file, offset, len) = place(part);
        let end = before.replace((file, offset.saturating_add(len as u64)));
        end.is_none_or(|end| end == (file, offset))
    };
    parts.iter().take(MOST_PARTS).take_while(follows).count()
}

/// What fails is left to be tried part by part, so that each has its own error.
pub(super) fn read_run(file: &SystemFile, parts: &mut [ReadPart<'_>]) {
    let Some(offset) = parts.first().map(|part| part.offset) else {
        return;
    };
    let mut into: Vec<IoSliceMut<'_>> = parts
        .iter_mut()
        .map(|part| IoSliceMut::new(part.into))
        .collect();
    let Ok(mut have) = rustix::io::preadv(file, &mut into, offset) else {
        return;
    };
    for part in parts {
        // A part that was not reached is tried again: the read may have been short for other reasons than the file's end.
        let mine = have.min(part.into.len());
        have -= mine;
        part.done = (mine > 0).then_some(Ok(mine));
    }
}

/// As [`read_run`].
pub(super) fn write_run(file: &SystemFile, parts: &mut [WritePart<'_>]) {
    let Some(offset) = parts.first().map(|part| part.offset) else {
        return;
    };
    let from: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part.from)).collect();
    let Ok(mut have) = rustix::io::pwritev(file, &from, offset) else {
        return;
    };
    for part in parts {
        // A part that was not reached is tried again: only it can say why.
        let mine = have.min(part.from.len());
        have -= mine;
        part.done = (mine > 0).then_some(Ok(mine));
    }
}

#[cfg(feature = "io-uring")]
impl super::uring::Descriptors for Files {
    fn descriptor(
        &self,
        file: FileId,
        _: u64,
        _: &[u8],
    ) -> io::Result<(Arc<dyn Any + Send + Sync>, RawFd)> {
        let file = self.get(file)?;
        let descriptor = file.as_raw_fd();
        Ok((file, descriptor))
    }
}
