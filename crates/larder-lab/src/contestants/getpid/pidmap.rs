//! pidmap: the bitmap that Linux kept from 2.5.37 (2002) to 4.14 (2017).

use super::{GetPid, Layout, PID_MAX, Tasks};

/// Ids of one page.
const PAGE: u64 = 32_768;
/// Words of one page.
const WORDS: usize = (PAGE / 64) as usize;

/// Molnar's and Irwin's map: pages of 4096 bytes made on demand, a count of free ids for each, the next free bit after
/// the last id handed out. Written from its description (`kernel/pid.c` of 2.6). The kernel set bits by locked
/// instructions; here they are plain, which favours it.
#[derive(Debug)]
pub struct Pidmap {
    pages: Vec<Option<Box<Page>>>,
    /// One more than the largest id.
    end: u64,
    reserved: u64,
    last: u64,
}

#[derive(Debug)]
struct Page {
    free: u64,
    /// 1 is taken.
    words: [u64; WORDS],
}

impl Page {
    fn new() -> Box<Self> {
        Box::new(Self {
            free: PAGE,
            words: [0; WORDS],
        })
    }

    /// The first free bit from `from` on.
    fn free_from(&self, from: u64) -> Option<u64> {
        let mut i = (from / 64) as usize;
        let mut word = self.words.get(i)? | ((1u64 << (from % 64)) - 1);
        while word == u64::MAX {
            i += 1;
            word = *self.words.get(i)?;
        }
        Some(i as u64 * 64 + u64::from(word.trailing_ones()))
    }
}

impl Pidmap {
    /// The ids of 2002, 1 to 32767.
    #[must_use]
    pub fn new() -> Self {
        Self::with_end(u64::from(PID_MAX))
    }

    /// The ids 1 to `end - 1`; `end` counts as a whole number of pages of 32768 ids.
    #[must_use]
    pub fn with_end(end: u64) -> Self {
        let pages = end.div_ceil(PAGE).max(1);
        let mut map = Self {
            pages: Vec::new(),
            end: pages * PAGE,
            reserved: 1,
            last: 0,
        };
        map.pages.resize_with(pages as usize, || None);
        map.take(0);
        map
    }

    /// The same after `last` was handed out.
    #[must_use]
    pub fn after(mut self, last: u64) -> Self {
        self.last = last.min(self.end - 1);
        self
    }

    /// Takes the next free id after the last one; `None` when all are taken.
    #[inline]
    pub fn alloc(&mut self) -> Option<u64> {
        let mut id = self.last + 1;
        if id >= self.end {
            id = self.reserved;
        }
        // All pages once, and the rest of the first one again.
        for _ in 0..=self.pages.len() {
            let (number, offset) = ((id / PAGE) as usize, id % PAGE);
            let page = self.pages.get_mut(number)?.get_or_insert_with(Page::new);
            if page.free > 0
                && let Some(bit) = page.free_from(offset)
            {
                page.words[(bit / 64) as usize] |= 1 << (bit % 64);
                page.free -= 1;
                self.last = number as u64 * PAGE + bit;
                return Some(self.last);
            }
            id = (number as u64 + 1) * PAGE;
            if id >= self.end {
                id = self.reserved;
            }
        }
        None
    }

    /// Takes this very id; `false` when it is taken or out of range.
    pub fn take(&mut self, id: u64) -> bool {
        let Some(page) = self.pages.get_mut((id / PAGE) as usize) else {
            return false;
        };
        let page = page.get_or_insert_with(Page::new);
        let word = &mut page.words[(id % PAGE / 64) as usize];
        let bit = 1 << (id % 64);
        let was_free = *word & bit == 0;
        *word |= bit;
        page.free -= u64::from(was_free);
        was_free
    }

    /// Takes those of the 64 ids at `base`, a multiple of 64, that a mask names and that are free.
    pub fn take_word(&mut self, base: u64, mask: u64) {
        let Some(page) = self.pages.get_mut((base / PAGE) as usize) else {
            return;
        };
        let page = page.get_or_insert_with(Page::new);
        let word = &mut page.words[(base % PAGE / 64) as usize];
        page.free -= u64::from((mask & !*word).count_ones());
        *word |= mask;
    }

    /// Takes all ids that are free.
    pub fn take_all(&mut self) {
        for page in &mut self.pages {
            let page = page.get_or_insert_with(Page::new);
            page.words.fill(u64::MAX);
            page.free = 0;
        }
    }

    /// Gives an id back; `false` when it was not taken.
    #[inline]
    pub fn free(&mut self, id: u64) -> bool {
        let Some(Some(page)) = self.pages.get_mut((id / PAGE) as usize) else {
            return false;
        };
        let word = &mut page.words[(id % PAGE / 64) as usize];
        let bit = 1 << (id % 64);
        let was_taken = *word & bit != 0;
        *word &= !bit;
        page.free += u64::from(was_taken);
        was_taken
    }

    /// Bytes held by the pages and the table of pages.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let pages = self.pages.iter().filter(|page| page.is_some()).count();
        pages * size_of::<Page>() + self.pages.len() * size_of::<Option<Box<Page>>>()
    }
}

impl Default for Pidmap {
    fn default() -> Self {
        Self::new()
    }
}

impl GetPid for Pidmap {
    #[inline]
    fn get<L: Layout>(&mut self, _: &Tasks<L>) -> Option<u32> {
        // Of a space of 2002; a larger one is used by `alloc`.
        self.alloc().and_then(|id| u32::try_from(id).ok())
    }

    #[inline]
    fn freed(&mut self, pid: u32) {
        self.free(u64::from(pid));
    }

    fn taken(&mut self, pid: u32) {
        self.take(u64::from(pid));
    }
}
