//! What 2.4 knows of its pages: the list that each is on, its Referenced bit, its age.

use super::super::lists::Lists;
use super::super::{Frame, PolicyError};
use super::age;
use larder_base::table::{grow, table};

/// The list that a page is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum On {
    /// In use of late; a ring that refill_inactive_scan goes round.
    Active = 0,
    /// On its way out. In spite of its name clean pages are here, too.
    Dirty = 1,
    /// Clean, and may leave at once.
    Clean = 2,
}

const REFERENCED: u8 = 1;

/// The three lists of 2.4.0 to 2.4.9. 10 bytes a frame. A list's head is its newest end.
#[derive(Debug)]
pub(super) struct PageLists {
    /// With the Referenced bit.
    lists: Lists<3>,
    /// Of each list, the pages that are parked.
    parked: [usize; 3],
    age: Vec<u8>,
}

impl PageLists {
    pub(super) fn new(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            lists: Lists::new(frames)?,
            parked: [0; 3],
            age: table(frames, 0)?,
        })
    }

    pub(super) fn grow(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.lists.grow(frames)?;
        Ok(grow(&mut self.age, frames, 0)?)
    }

    pub(super) fn bytes(&self) -> usize {
        self.lists.bytes() + self.age.capacity()
    }

    /// Pages on a list, without the parked ones: reclaim reaches these no more than those of another zone.
    pub(super) fn len(&self, on: On) -> usize {
        self.lists.len(on as usize) - self.parked[on as usize]
    }

    pub(super) fn parked(&self) -> usize {
        self.parked.iter().sum()
    }

    pub(super) fn inactive(&self) -> usize {
        self.len(On::Dirty) + self.len(On::Clean)
    }

    /// Pages on all lists, parked ones among them.
    pub(super) fn total(&self) -> usize {
        self.lists.total()
    }

    /// The page at the list's tail, where reclaim begins.
    pub(super) fn tail(&self, on: On) -> Option<Frame> {
        self.lists.oldest(on as usize)
    }

    /// The pages of a list from its tail to its head.
    pub(super) fn iter(&self, on: On) -> impl Iterator<Item = Frame> + '_ {
        self.lists.iter(on as usize)
    }

    pub(super) fn is_on(&self, page: Frame, on: On) -> bool {
        self.lists.list_of(page) == on as usize
    }

    pub(super) fn referenced(&self, page: Frame) -> bool {
        self.lists.bits(page) == REFERENCED
    }

    /// SetPageReferenced and ClearPageReferenced.
    pub(super) fn refer(&mut self, page: Frame, referenced: bool) {
        let bits = if referenced { REFERENCED } else { 0 };
        self.lists.set_bits(page, bits);
    }

    pub(super) fn age(&self, page: Frame) -> u8 {
        self.age[page as usize]
    }

    pub(super) fn set_age(&mut self, page: Frame, age: u8) {
        self.age[page as usize] = age;
    }

    /// Puts a page that is out at a list's head, its Referenced bit clear.
    pub(super) fn add(&mut self, page: Frame, on: On, age: u8) {
        self.lists.push(page, on as usize, 0);
        self.age[page as usize] = age;
    }

    /// Moves a page to a list's head; age and Referenced stay.
    pub(super) fn move_to(&mut self, page: Frame, on: On) {
        let bits = self.lists.bits(page);
        self.lists.move_to(page, on as usize, bits);
    }

    pub(super) fn park(&mut self, page: Frame) {
        self.parked[self.lists.list_of(page)] += 1;
        self.lists.park(page);
    }

    pub(super) fn unpark(&mut self, page: Frame) {
        self.parked[self.lists.list_of(page)] -= 1;
        self.lists.unpark(page);
    }

    /// Takes a page out.
    pub(super) fn remove(&mut self, page: Frame) {
        self.lists.remove(page);
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.lists
            .check("linux-2.4", |_, bits| bits <= REFERENCED)?;
        match self.age.iter().position(|&age| age > age::MAX) {
            Some(page) => Err(format!("linux-2.4: frame {page} is {} old", self.age[page])),
            None => Ok(()),
        }
    }
}
