//! Spans: added by hand, imported from the source, and given back when they are free as a whole.

use core::sync::atomic::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::arena::Arena;
use super::error::{ArenaError, Refusal};
use super::import::{Import, ImportedSpan};
use super::request::Want;
use super::segments::Segments;
use super::tag::{Kind, NONE};
use crate::os::fork;
use crate::os::lock::order::{Rank, calls};

impl Segments<'_> {
    /// Checks a span and adds it, as one free segment, whose tag is returned. Two tags are reserved.
    fn add_span(&mut self, span: ImportedSpan, kind: Kind) -> Result<u32, ArenaError> {
        let shared = self.shared;
        let (tags, arena, quantum) = (&shared.tags, shared.name, shared.quantum);
        let ImportedSpan { addr, size } = span;
        let aligned = (addr | size) & (quantum - 1) == 0;
        let last = size.checked_sub(1).and_then(|n| addr.checked_add(n));
        let Some(last) = last.filter(|_| aligned) else {
            return Err(ArenaError::Span {
                arena,
                addr,
                size,
                quantum,
            });
        };
        let other = self.state.index.overlapping(tags, addr, last);
        if other != NONE {
            return Err(ArenaError::Overlap {
                arena,
                addr,
                size,
                other: tags.get(other).start(),
                other_size: tags.get(other).size(),
            });
        }
        let state = &mut *self.state;
        let (ring, segment) = (state.pool.take(tags), state.pool.take(tags));
        for tag in [ring, segment] {
            tags.get(tag).set_start(addr);
            tags.get(tag).set_size(size);
        }
        let it = tags.get(ring);
        it.set_kind(kind);
        it.set_prev(ring);
        it.set_next(ring);
        state.index.insert(tags, ring);
        state.lists.insert(tags, segment);
        state.counts.spans += 1;
        state.counts.total += size;
        state.counts.free += size;
        if kind == Kind::Imported {
            state.counts.imported += size;
            self.rest(ring);
        }
        self.link_after(ring, segment);
        Ok(segment)
    }

    /// Removes an imported span that is one free segment.
    pub(super) fn remove_span(&mut self, span: u32) -> ImportedSpan {
        self.wake(span);
        let shared = self.shared;
        let tags = &shared.tags;
        let state = &mut *self.state;
        let segment = tags.get(span).next();
        state.lists.remove(tags, segment);
        state.index.remove(tags, span);
        state.pool.put(tags, segment);
        state.pool.put(tags, span);
        let (addr, size) = (tags.get(span).start(), tags.get(span).size());
        state.counts.segments -= 1;
        state.counts.spans -= 1;
        state.counts.total -= size;
        state.counts.free -= size;
        state.counts.imported -= size;
        state.counts.releases += 1;
        ImportedSpan { addr, size }
    }

    /// Units that may still be added, and what there is.
    fn check_limit(&self, limit: u64, size: u64) -> Result<(), ArenaError> {
        let total = self.state.counts.total;
        // What the parent's other threads were importing never arrives in the child of a fork.
        let importing = match self.state.importing {
            (size, generation) if generation == fork::generation() => size,
            _ => 0,
        };
        let sum = total
            .checked_add(importing)
            .and_then(|sum| sum.checked_add(size));
        if sum.is_some_and(|sum| sum <= limit) {
            return Ok(());
        }
        Err(ArenaError::Limit {
            arena: self.shared.name,
            size,
            limit,
            total: total.saturating_add(importing),
        })
    }
}

impl Arena {
    /// Adds a span by hand. It stays for as long as the arena does.
    ///
    /// O(log spans).
    ///
    /// ```
    /// # use larder::arena::{Arena, ArenaError};
    /// let ids = Arena::builder("ids").build()?;
    /// ids.add(100, 50)?;
    /// assert_eq!(ids.alloc(50)?, 100);
    /// assert!(matches!(ids.add(149, 1), Err(ArenaError::Overlap { other: 100, .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ArenaError::Span`], [`ArenaError::Overlap`], [`ArenaError::Limit`], [`ArenaError::Memory`].
    pub fn add(&self, addr: u64, size: u64) -> Result<(), ArenaError> {
        let mut segments = self.lock();
        segments.check_limit(self.limit(), size)?;
        self.reserve(&segments)?;
        segments.add_span(ImportedSpan { addr, size }, Kind::Added)?;
        Ok(())
    }

