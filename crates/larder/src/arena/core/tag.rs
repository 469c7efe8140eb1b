//! Boundary tags, out of line: 32 bytes of our own for each segment, never a byte of the resource.
//!
//! A tag is named by a number and never moves, so numbers can be links, and rounds of a magazine. Its words are atomic, since
//! the quantum caches read them without a lock; for the owner they are plain loads and stores.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

use crate::os::grown::Grown;
use crate::os::{OsError, System};

/// No tag: number 0 is never used, so that zeroed links lead nowhere.
pub(crate) const NONE: u32 = 0;

/// What a tag describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    /// Nothing.
    Unused = 0,
    /// A span that was added by hand. It is also the end of the ring of its segments.
    Added = 1,
    /// A span that came from the source.
    Imported = 2,
    /// A segment that is free.
    Free = 3,
    /// A segment that is allocated.
    Allocated = 4,
    /// A segment of a quantum cache, in a consumer's hands.
    Lent = 5,
    /// A segment of a quantum cache, in one of its magazines.
    Cached = 6,
}

impl Kind {
    fn of(word: u32) -> Self {
        match word {
            1 => Self::Added,
            2 => Self::Imported,
            3 => Self::Free,
            4 => Self::Allocated,
            5 => Self::Lent,
            6 => Self::Cached,
            _ => Self::Unused,
        }
    }

    /// A span, by hand or imported.
    pub(crate) fn is_span(self) -> bool {
        matches!(self, Self::Added | Self::Imported)
    }

    /// A segment that is not free.
    pub(crate) fn is_taken(self) -> bool {
        matches!(self, Self::Allocated | Self::Lent | Self::Cached)
    }
}

/// The number of a tag is below this: the rest of a word says what it describes.
const NUMBERS: u32 = 1 << KIND;
/// Bits below a tag's kind.
const KIND: u32 = 29;

/// The words of a tag.
type Words = ([AtomicU64; 2], [AtomicU32; 4]);

/// One tag.
///
/// | word | segment | span |
/// |---|---|---|
/// | long 0, 1 | first address and size | the same |
/// | short 0, 1 | neighbours in the span | last and first segment |
/// | short 2, below the kind; 3 | free list; 3: the hash chain | subtrees in the index of spans |
///
/// The segment of an idle span has no neighbours but the span, and word 0 of both has the place on the list of idle spans.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tag<'a>(&'a Words);

/// A word that is read and written as it is, or as the number of a tag.
macro_rules! word {
    ($part:tt, $index:literal, $get:ident, $set:ident, $type:ty, $doc:literal) => {
        #[doc = $doc]
        #[inline]
        pub(crate) fn $get(self) -> $type {
            self.0.$part[$index].load(Ordering::Acquire)
        }
        #[doc = $doc]
        #[inline]
        pub(super) fn $set(self, to: $type) {
            self.0.$part[$index].store(to, Ordering::Release);
        }
    };
}

