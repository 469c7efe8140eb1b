//! The core of arenas: spans, and the segments that tile them. One owner at a time uses it; [`Arena`](super::Arena) puts a lock
//! around it.
//!
//! It lies below everything that hands out memory: it uses `os` alone, and no allocator. Its records are in two ranges of
//! addresses that are reserved when it is made and become accessible as they fill. Where the system refuses that, an operation is
//! an error and changes nothing.
//!
//! A *span* was added or imported; *segments* tile it. Each has a boundary tag (`tag`), out of line, in a ring with its
//! neighbours, so that freeing joins in constant time. Free segments lie on power-of-two lists (`list`), allocated ones in a hash
//! by address (`hash`), spans in a tree (`index`). `want` says where a request fits, `fit` finds a segment, `segments` cuts and
//! joins, `idle` remembers the spans that are free as a whole.

mod audit;
mod fit;
mod hash;
mod idle;
mod index;
mod list;
mod segments;
mod tag;
#[cfg(all(test, not(loom)))]
mod tests;
mod want;

use std::sync::Arc;

pub(crate) use audit::Broken;
pub(crate) use fit::Effort;
pub(crate) use segments::{Segments, State, Table};
pub(crate) use tag::{Kind, NONE, Tag};
pub use want::Fit;
pub(crate) use want::Want;

use crate::os::{OsError, System};

/// Numbers in a row: a span that a source gave.
///
/// ```
/// # use larder::arena::{Arena, Extent, Import};
/// let all = Arena::builder("all").quantum(8).build()?;
/// all.add(8, 56)?;
/// assert_eq!(all.import(10, 32)?, Extent { addr: 32, size: 16 }, "whole quanta");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// First address.
    pub addr: u64,
    /// How many; of a source's span, at least what was asked for.
    pub size: u64,
}

/// Why the core refuses. It is as it was before the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CoreError {
    /// No free segment fits.
    NoSpace,
    /// Not multiples of the quantum, nothing, or beyond the last number.
    Span,
    /// The span has addresses of this one.
    Overlap(Extent),
    /// No allocation begins there.
    NotAllocated,
    /// The allocation has this size.
    WrongSize(u64),
    /// The system has no memory for tags.
    Memory(OsError),
}

/// Spans and segments of one owner.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) table: Table,
    pub(crate) state: State,
}

impl Core {
    /// A core without spans, for at most `most` spans and segments; its addresses and sizes are multiples of `quantum`, a power
    /// of two.
    ///
    /// # Errors
    /// The system's refusal.
    pub(crate) fn new(system: Arc<dyn System>, quantum: u64, most: u32) -> Result<Self, OsError> {
        Ok(Self {
            table: Table {
                quantum,
                hash: hash::Hash::new(system.clone(), quantum.trailing_zeros(), most)?,
                tags: tag::TagArray::new(system, most)?,
            },
            state: State::new(),
        })
    }
}

/// What a user of a core alone needs.
#[cfg_attr(
    any(not(test), loom),
    expect(
        dead_code,
        reason = "an arena uses the parts; this is for an owner without a lock"
    )
)]
impl Core {
    fn segments(&mut self) -> Segments<'_> {
        Segments::new(&self.table, &mut self.state)
    }

    fn change<T>(
        &mut self,
        change: impl FnOnce(&mut Segments<'_>) -> Result<T, CoreError>,
    ) -> Result<T, CoreError> {
        let mut segments = self.segments();
        let changed = change(&mut segments);
        segments.audit_when_due();
        changed
    }

    /// Adds a span. O(log spans).
    ///
    /// # Errors
    /// [`CoreError::Span`], [`CoreError::Overlap`], [`CoreError::Memory`].
    pub(crate) fn add(&mut self, addr: u64, size: u64) -> Result<(), CoreError> {
        self.change(|segments| {
            segments.reserve(2)?;
            segments.add_span(Extent { addr, size }, Kind::Added)?;
            Ok(())
        })
    }

    /// Makes the last span larger by `size` units at its end. O(log spans).
    ///
    /// # Errors
    /// [`CoreError::Span`] when there is none, or the end is no number; [`CoreError::Memory`].
    pub(crate) fn grow(&mut self, size: u64) -> Result<(), CoreError> {
        self.change(|segments| segments.grow(size))
    }

    /// Takes `size` units at a multiple of `align`, a power of two.
    ///
    /// # Errors
    /// [`CoreError::Span`] when the size or alignment is none; [`CoreError::NoSpace`], [`CoreError::Memory`].
    pub(crate) fn alloc(&mut self, size: u64, align: u64, fit: Fit) -> Result<u64, CoreError> {
        self.check(size)?;
        if !align.is_power_of_two() {
            return Err(CoreError::Span);
        }
        let want = Want::aligned(size, align.max(self.table.quantum));
        self.change(|segments| {
            segments.reserve(2)?;
            let place = segments.find(&want, fit, Effort::Full);
            let (tag, addr) = place.ok_or(CoreError::NoSpace)?;
            segments.cut(tag, addr, size, Kind::Allocated);
            Ok(addr)
        })
    }

    /// Gives back what was taken. Constant time on average; needs no memory.
    ///
    /// # Errors
    /// [`CoreError::NotAllocated`], [`CoreError::WrongSize`].
    pub(crate) fn free(&mut self, addr: u64, size: u64) -> Result<(), CoreError> {
        self.change(|segments| {
            let tag = segments.allocated(addr, size)?;
            segments.free(tag);
            Ok(())
        })
    }

    /// Makes an allocation larger in its place. False when what follows it is not free, or too small. Constant time on average;
    /// needs no memory.
    ///
    /// # Errors
    /// [`CoreError::NotAllocated`], [`CoreError::WrongSize`]; [`CoreError::Span`] when the new size is no larger one.
    pub(crate) fn try_extend(&mut self, addr: u64, old: u64, new: u64) -> Result<bool, CoreError> {
        self.check(new)?;
        self.change(|segments| {
            let tag = segments.allocated(addr, old)?;
            let more = new.checked_sub(old).filter(|&more| more > 0);
            Ok(segments.extend(tag, more.ok_or(CoreError::Span)?))
        })
    }

    /// Makes an allocation smaller in its place. Constant time on average.
    ///
    /// # Errors
    /// [`CoreError::NotAllocated`], [`CoreError::WrongSize`]; [`CoreError::Span`] when the new size is no smaller one;
    /// [`CoreError::Memory`].
    pub(crate) fn shrink(&mut self, addr: u64, old: u64, new: u64) -> Result<(), CoreError> {
        self.check(new)?;
        self.change(|segments| {
            let tag = segments.allocated(addr, old)?;
            let less = old.checked_sub(new).filter(|&less| less > 0);
            let less = less.ok_or(CoreError::Span)?;
            segments.reserve(1)?;
            segments.shrink(tag, less);
            Ok(())
        })
    }

    /// The free segments by address.
    pub(crate) fn free_segments(&mut self) -> impl Iterator<Item = Extent> + '_ {
        let segments = self.segments();
        let mut at = segments.span_from(0);
        core::iter::from_fn(move || {
            while at != NONE {
                let tag = segments.tags.get(at);
                at = segments.following(at);
                if tag.kind() == Kind::Free {
                    return Some(Extent {
                        addr: tag.start(),
                        size: tag.size(),
                    });
                }
            }
            None
        })
    }

    /// A size is a multiple of the quantum and not 0.
    fn check(&self, size: u64) -> Result<(), CoreError> {
        let right = size > 0 && size & (self.table.quantum - 1) == 0;
        right.then_some(()).ok_or(CoreError::Span)
    }
}
