//! The frames of one cache. The memory of each is one object: the page's bytes, a slot, and SQLite's own bytes.
//!
//! It is no multiple of the system's page, as a rule: else the first bytes of all pages, which SQLite reads at each look-up, would fall into
//! the same few sets of the CPU's caches. The page comes first because SQLite may read a few bytes behind one whose contents are damaged.

use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr::{self, NonNull};

use larder::objects::RawCache;

use crate::ffi::Page;
use crate::process::Process;

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
    /// The epoch in which the [rule](crate::rule::Rule) said that further uses change nothing.
    pub(crate) settled: u64,
}

impl Slot {
    pub(crate) const UNSETTLED: u64 = 0;

    #[inline]
    pub(crate) fn frame(&self) -> u32 {
        self.word & FRAME
    }

    pub(crate) fn is(&self, flag: u32) -> bool {
        self.word & flag != 0
    }
}

/// The frames, by number. Those that hold no page have no memory.
#[derive(Debug)]
pub(crate) struct Frames {
    slots: Vec<*mut Slot>,
    /// Numbers to be used again. It has room for all.
    free: Vec<u32>,
    memory: &'static RawCache,
    /// Bytes before the slot.
    head: usize,
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// The memory of a frame, for pages of `size` bytes with `extra` bytes of SQLite's own; and where its slot begins.
fn shape(size: usize, extra: usize) -> Option<(Layout, usize)> {
    let head = size.checked_next_multiple_of(LINE)?;
    let rest = size_of::<Slot>().checked_add(extra)?;
    let layout = Layout::from_size_align(head.checked_add(rest)?, LINE).ok()?;
    Some((layout.pad_to_align(), head))
}

impl Frames {
    /// Of pages of `size` bytes, with `extra` bytes of SQLite's own. None: no memory.
    pub(crate) fn new(size: usize, extra: usize, process: &Process) -> Option<Self> {
        let (layout, head) = shape(size, extra)?;
        Some(Self {
            slots: Vec::new(),
            free: Vec::new(),
            memory: process.memory(layout)?,
            head,
        })
    }

    /// Bytes of a frame: of its page, and of what it has besides.
    pub(crate) fn frame_bytes(&self) -> usize {
        self.memory.stride()
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
        }
        let memory = self.memory.get().ok()?;
        // SAFETY: the memory is as long as the shape says, and aligned as a line; so is the slot.
        let slot = unsafe {
            let slot = memory.add(self.head).cast::<Slot>().as_ptr();
            slot.write(Slot {
                page: Page {
                    buf: memory.as_ptr().cast(),
                    extra: slot.add(1).cast::<c_void>(),
                },
                next: ptr::null_mut(),
                key: 0,
                word: frame as u32,
                settled: Slot::UNSETTLED,
            });
            slot
        };
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
    }

    /// Gives a frame's memory back.
    pub(crate) fn put(&mut self, frame: u32) {
        let slot = core::mem::replace(&mut self.slots[frame as usize], ptr::null_mut());
        self.free.push(frame);
        if let Some(slot) = NonNull::new(slot) {
            self.give(slot);
        }
    }

    /// Gives the memory of a slot back that is in no frame any more.
    fn give(&self, slot: NonNull<Slot>) {
        // SAFETY: the slot is within an object of this memory, which begins with its page.
        unsafe { self.memory.put(slot.byte_sub(self.head).cast()) };
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        for slot in core::mem::take(&mut self.slots) {
            NonNull::new(slot)
                .into_iter()
                .for_each(|slot| self.give(slot));
        }
    }
}
