//! Why there is no cache or no object, and what a put may find wrong.

use core::convert::Infallible;

use crate::os::OsError;
use crate::pages::PoolError;

/// Why there is no cache, or no object. `E` is the error of a typed cache's constructor; beside it an error owns no memory.
///
/// ```
/// use larder::objects::{Family, ObjectCache, ObjectError};
/// let family = Family::new()?;
/// let none = ObjectCache::new(&family, || ());
/// assert!(matches!(none, Err(ObjectError::Layout { size: 0, .. })));
/// let small = ObjectCache::builder().limit_bytes(1).build(&family, || 0_u64)?;
/// assert!(matches!(small.get(), Err(ObjectError::Limit { limit: 1, .. })));
/// let cache = ObjectCache::<u64, &str>::try_new(&family, || Err("no disk"))?;
/// let error: ObjectError<&str> = cache.get().unwrap_err();
/// assert_eq!(error.to_string(), "object cache: the constructor failed: no disk");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError<E = Infallible> {
    /// Objects that no cache can hold.
    #[error(
        "object cache: objects of {size} bytes aligned to {align} were asked for; a cache holds 1 byte to 4 MiB, aligned to at most a page. Take a run of pages for more"
    )]
    Layout {
        /// Bytes of an object.
        size: usize,
        /// Its alignment.
        align: usize,
    },
    /// The family has as many caches as it can number.
    #[error("object cache: the family has {most} caches already; drop one or make another family")]
    TooMany {
        /// How many it can have.
        most: usize,
    },
    /// The cache's own limit.
    #[error(
        "object cache: a slab of {bytes} bytes is needed, but the cache's limit of {limit} bytes is in use; raise it or put objects back"
    )]
    Limit {
        /// Bytes of a slab.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// There are no pages for a slab, although all caches of the family gave up what they could.
    #[error("object cache: no pages for a slab: {0}")]
    Pages(PoolError),
    /// The system gave no memory for what must be known of a cache or a slab.
    #[error("object cache: {0}")]
    System(OsError),
    /// The constructor of a [`RawCache`](super::RawCache) refused.
    #[error("object cache: the constructor failed")]
    Refused,
    /// A typed constructor's error.
    #[error("object cache: the constructor failed: {0}")]
    Constructor(E),
}

impl<E> From<PoolError> for ObjectError<E> {
    fn from(error: PoolError) -> Self {
        Self::Pages(error)
    }
}

impl<E> From<OsError> for ObjectError<E> {
    fn from(error: OsError) -> Self {
        Self::System(error)
    }
}

impl ObjectError {
    /// The same of a cache with another constructor.
    pub(super) fn of<E>(self) -> ObjectError<E> {
        match self {
            Self::Layout { size, align } => ObjectError::Layout { size, align },
            Self::TooMany { most } => ObjectError::TooMany { most },
            Self::Limit { bytes, limit } => ObjectError::Limit { bytes, limit },
            Self::Pages(error) => ObjectError::Pages(error),
            Self::System(error) => ObjectError::System(error),
            Self::Refused => ObjectError::Refused,
        }
    }
}

/// A pointer that was put where it does not belong.
///
/// ```
/// use larder::objects::{Family, Misuse};
/// let family = Family::new()?;
/// let foreign = family.large_bytes((&mut 0_u8).into());
/// assert!(matches!(foreign, Err(Misuse::Foreign { .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misuse {
    /// The address is not of this cache.
    #[error("object cache: {addr:#x} was put, which is no object of this cache")]
    Foreign {
        /// The address.
        addr: usize,
    },
    /// The address lies in a slab of this cache, but no object begins there.
    #[error(
        "object cache: {addr:#x} was put, which lies inside an object of this cache, not at its start"
    )]
    Misaligned {
        /// The address.
        addr: usize,
    },
    /// The object is free already.
    #[error("object cache: {addr:#x} was put twice")]
    Twice {
        /// The address.
        addr: usize,
    },
}
