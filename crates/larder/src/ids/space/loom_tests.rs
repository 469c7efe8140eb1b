//! The protocol of cells and gate under loom's model checker:
//! `RUSTFLAGS="--cfg loom" cargo test -p larder --lib --release ids::`.
//!
//! The map and a magazine stand beside it as plain lists under loom's locks; what is checked is what `gate` promises of
//! them.

use loom::sync::{Arc, Mutex};

use super::gate::{FREE, Gate, UNOWNED, enter, leave, vacant};
use super::sync::{AtomicU8, Ordering};

#[derive(Default)]
struct Map {
    free: Vec<usize>,
    direct: bool,
    clean: bool,
}

struct World {
    cells: Vec<AtomicU8>,
    gate: Gate,
    map: Mutex<Map>,
    magazine: Mutex<Vec<usize>>,
}

impl World {
    /// All offsets are allocated.
    fn full(offsets: usize) -> Arc<Self> {
        let world = Self {
            cells: (0..offsets).map(|_| AtomicU8::new(FREE)).collect(),
            gate: Gate::new(),
            map: Mutex::new(Map::default()),
            magazine: Mutex::new(Vec::new()),
        };
        world.cells.iter().for_each(enter);
        Arc::new(world)
    }

    fn free(&self, at: usize) -> bool {
        if !leave(&self.cells[at], FREE) {
            return false;
        }
        if self.gate.is_down() {
            self.magazine.lock().unwrap().push(at);
        } else {
            self.map.lock().unwrap().free.push(at);
        }
        true
    }

    /// Takes one from the magazine, without a look at anything else.
    fn alloc_near(&self) -> Option<usize> {
        let at = self.magazine.lock().unwrap().pop()?;
        enter(&self.cells[at]);
        Some(at)
    }

    /// Takes one or says that there is none; `None` is 'look again'.
    fn try_alloc(&self) -> Option<Result<usize, ()>> {
        if let Some(at) = self.alloc_near() {
            return Some(Ok(at));
        }
        let mut map = self.map.lock().unwrap();
        if !map.direct {
            map.direct = true;
            self.gate.raise();
        }
        if let Some(at) = map.free.pop() {
            enter(&self.cells[at]);
            return Some(Ok(at));
        }
        if !map.clean {
            map.clean = vacant(&self.cells) == map.free.len() as u64;
        }
        map.clean.then_some(Err(()))
    }

    /// Called when no other thread is at work: each offset is where it belongs.
    fn check(&self) {
        let map = self.map.lock().unwrap();
        let magazine = self.magazine.lock().unwrap();
        if map.clean {
            assert!(
                magazine.is_empty(),
                "freed into a magazine behind the back of a verdict"
            );
        }
        let mut free: Vec<_> = map.free.iter().chain(magazine.iter()).copied().collect();
        free.sort_unstable();
        let vacant: Vec<_> = (0..self.cells.len())
            .filter(|&at| self.cells[at].load(Ordering::SeqCst) == FREE)
            .collect();
        assert_eq!(free, vacant);
    }
}

fn explore(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(f);
}

#[test]
fn loom_of_two_who_free_the_same_one_succeeds() {
    explore(5, || {
        let world = World::full(1);
        let other = {
            let world = world.clone();
            loom::thread::spawn(move || world.free(0))
        };
        let mine = world.free(0);
        assert!(mine != other.join().unwrap(), "one of the two");
        world.check();
    });
}

#[test]
fn loom_nothing_is_freed_behind_a_verdict() {
    explore(5, || {
        let world = World::full(2);
        let other = {
            let world = world.clone();
            loom::thread::spawn(move || world.free(0))
        };
        let answer = world.try_alloc();
        assert!(other.join().unwrap());
        world.check();
        match answer {
            Some(Ok(at)) => assert_eq!(at, 0),
            // It was freed after the verdict, and so it is found now.
            Some(Err(())) => assert_eq!(world.try_alloc(), Some(Ok(0))),
            None => assert!(world.try_alloc().is_some_and(|answer| answer.is_ok())),
        }
    });
}

#[test]
fn loom_two_free_while_one_decides() {
    explore(3, || {
        let world = World::full(2);
        let others = [0, 1].map(|at| {
            let world = world.clone();
            loom::thread::spawn(move || assert!(world.free(at)))
        });
        let answer = world.try_alloc();
        for other in others {
            other.join().unwrap();
        }
        world.check();
        let left = (0..2)
            .filter(|_| matches!(world.try_alloc(), Some(Ok(_))))
            .count();
        assert_eq!(left, 2 - usize::from(matches!(answer, Some(Ok(_)))));
    });
}

