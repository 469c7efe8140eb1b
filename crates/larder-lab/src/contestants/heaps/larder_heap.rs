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
/// The block has this size and alignment, which are those of a layout.
#[inline(always)]
unsafe fn layout(bytes: usize, align: usize) -> Layout {
    debug_assert!(Layout::from_size_align(bytes, align).is_ok());
    // SAFETY: the caller's promise.
    unsafe { Layout::from_size_align_unchecked(bytes, align) }
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
        unsafe { self.dealloc(block, layout(bytes, ALIGN)) };
    }

    #[inline(always)]
    fn alloc_zeroed(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        heap::Heap::alloc_zeroed(self, asked(bytes)?).ok()
    }

    #[inline(always)]
    fn alloc_aligned(&mut self, bytes: usize, align: usize) -> Option<NonNull<u8>> {
        heap::Heap::alloc(self, Layout::from_size_align(bytes, align).ok()?).ok()
    }

    #[inline(always)]
    unsafe fn free_aligned(&mut self, block: NonNull<u8>, bytes: usize, align: usize) {
        // SAFETY: as in `free`.
        unsafe { self.dealloc(block, layout(bytes, align)) };
    }

    #[inline(always)]
    unsafe fn realloc(
        &mut self,
        block: NonNull<u8>,
        bytes: usize,
        to: usize,
    ) -> Option<NonNull<u8>> {
        // SAFETY: as in `free`.
        unsafe { heap::Heap::realloc(self, block, layout(bytes, ALIGN), asked(to)?) }.ok()
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
        unsafe { self.0.dealloc(block, layout(bytes, ALIGN)) };
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
        unsafe { GlobalAlloc::dealloc(&Larder, block.as_ptr(), layout(bytes, ALIGN)) };
    }

    #[inline(always)]
    fn alloc_zeroed(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: no caller asks for 0 bytes.
        NonNull::new(unsafe { GlobalAlloc::alloc_zeroed(&Larder, asked(bytes)?) })
    }

    #[inline(always)]
    fn alloc_aligned(&mut self, bytes: usize, align: usize) -> Option<NonNull<u8>> {
        let layout = Layout::from_size_align(bytes, align).ok()?;
        // SAFETY: no caller asks for 0 bytes.
        NonNull::new(unsafe { GlobalAlloc::alloc(&Larder, layout) })
    }

    #[inline(always)]
    unsafe fn free_aligned(&mut self, block: NonNull<u8>, bytes: usize, align: usize) {
        // SAFETY: as in `free`.
        unsafe { GlobalAlloc::dealloc(&Larder, block.as_ptr(), layout(bytes, align)) };
    }

    #[inline(always)]
    unsafe fn realloc(
        &mut self,
        block: NonNull<u8>,
        bytes: usize,
        to: usize,
    ) -> Option<NonNull<u8>> {
        // SAFETY: as in `free`; no caller asks for 0 bytes.
        NonNull::new(unsafe {
            GlobalAlloc::realloc(&Larder, block.as_ptr(), layout(bytes, ALIGN), to)
        })
    }
}
