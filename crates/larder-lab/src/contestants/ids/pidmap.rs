//! Linux's pidmap of 2002 to 2017: a bitmap in pages, each with a count of its free bits.

use std::ops::Range;

use super::{IdSource, Start, bits};

/// Bits of a page of 4096 bytes.
const PAGE_BITS: u64 = 8 * 4096;
const PAGE_WORDS: usize = (PAGE_BITS / 64) as usize;

/// A page of bits, 1 = taken, made when its first identifier is taken.
#[derive(Debug, Default)]
struct Page {
    free: u32,
    words: Option<Box<[u64; PAGE_WORDS]>>,
}

/// `alloc_pidmap` of kernel/pid.c by Molnar and Irwin (2.5.37), for one thread: from the last number on, pages without
/// a free bit are skipped by their count, the others are searched word by word. The kernel set bits by locked instructions;
/// here they are plain, which favours it.
#[derive(Debug)]
pub struct Pidmap {
    pages: Vec<Page>,
    ids: Range<u64>,
    /// Where the search begins: one beyond the last number handed out.
    next: u64,
}

impl Pidmap {
    /// An empty map of these identifiers.
    #[must_use]
    pub fn new(ids: Range<u64>) -> Self {
        let page = |page: u64| Page {
            free: (ids.end - page * PAGE_BITS).min(PAGE_BITS) as u32,
            words: None,
        };
        let mut map = Self {
            pages: (0..ids.end.div_ceil(PAGE_BITS)).map(page).collect(),
            next: ids.start,
            ids,
        };
        for id in 0..map.next {
            map.take(id);
        }
        map
    }

    /// The same after `last` was handed out.
    #[must_use]
    pub fn after(mut self, last: u64) -> Self {
        self.next = (last + 1).min(self.ids.end);
        self
    }

    /// Takes this very id; `false` when it is taken or out of range.
    pub fn take(&mut self, id: u64) -> bool {
        id < self.ids.end && self.take_word(id & !63, 1 << (id & 63)) == 1
    }

    /// Takes those of the 64 ids at `base`, a multiple of 64, that a mask names and that are free; returns how many.
    pub fn take_word(&mut self, base: u64, mask: u64) -> u32 {
        let Some(page) = self.pages.get_mut((base / PAGE_BITS) as usize) else {
            return 0;
        };
        let word = &mut page.words.get_or_insert_with(blank)[bits::at(base % PAGE_BITS).0];
        let fresh = (mask & !*word).count_ones();
        page.free -= fresh;
        *word |= mask;
        fresh
    }

    /// Takes all ids that are free.
    pub fn take_all(&mut self) {
        for page in &mut self.pages {
            page.words.get_or_insert_with(blank).fill(u64::MAX);
            page.free = 0;
        }
    }
}

fn blank() -> Box<[u64; PAGE_WORDS]> {
    Box::new([0; PAGE_WORDS])
}

/// The first zero at or after `from`.
#[inline(always)]
fn next_zero(words: &[u64; PAGE_WORDS], from: u64) -> Option<u64> {
    let (word, bit) = bits::at(from);
    let first = !words[word] & (u64::MAX << bit);
    if first != 0 {
        return Some(word as u64 * 64 + u64::from(first.trailing_zeros()));
    }
    let further = words[word + 1..].iter().position(|w| *w != u64::MAX)?;
    let word = word + 1 + further;
    Some(word as u64 * 64 + u64::from(words[word].trailing_ones()))
}

impl IdSource for Pidmap {
    const ABOUT: &'static str =
        "Linux's pidmap of 2002 to 2017: a bitmap in pages with a count of free bits each; cyclic";

    fn start(start: &Start) -> anyhow::Result<Self> {
        let mut map = Self::new(0..start.count());
        for id in start.taken_ids() {
            map.take(u64::from(id));
        }
        Ok(map)
    }

    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        let Range { start, end } = self.ids;
        let mut id = if self.next < end { self.next } else { start };
        // One more than there are pages: the first is looked at again from its beginning.
        for _ in 0..=self.pages.len() {
            let number = id / PAGE_BITS;
            let page = self.pages.get_mut(number as usize)?;
            if page.free != 0 {
                let words = page.words.get_or_insert_with(blank);
                if let Some(bit) = next_zero(words, id % PAGE_BITS) {
                    let id = number * PAGE_BITS + bit;
                    // Bits beyond the last number of the last page are zero too.
                    if id < end {
                        let (word, bit) = bits::at(bit);
                        words[word] |= 1 << bit;
                        page.free -= 1;
                        self.next = id + 1;
                        return Some(id);
                    }
                }
            }
            id = (number + 1) * PAGE_BITS;
            if id >= end {
                id = start;
            }
        }
        None
    }

    #[inline]
    fn free(&mut self, id: u64) -> bool {
        let Some(page) = self.pages.get_mut((id / PAGE_BITS) as usize) else {
            return false;
        };
        let Some(words) = &mut page.words else {
            return false;
        };
        let (word, bit) = bits::at(id % PAGE_BITS);
        let word = &mut words[word];
        if *word & 1 << bit == 0 {
            return false;
        }
        *word &= !(1 << bit);
        page.free += 1;
        true
    }

    fn bytes(&self) -> Option<usize> {
        let made = self.pages.iter().filter(|p| p.words.is_some()).count();
        Some(made * 4096 + self.pages.capacity() * size_of::<Page>())
    }
}
