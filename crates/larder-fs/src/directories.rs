//! Open directories: a list of names as it was when the reading began, so that it holds still while others change the directory.

use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{OFlags, RawDir};
use rustix::io::Errno;

use crate::filesystem::FileSystem;
use crate::inode::Inode;
use crate::options::Coherence;
use crate::system::Sys;

/// A directory that a program has open.
pub(crate) struct OpenDirectory {
    pub(crate) inode: Arc<Inode>,
    list: Mutex<Option<Arc<List>>>,
}

/// Names, one behind the other, and where each begins.
#[derive(Default)]
pub(crate) struct List {
    names: Vec<u8>,
    entries: Vec<(u32, u8, u64)>,
}

/// A name in a directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Name<'l> {
    pub(crate) name: &'l [u8],
    /// As `d_type` has it.
    pub(crate) kind: u8,
    pub(crate) ino: u64,
}

impl List {
    pub(crate) fn get(&self, at: usize) -> Option<Name<'_>> {
        let &(from, kind, ino) = self.entries.get(at)?;
        let to = self
            .entries
            .get(at + 1)
            .map_or(self.names.len(), |next| next.0 as usize);
        let name = &self.names[from as usize..to];
        Some(Name { name, kind, ino })
    }
}

impl FileSystem {
    /// Opens a directory. Returns its handle, and whether the kernel may keep the list that it has of it.
    pub(crate) fn open_directory(&self, inode: &Arc<Inode>) -> Sys<(u64, bool)> {
        let attr = self.attributes(inode)?;
        let mut number = 0;
        let make = |handle| {
            number = handle;
            let (inode, list) = (Arc::clone(inode), Mutex::default());
            Some(Arc::new(OpenDirectory { inode, list }))
        };
        self.directories.add(make).ok_or(Errno::NFILE)?;
        let times = Some((attr.mtime, attr.ctime));
        let before = std::mem::replace(&mut inode.state().listed, times);
        Ok((
            number,
            before == times && self.coherence != Coherence::Strict,
        ))
    }

    pub(crate) fn directory(&self, handle: u64) -> Sys<Arc<OpenDirectory>> {
        self.directories.get(handle).ok_or(Errno::BADF)
    }

    pub(crate) fn release_directory(&self, handle: u64) {
        self.directories.remove(handle);
    }

    /// The names, read anew at the beginning.
    pub(crate) fn list(&self, directory: &OpenDirectory, at: u64) -> Sys<Arc<List>> {
        let mut list = directory
            .list
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match &*list {
            Some(list) if at > 0 => Ok(Arc::clone(list)),
            _ => {
                let new = Arc::new(self.read_directory(&directory.inode)?);
                *list = Some(Arc::clone(&new));
                Ok(new)
            }
        }
    }

    fn read_directory(&self, inode: &Inode) -> Sys<List> {
        self.source.call();
        let fd = self
            .proc_fds
            .reopen(inode.fd(), OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut buffer = [MaybeUninit::uninit(); 8192];
        let mut directory = RawDir::new(fd, &mut buffer);
        let mut list = List::default();
        while let Some(entry) = directory.next() {
            let entry = entry?;
            let from = u32::try_from(list.names.len()).map_err(|_| Errno::OVERFLOW)?;
            // As libc's numbers are the kernel's.
            let kind = (entry.file_type().as_raw_mode() >> 12) as u8;
            list.entries.push((from, kind, entry.ino()));
            list.names.extend_from_slice(entry.file_name().to_bytes());
        }
        Ok(list)
    }

    /// Makes the names of a directory safe.
    pub(crate) fn sync_directory(&self, inode: &Inode) -> Sys<()> {
        self.source.call();
        let fd = self
            .proc_fds
            .reopen(inode.fd(), OFlags::RDONLY | OFlags::DIRECTORY)?;
        rustix::fs::fsync(fd)
    }
}
