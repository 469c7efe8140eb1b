//! The queues against a model that searches vectors, and what they promise.

use std::collections::HashMap;

use proptest::prelude::*;

use super::knobs::Knobs;
use super::queues::Queues;
use crate::cache::policy::FrameState;

#[test]
fn what_comes_back_soon_enough_goes_to_the_main_queue() {
    let knobs = Knobs {
        small: 100,
        ghosts: 500,
        contest: false,
    };
    let mut core = Queues::new(10, knobs).unwrap();
    (0..10).for_each(|frame| core.insert(frame, false, false));
    let out: Vec<u32> = (0..7)
        .map(|_| core.evict(|_| FrameState::Clean).unwrap().ghost.unwrap())
        .collect();
    assert!(!core.returns(out[0]) && !core.returns(out[1]), "5 are kept");
    assert!(core.returns(out[2]) && !core.returns(out[2]), "once");
    assert!(core.returns(out[6]));
    core.insert(0, true, false);
    assert_eq!((core.first() + core.small(), core.main()), (3, 1));
    core.check().unwrap();
}

#[test]
fn in_a_contest_the_newcomer_must_be_used_more_often() {
    let knobs = Knobs {
        small: 100,
        ghosts: 1000,
        contest: true,
    };
    for (idle, admitted) in [(0, false), (20, true)] {
        let mut core = Queues::new(10, knobs).unwrap();
        (0..9).for_each(|frame| core.insert(frame, true, false));
        for frame in 0..9 {
            core.touch(frame);
        }
        let mut left = 0;
        for _ in 0..idle + 1 {
            core.insert(9, false, false);
            left = core.evict(|_| FrameState::Clean).unwrap().ghost.unwrap();
        }
        core.insert(9, false, false);
        if idle == 0 {
            for frame in 0..9 {
                core.touch(frame);
            }
        }
        assert_eq!(core.returns(left), admitted, "main queue idle for {idle}");
    }
}

proptest! {
    #[test]
    fn the_queues_are_what_their_definition_says(
        steps in proptest::collection::vec((0_u8..8, any::<u32>()), 1..400),
        small in 1_u32..500,
        capacity in 1_usize..40,
    ) {
        let knobs = Knobs { small, ghosts: 1000, contest: false };
        let mut core = Queues::new(capacity, knobs).unwrap();
        let mut plain = Plain::new(capacity, knobs);
        let mut free: Vec<u32> = (0..capacity as u32).collect();
        let mut gone: Vec<u32> = Vec::new();
        for (what, number) in steps {
            let inside: Vec<u32> = plain.frames();
            match what {
                0..=3 => {
                    let frame = match free.pop() {
                        Some(frame) => frame,
                        None => {
                            let out = core.evict(|_| FrameState::Clean).unwrap();
                            prop_assert_eq!((out.frame, out.ghost), plain.evict());
                            gone.extend(out.ghost);
                            out.frame
                        }
                    };
                    // one of the latest that left, if it is still remembered
                    let returns = number % 2 == 0 && !gone.is_empty() && {
                        let at = gone[gone.len() - 1 - number as usize / 2 % gone.len().min(50)];
                        let returns = core.returns(at);
                        if returns {
                            plain.returned(at);
                        }
                        returns
                    };
                    core.insert(frame, returns, false);
                    plain.insert(frame, returns);
                }
                4..=6 if !inside.is_empty() => {
                    let frame = inside[number as usize % inside.len()];
                    core.touch(frame);
                    plain.touch(frame);
                }
                7 if !inside.is_empty() => {
                    let frame = inside[number as usize % inside.len()];
                    core.remove(frame);
                    plain.remove(frame);
                    free.push(frame);
                }
                _ => {}
            }
            core.check().unwrap();
            let lengths = [core.first(), core.small(), core.main()];
            prop_assert_eq!(lengths, [&plain.first, &plain.small, &plain.main].map(Vec::len));
        }
    }
}

/// The queues by definition: frame, arrival, uses, oldest first.
struct Plain {
    first: Vec<(u32, u32, u8)>,
    small: Vec<(u32, u32, u8)>,
    main: Vec<(u32, u32, u8)>,
    arrivals: u32,
    capacity: usize,
    target: usize,
    /// How many were to leave.
    left: u32,
    /// How many got a number.
    latest: u32,
    /// By period: the first ones stayed.
    stayed: HashMap<u32, bool>,
    against: i32,
}

impl Plain {
    fn new(capacity: usize, knobs: Knobs) -> Self {
        Self {
            first: Vec::new(),
            small: Vec::new(),
            main: Vec::new(),
            arrivals: 0,
            capacity,
            target: (capacity * knobs.small as usize / 1000).max(1),
            left: 0,
            latest: 0,
            stayed: HashMap::new(),
            against: 0,
        }
    }

    fn all(&self) -> impl Iterator<Item = &(u32, u32, u8)> {
        self.first.iter().chain(&self.small).chain(&self.main)
    }

    fn frames(&self) -> Vec<u32> {
        self.all().map(|it| it.0).collect()
    }

