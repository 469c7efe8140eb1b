//! A clock whose pages are frames and ghosts: a page that leaves memory stays where it is.

use super::{Frame, PolicyError, Shadow};
use larder_base::list::{Linked, Links, List, NONE};
use larder_base::table::{grow, table};

#[derive(Debug)]
pub(super) struct Ring {
    links: Links,
    /// By page; none: a ghost.
    frames: Vec<u32>,
    /// By page: how often its number was reused, so that shadows of a former page find nothing.
    lives: Vec<u32>,
    list: List,
    free: List,
    /// Pages from here on were never used.
    fresh: u32,
}

impl Ring {
    pub(super) fn new(pages: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            links: Links::new(pages)?,
            frames: table(pages, NONE)?,
            lives: table(pages, 0)?,
            list: List::new(),
            free: List::new(),
            fresh: 0,
        })
    }

    pub(super) fn grow(&mut self, pages: usize) -> Result<(), PolicyError> {
        self.links.grow(pages)?;
        grow(&mut self.frames, pages, NONE)?;
        Ok(grow(&mut self.lives, pages, 0)?)
    }

    pub(super) fn bytes(&self) -> usize {
        self.links.bytes() + (self.frames.capacity() + self.lives.capacity()) * size_of::<u32>()
    }

    /// Pages that the hands can come by, ghosts included.
    pub(super) fn len(&self) -> usize {
        self.list.len() - self.list.parked()
    }

    pub(super) fn oldest(&self) -> u32 {
        self.list.oldest()
    }

    /// None: it is a ghost.
    pub(super) fn frame(&self, page: u32) -> Frame {
        self.frames[page as usize]
    }

    pub(super) fn is_ghost(&self, page: u32) -> bool {
        self.frame(page) == NONE
    }

    /// The page after this one; after the newest comes the oldest.
    pub(super) fn next(&self, page: u32) -> u32 {
        match self.links.newer(page) {
            NONE => self.list.oldest(),
            next => next,
        }
    }

    /// The page after this one, which is about to leave; none if it is alone.
    pub(super) fn next_but(&self, page: u32) -> u32 {
        match self.next(page) {
            next if next == page => NONE,
            next => next,
        }
    }

    /// A new page at the head.
    pub(super) fn enter(&mut self, frame: Frame) -> u32 {
        let page = match self.free.newest() {
            NONE => {
                self.fresh += 1;
                self.fresh - 1
            }
            page => {
                self.free.unlink(&mut self.links, page);
                page
            }
        };
        self.frames[page as usize] = frame;
        self.list.push_newest(&mut self.links, page);
        page
    }

    pub(super) fn leave(&mut self, page: u32) {
        self.list.unlink(&mut self.links, page);
        self.frames[page as usize] = NONE;
        self.lives[page as usize] = (self.lives[page as usize] + 1) & (u32::MAX >> 1);
        self.free.push_newest(&mut self.links, page);
    }

    pub(super) fn park(&mut self, page: u32) {
        self.list.park(&mut self.links, page);
    }

    /// At the head.
    pub(super) fn unpark(&mut self, page: u32) {
        self.list.unpark(&mut self.links, page);
    }

    pub(super) fn renew(&mut self, page: u32) {
        self.list.renew(&mut self.links, page);
    }

    pub(super) fn become_ghost(&mut self, page: u32) -> Shadow {
        self.frames[page as usize] = NONE;
        Shadow::new(u64::from(self.lives[page as usize]) << 32 | u64::from(page))
    }

    /// The ghost that a shadow names. A page that is free has lived on since.
    pub(super) fn ghost(&self, shadow: Option<Shadow>) -> Option<u32> {
        let shadow = shadow?.get();
        let (page, life) = (shadow as u32, (shadow >> 32) as u32);
        let there = page < self.fresh && self.lives[page as usize] == life && self.is_ghost(page);
        there.then_some(page)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        self.list.iter(&self.links)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.list.check(&self.links, "ring")?;
        self.free.check(&self.links, "free pages")?;
        if self.list.len() + self.free.len() != self.fresh as usize {
            return Err(format!("ring: of {} pages some are nowhere", self.fresh));
        }
        Ok(())
    }
}
