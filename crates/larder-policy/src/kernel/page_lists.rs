//! What 2.4 knows of its pages: the list that each is on, its Referenced bit, its age.

use super::super::{Frame, PolicyError};
use super::age;
use larder_base::list::{Links, List, NONE};
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

const OUT: u8 = 3;
const PLACE: u8 = 3;
const REFERENCED: u8 = 4;

/// The three lists of 2.4.0 to 2.4.9. 10 bytes a frame. A list's head is its newest end.
#[derive(Debug)]
pub struct PageLists {
    links: Links,
    lists: [List; 3],
    /// The list and the Referenced bit.
    flags: Vec<u8>,
    age: Vec<u8>,
}

impl PageLists {
    pub(super) fn new(frames: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            links: Links::new(frames)?,
            lists: [List::new(), List::new(), List::new()],
            flags: table(frames, OUT)?,
            age: table(frames, 0)?,
        })
    }

    pub(super) fn grow(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.links.grow(frames)?;
        grow(&mut self.flags, frames, OUT)?;
        Ok(grow(&mut self.age, frames, 0)?)
    }

    pub(super) fn bytes(&self) -> usize {
        self.links.bytes() + self.flags.capacity() + self.age.capacity()
    }

    pub(super) fn len(&self, on: On) -> usize {
        self.lists[on as usize].len()
    }

    pub(super) fn inactive(&self) -> usize {
        self.len(On::Dirty) + self.len(On::Clean)
    }

    pub(super) fn total(&self) -> usize {
        self.len(On::Active) + self.inactive()
    }

    /// The page at the list's tail, where reclaim begins.
    pub(super) fn tail(&self, on: On) -> Option<Frame> {
        let tail = self.lists[on as usize].oldest();
        (tail != NONE).then_some(tail)
    }

    /// The pages of a list from its tail to its head.
    pub(super) fn iter(&self, on: On) -> impl Iterator<Item = Frame> + '_ {
        self.lists[on as usize].iter(&self.links)
    }

    pub(super) fn is_on(&self, page: Frame, on: On) -> bool {
        self.flags[page as usize] & PLACE == on as u8
    }

    pub(super) fn referenced(&self, page: Frame) -> bool {
        self.flags[page as usize] & REFERENCED != 0
    }

    /// SetPageReferenced and ClearPageReferenced.
    pub(super) fn refer(&mut self, page: Frame, referenced: bool) {
        let flags = &mut self.flags[page as usize];
        *flags = (*flags & !REFERENCED) | if referenced { REFERENCED } else { 0 };
    }

    pub(super) fn age(&self, page: Frame) -> u8 {
        self.age[page as usize]
    }

    pub(super) fn set_age(&mut self, page: Frame, age: u8) {
        self.age[page as usize] = age;
    }

    /// Puts a page that is out at a list's head, its Referenced bit clear.
    pub(super) fn add(&mut self, page: Frame, on: On, age: u8) {
        self.lists[on as usize].push_newest(&mut self.links, page);
        self.flags[page as usize] = on as u8;
        self.age[page as usize] = age;
    }

    /// Moves a page to a list's head; age and Referenced stay.
    pub(super) fn move_to(&mut self, page: Frame, on: On) {
        self.unlink(page);
        self.lists[on as usize].push_newest(&mut self.links, page);
        let flags = &mut self.flags[page as usize];
        *flags = (*flags & !PLACE) | on as u8;
    }

    /// Takes a page out.
    pub(super) fn remove(&mut self, page: Frame) {
        self.unlink(page);
        self.flags[page as usize] = OUT;
    }

    fn unlink(&mut self, page: Frame) {
        let place = self.flags[page as usize] & PLACE;
        self.lists[place as usize].unlink(&mut self.links, page);
    }

    pub(super) fn check(&self) -> Result<(), String> {
        for (on, name) in [
            (On::Active, "active"),
            (On::Dirty, "inactive dirty"),
            (On::Clean, "inactive clean"),
        ] {
            self.lists[on as usize].check(&self.links, name)?;
            for page in self.iter(on) {
                if !self.is_on(page, on) {
                    return Err(format!("{name}: frame {page} says that it is elsewhere"));
                }
                if self.age(page) > age::MAX {
                    return Err(format!("{name}: frame {page} is {} old", self.age(page)));
                }
            }
        }
        let inside = self.flags.iter().filter(|&&flags| flags & PLACE != OUT);
        match inside.count() {
            count if count != self.total() => Err(format!(
                "{count} frames say that they are in, {} are on the lists",
                self.total()
            )),
            _ => Ok(()),
        }
    }
}
