//! When a use need not be reported to the rule: it found its block saturated, and nothing but uses has happened since.

use crate::limits::LONG_EPOCH;
use crate::table::{Epoch, Table};
use larder_policy::Frame;

/// What saturated frames are marked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marks {
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

/// What is known of epochs under the cache's lock. An epoch ends with whatever may make a saturated frame unsaturated (an arrival, an
/// eviction, a removal, another size); the marks of its frames are void then, for they name it. Numbers come again: before one
/// does, every frame has been looked at and has lost the mark of old.
#[derive(Debug)]
pub(super) struct EpochClock {
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

impl EpochClock {
    pub(super) const fn new() -> Self {
        Self {
            at: 0,
            stage: Stage::Unmarked,
            calm: 0,
            sweep: 0,
            off: false,
        }
    }

    /// What saturated frames may be marked with now, at a report; nothing if every use is to be reported.
    pub(super) fn open(&mut self, table: &Table) -> Option<Marks> {
        if self.off {
            return None;
        }
        self.calm = self.calm.saturating_add(1);
        let long = self.calm > LONG_EPOCH && table.frames().pins().is_usable();
        if long && self.stage == Stage::Brief {
            self.next(table);
        }
        let (pinned, counted) = (Epoch::number(self.at), Epoch::number(self.at + 1));
        if self.stage == Stage::Unmarked {
            if long {
                self.stage = Stage::Long;
                table.frames().pins().open(pinned);
                table.epochs().set(pinned, counted);
            } else {
                self.stage = Stage::Brief;
                table.epochs().set(Epoch::NEVER, counted);
            }
        }
        Some(Marks {
            pinned: (self.stage == Stage::Long).then_some(pinned),
            counted,
        })
    }

    /// Frames may be unsaturated from now on. Nothing if none was marked since the last time; else 1 / 4093 of the frames are looked at.
    #[inline]
    pub(super) fn end(&mut self, table: &Table) {
        self.calm = 0;
        if self.stage != Stage::Unmarked {
            self.next(table);
        }
    }

    #[cold]
    fn next(&mut self, table: &Table) {
        self.stage = Stage::Unmarked;
        table.epochs().set(Epoch::NEVER, Epoch::NEVER);
        table.frames().pins().close();
        self.at = (self.at + 2) % Epoch::COUNT;
        let len = table.frames().len() as Frame;
        for _ in 0..len.div_ceil(Epoch::COUNT / 2 - 1) {
            // Marks of the epoch to come are 4094 epochs old, and were taken away on the way here.
            table.frames().unmark(self.sweep);
            self.sweep = if self.sweep + 1 < len {
                self.sweep + 1
            } else {
                0
            };
        }
    }

    /// From now on every use is to be reported, or no longer.
    pub(super) fn report_all(&mut self, all: bool, table: &Table) {
        self.end(table);
        self.off = all;
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::key::Key;
    use crate::table::Missed;
    use larder::pages::PagePool;

    const FRAME: Frame = 19_999;

    #[derive(Debug, PartialEq)]
    enum Found {
        Pinned,
        Counted,
        Unmarked,
    }

    struct Fixture {
        table: Table,
    }

    impl Fixture {
        /// One block, in the last of 20,000 frames.
        fn new() -> Self {
            let pool = PagePool::builder().populate(false).build().unwrap();
            let table = Table::new(20_000, pool).unwrap();
            let mut claimed = table.frames().try_claim(FRAME).unwrap();
            claimed.take_page().unwrap();
            table.insert(Key::new(0, 0), FRAME);
            drop(claimed);
            Self { table }
        }

        fn found(&self) -> Found {
            let table = &self.table;
            let (row, pins) = table.frames().pins().row().unwrap();
            let (key, pin) = (Key::new(0, 0), pins.free().unwrap());
            let found = match table.hit(key, pin, Err) {
                Ok(_) => Found::Pinned,
                Err(missed) => {
                    assert_eq!((missed, table.frames().unpin(pin)), (Missed::Pinned, FRAME));
                    match table.counted(FRAME, key).unwrap() {
                        (_, true) => Found::Counted,
                        (_, false) => Found::Unmarked,
                    }
                }
            };
            table.frames().pins().give_back(row);
            found
        }
    }

    #[test]
    fn a_mark_is_void_when_its_epoch_ends_and_when_its_number_comes_again() {
        let fixture = Fixture::new();
        let table = &fixture.table;
        let mut epochs = EpochClock::new();
        assert_eq!(fixture.found(), Found::Unmarked);
        let first = epochs.open(table).unwrap().counted;
        assert_eq!(fixture.found(), Found::Unmarked);
        table.frames().mark(FRAME, first);
        assert_eq!(fixture.found(), Found::Counted);
        epochs.end(table);
        assert_eq!(fixture.found(), Found::Unmarked);
        for _ in 1..Epoch::COUNT / 2 {
            assert_ne!(epochs.open(table).unwrap().counted, first);
            assert_eq!(fixture.found(), Found::Unmarked);
            epochs.end(table);
        }
        assert_eq!(epochs.open(table).unwrap().counted, first);
        assert_eq!(fixture.found(), Found::Unmarked, "the old mark is there");
        epochs.report_all(true, table);
        assert_eq!(epochs.open(table), None);
    }

    #[test]
    fn blocks_are_pinned_when_nothing_happens_for_long() {
        let fixture = Fixture::new();
        let table = &fixture.table;
        let mut epochs = EpochClock::new();
        for _ in 0..2 {
            let brief = epochs.open(table).unwrap();
            table.frames().mark(FRAME, brief.counted);
            for _ in 1..LONG_EPOCH {
                assert_eq!(epochs.open(table), Some(brief));
            }
            assert_eq!(brief.pinned, None);
            let long = epochs.open(table).unwrap();
            assert_eq!(
                fixture.found(),
                Found::Unmarked,
                "the brief one's mark is void"
            );
            table.frames().mark(FRAME, long.pinned.unwrap());
            assert_eq!(fixture.found(), Found::Pinned);
            table.frames().mark(FRAME, long.counted);
            assert_eq!(fixture.found(), Found::Counted);
            table.frames().mark(FRAME, long.pinned.unwrap());
            epochs.end(table);
            assert_eq!(fixture.found(), Found::Unmarked);
        }
    }
}
