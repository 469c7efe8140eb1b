//! Random events against a model and the rule.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::super::{
    Admission, Arrival, Block, Frame, FrameState, Frames, Policy, PolicyError, Reason, Shadow,
    Touch,
};
use super::owner::State;

/// A rule once more, written to be read beside its source. Evicts one at a time.
pub(super) trait Model {
    fn miss(&mut self, _: Option<Shadow>, _: Reason) -> Admission {
        Admission::default()
    }
    fn insert(&mut self, frame: Frame, arrival: Arrival);
    fn touch(&mut self, frame: Frame, request: u32);
    fn evict(&mut self, frames: &mut dyn Frames) -> bool;
    fn remove(&mut self, frame: Frame);
    fn resize(&mut self, _: usize) {}
    fn tick(&mut self, _: &mut dyn Frames) {}
    fn drop_behind(&mut self, _: Frame) {}
}

#[derive(Debug, Clone)]
enum Event {
    /// A block is asked for: touched, or brought in (with an eviction first, if there is no room).
    Access(u32, Reason),
    /// Again, by the request before.
    Again(u32),
    DropBehind(u32),
    Remove(u32),
    Dirty(u32),
    Pin(u32),
    Unpin,
    /// The writes that were asked for end.
    Written,
    Tick,
    Resize(usize),
    Evict(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let block = 0..60_u32;
    let reason = prop_oneof![
        8 => Just(Reason::Demand),
        2 => Just(Reason::Readahead),
        2 => Just(Reason::Write)
    ];
    prop_oneof![
        60 => (block.clone(), reason).prop_map(|(block, reason)| Event::Access(block, reason)),
        // a few blocks are used often
        30 => (0..8_u32).prop_map(|block| Event::Access(block, Reason::Demand)),
        10 => block.clone().prop_map(Event::Again),
        5 => block.clone().prop_map(Event::DropBehind),
        5 => block.clone().prop_map(Event::Remove),
        8 => block.clone().prop_map(Event::Dirty),
        4 => block.prop_map(Event::Pin),
        3 => Just(Event::Unpin),
        5 => Just(Event::Written),
        3 => Just(Event::Tick),
        1 => (1..50_usize).prop_map(Event::Resize),
        3 => (1..6_usize).prop_map(Event::Evict),
    ]
}

/// Blocks and the frames that they are in, for one of the two.
struct Side {
    state: State,
    at: BTreeMap<u32, Frame>,
    holds: BTreeMap<Frame, u32>,
    shadows: BTreeMap<u32, Shadow>,
    free: BTreeSet<Frame>,
}

impl Side {
    fn new(frames: usize) -> Self {
        Self {
            state: State::default(),
            at: BTreeMap::new(),
            holds: BTreeMap::new(),
            shadows: BTreeMap::new(),
            free: (0..frames as Frame).collect(),
        }
    }

    fn leave(&mut self, frame: Frame) {
        let block = self
            .holds
            .remove(&frame)
            .expect("a frame that holds a block left");
        self.at.remove(&block);
        if let Some(shadow) = self.state.shadows.remove(&frame) {
            self.shadows.insert(block, shadow);
        }
        self.state.dirty.remove(&frame);
        self.state.pinned.remove(&frame);
        self.free.insert(frame);
    }

