//! Page buffers: whole pages of memory, recycled before the kernel is asked.
//!
//! ```
//! use larder::pages::PagePool;
//!
//! let pool = PagePool::new()?;
//! let mut page = pool.get()?;            // contents: whatever a former owner of this pool left
//! page[..5].copy_from_slice(b"hello");
//! drop(page);                            // back to this CPU's stock; nothing is unmapped
//!
//! let zeroed = pool.get_zeroed()?;       // every byte is 0
//! assert!(zeroed.iter().all(|&b| b == 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which get
//!
//! | call | contents | for a consumer that |
//! |---|---|---|
//! | [`PagePool::get`] | a former owner's | overwrites the page (reads a block into it) |
//! | [`PagePool::get_zeroed`] | zero | writes most of it: zeroing a warm page is also the prefetch |
//! | [`PagePool::get_zeroed_sparse`] | zero | writes little or only reads: a page zeroed earlier costs nothing now |
//!
//! # How it works
//!
//! Pages come from one large reservation, in *clusters*: `cluster_pages` contiguous pages that are populated with one
//! call. The size can be changed at any time and only governs future clusters. A page that is put back goes onto the
//! CPU's magazines (`magazine`) and from there to the next get; nothing is touched, unmapped or given back.
//! Pages that an interval did not need return to their blocks of 64 (`clusters`). What stays there for the decay time
//! goes back to the kernel, many pages per call, from [`PagePool::maintain`], the helper thread, or a get that finds its
//! magazines empty: whole blocks, in units of a cluster, and of blocks in use the runs of four free pages or more (not of
//! [huge pages](PagePoolBuilder::huge_pages), which would be split). These take up to twice the decay time: they go when two
//! looks that far apart found them untouched. Nothing is ever unmapped page by page, so the number of mappings stays
//! what it was. One upkeep gives at most 64 MiB and looks into at most 4 GiB.
//!
//! # fork
//!
//! The child of a fork has a copy of the pool and may go on using it, buffers included: it is its own memory. Pages
//! that other threads had in hand, and the few rounds in a magazine that another thread was just moving, are lost to
//! the child's copy. The helper thread does not exist in the child. Forks that run no handlers (`_Fork`, a raw `clone`)
//! are not supported, and neither are threads that the C library did not start.
//!
//! # Dropping the pool
//!
//! Buffers may outlive the pool. Its stocks are emptied at once; memory is returned to the system when the last
//! buffer is dropped.

mod beside;
mod block;
mod buf;
mod builder;
#[cfg(feature = "bytes")]
mod bytes;
mod cluster_size;
mod clusters;
mod error;
#[cfg(feature = "io-uring")]
mod fixed;
mod handle;
#[cfg(all(test, not(loom)))]
mod heap_tests;
mod helper;
mod inner;
mod many;
mod moves;
mod pool;
mod round;
mod run;
mod shared;
mod space;
mod stats;
#[cfg(all(test, not(loom)))]
mod tests;

pub use block::MAX_CLUSTER_PAGES;
pub use buf::PageBuf;
pub use builder::PagePoolBuilder;
pub use cluster_size::ClusterSize;
pub use error::PoolError;
#[cfg(feature = "io-uring")]
pub use fixed::FixedBuffers;
pub use handle::PageHandle;
pub use helper::HelperConfig;
pub use pool::PagePool;
pub use run::PageRun;
pub use shared::SharedPages;
pub use stats::PoolStats;
