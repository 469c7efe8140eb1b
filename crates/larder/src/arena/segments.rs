//! The segments of all spans: cut, given back, joined. Everything here is under the arena's lock.

use super::hash::Hash;
use super::idle::Idle;
use super::index::Index;
use super::list::Lists;
use super::tag::{Kind, NONE, Pool, Tags};
use crate::os::lock::Guard;
use crate::os::lock::order::{Rank, Ranked};

/// What can be read without the lock.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) name: &'static str,
    pub(super) quantum: u64,
    pub(super) tags: Tags,
    pub(super) hash: Hash,
}

impl Ranked for State {
    const RANK: Rank = Rank::Arena;
}

/// What the lock guards, beside the links in the tags and the hash.
#[derive(Debug)]
pub(super) struct State {
    pub(super) lists: Lists,
    pub(super) index: Index,
    pub(super) idle: Idle,
    pub(super) pool: Pool,
    pub(super) rotor: Rotor,
    pub(super) counts: Counts,
    /// Units that are being imported, and by which process generation.
    pub(super) importing: (u64, u32),
    /// How often the lock was taken; debug builds decide by it when to look at everything.
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
            importing: (0, 0),
            #[cfg(debug_assertions)]
            visits: 0,
        }
    }
}

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
pub(super) struct Counts {
    pub(super) spans: u64,
    pub(super) segments: u64,
    /// Units in all spans.
    pub(super) total: u64,
    /// Units in free segments.
    pub(super) free: u64,
    /// Units in spans that came from the source.
    pub(super) imported: u64,
    /// Units in imported spans that are free as a whole.
    pub(super) idle: u64,
    pub(super) allocs: u64,
    pub(super) frees: u64,
    pub(super) fails: u64,
    pub(super) imports: u64,
    pub(super) releases: u64,
}

/// The arena under its lock.
#[derive(Debug)]
pub(super) struct Segments<'a> {
    pub(super) shared: &'a Shared,
    pub(super) state: Guard<'a, State>,
}

impl Segments<'_> {
    /// The span of a segment that fills it, when that came from the source.
    pub(super) fn idle_import(&self, tag: u32) -> Option<u32> {
        let tags = &self.shared.tags;
        let it = tags.get(tag);
        let span = it.next();
        (it.prev() == span && tags.get(span).kind() == Kind::Imported).then_some(span)
    }

    /// Puts the segment `tag` after `before`, its neighbour or its span.
    pub(super) fn link_after(&mut self, before: u32, tag: u32) {
        let tags = &self.shared.tags;
        let after = tags.get(before).next();
        tags.get(tag).set_prev(before);
        tags.get(tag).set_next(after);
        tags.get(before).set_next(tag);
        tags.get(after).set_prev(tag);
        self.state.counts.segments += 1;
    }

    /// Takes a segment out of the ring of its span, and its tag back.
    fn unlink(&mut self, tag: u32) {
        let tags = &self.shared.tags;
        let it = tags.get(tag);
        tags.get(it.prev()).set_next(it.next());
        tags.get(it.next()).set_prev(it.prev());
        self.state.pool.put(tags, tag);
        self.state.counts.segments -= 1;
    }

    /// Cuts `size` units at `addr` out of the free segment `tag` and hands them out as `kind`. Two tags are reserved.
    ///
    /// What lies before keeps the tag, what lies after gets a new one. Constant time.
    pub(super) fn cut(&mut self, tag: u32, addr: u64, size: u64, kind: Kind) -> u32 {
        let shared = self.shared;
        let tags = &shared.tags;
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
        shared.hash.insert(tags, taken);
        self.state.counts.free -= size;
        self.state.counts.allocs += 1;
        self.state.rotor = Rotor {
            last: Some(addr + (size - 1)),
            hint: taken,
        };
        taken
    }

    /// Frees an allocated segment and joins it with free neighbours. Constant time, but for the hash chain.
    pub(super) fn free(&mut self, tag: u32) {
        let shared = self.shared;
        let tags = &shared.tags;
        shared.hash.remove(tags, tag);
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
        let tags = &self.shared.tags;
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
    pub(super) fn span_of(&self, addr: u64) -> u32 {
        let span = self.state.index.floor(&self.shared.tags, addr);
        if span != NONE && self.shared.tags.get(span).last() >= addr {
            span
        } else {
            NONE
        }
    }
}
