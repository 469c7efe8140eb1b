//! Systems for tests: one that counts, one that records, one that fails. They wrap a real one.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::alloc::Layout;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Mutex;

use rustix::io::Errno;

use super::{Decommit, HugeAdvice, HugePageSize, OsError, Span, System};

/// A system over the heap, which Miri and other tools that know the allocator can watch. Everything that it reserves
/// is backed at once, so keep reservations small.
///
/// ```
/// use larder::os::System;
/// use larder::os::testing::HeapSystem;
/// let system = HeapSystem::default();
/// let span = system.reserve(8192, 4096)?;
/// // SAFETY: just reserved.
/// unsafe { system.release(span)? };
/// # Ok::<(), larder::os::OsError>(())
/// ```
#[derive(Debug, Default)]
pub struct HeapSystem(Mutex<BTreeMap<usize, Layout>>);

impl HeapSystem {
    /// Reservations that were not released.
    ///
    /// ```
    /// # use larder::os::{System, testing::HeapSystem};
    /// let system = HeapSystem::default();
    /// let span = system.reserve(8192, 4096)?;
    /// assert_eq!(system.reserved(), 1);
    /// // SAFETY: just reserved.
    /// unsafe { system.release(span)? };
    /// assert_eq!(system.reserved(), 0);
    /// # Ok::<(), larder::os::OsError>(())
    /// ```
    pub fn reserved(&self) -> usize {
        self.layouts().len()
    }

    fn layouts(&self) -> std::sync::MutexGuard<'_, BTreeMap<usize, Layout>> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

// SAFETY: the allocator gives the same memory to no other caller until it is freed, and it is zero at first.
unsafe impl System for HeapSystem {
    fn reserve(&self, len: usize, align: usize) -> Result<Span, OsError> {
        let refused = |errno| OsError::new("alloc(reserve)", len, errno);
        let layout = Layout::from_size_align(len, align.max(super::page_size()))
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

/// Kind of a call to the system.
///
/// [`Recording`] shows some.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Call {
    /// [`System::reserve`] and its hugetlb and shared relatives.
    Reserve,
    /// [`System::commit`].
    Commit,
    /// [`System::populate`].
    Populate,
    /// [`System::decommit`].
    Decommit,
    /// [`System::release`].
    Release,
    /// [`System::advise_huge`].
    AdviseHuge,
}

/// Number of kinds of calls.
const KINDS: usize = 6;

/// What a [`Hooked`] system asks before each call.
///
/// ```
/// use larder::os::{Linux, OsError, System, testing::{Call, Hook, Hooked}};
///
/// /// Refuses what is larger than a mebibyte.
/// #[derive(Debug)]
/// struct Small;
/// impl Hook for Small {
///     fn before(&self, call: Call, bytes: usize) -> Result<(), OsError> {
///         match (call, bytes) {
///             (Call::Reserve, 1_048_577..) => Err(OsError::new("reserve", bytes, rustix::io::Errno::NOMEM)),
///             _ => Ok(()),
///         }
///     }
/// }
/// assert!(Hooked::new(Linux, Small).reserve(2 << 20, 4096).is_err());
/// ```
pub trait Hook: core::fmt::Debug + Send + Sync {
    /// Sees the call and the bytes that it is about; an error keeps the call from reaching the real system.
    ///
    /// # Errors
    /// Whatever the test wants the library to meet.
    fn before(&self, call: Call, bytes: usize) -> Result<(), OsError>;
}

/// A system whose every call passes a hook first.
///
/// ```
/// use larder::os::{Linux, System};
/// use larder::os::testing::{Call, Counting, Hooked};
/// let system = Hooked::new(Linux, Counting::default());
/// let span = system.reserve(4096, 4096)?;
/// // SAFETY: just reserved.
/// unsafe { system.release(span)? };
/// assert_eq!(system.hook().count(Call::Reserve), 1);
/// # Ok::<(), larder::os::OsError>(())
/// ```
#[derive(Debug)]
pub struct Hooked<S, H> {
    inner: S,
    hook: H,
}

impl<S: System, H: Hook> Hooked<S, H> {
    /// Puts `hook` before `inner`.
    ///
    /// [`Hooked`] shows it.
    pub fn new(inner: S, hook: H) -> Self {
        Self { inner, hook }
    }

    /// The hook.
    ///
    /// [`Hooked`] shows it.
    pub fn hook(&self) -> &H {
        &self.hook
    }
}

// SAFETY: what reaches the caller comes from the inner system unchanged.
unsafe impl<S: System, H: Hook> System for Hooked<S, H> {
    fn reserve(&self, len: usize, align: usize) -> Result<Span, OsError> {
        self.hook.before(Call::Reserve, len)?;
        self.inner.reserve(len, align)
    }
    fn reserve_hugetlb(&self, len: usize, size: HugePageSize) -> Result<Span, OsError> {
        self.hook.before(Call::Reserve, len)?;
        self.inner.reserve_hugetlb(len, size)
    }
    fn reserve_shared(&self, len: usize) -> Result<(Span, OwnedFd), OsError> {
        self.hook.before(Call::Reserve, len)?;
        self.inner.reserve_shared(len)
    }
    unsafe fn commit(&self, span: Span) -> Result<(), OsError> {
        self.hook.before(Call::Commit, span.len)?;
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.commit(span) }
    }
    unsafe fn show_zeroes(&self, span: Span) -> Result<(), OsError> {
        self.hook.before(Call::Commit, span.len)?;
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.show_zeroes(span) }
    }
    unsafe fn populate(&self, span: Span) -> Result<(), OsError> {
        self.hook.before(Call::Populate, span.len)?;
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.populate(span) }
    }
    unsafe fn decommit(&self, spans: &[Span], how: Decommit) -> Result<(), OsError> {
        self.hook
            .before(Call::Decommit, spans.iter().map(|s| s.len).sum())?;
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.decommit(spans, how) }
    }
    unsafe fn release(&self, span: Span) -> Result<(), OsError> {
        self.hook.before(Call::Release, span.len)?;
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.release(span) }
    }
    unsafe fn advise_huge(&self, span: Span, advice: HugeAdvice) -> Result<(), OsError> {
        self.hook.before(Call::AdviseHuge, span.len)?;
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.advise_huge(span, advice) }
    }
}

