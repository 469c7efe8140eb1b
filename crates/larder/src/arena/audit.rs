//! The invariants, checked one by one.

use super::arena::Arena;
use super::list::Lists;
use super::segments::{Counts, Segments};
use super::tag::{Kind, NONE};

impl Arena {
    /// Checks that tags, lists, hash, index and counters agree. For tests, and for programs in which memory may be corrupt;
    /// debug builds do it on their own after operations, as often as keeps that affordable.
    ///
    /// O(segments), under the lock.
    ///
    /// ```
    /// # use larder::arena::Arena;
    /// let ids = Arena::builder("ids").build()?;
    /// ids.add(0, 100)?;
    /// ids.audit()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The invariant that does not hold: something wrote into the arena's own memory, or the arena has a mistake.
    pub fn audit(&self) -> Result<(), Broken> {
        self.lock().audit()
    }
}

/// An invariant that does not hold.
///
/// ```
/// # use larder::arena::Broken;
/// let broken = Broken { arena: "ids", what: "a free segment on no list", addr: 7 };
/// assert!(broken.to_string().starts_with("arena ids: a free segment on no list at 7"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("arena {arena}: {what} at {addr}; report it, and do not use the arena any more")]
pub struct Broken {
    /// The arena's name.
    pub arena: &'static str,
    /// What is wrong.
    pub what: &'static str,
    /// Where.
    pub addr: u64,
}

/// Sums of what a walk saw.
struct Seen {
    counts: Counts,
    taken: u32,
    /// Free segments by list.
    listed: [u64; 64],
}

