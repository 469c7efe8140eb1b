//! Boundary tags, out of line: 64 bytes of our own for each segment, never a byte of the resource.
//!
//! A tag is named by a 32-bit number and never moves, so numbers can be links, and rounds of a magazine. Its words are
//! atomic, since a free that takes no lock reads them while another thread changes others; under the lock they are
//! plain loads and stores.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use crate::os::grown::Grown;
use crate::os::{OsError, System};

/// No tag: number 0 is never used, so that zeroed links lead nowhere.
pub(super) const NONE: u32 = 0;

/// What a tag describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Kind {
    /// Nothing.
    Unused = 0,
    /// A span that was added by hand. It is also the end of the ring of its segments.
    Added = 1,
    /// A span that came from the source.
    Imported = 2,
    /// A segment that is free.
    Free = 3,
    /// A segment that was allocated under the lock.
    Allocated = 4,
    /// A segment of a quantum cache, in a consumer's hands.
    Lent = 5,
    /// A segment of a quantum cache, in one of its magazines.
    Cached = 6,
}

impl Kind {
    fn of(word: u64) -> Self {
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
    pub(super) fn is_span(self) -> bool {
        matches!(self, Self::Added | Self::Imported)
    }

    /// A segment that is not free.
    pub(super) fn is_taken(self) -> bool {
        matches!(self, Self::Allocated | Self::Lent | Self::Cached)
    }
}

/// One tag.
///
/// | word | segment | span |
/// |---|---|---|
/// | 0, 1 | first address and size | the same |
/// | 2, 3 | neighbours in the span | last and first segment |
/// | 4, 5 | free list, or the hash chain | subtrees in the index of spans |
/// | 6 | kind | kind |
/// | 7 | | idle spans: the older and the newer one, 32 bits each |
#[derive(Debug, Clone, Copy)]
pub(super) struct Tag<'a>(&'a [AtomicU64; 8]);

/// A word that is read and written as it is, or as the number of a tag.
macro_rules! word {
    ($index:literal, $get:ident, $set:ident, $type:ty, $doc:literal) => {
        #[doc = $doc]
        #[inline]
        pub(super) fn $get(self) -> $type {
            self.0[$index].load(Ordering::Acquire) as $type
        }
        #[doc = $doc]
        #[inline]
        pub(super) fn $set(self, to: $type) {
            self.0[$index].store(u64::from(to), Ordering::Release);
        }
    };
}

impl Tag<'_> {
    word!(0, start, set_start, u64, "First address.");
    word!(1, size, set_size, u64, "Size, a multiple of the quantum.");
    word!(2, prev, set_prev, u32, "The segment before, in its span.");
    word!(3, next, set_next, u32, "The segment after, in its span.");
    word!(4, left, set_left, u32, "Before it in a list, or a subtree.");
    word!(
        5,
        right,
        set_right,
        u32,
        "After it in a list or chain, or a subtree."
    );

    /// The idle span that is one older.
    pub(super) fn older(self) -> u32 {
        (self.0[7].load(Ordering::Relaxed) >> 32) as u32
    }

    /// The idle span that is one newer.
    pub(super) fn newer(self) -> u32 {
        self.0[7].load(Ordering::Relaxed) as u32
    }

    /// Under the lock, so that the other half does not change meanwhile.
    pub(super) fn set_older(self, to: u32) {
        let word = u64::from(to) << 32 | u64::from(self.newer());
        self.0[7].store(word, Ordering::Relaxed);
    }

    /// Under the lock.
    pub(super) fn set_newer(self, to: u32) {
        let word = u64::from(self.older()) << 32 | u64::from(to);
        self.0[7].store(word, Ordering::Relaxed);
    }

    /// What it describes.
    #[inline]
    pub(super) fn kind(self) -> Kind {
        Kind::of(self.0[6].load(Ordering::Acquire))
    }

    /// Makes it a tag of another kind.
    #[inline]
    pub(super) fn set_kind(self, to: Kind) {
        self.0[6].store(to as u64, Ordering::Release);
    }

    /// Takes a lent segment back for its cache; of two threads that try it, one succeeds.
    #[inline]
    pub(super) fn take_back(self) -> bool {
        self.0[6]
            .compare_exchange(
                Kind::Lent as u64,
                Kind::Cached as u64,
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Last address.
    pub(super) fn last(self) -> u64 {
        self.start() + (self.size() - 1)
    }
}

/// All tags of an arena.
#[derive(Debug)]
pub(super) struct Tags(Grown<[AtomicU64; 8]>);

impl Tags {
    /// # Errors
    /// The system's refusal of the first tags.
    pub(super) fn new(system: Arc<dyn System>) -> Result<Self, OsError> {
        let tags = Grown::new(system);
        tags.grow()?;
        Ok(Self(tags))
    }

    /// Tags that there is memory for.
    pub(super) fn room(&self) -> usize {
        self.0.room()
    }

    /// Tag number `tag`, which exists.
    #[inline]
    pub(super) fn get(&self, tag: u32) -> Tag<'_> {
        Tag(&self.0[tag])
    }
}

/// The tags that describe nothing. Under the arena's lock.
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

    /// Makes sure that [`take`](Self::take) can be called `n` times.
    ///
    /// # Errors
    /// The system's refusal; nothing has changed.
    pub(super) fn reserve(&self, tags: &Tags, n: u32) -> Result<(), OsError> {
        while tags.0.room() < (self.made as usize + n.saturating_sub(self.many) as usize) {
            tags.0.grow()?;
        }
        Ok(())
    }

    /// An unused tag, which was reserved.
    pub(super) fn take(&mut self, tags: &Tags) -> u32 {
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
    pub(super) fn put(&mut self, tags: &Tags, tag: u32) {
        let it = tags.get(tag);
        it.set_kind(Kind::Unused);
        it.set_next(self.first);
        self.first = tag;
        self.many += 1;
    }
}
