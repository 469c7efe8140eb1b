//! Feeds the same events to a rule and to its model.

use larder_policy::{
    Admission, Arrival as RuleArrival, Block, Frame, FrameState, Frames, Policy, Reason, Shadow,
    Touch, rule,
};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

/// A frame that left, and the name of the ghost that it left, if it did.
pub(crate) type Victim = (u32, Option<u64>);

/// What a model knows of a block that comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) block: u64,
    /// What [`Naive::miss`] said.
    pub(crate) decision: u64,
    /// It is read ahead, not used.
    pub(crate) ahead: bool,
    pub(crate) request: u32,
}

/// A rule by its definition. Names of frames are the owner's; ghosts are named by the model, each differently.
pub(crate) trait Naive: Sized {
    /// The name of the rule that it is a model of.
    const RULE: &'static str;
    fn new(capacity: usize) -> Self;
    fn miss(&mut self, _block: u64, _ghost: Option<u64>, _ahead: bool) -> u64 {
        0
    }
    fn insert(&mut self, frame: u32, arrival: Arrival);
    fn touch(&mut self, frame: u32, request: u32);
    fn evict(&mut self, unpinned: &dyn Fn(u32) -> bool) -> Option<Victim>;
    fn remove(&mut self, frame: u32);
    fn resize(&mut self, capacity: usize);
}

/// An event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// A request uses a block; `again`: the same request as before.
    Use { block: u8, again: bool },
    /// A block is read ahead.
    Ahead(u8),
    /// A block is missed, and then it does not come.
    Abandon(u8),
    /// The block may not leave.
    Pin(u8),
    /// All may leave again.
    Unpin,
    /// The block is gone.
    Remove(u8),
    /// The owner forgets the shadow.
    Lose(u8),
    /// So many leave at once.
    Evict(usize),
    /// The capacity changes.
    Resize(usize),
}

pub(crate) fn ops() -> impl Strategy<Value = Vec<Op>> {
    let block = || prop_oneof![3 => 0u8..12, 3 => 0u8..40, 1 => 0u8..120];
    let op = prop_oneof![
        60 => (block(), prop::bool::weighted(0.2)).prop_map(|(block, again)| Op::Use { block, again }),
        8 => block().prop_map(Op::Ahead),
        2 => block().prop_map(Op::Abandon),
        4 => block().prop_map(Op::Pin),
        3 => Just(Op::Unpin),
        3 => block().prop_map(Op::Remove),
        4 => block().prop_map(Op::Lose),
        2 => (0usize..6).prop_map(Op::Evict),
        1 => prop_oneof![Just(1), 1usize..40].prop_map(Op::Resize),
    ];
    prop::collection::vec(op, 0..500)
}

#[derive(Clone, Copy)]
enum Place {
    In(Frame),
    Ghost(Shadow, u64),
}

/// The rule's owner.
#[derive(Default)]
struct Owner {
    pinned: HashSet<Frame>,
    gone: Vec<(Frame, Option<Shadow>)>,
}

impl Frames for Owner {
    fn state(&self, frame: Frame) -> FrameState {
        if self.pinned.contains(&frame) {
            FrameState::Pinned
        } else {
            FrameState::Clean
        }
    }

    fn evicted(&mut self, frame: Frame, shadow: Option<Shadow>) {
        self.gone.push((frame, shadow));
    }
}

struct Both<N: Naive> {
    rule: Box<dyn Policy>,
    model: N,
    owner: Owner,
    places: HashMap<u64, Place>,
    holds: HashMap<Frame, u64>,
    free: Vec<Frame>,
    most: usize,
    capacity: usize,
    request: u32,
}

pub(crate) fn drive<N: Naive>(capacity: usize, ops: &[Op]) -> Result<(), TestCaseError> {
    let mut both = Both::<N> {
        rule: rule(N::RULE, capacity).unwrap(),
        model: N::new(capacity),
        owner: Owner::default(),
        places: HashMap::new(),
        holds: HashMap::new(),
        free: (0..capacity as Frame).rev().collect(),
        most: capacity,
        capacity,
        request: 0,
    };
    for (at, &op) in ops.iter().enumerate() {
        both.step(op).map_err(|error| {
            TestCaseError::fail(format!("event {at} of {}: {op:?}: {error}", N::RULE))
        })?;
    }
    Ok(())
}

