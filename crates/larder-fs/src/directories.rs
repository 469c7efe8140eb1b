//! Open directories. A position in one is the source's own, so it means the same to all openers and stays valid while names come and go:
//! the kernel keeps one list for all of them, and may ask one opener to go on where another one's list has ended.
//!
//! Some file systems count names instead (overlayfs, and tmpfs before Linux 6.6). There only an opener that goes straight on is sure to
//! miss none. So what one call of the source said is kept until the kernel has taken it, and a reader that goes on needs no seek.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use rustix::fs::{OFlags, RawDir, SeekFrom};
use rustix::io::Errno;

use crate::filesystem::FileSystem;
use crate::inode::Inode;
use crate::options::Coherence;
use crate::system::Sys;

/// Bytes that one call of the source may say: as many as programs ask for.
const CALL_BYTES: usize = 32 << 10;

/// A directory that a program has open.
pub(crate) struct OpenDirectory {
    pub(crate) inode: Arc<Inode>,
    /// None before the first name was asked for, and when all have been read.
    reading: Mutex<Option<Reading>>,
}

/// A directory of the source that is being read.
struct Reading {
    /// Stands at the end of the batch.
    fd: OwnedFd,
    batch: Arc<Batch>,
}

/// Names that one call of the source said, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The position of the first one.
    from: u64,
    names: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Where its name begins.
    from: u32,
    kind: u8,
    ino: u64,
    /// The position behind it.
    next: u64,
}

/// A name in a directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Name<'b> {
    pub(crate) name: &'b [u8],
    /// As `d_type` has it.
    pub(crate) kind: u8,
    pub(crate) ino: u64,
    /// The position behind it.
    pub(crate) next: u64,
}

impl Batch {
    /// What the source says at a position, at which the descriptor stands. Nothing at the end of the directory.
    fn read(fd: &OwnedFd, from: u64) -> Sys<Self> {
        let mut buffer = Vec::with_capacity(CALL_BYTES);
        let mut directory = RawDir::new(fd, buffer.spare_capacity_mut());
        let mut batch = Self {
            from,
            ..Self::default()
        };
        while let Some(entry) = directory.next() {
            let entry = entry?;
            batch.entries.push(Entry {
                from: batch.names.len() as u32,
                // As libc's numbers are the kernel's.
                kind: (entry.file_type().as_raw_mode() >> 12) as u8,
                ino: entry.ino(),
                next: entry.next_entry_cookie(),
            });
            batch.names.extend(entry.file_name().to_bytes());
            if directory.is_buffer_empty() {
                break;
            }
        }
        // It may be kept for as long as the program likes.
        batch.names.shrink_to_fit();
        batch.entries.shrink_to_fit();
        Ok(batch)
    }

    /// The position behind the last name.
    fn end(&self) -> u64 {
        self.entries.last().map_or(self.from, |entry| entry.next)
    }

    /// How many names lie before a position; none if it is not in here.
    fn index_of(&self, position: u64) -> Option<usize> {
        if position == self.from {
            return Some(0);
        }
        let before = self
            .entries
            .iter()
            .position(|entry| entry.next == position)?;
        Some(before + 1)
    }

    /// Whether there is a name at a position.
    fn has(&self, position: u64) -> bool {
        self.index_of(position)
            .is_some_and(|index| index < self.entries.len())
    }

    /// The names from a position on.
    pub(crate) fn names_from(&self, position: u64) -> impl Iterator<Item = Name<'_>> {
        let first = self.index_of(position).unwrap_or(self.entries.len());
        (first..self.entries.len()).map(|index| self.name(index))
    }

    fn name(&self, index: usize) -> Name<'_> {
        let Entry {
            from,
            kind,
            ino,
            next,
        } = self.entries[index];
        let to = self
            .entries
            .get(index + 1)
            .map_or(self.names.len(), |next| next.from as usize);
        Name {
            name: &self.names[from as usize..to],
            kind,
            ino,
            next,
        }
    }

    fn bytes(&self) -> usize {
        self.names.capacity() + self.entries.capacity() * size_of::<Entry>()
    }
}

impl OpenDirectory {
    fn reading(&self) -> MutexGuard<'_, Option<Reading>> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of the names that it keeps, about.
    fn bytes(&self) -> usize {
        match self.reading.try_lock() {
            Ok(reading) => reading.as_ref().map_or(0, |reading| reading.batch.bytes()),
            // It waits for the source.
            Err(TryLockError::WouldBlock) => CALL_BYTES,
            Err(TryLockError::Poisoned(_)) => 0,
        }
    }
}

