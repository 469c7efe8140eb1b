//! A stock of one resource, shared by all threads.

mod collect;
mod config;
#[cfg(all(test, loom))]
mod loom_tests;
mod quick;
mod stats;

pub(crate) use config::StockConfig;
pub use stats::StockStats;

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use super::cpu_layer::{CpuLayer, NotExchanged};
use super::depot::Depot;
use super::magazines::{Magazine, Magazines};
use super::own;
use super::refill_limiter::{Refill, RefillLimiter};
use super::supply::Supply;
use super::sync::fence;
use crate::os::{System, fork};

/// A stock: two magazines per CPU over a depot.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Stock {
    /// First, so that a pointer to the stock, or to a cache that begins with its stock, is also one to the CPU layer.
    cpu_layer: CpuLayer,
    depot: Depot,
    misses: AtomicU64,
    refills: RefillLimiter,
}

impl Stock {
    /// An empty stock. It takes no memory before it is used.
    #[must_use]
    pub(crate) fn new(system: Arc<dyn System>, config: StockConfig) -> Self {
        let magazines = Arc::new(Magazines::new(system.clone()));
        Self::sharing(magazines, system, config)
    }

    /// An empty stock that shares its magazines with others.
    pub(crate) fn sharing(
        magazines: Arc<Magazines>,
        system: Arc<dyn System>,
        config: StockConfig,
    ) -> Self {
        // The child of a fork must recognise that it is one, or it would take its parent's unfinished work for its own.
        fork::install();
        Self {
            cpu_layer: CpuLayer::new(system, config.mode),
            depot: Depot::new(magazines, config.rounds, config.most_rounds),
            misses: AtomicU64::new(0),
            refills: RefillLimiter::new(),
        }
    }

    /// Takes a round from this CPU's magazines, and nothing more.
    #[inline]
    pub(crate) fn try_get(&self) -> Option<usize> {
        self.cpu_layer.pop()
    }

    /// Takes a round from this CPU or the depot, without a supply.
    #[inline]
    pub(crate) fn get_stocked(&self) -> Option<usize> {
        self.cpu_layer.pop().or_else(|| self.get_from_depot())
    }

    /// Gives a round to this CPU's magazines, and nothing more; false when they have no room.
    #[inline]
    #[must_use]
    pub(crate) fn try_put(&self, round: usize) -> bool {
        self.cpu_layer.push(round)
    }

    /// Takes a round: from this CPU, the depot or the supply, in that order.
    ///
    /// # Errors
    /// The supply's, after the other CPUs' magazines were emptied in vain.
    #[inline]
    pub(crate) fn get<S: Supply>(&self, supply: &S) -> Result<usize, S::Error> {
        match self.cpu_layer.pop() {
            Some(round) => Ok(round),
            None => self.get_slow(supply),
        }
    }

    /// Gives a round to this CPU, or to the depot. Never asks the system for anything but memory for a magazine.
    #[inline]
    pub(crate) fn put<S: Supply>(&self, round: usize, supply: &S) {
        if !self.cpu_layer.push(round) {
            self.put_slow(round, supply);
        }
    }

    /// Fills `out` and says how much of it: all, unless the supply fails.
    ///
    /// # Errors
    /// The supply's, when it has not a single round, or when the error [is final](Supply::is_final): then the rounds taken
    /// so far are put back.
    pub(crate) fn get_many<S: Supply>(
        &self,
        out: &mut [usize],
        supply: &S,
    ) -> Result<usize, S::Error> {
        let mut n = 0;
        while n < out.len() {
            let taken = self.cpu_layer.pop_many(&mut out[n..]);
            n += taken;
            if taken == 0 {
                match self.get_slow(supply) {
                    Ok(round) => out[n] = round,
                    Err(error) if n == 0 || S::is_final(&error) => {
                        self.put_many(&out[..n], supply);
                        return Err(error);
                    }
                    Err(_) => break,
                }
                n += 1;
            }
        }
        Ok(n)
    }

    /// Gives all `rounds`.
    pub(crate) fn put_many<S: Supply>(&self, mut rounds: &[usize], supply: &S) {
        while let [first, rest @ ..] = rounds {
            let given = self.cpu_layer.push_many(rounds);
            if given == 0 {
                self.put_slow(*first, supply);
                rounds = rest;
            } else {
                rounds = &rounds[given..];
            }
        }
    }

