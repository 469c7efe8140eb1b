//! Systems and hooks of unit tests.

// The model's tests use the heap alone.
#![cfg_attr(loom, expect(dead_code))]

use core::ptr::NonNull;
use std::alloc::Layout;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use super::{Call, Hook};
use crate::os::{Decommit, HugeAdvice, HugePageSize, OsError, Span, System, page_size};

/// A system over the heap, which Miri and other tools that know the allocator can watch. Everything that it reserves
/// is backed at once, so keep reservations small.
#[derive(Debug, Default)]
pub(crate) struct HeapSystem(Mutex<BTreeMap<usize, Layout>>);

impl HeapSystem {
    /// Reservations that were not released.
    pub(crate) fn reserved(&self) -> usize {
        self.layouts().len()
    }

    fn layouts(&self) -> MutexGuard<'_, BTreeMap<usize, Layout>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: the allocator gives the same memory to no other caller until it is freed, and it is zero at first.
unsafe impl System for HeapSystem {
    fn reserve(&self, len: usize, align: usize) -> Result<Span, OsError> {
        let refused = |errno| OsError::new("alloc(reserve)", len, errno);
        let layout = Layout::from_size_align(len, align.max(page_size()))
            .ok()
            .filter(|layout| layout.size() > 0)
            .ok_or(refused(Errno::INVAL))?;
        // SAFETY: the layout has a size.
        let at = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) })
            .ok_or(refused(Errno::NOMEM))?;
        self.layouts()
            .insert(at.as_ptr().expose_provenance(), layout);
        Ok(Span { at, len })
    }
    fn reserve_hugetlb(&self, len: usize, size: HugePageSize) -> Result<Span, OsError> {
        self.reserve(len, size.bytes())
    }
    /// Memory of the heap has no descriptor.
    fn reserve_shared(&self, len: usize) -> Result<(Span, OwnedFd), OsError> {
        Err(OsError::new("memfd_create", len, Errno::NOSYS))
    }
    unsafe fn commit(&self, _: Span) -> Result<(), OsError> {
        Ok(())
    }
    unsafe fn show_zeroes(&self, _: Span) -> Result<(), OsError> {
        Ok(())
    }
    unsafe fn populate(&self, _: Span) -> Result<(), OsError> {
        Ok(())
    }
    unsafe fn decommit(&self, spans: &[Span], how: Decommit) -> Result<(), OsError> {
        if how != Decommit::Free {
            for span in spans {
                // SAFETY: the caller owns the spans and gave up their contents.
                unsafe { span.at.as_ptr().write_bytes(0, span.len) };
            }
        }
        Ok(())
    }
    unsafe fn release(&self, span: Span) -> Result<(), OsError> {
        let layout = self.layouts().remove(&span.addr()).ok_or(OsError::new(
            "free",
            span.len,
            Errno::INVAL,
        ))?;
        // SAFETY: allocated with this layout, and the caller gave it up.
        unsafe { std::alloc::dealloc(span.at.as_ptr(), layout) };
        Ok(())
    }
    unsafe fn advise_huge(&self, span: Span, _: HugeAdvice) -> Result<(), OsError> {
        Err(OsError::new("advise(huge)", span.len, Errno::INVAL))
    }
}

/// Remembers every call in order.
#[derive(Debug, Default)]
pub(crate) struct Recording(Mutex<Vec<(Call, usize)>>);

impl Recording {
    /// The calls so far: kind and bytes.
    pub(crate) fn calls(&self) -> MutexGuard<'_, Vec<(Call, usize)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many calls of this kind there were.
    pub(crate) fn count(&self, call: Call) -> usize {
        self.calls()
            .iter()
            .filter(|&&(made, _)| made == call)
            .count()
    }
}

impl Hook for Recording {
    fn before(&self, call: Call, bytes: usize) -> Result<(), OsError> {
        self.calls().push((call, bytes));
        Ok(())
    }
}

/// What unit tests run on: the real system, or the heap where they are interpreted.
#[cfg(miri)]
pub(crate) type Base = HeapSystem;
#[cfg(not(miri))]
pub(crate) type Base = crate::os::Linux;

/// One of these to share.
pub(crate) fn system() -> std::sync::Arc<dyn System> {
    std::sync::Arc::new(Base::default())
}
