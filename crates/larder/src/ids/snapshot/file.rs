//! Snapshots in files and streams.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Snapshot, SnapshotError};

impl Snapshot {
    /// Bytes of the largest file that [`load`](Self::load) reads: what [`MOST_IDS`](Self::MOST_IDS) identifiers take in
    /// the worst case, and some.
    pub const MOST_BYTES: u64 = 1 << 30;

    /// Writes the bytes of [`to_bytes`](Self::to_bytes) to a stream.
    ///
    /// [`read_from`](Self::read_from) shows both.
    ///
    /// # Errors
    /// [`SnapshotError::Io`], and as [`to_bytes`](Self::to_bytes).
    pub fn write_to(&self, mut stream: impl Write) -> Result<(), SnapshotError> {
        let bytes = self.to_bytes()?;
        stream
            .write_all(&bytes)
            .map_err(|source| failed(String::from("writing a snapshot"), source))
    }

    /// Reads a stream to its end; at most `most_bytes` of it.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, Snapshot, rule::Lowest};
    /// let ids = RefCell::new(Ids::rebuild(0u32..1000, Lowest, [4, 9])?);
    /// let mut pipe = Vec::new();
    /// Snapshot::of(&ids, &Lowest)?.write_to(&mut pipe)?;
    /// assert!(Snapshot::read_from(&pipe[..], 1 << 20)?.iter().eq([4, 9]));
    /// assert!(Snapshot::read_from(&pipe[..], 10).is_err(), "it has more bytes");
    /// # Ok::<(), larder::ids::SnapshotError>(())
    /// ```
    ///
    /// # Errors
    /// [`SnapshotError::TooLarge`], [`SnapshotError::Io`], and as [`from_bytes`](Self::from_bytes).
    pub fn read_from(stream: impl Read, most_bytes: u64) -> Result<Self, SnapshotError> {
        Self::read_from_at_most(stream, most_bytes, Self::MOST_IDS)
    }

    /// As [`read_from`](Self::read_from), of at most `most_ids` identifiers: for spaces of which more than
    /// [`MOST_IDS`](Self::MOST_IDS) are allocated, as by a wide reserved band. See
    /// [`from_bytes_at_most`](Self::from_bytes_at_most) for what that may cost.
    ///
    /// # Errors
    /// As [`read_from`](Self::read_from).
    ///
    /// ```
    /// use core::cell::RefCell;
    /// use larder::ids::{Ids, Snapshot, rule::Lowest};
    ///
    /// let mut inodes = Ids::new(1u64..=1 << 40, Lowest)?;
    /// inodes.reserve(1u64..=1 << 33)?;                     // a band of another server
    /// let mut pipe = Vec::new();
    /// Snapshot::of(&RefCell::new(inodes), &Lowest)?.write_to(&mut pipe)?;
    ///
    /// assert!(Snapshot::read_from(&pipe[..], 1000).is_err(), "few bytes, very many identifiers");
    /// let snapshot = Snapshot::read_from_at_most(&pipe[..], 1000, 1 << 40)?;
    /// assert_eq!(snapshot.allocated(), 1 << 33);
    /// # Ok::<(), larder::ids::SnapshotError>(())
    /// ```
    pub fn read_from_at_most(
        stream: impl Read,
        most_bytes: u64,
        most_ids: u64,
    ) -> Result<Self, SnapshotError> {
        let mut bytes = Vec::new();
        // Grows with what comes, whatever the stream says of itself.
        stream
            .take(most_bytes.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|source| failed(String::from("reading a snapshot"), source))?;
        if bytes.len() as u64 > most_bytes {
            return Err(SnapshotError::TooLarge {
                found: bytes.len() as u64,
                unit: "bytes or more",
                most: most_bytes,
            });
        }
        Self::from_bytes_at_most(&bytes, most_ids)
    }

