//! Sampled blocks between inaccessible pages, so that a misuse of one of them ends at the access itself.
//!
//! A block lies at the beginning or at the end of its slot, so what is read or written right before or right behind it is a fault. The
//! rest of its pages is filled, and looked at when the block is freed. A freed block's pages are inaccessible until its slot is
//! used again, which is the slot that was freed first: a use after the free is a fault, and a second free is known.
//!
//! GWP-ASan (Serebryany and others, 2018) does the same in production: each run of a program sees few of its blocks so, many runs
//! see all. The number of slots is fixed, and so is the memory.

mod report;

use core::alloc::Layout;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use std::sync::Arc;

use super::Call;
use super::pattern::{self, AFTER, BEFORE};
use super::stacks::{Frames, SAMPLED, Sampler};
use crate::os::forked::ForkLock;
use crate::os::lock::order::{Rank, Ranked};
use crate::os::{Decommit, Linux, MetaSlice, OsError, Span, System, ZeroIsValid, guard, page_size};
use report::Wrong;

/// Pages of a slot, between two that stay inaccessible.
const PAGES: usize = 4;
/// Slots. What is not live is freed and kept from use.
const SLOTS: usize = 512;
/// Blocks that live at a time: of one in use for years the slot is gone.
const LIVE: usize = SLOTS / 2;

/// The last block of a slot. One at address 0 has had none.
#[derive(Debug, Clone, Copy)]
struct Slot {
    at: usize,
    size: usize,
    /// Where its accessible pages end.
    end: usize,
    live: bool,
    /// The slot that was freed after this one; its number and 1.
    next: usize,
    allocated: Frames<SAMPLED>,
    freed: Frames<SAMPLED>,
}

// SAFETY: numbers, and `false`.
unsafe impl ZeroIsValid for Slot {}

impl Slot {
    const NONE: Self = Self {
        at: 0,
        size: 0,
        end: 0,
        live: false,
        next: 0,
        allocated: Frames::NONE,
        freed: Frames::NONE,
    };

    fn first_page(&self) -> usize {
        self.at & !(page_size() - 1)
    }

    fn has(&self, address: usize) -> bool {
        (self.at..self.at + self.size).contains(&address)
    }

    /// Fills its pages beside the block.
    ///
    /// # Safety
    /// The block is live, and so large.
    unsafe fn fill(&self) {
        let (first, behind) = (self.first_page(), self.at + self.size);
        // SAFETY: on its accessible pages, beside what the program has.
        unsafe {
            pattern::fill(first, self.at - first, BEFORE);
            pattern::fill(behind, self.end - behind, AFTER);
        }
    }

    /// A byte beside the block that was written: the nearest behind it, or the first before it.
    fn written(&self) -> Option<usize> {
        let (first, behind) = (self.first_page(), self.at + self.size);
        // SAFETY: on its accessible pages.
        unsafe {
            let after = pattern::changed(behind, self.end - behind, AFTER).map(|by| behind + by);
            after.or_else(|| pattern::changed(first, self.at - first, BEFORE).map(|by| first + by))
        }
    }
}

#[derive(Debug)]
struct Slots {
    slots: MetaSlice<Slot>,
    /// Slots that have had a block.
    used: usize,
    live: usize,
    /// The slot that was freed first, and the one that was freed last; the number and 1.
    oldest: usize,
    newest: usize,
}

impl Ranked for Slots {
    const RANK: Rank = Rank::Guards;
}

impl Slots {
    /// The slot of the block in use that begins at an address and was not written beside; else what is wrong with the call.
    fn live(&mut self, number: usize, at: usize, call: Call) -> Result<&mut Slot, Wrong> {
        let slot = &mut self.slots[number];
        if slot.at != at {
            return Err(Wrong::Inside(call));
        }
        if !slot.live {
            return Err(Wrong::Twice(call));
        }
        match slot.written() {
            Some(address) => Err(Wrong::Written(call, address)),
            None => Ok(slot),
        }
    }

    /// A slot for a block. The used ones rest while there are others.
    fn take(&mut self) -> Option<usize> {
        if self.live == LIVE {
            return None;
        }
        let number = if self.used < SLOTS {
            self.used += 1;
            self.used - 1
        } else {
            let number = self.oldest.checked_sub(1)?;
            self.oldest = self.slots[number].next;
            number
        };
        self.live += 1;
        Some(number)
    }

    /// The block of a slot is freed, or there is none.
    fn give(&mut self, number: usize) {
        self.live -= 1;
        self.slots[number].live = false;
        self.slots[number].next = 0;
        match self.newest.checked_sub(1) {
            Some(newest) if self.oldest != 0 => self.slots[newest].next = number + 1,
            _ => self.oldest = number + 1,
        }
        self.newest = number + 1;
    }
}

/// The slots, which are there as long as the process.
#[derive(Debug)]
pub(crate) struct Guards {
    ground: Span,
    slots: ManuallyDrop<ForkLock<Slots>>,
    stacks: Sampler,
}

