//! Why a page could not be had.

use crate::os::OsError;

/// Why the pool has no page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
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
