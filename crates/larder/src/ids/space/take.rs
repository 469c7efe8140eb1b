//! The slow ways to an identifier: refill the magazines, collect what lies about, go to the map.

use std::cell::Cell;
use std::time::Duration;

use super::IdSpace;
use super::front::Front;
use super::ledger::{Crossed, Ledger};
use super::sync::{BATCH, Guard, thread};
use crate::ids::rule::{Order, Rule};
use crate::ids::{Id, IdError};
use crate::magazine::Supply;
use crate::os::lock::order::sleeps;
use crate::os::rseq::mode;

/// Looks at what another thread is about to put right, before sleeping between them.
const SPINS: u32 = 100;
/// Time between looks after that.
const NAP: Duration = Duration::from_micros(50);
/// Looks after which a child of a fork takes what is still on its way for lost with its parent's threads.
const PATIENCE: u32 = 1000;

/// Why there is no identifier.
pub(super) enum Refusal {
    /// The space has gone over to or from the map meanwhile.
    Again,
    /// The map has too few.
    Scarce,
    /// The caller must know.
    Failed(IdError),
}

impl From<IdError> for Refusal {
    fn from(error: IdError) -> Self {
        Self::Failed(error)
    }
}

/// The map as what magazines are refilled from, and where they send what they give up.
pub(super) struct FromMap<'a, R: Rule<Order: Send>, T: Id> {
    space: &'a IdSpace<R, T>,
    /// Reported by [`IdSpace::refill`] when nothing is in hand: the function of a mark may use the space until nothing is
    /// left.
    crossed: Cell<Option<Crossed>>,
}

impl<'a, R: Rule<Order: Send>, T: Id> FromMap<'a, R, T> {
    pub(super) fn new(space: &'a IdSpace<R, T>) -> Self {
        Self {
            space,
            crossed: Cell::new(None),
        }
    }
}

impl<R: Rule<Order: Send>, T: Id> Supply for FromMap<'_, R, T> {
    type Error = Refusal;

    /// Takes a batch from the map, last first, since the last one of a magazine is the first one taken.
    fn fetch(&self, rounds: &mut [usize]) -> Result<usize, Refusal> {
        let space = self.space;
        let Some(front) = space.front.get() else {
            return Err(Refusal::Again);
        };
        let mut batch = [0_u64; BATCH];
        let most = rounds.len().min(BATCH);
        let mut ledger = space.lock();
        if ledger.direct {
            return Err(Refusal::Again);
        }
        let mut size = front.batch(ledger.free());
        if size < most && front.in_order() {
            // What this CPU has freed would make the batch larger, and it must go to the map in any case.
            space.flush_returns(front, &mut ledger);
            size = front.batch(ledger.free());
        }
        if size == 0 && !front.in_place() {
            self.crossed.set(space.end(ledger));
            return Err(Refusal::Scarce);
        }
        let taken;
        if front.in_place() {
            (ledger, taken) = space.sweep_apart(front, ledger, &mut batch[..most]);
        } else {
            taken = ledger.order.take_many(&mut batch[..size.min(most)]);
        }
        let n = match taken {
            Ok(n) if n > 0 => n,
            Ok(_) => return Err(Refusal::Scarce),
            Err(IdError::Resting { .. }) => {
                ledger.resting = true;
                return Err(Refusal::Scarce);
            }
            Err(error) => return Err(error.into()),
        };
        ledger.resting = false;
        for (round, &at) in rounds[..n].iter_mut().rev().zip(&batch) {
            front.states.touch(at);
            *round = at as usize;
        }
        ledger.counts.claims += 1;
        self.crossed.set(space.end(ledger));
        Ok(n)
    }

    /// The space itself decides when to look at the magazines of other CPUs.
    fn is_final(_: &Refusal) -> bool {
        true
    }

    fn accept(&self, rounds: &[usize]) {
        let mut ledger = self.space.lock();
        for &at in rounds {
            self.space.give_back(&mut ledger, at as u64);
        }
        self.space.finish(ledger);
    }
}

impl<R: Rule<Order: Send>, T: Id> IdSpace<R, T> {
    #[cold]
    #[inline(never)]
    pub(super) fn alloc_slow(&self) -> Result<T, IdError> {
        let Some(front) = self.front.get() else {
            return self.alloc_exact();
        };
        let mut looks = 0;
        loop {
            let taken = if front.gate.is_down() {
                self.refill(front)
            } else {
                self.take_from_map(front, looks)
            };
            match taken {
                Ok(at) => return Ok(self.id(at)),
                Err(Refusal::Failed(error)) => return Err(error),
                Err(Refusal::Again) => {}
                Err(Refusal::Scarce) => {
                    if let Some(at) = self.collect(front) {
                        return Ok(self.id(at));
                    }
                    if front.gate.is_down() {
                        self.tighten(front);
                    } else {
                        // Another thread is on the way with a free one.
                        rest(looks);
                        looks += 1;
                    }
                }
            }
        }
    }

    /// Takes one straight from the map, or makes magazines.
    #[inline(never)]
    fn alloc_exact(&self) -> Result<T, IdError> {
        let mut ledger = self.lock();
        if self.is_due(&ledger) {
            // The first in the process waits for a thread that tests restartable sequences: not under the lock.
            drop(ledger);
            let _ = mode();
            ledger = self.lock();
        }
        if self.front.get().is_some() || self.open(&mut ledger) {
            drop(ledger);
            return self.alloc_slow();
        }
        let taken = self.take_behind(&mut ledger);
        ledger.early += 1;
        self.finish(ledger);
        match taken? {
            Some(at) => Ok(self.id(at)),
            None => Err(self.full()),
        }
    }

