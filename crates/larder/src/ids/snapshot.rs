//! Snapshot and restore: the set of allocated identifiers as bytes that show when they were torn or altered.
//!
//! | bytes | little-endian |
//! |---|---|
//! | 8, 2 | `larderID`, the version of the format |
//! | 1, 1 | whether there is a cursor; the length of the rule's name |
//! | 8 each | length of all; first and last of the range; number of identifiers; cursor |
//! | | the rule's name |
//! | | for each run of identifiers its distance from the first place that it can have, and its length less one, as LEB128 |
//! | 4 | CRC-32 of all before |

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Allocate, Id, IdError, IdRange, Ids, Rule};

const MAGIC: &[u8; 8] = b"larderID";
const VERSION: u16 = 2;
const HEADER: usize = 52;
const CHECKSUM: usize = 4;

/// Which identifiers of a range are allocated, under which rule, and where the rule's cursor stands.
///
/// Bytes: 56, the rule's name, and 2 to 20 for each run of identifiers. The allocated set comes back exactly. Of the order
/// among the free ones only the cursor of a rule that has one is kept: first-freed, last-freed and resting rules begin
/// anew, with nothing at rest.
///
/// Taken of a space that other threads use, it says of each identifier what was so at some moment while it was taken.
///
/// ```
/// use core::cell::RefCell;
/// use larder::ids::{Ids, Snapshot, rule::Cyclic};
///
/// let pids = RefCell::new(Ids::rebuild(1u32..32768, Cyclic, [1, 2, 3, 700])?);
/// let bytes = Snapshot::of(&pids, &Cyclic)?.to_bytes()?;
/// assert_eq!(bytes.len(), 67);
///
/// let snapshot = Snapshot::from_bytes(&bytes)?;
/// assert_eq!((snapshot.rule(), snapshot.allocated()), ("Cyclic", 4));
/// let again: Ids<_, u32> = snapshot.restore(Cyclic)?;
/// assert!(again.iter().eq([1, 2, 3, 700]));
///
/// assert!(Snapshot::from_bytes(&bytes[..66]).is_err(), "torn");
/// let mut altered = bytes;
/// altered[60] ^= 1;
/// assert!(Snapshot::from_bytes(&altered).is_err());
/// # Ok::<(), larder::ids::IdError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    range: IdRange,
    rule: String,
    cursor: Option<u64>,
    allocated: u64,
    /// First and last of each run, ascending; between two runs at least one identifier is free.
    runs: Vec<IdRange>,
}

impl Snapshot {
    /// Most identifiers that are accepted unless the caller says otherwise: as a bitmap they take 512 MiB.
    pub const MOST_IDS: u64 = 1 << 32;

