//! Which set each offset of any range is in.

use alloc::vec::Vec;

use super::dense::DENSE;
use super::planes::Planes;
use super::tree::Tree;
use super::wide::Wide;
use crate::ids::IdError;

/// Each offset of `0..=last` in one of `SETS` sets, or in none: in bit planes up to 2^24, in a map per set beyond.
/// At first all are in set 1.
#[derive(Debug)]
pub(crate) enum Sets<const SETS: usize> {
    Planes(Planes<SETS>),
    /// What is free in map `n` is in set `n + 1`.
    Maps(Vec<Wide<Tree>>),
}

impl<const SETS: usize> Sets<SETS> {
    pub(crate) fn new(last: u64) -> Result<Self, IdError> {
        if last < DENSE {
            return Ok(Self::Planes(Planes::new(last)));
        }
        let mut maps = Vec::new();
        maps.try_reserve_exact(SETS)
            .map_err(|_| IdError::OutOfMemory)?;
        for set in 0..SETS {
            let mut map = Wide::new(Tree::default(), last);
            if set != 0 {
                map.take_span(0, last)?;
            }
            maps.push(map);
        }
        Ok(Self::Maps(maps))
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Planes(planes) => planes.bytes(),
            Self::Maps(maps) => {
                let own = maps.capacity() * size_of::<Wide<Tree>>();
                own + maps.iter().map(Wide::bytes).sum::<usize>()
            }
        }
    }

    /// The set of an offset, 0 for none.
    #[inline]
    pub(crate) fn set_of(&self, at: u64) -> usize {
        match self {
            Self::Planes(planes) => planes.set_of(at),
            Self::Maps(maps) => {
                let found = maps.iter().position(|map| map.is_free(at));
                found.map_or(0, |set| set + 1)
            }
        }
    }

    /// Puts an offset that is in no set into one; false when it is in one already.
    #[inline]
    pub(crate) fn put(&mut self, at: u64, set: usize) -> Result<bool, IdError> {
        if let Self::Planes(planes) = self {
            return Ok(planes.put(at, set));
        }
        let free = self.set_of(at) == 0;
        if free {
            self.put_word(at & !63, 1 << (at % 64), set)?;
        }
        Ok(free)
    }

    /// The same if that needs no memory; false says nothing.
    #[inline]
    pub(crate) fn put_quickly(&mut self, at: u64, set: usize) -> bool {
        match self {
            Self::Planes(planes) => planes.put(at, set),
            Self::Maps(_) => false,
        }
    }

    /// Puts the offsets of `mask` of the word at `base`, which are in no set, into one.
    pub(crate) fn put_word(&mut self, base: u64, mask: u64, set: usize) -> Result<(), IdError> {
        match self {
            Self::Planes(planes) => planes.put_word(base, mask, set),
            Self::Maps(maps) => maps[set - 1].put(base / 64, mask)?,
        }
        Ok(())
    }

    /// Takes the members of a set out of the first word at or above `from` that has any: its first offset, and which.
    #[inline]
    pub(crate) fn grab(&mut self, from: u64, set: usize) -> Result<Option<(u64, u64)>, IdError> {
        match self {
            Self::Planes(planes) => planes.grab(from, set),
            Self::Maps(maps) => {
                let found = maps[set - 1].grab_most(from, 64)?;
                Ok(found.map(|(w, mask)| (w * 64, mask)))
            }
        }
    }

    /// Takes `first..=last`, each of which is in a set, out of it; calls `each` with a set and how many were in it. When that
    /// fails they go back; `each` is then called for those for which there is no memory to go back either.
    pub(crate) fn remove(
        &mut self,
        first: u64,
        last: u64,
        mut each: impl FnMut(usize, u64),
    ) -> Result<(), IdError> {
        let maps = match self {
            Self::Planes(planes) => return planes.remove(first, last, each),
            Self::Maps(maps) => maps,
        };
        let mut runs = Vec::new();
        for (set, map) in maps.iter().enumerate() {
            let mut from = Some(first);
            while let Some(begin) = from
                .and_then(|from| map.next_free(from))
                .filter(|&at| at <= last)
            {
                let taken = map.first_taken(begin, last);
                let end = taken.map_or(last, |at| at - 1);
                runs.try_reserve(1).map_err(|_| IdError::OutOfMemory)?;
                runs.push((set, begin, end));
                from = taken;
            }
        }
        let mut done = Ok(());
        let mut removed = 0;
        for &(set, begin, end) in &runs {
            done = maps[set].take_span(begin, end);
            if done.is_err() {
                break;
            }
            removed += 1;
        }
        for &(set, begin, end) in &runs[..removed] {
            let back = done.is_err() && maps[set].give_span(begin, end).is_ok();
            if !back {
                each(set + 1, end - begin + 1);
            }
        }
        done
    }

    /// The first offset of `first..=last` that is in a set, or that is in none.
    pub(crate) fn first(&self, first: u64, last: u64, member: bool) -> Option<u64> {
        let maps = match self {
            Self::Planes(planes) => return planes.first(first, last, member),
            Self::Maps(maps) => maps,
        };
        if member {
            let found = maps.iter().filter_map(|map| map.next_free(first)).min();
            return found.filter(|&at| at <= last);
        }
        // Go beyond the run of whichever set the offset is in, until it is in none.
        let mut at = first;
        while let set @ 1.. = self.set_of(at) {
            at = maps[set - 1].first_taken(at, last)?;
        }
        Some(at)
    }
}
