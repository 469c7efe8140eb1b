//! Snapshot and restore: the allocation map as bytes that show when they were torn or altered.

mod body;
mod error;
#[cfg(feature = "std")]
mod file;
mod format;
mod runs;

pub use error::SnapshotError;
#[cfg(feature = "std")]
pub(super) use file::create;
pub use runs::SnapshotRuns;

use alloc::string::String;
use alloc::vec::Vec;

use self::body::{Decoder, Encoder};
use super::{Allocate, IdRange, Ids, Rule};

/// Which identifiers of a range are allocated, under which rule, and where the rule's cursor stands.
///
/// Bytes: 56, the rule's name, and for every 65,536 identifiers that are not all free or all allocated at most 8 KiB
/// and a few. The live set comes back exactly. Of the order among the free ones only the cursor of a rule that has one
/// is kept: first-freed, last-freed and resting rules begin anew, with nothing at rest.
///
/// Taken of a space that other threads use, it says of each identifier what was so at some moment while it was taken.
///
/// ```
/// use core::cell::RefCell;
/// use larder::ids::{Ids, Snapshot, rule::Cyclic};
///
/// let pids = RefCell::new(Ids::rebuild(1u32..32768, Cyclic, [1, 2, 3, 700])?);
/// let bytes = Snapshot::of(&pids, &Cyclic)?.to_bytes()?;
/// assert_eq!(bytes.len(), 70);
///
/// let snapshot = Snapshot::from_bytes(&bytes)?;
/// assert_eq!((snapshot.rule(), snapshot.allocated()), ("Cyclic", 4));
/// let again = snapshot.restore(Cyclic)?;
/// assert!(again.iter().eq([1, 2, 3, 700]));
///
/// assert!(Snapshot::from_bytes(&bytes[..69]).is_err(), "torn");
/// let mut altered = bytes;
/// altered[60] ^= 1;
/// assert!(Snapshot::from_bytes(&altered).is_err());
/// # Ok::<(), larder::ids::SnapshotError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    range: IdRange,
    rule: String,
    cursor: Option<u64>,
    allocated: u64,
    /// What [`Encoder`] wrote; always valid for the range.
    body: Vec<u8>,
}

impl Snapshot {
    /// Most identifiers that are accepted unless the caller says otherwise: as a bitmap they take 512 MiB.
    pub const MOST_IDS: u64 = 1 << 32;

    /// A snapshot of `ids`, which are handed out by `rule`. Takes time in proportion to the runs of identifiers.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, Snapshot, rule::Cyclic};
    /// let pids = RefCell::new(Ids::rebuild(1u32..32768, Cyclic, [1, 2])?);
    /// let snapshot = Snapshot::of(&pids, &Cyclic)?;
    /// pids.borrow_mut().free(1)?;
    /// assert_eq!(snapshot.allocated(), 2, "as it was");
    /// # Ok::<(), larder::ids::SnapshotError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`](super::IdError::OutOfMemory); [`SnapshotError::RuleName`] for a rule whose name has more than 255 bytes.
    pub fn of<A: Allocate>(ids: &A, rule: &impl Rule) -> Result<Self, SnapshotError> {
        let mut from = Some(ids.range().first());
        let runs = core::iter::from_fn(|| {
            loop {
                let first = ids.next_allocated(from?)?;
                let end = ids.next_free(first);
                // What was just seen to be free is not looked at again, so that no two runs touch.
                from = end.and_then(|end| end.checked_add(1));
                match end {
                    Some(end) if end == first => {}
                    Some(end) => return Some((first, end - 1)),
                    None => return Some((first, ids.range().last())),
                }
            }
        });
        let rule = String::from(name(&alloc::format!("{rule:?}")));
        Self::from_runs(ids.range(), rule, ids.cursor(), runs)
    }

    /// A snapshot of these runs, which must be ascending and must not touch.
    pub(super) fn from_runs(
        range: IdRange,
        rule: String,
        cursor: Option<u64>,
        runs: impl Iterator<Item = (u64, u64)>,
    ) -> Result<Self, SnapshotError> {
        if rule.len() > format::MOST_NAME {
            return Err(SnapshotError::RuleName { length: rule.len() });
        }
        cursor.map(|id| range.offset(id)).transpose()?;
        let mut encoder = Encoder::new()?;
        for (first, last) in runs {
            encoder.run(range.offset(first)?, range.offset(last)?)?;
        }
        let (allocated, body) = encoder.finish()?;
        Ok(Self {
            range,
            rule,
            cursor,
            allocated,
            body,
        })
    }

    /// The range that the identifiers are of.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{IdRange, Ids, Snapshot, rule::Cyclic};
    /// # let pids = RefCell::new(Ids::new(1u32..32768, Cyclic)?);
    /// assert_eq!(Snapshot::of(&pids, &Cyclic)?.range(), IdRange::new(1, 32767)?);
    /// # Ok::<(), larder::ids::SnapshotError>(())
    /// ```
    pub fn range(&self) -> IdRange {
        self.range
    }

