//! The seam between the library and the kernel.

use core::fmt;
use core::ptr::NonNull;
use std::os::fd::OwnedFd;

use super::OsError;

/// A range of addresses: start and length in bytes.
///
/// ```
/// use larder::os::{Linux, System};
/// let span = Linux.reserve(3 << 20, 1 << 20)?;
/// assert_eq!((span.len, span.addr() % (1 << 20)), (3 << 20, 0));
/// // SAFETY: just reserved.
/// unsafe { Linux.release(span)? };
/// # Ok::<(), larder::os::OsError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub at: NonNull<u8>,
    /// Length in bytes.
    pub len: usize,
}

// SAFETY: a span is two numbers; the code that dereferences its address answers for that.
unsafe impl Send for Span {}
// SAFETY: as above, there is nothing behind a shared span to race on.
unsafe impl Sync for Span {}

impl Span {
    /// The part of this span that begins `offset` bytes in and has `len` bytes.
    ///
    /// ```
    /// # use larder::os::{Linux, System};
    /// # let span = Linux.reserve(3 << 20, 1 << 20)?;
    /// let part = span.part(1 << 20, 4096);
    /// assert_eq!((part.addr(), part.len), (span.addr() + (1 << 20), 4096));
    /// # // SAFETY: just reserved.
    /// # unsafe { Linux.release(span)? };
    /// # Ok::<(), larder::os::OsError>(())
    /// ```
    ///
    /// # Panics
    /// When the part does not lie inside, or not among the addresses.
    #[must_use]
    pub fn part(self, offset: usize, len: usize) -> Self {
        assert!(
            offset.checked_add(len).is_some_and(|end| end <= self.len),
            "a part beyond its span"
        );
        // Not by an unsafe sum: safe code can make a span of any two numbers, with no memory behind it.
        let addr = self.at.addr().checked_add(offset);
        let at = self.at.with_addr(addr.expect("no such address"));
        Self { at, len }
    }

    /// Address of the first byte.
    ///
    /// ```
    /// # use larder::os::{Linux, System};
    /// # let span = Linux.reserve(3 << 20, 1 << 20)?;
    /// assert_eq!(span.addr(), span.at.as_ptr() as usize);
    /// # // SAFETY: just reserved.
    /// # unsafe { Linux.release(span)? };
    /// # Ok::<(), larder::os::OsError>(())
    /// ```
    #[must_use]
    pub fn addr(self) -> usize {
        self.at.as_ptr() as usize
    }
}

/// How memory is given back.
///
/// [`System`] shows what becomes of the contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decommit {
    /// `MADV_DONTNEED`: gone at once, reads as zero afterwards.
    DontNeed,
    /// `MADV_FREE`: the kernel takes it when it needs it; until then the old contents may be read.
    Free,
    /// `MADV_REMOVE`: gone at once and for every process, reads as zero afterwards. For memory of a memfd.
    Remove,
}

/// What is said to the kernel about transparent huge pages of a range.
///
/// [`System`] shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HugeAdvice {
    /// `MADV_HUGEPAGE`: wanted here. Which sizes (64 KiB to 2 MiB) is the machine's setting.
    Want,
    /// `MADV_NOHUGEPAGE`: not wanted here.
    Refuse,
}

/// Size of pages of a reserved huge-page pool (hugetlb).
///
/// ```
/// use larder::os::{HugePageSize, Linux, System};
/// match Linux.reserve_hugetlb(2 << 20, HugePageSize::Mib2) {
///     // SAFETY: just reserved.
///     Ok(span) => unsafe { Linux.release(span)? },
///     Err(error) => println!("{error}; see /proc/sys/vm/nr_hugepages"),
/// }
/// # Ok::<(), larder::os::OsError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HugePageSize {
    /// 2 MiB.
    Mib2,
    /// 1 GiB.
    Gib1,
}

impl HugePageSize {
    /// Bytes of one such page.
    ///
    /// ```
    /// # use larder::os::HugePageSize;
    /// assert_eq!(HugePageSize::Mib2.bytes(), 2 << 20);
    /// ```
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Mib2 => 2 << 20,
            Self::Gib1 => 1 << 30,
        }
    }
}

