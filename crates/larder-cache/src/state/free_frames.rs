//! The frames that hold nothing.

use core::iter;

use crate::key::{Key, MOST_FILES};
use crate::table::Frames;
use larder_policy::Frame;

const END: Frame = Frame::MAX;

/// Those that held something are a list, the latest first, whose links are the frames' own keys; those that never did come after.
#[derive(Debug)]
pub(super) struct FreeFrames {
    latest: Frame,
    fresh: Frame,
    frames: Frame,
}

impl FreeFrames {
    pub(super) fn new(frames: Frame) -> Self {
        Self {
            latest: END,
            fresh: 0,
            frames,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.latest == END && self.fresh == self.frames
    }

    pub(super) fn push(&mut self, frames: &Frames, frame: Frame) {
        frames.set_key(frame, Key::free(self.latest));
        self.latest = frame;
    }

    /// One, whose key says nothing until it is given one.
    pub(super) fn pop(&mut self, frames: &Frames) -> Option<Frame> {
        if self.latest != END {
            let frame = self.latest;
            self.latest = frames.key(frame).index() as Frame;
            return Some(frame);
        }
        if self.fresh == self.frames {
            return None;
        }
        self.fresh += 1;
        Some(self.fresh - 1)
    }

    /// Those that held something.
    pub(super) fn iter(&self, frames: &Frames) -> impl Iterator<Item = Frame> {
        let some = |frame| (frame != END).then_some(frame);
        iter::successors(some(self.latest), move |&frame| {
            some(frames.key(frame).index() as Frame)
        })
    }

    /// How many there are, each of them once. Looks at each: for tests.
    pub(super) fn check(&self, frames: &Frames) -> Result<usize, String> {
        let (mut next, mut count) = (self.latest, 0);
        while next != END {
            if next >= self.fresh {
                return Err(format!(
                    "frame {next} was never taken, and the list of free frames names it"
                ));
            }
            let key = frames.key(next);
            if key == Key::NONE || key.file() != MOST_FILES {
                return Err(format!(
                    "the list of free frames names frame {next}, which is not free"
                ));
            }
            count += 1;
            if count > self.fresh {
                return Err("the list of free frames has no end".to_owned());
            }
            next = key.index() as Frame;
        }
        match (self.fresh..self.frames).find(|&frame| frames.key(frame) != Key::NONE) {
            Some(frame) => Err(format!("frame {frame} was never taken, and has a key")),
            None => Ok((count + self.frames - self.fresh) as usize),
        }
    }
}