    /// Puts a whole magazine's worth of rounds straight into the depot; the supply gets what finds no magazine.
    pub(crate) fn stock_up<S: Supply>(&self, rounds: &[usize], supply: &S) {
        for part in rounds.chunks(self.depot.rounds()) {
            match self.depot.spare_empty() {
                Some(mut magazine) => {
                    for &round in part {
                        // A magazine of the depot's size has room for a part of that size.
                        if let Err(round) = magazine.push(round) {
                            supply.accept(&[round]);
                        }
                    }
                    self.depot.put(magazine);
                }
                None => supply.accept(part),
            }
        }
    }

    /// Ends a working-set interval: what the depot did not need since the last call goes to the supply. At most
    /// `most` rounds go; returns how many went.
    pub(crate) fn reap<S: Supply>(&self, most: usize, supply: &S) -> usize {
        self.depot.gather_left();
        self.give_back(self.depot.end_interval(), most, supply)
    }

    /// Takes everything out of the depot and all CPUs' magazines and gives it to the supply. Returns how many rounds.
    pub(crate) fn drain<S: Supply>(&self, supply: &S) -> usize {
        self.gather();
        self.give_back(usize::MAX, usize::MAX, supply)
    }

    /// Moves all CPUs' magazines into the depot. False when some could not be had just now.
    pub(crate) fn gather(&self) -> bool {
        // Within the drain, because threads that find nothing meanwhile wait for its end.
        let begun = || self.depot.gather_left();
        let all = self
            .cpu_layer
            .drain(begun, |magazine| self.depot.put(magazine));
        if !all {
            // `begun` may not have run: another thread drains, or the system cannot restart sections.
            self.depot.gather_left();
        }
        all
    }

    /// Moves all CPUs' magazines into the depot, or waits a while for the thread that already does.
    pub(super) fn gather_or_wait(&self) {
        if !self.gather() {
            self.cpu_layer.await_drain();
        }
    }

    /// Closes the stock for good: everything goes to the supply, now and whenever a round is put later. `get` then
    /// always asks the supply. False when some magazine could not be taken: a thread kept the lock of its slot, or the
    /// kernel refused to restart the sections.
    ///
    /// No thread may be getting from the stock, and its handles must be gone: what they bring to the depot later stays there.
    pub(crate) fn close<S: Supply>(&self, supply: &S) -> bool {
        let all = self.cpu_layer.close(|magazine| self.depot.put(magazine));
        self.depot.gather_left();
        // The counterpart of the fence in `put_slow`.
        fence(Ordering::SeqCst);
        self.give_back(usize::MAX, usize::MAX, supply);
        all
    }

    /// Rounds that a magazine may hold now.
    pub(crate) fn rounds(&self) -> usize {
        self.depot.rounds()
    }

    /// Rounds that an owner's magazine may hold now.
    pub(crate) fn owner_rounds(&self) -> usize {
        own::most(self.depot.rounds())
    }

    /// Pretends that the machine reports so many CPUs.
    #[cfg(test)]
    pub(super) fn pretend_cpus(&mut self, cpus: usize) {
        self.cpu_layer.pretend_cpus(cpus);
    }

    pub(super) fn depot(&self) -> &Depot {
        &self.depot
    }

    pub(super) fn give_back<S: Supply>(&self, magazines: usize, most: usize, supply: &S) -> usize {
        let mut given = 0;
        for _ in 0..magazines {
            if given >= most {
                break;
            }
            let Some(mut magazine) = self.depot.take_full() else {
                break;
            };
            given += magazine.len();
            supply.accept(magazine.rounds());
            magazine.clear();
            self.depot.put(magazine);
        }
        given
    }

    #[cold]
    fn get_slow<S: Supply>(&self, supply: &S) -> Result<usize, S::Error> {
        self.misses.fetch_add(1, Ordering::Relaxed);
        let refill = self.refills.enter();
        // Another thread may take what this one gathers, so this tries twice before it asks the supply for the last time.
        for _ in 0..2 {
            if let Some(round) = self.get_from_depot() {
                return Ok(round);
            }
            match self.get_from_supply(supply, &refill) {
                Ok(round) => return Ok(round),
                Err(error) if S::is_final(&error) => return Err(error),
                // Nothing is out of stock as long as another CPU's magazine has some.
                Err(error) => {
                    self.gather_or_wait();
                    if self.depot.full() == 0 {
                        return self.get_from_depot().ok_or(error);
                    }
                }
            }
        }
        self.get_from_supply(supply, &refill)
    }

    fn get_from_depot(&self) -> Option<usize> {
        let full = self.depot.take_full();
        let mut magazine = full.or_else(|| self.depot.take_left_anywhere())?;
        let round = magazine.pop();
        self.shelve(magazine);
        round
    }

