//! Identifiers between threads: no two owners, nothing lost, 'full' only when it is true.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Instant;

use common::*;
use larder::ids::rule::{Cyclic, Lowest, Order};
use larder::ids::{IdError, IdSpace, Rule, Shape, SharedRule, SpaceConfig};
use larder::os::rseq::Mode;

/// The last freed is the next: a stack over a set, to stand under magazines without the library's own rules.
#[derive(Debug, Clone)]
struct Heap;

#[derive(Debug)]
struct HeapOrder {
    last: u64,
    taken: BTreeSet<u64>,
    freed: Vec<u64>,
    fresh: u64,
}

impl Rule for Heap {
    type Order = HeapOrder;
    fn order(&self, last: u64) -> Result<HeapOrder, IdError> {
        Ok(HeapOrder {
            last,
            taken: BTreeSet::new(),
            freed: Vec::new(),
            fresh: 0,
        })
    }
}

impl SharedRule for Heap {
    const SHAPE: Shape = Shape::Near;
}

impl Order for HeapOrder {
    fn take(&mut self) -> Result<Option<u64>, IdError> {
        while let Some(at) = self.freed.pop() {
            if self.taken.insert(at) {
                return Ok(Some(at));
            }
        }
        while self.fresh <= self.last {
            self.fresh += 1;
            if self.taken.insert(self.fresh - 1) {
                return Ok(Some(self.fresh - 1));
            }
        }
        Ok(None)
    }
    fn take_at(&mut self, at: u64) -> Result<bool, IdError> {
        Ok(self.taken.insert(at))
    }
    fn take_run(&mut self, count: u64, align: u64, phase: u64) -> Result<Option<u64>, IdError> {
        let first = (phase..=self.last).step_by(align as usize).find(|&first| {
            first + (count - 1) <= self.last
                && self.taken.range(first..first + count).next().is_none()
        });
        if let Some(first) = first {
            self.taken.extend(first..first + count);
        }
        Ok(first)
    }
    fn take_all(&mut self, first: u64, last: u64) -> Result<Result<(), u64>, IdError> {
        if let Some(&at) = self.taken.range(first..=last).next() {
            return Ok(Err(at));
        }
        self.taken.extend(first..=last);
        Ok(Ok(()))
    }
    fn give(&mut self, at: u64) -> Result<bool, IdError> {
        let known = self.taken.remove(&at);
        if known {
            self.freed.push(at);
        }
        Ok(known)
    }
    fn is_taken(&self, at: u64) -> bool {
        self.taken.contains(&at)
    }
    fn next_taken(&self, from: u64) -> Option<u64> {
        self.taken.range(from..).next().copied()
    }
    fn next_free(&self, from: u64) -> Option<u64> {
        (from..=self.last).find(|at| !self.taken.contains(at))
    }
    fn taken(&self) -> u64 {
        self.taken.len() as u64
    }
    fn bytes(&self) -> usize {
        self.taken.len() * 16 + self.freed.len() * 8
    }
}

fn space<R: SharedRule>(rule: R, first: u64, len: u64, mode: Mode) -> IdSpace<R> {
    let config = SpaceConfig {
        mode: Some(mode),
        ..SpaceConfig::default()
    };
    IdSpace::with_config(first..first + len, rule, config).unwrap()
}

/// Runs a test for every shape of rule in every mode.
macro_rules! for_all {
    ($test:ident($($arg:expr),*)) => {
        for mode in modes() {
            $test(Lowest, mode, $($arg),*);
            $test(Cyclic, mode, $($arg),*);
            $test(Heap, mode, $($arg),*);
        }
    };
}

/// Who holds each identifier; 0 is nobody.
struct Owners {
    first: u64,
    table: Vec<AtomicU8>,
}

impl Owners {
    fn new(first: u64, len: u64) -> Self {
        Self {
            first,
            table: (0..len).map(|_| AtomicU8::new(0)).collect(),
        }
    }

    fn take(&self, id: u64, me: u8) {
        let before = self.table[(id - self.first) as usize].swap(me, Ordering::Relaxed);
        assert_eq!(
            before, 0,
            "identifier {id} has two owners: {before} and {me}"
        );
    }

