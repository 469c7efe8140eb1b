//! What a cache recorded is replayed to the same hits.

#![allow(clippy::unwrap_used)]

mod blocks_common;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use blocks_common::Faulty;
use larder::cache::policy::{Admission, Arrival, FrameState, Frames, Policy, Shadow, Touch};
use larder::cache::policy::{Frame, Reason, Visitor, rules, with_rule};
use larder::cache::{Access, BlockCache, FileId};

/// A cache by definition: the rule, a map, no pages. What the simulator does, with the identities that the cache gave.
struct Plain<P> {
    rule: P,
    slots: Slots,
}

#[derive(Default)]
struct Slots {
    frames: HashMap<u64, Frame>,
    blocks: HashMap<Frame, u64>,
    shadows: HashMap<u64, Shadow>,
    free: Vec<Frame>,
}

impl Frames for Slots {
    fn state(&self, _: Frame) -> FrameState {
        FrameState::Clean
    }

    fn evicted(&mut self, frame: Frame, shadow: Option<Shadow>) {
        let block = self.blocks.remove(&frame).unwrap();
        self.frames.remove(&block);
        if let Some(shadow) = shadow {
            self.shadows.insert(block, shadow);
        }
        self.free.push(frame);
    }
}

impl<P: Policy> Plain<P> {
    fn access(&mut self, access: &Access) -> bool {
        let block = access.block;
        if let Some(&frame) = self.slots.frames.get(&block.0) {
            let request = access.request;
            self.rule.touch(frame, Touch { request });
            return true;
        }
        let shadow = self.slots.shadows.remove(&block.0);
        let admission: Admission = self.rule.miss(block, shadow, Reason::Demand);
        if self.slots.free.is_empty() {
            assert_eq!(self.rule.evict(&mut self.slots, 1), 1);
        }
        let frame = self.slots.free.pop().unwrap();
        self.slots.frames.insert(block.0, frame);
        self.slots.blocks.insert(frame, block.0);
        let arrival = Arrival::demand(block, access.request, admission);
        self.rule.insert(frame, arrival);
        false
    }
}

struct Replayed<'a>(usize, &'a [Access]);

impl Visitor for Replayed<'_> {
    type Out = Vec<bool>;

    fn visit<P: Policy>(self) -> Vec<bool> {
        let mut plain = Plain {
            rule: P::new(self.0).unwrap(),
            slots: Slots::default(),
        };
        plain.slots.free = (0..self.0 as Frame).rev().collect();
        self.1.iter().map(|access| plain.access(access)).collect()
    }
}

#[test]
fn a_recorded_run_is_replayed_hit_for_hit_under_every_rule() {
    for rule in rules() {
        let storage = Faulty::default();
        let frames = 64;
        let cache = BlockCache::builder(storage)
            .bytes(frames * larder::os::page_size())
            .policy(rule.name)
            .read_ahead(0)
            .build()
            .unwrap();
        let log: Arc<Mutex<Vec<Access>>> = Arc::default();
        let into = Arc::clone(&log);
        cache.record(Some(Box::new(move |access| {
            into.lock().unwrap().push(access)
        })));
        let files: Vec<_> = (0..3).map(|id| cache.file(FileId(id)).unwrap()).collect();
        let mut handle = cache.handle();
        let mut word = 7_u64;
        for _ in 0..5000 {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let number = word >> 33;
            // no more blocks than shadows are kept of
            let index = if number.is_multiple_of(3) {
                number / 3 % 20
            } else {
                number / 3 % 60
            };
            let file = &files[(number % 7 % 3) as usize];
            handle.request(|handle| {
                handle.read(file, index).unwrap();
                if number.is_multiple_of(5) {
                    handle.read(file, index).unwrap();
                }
            });
        }
        drop(handle);
        let log = log.lock().unwrap();
        let recorded: Vec<bool> = log.iter().map(|access| access.hit).collect();
        let replayed = with_rule(rule.name, Replayed(frames, &log)).unwrap();
        assert!(recorded.iter().any(|&hit| hit) && recorded.iter().any(|&hit| !hit));
        let differ = recorded
            .iter()
            .zip(&replayed)
            .position(|(one, two)| one != two);
        assert_eq!(differ, None, "{}: of {} uses", rule.name, log.len());
        let hits = recorded.iter().filter(|&&hit| hit).count() as u64;
        assert_eq!(cache.stats().hits, hits);
    }
}
