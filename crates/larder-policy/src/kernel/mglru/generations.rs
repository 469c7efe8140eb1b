//! The lists of the generations, and the bits of their pages.

use super::super::super::lists::Lists;
use super::super::super::{Frame, Frames, PolicyError};
use super::super::laundry;

/// Generations: no more than these, no fewer (`MAX_NR_GENS`, `MIN_NR_GENS`).
pub(super) const MAX_NR_GENS: u64 = 4;
pub(super) const MIN_NR_GENS: u64 = 2;

/// Uses beyond the first, up to three (`LRU_REFS_MASK`).
pub(super) const REFS: u8 = 3;
/// The first use (`PG_referenced`). REFS mean something only with it.
pub(super) const REFERENCED: u8 = 4;
/// More uses than REFS can say, now or before an eviction (`PG_workingset`).
pub(super) const WORKINGSET: u8 = 8;
/// Every use that can be counted: REFS full, and Referenced.
pub(super) const FULL: u8 = REFS + 1;

/// The list of dirty pages, after those of the generations.
const LAUNDRY: usize = MAX_NR_GENS as usize;

/// `folio_lru_refs`.
pub(super) const fn refs(flags: u8) -> u8 {
    if flags & REFERENCED == 0 {
        0
    } else {
        (flags & REFS) + 1
    }
}

/// The list of a generation.
const fn list(seq: u64) -> usize {
    (seq % MAX_NR_GENS) as usize
}

/// Four lists in turn: the generation `seq` is at `seq % 4`. A list's head is its newest end.
#[derive(Debug)]
pub(super) struct Generations {
    lists: Lists<{ LAUNDRY + 1 }>,
    pub(super) min_seq: u64,
    pub(super) max_seq: u64,
}

impl Generations {
    pub(super) fn new(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            lists: Lists::new(frames)?,
            min_seq: 0,
            max_seq: MIN_NR_GENS + 1, // lru_gen_init_lruvec
        })
    }

    pub(super) fn grow(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.lists.grow(frames)
    }

    pub(super) fn bytes(&self) -> usize {
        self.lists.bytes()
    }

    pub(super) fn len(&self) -> usize {
        self.lists.total()
    }

    pub(super) fn flags(&self, page: Frame) -> u8 {
        self.lists.bits(page)
    }

    /// The tail of a generation.
    pub(super) fn oldest(&self, seq: u64) -> Option<Frame> {
        self.lists.oldest(list(seq))
    }

    /// `lru_gen_folio_seq` for file pages that are not active: the oldest generation, the next one for the working set.
    fn seq(&self, flags: u8) -> u64 {
        let generation = MAX_NR_GENS - u64::from(flags & WORKINGSET != 0);
        (self.max_seq + 1)
            .saturating_sub(generation)
            .max(self.min_seq)
    }

    /// `lru_gen_add_folio`.
    pub(super) fn insert(&mut self, page: Frame, flags: u8) {
        self.lists.push(page, list(self.seq(flags)), flags);
    }

    /// `lru_gen_inc_refs`.
    pub(super) fn inc_refs(&mut self, page: Frame) {
        let flags = self.flags(page);
        let more = if flags & REFERENCED == 0 {
            (flags & !REFS) | REFERENCED
        } else if flags & REFS == REFS {
            flags | WORKINGSET
        } else {
            flags + 1
        };
        self.lists.set_bits(page, more);
    }

    /// `folio_inc_gen`: the count starts over.
    pub(super) fn next_generation(&mut self, page: Frame, head: bool) {
        let flags = self.flags(page) & WORKINGSET;
        if head {
            self.lists.move_to(page, list(self.min_seq + 1), flags);
        } else {
            self.lists
                .move_to_oldest(page, list(self.min_seq + 1), flags);
        }
    }

    /// A page in use that was to leave comes back (`evict_folios`): as an active one if it would be the oldest otherwise.
    pub(super) fn reject(&mut self, page: Frame) {
        let mut flags = self.flags(page);
        let mut seq = self.seq(flags);
        if seq == self.min_seq {
            flags &= WORKINGSET;
            seq = self.max_seq - u64::from(flags & WORKINGSET == 0);
        }
        self.lists.move_to(page, list(seq), flags);
    }

    /// A dirty page goes aside until it is written; its count starts over, as in the next generation.
    pub(super) fn launder<F: Frames>(&mut self, frames: &mut F, page: Frame) {
        let flags = self.flags(page) & WORKINGSET;
        self.lists.move_to(page, LAUNDRY, flags);
        frames.write_back(page);
    }

    /// `folio_rotate_reclaimable`: written pages go to the tail of the oldest generation.
    pub(super) fn rotate_written<F: Frames>(&mut self, frames: &F) {
        laundry::rotate_written(&mut self.lists, LAUNDRY, list(self.min_seq), frames);
    }

    /// The oldest page that may leave, clean ones first.
    pub(super) fn any<F: Frames>(&self, frames: &F) -> Option<Frame> {
        let generations = (self.min_seq..=self.max_seq).map(list);
        self.lists
            .clean_else_dirty(generations.chain([LAUNDRY]), frames)
    }

    pub(super) fn park(&mut self, page: Frame) {
        self.lists.park(page);
    }

    /// As a page that comes in: its generation may be gone.
    pub(super) fn unpark(&mut self, page: Frame) {
        self.lists.unpark(page);
        let flags = self.flags(page);
        self.lists.move_to(page, list(self.seq(flags)), flags);
    }

    pub(super) fn remove(&mut self, page: Frame) {
        self.lists.remove(page);
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let generations = self.max_seq - self.min_seq + 1;
        if !(MIN_NR_GENS..=MAX_NR_GENS).contains(&generations) {
            return Err(format!("{generations} generations"));
        }
        self.lists.check("mglru", |_, _| true)?;
        for seq in self.max_seq + 1..self.min_seq + MAX_NR_GENS {
            if let Some(page) = self.oldest(seq) {
                return Err(format!("frame {page} is in a generation that there is not"));
            }
        }
        Ok(())
    }
}
