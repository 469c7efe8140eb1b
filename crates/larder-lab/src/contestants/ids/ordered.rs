//! Ordered sets of free identifiers as sources, by two rules; the standard library's is one.

use std::collections::BTreeSet;

use super::{IdSource, Start};

/// A set of free identifiers that finds its lowest member, and the next one.
pub trait FreeSet: Sized {
    /// What it is, for a list of contestants.
    const ABOUT: &'static str;

    /// The free identifiers of a start.
    ///
    /// # Errors
    /// What it cannot hold.
    fn of(start: &Start) -> anyhow::Result<Self>;

    /// The lowest member.
    fn lowest(&self) -> Option<u32>;

    /// The lowest member that is not below `from`.
    fn at_or_after(&self, from: u32) -> Option<u32>;

    /// Adds a member; `false` when it is one.
    fn add(&mut self, id: u32) -> bool;

    /// Removes a member.
    fn take(&mut self, id: u32);

    /// Removes the lowest member.
    #[inline]
    fn take_lowest(&mut self) -> Option<u32> {
        let id = self.lowest()?;
        self.take(id);
        Some(id)
    }
}

/// The lowest member is next, or with `CYCLIC` the next one after the last.
#[derive(Debug)]
pub struct Ordered<S, const CYCLIC: bool> {
    free: S,
    next: u32,
}

impl<S: FreeSet, const CYCLIC: bool> IdSource for Ordered<S, CYCLIC> {
    const ABOUT: &'static str = S::ABOUT;

    fn start(start: &Start) -> anyhow::Result<Self> {
        let free = S::of(start)?;
        Ok(Self { free, next: 0 })
    }

    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        if !CYCLIC {
            return self.free.take_lowest().map(u64::from);
        }
        let id = match self.free.at_or_after(self.next) {
            Some(id) => id,
            None => self.free.lowest()?,
        };
        self.free.take(id);
        self.next = id.wrapping_add(1);
        Some(u64::from(id))
    }

    #[inline]
    fn free(&mut self, id: u64) -> bool {
        self.free.add(id as u32)
    }
}

/// The standard library's ordered set.
pub type OrderedSet<const CYCLIC: bool> = Ordered<BTreeSet<u32>, CYCLIC>;

impl FreeSet for BTreeSet<u32> {
    const ABOUT: &'static str =
        "the standard library's BTreeSet of free identifiers, by the rule of the group";

    fn of(start: &Start) -> anyhow::Result<Self> {
        Ok(start.free_ids().collect())
    }

    #[inline]
    fn lowest(&self) -> Option<u32> {
        self.first().copied()
    }

    #[inline]
    fn at_or_after(&self, from: u32) -> Option<u32> {
        self.range(from..).next().copied()
    }

    #[inline]
    fn add(&mut self, id: u32) -> bool {
        self.insert(id)
    }

    #[inline]
    fn take(&mut self, id: u32) {
        self.remove(&id);
    }

    #[inline]
    fn take_lowest(&mut self) -> Option<u32> {
        self.pop_first()
    }
}