    /// Writes the snapshot to a file, all or nothing: whenever the machine stops, the file is the old one or the new
    /// one. (A file beside it, flushed, renamed over it, and the folder flushed.) Of more than
    /// [`MOST_IDS`](Self::MOST_IDS) identifiers or [`MOST_BYTES`](Self::MOST_BYTES) it is read again by
    /// [`load_at_most`](Self::load_at_most) only.
    ///
    /// # Errors
    /// [`SnapshotError::Io`]: the old file is still there. As [`to_bytes`](Self::to_bytes).
    ///
    /// ```
    /// use core::cell::RefCell;
    /// use larder::ids::{Ids, Snapshot, rule::Lowest};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("inodes");
    /// let inodes = RefCell::new(Ids::rebuild(1u32..=u32::MAX, Lowest, [2, 11])?);
    /// Snapshot::of(&inodes, &Lowest)?.save(&path)?;
    /// assert!(Snapshot::load(&path)?.iter().eq([2, 11]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), SnapshotError> {
        let path = path.as_ref();
        replace(path, &self.to_bytes()?)
            .map_err(|source| failed(format!("saving a snapshot as {}", path.display()), source))
    }

    /// Reads a file that [`save`](Self::save) wrote, of at most [`MOST_BYTES`](Self::MOST_BYTES) and
    /// [`MOST_IDS`](Self::MOST_IDS).
    ///
    /// [`save`](Self::save) shows both.
    ///
    /// # Errors
    /// [`SnapshotError::Io`], and as [`read_from`](Self::read_from).
    pub fn load(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        Self::load_at_most(path, Self::MOST_BYTES, Self::MOST_IDS)
    }

    /// As [`load`](Self::load), with the limits that you choose: whatever [`save`](Self::save) wrote can be read with
    /// `u64::MAX` for both, if you trust the file.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    ///
    /// ```
    /// use core::cell::RefCell;
    /// use larder::ids::{Ids, Snapshot, SnapshotError, rule::Lowest};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("inodes");
    /// let mut inodes = Ids::new(1u64..=1 << 40, Lowest)?;
    /// inodes.reserve(1u64..=1 << 33)?;                     // a band of another server
    /// Snapshot::of(&RefCell::new(inodes), &Lowest)?.save(&path)?;
    ///
    /// assert!(matches!(Snapshot::load(&path), Err(SnapshotError::TooLarge { .. })));
    /// let snapshot = Snapshot::load_at_most(&path, Snapshot::MOST_BYTES, 1 << 40)?;
    /// assert_eq!(snapshot.allocated(), 1 << 33);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load_at_most(
        path: impl AsRef<Path>,
        most_bytes: u64,
        most_ids: u64,
    ) -> Result<Self, SnapshotError> {
        let path = path.as_ref();
        let file = File::open(path)
            .map_err(|source| failed(format!("opening the snapshot {}", path.display()), source))?;
        Self::read_from_at_most(file, most_bytes, most_ids)
    }
}

/// Makes a file of these bytes, or replaces the one that is there: all or nothing, and durable.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    by_way_of_another(path, bytes, |beside| fs::rename(beside, path))
}

/// Makes a file of these bytes unless there is one: all or nothing, and durable.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] among others.
pub(in crate::ids) fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    by_way_of_another(path, bytes, |beside| fs::hard_link(beside, path))
}

fn by_way_of_another(
    path: &Path,
    bytes: &[u8],
    put: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let (file, beside) = create_beside(path)?;
    let result = fill(file, bytes).and_then(|()| put(&beside));
    // After a rename it is not there; after an error that one matters.
    let _ = fs::remove_file(&beside);
    result?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn fill(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

/// A new file in the same folder.
fn create_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let mut name = OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        name.push(format!(".{}-{number}.new", process::id()));
        let beside = path.with_file_name(name);
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&beside)
        {
            Ok(file) => return Ok((file, beside)),
            // Left by a process of the same number that was stopped in the middle.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

fn failed(what: String, source: io::Error) -> SnapshotError {
    SnapshotError::Io { what, source }
}
