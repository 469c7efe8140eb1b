//! Sets of free offsets, by how wide the range is.
//!
//! | range | structure | what needs it, in the experiment `id-space` |
//! |---|---|---|
//! | up to 2^24 | [`Dense`], bits with two levels of summary | every row; `bits`: 1.02 bits |
//! | | the same without them, which is not searched | `first-freed`, `last-freed`: at most 1.3 of an array |
//! | | [`Planes`](planes::Planes), the digits of sets | `bits`: 2.05 bits for epochs |
//! | up to 2^32 | [`Paged`], chunks in an array | `sparse`: one line of the cache for an identifier, in 4 MB |
//! | beyond | [`Tree`], chunks in an ordered map | none; one identifier of 2^64 takes 64 bytes, where a page of [`Paged`] takes 6 KiB |

mod bits;
mod chunk;
mod dense;
mod ordered;
mod paged;
mod planes;
mod sets;
mod tree;
mod wide;
mod word_cache;

use self::dense::{DENSE, Dense};
use self::paged::Paged;
use self::tree::Tree;
use self::wide::Wide;
use super::IdError;

pub(crate) use self::sets::Sets;
pub(crate) use self::word_cache::{WordCache, lower, next_loaded};

/// The free offsets of `0..=last`.
///
/// The quick ways do not ask which structure it is: in wide ranges `near` is empty, and neither gives nor takes.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Map<const SEARCHED: bool = true> {
    near: Dense<SEARCHED>,
    far: Option<Far>,
}

#[derive(Debug)]
enum Far {
    /// At most 2^32.
    Paged(Wide<Paged>),
    Tree(Wide<Tree>),
}

/// Calls the same method of whichever structure it is.
macro_rules! each {
    ($near:expr, $far:expr, $map:ident => $call:expr) => {
        each!($near, $far, $map => $call, $call)
    };
    ($near:expr, $far:expr, $map:ident => $first:expr, $call:expr) => {
        match $far {
            None => {
                let $map = $near;
                $first
            }
            Some(Far::Paged($map)) => $call,
            Some(Far::Tree($map)) => $call,
        }
    };
}

impl<const SEARCHED: bool> Map<SEARCHED> {
    /// All free. Allocates nothing.
    pub(crate) fn new(last: u64) -> Self {
        if last < DENSE {
            return Self {
                near: Dense::new(last),
                far: None,
            };
        }
        Self {
            near: Dense::new(0),
            far: Some(if u32::try_from(last).is_ok() {
                Far::Paged(Wide::new(Paged::default(), last))
            } else {
                Far::Tree(Wide::new(Tree::default(), last))
            }),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        each!(&self.near, &self.far, map => map.bytes())
    }

    #[inline]
    pub(crate) fn is_free(&self, at: u64) -> bool {
        each!(&self.near, &self.far, map => map.is_free(at))
    }

    /// Takes one; false when it is taken already.
    #[inline]
    pub(crate) fn take(&mut self, at: u64) -> Result<bool, IdError> {
        each!(&mut self.near, &mut self.far, map => map.take(at))
    }

    /// Gives one back; false when it is free already.
    #[inline]
    pub(crate) fn give(&mut self, at: u64) -> Result<bool, IdError> {
        each!(&mut self.near, &mut self.far, map => Ok(map.give(at)), map.give(at))
    }

    /// Takes `first..=last`, all of which are free. Of 2^64 offsets the last one cannot be counted, and so not be taken.
    pub(crate) fn take_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        each!(&mut self.near, &mut self.far, map => map.take_span(first, last), {
            map.needs((last - first).wrapping_add(1))?;
            map.take_span(first, last)
        })
    }

    pub(crate) fn next_free(&self, from: u64) -> Option<u64> {
        each!(&self.near, &self.far, map => map.next_free(from))
    }

    /// The first offset of `first..=last` that is taken.
    pub(crate) fn first_taken(&self, first: u64, last: u64) -> Option<u64> {
        each!(&self.near, &self.far, map => map.first_taken(first, last))
    }
}

impl Map<false> {
    /// Takes one if that needs no memory; false says nothing.
    #[inline(always)]
    pub(crate) fn take_quickly(&mut self, at: u64) -> bool {
        self.near.take_quickly(at)
    }

    /// Gives one of the range back if that needs no memory; false says nothing.
    #[inline(always)]
    pub(crate) fn give_quickly(&mut self, at: u64) -> bool {
        self.near.give(at)
    }
}

impl Map {
    pub(crate) fn taken(&self) -> u64 {
        each!(&self.near, &self.far, map => map.taken())
    }

    /// Gives one back if that needs no memory; false says nothing.
    #[inline(always)]
    pub(crate) fn give_quickly(&mut self, at: u64) -> bool {
        self.near.give(at) || self.give_far(at)
    }

    /// The same in a wide range.
    #[inline(never)]
    fn give_far(&mut self, at: u64) -> bool {
        match &mut self.far {
            Some(Far::Paged(map)) => map.give_quickly(at),
            _ => false,
        }
    }

    /// As [`grab_after`](Map::grab_after) if that needs no memory; `None` says nothing.
    #[inline(always)]
    pub(crate) fn grab_after_quickly(&mut self, w: u64) -> Option<(u64, u64)> {
        self.near.grab_after_quickly(w)
    }

    /// Removes the free offsets at or above `from` of the first word that has any, says its index, and which. They are not
    /// taken yet: see [`count_taken`](Map::count_taken).
    #[inline]
    pub(crate) fn grab(&mut self, from: u64) -> Result<Option<(u64, u64)>, IdError> {
        each!(&mut self.near, &mut self.far, map => map.grab(from))
    }

    /// As [`grab`](Map::grab), of the first word beyond that of index `w` that has any.
    #[inline]
    pub(crate) fn grab_after(&mut self, w: u64) -> Result<Option<(u64, u64)>, IdError> {
        each!(&mut self.near, &mut self.far, map => map.grab_after(w))
    }

    /// Puts the offsets of `mask`, which were grabbed or are taken but are not counted as taken, back to the word at
    /// index `w`.
    pub(crate) fn put(&mut self, w: u64, mask: u64) -> Result<(), IdError> {
        each!(&mut self.near, &mut self.far, map => {
            map.put(w, mask);
            Ok(())
        }, map.put(w, mask))
    }

    /// One of those that were grabbed is taken. In a wide range it was counted when it was grabbed, and this counts
    /// in vain, which is cheaper than to ask.
    #[inline(always)]
    pub(crate) fn count_taken(&mut self) {
        self.near.count_taken();
    }

    /// One that was taken belongs to those that were grabbed.
    #[inline(always)]
    pub(crate) fn count_given(&mut self) {
        self.near.count_given();
    }

    /// How many are taken when those of `grabbed` are not.
    pub(crate) fn taken_but_for(&self, grabbed: u64) -> u64 {
        match &self.far {
            None => self.near.taken(),
            Some(_) => self.taken() - u64::from(grabbed.count_ones()),
        }
    }

    /// Gives back `first..=last`, all of which are taken.
    pub(crate) fn give_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        each!(&mut self.near, &mut self.far, map => {
            map.give_span(first, last);
            Ok(())
        }, map.give_span(first, last))
    }

    /// The free offset that has `rank` free ones below it.
    #[inline(never)]
    pub(crate) fn select(&self, rank: u64) -> Option<u64> {
        each!(&self.near, &self.far, map => map.select(rank))
    }
}