    /// The rule's name. Its parameters are not kept: they may be secret, as the seed of a random rule is.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, Snapshot, rule::Random};
    /// # let ports = RefCell::new(Ids::new(1024u16..=65535, Random::new([7; 32]))?);
    /// assert_eq!(Snapshot::of(&ports, &Random::new([7; 32]))?.rule(), "Random");
    /// # Ok::<(), larder::ids::SnapshotError>(())
    /// ```
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// The identifier that the rule handed out last, for rules that go on from there.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, Snapshot, rule::Cyclic};
    /// let mut pids = Ids::new(1u32..32768, Cyclic)?;
    /// pids.set_cursor(300)?;
    /// let snapshot = Snapshot::of(&RefCell::new(pids), &Cyclic)?;
    /// assert_eq!((snapshot.cursor(), snapshot.restore(Cyclic)?.alloc()?), (Some(300), 301));
    /// # Ok::<(), larder::ids::SnapshotError>(())
    /// ```
    pub fn cursor(&self) -> Option<u64> {
        self.cursor
    }

    /// How many identifiers are allocated.
    pub fn allocated(&self) -> u64 {
        self.allocated
    }

    /// The allocated identifiers as ranges, ascending; no two of them touch.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{IdRange, Ids, Snapshot, rule::Lowest};
    /// let ids = RefCell::new(Ids::rebuild(0u8..=255, Lowest, [4, 5, 9])?);
    /// let snapshot = Snapshot::of(&ids, &Lowest)?;
    /// assert!(snapshot.runs().eq([IdRange::new(4, 5)?, IdRange::new(9, 9)?]));
    /// assert_eq!(snapshot.allocated(), 3);
    /// # Ok::<(), larder::ids::SnapshotError>(())
    /// ```
    pub fn runs(&self) -> SnapshotRuns<'_> {
        let last = self.range.last() - self.range.first();
        SnapshotRuns::new(Decoder::new(&self.body, last), self.range)
    }

    /// The allocated identifiers, ascending.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, Snapshot, rule::Lowest};
    /// let ids = RefCell::new(Ids::rebuild(0u8..=255, Lowest, [4, 5, 9])?);
    /// assert!(Snapshot::of(&ids, &Lowest)?.iter().eq([4, 5, 9]));
    /// # Ok::<(), larder::ids::SnapshotError>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.runs().flat_map(|run| run.first()..=run.last())
    }

    /// A space of one owner with the same identifiers allocated. Its rule has the name of the one in the snapshot; the
    /// parameters may differ.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, Snapshot, SnapshotError, rule::{Cyclic, Lowest}};
    /// let ids = RefCell::new(Ids::rebuild(0u8..=255, Lowest, [4, 5, 9])?);
    /// let snapshot = Snapshot::of(&ids, &Lowest)?;
    /// assert_eq!(snapshot.restore(Lowest)?.allocated(), 3);
    /// assert!(matches!(snapshot.restore(Cyclic), Err(SnapshotError::Rule { .. })));
    /// # Ok::<(), larder::ids::SnapshotError>(())
    /// ```
    ///
    /// # Errors
    /// [`SnapshotError::Rule`] for another rule; [`IdError::OutOfMemory`](super::IdError::OutOfMemory).
    pub fn restore<R: Rule>(&self, rule: R) -> Result<Ids<R>, SnapshotError> {
        let given = alloc::format!("{rule:?}");
        if name(&given) != self.rule {
            return Err(SnapshotError::Rule {
                saved: self.rule.clone(),
                given: String::from(name(&given)),
            });
        }
        let mut ids = Ids::new(self.range, rule)?;
        for run in self.runs() {
            ids.reserve(run)?;
        }
        if let Some(cursor) = self.cursor {
            ids.set_cursor(cursor)?;
        }
        Ok(ids)
    }

    /// Allocates the same identifiers in `ids`, whatever their rule and range: all, or none if no other caller
    /// allocates meanwhile. Takes one call for each identifier.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Allocate, IdSpace, Ids, Snapshot, rule::{Any, Lowest}};
    /// let ids = RefCell::new(Ids::rebuild(0u8..=255, Lowest, [4, 5, 9])?);
    /// let wider = IdSpace::new(0u32..100_000, Any)?;
    /// Snapshot::of(&ids, &Lowest)?.restore_into(&wider)?;
    /// assert!(wider.iter().eq([4, 5, 9]));
    /// # Ok::<(), larder::ids::SnapshotError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::Taken`](super::IdError::Taken), [`IdError::OutOfRange`](super::IdError::OutOfRange), [`IdError::OutOfMemory`](super::IdError::OutOfMemory).
    pub fn restore_into<A: Allocate>(&self, ids: &A) -> Result<(), SnapshotError> {
        for (done, id) in self.iter().enumerate() {
            if let Err(error) = ids.alloc_at(id) {
                for id in self.iter().take(done) {
                    // Taken a moment ago, so it is there to be freed; without memory it stays.
                    let _ = ids.free(id);
                }
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Checks what is not known to come from an [`Encoder`].
    fn validated(self, most_ids: u64) -> Result<Self, SnapshotError> {
        if self.allocated > most_ids {
            return Err(SnapshotError::TooLarge {
                found: self.allocated,
                unit: "identifiers",
                most: most_ids,
            });
        }
        self.cursor.map(|id| self.range.offset(id)).transpose()?;
        let last = self.range.last() - self.range.first();
        let mut decoder = Decoder::new(&self.body, last);
        let mut count = 0u64;
        while let Some((first, last)) = decoder.run()? {
            count = count.saturating_add(last - first).saturating_add(1);
            if count > self.allocated {
                break;
            }
        }
        if count != self.allocated {
            return Err(SnapshotError::Damaged {
                what: "it has not as many identifiers as it says",
            });
        }
        Ok(self)
    }
}

/// A rule's name, from its `Debug` text.
fn name(rule: &str) -> &str {
    rule.split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
        .unwrap_or_default()
}
