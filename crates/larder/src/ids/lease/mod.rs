//! Blocks of identifiers leased from a durable counter (Hi-Lo): nothing repeats, whenever the machine stops.

#[cfg(feature = "std")]
mod file;
mod record;
#[cfg(all(test, feature = "std"))]
mod tests;

#[cfg(feature = "std")]
pub use file::{LeaseFile, LeaseFileError};
pub use record::LeaseRecord;

use alloc::format;
use core::num::NonZeroU64;

use super::{IdError, IdRange};

/// One number that outlives the program.
///
/// [`LeaseFile`] keeps it in a file; a row of a database or a key of etcd will do as well.
///
/// ```
/// use core::num::NonZeroU64;
/// use std::collections::BTreeMap;
/// use larder::ids::{Durable, IdRange, Lease};
///
/// /// A row of a table; here of one that lives no longer than the program.
/// struct Row<'a>(&'a mut BTreeMap<String, u64>);
///
/// impl Durable for Row<'_> {
///     type Error = std::io::Error;
///
///     fn load(&mut self) -> Result<Option<u64>, Self::Error> {
///         Ok(self.0.get("next-inode").copied())
///     }
///
///     fn store(&mut self, next: u64) -> Result<(), Self::Error> {
///         self.0.insert("next-inode".to_owned(), next);
///         Ok(())
///     }
/// }
///
/// let mut table = BTreeMap::new();
/// let block = NonZeroU64::new(50).unwrap();
/// let mut inodes = Lease::new(Row(&mut table), IdRange::new(1, 1 << 40)?, block)?;
/// assert_eq!(inodes.alloc()?, 1);
/// drop(inodes);
/// assert_eq!(table["next-inode"], 51, "stored before the first of the block was given");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Durable {
    /// Why it could not be read or written.
    type Error;

    /// The number that was stored last; `None` when none ever was. After a [`store`](Self::store) that failed or was
    /// cut short, what it was to store or what was there before, and nothing else.
    ///
    /// # Errors
    /// The number cannot be had. That must never be answered with `None`, for then identifiers repeat.
    fn load(&mut self) -> Result<Option<u64>, Self::Error>;

    /// Stores a number, and returns when it would survive the machine's stopping.
    ///
    /// # Errors
    /// It may or may not be stored.
    fn store(&mut self, next: u64) -> Result<(), Self::Error>;
}

impl<D: Durable + ?Sized> Durable for &mut D {
    type Error = D::Error;

    fn load(&mut self) -> Result<Option<u64>, D::Error> {
        (**self).load()
    }

    fn store(&mut self, next: u64) -> Result<(), D::Error> {
        (**self).store(next)
    }
}

/// Why a lease gave no identifier.
///
/// ```
/// use core::num::NonZeroU64;
/// use larder::ids::{IdRange, Lease, LeaseError, LeaseFile};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("next-inode");
/// let mut two = Lease::new(LeaseFile::open(&path)?, IdRange::new(1, 2)?, NonZeroU64::MIN)?;
/// assert_eq!((two.alloc()?, two.alloc()?), (1, 2));
/// assert!(matches!(two.alloc(), Err(LeaseError::UsedUp { .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError<E> {
    /// The store failed; no identifier of the block was handed out, and the next attempt tries again.
    #[error("the counter of identifiers: {0}")]
    Store(E),
    /// The store holds a number that no lease of this range stores.
    #[error(
        "the counter stands at {mark}, outside of {range}; open it with the range it was made for"
    )]
    Mark {
        /// What the store holds.
        mark: u64,
        /// The range that was asked for.
        range: IdRange,
    },
    /// Every identifier of the range was handed out, or skipped. They are never used again.
    #[error(
        "all identifiers of {range} were leased once, and a lease uses none again; lease a range with the same beginning and a later end"
    )]
    UsedUp {
        /// The range of the lease.
        range: IdRange,
    },
    /// The range cannot be leased.
    #[error(transparent)]
    Ids(#[from] IdError),
}

