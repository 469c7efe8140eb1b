//! A core behind a lock, with spans from a source.

use core::sync::atomic::{AtomicU64, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use super::core::{CoreError, Effort, Extent, Fit, Kind, Segments, State, Table, Want};
use super::error::{ArenaError, Refusal};
use super::import::Import;
use crate::os::fork;
use crate::os::forked::ForkLock;
use crate::os::lock::Guard;
use crate::os::lock::order::{Rank, Ranked, calls};

/// Tags that one operation needs at most: two for a span, two for what is left around a segment.
const TAGS: u32 = 4;

/// What the lock guards.
#[derive(Debug)]
pub(super) struct Guarded {
    pub(super) state: State,
    /// Units that are being imported, and by which process generation.
    importing: (u64, u32),
    /// Calls that failed.
    pub(super) fails: u64,
    /// Spans imported.
    pub(super) imports: u64,
    /// Spans given back to the source.
    pub(super) releases: u64,
}

impl Guarded {
    pub(super) fn new(state: State) -> Self {
        Self {
            state,
            importing: (0, 0),
            fails: 0,
            imports: 0,
            releases: 0,
        }
    }
}

impl Ranked for Guarded {
    const RANK: Rank = Rank::Arena;
}

/// Segments of spans that are added or imported. Quantum caches read the table without the lock.
#[derive(Debug)]
pub(super) struct Ranges {
    pub(super) name: &'static str,
    pub(super) table: Table,
    pub(super) guarded: ForkLock<Guarded>,
    pub(super) fit: Fit,
    pub(super) source: Option<Arc<dyn Import>>,
    /// Imports are multiples of this.
    pub(super) unit: u64,
    pub(super) limit: AtomicU64,
}

/// The lock, taken.
#[derive(Debug)]
pub(super) struct Locked<'a> {
    table: &'a Table,
    pub(super) guard: Guard<'a, Guarded>,
}

impl Locked<'_> {
    #[inline]
    pub(super) fn segments(&mut self) -> Segments<'_> {
        Segments::new(self.table, &mut self.guard.state)
    }
}

#[cfg(debug_assertions)]
impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.segments().audit_when_due();
    }
}

