//! Frames in several lists.

use super::{Frame, FrameState, Frames, PolicyError};
use larder_base::list::{Linked, Links, List, NONE};
use larder_base::table::{grow, table};

/// Bits of a frame's byte that are the rule's own; its list is in those above.
const OWN: u8 = 0x1f;
const LIST_SHIFT: u32 = OWN.count_ones();
/// Most lists.
const MOST: usize = 1 << (u8::BITS - LIST_SHIFT);

/// The neighbours of a node in its ring.
#[derive(Debug, Clone, Copy)]
struct Link {
    newer: u32,
    older: u32,
}

/// The node that stands for the ends of a list: after the newest frame, and before the oldest.
#[inline]
fn end(list: usize) -> u32 {
    u32::MAX - list as u32
}

/// A node that is the frame of a list, not its end: no frame has the number of an end, since [`MOST_FRAMES`](crate::MOST_FRAMES) is less.
#[inline]
fn frame(node: u32) -> Option<Frame> {
    (node <= u32::MAX - MOST as u32).then_some(node)
}

/// `N` lists, each in the order in which its frames came. A byte for each frame says in which list it is, and has five bits of the
/// rule's own. 9 bytes a frame.
///
/// A list is a ring through a node of its own, so that to put a frame in or to take one out no case is to be told from another.
#[derive(Debug)]
pub(super) struct Lists<const N: usize> {
    /// The ends of the last list, of the one before it and so on, and then the frames.
    links: Vec<Link>,
    /// As many as a byte can name, so that none is outside.
    lens: [u32; MOST],
    /// Frames that count in a list and are in no ring.
    parked: u32,
    states: Vec<u8>,
}

impl<const N: usize> Lists<N> {
    /// The bits of a frame's byte that say in which list it is: none where there is one only.
    const LIST: u8 = if N == 1 { 0 } else { !OWN };

    pub(super) fn new(frames: usize) -> Result<Self, PolicyError> {
        const { assert!(N <= MOST) };
        let mut links = table(frames + N, Link { newer: 0, older: 0 })?;
        for list in 0..N {
            let (newer, older) = (end(list), end(list));
            links[Self::at(end(list))] = Link { newer, older };
        }
        Ok(Self {
            links,
            lens: [0; MOST],
            parked: 0,
            states: table(frames, 0)?,
        })
    }

    pub(super) fn grow(&mut self, frames: usize) -> Result<(), PolicyError> {
        grow(&mut self.links, frames + N, Link { newer: 0, older: 0 })?;
        Ok(grow(&mut self.states, frames, 0)?)
    }

    pub(super) fn bytes(&self) -> usize {
        self.links.capacity() * size_of::<Link>() + self.states.capacity()
    }

    /// Where the links of a node are.
    #[inline]
    fn at(node: u32) -> usize {
        node.wrapping_add(N as u32) as usize
    }

    #[inline]
    pub(super) fn len(&self, list: usize) -> usize {
        self.lens[list] as usize
    }

    /// Frames in all lists.
    #[inline]
    pub(super) fn total(&self) -> usize {
        self.lens[..N].iter().sum::<u32>() as usize
    }

    /// The same without the parked ones.
    #[inline]
    pub(super) fn unparked(&self) -> usize {
        self.total() - self.parked as usize
    }

    /// Takes a frame out of the order of its list, where it still counts.
    pub(super) fn park(&mut self, frame: Frame) {
        self.parked += 1;
        Self::unlink(&mut self.links, frame);
    }

    /// Puts a parked frame back, at the newest end of its list. Its bits are what they were.
    pub(super) fn unpark(&mut self, frame: Frame) {
        self.parked -= 1;
        let list = self.list_of(frame);
        Self::link_newest(&mut self.links, frame, list);
    }

    /// The list of a frame that is in one.
    #[inline]
    pub(super) fn list_of(&self, frame: Frame) -> usize {
        match N {
            1 => 0,
            _ => Self::list_in(self.states[frame as usize]),
        }
    }

    #[inline]
    fn list_in(state: u8) -> usize {
        (state >> LIST_SHIFT).into()
    }

    /// The rule's own bits.
    #[inline]
    pub(super) fn bits(&self, frame: Frame) -> u8 {
        self.states[frame as usize] & !Self::LIST
    }

    #[inline]
    pub(super) fn set_bits(&mut self, frame: Frame, bits: u8) {
        let state = &mut self.states[frame as usize];
        *state = *state & Self::LIST | bits;
    }

    /// Links a frame between two nodes.
    #[inline]
    fn link(links: &mut [Link], frame: Frame, Link { newer, older }: Link) {
        links[Self::at(frame)] = Link { newer, older };
        links[Self::at(older)].newer = frame;
        links[Self::at(newer)].older = frame;
    }

    #[inline]
    fn link_newest(links: &mut [Link], frame: Frame, list: usize) {
        let newer = end(list);
        let older = links[Self::at(newer)].older;
        Self::link(links, frame, Link { newer, older });
    }

    #[inline]
    fn unlink(links: &mut [Link], frame: Frame) {
        let Link { newer, older } = links[Self::at(frame)];
        links[Self::at(newer)].older = older;
        links[Self::at(older)].newer = newer;
    }

