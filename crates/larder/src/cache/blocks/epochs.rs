//! When a use need not be told to the rule: it found its block settled, and nothing but uses has happened since.

use super::frames::Frames;
use super::latch::{Epoch, Now};
use crate::cache::policy::Frame;

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
            now.set(epoch);
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
        now.set(Epoch::NEVER);
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::super::key::Key;
    use super::super::table::Table;
    use super::*;
    use crate::pages::PagePool;

    #[test]
    fn a_mark_is_void_when_its_epoch_ends_and_when_its_number_comes_again() {
        let pool = PagePool::builder().populate(false).build().unwrap();
        let (frames, now) = (Frames::new(20_000, pool).unwrap(), Now::new());
        let key = Key::new(0, 0);
        let mut claimed = frames.claim(19_999);
        claimed.take_page().unwrap();
        let table = Table::new(20_000).unwrap();
        table.insert(&frames, key, 19_999);
        drop(claimed);
        let settled = || match frames.hit(&table, key, now.get()) {
            Ok(_) => true,
            Err(missed) => {
                assert_eq!(frames.entered(&missed, key).unwrap().1, 19_999);
                false
            }
        };

        let mut epochs = Epochs::new();
        assert!(!settled());
        let first = epochs.open(&now).unwrap();
        assert!(!settled());
        frames.mark(19_999, first);
        assert!(settled());
        epochs.end(&now, &frames);
        assert!(!settled());
        for _ in 1..Epoch::COUNT {
            assert_ne!(epochs.open(&now), Some(first));
            assert!(!settled());
            epochs.end(&now, &frames);
        }
        assert_eq!(epochs.open(&now), Some(first));
        assert!(!settled(), "the old mark is still there");
        epochs.tell_all(true, &now, &frames);
        assert_eq!(epochs.open(&now), None);
    }
}