impl Guards {
    /// # Errors
    /// The system's refusal of addresses or memory.
    pub(crate) fn new() -> Result<Self, OsError> {
        let page = page_size();
        let ground = Linux.reserve(page + SLOTS * stride(), page)?;
        let slots = ForkLock::new(Slots {
            slots: MetaSlice::new(Arc::new(Linux), SLOTS)?,
            used: 0,
            live: 0,
            oldest: 0,
            newest: 0,
        })?;
        Ok(Self {
            ground,
            slots: ManuallyDrop::new(slots),
            stacks: Sampler::new(),
        })
    }

    /// Blocks have stacks from now on.
    pub(crate) fn begin_stacks(&self) {
        self.stacks.begin();
    }

    /// Whether an address lies in a slot or beside one.
    pub(crate) fn has(&self, address: usize) -> bool {
        address.wrapping_sub(self.ground.addr()) < self.ground.len
    }

    /// Whether a block of this layout may have a slot.
    pub(crate) fn fits(layout: Layout) -> bool {
        (1..=PAGES * page_size()).contains(&layout.size()) && layout.align() <= page_size()
    }

    /// A block that [fits](Self::fits), of zeroes, at the end of its slot or at the beginning. None where all slots are in use. The
    /// unwinder may allocate.
    pub(crate) fn alloc(&self, layout: Layout, at_end: bool) -> Option<NonNull<u8>> {
        if self.slots.lock().live == LIVE {
            return None;
        }
        let allocated = self.stacks.stack();
        let mut slots = self.slots.lock();
        let number = slots.take()?;
        let (first, bytes) = (self.start(number), PAGES * page_size());
        let at = match at_end {
            true => (first + bytes - layout.size()) & !(layout.align() - 1),
            false => first,
        };
        let slot = Slot {
            at,
            size: layout.size(),
            end: (at + layout.size()).next_multiple_of(page_size()),
            live: true,
            allocated,
            ..Slot::NONE
        };
        // SAFETY: pages of the slot, which no block has.
        if unsafe { Linux.commit(self.pages(&slot)) }.is_err() {
            // What it had is forgotten: the next one that looks finds a slot without a block.
            slots.slots[number] = Slot::NONE;
            slots.give(number);
            return None;
        }
        // SAFETY: just taken.
        unsafe { slot.fill() };
        slots.slots[number] = slot;
        NonNull::new(at as *mut u8)
    }

    /// Frees the block that begins there. Says what is wrong, and does not return, where none in use does, where it has another size
    /// than the caller says, or was written beside. The unwinder may allocate.
    pub(crate) fn free(&self, at: usize, size: Option<usize>, call: Call) {
        let freed = self.stacks.stack();
        if let Err(wrong) = self.try_free(at, size, call, &freed) {
            self.end(wrong, at, &freed);
        }
    }

    fn try_free(
        &self,
        at: usize,
        size: Option<usize>,
        call: Call,
        freed: &Frames<SAMPLED>,
    ) -> Result<(), Wrong> {
        let mut slots = self.slots.lock();
        let number = self.slot(at);
        let slot = slots.live(number, at, call)?;
        if let Some(size) = size.filter(|&size| size != slot.size) {
            return Err(Wrong::Size(call, size));
        }
        slot.freed = *freed;
        let pages = self.pages(slot);
        // SAFETY: the program freed what is there. A refusal leaves pages accessible, and a use of them unnoticed; but a block begins
        // as zeroes, so without the first call the slot is lost.
        unsafe {
            if Linux.decommit(&[pages], Decommit::DontNeed).is_err() {
                slot.live = false;
                return Ok(());
            }
            let _ = guard::forbid(pages);
        }
        slots.give(number);
        Ok(())
    }

    /// The size of the block in use that begins there, which has no more bytes than `most` from now on. Says what is wrong, and does not
    /// return, where none in use does, or one that was written beside.
    pub(crate) fn size(&self, at: usize, most: usize, call: Call) -> usize {
        match self.try_size(at, most, call) {
            Ok(size) => size,
            Err(wrong) => self.end(wrong, at, &self.stacks.stack()),
        }
    }

    fn try_size(&self, at: usize, most: usize, call: Call) -> Result<usize, Wrong> {
        let mut slots = self.slots.lock();
        let slot = slots.live(self.slot(at), at, call)?;
        let size = slot.size;
        slot.size = size.min(most);
        // SAFETY: the program gave up what is behind.
        unsafe { slot.fill() };
        Ok(size)
    }

    /// Where a slot begins.
    fn start(&self, number: usize) -> usize {
        self.ground.addr() + page_size() + number * stride()
    }

    /// The slot that an address [of these](Self::has) lies in or beside: half of an inaccessible page belongs to the slot before it.
    fn slot(&self, address: usize) -> usize {
        let offset = address.saturating_sub(self.ground.addr() + page_size() / 2);
        (offset / stride()).min(SLOTS - 1)
    }

    /// The accessible pages of a block.
    fn pages(&self, slot: &Slot) -> Span {
        let first = slot.first_page();
        self.ground
            .part(first - self.ground.addr(), slot.end - first)
    }
}

/// From one slot to the next.
fn stride() -> usize {
    (PAGES + 1) * page_size()
}