/// Identifiers that never repeat, even if the machine stops at any moment: each is larger than all before.
///
/// The counter is advanced by a block and made durable before the first identifier of the block is handed out; from
/// then on identifiers cost an addition. (TiDB, CockroachDB and Hibernate do the same.) After a crash the rest of the
/// block is skipped, at most [`block`](Self::new) identifiers; after [`close`](Self::close) none.
///
/// ```
/// use core::num::NonZeroU64;
/// use larder::ids::{IdRange, Lease, LeaseFile};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("next-inode");
/// let block = NonZeroU64::new(1000).unwrap();
/// let range = IdRange::new(1, 1 << 48)?;
/// let mut inodes = Lease::new(LeaseFile::open(&path)?, range, block)?;
/// assert_eq!((inodes.alloc()?, inodes.alloc()?), (1, 2));
/// drop(inodes);                                              // as in a crash
///
/// let mut inodes = Lease::new(LeaseFile::open(&path)?, range, block)?;
/// assert_eq!(inodes.alloc()?, 1001);
/// inodes.close()?;
/// assert_eq!(Lease::new(LeaseFile::open(&path)?, range, block)?.alloc()?, 1002);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Lease<D> {
    store: D,
    range: IdRange,
    block: u64,
    /// The next identifier.
    next: u64,
    /// Where the leased ones end; never below what the store holds.
    end: u64,
}

impl<D: Durable> Lease<D> {
    /// Goes on where the store says, or begins with the first of `range`. Leases `block` identifiers at a time: many
    /// make the store cheap, few make little to skip. It may be another number each time.
    ///
    /// # Errors
    /// [`LeaseError::Store`]; [`LeaseError::Mark`]; [`IdError::Invalid`] for a range up to 2^64 - 1, which leaves no
    /// number to say that all are used up.
    pub fn new(
        mut store: D,
        range: IdRange,
        block: NonZeroU64,
    ) -> Result<Self, LeaseError<D::Error>> {
        if range.last() == u64::MAX {
            return Err(LeaseError::Ids(IdError::Invalid {
                what: format!("a lease of {range}"),
                advice: "end the range before the largest number of 64 bits",
            }));
        }
        let next = match store.load().map_err(LeaseError::Store)? {
            None => range.first(),
            Some(mark) if mark == range.last() + 1 || range.contains(mark) => mark,
            Some(mark) => return Err(LeaseError::Mark { mark, range }),
        };
        Ok(Self {
            store,
            range,
            block: block.get(),
            next,
            end: next,
        })
    }

    /// The next identifier. Touches the store once a block.
    ///
    /// # Errors
    /// [`LeaseError::Store`]: no identifier is lost, and the next call tries again. [`LeaseError::UsedUp`] when all
    /// were handed out once.
    #[inline]
    pub fn alloc(&mut self) -> Result<u64, LeaseError<D::Error>> {
        if self.next == self.end {
            self.refill()?;
        }
        let id = self.next;
        self.next += 1;
        Ok(id)
    }

    #[cold]
    fn refill(&mut self) -> Result<(), LeaseError<D::Error>> {
        let left = self.range.last() + 1 - self.end;
        if left == 0 {
            return Err(LeaseError::UsedUp { range: self.range });
        }
        let end = self.end + left.min(self.block);
        self.store.store(end).map_err(LeaseError::Store)?;
        self.end = end;
        Ok(())
    }

    /// How many identifiers can be had before the store is touched: what a crash at this moment would skip.
    ///
    /// ```
    /// # use core::num::NonZeroU64;
    /// # use larder::ids::{IdRange, Lease, LeaseFile};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("next-inode");
    /// let block = NonZeroU64::new(50).ok_or("0")?;
    /// let mut inodes = Lease::new(LeaseFile::open(&path)?, IdRange::new(1, 1000)?, block)?;
    /// inodes.alloc()?;
    /// assert_eq!((inodes.leased(), inodes.left()), (49, 999));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn leased(&self) -> u64 {
        self.end - self.next
    }

    /// How many identifiers were never handed out or skipped.
    ///
    /// [`leased`](Self::leased) shows both.
    pub fn left(&self) -> u64 {
        self.range.last() + 1 - self.next
    }

    /// Ends without skipping any: gives the rest of the block back.
    ///
    /// # Errors
    /// [`LeaseError::Store`]: the rest of the block may be skipped.
    pub fn close(mut self) -> Result<(), LeaseError<D::Error>> {
        if self.next == self.end {
            return Ok(());
        }
        self.store.store(self.next).map_err(LeaseError::Store)
    }
}
