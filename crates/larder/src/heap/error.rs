//! Why a heap has no memory to give.

use crate::objects::ObjectError;

/// Why an allocation failed. It owns no memory: a caller that does not look at it has nothing to drop.
///
/// ```
/// use std::alloc::Layout;
/// use larder::{heap::{AllocError, Classes, Heap}, objects::Family};
/// let heap = Heap::new(&Classes::new(&Family::new()?));
/// heap.set_limit(1000);
/// assert!(matches!(heap.alloc(Layout::new::<[u8; 100_000]>()), Err(AllocError::Limit { limit: 1000, .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AllocError {
    /// The heap's own limit.
    #[error(
        "heap: {size} bytes were asked for, {charged} of at most {limit} bytes are taken; free some or raise the limit"
    )]
    Limit {
        /// Bytes asked for.
        size: usize,
        /// Bytes that the heap has taken, free ones in its magazines included.
        charged: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// An address that is none of the heap's objects was to be made larger or smaller.
    #[error(
        "heap: {addr:#x} was to be made {size} bytes large, but is no object of this heap's classes"
    )]
    Foreign {
        /// The address.
        addr: usize,
        /// Bytes asked for.
        size: usize,
    },
    /// There are no pages or no metadata, or the size class could not be set up.
    #[error("heap: {0}")]
    Memory(#[from] ObjectError),
}
