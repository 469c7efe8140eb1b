//! What a cache recorded is replayed to the same hits.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use crate::common::Faulty;
use larder_cache::{Access, AccessKind, BlockCache, FileId, MemoryStorage};
use larder_policy::replay::Replay;
use larder_policy::{Admission, Arrival, FrameState, Frames, Policy, Shadow, Touch};
use larder_policy::{Frame, Lru, Reason, Visitor, rules, with_rule};

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
    /// Blocks that come together with those ahead of them: none of them leaves for another.
    coming: HashSet<Frame>,
}

impl Frames for Slots {
    fn state(&self, frame: Frame) -> FrameState {
        match self.coming.contains(&frame) {
            true => FrameState::Pinned,
            false => FrameState::Clean,
        }
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
    /// Whether a use found its block; `None` of what is no use.
    fn access(&mut self, access: &Access) -> Option<bool> {
        let block = access.block.0;
        let here = self.slots.frames.get(&block).copied();
        let reason = match access.kind {
            AccessKind::Remove => {
                if let Some(frame) = here {
                    self.slots.frames.remove(&block);
                    self.slots.blocks.remove(&frame);
                    self.slots.free.push(frame);
                    self.rule.remove(frame);
                }
                return None;
            }
            AccessKind::Readahead => Reason::Readahead,
            AccessKind::Read => Reason::Demand,
            AccessKind::Write => Reason::Write,
            // Nothing is written here, and no time passes.
            _ => return None,
        };
        if reason != Reason::Readahead {
            self.slots.coming.clear();
            if let Some(frame) = here {
                let request = access.request;
                self.rule.touch(frame, Touch { request });
                return Some(true);
            }
        }
        self.fetch(access, reason);
        (reason != Reason::Readahead).then_some(false)
    }

    fn fetch(&mut self, access: &Access, reason: Reason) {
        let block = access.block;
        let shadow = self.slots.shadows.remove(&block.0);
        let admission: Admission = self.rule.miss(block, shadow, reason);
        if self.slots.free.is_empty() && self.rule.evict(&mut self.slots, 1) == 0 {
            return;
        }
        let frame = self.slots.free.pop().unwrap();
        self.slots.frames.insert(block.0, frame);
        self.slots.blocks.insert(frame, block.0);
        self.slots.coming.insert(frame);
        let arrival = Arrival {
            reason,
            ..Arrival::demand(block, access.request, admission)
        };
        self.rule.insert(frame, arrival);
    }
}

struct Replayed<'a>(&'a [Access]);

impl Visitor for Replayed<'_> {
    type Out = Vec<Option<bool>>;

    fn visit<P: Policy>(self, _: &'static str, rule: P) -> Self::Out {
        let free = (0..rule.capacity() as Frame).rev().collect();
        let slots = Slots {
            free,
            ..Slots::default()
        };
        let mut plain = Plain { rule, slots };
        self.0.iter().map(|access| plain.access(access)).collect()
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
        let recorded = hits(&log);
        let replayed = with_rule(rule.name, frames, Replayed(&log)).unwrap();
        assert!(recorded.contains(&Some(true)) && recorded.contains(&Some(false)));
        let differ = recorded
            .iter()
            .zip(&replayed)
            .position(|(one, two)| one != two);
        assert_eq!(differ, None, "{}: of {} uses", rule.name, log.len());
        let hits = recorded.iter().filter(|&&hit| hit == Some(true)).count() as u64;
        assert_eq!(cache.stats().hits, hits);
    }
}

/// Of each use whether it was a hit; `None` of what is no use.
fn hits(log: &[Access]) -> Vec<Option<bool>> {
    let use_of = |access: &Access| match access.kind {
        AccessKind::Read | AccessKind::Write => Some(access.hit),
        _ => None,
    };
    log.iter().map(use_of).collect()
}

