//! The rule of one cache, and the uses that it need not see.

use larder_policy::{Policy, Touch};

use crate::frames::Slot;

/// Touches since the rule last changed otherwise, after which it is asked at each whether the frame is settled. A cache that misses
/// often would pay for the question, and use no answer.
const QUIET: u32 = 512;

pub(crate) struct Rule<P> {
    /// None: the pages may not leave, or there was none yet.
    rule: Option<P>,
    /// Counts uses that the rule sees.
    request: u32,
    /// Of these, those since something other than a touch changed the rule.
    touches: u32,
    /// A frame is settled while its slot has this number: further touches of it change nothing.
    epoch: u64,
    /// Some may be.
    any_settled: bool,
}

impl<P: Policy> Rule<P> {
    pub(crate) fn none() -> Self {
        Self {
            rule: None,
            request: 0,
            touches: 0,
            epoch: Slot::UNSETTLED + 1,
            any_settled: false,
        }
    }

    pub(crate) fn set(&mut self, rule: Option<P>) {
        self.rule = rule;
        self.change();
    }

    pub(crate) fn get(&self) -> Option<&P> {
        self.rule.as_ref()
    }

    /// For all but touches.
    pub(crate) fn change(&mut self) -> Option<&mut P> {
        self.touches = 0;
        self.unsettle();
        self.rule.as_mut()
    }

    fn unsettle(&mut self) {
        self.epoch += 1;
        self.any_settled = false;
    }

    /// The number of a use.
    pub(crate) fn request(&mut self) -> u32 {
        self.request = self.request.wrapping_add(1);
        self.request
    }

    /// Would a [`touch`](Self::touch) change nothing?
    #[inline]
    pub(crate) fn is_settled(&self, slot: &Slot) -> bool {
        slot.settled == self.epoch
    }

