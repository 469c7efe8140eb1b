//! What the tests of shared identifiers share.

// Every test binary uses its own part of it.
#![allow(dead_code, unused_macros, unused_imports)]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU8, Ordering};

use larder::ids::rule::{Cyclic, Epochs, Fifo, Lifo, Lowest, Random};
use larder::ids::{IdError, IdSpace, Rule};
use larder::os::rseq::Mode;

pub(crate) fn space<R: Rule<Order: Send>>(rule: R, first: u64, len: u64, mode: Mode) -> IdSpace<R> {
    IdSpace::builder(first..first + len, rule)
        .mode(mode)
        .build()
        .unwrap()
}

/// Runs a test for every rule in every mode.
macro_rules! for_all {
    ($test:ident($($arg:expr),*)) => {
        for mode in modes() {
            $test(Lowest, mode, $($arg),*);
            $test(Cyclic, mode, $($arg),*);
            $test(Fifo, mode, $($arg),*);
            $test(Lifo, mode, $($arg),*);
            $test(larder::ids::rule::Any, mode, $($arg),*);
            $test(Epochs::<2>, mode, $($arg),*);
            $test(Random::new([7; 32]), mode, $($arg),*);
        }
    };
}
pub(crate) use for_all;

/// The holder of each identifier; 0 is none.
pub(crate) struct Owners {
    first: u64,
    table: Vec<AtomicU8>,
}

impl Owners {
    pub(crate) fn new(first: u64, len: u64) -> Self {
        Self {
            first,
            table: (0..len).map(|_| AtomicU8::new(0)).collect(),
        }
    }

    pub(crate) fn take(&self, id: u64, me: u8) {
        let before = self.table[(id - self.first) as usize].swap(me, Ordering::Relaxed);
        assert_eq!(
            before, 0,
            "identifier {id} has two owners: {before} and {me}"
        );
    }

    pub(crate) fn put(&self, id: u64, me: u8) {
        let before = self.table[(id - self.first) as usize].swap(0, Ordering::Relaxed);
        assert_eq!(before, me, "identifier {id} changed its owner");
    }
}

/// Takes everything, which is exactly `len`, and puts it back.
pub(crate) fn assert_holds<R: Rule<Order: Send>>(space: &IdSpace<R>, len: u64) {
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