    /// Most units that all spans together may have.
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// assert_eq!(Arena::builder("ids").limit(10).build()?.limit(), 10);
    /// assert_eq!(Arena::builder("ids").build()?.limit(), u64::MAX);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Changes the limit. A lower one takes nothing away; it only keeps further spans out.
    ///
    /// ```
    /// # use larder::arena::{Arena, ArenaError};
    /// let ids = Arena::builder("ids").limit(10).build()?;
    /// assert!(matches!(ids.add(0, 11), Err(ArenaError::Limit { limit: 10, .. })));
    /// ids.set_limit(11);
    /// ids.add(0, 11)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_limit(&self, units: u64) {
        self.limit.store(units, Ordering::Relaxed);
    }

    /// Imports a span for a request and cuts it from that.
    pub(super) fn import(&self, want: &Want, kind: Kind) -> Result<u32, ArenaError> {
        let Some(source) = self.source.as_deref().filter(|_| !want.is_bounded()) else {
            return Err(self.no_space(want));
        };
        let Some((need, align)) = want.span() else {
            return Err(self.no_space(want));
        };
        // More than is needed, so that the next requests find something; where that is refused, no more than that.
        let unit = need.checked_next_multiple_of(self.unit).unwrap_or(need);
        match self.import_span(source, unit, align, want, kind) {
            Err(_) if need < unit => self.import_span(source, need, align, want, kind),
            result => result,
        }
    }

    fn import_span(
        &self,
        source: &dyn Import,
        size: u64,
        align: u64,
        want: &Want,
        kind: Kind,
    ) -> Result<u32, ArenaError> {
        {
            let mut segments = self.lock();
            if segments.state.importing.1 != fork::generation() {
                segments.state.importing = (0, fork::generation());
            }
            segments.check_limit(self.limit(), size)?;
            segments.state.importing.0 += size;
        }
        // A source that panics must not leave its size on the account.
        let given = catch_unwind(AssertUnwindSafe(|| {
            let _outside = calls("a source", Rank::Arena);
            source.import(size, align)
        }));
        let mut segments = self.lock();
        segments.state.importing.0 = segments.state.importing.0.saturating_sub(size);
        let given = match given {
            Ok(given) => given,
            Err(panic) => {
                drop(segments);
                resume_unwind(panic);
            }
        };
        let refused = |refusal| ArenaError::Source {
            arena: self.name(),
            size,
            refusal,
        };
        let span = given.map_err(refused)?;
        let taken = (|| {
            let last = span.addr.checked_add(span.size.wrapping_sub(1));
            let addr = last.and_then(|last| want.fit(span.addr, last));
            let addr = addr.ok_or(refused(Refusal {
                by: self.name(),
                why: "the source gave a span that is smaller or less aligned than it was asked for",
                cause: None,
            }))?;
            segments.check_limit(u64::MAX, span.size)?;
            self.reserve(&segments)?;
            let whole = segments.add_span(span, Kind::Imported)?;
            segments.state.counts.imports += 1;
            Ok(segments.cut(whole, addr, want.size, kind))
        })();
        drop(segments);
        if taken.is_err() {
            let _outside = calls("a source", Rank::Arena);
            source.release(span);
        }
        taken
    }

    /// Gives idle spans back to the source: those of which there are too many, or all. Says how many units went. The lock
    /// that was taken is let go, since the source is called without it.
    pub(super) fn release_idle<'a>(&'a self, mut segments: Segments<'a>, all: bool) -> u64 {
        let mut units = 0;
        loop {
            let span = if all {
                segments.take_idle()
            } else {
                segments.excess()
            };
            drop(segments);
            let (Some(span), Some(source)) = (span, &self.source) else {
                return units;
            };
            {
                let _outside = calls("a source", Rank::Arena);
                source.release(span);
            }
            units += span.size;
            segments = self.lock();
        }
    }
}
