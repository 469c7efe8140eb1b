//! A map, and the free offsets of one of its words in the hand.

use super::Map;
use crate::ids::IdError;

/// No word has this index.
const NONE: u64 = u64::MAX;

/// A map of free offsets of which one word is loaded: its free offsets are here and not in the map.
///
/// So 64 offsets cost one search and one change of a summary; handing one out costs two instructions on a word and one
/// on a count. What is loaded is free all the same: every question looks at both.
#[derive(Debug)]
pub(crate) struct WordCache {
    map: Map,
    /// The index of the word that is loaded, or `NONE`: what a search in the map has at hand.
    word: u64,
    here: u64,
    /// Where that word begins, or the one that was loaded before.
    base: u64,
}

impl WordCache {
    pub(crate) fn new(last: u64) -> Self {
        Self {
            map: Map::new(last),
            word: NONE,
            here: 0,
            base: 0,
        }
    }

    /// Hands out the lowest offset of the word that is loaded. Seven instructions.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<u64> {
        (self.here != 0).then(|| self.pop_loaded())
    }

    /// The same where it is known that there is one.
    #[inline(always)]
    pub(crate) fn pop_loaded(&mut self) -> u64 {
        debug_assert_ne!(self.here, 0);
        let at = self.base + u64::from(self.here.trailing_zeros());
        self.here &= self.here.wrapping_sub(1);
        self.map.count_taken();
        at
    }

    /// Loads the first word at or above `from` that has free offsets; false when there is none, and then nothing has
    /// changed. What was loaded before must be used up.
    #[inline]
    pub(crate) fn load(&mut self, from: u64) -> Result<bool, IdError> {
        debug_assert_eq!(self.here, 0);
        let found = self.map.grab(from)?;
        Ok(self.found(found))
    }

    /// The same for the first word beyond the one that is loaded and used up.
    #[inline]
    pub(crate) fn load_next(&mut self) -> Result<bool, IdError> {
        debug_assert!(self.here == 0 && self.is_loaded());
        let found = self.map.grab_after(self.word)?;
        Ok(self.found(found))
    }

    /// The same if that needs no memory; false says nothing. Beyond the word `NONE` there is none.
    #[inline(always)]
    pub(crate) fn load_next_quickly(&mut self) -> bool {
        let found = self.map.grab_after_quickly(self.word);
        self.found(found)
    }

    #[inline(always)]
    fn found(&mut self, found: Option<(u64, u64)>) -> bool {
        if let Some((word, here)) = found {
            self.word = word;
            self.here = here;
            self.base = word * 64;
        }
        found.is_some()
    }

    /// Loads one taken offset, which is free from now on, and which is the only free one of its word. What was loaded
    /// before goes to the map.
    #[inline]
    pub(crate) fn load_only(&mut self, at: u64) -> Result<(), IdError> {
        self.put_back()?;
        self.found(Some((at / 64, 1 << (at % 64))));
        self.map.count_given();
        Ok(())
    }

    /// Where the word begins that is loaded, or that was loaded before.
    #[inline]
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// The search that begins there finds nothing below `at` either: no word is loaded.
    pub(crate) fn begin_at(&mut self, at: u64) {
        debug_assert!(!self.is_loaded());
        self.base = at & !63;
    }

    /// Whether a word is loaded, be it used up.
    #[inline]
    pub(crate) fn is_loaded(&self) -> bool {
        self.word != NONE
    }

    /// Whether the word of `at` is loaded.
    #[inline(always)]
    pub(crate) fn has(&self, at: u64) -> bool {
        at / 64 == self.word
    }

    /// Whether the word of `at` lies before the one that is loaded; also when none is.
    #[inline(always)]
    pub(crate) fn is_before(&self, at: u64) -> bool {
        at / 64 < self.word
    }

    /// Adds to the word that is loaded an offset of it that is not in the map; false when it is there already.
    #[inline(always)]
    pub(crate) fn add(&mut self, at: u64) -> bool {
        let bit = 1 << (at % 64);
        if self.here & bit != 0 {
            return false;
        }
        self.here |= bit;
        self.map.count_given();
        true
    }

    /// Gives the map what is loaded, and the map.
    pub(crate) fn put_back(&mut self) -> Result<&mut Map, IdError> {
        if self.here != 0 {
            self.map.put(self.word, self.here)?;
            self.here = 0;
        }
        self.word = NONE;
        Ok(&mut self.map)
    }

    /// The map without what is loaded.
    #[inline]
    pub(crate) fn map(&mut self) -> &mut Map {
        &mut self.map
    }

    pub(crate) fn is_free(&self, at: u64) -> bool {
        self.map.is_free(at) || self.has(at) && self.here >> (at % 64) & 1 == 1
    }

    /// The first offset of `first..=last` that is taken.
    pub(crate) fn first_taken(&self, first: u64, last: u64) -> Option<u64> {
        let mut at = self.map.first_taken(first, last)?;
        while self.is_free(at) {
            if at == last {
                return None;
            }
            at = self.map.first_taken(at + 1, last)?;
        }
        Some(at)
    }

    pub(crate) fn next_free(&self, from: u64) -> Option<u64> {
        lower(
            self.map.next_free(from),
            next_loaded(self.base, self.here, from),
        )
    }

    pub(crate) fn give_all(&mut self, first: u64, last: u64) -> Result<Result<(), u64>, IdError> {
        if let Some(at) = self.next_free(first).filter(|&at| at <= last) {
            return Ok(Err(at));
        }
        self.put_back()?.give_span(first, last)?;
        Ok(Ok(()))
    }

    pub(crate) fn taken(&self) -> u64 {
        self.map.taken_but_for(self.here)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.map.bytes()
    }
}

/// The first offset at or above `from` of those of a word that begins at `base`.
pub(crate) fn next_loaded(base: u64, here: u64, from: u64) -> Option<u64> {
    let ahead = match from.checked_sub(base) {
        None => here,
        Some(passed @ 0..64) => here & (u64::MAX << passed),
        Some(_) => 0,
    };
    (ahead != 0).then(|| base + u64::from(ahead.trailing_zeros()))
}

/// The lower of two offsets that may be there.
pub(crate) fn lower(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}
