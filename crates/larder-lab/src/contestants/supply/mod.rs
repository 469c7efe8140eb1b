//! Suppliers of page buffers, which hand out one page and take it back.
//!
//! [`Supplier`] is what a workload sees. It is always a type parameter and never a trait object, so that a pair of
//! three nanoseconds is not measured through a virtual call. [`Supply`] is what a run starts with: it makes one
//! supplier per thread.

mod allocators;
mod array_stack;
mod cluster;
mod cluster_whole;
mod counting;
mod map;
mod mappings;
mod pool;
mod same_page;
mod unbuffered;

use std::ptr::NonNull;

pub use allocators::SystemMalloc;
#[cfg(feature = "peers")]
pub use allocators::{Jemalloc, Mimalloc};
pub use array_stack::{ArrayStack, ArrayStacks};
pub use cluster::Cluster;
pub use cluster_whole::ClusterWhole;
pub use counting::{Counting, Counts};
pub use map::Mapper;
pub use mappings::mappings;
pub use pool::{PoolHandle, PoolHandles, PoolPerCpu, PoolRef};
pub use same_page::{SamePage, SamePages};
pub use unbuffered::Unbuffered;

/// Bytes of a page on this machine.
#[must_use]
pub fn page_size() -> usize {
    rustix::param::page_size()
}

/// Bytes of a page, where clusters of this many pages can be.
///
/// # Errors
/// A cluster of no pages, or of more bytes than there are addresses.
fn page_of_clusters(pages: usize) -> anyhow::Result<usize> {
    let page = page_size();
    anyhow::ensure!(
        pages > 0 && pages.checked_mul(page).is_some(),
        "a cluster of {pages} pages was asked for; give at least 1 and fewer than there are addresses"
    );
    Ok(page)
}

/// One thread's way to a page and back.
///
/// A page is `page_size()` bytes, aligned to as much, readable and writable.
pub trait Supplier {
    /// A page with any contents; `None` when there is no memory.
    fn get(&mut self) -> Option<NonNull<u8>>;

    /// A page of zeros; `None` when there is no memory.
    fn get_zeroed(&mut self) -> Option<NonNull<u8>>;

    /// Takes a page back.
    ///
    /// # Safety
    /// The page came from a supplier of the same supply and is not used afterwards.
    unsafe fn put(&mut self, page: NonNull<u8>);

    /// System calls made so far, where the supplier makes them itself and counts them.
    fn system_calls(&self) -> Option<u64> {
        None
    }
}

/// What all threads of a run share.
pub trait Supply: Sync {
    /// One thread's supplier.
    type Local<'a>: Supplier
    where
        Self: 'a;

    /// A supplier for the calling thread. A page may be put back through the supplier of another thread.
    ///
    /// # Errors
    /// What could not be set up.
    fn local(&self) -> anyhow::Result<Self::Local<'_>>;
}

/// What has no state of its own serves every thread by a copy.
impl<S: Supplier + Copy + Sync> Supply for S {
    type Local<'a>
        = S
    where
        S: 'a;

    fn local(&self) -> anyhow::Result<S> {
        Ok(*self)
    }
}