    #[inline]
    pub(crate) fn touch(&mut self, slot: &mut Slot) {
        let request = self.request();
        let Some(rule) = &mut self.rule else {
            slot.settled = self.epoch;
            return;
        };
        rule.touch(slot.frame(), Touch { request });
        self.touches = self.touches.saturating_add(1);
        if self.touches > QUIET {
            let settled = rule.settled(slot.frame());
            if (settled || self.any_settled) && rule.unsettled() {
                self.unsettle();
            }
            if settled {
                slot.settled = self.epoch;
                self.any_settled = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use core::ptr;

    use larder_policy::{
        Arrival, Block, Frame, FrameState, Frames, PolicyError, Reason, Shadow, Shadows, Visitor,
        rules, with_rule,
    };

    use super::*;
    use crate::ffi::Page;
    use crate::tests::model::Dice;

    const FRAMES: usize = 300;
    const BLOCKS: u64 = 400;

    #[derive(Default)]
    struct Gone(Vec<(Frame, Option<Shadow>)>);

    impl Frames for Gone {
        fn state(&self, _: Frame) -> FrameState {
            FrameState::Clean
        }

        fn evicted(&mut self, frame: Frame, shadow: Option<Shadow>) {
            self.0.push((frame, shadow));
        }
    }

    fn arrive(
        rule: &mut impl Policy,
        shadows: &mut Shadows,
        (frame, block): (Frame, Block),
        request: u32,
    ) {
        let shadow = shadows.take(block, rule);
        let admission = rule.miss(block, shadow, Reason::Demand);
        rule.insert(frame, Arrival::demand(block, request, admission));
    }

    /// The frame that leaves.
    fn evict(rule: &mut impl Policy, shadows: &mut Shadows, blocks: &[u64]) -> Frame {
        let mut gone = Gone::default();
        assert_eq!(rule.evict(&mut gone, 1), 1);
        let (frame, shadow) = gone.0[0];
        if let Some(shadow) = shadow {
            shadows.put(Block(blocks[frame as usize]), shadow, rule);
        }
        frame
    }

    fn slot(frame: Frame) -> Slot {
        let page = Page {
            buf: ptr::null_mut(),
            extra: ptr::null_mut(),
        };
        Slot {
            page,
            next: ptr::null_mut(),
            key: 0,
            word: frame,
            settled: Slot::UNSETTLED,
        }
    }

    /// Two of a rule, of which one sees each use, with what their evictions leave.
    struct Twins<P>(P);

    impl<Q: Policy> Visitor for Twins<Q> {
        type Out = usize;

        fn visit<P: Policy>(mut self, name: &'static str, twin: P) -> usize {
            let (all, mut some) = (&mut self.0, Rule::none());
            some.set(Some(twin));
            let [mut of_all, mut of_some] = [0; 2].map(|_| Shadows::new(FRAMES));
            let mut slots: Vec<Slot> = (0..FRAMES as Frame).map(slot).collect();
            let mut blocks: Vec<u64> = (0..FRAMES as u64).collect();
            let mut request = 0;
            for at in 0..FRAMES as Frame {
                request += 1;
                let arrival = (at, Block(at.into()));
                arrive(all, &mut of_all, arrival, request);
                let request = some.request();
                arrive(some.change().unwrap(), &mut of_some, arrival, request);
            }
            let (mut dice, mut spared, mut next) = (Dice(3), 0, 0);
            for round in 0..1500 {
                // Few uses between two misses, or many.
                for _ in 0..dice.below(if round % 8 == 0 { 6000 } else { 30 }) {
                    let frame = dice.below(FRAMES as u32).min(dice.below(FRAMES as u32));
                    request += 1;
                    all.touch(frame, Touch { request });
                    let slot = &mut slots[frame as usize];
                    match some.is_settled(slot) {
                        true => spared += 1,
                        false => some.touch(slot),
                    }
                }
                let frame = evict(all, &mut of_all, &blocks);
                let twin = evict(some.change().unwrap(), &mut of_some, &blocks);
                assert_eq!(frame, twin, "{name}, eviction {round}");
                // In turns a loop of more blocks than there are frames, and any of them, so that rules which learn change.
                while blocks.contains(&next) {
                    next = match round / 300 % 2 {
                        0 => (next + 1) % BLOCKS,
                        _ => dice.below(BLOCKS as u32).into(),
                    };
                }
                blocks[frame as usize] = next;
                request += 1;
                arrive(all, &mut of_all, (frame, Block(next)), request);
                let request = some.request();
                arrive(
                    some.change().unwrap(),
                    &mut of_some,
                    (frame, Block(next)),
                    request,
                );
            }
            assert_eq!(Some(all.explain()), some.get().map(P::explain), "{name}");
            spared
        }
    }

    struct Pair;

    impl Visitor for Pair {
        type Out = usize;

        fn visit<P: Policy>(self, name: &'static str, rule: P) -> usize {
            with_rule(name, FRAMES, Twins(rule)).unwrap()
        }
    }

    #[test]
    fn a_rule_chooses_the_same_pages_without_the_uses_that_change_nothing() {
        for rule in rules() {
            let spared = with_rule(rule.name, FRAMES, Pair).unwrap();
            if ["adaptive", "clock", "fifo", "sieve"].contains(&rule.name) {
                assert!(spared > 10_000, "{}: {spared}", rule.name);
            }
        }
    }

    /// Counts two uses of each frame, and at a use of frame 0 forgets those of the others.
    struct Waking {
        uses: Vec<u32>,
        woken: bool,
    }

    impl Policy for Waking {
        fn capacity(&self) -> usize {
            self.uses.len()
        }

        fn len(&self) -> usize {
            self.uses.len()
        }

        fn insert(&mut self, _: Frame, _: Arrival) {}

        fn touch(&mut self, frame: Frame, _: Touch) {
            if frame == 0 {
                self.uses.fill(0);
                self.woken = true;
            }
            self.uses[frame as usize] = 2.min(self.uses[frame as usize] + 1);
        }

        fn settled(&self, frame: Frame) -> bool {
            frame != 0 && self.uses[frame as usize] == 2
        }

        fn unsettled(&mut self) -> bool {
            core::mem::take(&mut self.woken)
        }

        fn evict<F: Frames>(&mut self, _: &mut F, _: usize) -> usize {
            0
        }

        fn remove(&mut self, _: Frame) {}

        fn resize(&mut self, _: usize) -> Result<(), PolicyError> {
            Ok(())
        }

        fn check(&self) -> Result<(), String> {
            Ok(())
        }

        fn bytes(&self) -> usize {
            0
        }
    }

    #[test]
    fn a_use_may_unsettle_other_frames() {
        let new = || Waking {
            uses: vec![0; 40],
            woken: false,
        };
        let (mut all, mut some) = (new(), Rule::none());
        some.set(Some(new()));
        let mut slots: Vec<Slot> = (0..40).map(slot).collect();
        let (mut dice, mut spared) = (Dice(1), 0);
        for _ in 0..100_000 {
            let frame = dice.below(40).max(dice.below(40));
            all.touch(frame, Touch { request: 0 });
            let slot = &mut slots[frame as usize];
            match some.is_settled(slot) {
                true => spared += 1,
                false => some.touch(slot),
            }
            assert_eq!(Some(&all.uses), some.get().map(|rule| &rule.uses));
        }
        assert!(spared > 50_000, "{spared}");
    }
}
