//! A directory of up to 65536 chunks.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::bits::CHUNK;
use super::chunk::Chunk;
use super::wide::Table;
use super::word::{join, split};
use crate::ids::IdError;

/// Two levels of 256, for 2^32 offsets. A page is made when one of its chunks is first used: 6 KiB. Which pages and
/// which chunks have free and taken offsets is kept in bits, so that a search looks at two levels of four words each.
#[derive(Debug, Default)]
pub(crate) struct Paged {
    pages: Vec<Page>,
    /// Pages in which every offset is taken, and pages in which one is.
    full: Set,
    used: Set,
}

#[derive(Debug, Default)]
struct Page {
    /// None at all before one is used.
    chunks: Box<[Chunk]>,
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
    fn page(&mut self, p: usize) -> Result<&mut Page, IdError> {
        if self.pages.get(p).is_none_or(|page| page.chunks.is_empty()) {
            self.make(p)?;
        }
        Ok(&mut self.pages[p])
    }

    #[cold]
    fn make(&mut self, p: usize) -> Result<(), IdError> {
        let oom = |_| IdError::OutOfMemory;
        let mut chunks = Vec::new();
        chunks.try_reserve_exact(256).map_err(oom)?;
        chunks.resize_with(256, || Chunk::Free);
        if p >= self.pages.len() {
            let more = p + 1 - self.pages.len();
            self.pages.try_reserve(more).map_err(oom)?;
            self.pages.resize_with(p + 1, Page::default);
        }
        self.pages[p].chunks = chunks.into_boxed_slice();
        Ok(())
    }

    #[inline]
    fn note(&mut self, p: usize) {
        let page = &self.pages[p];
        let (full, used) = (page.full == Set::ALL, page.used != Set::NONE);
        self.full.put(p, full);
        self.used.put(p, used);
    }

    /// The first chunk at or above `c` that `pages` and the sets of their pages have, or have not.
    fn next(&self, c: u64, is: bool, pages: &Set, chunks: impl Fn(&Page) -> &Set) -> Option<u64> {
        let (mut p, mut from) = place(c);
        while p < 256 {
            // A page that is absent has neither full nor used chunks.
            let absent = if is { None } else { Some(from) };
            let found = match self.pages.get(p) {
                Some(page) => chunks(page).next(from, is),
                None => absent,
            };
            if let Some(n) = found {
                return Some((p * 256 + n) as u64);
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
        let chunk = self.pages.get(p).and_then(|page| page.chunks.get(n));
        chunk.unwrap_or(&Chunk::Free)
    }

    #[inline]
    fn change<T>(
        &mut self,
        c: u64,
        change: impl FnOnce(&mut Chunk) -> Result<T, IdError>,
    ) -> Result<T, IdError> {
        let (p, n) = place(c);
        let page = self.page(p)?;
        let chunk = &mut page.chunks[n];
        let before = form(chunk);
        let done = change(chunk)?;
        let after = form(chunk);
        if before != after {
            page.full.put(n, after.0);
            page.used.put(n, after.1);
            self.note(p);
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
            let page = &mut self.pages[p];
            page.chunks[n] = if free { Chunk::Free } else { Chunk::Full };
            page.full.put(n, !free);
            page.used.put(n, !free);
        }
        (from..=to).for_each(|p| self.note(p));
        Ok(())
    }

    fn next_open(&self, c: u64) -> Option<u64> {
        self.next(c, false, &self.full, |page| &page.full)
    }

    fn next_used(&self, c: u64) -> Option<u64> {
        self.next(c, true, &self.used, |page| &page.used)
    }

    fn select(&self, rank: u64) -> Option<(u64, u64)> {
        let mut left = rank;
        let mut c = 0;
        for page in &self.pages {
            if page.used == Set::NONE && left >= 256 * CHUNK {
                left -= 256 * CHUNK;
                c += 256;
                continue;
            }
            for n in 0..256 {
                let free = page.chunks.get(n).map_or(CHUNK, Chunk::free);
                if left < free {
                    return Some((c, left));
                }
                left -= free;
                c += 1;
            }
        }
        Some((c + left / CHUNK, left % CHUNK))
    }

    fn bytes(&self) -> usize {
        let page = |page: &Page| {
            let chunks = page.chunks.iter().map(Chunk::bytes).sum::<usize>();
            size_of_val(&*page.chunks) + chunks
        };
        self.pages.capacity() * size_of::<Page>() + self.pages.iter().map(page).sum::<usize>()
    }
}

/// Whether all offsets are taken, and whether any is.
#[inline]
fn form(chunk: &Chunk) -> (bool, bool) {
    (matches!(chunk, Chunk::Full), !matches!(chunk, Chunk::Free))
}

#[inline]
fn place(c: u64) -> (usize, usize) {
    ((c / 256) as usize, (c % 256) as usize)
}