    /// Puts a frame that is in no list at the newest end of one.
    #[inline]
    pub(super) fn push(&mut self, frame: Frame, list: usize, bits: u8) {
        self.states[frame as usize] = (list as u8) << LIST_SHIFT | bits;
        self.lens[list] += 1;
        Self::link_newest(&mut self.links, frame, list);
    }

    /// Moves a frame to the newest end of its list, which the rule knows.
    #[inline]
    pub(super) fn renew(&mut self, frame: Frame, list: usize) {
        debug_assert_eq!(self.list_of(frame), list);
        let links = self.links.as_mut_slice();
        Self::unlink(links, frame);
        Self::link_newest(links, frame, list);
    }

    /// Moves a frame to the newest end of a list, its own or another.
    #[inline]
    pub(super) fn move_to(&mut self, frame: Frame, list: usize, bits: u8) {
        let state = (list as u8) << LIST_SHIFT | bits;
        let before = core::mem::replace(&mut self.states[frame as usize], state);
        self.lens[Self::list_in(before)] -= 1;
        self.lens[list] += 1;
        let links = self.links.as_mut_slice();
        Self::unlink(links, frame);
        Self::link_newest(links, frame, list);
    }

    /// Moves a frame to the oldest end of a list.
    pub(super) fn move_to_oldest(&mut self, frame: Frame, list: usize, bits: u8) {
        self.remove(frame);
        self.states[frame as usize] = (list as u8) << LIST_SHIFT | bits;
        self.lens[list] += 1;
        let older = end(list);
        let newer = self.links[Self::at(older)].newer;
        Self::link(&mut self.links, frame, Link { newer, older });
    }

    /// Takes a frame out of its list; its bits stay.
    #[inline]
    pub(super) fn remove(&mut self, frame: Frame) {
        self.lens[self.list_of(frame)] -= 1;
        Self::unlink(&mut self.links, frame);
    }

    #[inline]
    pub(super) fn oldest(&self, list: usize) -> Option<Frame> {
        self.newer(end(list))
    }

    /// The frame that came into the list after this one.
    #[inline]
    pub(super) fn newer(&self, node: Frame) -> Option<Frame> {
        frame(self.links[Self::at(node)].newer)
    }

    /// The frames of a list from the oldest on.
    pub(super) fn iter(&self, list: usize) -> impl Iterator<Item = Frame> {
        core::iter::successors(self.oldest(list), |&frame| self.newer(frame))
    }

    /// The oldest frame of a list that is not pinned.
    #[inline]
    pub(super) fn unpinned<F: Frames>(&self, list: usize, frames: &F) -> Option<Frame> {
        let mut oldest = self.oldest(list);
        while let Some(frame) = oldest
            && frames.state(frame) == FrameState::Pinned
        {
            oldest = self.newer(frame);
        }
        oldest
    }

    /// The same of the first list, else of the second.
    #[inline]
    pub(super) fn unpinned_of<F: Frames>(
        &self,
        first: usize,
        second: usize,
        frames: &F,
    ) -> Option<Frame> {
        let of = |list| self.unpinned(list, frames);
        of(first).or_else(|| of(second))
    }

    /// The first clean frame of these lists, else the first dirty one.
    pub(super) fn clean_else_dirty<F: Frames>(
        &self,
        lists: impl IntoIterator<Item = usize> + Clone,
        frames: &F,
    ) -> Option<Frame> {
        let find = |state| {
            let mut all = lists.clone().into_iter().flat_map(|list| self.iter(list));
            all.find(|&frame| frames.state(frame) == state)
        };
        find(FrameState::Clean).or_else(|| find(FrameState::Dirty))
    }

    /// `right` says of each frame's list and bits whether they go together.
    pub(super) fn check(
        &self,
        rule: &str,
        right: impl Fn(usize, u8) -> bool,
    ) -> Result<(), String> {
        let mut parked = 0;
        for list in 0..N {
            let (mut before, mut count) = (end(list), 0);
            for frame in self.iter(list) {
                let state = self.states[frame as usize];
                if self.list_of(frame) != list || !right(list, state & OWN) {
                    return Err(format!(
                        "{rule}: frame {frame} of list {list} says {state:#x}"
                    ));
                }
                if self.links[Self::at(frame)].older != before || count == self.lens[list] {
                    return Err(format!(
                        "{rule}, list {list}: frame {frame} does not point back to {before}, or is one too many"
                    ));
                }
                (before, count) = (frame, count + 1);
            }
            let Link { older, .. } = self.links[Self::at(end(list))];
            if before != older {
                return Err(format!(
                    "{rule}, list {list}: {count} frames up to {before}, not {older}"
                ));
            }
            parked += self.lens[list] - count;
        }
        if parked != self.parked {
            return Err(format!(
                "{rule}: {parked} frames are in no ring, but {} are parked",
                self.parked
            ));
        }
        Ok(())
    }
}

/// The oldest frame of a list that is not pinned.
#[inline]
pub(super) fn oldest_unpinned<F: Frames>(list: &List, links: &Links, frames: &F) -> Option<Frame> {
    let mut at = list.oldest();
    while at != NONE && frames.state(at) == FrameState::Pinned {
        at = links.newer(at);
    }
    (at != NONE).then_some(at)
}
