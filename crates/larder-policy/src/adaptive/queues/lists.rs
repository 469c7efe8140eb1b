//! The order of the frames in each queue, and the notes on each frame.

use super::{FIRST, IN, MAIN, QUEUE, QueuesOver, SMALL, WAITS, place};
use crate::Frame;
use larder_base::list::{Links16, List, NONE, ShortLinks};
use larder_base::table::{NoMemory, grow, table};

/// The lists of all queues over the same frames. A frame is in at most one of them.
pub(in super::super) trait Lists: Sized {
    /// Some frames are read ahead or may not leave in their turn, so they wait apart.
    const WAIT: bool;
    /// Whether LRU rules, where that does not change.
    const LRU: Option<bool>;

    fn new(frames: usize) -> Result<Self, NoMemory>;

    /// The bits of a frame's state.
    fn state(&self, frame: Frame) -> u8;

    fn set_state(&mut self, frame: Frame, state: u8);

    fn stamp(&self, frame: Frame) -> u32;

    fn set_stamp(&mut self, frame: Frame, stamp: u32);

    /// How often the block of a frame had come.
    fn count(&self, frame: Frame) -> u8;

    fn set_count(&mut self, frame: Frame, count: u8);

    /// Frames of a queue, parked ones among them.
    fn len(&self, queue: u8) -> usize;

    /// [`NONE`] if no frame can be taken out.
    fn oldest(&self, queue: u8) -> Frame;

    /// Frames that are in, and are not looked at.
    fn parked(&self) -> usize {
        0
    }

    /// Takes the oldest frame out of a queue, if one can be taken. Also returns its state, which says nothing from then on.
    fn pop(&mut self, queue: u8) -> Option<(Frame, u8)>;

    /// Puts a frame that is in no queue into one, as the newest, with this state and stamp.
    fn push(&mut self, frame: Frame, queue: u8, state: u8, stamp: u32);

    /// A use of a frame: what [`QueuesOver::touch`] does.
    fn touch(queues: &mut QueuesOver<Self>, frame: Frame);

    fn bytes(&self) -> usize;

    fn check(&self) -> Result<(), String>;
}

/// Says which of the frames of a queue is marked as being elsewhere.
fn agree(
    lists: &impl Lists,
    queue: u8,
    mut frames: impl Iterator<Item = Frame>,
) -> Result<(), String> {
    let wrong = |&frame: &Frame| lists.state(frame) & (QUEUE | IN) != queue | IN;
    match frames.find(wrong) {
        Some(frame) => Err(format!(
            "frame {frame} of the {} says otherwise",
            NAMES[place(queue)]
        )),
        None => Ok(()),
    }
}

/// By [`place`].
const QUEUES: [u8; 4] = [SMALL, FIRST, MAIN, WAITS];
const NAMES: [&str; 4] = [
    "small queue",
    "first queue",
    "main queue",
    "queue of those that wait",
];

/// The lists of a cache, whose frames leave in any order.
#[derive(Debug)]
pub(in super::super) struct LinkedLists {
    links: ShortLinks,
    queues: [List; 4],
    state: Vec<u8>,
    /// Empty until blocks are counted.
    count: Vec<u8>,
    stamp: Vec<u32>,
}

impl Lists for LinkedLists {
    const WAIT: bool = true;
    const LRU: Option<bool> = None;

    fn new(frames: usize) -> Result<Self, NoMemory> {
        Ok(Self {
            links: ShortLinks::new(frames)?,
            queues: [const { List::new() }; 4],
            state: table(frames, 0)?,
            count: Vec::new(),
            stamp: table(frames, 0)?,
        })
    }

    #[inline]
    fn state(&self, frame: Frame) -> u8 {
        self.state[frame as usize]
    }

    #[inline]
    fn set_state(&mut self, frame: Frame, state: u8) {
        self.state[frame as usize] = state;
    }

    #[inline]
    fn stamp(&self, frame: Frame) -> u32 {
        self.stamp[frame as usize]
    }

    #[inline]
    fn set_stamp(&mut self, frame: Frame, stamp: u32) {
        self.stamp[frame as usize] = stamp;
    }

    #[inline]
    fn count(&self, frame: Frame) -> u8 {
        self.count.get(frame as usize).copied().unwrap_or(1)
    }

    #[inline]
    fn set_count(&mut self, frame: Frame, count: u8) {
        if let Some(place) = self.count.get_mut(frame as usize) {
            *place = count;
        }
    }

    #[inline]
    fn len(&self, queue: u8) -> usize {
        self.queues[place(queue)].len()
    }

    #[inline]
    fn oldest(&self, queue: u8) -> Frame {
        self.queues[place(queue)].oldest()
    }

