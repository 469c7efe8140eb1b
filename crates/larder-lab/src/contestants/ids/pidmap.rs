//! Linux's pidmap of 2002 to 2017: a bitmap in pages, each with a count of its free bits.

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
/// a free bit are skipped by their count, the others are searched word by word.
#[derive(Debug)]
pub struct Pidmap {
    pages: Vec<Page>,
    count: u64,
    /// Where the search begins: one beyond the last number handed out.
    next: u64,
}

impl Pidmap {
    /// An empty map of `0..count`.
    #[must_use]
    pub fn new(count: u64) -> Self {
        let pages = (0..count.div_ceil(PAGE_BITS))
            .map(|page| Page {
                free: (count - page * PAGE_BITS).min(PAGE_BITS) as u32,
                words: None,
            })
            .collect();
        Self {
            pages,
            count,
            next: 0,
        }
    }

    fn take(&mut self, id: u64) {
        let page = &mut self.pages[(id / PAGE_BITS) as usize];
        let words = page.words.get_or_insert_with(blank);
        let (word, bit) = bits::at(id % PAGE_BITS);
        words[word] |= 1 << bit;
        page.free -= 1;
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
        let mut map = Self::new(start.count());
        for id in start.taken_ids() {
            map.take(u64::from(id));
        }
        Ok(map)
    }

    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        let pages = self.pages.len();
        let mut index = (self.next / PAGE_BITS) as usize;
        let mut from = self.next % PAGE_BITS;
        // One more than there are pages: the first is looked at again from its beginning.
        for _ in 0..=pages {
            let page = &mut self.pages[index];
            if page.free != 0 {
                let words = page.words.get_or_insert_with(blank);
                if let Some(bit) = next_zero(words, from) {
                    let id = index as u64 * PAGE_BITS + bit;
                    // Bits beyond the last number of the last page are zero too.
                    if id < self.count {
                        let (word, bit) = bits::at(bit);
                        words[word] |= 1 << bit;
                        page.free -= 1;
                        self.next = if id + 1 == self.count { 0 } else { id + 1 };
                        return Some(id);
                    }
                }
            }
            index = if index + 1 == pages { 0 } else { index + 1 };
            from = 0;
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
