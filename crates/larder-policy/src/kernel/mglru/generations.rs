//! The lists of the generations, and the bits of their pages.

use super::super::super::{Frame, FrameState, Frames, PolicyError};
use super::super::laundry::Laundry;
use super::{MAX_NR_GENS, MIN_NR_GENS};
use larder_base::list::{Links, List, NONE};
use larder_base::table::{grow, table};

/// Uses beyond the first, up to three (`LRU_REFS_MASK`).
pub(super) const REFS: u8 = 3;
/// The first use (`PG_referenced`). REFS mean something only with it.
pub(super) const REFERENCED: u8 = 4;
/// More uses than REFS can say, now or before an eviction (`PG_workingset`).
pub(super) const WORKINGSET: u8 = 8;
/// Every use that can be counted: REFS full, and Referenced.
pub(super) const FULL: u8 = REFS + 1;

const PLACE_SHIFT: u32 = 4;
const LAUNDRY: u8 = MAX_NR_GENS as u8;
const OUT: u8 = LAUNDRY + 1;

/// `folio_lru_refs`.
pub(super) const fn refs(flags: u8) -> u8 {
    if flags & REFERENCED == 0 {
        0
    } else {
        (flags & REFS) + 1
    }
}

/// Four lists in turn: the generation `seq` is at `seq % 4`. A list's head is its newest end.
#[derive(Debug)]
pub(super) struct Generations {
    links: Links,
    lists: [List; MAX_NR_GENS as usize],
    laundry: Laundry,
    /// The bits below, the list above.
    state: Vec<u8>,
    pub(super) min_seq: u64,
    pub(super) max_seq: u64,
}

impl Generations {
    pub(super) fn new(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            links: Links::new(frames)?,
            lists: [const { List::new() }; MAX_NR_GENS as usize],
            laundry: Laundry::new(),
            state: table(frames, OUT << PLACE_SHIFT)?,
            min_seq: 0,
            max_seq: MIN_NR_GENS + 1, // lru_gen_init_lruvec
        })
    }

    pub(super) fn grow(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.links.grow(frames)?;
        Ok(grow(&mut self.state, frames, OUT << PLACE_SHIFT)?)
    }

    pub(super) fn bytes(&self) -> usize {
        self.links.bytes() + self.state.capacity()
    }

    pub(super) fn len(&self) -> usize {
        let generations: usize = self.lists.iter().map(List::len).sum();
        generations + self.laundry.list.len()
    }

    pub(super) fn flags(&self, page: Frame) -> u8 {
        self.state[page as usize] & 0xf
    }

    fn place(&self, page: Frame) -> u8 {
        self.state[page as usize] >> PLACE_SHIFT
    }

    fn unlink(&mut self, page: Frame) {
        let place = self.place(page);
        match place {
            LAUNDRY => self.laundry.list.unlink(&mut self.links, page),
            place => self.lists[place as usize].unlink(&mut self.links, page),
        }
    }

    /// Puts a page that is on no list to the head of a generation.
    fn push(&mut self, page: Frame, seq: u64, flags: u8, head: bool) {
        let place = (seq % MAX_NR_GENS) as u8;
        let list = &mut self.lists[place as usize];
        if head {
            list.push_newest(&mut self.links, page);
        } else {
            list.push_oldest(&mut self.links, page);
        }
        self.state[page as usize] = flags | place << PLACE_SHIFT;
    }

    /// The tail of a generation.
    pub(super) fn oldest(&self, seq: u64) -> Option<Frame> {
        let page = self.lists[(seq % MAX_NR_GENS) as usize].oldest();
        (page != NONE).then_some(page)
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
        self.push(page, self.seq(flags), flags, true);
    }

    /// `lru_gen_inc_refs`.
    pub(super) fn inc_refs(&mut self, page: Frame) {
        let state = &mut self.state[page as usize];
        if *state & REFERENCED == 0 {
            *state = (*state & !REFS) | REFERENCED;
        } else if *state & REFS == REFS {
            *state |= WORKINGSET;
        } else {
            *state += 1;
        }
    }

    /// `folio_inc_gen`: the count starts over.
    pub(super) fn next_generation(&mut self, page: Frame, head: bool) {
        let flags = self.flags(page) & WORKINGSET;
        self.unlink(page);
        self.push(page, self.min_seq + 1, flags, head);
    }

    /// A page in use that was to leave comes back (`evict_folios`): as an active one if it would be the oldest otherwise.
    pub(super) fn reject(&mut self, page: Frame) {
        let mut flags = self.flags(page);
        self.unlink(page);
        let mut seq = self.seq(flags);
        if seq == self.min_seq {
            flags &= WORKINGSET;
            seq = self.max_seq - u64::from(flags & WORKINGSET == 0);
        }
        self.push(page, seq, flags, true);
    }

    /// A dirty page goes aside until it is written; its count starts over, as in the next generation.
    pub(super) fn launder<F: Frames>(&mut self, frames: &mut F, page: Frame) {
        let flags = self.flags(page) & WORKINGSET;
        self.unlink(page);
        self.state[page as usize] = flags | LAUNDRY << PLACE_SHIFT;
        self.laundry.take(&mut self.links, frames, page);
    }

    /// `folio_rotate_reclaimable`: written pages go to the tail of the oldest generation.
    pub(super) fn rotate_written<F: Frames>(&mut self, frames: &F) {
        for _ in 0..Laundry::batch() {
            let Some(page) = self.laundry.written(&mut self.links, frames) else {
                break;
            };
            self.push(page, self.min_seq, self.flags(page), false);
        }
    }

    /// The oldest page that may leave, clean ones first.
    pub(super) fn any<F: Frames>(&self, frames: &F) -> Option<Frame> {
        let lists = || {
            (self.min_seq..=self.max_seq)
                .map(|seq| &self.lists[(seq % MAX_NR_GENS) as usize])
                .chain([&self.laundry.list])
        };
        let find = |state| {
            lists()
                .flat_map(|list| list.iter(&self.links))
                .find(|&page| frames.state(page) == state)
        };
        find(FrameState::Clean).or_else(|| find(FrameState::Dirty))
    }

    pub(super) fn remove(&mut self, page: Frame) {
        self.unlink(page);
        self.state[page as usize] = OUT << PLACE_SHIFT;
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let generations = self.max_seq - self.min_seq + 1;
        if !(MIN_NR_GENS..=MAX_NR_GENS).contains(&generations) {
            return Err(format!("{generations} generations"));
        }
        let lists = self.lists.iter().chain([&self.laundry.list]);
        for (place, list) in lists.enumerate() {
            let name = format!("generation list {place}");
            list.check(&self.links, &name)?;
            let strange = |&page: &Frame| usize::from(self.place(page)) != place;
            if let Some(page) = list.iter(&self.links).find(strange) {
                return Err(format!("{name}: frame {page} says that it is elsewhere"));
            }
        }
        for seq in self.max_seq + 1..self.min_seq + MAX_NR_GENS {
            if let Some(page) = self.oldest(seq) {
                return Err(format!("frame {page} is in a generation that there is not"));
            }
        }
        let inside = |&&state: &&u8| state >> PLACE_SHIFT != OUT;
        match self.state.iter().filter(inside).count() {
            count if count != self.len() => Err(format!(
                "{count} frames are in, the lists have {}",
                self.len()
            )),
            _ => Ok(()),
        }
    }
}