/// What the library asks of the operating system. [`Linux`](super::Linux) is the real one.
///
/// The methods that take a span are unsafe because they change what lies behind addresses.
/// Their common contract: the span lies inside one range that this system reserved and has not released, it is
/// aligned to pages, and no other code uses it in a way that the change would break.
///
/// ```
/// use larder::os::{Decommit, HugeAdvice, Linux, System};
/// let span = Linux.reserve(4 << 20, 2 << 20)?;
/// // SAFETY: just reserved, committed before it is used, and not known to other code.
/// unsafe {
///     let _ = Linux.advise_huge(span, HugeAdvice::Refuse);    // advice, which may not be taken
///     Linux.commit(span)?;
///     Linux.populate(span.part(0, 1 << 20))?;                 // no faults here
///     span.at.write(7);
///     Linux.decommit(&[span.part(0, 1 << 20)], Decommit::DontNeed)?;
///     assert_eq!(span.at.read(), 0);
///     Linux.release(span)?;
/// }
/// let (shared, _memfd) = Linux.reserve_shared(1 << 20)?;      // accessible at once
/// // SAFETY: as above.
/// unsafe { Linux.release(shared)? };
/// # Ok::<(), larder::os::OsError>(())
/// ```
///
/// # Safety
/// The library uses what `reserve` returns as its own memory. An implementation must return spans that are as long and
/// as aligned as was asked, that nothing else uses until they are released, and that read as zero once committed; after
/// [`decommit`](Self::decommit) with anything but [`Decommit::Free`] succeeded they read as zero again.
pub unsafe trait System: fmt::Debug + Send + Sync {
    /// Reserves `len` bytes of addresses aligned to `align` (a power of two), not accessible and not accounted.
    ///
    /// # Errors
    /// The kernel's refusal, usually for want of address space.
    fn reserve(&self, len: usize, align: usize) -> Result<Span, OsError>;

    /// Reserves and [commits](Self::commit) at once.
    ///
    /// # Errors
    /// The system's refusal; then nothing is reserved.
    fn reserve_committed(&self, len: usize, align: usize) -> Result<Span, OsError> {
        let span = self.reserve(len, align)?;
        // SAFETY: the span was just reserved and is not known to other code.
        if let Err(error) = unsafe { self.commit(span) } {
            // SAFETY: as above. The first error is the one worth telling.
            let _ = unsafe { self.release(span) };
            return Err(error);
        }
        Ok(span)
    }

    /// Reserves accessible memory from the machine's pool of huge pages (hugetlb). [`HugePageSize`] shows it.
    ///
    /// # Errors
    /// The kernel's refusal; `ENOMEM` when the pool is empty.
    fn reserve_hugetlb(&self, len: usize, size: HugePageSize) -> Result<Span, OsError>;

    /// Reserves accessible memory of a memfd, which other mappings and other processes can map too. Its size is sealed, so that no
    /// holder of the descriptor can make it end under another. But each holder can write the pages and punch holes into them, so the
    /// processes trust one another. The child of a fork does not have the mapping.
    ///
    /// # Errors
    /// The kernel's refusal.
    fn reserve_shared(&self, len: usize) -> Result<(Span, OwnedFd), OsError>;

    /// Makes reserved memory readable and writable; it reads as zero.
    ///
    /// # Safety
    /// The common contract of this trait.
    ///
    /// # Errors
    /// The kernel's refusal.
    unsafe fn commit(&self, span: Span) -> Result<(), OsError>;

    /// Makes reserved memory readable: zeroes that count as no memory anywhere, until they are [committed](Self::commit).
    ///
    /// # Safety
    /// The common contract.
    ///
    /// # Errors
    /// The kernel's refusal.
    unsafe fn show_zeroes(&self, span: Span) -> Result<(), OsError>;

    /// Backs committed memory with pages now, so that no fault comes later. Contents are kept.
    ///
    /// # Safety
    /// The common contract; the memory is committed.
    ///
    /// # Errors
    /// The kernel's refusal.
    unsafe fn populate(&self, span: Span) -> Result<(), OsError>;

    /// Gives the pages behind committed memory back, for all spans in as few calls as the kernel allows.
    ///
    /// # Safety
    /// The common contract; the contents are not needed any more.
    ///
    /// # Errors
    /// The kernel's refusal. Some of the spans may have been given back already.
    unsafe fn decommit(&self, spans: &[Span], how: Decommit) -> Result<(), OsError>;

    /// Returns a whole reservation.
    ///
    /// # Safety
    /// The span is exactly one that a `reserve` method returned, and nothing uses it any more.
    ///
    /// # Errors
    /// The kernel's refusal.
    unsafe fn release(&self, span: Span) -> Result<(), OsError>;

    /// Says whether huge pages are wanted.
    ///
    /// # Safety
    /// The common contract.
    ///
    /// # Errors
    /// The kernel's refusal; callers treat it as advice not taken.
    unsafe fn advise_huge(&self, span: Span, advice: HugeAdvice) -> Result<(), OsError>;
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::num::NonZeroUsize;

    use super::*;

    #[test]
    #[should_panic(expected = "no such address")]
    fn a_part_of_invented_numbers_does_not_wrap() {
        let at = NonNull::without_provenance(NonZeroUsize::MAX);
        let span = Span { at, len: 2 };
        let _ = span.part(1, 1);
    }
}