impl Ranges {
    #[inline]
    pub(super) fn lock(&self) -> Locked<'_> {
        Locked {
            table: &self.table,
            guard: self.guarded.lock(),
        }
    }

    /// The core's refusal of a span, or of memory.
    fn refused(&self, error: CoreError, span: Extent) -> ArenaError {
        let (arena, Extent { addr, size }) = (self.name, span);
        match error {
            CoreError::Overlap(other) => ArenaError::Overlap {
                arena,
                addr,
                size,
                other: other.addr,
                other_size: other.size,
            },
            CoreError::Memory(cause) => ArenaError::Memory { arena, cause },
            CoreError::Span => ArenaError::Span {
                arena,
                addr,
                size,
                quantum: self.table.quantum,
            },
        }
    }

    /// Makes sure that there are tags for one operation.
    fn reserve(&self, locked: &mut Locked<'_>) -> Result<(), ArenaError> {
        let reserved = locked.segments().reserve(TAGS);
        reserved.map_err(|error| self.refused(error, Extent { addr: 0, size: 0 }))
    }

    fn check_limit(&self, locked: &Locked<'_>, limit: u64, size: u64) -> Result<(), ArenaError> {
        let total = locked.guard.state.counts.total;
        // What the parent's other threads were importing never arrives in the child of a fork.
        let importing = match locked.guard.importing {
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
            arena: self.name,
            size,
            limit,
            total: total.saturating_add(importing),
        })
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Adds a span by hand.
    pub(super) fn add(&self, span: Extent) -> Result<(), ArenaError> {
        let mut locked = self.lock();
        self.check_limit(&locked, self.limit(), span.size)?;
        self.reserve(&mut locked)?;
        let added = locked.segments().add_span(span, Kind::Added);
        added.map_err(|error| self.refused(error, span))?;
        Ok(())
    }

    pub(super) fn no_space(&self, want: &Want) -> ArenaError {
        ArenaError::NoSpace {
            arena: self.name,
            request: want.into(),
            free: self.lock().guard.state.counts.free,
        }
    }

    /// Cuts a request from a free segment, or from a new span.
    pub(super) fn take(&self, want: &Want, kind: Kind) -> Result<u32, ArenaError> {
        let bounded = self.source.is_some() && !want.is_bounded();
        let effort = if bounded {
            Effort::Bounded
        } else {
            Effort::Full
        };
        if let Some(tag) = self.take_here(want, kind, effort)? {
            return Ok(tag);
        }
        self.import(want, kind).or_else(|error| {
            // The search may have been cut short.
            match bounded.then(|| self.take_here(want, kind, Effort::Full)) {
                Some(Ok(Some(tag))) => Ok(tag),
                _ => Err(error),
            }
        })
    }

    /// Cuts a request from a free segment.
    fn take_here(
        &self,
        want: &Want,
        kind: Kind,
        effort: Effort,
    ) -> Result<Option<u32>, ArenaError> {
        let fit = want.fit.unwrap_or(self.fit);
        let mut locked = self.lock();
        self.reserve(&mut locked)?;
        let mut segments = locked.segments();
        let place = segments.find(want, fit, effort);
        Ok(place.map(|(tag, addr)| segments.cut(tag, addr, want.size, kind)))
    }

    /// Cuts as many more of the same from free segments as `out` has places. Says how many there were.
    pub(super) fn take_more(&self, want: &Want, kind: Kind, out: &mut [usize]) -> usize {
        let mut locked = self.lock();
        let mut segments = locked.segments();
        for (n, slot) in out.iter_mut().enumerate() {
            let place = segments
                .reserve(TAGS)
                .ok()
                .and_then(|()| segments.find(want, self.fit, Effort::Bounded));
            let Some((tag, addr)) = place else { return n };
            *slot = segments.cut(tag, addr, want.size, kind) as usize;
        }
        out.len()
    }

    /// Imports a span for a request and cuts it from that.
    fn import(&self, want: &Want, kind: Kind) -> Result<u32, ArenaError> {
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
            let mut locked = self.lock();
            let importing = &mut locked.guard.importing;
            if importing.1 != fork::generation() {
                *importing = (0, fork::generation());
            }
            self.check_limit(&locked, self.limit(), size)?;
            locked.guard.importing.0 += size;
        }
        // A source that panics must not leave its size on the account.
        let given = catch_unwind(AssertUnwindSafe(|| {
            let _outside = calls("a source", Rank::Arena);
            source.import(size, align)
        }));
        let mut locked = self.lock();
        let importing = &mut locked.guard.importing.0;
        *importing = importing.saturating_sub(size);
        let given = match given {
            Ok(given) => given,
            Err(panic) => {
                drop(locked);
                resume_unwind(panic);
            }
        };
        let refused = |refusal| ArenaError::Source {
            arena: self.name,
            size,
            refusal,
        };
        let span = given.map_err(refused)?;
        let taken = (|| {
            let last = span.addr.checked_add(span.size.wrapping_sub(1));
            let addr = last.and_then(|last| want.place(span.addr, last));
            let addr = addr.ok_or(refused(Refusal {
                by: self.name,
                why: "the source gave a span that is smaller or less aligned than it was asked for",
                cause: None,
            }))?;
            self.check_limit(&locked, u64::MAX, span.size)?;
            self.reserve(&mut locked)?;
            let mut segments = locked.segments();
            let whole = segments.add_span(span, Kind::Imported);
            let whole = whole.map_err(|error| self.refused(error, span))?;
            let taken = segments.cut(whole, addr, want.size, kind);
            locked.guard.imports += 1;
            Ok(taken)
        })();
        drop(locked);
        if taken.is_err() {
            let _outside = calls("a source", Rank::Arena);
            source.release(span);
        }
        taken
    }

    /// Gives idle spans back to the source: those of which there are too many, or all. Says how many units went. The lock
    /// that was taken is let go, since the source is called without it.
    pub(super) fn release_idle<'a>(&'a self, mut locked: Locked<'a>, all: bool) -> u64 {
        let mut units = 0;
        loop {
            let span = if all {
                locked.segments().take_idle()
            } else {
                locked.segments().excess()
            };
            let (Some(span), Some(source)) = (span, &self.source) else {
                return units;
            };
            locked.guard.releases += 1;
            drop(locked);
            {
                let _outside = calls("a source", Rank::Arena);
                source.release(span);
            }
            units += span.size;
            locked = self.lock();
        }
    }
}
