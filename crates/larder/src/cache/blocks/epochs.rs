//! When a use need not be told to the rule: it found its block settled, and nothing but uses has happened since.

use std::sync::atomic::{AtomicU32, Ordering};

use super::frames::Frames;
use super::latch::Epoch;
use crate::cache::policy::Frame;

/// The epoch that is now, for all threads to read; alone in its cache line, since every hit reads it.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Now(AtomicU32);

impl Now {
    pub(super) const fn new() -> Self {
        Self(AtomicU32::new(Epoch::NEVER.word()))
    }

    #[inline(always)]
    pub(super) fn get(&self) -> Epoch {
        Epoch::of(self.0.load(Ordering::Relaxed))
    }
}

/// What is known of epochs under the cache's lock. An epoch ends with whatever may make a settled frame unsettled (an arrival, an
/// eviction, a removal, another size); the marks of its frames are void then, for they name it. Numbers come again: before one
/// does, every frame has been looked at and has lost the mark of old.
#[derive(Debug)]
pub(super) struct Epochs {
    at: u32,
    /// Some frame is marked with this epoch. Others need no end.
    marked: bool,
    /// The frame that is looked at next for a mark of old.
    sweep: Frame,
    /// Every use is to be told.
    off: bool,
}

impl Epochs {
    pub(super) const fn new() -> Self {
        Self {
            at: 0,
            marked: false,
            sweep: 0,
            off: false,
        }
    }

    /// The epoch with which settled frames may be marked now; none if every use is to be told.
    pub(super) fn open(&mut self, now: &Now) -> Option<Epoch> {
        if self.off {
            return None;
        }
        let epoch = Epoch::number(self.at);
        if !self.marked {
            self.marked = true;
            now.0.store(epoch.word(), Ordering::Relaxed);
        }
        Some(epoch)
    }

    /// Frames may be unsettled from now on. Nothing if none was marked since the last time; else 1 / 8190 of the frames are looked at.
    #[inline]
    pub(super) fn end(&mut self, now: &Now, frames: &Frames) {
        if self.marked {
            self.next(now, frames);
        }
    }

    #[cold]
    fn next(&mut self, now: &Now, frames: &Frames) {
        self.marked = false;
        now.0.store(Epoch::NEVER.word(), Ordering::Relaxed);
        self.at = (self.at + 1) % Epoch::COUNT;
        let len = frames.len() as Frame;
        for _ in 0..len.div_ceil(Epoch::COUNT - 1) {
            // Marks of the epoch to come are 8190 epochs old, and were taken away on the way here.
            frames.unmark(self.sweep);
            self.sweep = if self.sweep + 1 < len {
                self.sweep + 1
            } else {
                0
            };
        }
    }

    /// From now on every use is to be told, or no longer.
    pub(super) fn tell_all(&mut self, all: bool, now: &Now, frames: &Frames) {
        self.end(now, frames);
        self.off = all;
    }
}
