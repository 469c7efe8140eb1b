//! The queues against a model that searches vectors, and what they promise.

use std::collections::HashMap;

use proptest::prelude::*;

use super::super::knobs::{BY_FREQUENCY, COUNT, EXPERTS, Knobs};
use super::{FIRST, Fifos, Lists, MAIN, Queues, QueuesOver, Recency, SMALL, WAITS};
use crate::FrameState;

/// A small queue of this many thousandths.
fn knobs(small: u32) -> Knobs {
    Knobs {
        small,
        ghosts: 1000,
        contest: false,
        frequency: false,
    }
}

#[test]
fn what_comes_back_soon_enough_goes_to_the_main_queue() {
    let knobs = Knobs {
        small: 100,
        ghosts: 500,
        contest: false,
        frequency: false,
    };
    let mut core = Queues::new(10, knobs).unwrap();
    (0..10).for_each(|frame| core.insert(frame, false, false));
    let out: Vec<u32> = (0..7)
        .map(|_| core.evict(|_, _| FrameState::Clean).unwrap().ghost.unwrap())
        .collect();
    assert!(!core.returns(out[0]) && !core.returns(out[1]), "5 are kept");
    assert!(core.returns(out[2]) && !core.returns(out[2]), "once");
    assert!(core.returns(out[6]));
    core.insert(0, true, false);
    assert_eq!(
        (
            core.lists.len(FIRST) + core.lists.len(SMALL),
            core.lists.len(MAIN)
        ),
        (3, 1)
    );
    core.check().unwrap();
}

#[test]
fn under_lru_no_frame_is_settled() {
    for (small, settled) in [(100, true), (1000, false)] {
        let mut core = Queues::new(4, knobs(small)).unwrap();
        (0..4).for_each(|frame| core.insert(frame, false, false));
        (0..5).for_each(|_| core.touch(3));
        assert_eq!(core.settled(3), settled, "{small}");
    }
}

