//! A directory of up to 65536 chunks.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hint::cold_path;

use super::chunk::Chunk;
use super::wide::Table;
use crate::ids::IdError;
use larder_base::word::{join, split};

/// Two levels of 256, for 2^32 offsets. A page is made when one of its chunks is first used: 6 KiB. Which pages and
/// which chunks have free and taken offsets is kept in bits, so that a search looks at two levels of four words each.
///
/// The addresses of the pages stand apart from their bits, which change only with the form of a chunk: so all addresses
/// together are 32 lines of the cache.
#[derive(Debug, Default)]
pub(crate) struct Paged {
    /// `None` before a chunk of the page is used.
    pages: Vec<Option<Box<[Chunk; PAGE]>>>,
    sets: Vec<Sets>,
    /// Pages in which every offset is taken, and pages in which one is.
    full: Set,
    used: Set,
}

/// Chunks of a page.
const PAGE: usize = 256;

/// Of one page: the chunks in which every offset is taken, and those in which one is.
#[derive(Debug, Default, Clone, Copy)]
struct Sets {
    full: Set,
    used: Set,
}

/// Numbers below 256.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Set([u64; 4]);

impl Set {
    const ALL: Set = Set([u64::MAX; 4]);
    const NONE: Set = Set([0; 4]);

    #[inline]
    fn put(&mut self, n: usize, is: bool) {
        let (w, bit) = split(n as u64);
        self.0[w] = self.0[w] & !bit | if is { bit } else { 0 };
    }

    /// The first number at or above `from` that is in the set, or that is not.
    fn next(&self, from: usize, is: bool) -> Option<usize> {
        let (first, bit) = split(from as u64);
        let flip = if is { 0 } else { u64::MAX };
        let mut mask = bit.wrapping_neg();
        for (w, word) in self.0.iter().enumerate().skip(first) {
            let found = (word ^ flip) & mask;
            if found != 0 {
                return Some(join(w, found) as usize);
            }
            mask = u64::MAX;
        }
        None
    }
}

impl Paged {
    /// The page, made when it is absent.
    #[inline]
    fn page(&mut self, p: usize) -> Result<&mut [Chunk; PAGE], IdError> {
        if self.pages.get(p).is_none_or(Option::is_none) {
            cold_path();
            self.make(p)?;
        }
        match self.pages.get_mut(p) {
            Some(Some(page)) => Ok(page),
            _ => Err(IdError::OutOfMemory),
        }
    }

    #[inline(never)]
    fn make(&mut self, p: usize) -> Result<(), IdError> {
        let oom = |_| IdError::OutOfMemory;
        let mut chunks = Vec::new();
        chunks.try_reserve_exact(PAGE).map_err(oom)?;
        chunks.resize_with(PAGE, || Chunk::FREE);
        if let Some(more) = (p + 1).checked_sub(self.pages.len()) {
            self.pages.try_reserve(more).map_err(oom)?;
            self.sets.try_reserve(more).map_err(oom)?;
            self.pages.resize_with(p + 1, || None);
            self.sets.resize(p + 1, Sets::default());
        }
        let page = chunks.into_boxed_slice().try_into();
        self.pages[p] = Some(page.map_err(|_| IdError::OutOfMemory)?);
        Ok(())
    }

    /// A chunk has another form than before.
    fn changed(&mut self, p: usize, n: usize, (full, used): (bool, bool)) {
        let sets = &mut self.sets[p];
        sets.full.put(n, full);
        sets.used.put(n, used);
        let (full, used) = (sets.full == Set::ALL, sets.used != Set::NONE);
        self.full.put(p, full);
        self.used.put(p, used);
    }

    /// The first chunk at or above `c` that `pages` and the sets of their pages have, or have not.
    fn next(&self, c: u64, is: bool, pages: &Set, chunks: impl Fn(&Sets) -> &Set) -> Option<u64> {
        let (mut p, mut from) = place(c);
        while p < 256 {
            // A page that is absent has neither full nor used chunks.
            let absent = if is { None } else { Some(from) };
            let found = match self.sets.get(p) {
                Some(sets) => chunks(sets).next(from, is),
                None => absent,
            };
            if let Some(n) = found {
                return Some((p * PAGE + n) as u64);
            }
            p = pages.next(p + 1, is)?;
            from = 0;
        }
        None
    }
}

impl Table for Paged {
    #[inline]
    fn get(&self, c: u64) -> &Chunk {
        let (p, n) = place(c);
        match self.pages.get(p) {
            Some(Some(page)) => &page[n],
            _ => &Chunk::FREE,
        }
    }

    #[inline]
    fn chunk_quickly(&mut self, c: u64) -> Option<&mut Chunk> {
        let (p, n) = place(c);
        Some(&mut self.pages.get_mut(p)?.as_mut()?[n])
    }

    #[inline]
    fn change<T>(
        &mut self,
        c: u64,
        change: impl FnOnce(&mut Chunk) -> Result<T, IdError>,
    ) -> Result<T, IdError> {
        let (p, n) = place(c);
        let chunk = &mut self.page(p)?[n];
        let before = form(chunk);
        let done = change(chunk)?;
        let after = form(chunk);
        if before != after {
            self.changed(p, n, after);
        }
        Ok(done)
    }

    fn change_all(&mut self, first: u64, last: u64, free: bool) -> Result<(), IdError> {
        let (from, to) = (place(first).0, place(last).0);
        for p in from..=to {
            self.page(p)?;
        }
        for c in first..=last {
            let (p, n) = place(c);
            self.page(p)?[n] = if free { Chunk::FREE } else { Chunk::FULL };
            self.changed(p, n, (!free, !free));
        }
        Ok(())
    }

    fn next_open(&self, c: u64) -> Option<u64> {
        self.next(c, false, &self.full, |sets| &sets.full)
    }

    fn next_used(&self, c: u64) -> Option<u64> {
        self.next(c, true, &self.used, |sets| &sets.used)
    }

    fn bytes(&self) -> usize {
        let pages: usize = self
            .pages
            .iter()
            .flatten()
            .map(|page| size_of_val(&**page) + page.iter().map(Chunk::bytes).sum::<usize>())
            .sum();
        self.pages.capacity() * size_of::<Option<Box<[Chunk; PAGE]>>>()
            + self.sets.capacity() * size_of::<Sets>()
            + pages
    }
}

/// Whether all offsets are taken, and whether any is.
#[inline]
fn form(chunk: &Chunk) -> (bool, bool) {
    (chunk.is_all(false), !chunk.is_all(true))
}

#[inline]
fn place(c: u64) -> (usize, usize) {
    ((c / PAGE as u64) as usize, c as usize % PAGE)
}
