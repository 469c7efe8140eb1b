//! The bytes of a snapshot. Everything is little-endian.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `larderID` |
//! | 8 | 2 | version: 1 |
//! | 10 | 1 | 1 if there is a cursor, else 0 |
//! | 11 | 1 | length of the rule's text |
//! | 12 | 8 | length of the whole, checksum included |
//! | 20, 28 | 8 each | first and last identifier of the range |
//! | 36 | 8 | how many are allocated |
//! | 44 | 8 | the cursor, or 0 |
//! | 52 | | the rule's text, UTF-8 |
//! | | | the body: see `body.rs` |
//! | end - 4 | 4 | CRC-32 (ISO-HDLC) of everything before |
//!
//! A file that is cut has not the length that it says; one in which any 32 neighbouring bits changed, so any bit, has
//! another checksum. That does not protect against a change that comes with a new checksum: so what passes is checked
//! all the same, and takes no more memory than the bytes.

use alloc::string::String;
use alloc::vec::Vec;

use super::body::append;
use super::error::no_memory;
use super::{Snapshot, SnapshotError};
use crate::ids::IdRange;

const MAGIC: &[u8; 8] = b"larderID";
const VERSION: u16 = 1;
const HEADER: usize = 52;
const CHECKSUM: usize = 4;
/// Bytes of the longest text of a rule.
pub(super) const MOST_NAME: usize = 255;

impl Snapshot {
    /// The snapshot as bytes.
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`](crate::ids::IdError::OutOfMemory).
    pub fn to_bytes(&self) -> Result<Vec<u8>, SnapshotError> {
        let length = HEADER + self.rule.len() + self.body.len() + CHECKSUM;
        let mut out = Vec::new();
        out.try_reserve_exact(length).map_err(no_memory)?;
        append(&mut out, MAGIC)?;
        append(&mut out, &VERSION.to_le_bytes())?;
        // A rule's text has at most 255 bytes.
        append(
            &mut out,
            &[self.cursor.is_some().into(), self.rule.len() as u8],
        )?;
        for number in [
            length as u64,
            self.range.first(),
            self.range.last(),
            self.allocated,
            self.cursor.unwrap_or_default(),
        ] {
            append(&mut out, &number.to_le_bytes())?;
        }
        append(&mut out, self.rule.as_bytes())?;
        append(&mut out, &self.body)?;
        let checksum = crc32fast::hash(&out);
        append(&mut out, &checksum.to_le_bytes())?;
        Ok(out)
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote, of at most [`MOST_IDS`](Self::MOST_IDS) identifiers. Takes at
    /// most as much memory as `bytes`; what [`restore`](Self::restore) takes then is another matter.
    ///
    /// # Errors
    /// [`SnapshotError::Foreign`], [`SnapshotError::Version`], [`SnapshotError::Damaged`],
    /// [`SnapshotError::TooLarge`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SnapshotError> {
        Self::from_bytes_at_most(bytes, Self::MOST_IDS)
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote, of at most `most_ids` identifiers. A few bytes can stand for
    /// very many identifiers, and restoring those takes memory and time.
    ///
    /// # Errors
    /// As [`from_bytes`](Self::from_bytes).
    ///
    /// ```
    /// use core::cell::RefCell;
    /// use larder::ids::{Ids, Snapshot, SnapshotError, rule::Lowest};
    ///
    /// let mut tags = Ids::new(0u32..1000, Lowest)?;
    /// tags.reserve(0u32..200)?;
    /// let bytes = Snapshot::of(&RefCell::new(tags), &Lowest)?.to_bytes()?;
    ///
    /// // From a sender that may have 100: nothing was restored, and nothing large was made.
    /// let refused = Snapshot::from_bytes_at_most(&bytes, 100);
    /// assert!(matches!(refused, Err(SnapshotError::TooLarge { found: 200, .. })));
    /// assert_eq!(Snapshot::from_bytes_at_most(&bytes, 200)?.allocated(), 200);
    /// # Ok::<(), SnapshotError>(())
    /// ```
    pub fn from_bytes_at_most(bytes: &[u8], most_ids: u64) -> Result<Self, SnapshotError> {
        let damaged = |what| SnapshotError::Damaged { what };
        if bytes.get(..MAGIC.len()) != Some(MAGIC) {
            return Err(SnapshotError::Foreign);
        }
        let Some((covered, checksum)) = bytes.split_last_chunk::<CHECKSUM>() else {
            return Err(damaged("it is cut off"));
        };
        if covered.len() < HEADER {
            return Err(damaged("it is cut off"));
        }
        let version = [covered[8], covered[9]];
        let found = u16::from_le_bytes(version);
        if found != VERSION {
            return Err(SnapshotError::Version {
                found,
                known: VERSION,
            });
        }
        let number = |at: usize| {
            let bytes = covered[at..].first_chunk().copied();
            u64::from_le_bytes(bytes.unwrap_or_default())
        };
        if number(12) != bytes.len() as u64 {
            return Err(damaged("it has not the length that it says"));
        }
        if crc32fast::hash(covered) != u32::from_le_bytes(*checksum) {
            return Err(damaged("the checksum does not agree"));
        }
        let (rule, body) = covered[HEADER..]
            .split_at_checked(covered[11].into())
            .ok_or(damaged("the rule's name is cut off"))?;
        let rule = str::from_utf8(rule).map_err(|_| damaged("the rule's name is no text"))?;
        let cursor = match (covered[10], number(44)) {
            (0, 0) => None,
            (1, cursor) => Some(cursor),
            _ => return Err(damaged("the mark of the cursor is unknown")),
        };
        let mut owned = Vec::new();
        owned.try_reserve_exact(body.len()).map_err(no_memory)?;
        owned.extend_from_slice(body);
        let snapshot = Self {
            range: IdRange::new(number(20), number(28))?,
            rule: String::from(rule),
            cursor,
            allocated: number(36),
            body: owned,
        };
        snapshot.validated(most_ids)
    }
}
