//! The slow ways to an identifier: claim a lot, collect what lies about, go to the map.

use std::time::Duration;

use super::front::Front;
use super::ledger::Ledger;
use super::marks::Crossed;
use super::sync::{Guard, thread};
use super::{IdSpace, LOT, SharedRule};
use crate::ids::IdError;
use crate::ids::rule::Order;
use crate::magazine::Supply;
use crate::os::lock::order::sleeps;
use crate::os::rseq::mode;

/// Looks at what another thread is about to put right, before sleeping between them.
const SPINS: u32 = 100;
/// Time between looks after that.
const NAP: Duration = Duration::from_micros(50);
/// Looks after which a child of a fork takes what is still on its way for lost with its parent's threads.
const PATIENCE: u32 = 1000;

/// What came of an attempt.
pub(super) enum Attempt {
    /// An offset.
    Got(u64),
    /// The space has gone over to or from the map meanwhile.
    Again,
    /// The map has too few.
    Scarce,
}

/// Sends what the magazines give up to the map.
pub(super) struct Home<'a, R: SharedRule>(pub(super) &'a IdSpace<R>);

impl<R: SharedRule> Supply for Home<'_, R> {
    type Error = ();

    /// Lots are claimed by the space itself.
    fn fetch(&self, _: &mut [usize]) -> Result<usize, ()> {
        Err(())
    }

    fn accept(&self, rounds: &[usize]) {
        let mut ledger = self.0.lock();
        for &at in rounds {
            self.0.give_back(&mut ledger, at as u64);
        }
        self.0.finish(ledger);
    }
}

impl<R: SharedRule> IdSpace<R> {
    #[cold]
    #[inline(never)]
    pub(super) fn alloc_slow(&self) -> Result<u64, IdError> {
        let Some(front) = self.front.get() else {
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
            return match taken? {
                Some(at) => Ok(self.id(at)),
                None => Err(self.full()),
            };
        };
        let mut looks = 0;
        loop {
            if front.gate.is_down() {
                if let Some(at) = front.lots.get_stocked()
                    && front.states.enter(at)
                {
                    return Ok(self.id(at as u64));
                }
                match self.claim(front)? {
                    Attempt::Got(at) => return Ok(self.id(at)),
                    Attempt::Again => {}
                    Attempt::Scarce => {
                        if let Some(at) = self.collect(front) {
                            return Ok(self.id(at));
                        }
                        self.tighten(front);
                    }
                }
            } else {
                match self.take_from_map(front, looks)? {
                    Attempt::Got(at) => return Ok(self.id(at)),
                    Attempt::Again => {}
                    Attempt::Scarce => {
                        // Another thread is on the way with a free one.
                        if let Some(at) = self.collect(front) {
                            return Ok(self.id(at));
                        }
                        rest(looks);
                        looks += 1;
                    }
                }
            }
        }
    }

    /// Claims a lot from the map: one offset for the caller, the others for this CPU's magazine.
    fn claim(&self, front: &Front) -> Result<Attempt, IdError> {
        let mut lot = [0_u64; LOT];
        let mut ledger = self.lock();
        if ledger.direct {
            return Ok(Attempt::Again);
        }
        let mut size = front.lot(ledger.free());
        if size < LOT && front.in_order() {
            // What this CPU has freed would make the lot larger, and it must go to the map in any case.
            self.flush_returns(front, &mut ledger);
            size = front.lot(ledger.free());
        }
        if size == 0 && !front.in_place() {
            self.finish(ledger);
            return Ok(Attempt::Scarce);
        }
        let taken;
        if front.in_place() {
            (ledger, taken) = self.sweep_apart(front, ledger, &mut lot);
        } else {
            taken = ledger.order.take_many(&mut lot[..size]);
        }
        let n = match taken {
            Ok(n) if n > 0 => n,
            Ok(_) => return Ok(Attempt::Scarce),
            Err(IdError::Resting { .. }) => {
                ledger.resting = true;
                return Ok(Attempt::Scarce);
            }
            Err(error) => return Err(error),
        };
        ledger.resting = false;
        for &at in &lot[..n] {
            front.states.touch(at);
        }
        front.states.enter(lot[0] as usize);
        ledger.counts.claims += 1;
        let crossed = self.end(ledger);
        // The last one given is the first one taken.
        let mut rest = [0_usize; LOT];
        for (slot, &at) in rest.iter_mut().zip(lot[1..n].iter().rev()) {
            *slot = at as usize;
        }
        front.lots.put_many(&rest[..n - 1], &Home(self));
        // Only now, with nothing in hand: the mark's function may use the space until nothing is left.
        if let Some(crossed) = crossed {
            self.tell(crossed);
        }
        Ok(Attempt::Got(lot[0]))
    }

