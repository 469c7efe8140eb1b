//! Where an arena's spans come from.

use core::fmt;

use super::core::Extent;
use super::error::Refusal;

/// A source of spans. An [`Arena`](super::Arena) is one; another might reserve addresses or ask a server for identifiers.
///
/// The arena calls it without holding a lock, from any thread, also from several at once.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use larder::arena::{Arena, Import, Extent, Refusal};
///
/// /// Numbers that were never given before.
/// #[derive(Debug, Default)]
/// struct Counter(AtomicU64);
///
/// impl Import for Counter {
///     fn import(&self, size: u64, align: u64) -> Result<Extent, Refusal> {
///         let room = size + align;
///         let addr = self.0.fetch_add(room, Ordering::Relaxed).next_multiple_of(align);
///         Ok(Extent { addr, size })
///     }
///     fn release(&self, _: Extent) {}
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
    fn import(&self, size: u64, align: u64) -> Result<Extent, Refusal>;

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
    fn release(&self, span: Extent);
}