    /// A snapshot of `ids`, which are handed out by `rule`. Takes time in proportion to the runs of identifiers.
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`]; [`IdError::Invalid`] for a rule whose name has more than 255 bytes.
    pub fn of<A: Allocate>(ids: &A, rule: &impl Rule) -> Result<Self, IdError> {
        let (range, mut runs) = (ids.range(), Vec::new());
        let id = |at: u64| A::Id::from_u64(range.first() + at);
        let offset = |id: A::Id| id.to_u64() - range.first();
        for run in range.runs(
            |at| ids.next_allocated(id(at)).map(offset),
            |at| ids.next_free(id(at)).map(offset),
        ) {
            push(&mut runs, run)?;
        }
        let rule = String::from(name(&format!("{rule:?}")));
        let cursor = ids.cursor().map(Id::to_u64);
        Self::checked(range, rule, cursor, runs, u64::MAX)
    }

    /// A snapshot of at most so many identifiers, if its parts agree.
    pub(super) fn checked(
        range: IdRange,
        rule: String,
        cursor: Option<u64>,
        runs: Vec<IdRange>,
        most: u64,
    ) -> Result<Self, IdError> {
        if rule.len() > usize::from(u8::MAX) {
            return Err(IdError::Invalid {
                what: format!("a rule's name of {} bytes in a snapshot", rule.len()),
                advice: "give the rule a name of at most 255 bytes",
            });
        }
        cursor.map(|id| range.offset(id)).transpose()?;
        let apart = |pair: &[IdRange]| pair[0].last().saturating_add(1) < pair[1].first();
        let inside = |run: &IdRange| range.contains(run.first()) && range.contains(run.last());
        if !runs.windows(2).all(apart) || !runs.iter().all(inside) {
            return Err(damaged("a run is out of order or outside of the range"));
        }
        let count: u128 = runs.iter().map(|run| run.len()).sum();
        match u64::try_from(count) {
            Ok(allocated) if allocated <= most => Ok(Self {
                range,
                rule,
                cursor,
                allocated,
                runs,
            }),
            count => Err(IdError::TooLarge {
                found: count.unwrap_or(u64::MAX),
                most,
            }),
        }
    }

    /// The range that the identifiers are of.
    pub fn range(&self) -> IdRange {
        self.range
    }

    /// The rule's name. Its parameters are not kept: they may be secret, as the seed of a random rule is.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// The identifier that was handed out last, for rules that go on from there.
    pub fn cursor(&self) -> Option<u64> {
        self.cursor
    }

    /// How many identifiers are allocated.
    pub fn allocated(&self) -> u64 {
        self.allocated
    }

    /// The allocated identifiers as runs, ascending; no two of them touch.
    pub fn runs(&self) -> impl Iterator<Item = IdRange> + '_ {
        self.runs.iter().copied()
    }

    /// The allocated identifiers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.runs().flat_map(|run| run.first()..=run.last())
    }

    /// Identifiers of one owner that are allocated as they were.
    ///
    /// # Errors
    /// [`IdError::OtherRule`] for a rule of another name, [`IdError::Invalid`] where the identifiers do not fit the integer,
    /// [`IdError::OutOfMemory`].
    pub fn restore<R: Rule, T: Id>(&self, rule: R) -> Result<Ids<R, T>, IdError> {
        self.fits::<T>()?;
        let given = format!("{rule:?}");
        if name(&given) != self.rule {
            return Err(IdError::OtherRule {
                saved: self.rule.clone(),
                given: String::from(name(&given)),
            });
        }
        let mut ids = Ids::over(self.range, rule)?;
        for run in self.runs() {
            ids.reserve_range(run)?;
        }
        if let Some(cursor) = self.cursor {
            ids.set_cursor(T::from_u64(cursor))?;
        }
        Ok(ids)
    }

    /// Takes the identifiers one by one in a space that exists: all, or none when one cannot be had.
    ///
    /// # Errors
    /// As [`Allocate::alloc_at`].
    pub fn restore_into<A: Allocate>(&self, ids: &A) -> Result<(), IdError> {
        self.fits::<A::Id>()?;
        let ours = || self.iter().map(A::Id::from_u64);
        for (done, id) in ours().enumerate() {
            if let Err(error) = ids.alloc_at(id) {
                for id in ours().take(done) {
                    let _ = ids.free(id);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn fits<T: Id>(&self) -> Result<(), IdError> {
        let last = self.range.last();
        if T::from_u64(last).to_u64() == last {
            return Ok(());
        }
        Err(IdError::Invalid {
            what: format!("a restored identifier {last} in a smaller integer"),
            advice: "restore into the integer that the snapshot was taken of",
        })
    }

    /// The snapshot as bytes.
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, IdError> {
        let mut out = Vec::new();
        append(&mut out, MAGIC)?;
        append(&mut out, &VERSION.to_le_bytes())?;
        append(
            &mut out,
            &[self.cursor.is_some().into(), self.rule.len() as u8],
        )?;
        let (first, last) = (self.range.first(), self.range.last());
        let cursor = self.cursor.unwrap_or_default();
        for number in [0, first, last, self.allocated, cursor] {
            append(&mut out, &number.to_le_bytes())?;
        }
        append(&mut out, self.rule.as_bytes())?;
        let mut from = first;
        for run in &self.runs {
            append_number(&mut out, run.first() - from)?;
            append_number(&mut out, run.last() - run.first())?;
            // After the last run this may wrap, and is not used.
            from = run.last().wrapping_add(2);
        }
        let length = (out.len() + CHECKSUM) as u64;
        out[12..20].copy_from_slice(&length.to_le_bytes());
        let checksum = crc32fast::hash(&out);
        append(&mut out, &checksum.to_le_bytes())?;
        Ok(out)
    }

    /// The snapshot that [`to_bytes`](Self::to_bytes) wrote, of at most [`MOST_IDS`](Self::MOST_IDS) identifiers.
    ///
    /// # Errors
    /// [`IdError::Damaged`] for bytes that are no snapshot, not a whole one or an altered one; [`IdError::Version`],
    /// [`IdError::TooLarge`], [`IdError::OutOfMemory`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, IdError> {
        Self::from_bytes_at_most(bytes, Self::MOST_IDS)
    }

    /// The same with another limit: few bytes can stand for many identifiers.
    ///
    /// # Errors
    /// As [`from_bytes`](Self::from_bytes).
    pub fn from_bytes_at_most(bytes: &[u8], most_ids: u64) -> Result<Self, IdError> {
        if bytes.get(..MAGIC.len()) != Some(MAGIC) {
            return Err(damaged("it does not begin as one"));
        }
        let Some((covered, checksum)) = bytes.split_last_chunk::<CHECKSUM>() else {
            return Err(damaged("it is cut off"));
        };
        let Some((header, rest)) = covered.split_first_chunk::<HEADER>() else {
            return Err(damaged("it is cut off"));
        };
        let found = u16::from_le_bytes([header[8], header[9]]);
        if found != VERSION {
            return Err(IdError::Version {
                found,
                known: VERSION,
            });
        }
        let number = |at: usize| {
            let bytes = header[at..].first_chunk().copied();
            u64::from_le_bytes(bytes.unwrap_or_default())
        };
        if number(12) != bytes.len() as u64 {
            return Err(damaged("it has not the length that it says"));
        }
        if crc32fast::hash(covered) != u32::from_le_bytes(*checksum) {
            return Err(damaged("the checksum does not agree"));
        }
        let (rule, body) = rest
            .split_at_checked(header[11].into())
            .ok_or(damaged("the rule's name is cut off"))?;
        let rule = str::from_utf8(rule).map_err(|_| damaged("the rule's name is no text"))?;
        let cursor = match (header[10], number(44)) {
            (0, 0) => None,
            (1, cursor) => Some(cursor),
            _ => return Err(damaged("the mark of the cursor is unknown")),
        };
        let range = IdRange::new(number(20), number(28))?;
        let runs = read_runs(body, range)?;
        let read = Self::checked(range, String::from(rule), cursor, runs, most_ids)?;
        if read.allocated != number(36) {
            return Err(damaged("it has not as many identifiers as it says"));
        }
        Ok(read)
    }
}

/// The runs of a body, each inside of the range and beyond the one before.
fn read_runs(mut body: &[u8], range: IdRange) -> Result<Vec<IdRange>, IdError> {
    let mut runs = Vec::new();
    let mut from = u128::from(range.first());
    while !body.is_empty() {
        let first = from + u128::from(read_number(&mut body)?);
        let last = first + u128::from(read_number(&mut body)?);
        let (Ok(first), Ok(end)) = (u64::try_from(first), u64::try_from(last)) else {
            return Err(damaged("a run lies outside of the range"));
        };
        push(&mut runs, IdRange::new(first, end)?)?;
        from = last + 2;
    }
    Ok(runs)
}

fn read_number(body: &mut &[u8]) -> Result<u64, IdError> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = body
            .split_first()
            .ok_or(damaged("it ends in the middle of a run"))?;
        *body = rest;
        let bits = u64::from(byte & 0x7F);
        if bits << shift >> shift != bits {
            break;
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(damaged("a number is too large"))
}

fn append_number(out: &mut Vec<u8>, mut value: u64) -> Result<(), IdError> {
    while value > 0x7F {
        append(out, &[value as u8 | 0x80])?;
        value >>= 7;
    }
    append(out, &[value as u8])
}

fn append(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), IdError> {
    out.try_reserve(bytes.len())
        .map_err(|_| IdError::OutOfMemory)?;
    out.extend_from_slice(bytes);
    Ok(())
}

fn push(runs: &mut Vec<IdRange>, run: IdRange) -> Result<(), IdError> {
    runs.try_reserve(1).map_err(|_| IdError::OutOfMemory)?;
    runs.push(run);
    Ok(())
}

fn damaged(what: &'static str) -> IdError {
    IdError::Damaged { what }
}

/// `Rested` of `Rested { rule: Lowest, rest: 7 }`.
fn name(rule: &str) -> &str {
    rule.split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
        .unwrap_or_default()
}
