//! The segments of all spans: added, cut, given back, joined, made larger and smaller.

use super::hash::Hash;
use super::idle::Idle;
use super::index::Index;
use super::list::Lists;
use super::tag::{Kind, NONE, Pool, TagArray, Tags};
use super::{CoreError, Extent};

/// What others than the owner may read.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) quantum: u64,
    pub(crate) tags: TagArray,
    pub(crate) hash: Hash,
}

/// What the owner alone reads, beside the links in the tags.
#[derive(Debug)]
pub(crate) struct State {
    pub(super) lists: Lists,
    pub(super) index: Index,
    pub(super) idle: Idle,
    pub(super) pool: Pool,
    pub(super) rotor: Rotor,
    pub(crate) counts: Counts,
    /// Operations so far; debug builds decide by it when to look at everything.
    #[cfg(debug_assertions)]
    pub(super) visits: u64,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            lists: Lists::new(),
            index: Index::new(),
            idle: Idle::new(),
            pool: Pool::new(),
            rotor: Rotor::default(),
            counts: Counts::default(),
            #[cfg(debug_assertions)]
            visits: 0,
        }
    }
}

/// Of what is allocated, idle spans may amount to one part in so many.
const SHARE: u64 = 8;

/// Where the last allocation ended, for next fit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rotor {
    /// Its last address.
    pub(super) last: Option<u64>,
    /// A tag whose segment contains that address, or did.
    pub(super) hint: u32,
}

/// Sums that are kept as things change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) spans: u64,
    pub(crate) segments: u64,
    /// Units in all spans.
    pub(crate) total: u64,
    /// Units in free segments.
    pub(crate) free: u64,
    /// Units in spans that came from the source.
    pub(crate) imported: u64,
    /// Units in imported spans that are free as a whole.
    pub(crate) idle: u64,
    pub(crate) allocs: u64,
    pub(crate) frees: u64,
}

/// The core in its owner's hands.
#[derive(Debug)]
pub(crate) struct Segments<'a> {
    pub(super) table: &'a Table,
    pub(crate) tags: Tags<'a>,
    pub(super) state: &'a mut State,
}

impl<'a> Segments<'a> {
    #[inline]
    pub(crate) fn new(table: &'a Table, state: &'a mut State) -> Self {
        Self {
            table,
            tags: table.tags.view(),
            state,
        }
    }

    /// The span of a segment that fills it, when that came from the source.
    pub(super) fn idle_import(&self, tag: u32) -> Option<u32> {
        let tags = self.tags;
        let it = tags.get(tag);
        let span = it.next();
        let whole = tags.get(span);
        (whole.kind() == Kind::Imported && whole.size() == it.size()).then_some(span)
    }

    /// Makes sure that there are `n` tags.
    ///
    /// # Errors
    /// [`CoreError::Memory`]; nothing has changed.
    #[inline]
    pub(crate) fn reserve(&mut self, n: u32) -> Result<(), CoreError> {
        if self.state.pool.has(self.tags, n) {
            return Ok(());
        }
        let grown = self.state.pool.reserve(&self.table.tags, n);
        self.tags = self.table.tags.view();
        grown.map_err(CoreError::Memory)
    }