    fn parked(&self) -> usize {
        self.queues[place(WAITS)].parked()
    }

    #[inline]
    fn pop(&mut self, queue: u8) -> Option<(Frame, u8)> {
        match self.queues[place(queue)].pop_oldest(&mut self.links) {
            NONE => None,
            frame => Some((frame, core::mem::take(&mut self.state[frame as usize]))),
        }
    }

    #[inline(always)]
    fn push(&mut self, frame: Frame, queue: u8, state: u8, stamp: u32) {
        self.state[frame as usize] = state & !QUEUE | queue;
        self.stamp[frame as usize] = stamp;
        self.queues[place(queue)].push_newest(&mut self.links, frame);
    }

    #[inline]
    fn touch(queues: &mut QueuesOver<Self>, frame: Frame) {
        if queues.lru {
            queues.renew(frame);
        } else if queues.waits(frame) {
            queues.awaited_use(frame);
        } else {
            queues.count_use(frame);
        }
    }

    fn bytes(&self) -> usize {
        self.links.bytes()
            + self.state.capacity()
            + self.count.capacity()
            + self.stamp.capacity() * size_of::<u32>()
    }

    fn check(&self) -> Result<(), String> {
        for queue in QUEUES {
            let list = &self.queues[place(queue)];
            list.check(&self.links, NAMES[place(queue)])?;
            agree(self, queue, list.iter(&self.links))?;
        }
        let said = self.state.iter().filter(|&&state| state & IN != 0).count();
        let len: usize = self.queues.iter().map(List::len).sum();
        if said != len {
            return Err(format!(
                "{said} frames are marked as in, {len} are in the queues"
            ));
        }
        Ok(())
    }
}

impl LinkedLists {
    /// Makes a frame the newest of its queue. False if it was that.
    #[inline]
    pub(super) fn renew(&mut self, frame: Frame, queue: u8) -> bool {
        let queue = &mut self.queues[place(queue)];
        let older = queue.newest() != frame;
        queue.renew(&mut self.links, frame);
        older
    }

    /// Takes a frame out of its queue. Returns its state.
    #[inline]
    pub(super) fn unlink(&mut self, frame: Frame) -> u8 {
        let state = core::mem::take(&mut self.state[frame as usize]);
        self.queues[place(state & QUEUE)].unlink(&mut self.links, frame);
        state
    }

    /// Takes a frame that waits out of the order.
    pub(super) fn park(&mut self, frame: Frame) {
        self.queues[place(WAITS)].park(&mut self.links, frame);
    }

    pub(super) fn unpark(&mut self, frame: Frame) {
        self.queues[place(WAITS)].unpark(&mut self.links, frame);
    }

    pub(super) fn begin_to_count(&mut self) -> Result<(), NoMemory> {
        self.count = table(self.state.len(), 1)?;
        Ok(())
    }

    pub(super) fn forget_counts(&mut self) {
        self.count = Vec::new();
    }

    pub(super) fn forget_samples(&mut self, sampled: u8) {
        self.state.iter_mut().for_each(|state| *state &= !sampled);
    }

    pub(super) fn grow(&mut self, frames: usize) -> Result<(), NoMemory> {
        self.links.grow(frames)?;
        grow(&mut self.state, frames, 0)?;
        grow(&mut self.stamp, frames, 0)
    }
}

/// A frame of a miniature. A miss reads and writes all of it at once.
#[derive(Debug, Clone, Copy)]
struct Slot {
    stamp: u32,
    /// The frame that came into the queue after this one.
    newer: u16,
    state: u8,
    count: u8,
}

#[derive(Debug, Clone, Copy, Default)]
struct Fifo {
    oldest: u16,
    newest: u16,
    len: u16,
}

/// The lists of a miniature, whose frames leave as the oldest only.
#[derive(Debug)]
pub(in super::super) struct Fifos {
    slots: Vec<Slot>,
    queues: [Fifo; 4],
}

impl Fifos {
    fn frames(&self, queue: u8) -> impl Iterator<Item = Frame> {
        let Fifo { oldest, len, .. } = self.queues[place(queue)];
        let after = |frame: &Frame| Some(self.slots[*frame as usize].newer.into());
        core::iter::successors(Some(oldest.into()), after).take(len.into())
    }
}

impl Lists for Fifos {
    const WAIT: bool = false;
    const LRU: Option<bool> = Some(false);

    fn new(frames: usize) -> Result<Self, NoMemory> {
        let slot = Slot {
            stamp: 0,
            newer: 0,
            state: 0,
            count: 0,
        };
        Ok(Self {
            slots: table(frames, slot)?,
            queues: [Fifo::default(); 4],
        })
    }

    #[inline]
    fn state(&self, frame: Frame) -> u8 {
        self.slots[frame as usize].state
    }