/// Counts calls by kind.
///
/// ```
/// use std::sync::Arc;
/// use larder::{os::{Linux, testing::{Call, Counting, Hooked}}, pages::PagePool};
/// let system = Arc::new(Hooked::new(Linux, Counting::default()));
/// let pool = PagePool::builder().system(system.clone()).build()?;
/// drop(pool.get()?);
/// drop(pool.get()?);
/// assert_eq!(system.hook().count(Call::Populate), 1, "the second page is the first one");
/// assert!(system.hook().total() > 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Counting([AtomicUsize; KINDS]);

impl Counting {
    /// How many calls of this kind there were.
    ///
    /// [`Counting`] shows it.
    pub fn count(&self, call: Call) -> usize {
        self.0[call as usize].load(Ordering::Relaxed)
    }

    /// How many calls there were.
    ///
    /// [`Counting`] shows it.
    pub fn total(&self) -> usize {
        self.0.iter().map(|n| n.load(Ordering::Relaxed)).sum()
    }
}

impl Hook for Counting {
    fn before(&self, call: Call, _bytes: usize) -> Result<(), OsError> {
        self.0[call as usize].fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Remembers every call in order.
///
/// ```
/// use larder::os::{Linux, System, testing::{Call, Hooked, Recording}};
/// let system = Hooked::new(Linux, Recording::default());
/// let span = system.reserve(8192, 4096)?;
/// // SAFETY: just reserved.
/// unsafe { system.release(span)? };
/// assert_eq!(system.hook().calls(), [(Call::Reserve, 8192), (Call::Release, 8192)]);
/// # Ok::<(), larder::os::OsError>(())
/// ```
#[derive(Debug, Default)]
pub struct Recording(Mutex<Vec<(Call, usize)>>);

impl Recording {
    /// The calls so far: kind and bytes.
    ///
    /// [`Recording`] shows it.
    pub fn calls(&self) -> Vec<(Call, usize)> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }
}

impl Hook for Recording {
    fn before(&self, call: Call, bytes: usize) -> Result<(), OsError> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push((call, bytes));
        Ok(())
    }
}

/// Fails the calls from number `first` on (counted from 0 over all kinds), `many` of them, with `ENOMEM`.
///
/// ```
/// use std::sync::Arc;
/// use larder::{os::{Linux, testing::{Call, Failing, Hooked}}, pages::{PagePool, PoolError}};
/// let system = Arc::new(Hooked::new(Linux, Failing::only(Call::Populate, 0, 1)));
/// let pool = PagePool::builder().system(system.clone()).build()?;
/// assert!(pool.get().is_ok(), "where memory cannot be populated, it comes with a fault");
/// assert!(system.hook().seen() > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Failing {
    seen: AtomicUsize,
    first: AtomicUsize,
    many: usize,
    only: Option<Call>,
}

impl Failing {
    /// Fails `many` calls, beginning with number `first`.
    ///
    /// ```
    /// # use larder::os::{Linux, System, testing::{Failing, Hooked}};
    /// let system = Hooked::new(Linux, Failing::from(1, 1));
    /// let span = system.reserve(8192, 4096)?;
    /// // SAFETY: just reserved.
    /// unsafe {
    ///     assert!(system.release(span).is_err());
    ///     system.release(span)?;
    /// }
    /// # Ok::<(), larder::os::OsError>(())
    /// ```
    #[must_use]
    pub fn from(first: usize, many: usize) -> Self {
        Self {
            seen: AtomicUsize::new(0),
            first: AtomicUsize::new(first),
            many,
            only: None,
        }
    }

    /// Fails calls of one kind, `many` of them, beginning with number `first` of that kind.
    ///
    /// [`Failing`] shows it.
    #[must_use]
    pub fn only(call: Call, first: usize, many: usize) -> Self {
        Self {
            only: Some(call),
            ..Self::from(first, many)
        }
    }

    /// How many calls it has counted.
    ///
    /// [`Failing`] shows it.
    pub fn seen(&self) -> usize {
        self.seen.load(Ordering::Relaxed)
    }
}

impl Hook for Failing {
    fn before(&self, call: Call, bytes: usize) -> Result<(), OsError> {
        if self.only.is_some_and(|only| only != call) {
            return Ok(());
        }
        let number = self.seen.fetch_add(1, Ordering::Relaxed);
        let first = self.first.load(Ordering::Relaxed);
        if number >= first && number - first < self.many {
            return Err(OsError::new("injected failure", bytes, Errno::NOMEM));
        }
        Ok(())
    }
}

/// What unit tests run on: the real system, or the heap where they are interpreted.
#[cfg(all(test, not(loom), miri))]
pub(crate) type Base = HeapSystem;
#[cfg(all(test, not(loom), not(miri)))]
pub(crate) type Base = super::Linux;

/// One of these to share.
#[cfg(all(test, not(loom)))]
pub(crate) fn system() -> std::sync::Arc<dyn System> {
    std::sync::Arc::new(Base::default())
}
