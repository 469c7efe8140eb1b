//! Every rule with an owner whose frames are taken and let go at any time, as those of a cache with threads are: what it says of
//! a frame may be otherwise when it is asked again.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use larder_policy::{
    Arrival, Block, Frame, FrameState, Frames, Policy, Reason, Shadow, Touch, Visitor, rules,
    with_rule,
};

/// Says of a frame what the next of its random numbers says.
struct Restless {
    word: Cell<u64>,
    /// Of 32 answers this many say that the frame must stay.
    pinned: u64,
    gone: Vec<(Frame, Option<Shadow>)>,
}

impl Restless {
    fn next(&self) -> u64 {
        let word = self.word.get();
        let word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.word.set(word);
        word >> 33
    }
}

impl Frames for Restless {
    fn state(&self, _: Frame) -> FrameState {
        match self.next() % 32 {
            at if at < self.pinned => FrameState::Pinned,
            at if at % 4 == 0 => FrameState::Dirty,
            _ => FrameState::Clean,
        }
    }

    fn evicted(&mut self, frame: Frame, shadow: Option<Shadow>) {
        self.gone.push((frame, shadow));
    }
}

const CAPACITY: usize = 24;

struct Run;

impl Visitor for Run {
    type Out = ();

    fn visit<P: Policy>(self, name: &'static str, mut rule: P) {
        let mut owner = Restless {
            word: Cell::new(7),
            pinned: 0,
            gone: Vec::new(),
        };
        let mut inside: HashMap<u64, Frame> = HashMap::new();
        let mut shadows: HashMap<u64, Shadow> = HashMap::new();
        let mut refused = 0;
        for at in 0..6000_u32 {
            owner.pinned = [0, 16, 31][at as usize / 100 % 3];
            let block = owner.next() % 60;
            match inside.get(&block) {
                Some(&frame) if owner.next().is_multiple_of(16) => {
                    rule.remove(frame);
                    inside.remove(&block);
                }
                Some(&frame) => rule.touch(frame, Touch { request: at }),
                None => {
                    let shadow = shadows.remove(&block);
                    let reason = match owner.next() % 4 {
                        0 => Reason::Readahead,
                        1 => Reason::Write,
                        _ => Reason::Demand,
                    };
                    let admission = rule.miss(Block(block), shadow, reason);
                    if rule.len() == CAPACITY {
                        let said = rule.evict(&mut owner, 1 + at as usize % 3);
                        assert_eq!(said, owner.gone.len(), "{}", name);
                    }
                    forget(&mut owner, &mut inside, &mut shadows);
                    let taken: HashSet<Frame> = inside.values().copied().collect();
                    let free = (0..CAPACITY as Frame).find(|frame| !taken.contains(frame));
                    let Some(frame) = free else {
                        refused += 1;
                        continue;
                    };
                    rule.insert(
                        frame,
                        Arrival {
                            block: Block(block),
                            reason,
                            request: at,
                            admission,
                        },
                    );
                    inside.insert(block, frame);
                }
            }
            if at % 64 == 0 {
                rule.tick(&mut owner);
                forget(&mut owner, &mut inside, &mut shadows);
            }
            assert_eq!(rule.len(), inside.len(), "{}", name);
            rule.check().unwrap_or_else(|why| panic!("{}: {why}", name));
        }
        assert!(refused < 3000, "{}: {refused} times no room", name);
        // A rule that finds a frame that may leave finds all of them.
        let left = rule.len();
        let mut all: Vec<Frame> = Vec::new();
        assert_eq!(rule.evict(&mut all, left), left, "{}", name);
    }
}

fn forget(
    owner: &mut Restless,
    inside: &mut HashMap<u64, Frame>,
    shadows: &mut HashMap<u64, Shadow>,
) {
    for (frame, shadow) in owner.gone.drain(..) {
        let (&block, _) = inside.iter().find(|(_, at)| **at == frame).unwrap();
        inside.remove(&block);
        shadows.extend(shadow.map(|shadow| (block, shadow)));
    }
}

#[test]
fn frames_may_be_taken_and_let_go_while_a_rule_chooses() {
    for rule in rules() {
        with_rule(rule.name, CAPACITY, Run).unwrap();
    }
}