/// Readers from front to end, blocks that are given up, reads that fail.
#[test]
fn what_is_read_ahead_and_what_is_removed_is_recorded_too() {
    for rule in rules() {
        let storage = Faulty::default();
        let frames = 64;
        let cache = BlockCache::builder(storage.clone())
            .bytes(frames * larder::os::page_size())
            .policy(rule.name)
            .read_ahead(8)
            .build()
            .unwrap();
        let log: Arc<Mutex<Vec<Access>>> = Arc::default();
        let into = Arc::clone(&log);
        cache.record(Some(Box::new(move |access| {
            into.lock().unwrap().push(access)
        })));
        let files: Vec<_> = (0..2).map(|id| cache.file(FileId(id)).unwrap()).collect();
        let mut handle = cache.handle();
        let mut word = 11_u64;
        for _ in 0..400 {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let number = word >> 33;
            let (file, start) = (&files[(number % 2) as usize], number / 8 % 80);
            match number / 2 % 4 {
                0 => (start..start + 12).for_each(|index| drop(handle.read(file, index).unwrap())),
                1 => {
                    // what it has used must be reported before it is gone
                    handle.report();
                    file.invalidate(start..start + 5).unwrap();
                }
                2 => {
                    Faulty::say(&storage.0.fail_reads, true);
                    drop(handle.read(file, start));
                    drop(handle.read(file, start + 1));
                    Faulty::say(&storage.0.fail_reads, false);
                }
                _ => drop(handle.read(file, number / 16 % 20).unwrap()),
            }
        }
        drop(handle);
        let log = log.lock().unwrap();
        let count = |kind| log.iter().filter(|access| access.kind == kind).count() as u64;
        assert_eq!(count(AccessKind::Readahead), cache.stats().read_ahead);
        assert!(count(AccessKind::Remove) > 100 && cache.stats().read_ahead > 100);
        let replayed = with_rule(rule.name, frames, Replayed(&log)).unwrap();
        let recorded = hits(&log);
        let differ = recorded
            .iter()
            .zip(&replayed)
            .position(|(one, two)| one != two);
        assert_eq!(differ, None, "{}: of {} events", rule.name, log.len());
        let hits = recorded.iter().filter(|&&hit| hit == Some(true)).count() as u64;
        assert_eq!(cache.stats().hits, hits);
    }
}

/// What it uses is another cache's, and what it owns is dropped when the lock of its own cache is not held.
#[test]
fn a_recorder_may_use_another_cache_and_own_what_it_likes() {
    let make = || {
        let cache = BlockCache::builder(MemoryStorage::default())
            .build()
            .unwrap();
        let file = cache.file(FileId(1)).unwrap();
        (cache, file)
    };
    let ((cache, file), (log, entries)) = (make(), make());
    let (writes, own) = (log.clone(), file.clone());
    cache.record(Some(Box::new(move |access| {
        let _ = &own;
        writes.handle().write(&entries, access.index).unwrap()[0] += 1;
    })));
    cache.handle().read(&file, 7).unwrap();
    cache.record(None);
    let entries = log.file(FileId(1)).unwrap();
    assert_eq!(log.handle().read(&entries, 7).unwrap()[0], 1);
}

/// A block that a thread holds stays when it is its turn. The record says so before the miss, and of no block but that one.
#[test]
fn a_block_that_is_held_in_its_turn_is_recorded() {
    let cache = BlockCache::builder(MemoryStorage::default())
        .bytes(8 * larder::os::page_size())
        .policy("lru")
        .read_ahead(0)
        .build()
        .unwrap();
    let log: Arc<Mutex<Vec<Access>>> = Arc::default();
    let into = Arc::clone(&log);
    cache.record(Some(Box::new(move |access| {
        into.lock().unwrap().push(access)
    })));
    let file = cache.file(FileId(1)).unwrap();
    let mut handle = cache.handle();
    (0..8).for_each(|index| drop(handle.read(&file, index).unwrap()));
    let mut other = cache.handle();
    let held = other.read(&file, 0).unwrap();
    // Its use is not reported yet, so it is still the oldest.
    drop(handle.read(&file, 8).unwrap());
    drop(held);
    drop(other);
    drop(handle.read(&file, 1).unwrap());
    let log = log.lock().unwrap();
    let told: Vec<_> = log[8..]
        .iter()
        .map(|one| (one.index, one.kind, one.hit))
        .collect();
    assert_eq!(
        told,
        [
            (0, AccessKind::Held, false),
            (8, AccessKind::Read, false),
            (0, AccessKind::Read, true),
            (1, AccessKind::Read, false),
        ]
    );
    let mut replay = Replay::new(Lru::new(8).unwrap()).unwrap();
    for access in log.iter() {
        let block = access.index as u32;
        match access.kind {
            AccessKind::Held => replay.hold(block),
            _ => assert_eq!(replay.access(block, access.request), access.hit, "{block}"),
        }
    }
}
