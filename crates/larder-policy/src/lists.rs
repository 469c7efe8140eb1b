//! Frames in several lists.

use super::{Frame, FrameState, Frames, PolicyError};
use larder_base::list::{Linked, Links, List, NONE};
use larder_base::table::{grow, table};

/// Bits of a frame's byte that are the rule's own; its list is in those above.
const OWN: u8 = 0x1f;
const LIST_SHIFT: u32 = OWN.count_ones();

/// `N` lists, each in the order in which its frames came. A byte for each frame says in which list it is, and has five bits of the
/// rule's own. 9 bytes a frame.
#[derive(Debug)]
pub(super) struct Lists<const N: usize> {
    links: Links,
    lists: [List; N],
    states: Vec<u8>,
}

impl<const N: usize> Lists<N> {
    pub(super) fn new(frames: usize) -> Result<Self, PolicyError> {
        const { assert!(N <= 1 << (u8::BITS - LIST_SHIFT)) };
        Ok(Self {
            links: Links::new(frames)?,
            lists: [const { List::new() }; N],
            states: table(frames, 0)?,
        })
    }

    pub(super) fn grow(&mut self, frames: usize) -> Result<(), PolicyError> {
        self.links.grow(frames)?;
        Ok(grow(&mut self.states, frames, 0)?)
    }

    pub(super) fn bytes(&self) -> usize {
        self.links.bytes() + self.states.capacity()
    }

    #[inline]
    pub(super) fn len(&self, list: usize) -> usize {
        self.lists[list].len()
    }

    /// Frames in all lists.
    #[inline]
    pub(super) fn total(&self) -> usize {
        self.lists.iter().map(List::len).sum()
    }

    /// The list of a frame that is in one.
    #[inline]
    pub(super) fn list_of(&self, frame: Frame) -> usize {
        match N {
            1 => 0,
            _ => (self.states[frame as usize] >> LIST_SHIFT).into(),
        }
    }

    /// The rule's own bits.
    #[inline]
    pub(super) fn bits(&self, frame: Frame) -> u8 {
        self.states[frame as usize] & OWN
    }

    #[inline]
    pub(super) fn set_bits(&mut self, frame: Frame, bits: u8) {
        let state = &mut self.states[frame as usize];
        *state = *state & !OWN | bits;
    }

    /// Puts a frame that is in no list at the newest end of one.
    #[inline]
    pub(super) fn push(&mut self, frame: Frame, list: usize, bits: u8) {
        self.states[frame as usize] = (list as u8) << LIST_SHIFT | bits;
        self.lists[list].push_newest(&mut self.links, frame);
    }

    /// Moves a frame to the newest end of its list.
    #[inline]
    pub(super) fn renew(&mut self, frame: Frame) {
        let list = self.list_of(frame);
        self.lists[list].renew(&mut self.links, frame);
    }

    /// Moves a frame to the newest end of a list, its own or another.
    #[inline]
    pub(super) fn move_to(&mut self, frame: Frame, list: usize, bits: u8) {
        self.remove(frame);
        self.lists[list].push_newest(&mut self.links, frame);
        self.states[frame as usize] = (list as u8) << LIST_SHIFT | bits;
    }

    /// Moves a frame to the oldest end of a list.
    pub(super) fn move_to_oldest(&mut self, frame: Frame, list: usize, bits: u8) {
        self.remove(frame);
        self.lists[list].push_oldest(&mut self.links, frame);
        self.states[frame as usize] = (list as u8) << LIST_SHIFT | bits;
    }

    /// Takes a frame out of its list; its bits stay.
    #[inline]
    pub(super) fn remove(&mut self, frame: Frame) {
        let list = self.list_of(frame);
        self.lists[list].unlink(&mut self.links, frame);
    }

    #[inline]
    pub(super) fn oldest(&self, list: usize) -> Option<Frame> {
        some(self.lists[list].oldest())
    }

    /// The frame that came into the list after this one.
    #[inline]
    pub(super) fn newer(&self, frame: Frame) -> Option<Frame> {
        some(self.links.newer(frame))
    }

    /// The frames of a list from the oldest on.
    pub(super) fn iter(&self, list: usize) -> impl Iterator<Item = Frame> {
        self.lists[list].iter(&self.links)
    }

    /// The oldest frame of a list that is not pinned.
    #[inline]
    pub(super) fn unpinned<F: Frames>(&self, list: usize, frames: &F) -> Option<Frame> {
        oldest_unpinned(&self.lists[list], &self.links, frames)
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
        for at in 0..N {
            self.lists[at].check(&self.links, &format!("{rule}, list {at}"))?;
            let wrong = |&frame: &Frame| self.list_of(frame) != at || !right(at, self.bits(frame));
            if let Some(frame) = self.iter(at).find(wrong) {
                let state = self.states[frame as usize];
                return Err(format!(
                    "{rule}: frame {frame} of list {at} says {state:#x}"
                ));
            }
        }
        Ok(())
    }
}

#[inline]
fn some(frame: u32) -> Option<Frame> {
    (frame != NONE).then_some(frame)
}

/// The oldest frame of a list that is not pinned.
#[inline]
pub(super) fn oldest_unpinned<F: Frames>(list: &List, links: &Links, frames: &F) -> Option<Frame> {
    let mut at = list.oldest();
    while at != NONE && frames.state(at) == FrameState::Pinned {
        at = links.newer(at);
    }
    some(at)
}