impl Segments<'_> {
    fn ensure(&self, holds: bool, what: &'static str, addr: u64) -> Result<(), Broken> {
        let arena = self.shared.name;
        if holds {
            Ok(())
        } else {
            Err(Broken { arena, what, addr })
        }
    }

    pub(super) fn audit(&self) -> Result<(), Broken> {
        let tags = &self.shared.tags;
        let mut seen = Seen {
            counts: Counts::default(),
            taken: 0,
            listed: [0; 64],
        };
        let mut end = None;
        let mut span = self.state.index.first(tags);
        while span != NONE {
            let it = tags.get(span);
            self.ensure(
                it.kind().is_span(),
                "a span in the index is none",
                it.start(),
            )?;
            self.ensure(
                end.is_none_or(|end| it.start() > end),
                "two spans overlap",
                it.start(),
            )?;
            self.ensure(
                self.state.index.floor(tags, it.last()) == span,
                "the index does not find a span",
                it.start(),
            )?;
            self.audit_span(span, &mut seen)?;
            end = Some(it.last());
            span = self.state.index.after(tags, span);
        }
        let idle = self.state.idle.spans(tags).map(|span| tags.get(span));
        self.ensure(
            idle.map(|span| span.size()).sum::<u64>() == seen.counts.idle,
            "idle spans are not those that are listed",
            seen.counts.idle,
        )?;
        self.audit_lists(&seen)?;
        self.audit_hash(&seen)?;
        self.audit_counts(&seen)
    }

    /// The segments of a span tile it, and free neighbours are joined.
    fn audit_span(&self, span: u32, seen: &mut Seen) -> Result<(), Broken> {
        let tags = &self.shared.tags;
        let whole = tags.get(span);
        seen.counts.spans += 1;
        seen.counts.total += whole.size();
        let imported = whole.kind() == Kind::Imported;
        if imported {
            seen.counts.imported += whole.size();
            if self.idle_import(whole.next()) == Some(span)
                && tags.get(whole.next()).kind() == Kind::Free
            {
                seen.counts.idle += whole.size();
            }
        }
        let (mut before, mut at, mut expected) = (span, whole.next(), Some(whole.start()));
        while at != span {
            let it = tags.get(at);
            let addr = it.start();
            self.ensure(
                expected == Some(addr),
                "segments do not tile their span",
                addr,
            )?;
            self.ensure(it.prev() == before, "a link back does not lead back", addr)?;
            self.ensure(
                it.size() > 0 && it.size().is_multiple_of(self.shared.quantum),
                "a size is no multiple of the quantum",
                addr,
            )?;
            let kind = it.kind();
            self.ensure(
                kind == Kind::Free || kind.is_taken(),
                "a segment is neither free nor taken",
                addr,
            )?;
            if kind == Kind::Free {
                self.ensure(
                    tags.get(before).kind() != Kind::Free,
                    "two free neighbours are not joined",
                    addr,
                )?;
                seen.counts.free += it.size();
                seen.listed[Lists::of(it.size()) as usize] += 1;
            } else {
                self.ensure(
                    self.shared.hash.find(tags, addr) == at,
                    "the hash does not find a segment",
                    addr,
                )?;
                seen.taken += 1;
            }
            seen.counts.segments += 1;
            expected = addr.checked_add(it.size());
            (before, at) = (at, it.next());
        }
        self.ensure(
            whole.prev() == before && tags.get(before).last() == whole.last(),
            "segments do not fill their span",
            whole.start(),
        )
    }

    /// Each list has the free segments of its sizes and nothing else.
    fn audit_lists(&self, seen: &Seen) -> Result<(), Broken> {
        let tags = &self.shared.tags;
        for n in 0..64 {
            let (mut many, mut before) = (0, NONE);
            for tag in self.state.lists.segments(tags, n) {
                let it = tags.get(tag);
                self.ensure(
                    it.kind() == Kind::Free && Lists::of(it.size()) == n && it.left() == before,
                    "a list has what does not belong there",
                    it.start(),
                )?;
                many += 1;
                before = tag;
            }
            self.ensure(
                many == seen.listed[n as usize],
                "a free segment is on no list",
                1 << n,
            )?;
            self.ensure(
                self.state.lists.filled_from(n).next() == Some(n) || many == 0,
                "a list is not marked as filled",
                1 << n,
            )?;
            self.ensure(
                self.state.lists.filled_from(n).next() != Some(n) || many > 0,
                "an empty list is marked as filled",
                1 << n,
            )?;
        }
        Ok(())
    }

    /// The hash has as many segments as are taken; that it finds each was seen.
    fn audit_hash(&self, seen: &Seen) -> Result<(), Broken> {
        let hash = &self.shared.hash;
        let mut many = 0;
        for bucket in 0..hash.buckets() {
            many += hash.chain(&self.shared.tags, bucket).count();
        }
        self.ensure(
            hash.len() == seen.taken && many == seen.taken as usize,
            "the hash has what is not taken",
            u64::from(hash.len()),
        )
    }

    fn audit_counts(&self, seen: &Seen) -> Result<(), Broken> {
        let counts = &self.state.counts;
        let same = Counts {
            allocs: counts.allocs,
            frees: counts.frees,
            fails: counts.fails,
            imports: counts.imports,
            releases: counts.releases,
            ..seen.counts
        };
        self.ensure(
            *counts == same && counts.allocs - counts.frees == u64::from(seen.taken),
            "a counter is wrong",
            counts.total,
        )?;
        let (made, unused) = self.state.pool.counts();
        self.ensure(
            u64::from(made) == 1 + u64::from(unused) + seen.counts.spans + seen.counts.segments,
            "a tag is lost",
            u64::from(made),
        )
    }
}

#[cfg(debug_assertions)]
impl Drop for Segments<'_> {
    /// Audits the arena after an operation: always when it is small, else once in as many visits as it has segments for
    /// every 64, so that an operation pays for about 64 segments.
    fn drop(&mut self) {
        self.state.visits = self.state.visits.wrapping_add(1);
        let due = (self.state.visits).is_multiple_of(1 + self.state.counts.segments / 64);
        if due
            && !std::thread::panicking()
            && let Err(broken) = self.audit()
        {
            panic!("{broken}");
        }
    }
}