    /// Takes one from the magazines, which are refilled from the map.
    fn refill(&self, front: &Front) -> Result<u64, Refusal> {
        let map = FromMap::new(self);
        let taken = front.ready.get(&map).map(|at| {
            front.states.enter(at);
            at as u64
        });
        if let Some(crossed) = map.crossed.take() {
            self.report(crossed);
        }
        taken
    }

    /// Brings what lies in magazines to where all can have it. The caller gets one, if there is one outside of the map.
    pub(super) fn collect(&self, front: &Front) -> Option<u64> {
        {
            let mut ledger = self.lock();
            ledger.counts.collections += 1;
            if front.in_place() {
                self.move_all_to_map(front, &mut ledger);
                if front.batch(ledger.free()) == 0 {
                    self.raise(front, &mut ledger);
                }
                self.finish(ledger);
            } else {
                drop(ledger);
                front.returns().drain(&FromMap::new(self));
            }
        }
        if !(front.in_order() || front.in_place()) {
            return None;
        }
        // Batches keep their place in the order: they do not go back to the map.
        front.ready.gather();
        let at = front.ready.get_stocked()?;
        front.states.enter(at).then_some(at as u64)
    }

    /// Goes over to the map if it has too few for batches, or if those that it has rest.
    fn tighten(&self, front: &Front) {
        let mut ledger = self.lock();
        if ledger.direct {
            return;
        }
        if ledger.resting || front.batch(ledger.free()) == 0 {
            self.raise(front, &mut ledger);
        }
    }

    /// Raises the gate.
    pub(super) fn raise(&self, front: &Front, ledger: &mut Ledger<R::Order>) {
        if !ledger.direct {
            ledger.direct = true;
            ledger.clean = false;
            front.gate.raise();
            ledger.end_sweep();
        }
    }

    /// Takes one offset from the map, with the gate up.
    fn take_from_map(&self, front: &Front, looks: u32) -> Result<u64, Refusal> {
        let mut ledger = self.lock();
        if !ledger.direct {
            return Err(Refusal::Again);
        }
        let verdict = match self.take_behind(&mut ledger) {
            Ok(Some(at)) => {
                ledger.resting = false;
                ledger.counts.direct += 1;
                front.states.touch(at);
                front.states.enter(at as usize);
                self.finish(ledger);
                return Ok(at);
            }
            Ok(None) => IdError::Full {
                allocated: ledger.order.taken(),
            },
            Err(error @ IdError::Resting { .. }) => {
                ledger.resting = true;
                error
            }
            Err(error) => return Err(error.into()),
        };
        if !self.find_clean(front, &mut ledger, looks) {
            return Err(Refusal::Scarce);
        }
        if ledger.orphans > 0 && self.adopt(front, &mut ledger) {
            return Err(Refusal::Again);
        }
        self.finish(ledger);
        Err(verdict.into())
    }

    /// Takes the next offset of the map for a caller that does not wait, after all threads that wait: they come first
    /// for what became free without waking them, as what has rested.
    fn take_behind(&self, ledger: &mut Ledger<R::Order>) -> Result<Option<u64>, IdError> {
        match self.serve(ledger) {
            // The map could give none then. It is not asked again: a clock may have ticked since.
            Some(error) => Err(error),
            // No thread waits, or nothing is left.
            None => ledger.order.take(),
        }
    }

    /// Whether every identifier is either allocated or in the map: nothing in a magazine, nothing on its way. The gate
    /// is up.
    pub(super) fn find_clean(
        &self,
        front: &Front,
        ledger: &mut Ledger<R::Order>,
        looks: u32,
    ) -> bool {
        if ledger.clean {
            return true;
        }
        ledger.counts.readings += 1;
        let unowned = front.states.vacant().saturating_sub(ledger.free());
        // What the map had no memory for does not come by itself. What the threads of a parent were busy with never will.
        let gone = ledger.orphans == unowned || (ledger.forked && looks >= PATIENCE);
        ledger.clean = gone;
        gone
    }

    /// Tries once more to give the map what it had no memory for. Whether anything came of it.
    #[cold]
    fn adopt(&self, front: &Front, ledger: &mut Ledger<R::Order>) -> bool {
        let before = ledger.orphans;
        for at in 0..=ledger.last {
            if ledger.orphans > 0
                && front.states.is_orphan(at as usize)
                && ledger.order.give(at) == Ok(true)
            {
                front.states.pick_up(at as usize);
                ledger.orphans -= 1;
            }
        }
        ledger.orphans < before
    }

    /// Ends a turn at the map: serves the threads that wait, lowers the gate when there is plenty, and reports crossed
    /// marks after the lock is released.
    pub(super) fn finish(&self, ledger: Guard<'_, Ledger<R::Order>>) {
        if let Some(crossed) = self.end(ledger) {
            self.report(crossed);
        }
    }

    /// As [`finish`](Self::finish), but does not report crossed marks: the caller does, since it has something in hand.
    pub(super) fn end(&self, mut ledger: Guard<'_, Ledger<R::Order>>) -> Option<Crossed> {
        self.serve(&mut ledger);
        if ledger.direct
            && !ledger.resting
            && ledger.holders == 0
            && ledger.queue.is_empty()
            && let Some(front) = self.front.get()
            && front.is_plenty(ledger.free())
        {
            ledger.direct = false;
            ledger.clean = false;
            front.gate.lower();
        }
        self.crossed(&mut ledger)
    }

    #[cold]
    fn full(&self) -> IdError {
        IdError::Full {
            allocated: self.lock().order.taken(),
        }
    }
}

/// Lets others do what this thread waits for.
pub(super) fn rest(looks: u32) {
    sleeps("an identifier on its way");
    if looks < SPINS {
        thread::yield_now();
    } else {
        thread::sleep(NAP);
    }
}
