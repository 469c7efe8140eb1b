//! The library's heaps: explicit, per CPU, private, and the one of the whole program.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::NonNull;
use std::time::Duration;

use anyhow::ensure;
use larder::Larder;
use larder::heap::{self, Classes};
use larder::objects::Family;
use larder::pages::PagePool;

use super::path::by_rseq;
use super::{ALIGN, Heap, Heaps};

/// The layout of a block.
///
/// # Safety
/// The size is at most `isize::MAX - 15`, as that of every block is.
#[inline(always)]
unsafe fn layout(bytes: usize) -> Layout {
    debug_assert!(Layout::from_size_align(bytes, ALIGN).is_ok());
    // SAFETY: the alignment is a power of two; the size is the caller's promise.
    unsafe { Layout::from_size_align_unchecked(bytes, ALIGN) }
}

/// The layout of a block that is asked for.
#[inline(always)]
fn asked(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, ALIGN).ok()
}

/// `Heap::alloc` and `dealloc`: an explicit heap for each thread, over shared classes.
#[derive(Debug)]
pub struct LarderHeaps(Classes);

/// `Classes::alloc` and `dealloc`: the CPU's magazines, any thread.
#[derive(Debug)]
pub struct LarderClasses(Classes);

/// `Heap::private`: a heap with slabs of its own, dropped whole.
#[derive(Debug)]
pub struct LarderPrivate(Family);

/// `Larder` as Rust's global allocator calls it.
#[derive(Debug, Clone, Copy, Default)]
pub struct LarderGlobal;

impl LarderHeaps {
    /// Classes over a family of their own with default settings.
    ///
    /// # Errors
    /// What the family needs and does not get.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self(Classes::new(&Family::new()?)))
    }

    /// As [`new`](Self::new) with another working-set interval, which is the pages' decay time as well (both are a second
    /// by default), and with a thread that ends it or without.
    ///
    /// # Errors
    /// As there, and a thread that cannot be started.
    pub fn every(interval: Duration, reaper: bool) -> anyhow::Result<Self> {
        let family = Family::builder()
            .interval(interval)
            .pages(PagePool::builder().decay(interval))
            .build()?;
        if reaper {
            family.start_helper(interval)?;
        }
        Ok(Self(Classes::new(&family)))
    }
}

impl LarderClasses {
    /// As [`LarderHeaps::new`].
    ///
    /// # Errors
    /// As there.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self(Classes::new(&Family::new()?)))
    }
}

impl LarderPrivate {
    /// A family with default settings.
    ///
    /// # Errors
    /// What it needs and does not get.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self(Family::new()?))
    }
}

impl Heap for heap::Heap {
    #[inline(always)]
    fn alloc(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        heap::Heap::alloc(self, asked(bytes)?).ok()
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>, bytes: usize) {
        // SAFETY: from a heap of the same classes with this layout, given up by the caller.
        unsafe { self.dealloc(block, layout(bytes)) };
    }
}

impl Heaps for LarderHeaps {
    type Local<'a> = heap::Heap;

    fn local(&self) -> anyhow::Result<heap::Heap> {
        Ok(heap::Heap::new(&self.0))
    }
}

impl Heaps for LarderPrivate {
    type Local<'a> = heap::Heap;

    const DIES_WHOLE: bool = true;

    fn local(&self) -> anyhow::Result<heap::Heap> {
        Ok(heap::Heap::private(&self.0))
    }
}

/// A thread's way to the classes.
#[derive(Debug, Clone, Copy)]
pub struct ClassesRef<'a>(&'a Classes);

impl Heap for ClassesRef<'_> {
    #[inline(always)]
    fn alloc(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        self.0.alloc(asked(bytes)?).ok()
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>, bytes: usize) {
        // SAFETY: from these classes with this layout, given up by the caller.
        unsafe { self.0.dealloc(block, layout(bytes)) };
    }
}

impl Heaps for LarderClasses {
    type Local<'a> = ClassesRef<'a>;

    fn local(&self) -> anyhow::Result<ClassesRef<'_>> {
        Ok(ClassesRef(&self.0))
    }

    fn path_taken(&self) -> anyhow::Result<Option<f64>> {
        ensure!(
            self.0.debug_options().is_none(),
            "the environment asks for checked heaps: the per-CPU path that is claimed was not taken"
        );
        let served = self.0.served();
        by_rseq(served.mode, served.hits, served.misses)
    }
}

impl Heap for LarderGlobal {
    #[inline(always)]
    fn alloc(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: no caller asks for 0 bytes.
        NonNull::new(unsafe { GlobalAlloc::alloc(&Larder, asked(bytes)?) })
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>, bytes: usize) {
        // SAFETY: from this allocator with this layout, given up by the caller.
        unsafe { GlobalAlloc::dealloc(&Larder, block.as_ptr(), layout(bytes)) };
    }
}
