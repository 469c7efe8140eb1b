//! Identifiers for the layers to stand on: a rule that is too simple to be wrong, and a space that fails on command.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use larder::ids::rule::Order;
use larder::ids::{Allocate, IdError, IdRange, IdSpace, Ids, Rule};

/// Lowest first, by a set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plain;

#[derive(Debug)]
pub(crate) struct PlainOrder {
    taken: BTreeSet<u64>,
    last: u64,
}

impl Rule for Plain {
    type Order = PlainOrder;

    fn order(&self, last: u64) -> Result<PlainOrder, IdError> {
        Ok(PlainOrder {
            taken: BTreeSet::new(),
            last,
        })
    }
}

impl Order for PlainOrder {
    fn take(&mut self) -> Result<Option<u64>, IdError> {
        let mut at = 0;
        for &taken in &self.taken {
            if taken != at {
                break;
            }
            at += 1;
        }
        if at > self.last {
            return Ok(None);
        }
        self.taken.insert(at);
        Ok(Some(at))
    }

    fn take_span(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        self.taken.extend(first..=last);
        Ok(())
    }

    fn give(&mut self, at: u64) -> Result<bool, IdError> {
        Ok(self.taken.remove(&at))
    }

    fn is_taken(&self, at: u64) -> bool {
        self.taken.contains(&at)
    }

    fn last(&self) -> u64 {
        self.last
    }

    fn first_taken(&self, first: u64, last: u64) -> Option<u64> {
        self.taken.range(first..=last).next().copied()
    }

    fn next_free(&self, from: u64) -> Option<u64> {
        (from..=self.last).find(|at| !self.taken.contains(at))
    }

    fn taken(&self) -> u64 {
        self.taken.len() as u64
    }

    fn bytes(&self) -> usize {
        0
    }
}

pub(crate) type Owned = RefCell<Ids<Plain>>;
pub(crate) type Shared = IdSpace<Plain>;

pub(crate) fn owned(first: u64, last: u64) -> Owned {
    RefCell::new(Ids::new(first..=last, Plain).unwrap())
}

pub(crate) fn shared(first: u64, last: u64) -> Shared {
    IdSpace::new(first..=last, Plain).unwrap()
}

/// Identifiers that refuse the n-th call that could change them, and all later calls until the test resets the number.
pub(crate) struct Failing {
    pub(crate) ids: Owned,
    pub(crate) calls_left: Cell<u64>,
}

impl Failing {
    pub(crate) fn new(first: u64, last: u64) -> Self {
        Self {
            ids: owned(first, last),
            calls_left: Cell::new(u64::MAX),
        }
    }

    fn call(&self) -> Result<(), IdError> {
        let left = self.calls_left.get().checked_sub(1);
        left.map(|left| self.calls_left.set(left))
            .ok_or(IdError::OutOfMemory)
    }
}

impl Allocate for Failing {
    type Id = u64;

    fn alloc(&self) -> Result<u64, IdError> {
        self.call()?;
        self.ids.alloc()
    }

    fn alloc_at(&self, id: u64) -> Result<(), IdError> {
        self.call()?;
        self.ids.alloc_at(id)
    }

    fn free(&self, id: u64) -> Result<(), IdError> {
        self.call()?;
        self.ids.free(id)
    }

    fn is_allocated(&self, id: u64) -> bool {
        self.ids.is_allocated(id)
    }

    fn next_allocated(&self, from: u64) -> Option<u64> {
        self.ids.next_allocated(from)
    }

    fn range(&self) -> IdRange {
        self.ids.range()
    }

    fn allocated(&self) -> u64 {
        self.ids.allocated()
    }
}