    fn period(&self, number: u32) -> u32 {
        // the power of two below a sixteenth of the frames; these caches have at most 40
        number / [1, 2][usize::from(self.capacity >= 32)]
    }

    fn returned(&mut self, number: u32) {
        if !self.first.is_empty() && self.stayed[&self.period(number)] {
            self.against += 1;
        }
    }

    fn insert(&mut self, frame: u32, main: bool) {
        if main {
            self.main.push((frame, 0, 0));
            return;
        }
        let fills = self.left == 0 && self.all().count() + self.target < self.capacity;
        self.arrivals += 1;
        let queue = if fills {
            &mut self.first
        } else {
            &mut self.small
        };
        queue.push((frame, self.arrivals, 0));
    }

    fn touch(&mut self, frame: u32) {
        let window = self.target as u32 / 2;
        let arrivals = self.arrivals;
        for it in self.main.iter_mut().filter(|it| it.0 == frame) {
            it.2 = (it.2 + 1).min(3);
        }
        let seen = |it: &&mut (u32, u32, u8)| it.0 == frame && arrivals - it.1 >= window;
        for it in self.small.iter_mut().filter(seen) {
            it.2 = (it.2 + 1).min(3);
        }
        for it in self.first.iter_mut().filter(seen) {
            self.against -= i32::from(it.2 == 0 && it.1 <= self.left);
            it.2 = (it.2 + 1).min(3);
        }
    }

    fn remove(&mut self, frame: u32) {
        for queue in [&mut self.first, &mut self.small, &mut self.main] {
            queue.retain(|it| it.0 != frame);
        }
    }

    /// Which frame, and its number among those that are remembered.
    fn evict(&mut self) -> (u32, Option<u32>) {
        self.left += 1;
        let period = self.period(self.latest + 1);
        if !self.stayed.contains_key(&period) {
            self.stayed.insert(period, self.against <= 0);
            self.against /= 2;
        }
        let all_stayed = self.stayed.values().all(|&stayed| stayed);
        if all_stayed && !self.first.is_empty() && self.small.len() > self.target {
            self.first.push(self.small.remove(0));
        }
        loop {
            let (frame, _, uses) = if !self.first.is_empty()
                && (!self.stayed[&period] || self.small.len() < self.target)
            {
                self.first.remove(0)
            } else if self.small.len() >= self.target || self.main.is_empty() {
                self.small.remove(0)
            } else {
                let (frame, _, uses) = self.main.remove(0);
                if uses == 0 {
                    return (frame, None);
                }
                self.main.push((frame, 0, uses - 1));
                continue;
            };
            if uses == 0 {
                self.latest += 1;
                return (frame, Some(self.latest));
            }
            self.main.push((frame, 0, 0));
        }
    }
}

#[test]
fn what_came_first_stays_until_others_come_back_in_its_stead() {
    let knobs = Knobs {
        small: 100,
        ghosts: 1000,
        contest: false,
    };
    let mut core = Queues::new(100, knobs).unwrap();
    let leave = |core: &mut Queues| core.evict(|_| FrameState::Clean).unwrap();
    (0..100).for_each(|frame| core.insert(frame, false, false));
    assert_eq!((core.first(), core.small()), (90, 10));
    // What came last leaves first, and nothing tells otherwise.
    let mut numbers = Vec::new();
    for _ in 0..20 {
        let out = leave(&mut core);
        numbers.extend(out.ghost);
        core.insert(out.frame, false, false);
    }
    assert_eq!((core.first(), core.small()), (90, 10));
    // A few come back, one after the other: from then on the oldest of all leave.
    for at in numbers {
        let out = leave(&mut core);
        assert!(core.returns(at));
        core.insert(out.frame, true, false);
    }
    let (first, small) = (core.first(), core.small());
    for _ in 0..10 {
        let out = leave(&mut core);
        core.insert(out.frame, false, false);
    }
    assert_eq!((first - core.first(), core.small() - small), (10, 10));
    // (A period is four departures here.) Uses of those that would have left by now speak for the rest of the first ones: what leaves is late again.
    for frame in 0..90 {
        core.touch(frame);
    }
    let first = core.first();
    assert!(first > 50);
    for _ in 0..8 {
        let out = leave(&mut core);
        core.insert(out.frame, false, false);
    }
    let first = core.first();
    let out = leave(&mut core);
    assert!(out.ghost.is_some() && core.first() == first, "{core:?}");
    core.check().unwrap();
}

#[test]
fn a_shorter_small_queue_gives_its_oldest_to_the_first_ones_that_stay() {
    let knobs = |small| Knobs {
        small,
        ghosts: 1000,
        contest: false,
    };
    let mut core = Queues::new(100, knobs(100)).unwrap();
    (0..100).for_each(|frame| core.insert(frame, false, false));
    core.set(knobs(20));
    for _ in 0..20 {
        let out = core.evict(|_| FrameState::Clean).unwrap();
        core.insert(out.frame, false, false);
    }
    assert_eq!((core.first(), core.small()), (98, 2));
    core.check().unwrap();
}
