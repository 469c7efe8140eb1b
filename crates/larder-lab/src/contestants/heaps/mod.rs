//! Allocators of objects of any size.
//!
//! [`Heap`] is what a workload sees. It is always a type parameter and never a trait object, so that a pair of three
//! nanoseconds is not measured through a virtual call. [`Heaps`] is what a run starts with: it makes one heap for each
//! thread.

mod absent;
mod broken;
pub(crate) mod found;
mod larder_heap;
#[cfg(feature = "peers")]
mod mimalloc_heap;
mod object_cache;
mod path;
mod preloaded;
#[cfg(feature = "peers")]
mod rpmalloc;
mod whole;

use std::ptr::NonNull;

pub use absent::libraries;
pub use broken::{Broken, BrokenLocal};
pub use larder_heap::{ClassesRef, LarderClasses, LarderGlobal, LarderHeaps, LarderPrivate};
#[cfg(feature = "peers")]
pub use mimalloc_heap::MimallocHeaps;
pub use object_cache::{ObjectCache, ObjectHandles, per_cpu, per_cpu_share};
pub use preloaded::{Preloaded, environment, named_libraries};
#[cfg(feature = "peers")]
pub use rpmalloc::{Rpmalloc, RpmallocThread};
#[cfg(feature = "peers-cpp")]
pub use whole::Snmalloc;
pub use whole::SystemMalloc;
#[cfg(feature = "peers")]
pub use whole::{Jemalloc, Mimalloc};

/// Name of the contestant that is whatever malloc the user names.
pub const PRELOADED: &str = "preloaded";

/// Alignment that every block has, where it is at least as large: that of C's `malloc` on 64-bit machines.
pub const ALIGN: usize = 16;

/// One thread's way to memory and back.
pub trait Heap {
    /// A block of at least `bytes` bytes (1 or more), aligned for any object that fits in it up to [`ALIGN`];
    /// `None` when there is no memory.
    fn alloc(&mut self, bytes: usize) -> Option<NonNull<u8>>;

    /// Takes a block back.
    ///
    /// # Safety
    /// The block came from a heap of the same [`Heaps`] for as many bytes, and is not used afterwards.
    unsafe fn free(&mut self, block: NonNull<u8>, bytes: usize);

    /// As [`alloc`](Self::alloc), and every byte is zero. Goes back by [`free`](Self::free).
    fn alloc_zeroed(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let block = self.alloc(bytes)?;
        // SAFETY: the block has as many bytes.
        unsafe { block.write_bytes(0, bytes) };
        Some(block)
    }

    /// A block at a multiple of `align`, a power of two; `None` also where the allocator has no such blocks.
    fn alloc_aligned(&mut self, bytes: usize, align: usize) -> Option<NonNull<u8>> {
        (align <= ALIGN).then(|| self.alloc(bytes)).flatten()
    }

    /// Takes a block back that [`alloc_aligned`](Self::alloc_aligned) gave.
    ///
    /// # Safety
    /// As for [`free`](Self::free), with this alignment.
    unsafe fn free_aligned(&mut self, block: NonNull<u8>, bytes: usize, _align: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.free(block, bytes) };
    }

    /// Makes a block larger; it may move. Where there is no memory it stays as it is.
    ///
    /// # Safety
    /// As for [`free`](Self::free), unless it is `None`; `to` is not less than `bytes`.
    unsafe fn realloc(
        &mut self,
        block: NonNull<u8>,
        bytes: usize,
        to: usize,
    ) -> Option<NonNull<u8>> {
        let larger = self.alloc(to)?;
        // SAFETY: both have as many bytes, and they are two blocks; the caller gives the first one up.
        unsafe {
            larger.copy_from_nonoverlapping(block, bytes);
            self.free(block, bytes);
        }
        Some(larger)
    }
}

/// What all threads of a run share.
pub trait Heaps: Sync {
    /// One thread's heap.
    type Local<'a>: Heap
    where
        Self: 'a;

    /// True when the end of a thread's heap is the end of every block that came from it, as with mimalloc's
    /// `mi_heap_destroy`. Such heaps are for blocks that never leave their thread.
    const DIES_WHOLE: bool = false;

    /// A heap for the calling thread. A block may be freed through the heap of another thread, unless
    /// [`DIES_WHOLE`](Self::DIES_WHOLE).
    ///
    /// # Errors
    /// What could not be set up.
    fn local(&self) -> anyhow::Result<Self::Local<'_>>;

    /// Called by the thread that starts another one, before it does: some of the programs of 2001 set things up there.
    ///
    /// # Errors
    /// What could not be set up.
    fn before_thread(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Looks, after the work, whether the path that is claimed was the path that was taken: the share of the
    /// operations that took it, where the allocator counts them.
    ///
    /// # Errors
    /// When the claim is false. What was measured then is not what the contestant's name says.
    fn path_taken(&self) -> anyhow::Result<Option<f64>> {
        Ok(None)
    }
}

/// An allocator that is one for the whole process: every thread's way to it is a copy.
impl<H: Heap + Copy + Sync> Heaps for H {
    type Local<'a>
        = H
    where
        H: 'a;

    fn local(&self) -> anyhow::Result<H> {
        Ok(*self)
    }
}
