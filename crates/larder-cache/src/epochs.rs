//! When a use need not be reported to the rule: it found its block settled, and nothing but uses has happened since.

use super::frames::Frames;
use super::latch::Epoch;
use super::now::Now;
use larder_policy::Frame;

/// Reports after which an epoch is long: the barrier at its end costs as much as some hundred hits.
const CALM: u32 = if cfg!(shuttle) { 1 } else { 16 };

/// What settled frames are marked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marks {
    /// Those that may be pinned, if there are any.
    pub(super) pinned: Option<Epoch>,
    /// Those whose readers are counted.
    pub(super) counted: Epoch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No frame is marked with this epoch. It needs no end.
    Unmarked,
    Brief,
    /// Nothing but uses has happened for so long that blocks may be pinned.
    Long,
}

/// What is known of epochs under the cache's lock. An epoch ends with whatever may make a settled frame unsettled (an arrival, an
/// eviction, a removal, another size); the marks of its frames are void then, for they name it. Numbers come again: before one
/// does, every frame has been looked at and has lost the mark of old.
#[derive(Debug)]
pub(super) struct Epochs {
    /// Its two numbers are this one and the next.
    at: u32,
    stage: Stage,
    /// Reports since something else happened.
    calm: u32,
    /// The frame that is looked at next for a mark of old.
    sweep: Frame,
    /// Every use is to be reported.
    off: bool,
}

impl Epochs {
    pub(super) const fn new() -> Self {
        Self {
            at: 0,
            stage: Stage::Unmarked,
            calm: 0,
            sweep: 0,
            off: false,
        }
    }

    /// What settled frames may be marked with now, at a report; nothing if every use is to be reported.
    pub(super) fn open(&mut self, now: &Now, frames: &Frames) -> Option<Marks> {
        if self.off {
            return None;
        }
        self.calm = self.calm.saturating_add(1);
        let long = self.calm > CALM && frames.pins().is_usable();
        if long && self.stage == Stage::Brief {
            self.next(now, frames);
        }
        let (pinned, counted) = (Epoch::number(self.at), Epoch::number(self.at + 1));
        if self.stage == Stage::Unmarked {
            if long {
                self.stage = Stage::Long;
                frames.pins().open(pinned);
                now.set(pinned, counted);
            } else {
                self.stage = Stage::Brief;
                now.set(Epoch::NEVER, counted);
            }
        }
        Some(Marks {
            pinned: (self.stage == Stage::Long).then_some(pinned),
            counted,
        })
    }

    /// Frames may be unsettled from now on. Nothing if none was marked since the last time; else 1 / 4093 of the frames are looked at.
    #[inline]
    pub(super) fn end(&mut self, now: &Now, frames: &Frames) {
        self.calm = 0;
        if self.stage != Stage::Unmarked {
            self.next(now, frames);
        }
    }

    #[cold]
    fn next(&mut self, now: &Now, frames: &Frames) {
        self.stage = Stage::Unmarked;
        now.set(Epoch::NEVER, Epoch::NEVER);
        frames.pins().close();
        self.at = (self.at + 2) % Epoch::COUNT;
        let len = frames.len() as Frame;
        for _ in 0..len.div_ceil(Epoch::COUNT / 2 - 1) {
            // Marks of the epoch to come are 4094 epochs old, and were taken away on the way here.
            frames.unmark(self.sweep);
            self.sweep = if self.sweep + 1 < len {
                self.sweep + 1
            } else {
                0
            };
        }
    }

    /// From now on every use is to be reported, or no longer.
    pub(super) fn tell_all(&mut self, all: bool, now: &Now, frames: &Frames) {
        self.end(now, frames);
        self.off = all;
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::super::frames::Missed;
    use super::super::key::Key;
    use super::super::table::Table;
    use super::*;
    use larder::pages::PagePool;

    const FRAME: Frame = 19_999;

    #[derive(Debug, PartialEq)]
    enum Found {
        Pinned,
        Counted,
        Unsettled,
    }

    struct Fixture {
        frames: Frames,
        table: Table,
        now: Now,
    }

    impl Fixture {
        /// One block, in the last of 20,000 frames.
        fn new() -> Self {
            let pool = PagePool::builder().populate(false).build().unwrap();
            let this = Self {
                frames: Frames::new(20_000, pool).unwrap(),
                table: Table::new(20_000).unwrap(),
                now: Now::new(),
            };
            let mut claimed = this.frames.try_claim(FRAME).unwrap();
            claimed.take_page().unwrap();
            this.table.insert(&this.frames, Key::new(0, 0), FRAME);
            drop(claimed);
            this
        }

        fn found(&self) -> Found {
            let Self { frames, table, now } = self;
            let (row, pins) = frames.pins().row().unwrap();
            let (key, pin) = (Key::new(0, 0), pins.free().unwrap());
            let found = match frames.hit(table, key, pin, now, Err) {
                Ok(_) => Found::Pinned,
                Err(missed) => {
                    assert_eq!((missed, frames.unpin(pin)), (Missed::Pinned, FRAME));
                    match frames.counted(FRAME, key, now).unwrap() {
                        (_, true) => Found::Counted,
                        (_, false) => Found::Unsettled,
                    }
                }
            };
            frames.pins().give_back(row);
            found
        }
    }

    #[test]
    fn a_mark_is_void_when_its_epoch_ends_and_when_its_number_comes_again() {
        let fixture = Fixture::new();
        let Fixture { frames, now, .. } = &fixture;
        let mut epochs = Epochs::new();
        assert_eq!(fixture.found(), Found::Unsettled);
        let first = epochs.open(now, frames).unwrap().counted;
        assert_eq!(fixture.found(), Found::Unsettled);
        frames.mark(FRAME, first);
        assert_eq!(fixture.found(), Found::Counted);
        epochs.end(now, frames);
        assert_eq!(fixture.found(), Found::Unsettled);
        for _ in 1..Epoch::COUNT / 2 {
            assert_ne!(epochs.open(now, frames).unwrap().counted, first);
            assert_eq!(fixture.found(), Found::Unsettled);
            epochs.end(now, frames);
        }
        assert_eq!(epochs.open(now, frames).unwrap().counted, first);
        assert_eq!(fixture.found(), Found::Unsettled, "the old mark is there");
        epochs.tell_all(true, now, frames);
        assert_eq!(epochs.open(now, frames), None);
    }

    #[test]
    fn blocks_are_pinned_when_nothing_happens_for_long() {
        let fixture = Fixture::new();
        let Fixture { frames, now, .. } = &fixture;
        let mut epochs = Epochs::new();
        for _ in 0..2 {
            let brief = epochs.open(now, frames).unwrap();
            frames.mark(FRAME, brief.counted);
            for _ in 1..CALM {
                assert_eq!(epochs.open(now, frames), Some(brief));
            }
            assert_eq!(brief.pinned, None);
            let long = epochs.open(now, frames).unwrap();
            assert_eq!(
                fixture.found(),
                Found::Unsettled,
                "the brief one's mark is void"
            );
            frames.mark(FRAME, long.pinned.unwrap());
            assert_eq!(fixture.found(), Found::Pinned);
            frames.mark(FRAME, long.counted);
            assert_eq!(fixture.found(), Found::Counted);
            frames.mark(FRAME, long.pinned.unwrap());
            epochs.end(now, frames);
            assert_eq!(fixture.found(), Found::Unsettled);
        }
    }
}