    fn put(&self, id: u64, me: u8) {
        let before = self.table[(id - self.first) as usize].swap(0, Ordering::Relaxed);
        assert_eq!(before, me, "identifier {id} changed its owner");
    }
}

/// Takes everything, which is exactly `len`, and puts it back.
fn assert_holds<R: SharedRule>(space: &IdSpace<R>, len: u64) {
    let mut seen = BTreeSet::new();
    let error = loop {
        match space.alloc() {
            Ok(id) => assert!(seen.insert(id), "{id} twice"),
            Err(error) => break error,
        }
    };
    assert_eq!(error, IdError::Full { allocated: len });
    assert_eq!(seen.len() as u64, len, "some are missing");
    assert_eq!(space.allocated(), len);
    for id in seen {
        space.free(id).unwrap();
    }
    assert_eq!(space.allocated(), 0);
}

fn stress_owners<R: SharedRule + Sync>(rule: R, mode: Mode, len: u64, threads: u8, seconds: f64)
where
    R::Order: Send,
{
    let ids = space(rule, 1000, len, mode);
    let owners = Owners::new(1000, len);
    let end = Instant::now() + stress(mode, seconds);
    let full = AtomicUsize::new(0);
    std::thread::scope(|s| {
        for me in 1..=threads {
            let (ids, owners, full) = (&ids, &owners, &full);
            s.spawn(move || {
                let mut rng = Rng(u64::from(me));
                let mut held = Vec::new();
                // Together a bit more than there are.
                let most = len as usize / usize::from(threads) + 8;
                while Instant::now() < end {
                    for _ in 0..200 {
                        if held.len() < most && rng.below(2) == 0 {
                            match ids.alloc() {
                                Ok(id) => {
                                    owners.take(id, me);
                                    held.push(id);
                                }
                                Err(IdError::Full { .. }) => {
                                    full.fetch_add(1, Ordering::Relaxed);
                                }
                                Err(error) => panic!("{error}"),
                            }
                        } else if !held.is_empty() {
                            let id = held.swap_remove(rng.below(held.len()));
                            owners.put(id, me);
                            ids.free(id).unwrap();
                        }
                    }
                    // Now and then everything goes, or a way not so common.
                    match rng.below(20) {
                        0 => {
                            for &id in &held {
                                owners.put(id, me);
                            }
                            ids.free_many(&held).unwrap();
                            held.clear();
                        }
                        1 => {
                            let mut out = [0; 40];
                            let n = ids.alloc_many(&mut out).unwrap_or(0);
                            for &id in &out[..n] {
                                owners.take(id, me);
                                held.push(id);
                            }
                        }
                        2 => {
                            let id = 1000 + rng.below(len as usize) as u64;
                            match ids.alloc_at(id) {
                                Ok(()) => {
                                    owners.take(id, me);
                                    held.push(id);
                                }
                                Err(error) => assert_eq!(error, IdError::Taken { id }),
                            }
                        }
                        3 => {
                            if let Ok(first) = ids.alloc_range(3, 2) {
                                assert_eq!(first % 2, 0);
                                for id in first..first + 3 {
                                    owners.take(id, me);
                                    held.push(id);
                                }
                            }
                        }
                        4 => {
                            while held.len() < most
                                && let Ok(id) = ids.alloc()
                            {
                                owners.take(id, me);
                                held.push(id);
                            }
                        }
                        _ => {}
                    }
                }
                for id in held {
                    owners.put(id, me);
                    ids.free(id).unwrap();
                }
            });
        }
    });
    println!("{ids:?}, full {} times", full.into_inner());
    assert_holds(&ids, len);
}

#[test]
fn no_identifier_has_two_owners() {
    for_all!(stress_owners(1000, 4, 0.5));
}

#[test]
fn no_identifier_has_two_owners_where_there_are_few() {
    for_all!(stress_owners(70, 3, 0.5));
    for_all!(stress_owners(40, 3, 0.2));
}