impl FileSystem {
    /// Opens a directory. Returns its handle, and whether the kernel may keep the list that it has of it.
    pub(crate) fn open_directory(&self, inode: &Arc<Inode>) -> Sys<(u64, bool)> {
        let attr = self.attributes(inode)?;
        let mut number = 0;
        let make = |handle| {
            number = handle;
            let (inode, reading) = (Arc::clone(inode), Mutex::default());
            Some(Arc::new(OpenDirectory { inode, reading }))
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

    /// What the source says from a position on, in one call; at the beginning of the directory it is asked anew. Nothing at the end.
    pub(crate) fn batch(&self, directory: &OpenDirectory, position: u64) -> Sys<Arc<Batch>> {
        let mut slot = directory.reading();
        if let Some(Reading { batch, .. }) = &*slot
            && position > 0
            && batch.has(position)
        {
            return Ok(Arc::clone(batch));
        }
        self.source.call();
        let (fd, stands_at) = match slot.take() {
            Some(Reading { fd, batch }) if position > 0 => (fd, batch.end()),
            _ => (self.open_names(&directory.inode)?, 0),
        };
        if stands_at != position {
            rustix::fs::seek(&fd, SeekFrom::Start(position))?;
        }
        let batch = Arc::new(Batch::read(&fd, position)?);
        // Neither a descriptor nor names are kept of a directory that was read to its end.
        if !batch.entries.is_empty() {
            *slot = Some(Reading {
                fd,
                batch: Arc::clone(&batch),
            });
        }
        Ok(batch)
    }

    /// A directory of the source, to read its names.
    fn open_names(&self, inode: &Inode) -> Sys<OwnedFd> {
        self.proc_fds
            .reopen(inode.fd(), OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// Bytes of the names that open directories keep, about.
    pub(crate) fn names_bytes(&self) -> usize {
        let (mut bytes, mut from) = (0, 0);
        while let Some((at, directory)) = self.directories.next(from) {
            (bytes, from) = (bytes + directory.bytes(), at + 1);
        }
        bytes
    }

    /// Makes the names of a directory safe.
    pub(crate) fn sync_directory(&self, inode: &Inode) -> Sys<()> {
        self.source.call();
        rustix::fs::fsync(self.open_names(inode)?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::data::tests::with_source;

    /// A file system whose source has so many names, those of the directory and of its parent among them, and the source.
    fn with_names(count: usize, test: impl FnOnce(&FileSystem, &Path)) {
        with_source(|system, source| {
            // One is there.
            for n in 3..count {
                std::fs::write(source.join(format!("{n:030}")), "").unwrap();
            }
            test(system, source);
        });
    }

    fn opened(system: &FileSystem) -> Arc<OpenDirectory> {
        let (handle, _) = system.open_directory(&system.root).unwrap();
        system.directory(handle).unwrap()
    }

    /// All names from a position on, each with the position behind it.
    fn rest(system: &FileSystem, of: &OpenDirectory, mut position: u64) -> Vec<(String, u64)> {
        let mut all = Vec::new();
        loop {
            let batch = system.batch(of, position).unwrap();
            let name = |name: Name<'_>| {
                let text = String::from_utf8_lossy(name.name).into_owned();
                (text, name.next)
            };
            let before = all.len();
            all.extend(batch.names_from(position).map(name));
            if all.len() == before {
                return all;
            }
            position = all.last().map_or(0, |(_, next)| *next);
        }
    }

    /// The same names; a position may have another number as the last one that a call says.
    fn are_same(some: &[(String, u64)], others: &[(String, u64)]) -> bool {
        let names = some.iter().map(|(name, _)| name);
        names.eq(others.iter().map(|(name, _)| name))
    }

    #[test]
    fn names_are_found_from_any_position_by_any_opener() {
        with_names(1000, |system, _| {
            let all = rest(system, &opened(system), 0);
            let names: BTreeSet<_> = all.iter().map(|(name, _)| name).collect();
            assert_eq!((all.len(), names.len()), (1000, 1000));
            let directory = opened(system);
            for at in (0..all.len()).rev().step_by(97) {
                let rest = rest(system, &directory, all[at].1);
                assert!(are_same(&rest, &all[at + 1..]), "from {at} on");
            }
            assert!(are_same(&rest(system, &directory, 0), &all));
        });
    }

    /// As where the kernel had the first names of another opener's list.
    #[test]
    fn names_that_go_shift_no_other() {
        with_names(1000, |system, source| {
            let all = rest(system, &opened(system), 0);
            let (first, others) = all.split_at(100);
            for (name, _) in first.iter().filter(|(name, _)| !name.starts_with('.')) {
                std::fs::remove_file(source.join(name)).unwrap();
            }
            let rest = rest(system, &opened(system), first[99].1);
            assert!(
                are_same(&rest, others),
                "{} of {}",
                rest.len(),
                others.len()
            );
        });
    }

    #[test]
    fn no_more_is_kept_than_one_call_says() {
        with_names(3000, |system, _| {
            let directory = opened(system);
            assert_eq!(system.names_bytes(), 0);
            let first = system.batch(&directory, 0).unwrap();
            let kept = system.names_bytes();
            assert!(kept > first.names.len() && kept < 2 * CALL_BYTES, "{kept}");
            let next = system.batch(&directory, first.end()).unwrap();
            assert!(!next.entries.is_empty());
            assert!(system.names_bytes() < 2 * CALL_BYTES);
            let all = rest(system, &directory, next.end()).len();
            assert_eq!(first.entries.len() + next.entries.len() + all, 3000);
            assert_eq!(system.names_bytes(), 0);
        });
    }
}