#[test]
fn loom_one_frees_one_takes_one_decides() {
    explore(3, || {
        let world = World::full(2);
        let freer = {
            let world = world.clone();
            loom::thread::spawn(move || assert!(world.free(1)))
        };
        let taker = {
            let world = world.clone();
            loom::thread::spawn(move || world.alloc_near())
        };
        let answer = world.try_alloc();
        freer.join().unwrap();
        let taken = taker.join().unwrap();
        world.check();
        let mine = answer.and_then(Result::ok);
        assert!(taken.is_none() || mine.is_none(), "{taken:?} and {mine:?}");
    });
}

/// Where identifiers stay in place there is no magazine, and the holder of the lock returns what lies in the cells to the map.
struct Place {
    cells: Vec<AtomicU8>,
    gate: Gate,
    map: Mutex<Map>,
}

impl Place {
    fn full(offsets: usize) -> Arc<Self> {
        let place = Self {
            cells: (0..offsets).map(|_| AtomicU8::new(FREE)).collect(),
            gate: Gate::new(),
            map: Mutex::new(Map::default()),
        };
        place.cells.iter().for_each(enter);
        Arc::new(place)
    }

    fn move_to_map(&self, map: &mut Map, at: usize) {
        if self.cells[at].load(Ordering::Acquire) == UNOWNED {
            self.cells[at].store(FREE, Ordering::Release);
            map.free.push(at);
        }
    }

    fn free(&self, at: usize) -> bool {
        if !leave(&self.cells[at], UNOWNED) {
            return false;
        }
        if !self.gate.is_down() {
            self.move_to_map(&mut self.map.lock().unwrap(), at);
        }
        true
    }

    /// Takes a `UNOWNED` one out of its cell, unless the gate is up.
    fn sweep(&self) -> Option<usize> {
        let map = self.map.lock().unwrap();
        let at = (0..self.cells.len())
            .find(|&at| self.cells[at].load(Ordering::Acquire) == UNOWNED)
            .filter(|_| !map.direct)?;
        self.cells[at].store(FREE, Ordering::Release);
        drop(map);
        enter(&self.cells[at]);
        Some(at)
    }

    /// Takes one from the map, or says that there is none; `None` is 'look again'.
    fn decide(&self) -> Option<Result<usize, ()>> {
        let mut map = self.map.lock().unwrap();
        if !map.direct {
            map.direct = true;
            self.gate.raise();
        }
        for at in 0..self.cells.len() {
            self.move_to_map(&mut map, at);
        }
        if let Some(at) = map.free.pop() {
            enter(&self.cells[at]);
            return Some(Ok(at));
        }
        if !map.clean {
            map.clean = vacant(&self.cells) == map.free.len() as u64;
        }
        map.clean.then_some(Err(()))
    }

    /// Called when no other thread is at work: after a verdict nothing is left in the cells, and the map knows of all
    /// that is free.
    fn check(&self) {
        let mut free = self.map.lock().unwrap().free.clone();
        free.sort_unstable();
        let vacant: Vec<_> = (0..self.cells.len())
            .filter(|&at| self.cells[at].load(Ordering::SeqCst) == FREE)
            .collect();
        assert_eq!(free, vacant);
        let unowned = |cell: &AtomicU8| cell.load(Ordering::SeqCst) == UNOWNED;
        assert!(
            !self.map.lock().unwrap().direct || !self.cells.iter().any(unowned),
            "left unowned behind the back of a verdict"
        );
    }
}

#[test]
fn loom_nothing_is_left_unowned_behind_a_verdict() {
    explore(4, || {
        let place = Place::full(2);
        let other = {
            let place = place.clone();
            loom::thread::spawn(move || place.free(0))
        };
        let answer = place.decide();
        assert!(other.join().unwrap());
        place.check();
        match answer {
            Some(Ok(at)) => assert_eq!(at, 0),
            // It was freed after the verdict, and so it is found now.
            Some(Err(())) | None => assert_eq!(place.decide(), Some(Ok(0))),
        }
    });
}

#[test]
fn loom_an_unowned_one_is_had_once() {
    explore(3, || {
        let place = Place::full(2);
        let freer = {
            let place = place.clone();
            loom::thread::spawn(move || assert!(place.free(1)))
        };
        let sweeper = {
            let place = place.clone();
            loom::thread::spawn(move || place.sweep())
        };
        let answer = place.decide();
        freer.join().unwrap();
        let swept = sweeper.join().unwrap();
        place.check();
        let mine = answer.and_then(Result::ok);
        assert!(swept.is_none() || mine.is_none(), "{swept:?} and {mine:?}");
    });
}

#[test]
fn loom_one_is_freed_home_by_another_and_again() {
    explore(3, || {
        let place = Place::full(1);
        let other = {
            let place = place.clone();
            loom::thread::spawn(move || assert!(place.free(0)))
        };
        // The next owner frees it again, while the first thread may still be on the way to the lock.
        if let Some(Ok(at)) = place.decide() {
            assert!(place.free(at));
        }
        other.join().unwrap();
        place.check();
        assert_eq!(place.decide(), Some(Ok(0)));
    });
}