impl<N: Naive> Both<N> {
    fn step(&mut self, op: Op) -> Result<(), String> {
        match op {
            Op::Use { block, again } => {
                self.request += u32::from(!again);
                self.access(block.into())?;
            }
            Op::Ahead(block) => {
                if !matches!(self.places.get(&block.into()), Some(Place::In(_))) {
                    self.fetch(block.into(), Reason::Readahead, true)?;
                }
            }
            Op::Abandon(block) => {
                if !matches!(self.places.get(&block.into()), Some(Place::In(_))) {
                    self.fetch(block.into(), Reason::Demand, false)?;
                }
            }
            Op::Pin(block) => {
                if let Some(Place::In(frame)) = self.places.get(&block.into()) {
                    self.owner.pinned.insert(*frame);
                }
            }
            Op::Unpin => self.owner.pinned.clear(),
            Op::Remove(block) => {
                if let Some(Place::In(frame)) = self.places.remove(&block.into()) {
                    self.rule.remove(frame);
                    self.model.remove(frame);
                    self.release(frame);
                }
            }
            Op::Lose(block) => {
                if let Some(Place::Ghost(..)) = self.places.get(&block.into()) {
                    self.places.remove(&block.into());
                }
            }
            Op::Evict(wanted) => drop(self.evict(wanted)?),
            Op::Resize(capacity) => {
                self.rule.resize(capacity).map_err(|e| e.to_string())?;
                self.model.resize(capacity);
                self.capacity = capacity;
                self.free.extend(self.most as Frame..capacity as Frame);
                self.most = self.most.max(capacity);
                self.evict(self.holds.len().saturating_sub(capacity))?;
            }
        }
        self.rule.check()?;
        if self.rule.len() != self.holds.len() || self.rule.capacity() != self.capacity {
            return Err(format!(
                "{} blocks, not {}",
                self.rule.len(),
                self.holds.len()
            ));
        }
        Ok(())
    }

    fn access(&mut self, block: u64) -> Result<(), String> {
        match self.places.get(&block) {
            Some(&Place::In(frame)) => {
                let request = self.request;
                self.rule.touch(frame, Touch { request });
                self.model.touch(frame, request);
                Ok(())
            }
            _ => self.fetch(block, Reason::Demand, true),
        }
    }

    fn fetch(&mut self, block: u64, reason: Reason, comes: bool) -> Result<(), String> {
        let ahead = reason == Reason::Readahead;
        let (shadow, ghost) = match self.places.remove(&block) {
            Some(Place::Ghost(shadow, ghost)) => (Some(shadow), Some(ghost)),
            _ => (None, None),
        };
        let admission: Admission = self.rule.miss(Block(block), shadow, reason);
        let decision = self.model.miss(block, ghost, ahead);
        while self.holds.len() >= self.capacity {
            if self.evict(1)? == 0 {
                return Ok(()); // all are pinned
            }
        }
        if !comes {
            return Ok(());
        }
        let request = self.request;
        let frame = self.free.pop().unwrap();
        self.rule.insert(
            frame,
            RuleArrival {
                block: Block(block),
                reason,
                request,
                admission,
            },
        );
        self.model.insert(
            frame,
            Arrival {
                block,
                decision,
                ahead,
                request,
            },
        );
        self.places.insert(block, Place::In(frame));
        self.holds.insert(frame, block);
        Ok(())
    }

    fn release(&mut self, frame: Frame) -> u64 {
        self.free.push(frame);
        self.owner.pinned.remove(&frame);
        self.holds.remove(&frame).unwrap()
    }

    fn evict(&mut self, wanted: usize) -> Result<usize, String> {
        self.owner.gone.clear();
        let came = self.rule.evict(&mut self.owner, wanted);
        let gone = std::mem::take(&mut self.owner.gone);
        let pinned = self.owner.pinned.clone();
        let mut expected = Vec::new();
        while expected.len() < wanted {
            match self.model.evict(&|frame| !pinned.contains(&frame)) {
                Some(victim) => expected.push(victim),
                None => break,
            }
        }
        let frames: Vec<_> = gone
            .iter()
            .map(|(frame, s)| (*frame, s.is_some()))
            .collect();
        let theirs: Vec<_> = expected.iter().map(|(f, g)| (*f, g.is_some())).collect();
        if frames != theirs || came != gone.len() {
            return Err(format!(
                "victims {frames:?} ({came}), the model's {theirs:?}"
            ));
        }
        for ((frame, shadow), (_, ghost)) in gone.into_iter().zip(expected) {
            let block = self.release(frame);
            match (shadow, ghost) {
                (Some(shadow), Some(ghost)) => {
                    self.places.insert(block, Place::Ghost(shadow, ghost))
                }
                _ => self.places.remove(&block),
            };
        }
        Ok(came)
    }
}
