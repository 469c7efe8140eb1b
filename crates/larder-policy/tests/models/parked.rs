//! Every rule with an owner that parks: at most 9 of 10 frames are pinned, and each that the rule was told to pass over is parked
//! until it may leave.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use larder_policy::{
    Arrival, Block, Frame, FrameState, Frames, Policy, Reason, Shadow, Shadows, Touch, Visitor,
    rules, with_rule,
};

const CAPACITY: usize = 1000;
const PINNED: usize = CAPACITY / 10 * 9;
const BLOCKS: u64 = 3000;

#[derive(Default)]
struct Parking {
    pinned: Vec<bool>,
    parked: Vec<bool>,
    looks: Cell<u64>,
    pinned_looks: Cell<u64>,
    looked_at: RefCell<Vec<Frame>>,
    gone: Vec<(Frame, Option<Shadow>)>,
}

impl Frames for Parking {
    fn state(&self, frame: Frame) -> FrameState {
        self.looks.set(self.looks.get() + 1);
        assert!(!self.parked[frame as usize], "a parked frame is looked at");
        if !self.pinned[frame as usize] {
            return FrameState::Clean;
        }
        self.pinned_looks.set(self.pinned_looks.get() + 1);
        self.looked_at.borrow_mut().push(frame);
        FrameState::Pinned
    }

    fn evicted(&mut self, frame: Frame, shadow: Option<Shadow>) {
        assert!(!self.pinned[frame as usize]);
        self.gone.push((frame, shadow));
    }
}

struct Run;

impl Visitor for Run {
    type Out = ();

    fn visit<P: Policy>(self, name: &'static str, mut rule: P) {
        let mut owner = Parking {
            pinned: vec![false; CAPACITY],
            parked: vec![false; CAPACITY],
            ..Parking::default()
        };
        let mut inside: HashMap<u64, Frame> = HashMap::new();
        let mut blocks = vec![0; CAPACITY];
        let mut pins: Vec<Frame> = Vec::new();
        let mut shadows = Shadows::new(CAPACITY);
        let (mut word, mut evictions, mut pinnings) = (5_u64, 0, 0);
        let mut free: Vec<Frame> = (0..CAPACITY as Frame).collect();
        for at in 0..60_000_u32 {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let dice = word >> 33;
            let block = dice % BLOCKS * (dice >> 12) % BLOCKS;
            let frame = match inside.get(&block) {
                Some(&frame) => {
                    if !owner.pinned[frame as usize] {
                        rule.touch(frame, Touch { request: at });
                    }
                    frame
                }
                None => {
                    let shadow = shadows.take(Block(block), &rule);
                    let admission = rule.miss(Block(block), shadow, Reason::Demand);
                    if free.is_empty() {
                        assert_eq!(rule.evict(&mut owner, 1), 1, "{name} at {at}");
                        evictions += 1;
                    }
                    for frame in owner.looked_at.take() {
                        if !owner.parked[frame as usize] {
                            owner.parked[frame as usize] = true;
                            rule.park(frame);
                        }
                    }
                    for (frame, shadow) in owner.gone.drain(..) {
                        let block = blocks[frame as usize];
                        inside.remove(&block);
                        if let Some(shadow) = shadow {
                            shadows.put(Block(block), shadow, &rule);
                        }
                        free.push(frame);
                    }
                    let frame = free.pop().unwrap();
                    rule.insert(frame, Arrival::demand(Block(block), at, admission));
                    inside.insert(block, frame);
                    blocks[frame as usize] = block;
                    frame
                }
            };
            // A transaction pins every third block that it comes by, and at its end lets them all go.
            if at % 3 == 0 && !owner.pinned[frame as usize] {
                owner.pinned[frame as usize] = true;
                pins.push(frame);
                pinnings += 1;
            }
            if pins.len() > PINNED {
                for frame in pins.drain(..) {
                    owner.pinned[frame as usize] = false;
                    if core::mem::take(&mut owner.parked[frame as usize]) {
                        rule.unpark(frame);
                    }
                }
                if at % 2 == 0 {
                    // Another owner of the file has changed it.
                    for (block, frame) in inside.drain() {
                        if let Some(shadow) = rule.invalidate(frame) {
                            shadows.put(Block(block), shadow, &rule);
                        }
                        free.push(frame);
                    }
                    assert!(rule.is_empty());
                }
            }
            assert_eq!(rule.len(), inside.len(), "{name}");
            if at % 512 == 0 {
                rule.check()
                    .unwrap_or_else(|why| panic!("{name} at {at}: {why}"));
                rule.resize(if at % 1024 == 0 {
                    CAPACITY
                } else {
                    CAPACITY + 7
                })
                .unwrap();
            }
        }
        // A pinned frame is looked at in one eviction, by some rules more than once; then no more.
        let (looks, pinned) = (owner.looks.get(), owner.pinned_looks.get());
        let said = format!(
            "{name}: {looks} looks, {pinned} at the pinned, {pinnings} times pinned, {evictions} evictions"
        );
        // Linux 2.4 goes round its active list until the ages of all pages have sunk.
        let rounds = if name.starts_with("linux-2.4") { 32 } else { 2 };
        assert!(
            pinned <= rounds * pinnings && looks - pinned <= 8 * evictions,
            "{said}"
        );
    }
}

#[test]
fn pinned_frames_are_looked_at_once() {
    for rule in rules() {
        with_rule(rule.name, CAPACITY, Run).unwrap();
    }
}