#[test]
fn in_a_contest_the_newcomer_must_be_used_more_often() {
    let knobs = Knobs {
        small: 100,
        ghosts: 1000,
        contest: true,
        frequency: false,
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
            left = core.evict(|_, _| FrameState::Clean).unwrap().ghost.unwrap();
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
        steps in proptest::collection::vec((0_u8..10, any::<u32>()), 1..400),
        ways in 0_u64..8,
        small in 1_u32..500,
        capacity in 1_usize..40,
    ) {
        let knobs = knobs(small);
        let mut core = Queues::new(capacity, knobs).unwrap();
        let mut plain = Plain::new(capacity, knobs);
        let mut free: Vec<u32> = (0..capacity as u32).collect();
        let mut gone: Vec<u32> = Vec::new();
        // some frames are dirty, and some are pinned, by their numbers and the step
        let state = |step: usize| move |frame: u32| match (u64::from(frame) + step as u64 / 16) % 8 {
            at if at < ways / 2 => FrameState::Pinned,
            at if at < ways => FrameState::Dirty,
            _ => FrameState::Clean,
        };
        for (step, (what, number)) in steps.into_iter().enumerate() {
            let inside: Vec<u32> = plain.frames();
            match what {
                0..=3 | 8..=9 => {
                    let frame = match free.pop() {
                        Some(frame) => frame,
                        None => {
                            let state = state(step);
                            let out = core.evict(|frame, _| state(frame));
                            prop_assert_eq!(out.map(|out| (out.frame, out.ghost)), plain.evict(state));
                            let Some(out) = out else { continue };
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
                    core.insert(frame, returns, what > 3);
                    plain.insert(frame, returns, what > 3);
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
            let lengths = [core.lists.len(FIRST), core.lists.len(SMALL), core.lists.len(MAIN), core.lists.len(WAITS)];
            let plains = [plain.first.len(), plain.small.len(), plain.main.len(), plain.waiting.len()];
            prop_assert_eq!(lengths, plains);
        }
    }
}

/// Uses and arrivals in the queues of a miniature and in those of a cache in which every frame may leave.
fn miniature_and_cache<L: Lists>(capacity: u32, knobs: Knobs, steps: &[(bool, u32)]) {
    let mut cache = Queues::new(capacity as usize, knobs).unwrap();
    cache.begin_to_count().unwrap();
    let mut miniature = QueuesOver::<L>::new(capacity as usize, knobs).unwrap();
    let (mut filled, mut latest) = (0, 0);
    for &(comes, number) in steps {
        if !comes && filled > 0 {
            cache.touch(number % filled);
            miniature.touch(number % filled);
            continue;
        }
        let at = u32::wrapping_sub(latest, number % (2 * capacity));
        let returns = cache.returns(at);
        assert_eq!(miniature.returns(at), returns);
        let frame = if filled < capacity {
            filled += 1;
            filled - 1
        } else {
            let out = cache.evict(|_, _| FrameState::Clean).unwrap();
            assert_eq!(miniature.evict(|_, _| FrameState::Clean), Some(out));
            latest = out.ghost.unwrap_or(latest);
            out.frame
        };
        cache.insert(frame, returns, false);
        miniature.insert(frame, returns, false);
        let count = (number >> 8) as u8 % 16;
        cache.set_count(frame, count);
        miniature.set_count(frame, count);
        assert_eq!(miniature.reach(), cache.reach());
        miniature.check().unwrap();
    }
}

proptest! {
    #[test]
    fn a_miniature_decides_as_the_cache_does(
        steps in proptest::collection::vec((any::<bool>(), any::<u32>()), 1..800),
        small in 1_u32..500,
        contest in any::<bool>(),
        capacity in 1_u32..40,
    ) {
        let fifos = Knobs { small, ghosts: 1500, contest, frequency: false };
        let counts = Knobs { contest: false, frequency: true, ..fifos };
        let lru = Knobs { small: 1000, ghosts: 900, contest: false, frequency: false };
        miniature_and_cache::<Fifos>(capacity, fifos, &steps);
        miniature_and_cache::<Fifos>(capacity, counts, &steps);
        miniature_and_cache::<Recency>(capacity, lru, &steps);
    }
}

proptest! {
    /// Experts that follow each other, over frames that may not leave, are parked or are gone.
    #[test]
    fn queues_stay_whole_whichever_expert_comes_next(
        steps in proptest::collection::vec((0..14_u8, any::<u32>()), 1..600),
        capacity in 1_u32..24,
    ) {
        let knobs = |expert: usize| EXPERTS[expert].knobs(capacity as usize);
        let mut core = Queues::new(capacity as usize, knobs(BY_FREQUENCY)).unwrap();
        core.begin_to_count().unwrap();
        let mut free: Vec<u32> = (0..capacity).collect();
        let (mut inside, mut parked) = (Vec::<u32>::new(), Vec::new());
        for (step, (what, number)) in steps.into_iter().enumerate() {
            let state = |frame: u32| match (frame + step as u32 / 16) % 4 {
                0 => FrameState::Pinned,
                1 => FrameState::Dirty,
                _ => FrameState::Clean,
            };
            let one = |of: &[u32]| of.get(number as usize % of.len().max(1)).copied();
            match (what, one(&inside)) {
                (0..=6, _) => {
                    let frame = match free.pop() {
                        Some(frame) => frame,
                        None => {
                            let out = core.evict(|frame, _| state(frame));
                            let may_leave = inside.iter().any(|&frame| state(frame) == FrameState::Clean);
                            prop_assert!(out.is_some() || !may_leave);
                            let Some(out) = out else { continue };
                            prop_assert!(state(out.frame) != FrameState::Pinned);
                            inside.retain(|&frame| frame != out.frame);
                            out.frame
                        }
                    };
                    core.insert(frame, false, number % 5 == 0);
                    core.set_count(frame, (number >> 8) as u8 % 16);
                    inside.push(frame);
                }
                (7..=9, Some(frame)) => core.touch(frame),
                (10, Some(frame)) => {
                    core.remove(frame);
                    inside.retain(|&other| other != frame);
                    free.push(frame);
                }
                (11, Some(frame)) => {
                    core.park(frame);
                    inside.retain(|&other| other != frame);
                    parked.push(frame);
                }
                (12, _) => {
                    if let Some(frame) = parked.pop() {
                        core.unpark(frame);
                        inside.push(frame);
                    }
                }
                _ => core.set(knobs(number as usize % COUNT)),
            }
            core.check().unwrap();
        }
    }
}

/// The queues by definition: frame, arrival, uses, oldest first.
struct Plain {
    first: Vec<(u32, u32, u8)>,
    small: Vec<(u32, u32, u8)>,
    main: Vec<(u32, u32, u8)>,
    /// Frame, when it came here, and whether a use takes it to the main queue.
    waiting: Vec<(u32, u32, bool)>,
    arrivals: u32,
    came: u32,
    capacity: usize,
    target: usize,
    /// None was to leave yet.
    fills: bool,
    /// How many were, while there were first ones.
    left: u32,
    /// How many got a number.
    latest: u32,
    /// By period: the first ones stayed. And the period for which that was asked last.
    stayed: HashMap<u32, bool>,
    asked: Option<u32>,
    /// They had to leave once.
    parted: bool,
    against: i32,
}

impl Plain {
    fn new(capacity: usize, knobs: Knobs) -> Self {
        Self {
            first: Vec::new(),
            small: Vec::new(),
            main: Vec::new(),
            waiting: Vec::new(),
            arrivals: 0,
            came: 0,
            capacity,
            target: (capacity * knobs.small as usize / 1000).max(1),
            fills: true,
            left: 0,
            latest: 0,
            stayed: HashMap::new(),
            asked: None,
            parted: false,
            against: 0,
        }
    }

    fn frames(&self) -> Vec<u32> {
        let queues = self.first.iter().chain(&self.small).chain(&self.main);
        let queued = queues.map(|it| it.0);
        queued.chain(self.waiting.iter().map(|it| it.0)).collect()
    }

    fn period(&self, number: u32) -> u32 {
        // the power of two below a sixteenth of the frames; these caches have at most 40
        number / [1, 2][usize::from(self.capacity >= 32)]
    }

    fn returned(&mut self, number: u32) {
        let soon = ((self.latest - number) as usize) < self.capacity;
        if !self.first.is_empty() && soon && self.stayed.get(&self.period(number)) == Some(&true) {
            self.against += 1;
        }
    }

    fn insert(&mut self, frame: u32, main: bool, ahead: bool) {
        self.came += 1;
        if ahead {
            self.waiting.push((frame, self.came, main));
        } else {
            self.enter(frame, main);
        }
    }

    fn enter(&mut self, frame: u32, main: bool) {
        if main {
            self.main.push((frame, 0, 0));
            return;
        }
        let fills = self.fills && self.frames().len() + self.target < self.capacity;
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
        if let Some(at) = self.waiting.iter().position(|it| it.0 == frame) {
            let (_, _, main) = self.waiting.remove(at);
            return self.enter(frame, main);
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
        self.waiting.retain(|it| it.0 != frame);
    }

    /// Which frame, and its number among those that are remembered.
    fn evict(&mut self, state: impl Fn(u32) -> FrameState) -> Option<(u32, Option<u32>)> {
        self.fills = false;
        let mut first_leaves = false;
        if !self.first.is_empty() {
            self.left += 1;
            let period = self.period(self.latest + 1);
            if self.asked != Some(period) {
                self.asked = Some(period);
                self.stayed.insert(period, self.against <= 0);
                self.parted |= self.against > 0;
                self.against /= 2;
            }
            first_leaves = !self.stayed[&period];
            if !self.parted && self.small.len() > self.target {
                self.first.push(self.small.remove(0));
            }
        }
        // as many of the waiting blocks as there were, and the block that joins them now
        let mut looks = self.waiting.len();
        loop {
            let patience = (self.capacity as u32 / 4).max(1);
            let late = |it: &(u32, u32, bool)| self.came - it.1 >= patience;
            let others = self.first.len() + self.small.len() + self.main.len();
            if looks > 0 && (others == 0 || self.waiting.first().is_some_and(late)) {
                let (frame, _, main) = self.waiting.remove(0);
                let last = others == 0 && state(frame) == FrameState::Dirty;
                if last || state(frame) == FrameState::Clean {
                    self.latest += 1;
                    return Some((frame, Some(self.latest)));
                }
                self.waiting.push((frame, self.came, main));
                looks -= 1;
                continue;
            }
            let waiting = self.waiting.len().min(self.target / 4);
            let few = self.small.len() + waiting < self.target || self.small.is_empty();
            let (queue, is_main) = if !self.first.is_empty() && (first_leaves || few) {
                (&mut self.first, false)
            } else if self.small.len() >= self.target
                || self.main.is_empty()
                || !self.first.is_empty()
            {
                (&mut self.small, false)
            } else {
                (&mut self.main, true)
            };
            if queue.is_empty() {
                return None;
            }
            let (frame, _, uses) = queue.remove(0);
            if uses > 0 {
                let uses = if is_main { uses - 1 } else { 0 };
                self.main.push((frame, 0, uses));
            } else if state(frame) != FrameState::Clean {
                self.waiting.push((frame, self.came, true));
                looks += 1;
            } else if is_main {
                return Some((frame, None));
            } else {
                self.latest += 1;
                return Some((frame, Some(self.latest)));
            }
        }
    }
}

#[test]
fn what_came_first_stays_until_others_come_back_in_its_stead() {
    let knobs = knobs(100);
    let mut core = Queues::new(100, knobs).unwrap();
    let leave = |core: &mut Queues| core.evict(|_, _| FrameState::Clean).unwrap();
    (0..100).for_each(|frame| core.insert(frame, false, false));
    assert_eq!((core.lists.len(FIRST), core.lists.len(SMALL)), (90, 10));
    // What came last leaves first, and nothing tells otherwise.
    let mut numbers = Vec::new();
    for _ in 0..20 {
        let out = leave(&mut core);
        numbers.extend(out.ghost);
        core.insert(out.frame, false, false);
    }
    assert_eq!((core.lists.len(FIRST), core.lists.len(SMALL)), (90, 10));
    // A few come back, one after the other: from then on the oldest of all leave.
    for at in numbers {
        let out = leave(&mut core);
        assert!(core.returns(at));
        core.insert(out.frame, true, false);
    }
    let (first, small) = (core.lists.len(FIRST), core.lists.len(SMALL));
    for _ in 0..10 {
        let out = leave(&mut core);
        core.insert(out.frame, false, false);
    }
    assert_eq!(
        (first - core.lists.len(FIRST), core.lists.len(SMALL) - small),
        (10, 10)
    );
    // (A period is four departures here.) Uses of those that would have left by now speak for the rest of the first ones: what leaves is late again.
    for frame in 0..90 {
        core.touch(frame);
    }
    let first = core.lists.len(FIRST);
    assert!(first > 50);
    for _ in 0..8 {
        let out = leave(&mut core);
        core.insert(out.frame, false, false);
    }
    let first = core.lists.len(FIRST);
    let out = leave(&mut core);
    assert!(
        out.ghost.is_some() && core.lists.len(FIRST) == first,
        "{core:?}"
    );
    core.check().unwrap();
}

#[test]
fn a_shorter_small_queue_gives_its_oldest_to_the_first_ones_that_stay() {
    let mut core = Queues::new(100, knobs(100)).unwrap();
    (0..100).for_each(|frame| core.insert(frame, false, false));
    core.set(knobs(20));
    for _ in 0..20 {
        let out = core.evict(|_, _| FrameState::Clean).unwrap();
        core.insert(out.frame, false, false);
    }
    assert_eq!((core.lists.len(FIRST), core.lists.len(SMALL)), (98, 2));
    core.check().unwrap();
}

#[test]
fn what_waits_takes_no_place_from_the_first_ones() {
    let mut core = Queues::new(100, knobs(100)).unwrap();
    (0..100).for_each(|frame| core.insert(frame, false, false));
    // Two blocks of the small queue are held in their turn. The oldest of the first ones are the next of a loop: none of them leaves.
    for _ in 0..20 {
        let held = |frame, _| match frame {
            92 | 95 => FrameState::Pinned,
            _ => FrameState::Clean,
        };
        let out = core.evict(held).unwrap();
        core.insert(out.frame, false, false);
    }
    let lengths = [FIRST, SMALL, WAITS].map(|queue| core.lists.len(queue));
    assert_eq!(lengths, [90, 8, 2]);
    core.check().unwrap();
}

#[test]
fn what_a_loop_has_too_much_in_the_small_queue_stays_where_no_first_ones_are_left() {
    let knobs = |small| Knobs {
        contest: true,
        ..knobs(small)
    };
    let mut core = Queues::new(100, knobs(100)).unwrap();
    (0..100).for_each(|frame| core.insert(frame, false, false));
    let turn = |core: &mut Queues, back: Option<u32>| {
        let out = core.evict(|_, _| FrameState::Clean).unwrap();
        let returns = back.is_some_and(|at| core.returns(at));
        core.insert(out.frame, returns, false);
        out.ghost
    };
    // All first ones are used. Others come back, so the first ones are looked at, and are in the main queue from then on.
    (0..90).for_each(|frame| core.touch(frame));
    let gone: Vec<_> = (0..10).map(|_| turn(&mut core, None)).collect();
    gone.into_iter().for_each(|at| {
        turn(&mut core, at);
    });
    let lengths = |core: &Queues| [FIRST, SMALL, MAIN].map(|queue| core.lists.len(queue));
    let [first, small, main] = lengths(&core);
    assert!(first == 0 && small > 1, "{first} and {small}");
    core.set(knobs(10));
    (0..20).for_each(|_| {
        turn(&mut core, None);
    });
    assert_eq!(lengths(&core), [small - 1, 1, main]);
    // Until the expert takes over again, that was all.
    assert!(!core.refills);
    core.set(knobs(10));
    assert!(core.refills);
    core.check().unwrap();
}

#[test]
fn what_may_not_leave_in_its_turn_waits_for_a_quarter_of_the_frames_and_then_again() {
    let knobs = knobs(100);
    for what in [FrameState::Dirty, FrameState::Pinned] {
        let mut core = Queues::new(100, knobs).unwrap();
        (0..100).for_each(|frame| core.insert(frame, false, false));
        // The blocks of the small queue come first. Returns the frames that left, and those that waited for too long.
        let turns = |core: &mut Queues, stay: &[u32]| {
            let (mut gone, mut asked) = (Vec::new(), Vec::new());
            for _ in 0..25 {
                let ask = |frame, waited: bool| {
                    asked.extend(waited.then_some(frame));
                    match stay.contains(&frame) {
                        true => what,
                        false => FrameState::Clean,
                    }
                };
                let out = core.evict(ask).unwrap();
                core.insert(out.frame, false, false);
                gone.push(out.frame);
            }
            (gone, asked)
        };
        let (gone, asked) = turns(&mut core, &[91, 93]);
        assert_eq!((gone[0], core.lists.len(WAITS), asked), (90, 2, vec![]));
        assert!(!gone.contains(&91) && !gone.contains(&93), "{gone:?}");
        // A use takes one of them to the main queue. The other one waits again, until as many blocks have come as there are frames: then
        // it is to be written.
        core.touch(91);
        assert_eq!((core.lists.len(WAITS), core.lists.len(MAIN)), (1, 1));
        for asked_for in [vec![], vec![], vec![], vec![93], vec![93]] {
            let (gone, asked) = turns(&mut core, &[93]);
            assert_eq!((gone.contains(&93), asked), (false, asked_for));
        }
        // As soon as it may, it leaves. What comes into its frame has not waited.
        let (gone, asked) = turns(&mut core, &[]);
        assert_eq!((gone.contains(&93), asked), (true, vec![93]));
        let (_, asked) = turns(&mut core, &[93]);
        assert!(asked.is_empty());
        core.check().unwrap();
    }
}

#[test]
fn where_nothing_is_clean_what_is_dirty_leaves_and_what_is_held_stays() {
    let knobs = knobs(100);
    let mut core = Queues::new(20, knobs).unwrap();
    (0..20).for_each(|frame| core.insert(frame, frame < 10, false));
    assert_eq!(core.evict(|_, _| FrameState::Pinned), None);
    let state = |frame| match frame % 2 {
        0 => FrameState::Pinned,
        _ => FrameState::Dirty,
    };
    let mut gone: Vec<u32> = (0..10)
        .map(|_| core.evict(|frame, _| state(frame)).unwrap().frame)
        .collect();
    gone.sort_unstable();
    assert!(gone.iter().all(|frame| frame % 2 == 1), "{gone:?}");
    assert_eq!(
        (core.evict(|frame, _| state(frame)), core.len()),
        (None, 10)
    );
    core.check().unwrap();
}

/// A core under the expert by frequency whose frames are full, each with this count.
fn by_frequency(frames: u32, count: u8) -> Queues {
    let knobs = Knobs {
        small: 100,
        ghosts: 900,
        contest: false,
        frequency: true,
    };
    let mut core = Queues::new(frames as usize, knobs).unwrap();
    core.begin_to_count().unwrap();
    for frame in 0..frames {
        core.insert(frame, false, false);
        core.set_count(frame, count);
    }
    core
}

#[test]
fn a_block_that_came_more_often_takes_the_place_of_one_that_came_less() {
    for (count, stays) in [(1, false), (2, false), (3, true)] {
        let mut core = by_frequency(20, 2);
        let mut newcomer = None;
        for at in 0..40 {
            let out = core.evict(|_, _| FrameState::Clean).unwrap();
            core.check().unwrap();
            core.insert(out.frame, false, false);
            core.set_count(out.frame, if at == 5 { count } else { 1 });
            match at {
                5 => newcomer = Some(out.frame),
                _ if newcomer == Some(out.frame) => newcomer = None,
                _ => {}
            }
        }
        assert_eq!(newcomer.is_some(), stays, "{count}");
    }
}

#[test]
fn what_was_used_in_the_probation_is_protected() {
    let mut core = by_frequency(20, 1);
    core.touch(7);
    for _ in 0..12 {
        let out = core.evict(|_, _| FrameState::Clean).unwrap();
        assert_ne!(out.frame, 7);
        core.insert(out.frame, false, false);
        core.set_count(out.frame, 9);
        core.check().unwrap();
    }
}
