//! All segments, in the order of addresses.

use super::arena::Arena;
use super::core::{Broken, Kind, NONE, Segments};
use super::error::ArenaError;

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

/// A walk, with the segments that it read last.
#[derive(Debug)]
struct Walk<'a> {
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
    pub fn walk(&self) -> impl Iterator<Item = Segment> + '_ {
        Walk {
            arena: self,
            batch: [None; BATCH],
            at: BATCH,
            last: None,
            done: false,
        }
    }

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
    /// [`ArenaError::Broken`].
    pub fn audit(&self) -> Result<(), ArenaError> {
        let audited = self.ranges.lock().segments().audit();
        audited.map_err(|Broken { what, addr }| ArenaError::Broken {
            arena: self.name(),
            what,
            addr,
        })
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
        let mut locked = self.arena.ranges.lock();
        let segments = locked.segments();
        let mut at = match self.last {
            None => segments.span_from(0),
            Some((tag, segment)) => resume(&segments, tag, segment),
        };
        self.batch = [None; BATCH];
        self.at = 0;
        for slot in &mut self.batch {
            if at == NONE {
                self.done = true;
                return;
            }
            let segment = describe(&segments, at);
            *slot = Some(segment);
            self.last = Some((at, segment));
            at = segments.following(at);
        }
    }
}

fn describe(segments: &Segments<'_>, tag: u32) -> Segment {
    let it = segments.tags.get(tag);
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

/// What follows `segment`, which was `tag` when it was read.
fn resume(segments: &Segments<'_>, tag: u32, segment: Segment) -> u32 {
    let tags = segments.tags;
    let it = tags.get(tag);
    let span = matches!(
        segment.kind,
        SegmentKind::AddedSpan | SegmentKind::ImportedSpan
    );
    let same = it.kind() != Kind::Unused
        && it.kind().is_span() == span
        && (it.start(), it.size()) == (segment.addr, segment.size);
    if same {
        return segments.following(tag);
    }
    // It was cut or joined. The first segment that begins after it, in its span or after.
    let from = segment.addr + (segment.size - 1);
    let mut at = match segments.span_of(segment.addr) {
        NONE => return segments.span_from(segment.addr),
        at => at,
    };
    loop {
        at = segments.following(at);
        if at == NONE || tags.get(at).start() > from || span {
            return at;
        }
    }
}
