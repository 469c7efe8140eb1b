//! Files in memory.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::PoisonError;

use super::storage::Storage;
use crate::key::FileId;
use crate::sync::Stored;
use larder::internal::Mutex;

/// Bytes of a piece.
const PIECE: usize = 4096;

/// Files in memory, for tests and for what need not last. Only pieces of 4 KiB that were written to take memory: a write far behind
/// the end leaves a hole, which reads as zeroes. A call looks each of its pieces up, under one lock of the storage.
///
/// ```
/// use larder_cache::{FileId, MemoryStorage, Storage};
/// let storage = MemoryStorage::default();
/// storage.write(FileId(1), 2, b"ab")?;
/// let mut all = [9; 5];
/// assert_eq!(storage.read(FileId(1), 0, &mut all)?, 4);
/// assert_eq!(all, [0, 0, b'a', b'b', 9]);
/// storage.write(FileId(1), 1 << 60, b"far out")?;
/// assert!(storage.write(FileId(1), u64::MAX, b"too far").is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct MemoryStorage {
    files: Mutex<Stored<BTreeMap<FileId, Pieces>>>,
}

/// A file: the pieces that were written to, by number.
#[derive(Debug, Default)]
struct Pieces {
    pieces: HashMap<u64, Box<[u8]>>,
    /// Bytes of it.
    end: u64,
}

/// Where the byte at `offset` is: its piece, the place in there, and how many of `wanted` bytes the piece has.
fn place(offset: u64, wanted: usize) -> (u64, usize, usize) {
    let within = (offset % PIECE as u64) as usize;
    (offset / PIECE as u64, within, wanted.min(PIECE - within))
}

impl Pieces {
    fn read(&self, offset: u64, into: &mut [u8]) -> usize {
        let there = self.end.saturating_sub(offset).min(into.len() as u64) as usize;
        let mut have = 0;
        while have < there {
            let (piece, within, len) = place(offset + have as u64, there - have);
            let part = &mut into[have..have + len];
            match self.pieces.get(&piece) {
                Some(piece) => part.copy_from_slice(&piece[within..within + len]),
                None => part.fill(0),
            }
            have += len;
        }
        there
    }

    /// Writes as much as there is memory for. Returns how much, which is 0 only without memory or of nothing.
    fn write(&mut self, offset: u64, from: &[u8]) -> usize {
        let mut have = 0;
        while have < from.len() {
            let (piece, within, len) = place(offset + have as u64, from.len() - have);
            let Some(bytes) = self.piece(piece) else {
                break;
            };
            bytes[within..within + len].copy_from_slice(&from[have..have + len]);
            have += len;
        }
        if have > 0 {
            self.end = self.end.max(offset + have as u64);
        }
        have
    }

    fn piece(&mut self, number: u64) -> Option<&mut [u8]> {
        if !self.pieces.contains_key(&number) {
            let mut piece = Vec::new();
            piece.try_reserve_exact(PIECE).ok()?;
            piece.resize(PIECE, 0);
            self.pieces.try_reserve(1).ok()?;
            self.pieces.insert(number, piece.into_boxed_slice());
        }
        self.pieces.get_mut(&number).map(|piece| &mut **piece)
    }
}

impl Storage for MemoryStorage {
    fn read(&self, file: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(files.0.get(&file).map_or(0, |file| file.read(offset, into)))
    }

    fn write(&self, file: FileId, offset: u64, from: &[u8]) -> io::Result<usize> {
        if offset.checked_add(from.len() as u64).is_none() {
            let text = format!(
                "storage: {} bytes at {offset} of file {} end behind 2^64 - 1, where no file can; write them further in front",
                from.len(),
                file.0
            );
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        match files.0.entry(file).or_default().write(offset, from) {
            0 if !from.is_empty() => Err(io::ErrorKind::OutOfMemory.into()),
            written => Ok(written),
        }
    }

    fn sync(&self, _: FileId) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    const FILE: FileId = FileId(1);

    #[test]
    fn only_what_was_written_takes_memory() {
        let storage = MemoryStorage::default();
        let far = (1 << 60) - 3;
        assert_eq!(storage.write(FILE, far, b"across").unwrap(), 6);
        assert_eq!(storage.write(FILE, 10_000, b"near").unwrap(), 4);
        let mut seen = [9; 9];
        assert_eq!(storage.read(FILE, far - 1, &mut seen).unwrap(), 7);
        assert_eq!(&seen, b"\0across\x09\x09");
        // over a hole and into a piece
        let mut seen = [9; 10_002];
        assert_eq!(storage.read(FILE, 0, &mut seen).unwrap(), 10_002);
        assert!(seen[..10_000].iter().all(|&byte| byte == 0));
        assert_eq!(&seen[10_000..], b"ne");
        assert_eq!(storage.files.lock().unwrap().0[&FILE].pieces.len(), 3);
    }

    #[test]
    fn places_that_no_file_has_are_refused_and_read_as_the_end() {
        let storage = MemoryStorage::default();
        let error = storage.write(FILE, u64::MAX - 1, b"two").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(
            error
                .to_string()
                .contains("at 18446744073709551614 of file 1")
        );
        assert_eq!(storage.read(FILE, u64::MAX, &mut [0; 9]).unwrap(), 0);
        assert_eq!(storage.write(FILE, u64::MAX - 3, b"end").unwrap(), 3);
        let mut seen = [0; 9];
        assert_eq!(storage.read(FILE, u64::MAX - 3, &mut seen).unwrap(), 3);
        assert_eq!(&seen[..3], b"end");
        // nothing written is no longer file
        assert_eq!(storage.write(FileId(2), 100, b"").unwrap(), 0);
        assert_eq!(storage.read(FileId(2), 0, &mut seen).unwrap(), 0);
    }
}