    /// Takes note of what left since.
    fn settle(&mut self, from: usize) -> Vec<Frame> {
        let gone = self.state.gone[from..].to_vec();
        gone.iter().for_each(|&frame| self.leave(frame));
        gone
    }
}

/// Runs random events on the rule and the model; after each both have said the same, and the rule's own check holds.
pub(super) fn agree<P: Policy, M: Model>(
    make: fn(usize) -> Result<P, PolicyError>,
    model: impl Fn(usize) -> M,
) {
    let cases = 1..48_usize;
    let config = ProptestConfig {
        cases: 160,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let run = (
        cases,
        prop::bool::ANY,
        prop::collection::vec(event(), 1..400),
    );
    proptest!(config, |((frames, instant, events) in run)| {
        let mut rule = make(frames).unwrap();
        let mut model = model(frames);
        let mut side = Side::new(frames);
        side.state.instant = instant;
        let (mut request, mut capacity, mut most) = (0_u32, frames, frames);
        for event in events {
            let from = side.state.gone.len();
            let asked = side.state.asked.len();
            let mut other = side.state.clone();
            match event.clone() {
                Event::Access(block, reason) => {
                    request += 1;
                    if let Some(&frame) = side.at.get(&block) {
                        rule.touch(frame, Touch { request });
                        model.touch(frame, request);
                    } else {
                        let shadow = side.shadows.remove(&block);
                        let admission = rule.miss(Block(block.into()), shadow, reason);
                        prop_assert_eq!(admission, model.miss(shadow, reason));
                        if side.at.len() >= capacity {
                            let count = rule.evict(&mut side.state, 1);
                            prop_assert_eq!(count == 1, model.evict(&mut other));
                            prop_assert_eq!(&side.state.gone, &other.gone);
                            prop_assert_eq!(&side.state.shadows, &other.shadows);
                            side.settle(from);
                        }
                        if side.at.len() < capacity && let Some(frame) = side.free.pop_first() {
                            side.at.insert(block, frame);
                            side.holds.insert(frame, block);
                            let arrival =
                                Arrival { block: Block(block.into()), reason, request, admission };
                            rule.insert(frame, arrival);
                            model.insert(frame, arrival);
                        }
                    }
                }
                Event::Again(block) => if let Some(&frame) = side.at.get(&block) {
                    rule.touch(frame, Touch { request });
                    model.touch(frame, request);
                }
                Event::DropBehind(block) => if let Some(&frame) = side.at.get(&block) {
                    rule.drop_behind(frame);
                    model.drop_behind(frame);
                }
                Event::Remove(block) => if let Some(&frame) = side.at.get(&block) {
                    rule.remove(frame);
                    model.remove(frame);
                    side.leave(frame);
                }
                Event::Dirty(block) => if let Some(&frame) = side.at.get(&block) {
                    side.state.dirty.insert(frame);
                }
                Event::Pin(block) => if let Some(&frame) = side.at.get(&block) {
                    side.state.pinned.insert(frame);
                }
                Event::Unpin => side.state.pinned.clear(),
                Event::Written => {
                    let asked = core::mem::take(&mut side.state.asked);
                    asked.iter().for_each(|frame| { side.state.dirty.remove(frame); });
                }
                Event::Tick => {
                    rule.tick(&mut side.state);
                    model.tick(&mut other);
                    prop_assert_eq!(&side.state.asked[asked..], &other.asked[asked..]);
                    side.settle(from);
                }
                Event::Resize(to) => {
                    rule.resize(to).unwrap();
                    model.resize(to);
                    capacity = to;
                    while side.at.len() > capacity {
                        let from = side.state.gone.len();
                        let mut other = side.state.clone();
                        let count = rule.evict(&mut side.state, 1);
                        prop_assert_eq!(count == 1, model.evict(&mut other));
                        prop_assert_eq!(&side.state.gone, &other.gone);
                        side.settle(from);
                        if count == 0 {
                            side.state.pinned.clear();
                        }
                    }
                    side.free.extend(most as Frame..to.max(most) as Frame);
                    most = most.max(to);
                }
                Event::Evict(count) => {
                    let free = side.state.pinned.len();
                    let leave = side.at.len() - free;
                    let count_rule = rule.evict(&mut side.state, count);
                    let count_model = (0..count).take_while(|_| model.evict(&mut other)).count();
                    prop_assert_eq!(count_rule, count_model);
                    prop_assert_eq!(count_rule, count.min(leave), "all that may leave does");
                    prop_assert_eq!(&side.state.gone, &other.gone);
                    prop_assert_eq!(&side.state.asked[asked..], &other.asked[asked..]);
                    prop_assert_eq!(&side.state.shadows, &other.shadows);
                    side.settle(from);
                }
            }
            prop_assert_eq!(rule.check(), Ok(()), "{:?}", event);
            prop_assert_eq!(rule.len(), side.at.len());
        }
        let unpinned = |frame: &Frame| side.state.state(*frame) != FrameState::Pinned;
        let leave = side.holds.keys().filter(|frame| unpinned(frame)).count();
        let count = rule.evict(&mut side.state, 1_000);
        prop_assert_eq!(count, leave);
    });
}