    /// Brings what lies in magazines to where all can have it. The caller gets one, if there is one outside of the map.
    pub(super) fn collect(&self, front: &Front) -> Option<u64> {
        {
            let mut ledger = self.lock();
            ledger.counts.collections += 1;
            if front.in_place() {
                self.bring_all_home(front, &mut ledger);
                if front.lot(ledger.free()) == 0 {
                    self.raise(front, &mut ledger);
                }
                self.finish(ledger);
            } else {
                drop(ledger);
                front.returns().drain(&Home(self));
            }
        }
        if !(front.in_order() || front.in_place()) {
            return None;
        }
        // Lots keep their place in the order: they do not go back to the map.
        front.lots.gather();
        let at = front.lots.get_stocked()?;
        front.states.enter(at).then_some(at as u64)
    }

    /// Goes over to the map if it has too few for lots, or if those that it has rest.
    fn tighten(&self, front: &Front) {
        let mut ledger = self.lock();
        if ledger.direct {
            return;
        }
        if ledger.resting || front.lot(ledger.free()) == 0 {
            self.raise(front, &mut ledger);
        }
    }

    /// Raises the gate.
    pub(super) fn raise(&self, front: &Front, ledger: &mut Ledger<R::Order>) {
        if !ledger.direct {
            ledger.direct = true;
            ledger.settled = false;
            front.gate.raise();
            ledger.end_round();
        }
    }

    /// Takes one offset from the map, with the gate up.
    fn take_from_map(&self, front: &Front, looks: u32) -> Result<Attempt, IdError> {
        let mut ledger = self.lock();
        if !ledger.direct {
            return Ok(Attempt::Again);
        }
        let verdict = match self.take_behind(&mut ledger) {
            Ok(Some(at)) => {
                ledger.resting = false;
                ledger.counts.direct += 1;
                front.states.touch(at);
                front.states.enter(at as usize);
                self.finish(ledger);
                return Ok(Attempt::Got(at));
            }
            Ok(None) => IdError::Full {
                allocated: ledger.order.taken(),
            },
            Err(error @ IdError::Resting { .. }) => {
                ledger.resting = true;
                error
            }
            Err(error) => return Err(error),
        };
        if !self.settle(front, &mut ledger, looks) {
            return Ok(Attempt::Scarce);
        }
        // Only if nothing else is out: in the child of a fork another thread may have some in hand.
        if ledger.orphans > 0
            && front.states.vacant() == ledger.free() + ledger.orphans
            && self.adopt(front, &mut ledger)
        {
            return Ok(Attempt::Again);
        }
        self.finish(ledger);
        Err(verdict)
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
    pub(super) fn settle(&self, front: &Front, ledger: &mut Ledger<R::Order>, looks: u32) -> bool {
        if ledger.settled {
            return true;
        }
        ledger.counts.readings += 1;
        let loose = front.states.vacant().saturating_sub(ledger.free());
        // What the map had no memory for does not come by itself. What the threads of a parent were busy with never will.
        let gone = ledger.orphans == loose || (ledger.forked && looks >= PATIENCE);
        ledger.settled = gone;
        gone
    }

    /// Tries once more to give the map what it had no memory for. The space is settled. Whether anything came of it.
    #[cold]
    fn adopt(&self, front: &Front, ledger: &mut Ledger<R::Order>) -> bool {
        let before = ledger.orphans;
        for at in 0..=ledger.last {
            if ledger.orphans > 0
                && front.states.is_free(at as usize)
                && ledger.order.is_taken(at)
                && ledger.order.give(at) == Ok(true)
            {
                ledger.orphans -= 1;
            }
        }
        ledger.orphans < before
    }

    /// Ends a turn at the map: serves the threads that wait, lowers the gate when there is plenty, and reports crossed
    /// marks after the lock is released.
    pub(super) fn finish(&self, ledger: Guard<'_, Ledger<R::Order>>) {
        if let Some(crossed) = self.end(ledger) {
            self.tell(crossed);
        }
    }

    /// As [`finish`](Self::finish), but does not report crossed marks: the caller does, since it has something in hand.
    fn end(&self, mut ledger: Guard<'_, Ledger<R::Order>>) -> Option<Crossed> {
        self.serve(&mut ledger);
        if ledger.direct
            && !ledger.resting
            && ledger.holders == 0
            && ledger.queue.is_empty()
            && let Some(front) = self.front.get()
            && front.is_plenty(ledger.free())
        {
            ledger.direct = false;
            ledger.settled = false;
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
