//! All segments, in the order of addresses.

use super::arena::Arena;
use super::segments::Segments;
use super::tag::{Kind, NONE};

/// Segments that are read under one lock.
const BATCH: usize = 64;

/// What a segment is.
///
/// ```
/// # use larder::arena::{Arena, SegmentKind};
/// let ids = Arena::builder("ids").build()?;
/// ids.add(0, 100)?;
/// ids.alloc(10)?;
/// let kinds: Vec<_> = ids.walk().map(|segment| segment.kind).collect();
/// assert_eq!(kinds, [SegmentKind::AddedSpan, SegmentKind::Allocated, SegmentKind::Free]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentKind {
    /// A span that was added by hand; its segments follow.
    AddedSpan,
    /// A span from the source; its segments follow.
    ImportedSpan,
    /// Free.
    Free,
    /// In a consumer's hands.
    Allocated,
    /// In a magazine of a quantum cache.
    Cached,
}

/// One segment, or a span as a whole.
///
/// ```
/// # use larder::arena::{Arena, Segment, SegmentKind};
/// let ids = Arena::builder("ids").build()?;
/// ids.add(7, 100)?;
/// let free = Segment { addr: 7, size: 100, kind: SegmentKind::Free };
/// assert_eq!(ids.walk().nth(1), Some(free), "after the span itself");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// First address.
    pub addr: u64,
    /// Size.
    pub size: u64,
    /// What it is.
    pub kind: SegmentKind,
}

/// The segments of an arena; made by [`Arena::walk`].
///
/// ```
/// # use larder::arena::Arena;
/// let ids = Arena::builder("ids").build()?;
/// ids.add(0, 100)?;
/// let mut walk = ids.walk();
/// assert!(walk.next().is_some_and(|span| span.size == 100));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Walk<'a> {
    arena: &'a Arena,
    batch: [Option<Segment>; BATCH],
    at: usize,
    /// The tag that was read last, and what it was.
    last: Option<(u32, Segment)>,
    done: bool,
}

impl Arena {
    /// All spans and segments in the order of addresses: each span, then its segments.
    ///
    /// The arena may be used meanwhile, also by the caller: 64 segments at a time are read under the lock, and what changes
    /// between is seen or not. Constant time for each segment; when the very segment where a batch ended has gone, its
    /// span's segments are passed once more.
    ///
    /// ```
    /// # use larder::arena::{Arena, SegmentKind};
    /// let ids = Arena::builder("ids").build()?;
    /// ids.add(0, 100)?;
    /// ids.alloc(10)?;
    /// let free: u64 = ids.walk().filter(|s| s.kind == SegmentKind::Free).map(|s| s.size).sum();
    /// assert_eq!(free, 90);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn walk(&self) -> Walk<'_> {
        Walk {
            arena: self,
            batch: [None; BATCH],
            at: BATCH,
            last: None,
            done: false,
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        if self.at == BATCH && !self.done {
            self.read();
        }
        let segment = self.batch.get(self.at).copied().flatten()?;
        self.at += 1;
        Some(segment)
    }
}

impl Walk<'_> {
    fn read(&mut self) {
        let segments = self.arena.lock();
        let mut at = match self.last {
            None => segments.state.index.first(&segments.shared.tags),
            Some((tag, segment)) => segments.resume(tag, segment),
        };
        self.batch = [None; BATCH];
        self.at = 0;
        for slot in &mut self.batch {
            if at == NONE {
                self.done = true;
                return;
            }
            let segment = segments.describe(at);
            *slot = Some(segment);
            self.last = Some((at, segment));
            at = segments.following(at);
        }
    }
}

impl Segments<'_> {
    fn describe(&self, tag: u32) -> Segment {
        let it = self.shared.tags.get(tag);
        Segment {
            addr: it.start(),
            size: it.size(),
            kind: match it.kind() {
                Kind::Added => SegmentKind::AddedSpan,
                Kind::Imported => SegmentKind::ImportedSpan,
                Kind::Allocated | Kind::Lent => SegmentKind::Allocated,
                Kind::Cached => SegmentKind::Cached,
                Kind::Free | Kind::Unused => SegmentKind::Free,
            },
        }
    }

    /// The span or segment after `tag`, or `NONE`.
    fn following(&self, tag: u32) -> u32 {
        let tags = &self.shared.tags;
        let next = tags.get(tag).next();
        if tags.get(next).kind().is_span() {
            self.state.index.after(tags, next)
        } else {
            next
        }
    }

    /// What follows `segment`, which was `tag` when it was read.
    fn resume(&self, tag: u32, segment: Segment) -> u32 {
        let tags = &self.shared.tags;
        let it = tags.get(tag);
        let span = matches!(
            segment.kind,
            SegmentKind::AddedSpan | SegmentKind::ImportedSpan
        );
        let same = it.kind() != Kind::Unused
            && it.kind().is_span() == span
            && (it.start(), it.size()) == (segment.addr, segment.size);
        if same {
            return self.following(tag);
        }
        // It was cut or joined. The first segment that begins after it, in its span or after.
        let from = segment.addr + (segment.size - 1);
        let mut at = match self.span_of(segment.addr) {
            NONE => return self.state.index.ceiling(tags, segment.addr),
            at => at,
        };
        loop {
            at = self.following(at);
            if at == NONE || tags.get(at).start() > from || span {
                return at;
            }
        }
    }
}