impl Tag<'_> {
    word!(0, 0, start, set_start, u64, "First address.");
    word!(
        0,
        1,
        size,
        set_size,
        u64,
        "Size, a multiple of the quantum."
    );
    word!(
        1,
        0,
        prev,
        set_prev,
        u32,
        "The segment before, in its span."
    );
    word!(1, 1, next, set_next, u32, "The segment after, in its span.");
    word!(
        1,
        3,
        right,
        set_right,
        u32,
        "After it in a list or chain, or a subtree."
    );

    #[inline]
    fn what(&self) -> &AtomicU32 {
        &self.0.1[2]
    }

    /// Before it in a list, or a subtree.
    pub(super) fn left(self) -> u32 {
        self.what().load(Ordering::Acquire) & (NUMBERS - 1)
    }

    /// Before it in a list, or a subtree. The tag is not lent, so no other thread changes its kind.
    pub(super) fn set_left(self, to: u32) {
        let kind = self.what().load(Ordering::Relaxed) & !(NUMBERS - 1);
        self.what().store(kind | to, Ordering::Release);
    }

    /// What it describes.
    #[inline]
    pub(crate) fn kind(self) -> Kind {
        Kind::of(self.what().load(Ordering::Acquire) >> KIND)
    }

    /// Makes it a tag of another kind, on no list and without subtrees.
    #[inline]
    pub(crate) fn set_kind(self, to: Kind) {
        self.what().store((to as u32) << KIND, Ordering::Release);
    }

    /// Takes a lent segment back for its cache; of two threads that try it, one succeeds.
    #[inline]
    pub(crate) fn take_back(self) -> bool {
        self.what()
            .compare_exchange(
                (Kind::Lent as u32) << KIND,
                (Kind::Cached as u32) << KIND,
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Last address.
    pub(crate) fn last(self) -> u64 {
        self.start() + (self.size() - 1)
    }
}

/// All tags, for readers that do not own them.
#[derive(Debug)]
pub(crate) struct TagArray(Grown<Words>);

impl TagArray {
    /// # Errors
    /// The system's refusal of addresses for `most` tags, or of memory for the first.
    pub(super) fn new(system: Arc<dyn System>, most: u32) -> Result<Self, OsError> {
        Ok(Self(Grown::new(system, most.min(NUMBERS))?))
    }

    /// Bytes that tags may use.
    pub(crate) fn bytes(&self) -> usize {
        self.0.room() * size_of::<Words>()
    }

    /// Tag number `tag`, which exists.
    #[inline]
    pub(crate) fn get(&self, tag: u32) -> Tag<'_> {
        Tag(&self.0[tag])
    }

    /// For the owner, until it needs more tags.
    #[inline]
    pub(super) fn view(&self) -> Tags<'_> {
        Tags(self.0.as_slice())
    }
}

/// All tags, for their owner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tags<'a>(&'a [Words]);

impl<'a> Tags<'a> {
    /// Tag number `tag`, which exists.
    #[inline]
    pub(crate) fn get(self, tag: u32) -> Tag<'a> {
        Tag(&self.0[tag as usize])
    }
}

/// The tags that describe nothing.
#[derive(Debug)]
pub(super) struct Pool {
    /// First of those that were used before, linked by `next`.
    first: u32,
    /// How many of them there are.
    many: u32,
    /// Tags from here on were never used.
    made: u32,
}

impl Pool {
    pub(super) fn new() -> Self {
        Self {
            first: NONE,
            many: 0,
            made: NONE + 1,
        }
    }

    /// Tags that were ever used, number 0 included, and how many of them are unused again.
    pub(super) fn counts(&self) -> (u32, u32) {
        (self.made, self.many)
    }

    /// Whether [`take`](Self::take) can be called `n` times.
    #[inline]
    pub(super) fn has(&self, tags: Tags<'_>, n: u32) -> bool {
        self.made as usize + n.saturating_sub(self.many) as usize <= tags.0.len()
    }

    /// Makes sure of that.
    ///
    /// # Errors
    /// The system's refusal; nothing has changed.
    #[cold]
    pub(super) fn reserve(&self, tags: &TagArray, n: u32) -> Result<(), OsError> {
        while !self.has(tags.view(), n) {
            tags.0.grow()?;
        }
        Ok(())
    }

    /// An unused tag, which was reserved.
    pub(super) fn take(&mut self, tags: Tags<'_>) -> u32 {
        if self.first == NONE {
            self.made += 1;
            return self.made - 1;
        }
        let tag = self.first;
        self.first = tags.get(tag).next();
        self.many -= 1;
        tag
    }

    /// Takes a tag back.
    pub(super) fn put(&mut self, tags: Tags<'_>, tag: u32) {
        let it = tags.get(tag);
        it.set_kind(Kind::Unused);
        it.set_next(self.first);
        self.first = tag;
        self.many += 1;
    }
}
