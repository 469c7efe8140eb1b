//! A system for tests that asks a hook before each call of a real one, and a hook that refuses.

#[cfg(test)]
mod unit;

#[cfg(test)]
pub(crate) use unit::*;

use core::sync::atomic::{AtomicUsize, Ordering};
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::{Decommit, HugeAdvice, HugePageSize, OsError, Span, System};

/// Kind of a call to the system.
///
/// [`Failing`] fails one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
/// use larder::os::testing::{Failing, Hooked};
/// let system = Hooked::new(Linux, Failing::from(1, 1));
/// let span = system.reserve(4096, 4096)?;
/// assert!(system.reserve(4096, 4096).is_err(), "the second call fails");
/// // SAFETY: just reserved.
/// unsafe { system.release(span)? };
/// assert_eq!(system.hook().seen(), 3);
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