    fn get_from_supply<S: Supply>(
        &self,
        supply: &S,
        refill: &Refill<'_>,
    ) -> Result<usize, S::Error> {
        let one = |supply: &S| {
            let mut round = [0];
            supply.fetch(&mut round).map(|_| round[0])
        };
        let rounds = refill.share(self.depot.rounds());
        if rounds == 1 || self.cpu_layer.is_closed() {
            return one(supply);
        }
        // Without memory for a magazine there is still the supply itself.
        let Some(mut magazine) = self.depot.spare_empty() else {
            return one(supply);
        };
        let filled = magazine.fill(rounds, |rounds| supply.fetch(rounds));
        let round = magazine.pop();
        match (filled, round) {
            (Ok(()), Some(round)) => {
                self.shelve(magazine);
                Ok(round)
            }
            (Ok(()), None) => {
                debug_assert!(false, "a supply that succeeds gives at least one round");
                self.depot.put(magazine);
                one(supply)
            }
            (Err(error), _) => {
                self.depot.put(magazine);
                Err(error)
            }
        }
    }

    /// Puts a magazine in the place of an empty one of this CPU, or in the depot.
    fn shelve(&self, magazine: Magazine) {
        match self.cpu_layer.replace_empty(magazine) {
            Ok(Some(old)) => self.depot.put(old),
            Ok(None) => {}
            Err(NotExchanged::NotNow(magazine)) => self.depot.put(magazine),
            Err(NotExchanged::Disabled(magazine)) => {
                self.depot.put(magazine);
                self.cpu_layer.heal();
            }
        }
    }

    #[cold]
    fn put_slow<S: Supply>(&self, round: usize, supply: &S) {
        if self.cpu_layer.is_closed() {
            return supply.accept(&[round]);
        }
        // Twice: the first turn may only give this CPU its magazines, or find that the thread has moved.
        for _ in 0..2 {
            if self.make_room() && self.cpu_layer.push(round) {
                return;
            }
        }
        self.put_into_depot(round, supply);
        // Either this thread sees that the stock is closed, or the thread that closes it sees the magazine.
        fence(Ordering::SeqCst);
        if self.cpu_layer.is_closed() {
            // Closed in between: the closing thread may have emptied the depot before this round came.
            self.give_back(usize::MAX, usize::MAX, supply);
        }
    }

    /// Puts a round that found no room in this CPU's magazines into a magazine of the depot that has room, so that stray
    /// rounds do not take a magazine each.
    pub(crate) fn put_into_depot<S: Supply>(&self, round: usize, supply: &S) {
        let partial = self.depot.take_full().and_then(|magazine| {
            if magazine.len() < self.depot.rounds() {
                return Some(magazine);
            }
            self.depot.put(magazine);
            None
        });
        let Some(mut magazine) = partial.or_else(|| self.depot.spare_empty()) else {
            return supply.accept(&[round]);
        };
        if let Err(round) = magazine.push(round) {
            supply.accept(&[round]);
        }
        self.depot.put(magazine);
    }

    /// Gives this CPU two magazines of today's size, and an empty one in the place of a full one.
    fn make_room(&self) -> bool {
        let mut exchanged = false;
        if !self.cpu_layer.set_capacity(self.depot.rounds()) {
            for which in 0..2 {
                let Some(magazine) = self.depot.spare_empty() else {
                    return false;
                };
                if let Err(kept) = self.cpu_layer.add(which, magazine) {
                    self.keep(kept);
                }
            }
            exchanged = self.cpu_layer.set_capacity(self.depot.rounds());
        }
        // One exchange serves a magazine's worth of puts; when only the capacity was missing there is room already.
        let Some(magazine) = self.depot.spare_empty() else {
            return exchanged;
        };
        match self.cpu_layer.replace_full(magazine) {
            Ok(Some(old)) => {
                self.depot.put(old);
                true
            }
            Ok(None) => true,
            Err(kept) => {
                self.keep(kept);
                true
            }
        }
    }

    fn keep(&self, magazine: NotExchanged) {
        match magazine {
            NotExchanged::NotNow(magazine) => self.depot.put(magazine),
            NotExchanged::Disabled(magazine) => {
                self.depot.put(magazine);
                self.cpu_layer.heal();
            }
        }
    }
}

impl Drop for Stock {
    /// Gives the magazines back for other stocks. Rounds left in them are lost: an owner that wants them back closes the
    /// stock first.
    fn drop(&mut self) {
        if self.depot.shares() {
            let depot = &self.depot;
            self.cpu_layer.clear(|magazine| depot.forget(magazine));
            depot.gather_left();
            while let Some(magazine) = depot.take_full() {
                depot.forget(magazine);
            }
        }
    }
}
