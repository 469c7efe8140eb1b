//! After Linux's sbitmap (lib/sbitmap.c, by Jens Axboe and Omar Sandoval): tags of block devices.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{LocalIds, SharedIds};

/// 64 identifiers on cache lines of their own: taken bits on one, freed ones that are not yet cleared on another.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line(AtomicU64);

#[derive(Debug, Default)]
struct Word {
    taken: Line,
    cleared: Line,
}

/// Words of 64 identifiers spread over cache lines, a hint per thread, and frees that are collected and taken over in
/// one exchange when a word looks full (deferred clear).
#[derive(Debug)]
pub struct Sbitmap {
    words: Box<[Word]>,
    count: u64,
}

impl Sbitmap {
    /// Bits of a word that exist.
    #[inline(always)]
    fn depth(&self, index: usize) -> u64 {
        match self.count - index as u64 * 64 {
            0..64 => (1 << (self.count % 64)) - 1,
            _ => u64::MAX,
        }
    }

    /// Takes a bit of a word, at or after `hint` first, then before it.
    #[inline(always)]
    fn take(&self, index: usize, hint: u32) -> Option<u64> {
        let word = &self.words[index];
        let depth = self.depth(index);
        let mut taken = word.taken.0.load(Ordering::Relaxed);
        loop {
            let free = !taken & depth;
            if free == 0 {
                let cleared = word.cleared.0.load(Ordering::Relaxed);
                if cleared == 0 {
                    return None;
                }
                let cleared = word.cleared.0.swap(0, Ordering::Acquire);
                taken = word.taken.0.fetch_and(!cleared, Ordering::AcqRel) & !cleared;
                if cleared == 0 && !taken & depth == 0 {
                    return None;
                }
                continue;
            }
            let after = free & (u64::MAX << hint);
            let bit = if after != 0 { after } else { free }.trailing_zeros();
            let before = word.taken.0.fetch_or(1 << bit, Ordering::AcqRel);
            if before & 1 << bit == 0 {
                return Some(index as u64 * 64 + u64::from(bit));
            }
            taken = before;
        }
    }
}

impl SharedIds for Sbitmap {
    const ABOUT: &'static str = "after Linux's sbitmap: words on cache lines of their own, hints per thread, deferred clear";

    type Local<'a> = Hinted<'a>;

    fn new(count: u64) -> anyhow::Result<Self> {
        Ok(Self {
            words: (0..count.div_ceil(64)).map(|_| Word::default()).collect(),
            count,
        })
    }

    fn local(&self, index: usize, threads: usize) -> Hinted<'_> {
        Hinted {
            map: self,
            // The kernel begins at a random place; these are apart for certain.
            hint: self.count * index as u64 / threads.max(1) as u64,
        }
    }
}

/// A thread's hint.
#[derive(Debug)]
pub struct Hinted<'a> {
    map: &'a Sbitmap,
    hint: u64,
}

impl LocalIds for Hinted<'_> {
    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        let words = self.map.words.len();
        let mut index = (self.hint / 64) as usize;
        let mut hint = (self.hint % 64) as u32;
        for _ in 0..words {
            if let Some(id) = self.map.take(index, hint) {
                let next = id + 1;
                self.hint = if next < self.map.count { next } else { 0 };
                return Some(id);
            }
            hint = 0;
            index = if index + 1 < words { index + 1 } else { 0 };
        }
        None
    }

    #[inline]
    fn free(&mut self, id: u64) -> bool {
        let Some(word) = self.map.words.get((id / 64) as usize) else {
            return false;
        };
        let before = word.cleared.0.fetch_or(1 << (id % 64), Ordering::Release);
        // The freed one is taken next, while its line is warm.
        self.hint = id;
        before & 1 << (id % 64) == 0
    }
}
