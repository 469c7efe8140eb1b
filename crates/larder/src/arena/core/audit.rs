//! The invariants, checked one by one.

use super::list::Lists;
use super::segments::{Counts, Segments};
use super::tag::{Kind, NONE};

/// An invariant that does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Broken {
    /// What is wrong.
    pub(crate) what: &'static str,
    /// Where.
    pub(crate) addr: u64,
}

/// Sums of what a walk saw.
struct Seen {
    counts: Counts,
    taken: u32,
    /// Free segments by list.
    listed: [u64; 64],
}

impl Segments<'_> {
    /// Checks that tags, lists, hash, index and counters agree. O(segments).
    ///
    /// # Errors
    /// The invariant that does not hold.
    pub(crate) fn audit(&self) -> Result<(), Broken> {
        let tags = self.tags;
        let mut seen = Seen {
            counts: Counts::default(),
            taken: 0,
            listed: [0; 64],
        };
        let mut end = None;
        let mut span = self.state.index.first(tags);
        while span != NONE {
            let it = tags.get(span);
            ensure(
                it.kind().is_span(),
                "a span in the index is none",
                it.start(),
            )?;
            ensure(
                end.is_none_or(|end| it.start() > end),
                "two spans overlap",
                it.start(),
            )?;
            ensure(
                self.state.index.floor(tags, it.last()) == span,
                "the index does not find a span",
                it.start(),
            )?;
            self.audit_span(span, &mut seen)?;
            end = Some(it.last());
            span = self.state.index.after(tags, span);
        }
        let idle = self.state.idle.spans(tags).map(|span| tags.get(span));
        ensure(
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
        let tags = self.tags;
        let whole = tags.get(span);
        seen.counts.spans += 1;
        seen.counts.total += whole.size();
        let imported = whole.kind() == Kind::Imported;
        let idle = self.idle_import(whole.next()) == Some(span)
            && tags.get(whole.next()).kind() == Kind::Free;
        if imported {
            seen.counts.imported += whole.size();
        }
        if idle {
            seen.counts.idle += whole.size();
        }
        let (mut before, mut at, mut expected) = (span, whole.next(), Some(whole.start()));
        while at != span {
            let it = tags.get(at);
            let addr = it.start();
            ensure(
                expected == Some(addr),
                "segments do not tile their span",
                addr,
            )?;
            ensure(
                idle || it.prev() == before,
                "a link back does not lead back",
                addr,
            )?;
            ensure(
                it.size() > 0 && it.size().is_multiple_of(self.table.quantum),
                "a size is no multiple of the quantum",
                addr,
            )?;
            let kind = it.kind();
            ensure(
                kind == Kind::Free || kind.is_taken(),
                "a segment is neither free nor taken",
                addr,
            )?;
            if kind == Kind::Free {
                ensure(
                    tags.get(before).kind() != Kind::Free,
                    "two free neighbours are not joined",
                    addr,
                )?;
                seen.counts.free += it.size();
                seen.listed[Lists::of(it.size()) as usize] += 1;
            } else {
                ensure(
                    self.table.hash.find(tags, addr) == at,
                    "the hash does not find a segment",
                    addr,
                )?;
                seen.taken += 1;
            }
            seen.counts.segments += 1;
            expected = addr.checked_add(it.size());
            (before, at) = (at, it.next());
        }
        ensure(
            (idle || whole.prev() == before) && tags.get(before).last() == whole.last(),
            "segments do not fill their span",
            whole.start(),
        )
    }

    /// Each list has the free segments of its sizes and nothing else.
    fn audit_lists(&self, seen: &Seen) -> Result<(), Broken> {
        let tags = self.tags;
        for n in 0..64 {
            let (mut many, mut before) = (0, NONE);
            for tag in self.state.lists.segments(tags, n) {
                let it = tags.get(tag);
                ensure(
                    it.kind() == Kind::Free && Lists::of(it.size()) == n && it.left() == before,
                    "a list has what does not belong there",
                    it.start(),
                )?;
                many += 1;
                before = tag;
            }
            ensure(
                many == seen.listed[n as usize],
                "a free segment is on no list",
                1 << n,
            )?;
            ensure(
                self.state.lists.filled_from(n).next() == Some(n) || many == 0,
                "a list is not marked as filled",
                1 << n,
            )?;
            ensure(
                self.state.lists.filled_from(n).next() != Some(n) || many > 0,
                "an empty list is marked as filled",
                1 << n,
            )?;
        }
        Ok(())
    }

    /// The hash has as many segments as are taken; that it finds each was seen.
    fn audit_hash(&self, seen: &Seen) -> Result<(), Broken> {
        let hash = &self.table.hash;
        let mut many = 0;
        for bucket in 0..hash.buckets() {
            many += hash.chain(self.tags, bucket).count();
        }
        ensure(
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
            ..seen.counts
        };
        ensure(
            *counts == same && counts.allocs - counts.frees == u64::from(seen.taken),
            "a counter is wrong",
            counts.total,
        )?;
        let (made, unused) = self.state.pool.counts();
        ensure(
            u64::from(made) == 1 + u64::from(unused) + seen.counts.spans + seen.counts.segments,
            "a tag is lost",
            u64::from(made),
        )
    }

    /// Audits after an operation: always when there is little, else once in as many operations as there are segments for every
    /// 64, so that an operation pays for about 64 segments.
    #[cfg(debug_assertions)]
    pub(crate) fn audit_when_due(&mut self) {
        self.state.visits = self.state.visits.wrapping_add(1);
        let due = (self.state.visits).is_multiple_of(1 + self.state.counts.segments / 64);
        if due
            && !std::thread::panicking()
            && let Err(Broken { what, addr }) = self.audit()
        {
            panic!("arena: {what} at {addr}");
        }
    }
}

fn ensure(holds: bool, what: &'static str, addr: u64) -> Result<(), Broken> {
    holds.then_some(()).ok_or(Broken { what, addr })
}
