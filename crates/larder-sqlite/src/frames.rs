//! The frames of one cache: a slot, a page's bytes and SQLite's own bytes for each, from the pool's pages.

use core::ffi::c_void;
use core::ptr;

use larder::pages::{PageBuf, PagePool, PageRun};

use crate::ffi::Page;

/// In a slot's word, beside the frame's number: the page is in use.
pub(crate) const PINNED: u32 = 1 << 31;
/// The rule was told that it is, and does not look at it.
pub(crate) const PARKED: u32 = 1 << 30;
const FRAME: u32 = PARKED - 1;
/// SQLite's page numbers have 32 bits, but no cache has so many pages.
pub(crate) const MOST: usize = FRAME as usize;

/// A frame that has memory. SQLite gets a pointer to its page, which comes first and does not move.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) page: Page,
    /// In its chain of the hash table.
    pub(crate) next: *mut Slot,
    pub(crate) key: u32,
    /// The frame's number, [`PINNED`] and [`PARKED`].
    pub(crate) word: u32,
}

impl Slot {
    #[inline]
    pub(crate) fn frame(&self) -> u32 {
        self.word & FRAME
    }

    pub(crate) fn is(&self, flag: u32) -> bool {
        self.word & flag != 0
    }
}

#[derive(Debug)]
enum Memory {
    Page(PageBuf),
    Run(PageRun),
}

impl Memory {
    fn get(pool: &PagePool, bytes: usize) -> Option<Self> {
        let pages = bytes.div_ceil(pool.page_size());
        if pages <= 1 {
            pool.get().ok().map(Self::Page)
        } else {
            pool.get_run(pages).ok().map(Self::Run)
        }
    }

    fn at(&mut self) -> *mut u8 {
        match self {
            Self::Page(page) => page.as_mut_ptr(),
            Self::Run(run) => run.as_mut_ptr(),
        }
    }
}

/// Memory that some neighbouring frames share, and how many of them use it.
#[derive(Debug, Default)]
struct Share {
    memory: Option<Memory>,
    users: u32,
}

/// Memory for groups of as many neighbouring frames as one page of the pool can serve.
#[derive(Debug)]
struct Shares {
    groups: Vec<Share>,
    /// Bytes of a frame, and frames of a group.
    bytes: usize,
    per: usize,
}

impl Shares {
    fn new(bytes: usize, page: usize) -> Self {
        Self {
            groups: Vec::new(),
            bytes,
            per: (page / bytes).max(1),
        }
    }

    /// Room for the groups of so many frames.
    fn reserve(&mut self, frames: usize) -> Option<()> {
        let more = frames.div_ceil(self.per).saturating_sub(self.groups.len());
        self.groups.try_reserve(more).ok()?;
        for _ in 0..more {
            self.groups.push(Share::default());
        }
        Some(())
    }

    fn get(&mut self, frame: usize, pool: &PagePool) -> Option<*mut u8> {
        let share = &mut self.groups[frame / self.per];
        let memory = match &mut share.memory {
            Some(memory) => memory,
            none => none.insert(Memory::get(pool, self.bytes * self.per)?),
        };
        share.users += 1;
        Some(memory.at().wrapping_add(frame % self.per * self.bytes))
    }

    fn put(&mut self, frame: usize) {
        let share = &mut self.groups[frame / self.per];
        share.users -= 1;
        if share.users == 0 {
            share.memory = None;
        }
    }
}

/// The frames, by number. Those that hold no page have no memory.
#[derive(Debug)]
pub(crate) struct Frames {
    slots: Vec<*mut Slot>,
    /// Numbers to be used again. It has room for all.
    free: Vec<u32>,
    pages: Shares,
    /// A slot and SQLite's own bytes.
    heads: Shares,
    pool: PagePool,
}

impl Frames {
    /// Of pages of `size` bytes, with `extra` bytes of SQLite's own.
    pub(crate) fn new(size: usize, extra: usize, pool: PagePool) -> Self {
        let head = size_of::<Slot>() + extra.next_multiple_of(align_of::<Slot>());
        let page = pool.page_size();
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            pages: Shares::new(size, page),
            heads: Shares::new(head, page),
            pool,
        }
    }

    /// Bytes of a frame: of its page, and of what it has besides.
    pub(crate) fn frame_bytes(&self) -> usize {
        self.pages.bytes + self.heads.bytes
    }

    /// Frames that there ever were at once: numbers are below this.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// By frame; null where there is no page.
    pub(crate) fn slots(&self) -> &[*mut Slot] {
        &self.slots
    }

    /// The number that [`get`](Self::get) would give.
    pub(crate) fn next(&self) -> usize {
        let free = self.free.last().map(|&frame| frame as usize);
        free.unwrap_or(self.slots.len())
    }

    /// A frame with memory, which has no page yet. None: no memory.
    pub(crate) fn get(&mut self) -> Option<*mut Slot> {
        let frame = self.next();
        if frame == self.slots.len() {
            if frame >= MOST {
                return None;
            }
            self.slots.try_reserve(1).ok()?;
            // All may be free at once.
            let room = self.slots.capacity();
            self.free.try_reserve(room - self.free.len()).ok()?;
            self.pages.reserve(frame + 1)?;
            self.heads.reserve(frame + 1)?;
        }
        let buf = self.pages.get(frame, &self.pool)?;
        let Some(head) = self.heads.get(frame, &self.pool) else {
            self.pages.put(frame);
            return None;
        };
        let slot = head.cast::<Slot>();
        // SAFETY: the frame has its part of a group of heads, which is aligned as a slot and as long as one and SQLite's bytes.
        unsafe {
            slot.write(Slot {
                page: Page {
                    buf: buf.cast(),
                    extra: head.add(size_of::<Slot>()).cast::<c_void>(),
                },
                next: ptr::null_mut(),
                key: 0,
                word: frame as u32,
            });
        }
        if frame == self.slots.len() {
            self.slots.push(slot);
        } else {
            self.free.pop();
            self.slots[frame] = slot;
        }
        Some(slot)
    }

    /// Forgets the numbers of frames, of which none has a page.
    pub(crate) fn clear(&mut self) {
        (self.slots, self.free) = (Vec::new(), Vec::new());
        (self.pages.groups, self.heads.groups) = (Vec::new(), Vec::new());
    }

    /// Gives a frame's memory back.
    pub(crate) fn put(&mut self, frame: u32) {
        let at = frame as usize;
        self.slots[at] = ptr::null_mut();
        self.pages.put(at);
        self.heads.put(at);
        self.free.push(frame);
    }
}
