//! Why a cache or an object could not be had.

use crate::os::OsError;
use crate::pages::PoolError;

/// Why a cache could not be made.
///
/// ```
/// use larder::objects::{CreateError, Family, ObjectCache};
/// let none = ObjectCache::new(&Family::new()?, || ());
/// assert!(matches!(none, Err(CreateError::Layout { size: 0, .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// Objects that no cache can hold.
    #[error(
        "object cache: objects of {size} bytes aligned to {align} were asked for; a cache holds 1 byte to 1 MiB, aligned to at most a page. Take a run of pages for more"
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
    /// The system would not give memory for what the cache must know.
    #[error("object cache: {0}")]
    System(#[from] OsError),
}

/// Why there is no object.
///
/// ```
/// use larder::objects::{Family, GetError, ObjectCache, ObjectError};
/// let cache = ObjectCache::builder().limit_bytes(1).build(&Family::new()?, || 0_u64)?;
/// assert!(matches!(cache.get(), Err(ObjectError::Get(GetError::Limit { limit: 1, .. }))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GetError {
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
    /// The pages that slabs are made of could not be had, although all caches of the family gave up what they could.
    #[error("object cache: no pages for a slab: {0}")]
    Pages(#[from] PoolError),
    /// The system would not give memory for what must be known of a slab.
    #[error("object cache: {0}")]
    System(#[from] OsError),
    /// The constructor refused, or it panicked.
    #[error("object cache: the constructor failed")]
    Constructor,
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
