//! Where an arena's spans come from.

use core::fmt;

use super::arena::Arena;
use super::error::Refusal;
use super::request::{Request, round_up};

/// A span that a source gave.
///
/// ```
/// # use larder::arena::{Arena, Import, ImportedSpan};
/// let all = Arena::builder("all").quantum(8).build()?;
/// all.add(8, 56)?;
/// assert_eq!(all.import(10, 32)?, ImportedSpan { addr: 32, size: 16 }, "whole quanta");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportedSpan {
    /// First address.
    pub addr: u64,
    /// Size, at least what was asked for.
    pub size: u64,
}

/// A source of spans. An [`Arena`] is one; another might reserve addresses or ask a server for identifiers.
///
/// The arena calls it without holding a lock, from any thread, also from several at once.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use larder::arena::{Arena, Import, ImportedSpan, Refusal};
///
/// /// Numbers that were never given before.
/// #[derive(Debug, Default)]
/// struct Counter(AtomicU64);
///
/// impl Import for Counter {
///     fn import(&self, size: u64, align: u64) -> Result<ImportedSpan, Refusal> {
///         let room = size + align;
///         let addr = self.0.fetch_add(room, Ordering::Relaxed).next_multiple_of(align);
///         Ok(ImportedSpan { addr, size })
///     }
///     fn release(&self, _: ImportedSpan) {}
/// }
///
/// let arena = Arena::builder("tickets").source(Arc::new(Counter::default())).build()?;
/// let ticket = arena.alloc(1)?;
/// arena.free(ticket, 1)?;
/// assert_eq!(arena.stats().imports, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Import: fmt::Debug + Send + Sync {
    /// Gives a span of at least `size` units, whose address is a multiple of `align`, a power of two.
    ///
    /// ```
    /// # use larder::arena::{Arena, Import};
    /// let all = Arena::builder("all").build()?;
    /// all.add(8, 100)?;
    /// let span = all.import(10, 16)?;
    /// assert_eq!((span.addr, span.size), (16, 10));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// What refused, and why.
    fn import(&self, size: u64, align: u64) -> Result<ImportedSpan, Refusal>;

    /// Takes back a span exactly as it was given. What the source cannot take it must keep account of itself.
    ///
    /// ```
    /// # use larder::arena::{Arena, Import};
    /// # let all = Arena::builder("all").build()?;
    /// # all.add(8, 100)?;
    /// all.release(all.import(10, 16)?);
    /// assert_eq!(all.stats().free, 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn release(&self, span: ImportedSpan);
}

impl Import for Arena {
    fn import(&self, size: u64, align: u64) -> Result<ImportedSpan, Refusal> {
        let addr = if align <= self.quantum() {
            self.alloc(size)?
        } else {
            self.xalloc(&Request::new(size).align(align))?
        };
        let size = round_up(self.name(), size, self.quantum())?;
        Ok(ImportedSpan { addr, size })
    }

    fn release(&self, span: ImportedSpan) {
        let freed = self.free(span.addr, span.size);
        debug_assert!(freed.is_ok(), "{freed:?}");
    }
}
