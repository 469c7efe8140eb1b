//! The frames that hold nothing.

use crate::key::{Key, MOST_FILES};
use crate::table::Frames;
use larder_policy::Frame;

const END: Frame = Frame::MAX;

/// A list of frames, the latest first, whose links are the frames' own keys.
#[derive(Debug)]
struct Stack {
    latest: Frame,
}

impl Stack {
    fn new() -> Self {
        Self { latest: END }
    }

    fn is_empty(&self) -> bool {
        self.latest == END
    }

    fn push(&mut self, frames: &Frames, frame: Frame) {
        frames.set_key(frame, Key::free(self.latest));
        self.latest = frame;
    }

    fn pop(&mut self, frames: &Frames) -> Option<Frame> {
        let frame = self.latest;
        (frame != END).then(|| {
            self.latest = frames.key(frame).index() as Frame;
            frame
        })
    }
}

/// Those that still have a page are a list, so that giving pages back looks at no others. Those whose page went back are another one, and
/// those that never held anything come last.
#[derive(Debug)]
pub(super) struct FreeFrames {
    with_page: Stack,
    without: Stack,
    fresh: Frame,
    frames: Frame,
}

impl FreeFrames {
    pub(super) fn new(frames: Frame) -> Self {
        Self {
            with_page: Stack::new(),
            without: Stack::new(),
            fresh: 0,
            frames,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.with_page.is_empty() && self.without.is_empty() && self.fresh == self.frames
    }

    pub(super) fn push(&mut self, frames: &Frames, frame: Frame) {
        match frames.has_page(frame) {
            true => self.with_page.push(frames, frame),
            false => self.without.push(frames, frame),
        }
    }

    /// One, whose key says nothing until it is given one.
    pub(super) fn pop(&mut self, frames: &Frames) -> Option<Frame> {
        let used = self.with_page.pop(frames);
        if let Some(used) = used.or_else(|| self.without.pop(frames)) {
            return Some(used);
        }
        if self.fresh == self.frames {
            return None;
        }
        self.fresh += 1;
        Some(self.fresh - 1)
    }

    /// Gives the pages of `most` of them back to the pool, but for frames that a thread looks at which expects their former block there.
    /// Returns how many.
    pub(super) fn trim(&mut self, frames: &Frames, most: usize) -> usize {
        let (mut given, mut busy) = (0, Stack::new());
        while given < most
            && let Some(frame) = self.with_page.pop(frames)
        {
            let Some(mut claimed) = frames.try_claim(frame) else {
                busy.push(frames, frame);
                continue;
            };
            claimed.give_back();
            drop(claimed);
            self.without.push(frames, frame);
            given += 1;
        }
        while let Some(frame) = busy.pop(frames) {
            self.with_page.push(frames, frame);
        }
        given
    }

    /// How many there are, each of them once. Looks at each: for tests.
    pub(super) fn check(&self, frames: &Frames) -> Result<usize, String> {
        let with_page = self.check_list(frames, &self.with_page, true)?;
        let listed = with_page + self.check_list(frames, &self.without, false)?;
        match (self.fresh..self.frames).find(|&frame| frames.key(frame) != Key::NONE) {
            Some(frame) => Err(format!("frame {frame} was never taken, and has a key")),
            None => Ok((listed + self.frames - self.fresh) as usize),
        }
    }

    /// How many frames a list names, each of them once, all with a page or all without.
    fn check_list(&self, frames: &Frames, list: &Stack, with_page: bool) -> Result<Frame, String> {
        let (mut next, mut count) = (list.latest, 0);
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
            if frames.has_page(next) != with_page {
                let said = if with_page { "with" } else { "without" };
                return Err(format!(
                    "the list of free frames {said} a page names frame {next}"
                ));
            }
            count += 1;
            if count > self.fresh {
                return Err("the list of free frames has no end".to_owned());
            }
            next = key.index() as Frame;
        }
        Ok(count)
    }
}
