//! Why there is no pool, or no page.

use super::block::MAX_CLUSTER_PAGES;
use crate::os::OsError;

/// Why there is no pool, or no page. It owns no memory: it can be made when there is none, and a caller has nothing to drop.
///
/// ```
/// use larder::pages::{PagePool, PoolError};
/// let pool = PagePool::builder().limit_bytes(1 << 20).build()?;
/// assert!(matches!(pool.get_run(1000), Err(PoolError::Limit { pages: 1000, .. })));
/// assert_eq!(pool.get_run(0).err(), Some(PoolError::EmptyRun));
/// let none = PagePool::builder().limit_bytes(100).build().unwrap_err();
/// assert!(none.to_string().contains("does not fit one page"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// A number that is no cluster size.
    #[error(
        "cluster size '{pages}' is not 'auto' or a number of pages from 1 to {MAX_CLUSTER_PAGES}"
    )]
    ClusterSize {
        /// What was given.
        pages: usize,
    },
    /// A text, for instance that of `LARDER_CLUSTER_PAGES`, that is no cluster size.
    #[error(
        "a cluster size, for instance in LARDER_CLUSTER_PAGES, is 'auto' or a number of pages from 1 to {MAX_CLUSTER_PAGES}"
    )]
    ClusterText,
    /// A builder's limit that does not fit one page.
    #[error("a limit of {bytes} bytes does not fit one page of {page} bytes")]
    LimitBytes {
        /// What was given.
        bytes: usize,
        /// The page size.
        page: usize,
    },
    /// A builder's reservation that is too small or too large.
    #[error(
        "a reservation of {bytes} bytes is not between one block ({least} bytes) and {most} bytes"
    )]
    ReserveBytes {
        /// What was given.
        bytes: usize,
        /// The least.
        least: usize,
        /// The most.
        most: usize,
    },
    /// The environment variable `LARDER_SETTINGS` names a file that cannot be used.
    #[cfg(feature = "settings")]
    #[error("LARDER_SETTINGS: {0}")]
    Settings(&'static crate::settings::SettingsError),
    /// The helper thread could not be started: no thread, or a CPU budget that is none.
    #[error(
        "the helper thread could not be started: {0}; its CPU budget must be above 0 and at most 1"
    )]
    Helper(std::io::ErrorKind),
    /// The pool's own limit. The other CPUs' magazines were looked into as well; a page that another thread was just
    /// moving may have been missed.
    #[error(
        "page pool: {pages} pages were asked for, but the limit of {limit} bytes is in use; raise it or put pages back"
    )]
    Limit {
        /// Pages that were asked for.
        pages: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The addresses that the pool reserved when it was made are all in use.
    #[error(
        "page pool: {pages} contiguous pages were asked for, but the reservation of {reserved} bytes has no such room; reserve more when building the pool"
    )]
    Exhausted {
        /// Pages that were asked for.
        pages: usize,
        /// The reservation in bytes.
        reserved: usize,
    },
    /// The kernel would not give memory.
    #[error("page pool: {0}")]
    System(#[from] OsError),
    /// The caller's list could not grow to take the pages.
    #[error("page pool: no memory for a list of {pages} buffers")]
    List {
        /// Pages that were asked for.
        pages: usize,
    },
    /// A run of no pages was asked for.
    #[error("page pool: a run needs at least one page")]
    EmptyRun,
}
