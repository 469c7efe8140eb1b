//! A durable number in a file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::{Durable, LeaseRecord};
use crate::ids::snapshot::create;

/// Where the two records begin: in different sectors and pages, so that one torn write cannot hurt both.
const PLACES: [u64; 2] = [0, 4096];
/// Bytes of the file.
const LENGTH: usize = 4096 + LeaseRecord::BYTES;

/// Why the file of a lease could not be read or written.
///
/// ```
/// use larder::ids::{LeaseFile, LeaseFileError};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("next-inode");
/// let file = LeaseFile::open(&path)?;
/// assert!(matches!(LeaseFile::open(&path), Err(LeaseFileError::Busy { .. })));
/// # drop(file);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseFileError {
    /// The system refused.
    #[error("{what} {path}: {source}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another lease holds the file.
    #[error("{path} is used by another lease; wait for its end")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// Neither record is whole, or they contradict each other: to go on could repeat identifiers.
    #[error(
        "{path} is damaged: {what}; make a new file whose number is above every identifier in use"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
}

/// A number in a file of 4128 bytes: twice, each with a checksum, written and flushed one after the other. Of a write
/// that is torn the other record is left, with the number before; a record that decays later is not missed either,
/// since both say the same once a store has returned. Locked against a second user, also of another process.
///
/// ```
/// use larder::ids::{Durable, LeaseFile};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("next-inode");
/// let mut file = LeaseFile::open(&path)?;
/// assert_eq!(file.load()?, None);
/// file.store(1001)?;                          // returns when it would survive the machine's stopping
/// drop(file);
/// assert_eq!(LeaseFile::open(&path)?.load()?, Some(1001));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LeaseFile {
    records: Records<File>,
    path: PathBuf,
}

impl LeaseFile {
    /// Opens the file, or makes it, with no number in it yet.
    ///
    /// # Errors
    /// [`LeaseFileError::Io`], [`LeaseFileError::Busy`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LeaseFileError> {
        let path = path.as_ref();
        let io = |what| {
            move |source| LeaseFileError::Io {
                what,
                path: path.to_owned(),
                source,
            }
        };
        let file = loop {
            match OpenOptions::new().read(true).write(true).open(path) {
                Ok(file) => break file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(io("opening")(error)),
            }
            // Whole from the first moment on, so that a torn file is never taken for a new one; and never over one that
            // another process has just made.
            match create(path, &empty()) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(io("making")(error)),
            }
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LeaseFileError::Busy {
                    path: path.to_owned(),
                });
            }
            Err(TryLockError::Error(error)) => return Err(io("locking")(error)),
        }
        Ok(Self {
            records: Records::new(file),
            path: path.to_owned(),
        })
    }

    fn failed(&self, what: &'static str, error: Fault) -> LeaseFileError {
        let path = self.path.clone();
        match error {
            Fault::Io(source) => LeaseFileError::Io { what, path, source },
            Fault::Damaged(what) => LeaseFileError::Damaged { path, what },
        }
    }
}

impl Durable for LeaseFile {
    type Error = LeaseFileError;

    fn load(&mut self) -> Result<Option<u64>, LeaseFileError> {
        self.records
            .load()
            .map_err(|error| self.failed("reading", error))
    }

    fn store(&mut self, next: u64) -> Result<(), LeaseFileError> {
        self.records
            .store(next)
            .map_err(|error| self.failed("writing", error))
    }
}

/// A file without a number: two records that were stored 0 times.
fn empty() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    let none = LeaseRecord {
        sequence: 0,
        next: 0,
    };
    for place in PLACES {
        bytes[place as usize..][..LeaseRecord::BYTES].copy_from_slice(&none.to_bytes());
    }
    bytes
}

/// What records are written on.
pub(super) trait Medium {
    fn read(&mut self, at: u64, bytes: &mut [u8]) -> io::Result<()>;
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;
    /// Returns when everything written would survive the machine's stopping.
    fn flush(&mut self) -> io::Result<()>;
}

impl Medium for File {
    fn read(&mut self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(bytes, at)
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

#[derive(Debug)]
pub(super) enum Fault {
    Io(io::Error),
    Damaged(&'static str),
}

/// Two records of which at least one is whole at every moment.
#[derive(Debug)]
pub(super) struct Records<M> {
    medium: M,
    /// What the newest whole record says; `None` until it was read.
    newest: Option<LeaseRecord>,
    /// The record that may be torn or old. The other is whole and durable, so this is the one to write first.
    suspect: usize,
}

impl<M: Medium> Records<M> {
    pub(super) fn new(medium: M) -> Self {
        Self {
            medium,
            newest: None,
            suspect: 0,
        }
    }

    /// A new file's bytes, for a medium in a test.
    #[cfg(test)]
    pub(super) fn fresh() -> Vec<u8> {
        empty().to_vec()
    }

    pub(super) fn load(&mut self) -> Result<Option<u64>, Fault> {
        let newest = self.read()?;
        self.newest = Some(newest);
        Ok((newest.sequence > 0).then_some(newest.next))
    }

    /// Reads both records. Where one is torn or old, brings it up to date: the number that was found must not be lost
    /// with the one record that has it.
    fn read(&mut self) -> Result<LeaseRecord, Fault> {
        let mut found = [None; 2];
        for (record, place) in found.iter_mut().zip(PLACES) {
            let mut bytes = [0; LeaseRecord::BYTES];
            match self.medium.read(place, &mut bytes) {
                Ok(()) => *record = LeaseRecord::from_bytes(&bytes),
                // A file that was cut has no second record.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
                Err(error) => return Err(Fault::Io(error)),
            }
        }
        let (newest, suspect) = match found {
            [None, None] => return Err(Fault::Damaged("neither record is whole")),
            [Some(a), Some(b)] if a == b => return Ok(a),
            [Some(a), Some(b)] if a.sequence == b.sequence => {
                return Err(Fault::Damaged("its records contradict each other"));
            }
            [Some(a), Some(b)] if a.sequence < b.sequence => (b, 0),
            [None, Some(b)] => (b, 0),
            [Some(a), _] => (a, 1),
        };
        self.suspect = suspect;
        self.write(suspect, newest)?;
        Ok(newest)
    }

    pub(super) fn store(&mut self, next: u64) -> Result<(), Fault> {
        let before = match self.newest {
            Some(newest) => newest,
            None => self.read()?,
        };
        let sequence = before.sequence.checked_add(1);
        let record = LeaseRecord {
            sequence: sequence.ok_or(Fault::Damaged("it was stored 2^64 times"))?,
            next,
        };
        // Whatever happens from here on, this number was used for a record.
        self.newest = Some(record);
        self.write(self.suspect, record)?;
        self.suspect ^= 1;
        self.write(self.suspect, record)
    }

    fn write(&mut self, which: usize, record: LeaseRecord) -> Result<(), Fault> {
        self.medium
            .write(PLACES[which], &record.to_bytes())
            .and_then(|()| self.medium.flush())
            .map_err(Fault::Io)
    }
}