    #[inline]
    fn set_state(&mut self, frame: Frame, state: u8) {
        self.slots[frame as usize].state = state;
    }

    #[inline]
    fn stamp(&self, frame: Frame) -> u32 {
        self.slots[frame as usize].stamp
    }

    #[inline]
    fn set_stamp(&mut self, frame: Frame, stamp: u32) {
        self.slots[frame as usize].stamp = stamp;
    }

    #[inline]
    fn count(&self, frame: Frame) -> u8 {
        self.slots[frame as usize].count
    }

    #[inline]
    fn set_count(&mut self, frame: Frame, count: u8) {
        self.slots[frame as usize].count = count;
    }

    #[inline]
    fn len(&self, queue: u8) -> usize {
        self.queues[place(queue)].len.into()
    }

    #[inline]
    fn oldest(&self, queue: u8) -> Frame {
        match self.queues[place(queue)] {
            Fifo { len: 0, .. } => NONE,
            Fifo { oldest, .. } => oldest.into(),
        }
    }

    #[inline]
    fn pop(&mut self, queue: u8) -> Option<(Frame, u8)> {
        let [small, first, main, _] = &mut self.queues;
        let queue = match queue {
            SMALL => small,
            FIRST => first,
            _ => main,
        };
        queue.len = queue.len.checked_sub(1)?;
        let frame = queue.oldest;
        let slot = &self.slots[usize::from(frame)];
        queue.oldest = slot.newer;
        Some((frame.into(), slot.state))
    }

    #[inline]
    fn push(&mut self, frame: Frame, queue: u8, state: u8, stamp: u32) {
        let slot = &mut self.slots[frame as usize];
        *slot = Slot {
            stamp,
            newer: 0,
            state: state & !QUEUE | queue,
            count: slot.count,
        };
        let queue = &mut self.queues[place(queue)];
        match queue.len {
            0 => queue.oldest = frame as u16,
            _ => self.slots[usize::from(queue.newest)].newer = frame as u16,
        }
        queue.newest = frame as u16;
        queue.len += 1;
    }

    #[inline]
    fn touch(queues: &mut QueuesOver<Self>, frame: Frame) {
        queues.count_use(frame);
    }

    fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    fn check(&self) -> Result<(), String> {
        for queue in QUEUES {
            agree(self, queue, self.frames(queue))?;
            let newest = self.queues[place(queue)].newest;
            if self
                .frames(queue)
                .last()
                .is_some_and(|last| last != newest.into())
            {
                return Err(format!(
                    "the {} does not end with {newest}",
                    NAMES[place(queue)]
                ));
            }
        }
        Ok(())
    }
}

/// The list of a miniature under LRU, in the order of the last use. There is one queue and nothing to note.
#[derive(Debug)]
pub(in super::super) struct Recency {
    links: Links16,
    list: List,
}

impl Lists for Recency {
    const WAIT: bool = false;
    const LRU: Option<bool> = Some(true);

    fn new(frames: usize) -> Result<Self, NoMemory> {
        Ok(Self {
            links: Links16::new(frames)?,
            list: List::new(),
        })
    }

    #[inline]
    fn state(&self, _: Frame) -> u8 {
        IN | SMALL
    }

    #[inline]
    fn set_state(&mut self, _: Frame, _: u8) {}

    #[inline]
    fn stamp(&self, _: Frame) -> u32 {
        0
    }

    #[inline]
    fn set_stamp(&mut self, _: Frame, _: u32) {}

    #[inline]
    fn count(&self, _: Frame) -> u8 {
        0
    }

    #[inline]
    fn set_count(&mut self, _: Frame, _: u8) {}

    #[inline]
    fn len(&self, queue: u8) -> usize {
        match queue {
            SMALL => self.list.len(),
            _ => 0,
        }
    }

    #[inline]
    fn oldest(&self, queue: u8) -> Frame {
        match queue {
            SMALL => self.list.oldest(),
            _ => NONE,
        }
    }

    #[inline]
    fn pop(&mut self, _: u8) -> Option<(Frame, u8)> {
        match self.list.pop_oldest(&mut self.links) {
            NONE => None,
            frame => Some((frame, IN | SMALL)),
        }
    }

    #[inline]
    fn push(&mut self, frame: Frame, _: u8, _: u8, _: u32) {
        self.list.push_newest(&mut self.links, frame);
    }

    #[inline]
    fn touch(queues: &mut QueuesOver<Self>, frame: Frame) {
        let Self { links, list } = &mut queues.lists;
        list.renew(links, frame);
    }

    fn bytes(&self) -> usize {
        self.links.bytes()
    }

    fn check(&self) -> Result<(), String> {
        self.list.check(&self.links, NAMES[place(SMALL)])
    }
}