    /// Checks a span and adds it, as one free segment, whose tag is returned. Two tags are reserved. O(log spans).
    ///
    /// # Errors
    /// [`CoreError::Span`], [`CoreError::Overlap`].
    pub(crate) fn add_span(&mut self, span: Extent, kind: Kind) -> Result<u32, CoreError> {
        let table = self.table;
        let tags = self.tags;
        let Extent { addr, size } = span;
        let aligned = (addr | size) & (table.quantum - 1) == 0;
        let last = size.checked_sub(1).and_then(|n| addr.checked_add(n));
        let last = last.filter(|_| aligned).ok_or(CoreError::Span)?;
        let other = self.state.index.overlapping(tags, addr, last);
        if other != NONE {
            return Err(CoreError::Overlap(Extent {
                addr: tags.get(other).start(),
                size: tags.get(other).size(),
            }));
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
        self.link_after(ring, segment);
        if kind == Kind::Imported {
            self.state.counts.imported += size;
            self.rest(ring);
        }
        Ok(segment)
    }

    /// Removes an idle span.
    fn remove_span(&mut self, span: u32) -> Extent {
        self.wake(span);
        let tags = self.tags;
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
        Extent { addr, size }
    }

    /// Notes that an imported span has become free as a whole.
    fn rest(&mut self, span: u32) {
        let tags = self.tags;
        self.state.counts.idle += tags.get(span).size();
        self.state.idle.push(tags, span);
    }

    /// Notes that an idle span is used, or goes.
    fn wake(&mut self, span: u32) {
        let tags = self.tags;
        self.state.counts.idle -= tags.get(span).size();
        self.state.idle.remove(tags, span);
    }

    /// Takes the oldest idle span out if more is idle than should be.
    ///
    /// The newest one is kept, so that one allocation back and forth does not import and give back each time, and so is an
    /// eighth of what is allocated.
    pub(crate) fn excess(&mut self) -> Option<Extent> {
        let newest = self.state.idle.newest;
        let counts = &self.state.counts;
        let used = counts.total - counts.free;
        let kept = self.tags.get(newest).size().max(used / SHARE);
        (newest != NONE && counts.idle > kept)
            .then(|| self.take_idle())
            .flatten()
    }

    /// Takes the oldest idle span out.
    pub(crate) fn take_idle(&mut self) -> Option<Extent> {
        match self.state.idle.oldest {
            NONE => None,
            span => Some(self.remove_span(span)),
        }
    }

    /// The segment that begins at `addr` and is not free, or `NONE`.
    pub(crate) fn taken_at(&self, addr: u64) -> u32 {
        self.table.hash.find(self.tags, addr)
    }

    /// The span or segment after `tag`, or `NONE`.
    pub(crate) fn following(&self, tag: u32) -> u32 {
        let tags = self.tags;
        let next = tags.get(tag).next();
        if tags.get(next).kind().is_span() {
            self.state.index.after(tags, next)
        } else {
            next
        }
    }

    /// The first span that begins at `addr` or later, or `NONE`.
    pub(crate) fn span_from(&self, addr: u64) -> u32 {
        self.state.index.ceiling(self.tags, addr)
    }

    /// Tags that were ever used, number 0 included.
    pub(crate) fn tags(&self) -> u32 {
        self.state.pool.counts().0
    }

    /// Puts the segment `tag` after `before`, its neighbour or its span.
    fn link_after(&mut self, before: u32, tag: u32) {
        let tags = self.tags;
        let after = tags.get(before).next();
        tags.get(tag).set_prev(before);
        tags.get(tag).set_next(after);
        tags.get(before).set_next(tag);
        tags.get(after).set_prev(tag);
        self.state.counts.segments += 1;
    }

    /// Takes a segment out of the ring of its span, and its tag back.
    fn unlink(&mut self, tag: u32) {
        let tags = self.tags;
        let it = tags.get(tag);
        tags.get(it.prev()).set_next(it.next());
        tags.get(it.next()).set_prev(it.prev());
        self.state.pool.put(tags, tag);
        self.state.counts.segments -= 1;
    }

    /// Cuts `size` units at `addr` out of the free segment `tag` and hands them out as `kind`. Two tags are reserved.
    ///
    /// What lies before keeps the tag, what lies after gets a new one. Constant time.
    pub(crate) fn cut(&mut self, tag: u32, addr: u64, size: u64, kind: Kind) -> u32 {
        let table = self.table;
        let tags = self.tags;
        let whole = tags.get(tag);
        let (start, old) = (whole.start(), whole.size());
        if let Some(span) = self.idle_import(tag) {
            self.wake(span);
        }
        self.state.lists.remove(tags, tag);
        let before = addr - start;
        let after = old - before - size;
        let mut taken = tag;
        if before > 0 {
            whole.set_size(before);
            self.state.lists.insert(tags, tag);
            taken = self.state.pool.take(tags);
            self.link_after(tag, taken);
        }
        if after > 0 {
            let rest = self.state.pool.take(tags);
            tags.get(rest).set_start(addr + size);
            tags.get(rest).set_size(after);
            self.link_after(taken, rest);
            self.state.lists.insert(tags, rest);
        }
        let it = tags.get(taken);
        it.set_start(addr);
        it.set_size(size);
        it.set_kind(kind);
        table.hash.insert(tags, taken);
        self.state.counts.free -= size;
        self.state.counts.allocs += 1;
        self.state.rotor = Rotor {
            last: Some(addr + (size - 1)),
            hint: taken,
        };
        taken
    }

    /// Frees an allocated segment and joins it with free neighbours. Constant time, but for the hash chain.
    pub(crate) fn free(&mut self, tag: u32) {
        let table = self.table;
        let tags = self.tags;
        table.hash.remove(tags, tag);
        self.state.counts.free += tags.get(tag).size();
        self.state.counts.frees += 1;
        let mut joined = tag;
        let before = tags.get(tag).prev();
        if tags.get(before).kind() == Kind::Free {
            self.state.lists.remove(tags, before);
            joined = self.absorb(before);
        }
        let after = tags.get(joined).next();
        if tags.get(after).kind() == Kind::Free {
            self.state.lists.remove(tags, after);
            self.absorb(joined);
        }
        self.state.lists.insert(tags, joined);
        if let Some(span) = self.idle_import(joined) {
            self.rest(span);
        }
    }

    /// Makes `tag` larger by its next neighbour, whose tag goes. Neither is on a list.
    fn absorb(&mut self, tag: u32) -> u32 {
        let tags = self.tags;
        let next = tags.get(tag).next();
        tags.get(tag)
            .set_size(tags.get(tag).size() + tags.get(next).size());
        if self.state.rotor.hint == next {
            self.state.rotor.hint = tag;
        }
        self.unlink(next);
        tag
    }

    /// The span that contains `addr`, or `NONE`.
    pub(crate) fn span_of(&self, addr: u64) -> u32 {
        let span = self.state.index.floor(self.tags, addr);
        if span != NONE && self.tags.get(span).last() >= addr {
            span
        } else {
            NONE
        }
    }
}
