//! Stand-ins that shuttle can schedule: a lock, and a stock in which every step that the real one makes is visible to
//! others. The space above them is the real one.

use std::sync::Arc;

use shuttle::sync::{Mutex, MutexGuard};

use crate::magazine::{StockConfig, StockStats, Supply};
use crate::os::System;

#[derive(Debug)]
pub(super) struct Lock<T>(Mutex<T>);

pub(super) type Guard<'a, T> = MutexGuard<'a, T>;

impl<T> Lock<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub(super) fn lock(&self) -> Guard<'_, T> {
        self.0.lock().unwrap()
    }
}

/// CPUs of the model; a thread's is given by its number.
const CPUS: usize = 2;

#[derive(Debug)]
pub(super) struct Stock {
    slots: [Mutex<Vec<usize>>; CPUS],
    depot: Mutex<Vec<usize>>,
    most: usize,
}

impl Stock {
    pub(super) fn new(_: Arc<dyn System>, config: StockConfig) -> Self {
        Self {
            slots: [const { Mutex::new(Vec::new()) }; CPUS],
            depot: Mutex::new(Vec::new()),
            most: 2 * config.rounds,
        }
    }

    fn mine(&self) -> &Mutex<Vec<usize>> {
        let number = format!("{:?}", shuttle::thread::current().id())
            .bytes()
            .filter(u8::is_ascii_digit)
            .fold(0, |n, digit| n * 10 + usize::from(digit - b'0'));
        &self.slots[number % CPUS]
    }

    pub(super) fn try_get(&self) -> Option<usize> {
        self.mine().lock().unwrap().pop()
    }

    pub(super) fn get_stocked(&self) -> Option<usize> {
        self.try_get().or_else(|| self.depot.lock().unwrap().pop())
    }

    pub(super) fn get<S: Supply>(&self, supply: &S) -> Result<usize, S::Error> {
        if let Some(round) = self.get_stocked() {
            return Ok(round);
        }
        let mut rounds = [0; 2];
        let n = supply.fetch(&mut rounds)?;
        let (last, rest) = rounds[..n].split_last().unwrap();
        self.put_many(rest, supply);
        Ok(*last)
    }

    pub(super) fn try_put(&self, round: usize) -> bool {
        let mut slot = self.mine().lock().unwrap();
        let room = slot.len() < self.most;
        if room {
            slot.push(round);
        }
        room
    }

    pub(super) fn put<S: Supply>(&self, round: usize, _: &S) {
        if !self.try_put(round) {
            self.depot.lock().unwrap().push(round);
        }
    }

    pub(super) fn put_many<S: Supply>(&self, rounds: &[usize], supply: &S) {
        for &round in rounds {
            self.put(round, supply);
        }
    }

    pub(super) fn gather(&self) -> bool {
        for slot in &self.slots {
            let rounds = core::mem::take(&mut *slot.lock().unwrap());
            self.depot.lock().unwrap().extend(rounds);
        }
        true
    }

    pub(super) fn drain<S: Supply>(&self, supply: &S) -> usize {
        self.gather();
        let rounds = core::mem::take(&mut *self.depot.lock().unwrap());
        for part in rounds.chunks(2) {
            supply.accept(part);
        }
        rounds.len()
    }

    pub(super) fn stats(&self) -> StockStats {
        StockStats::default()
    }
}
