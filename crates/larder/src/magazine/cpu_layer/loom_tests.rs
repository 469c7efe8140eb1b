//! The CPU layer under every order of events, in both modes: `RUSTFLAGS="--cfg loom" cargo test -p larder --lib --target-dir
//! target/loom cpu_layer`.
//!
//! All of it is the CPU layer's own code but the sections and the barrier, of which [`sections`] has a model. Two kinds of cells
//! reveal a race: each slot has one that a thread must own to change the slot, and each round has one.

use loom::cell::UnsafeCell;
use loom::sync::Arc as Shared;
use loom::thread;

use super::*;
use crate::magazine::magazines::Magazines;
use crate::magazine::sections;
use crate::os::Linux;
use crate::os::rseq::Registration;
use crate::os::testing::HeapSystem;

struct World {
    cpu_layer: CpuLayer,
    magazines: Magazines,
    /// One for each round, which its owner touches.
    payload: Vec<UnsafeCell<u32>>,
}

// SAFETY: the cells are the subject of the tests: loom reports accesses that nothing orders.
unsafe impl Sync for World {}

/// What a thread has taken.
type Taken = Vec<usize>;

impl World {
    /// A CPU layer on which nothing was ever put, and rounds that no thread has touched.
    fn new(mode: Mode, cpus: usize, rounds: usize) -> Self {
        Self::over(Arc::new(Linux), mode, cpus, rounds)
    }

    fn over(system: Arc<dyn System>, mode: Mode, cpus: usize, rounds: usize) -> Self {
        let mut cpu_layer = CpuLayer::new(system, mode);
        cpu_layer.pretend_cpus(cpus);
        Self {
            cpu_layer,
            magazines: Magazines::new(Arc::new(Linux)),
            payload: (0..rounds).map(|_| UnsafeCell::new(0)).collect(),
        }
    }

    /// CPU 0 has a magazine with round 0 and an empty one, of two rounds each.
    fn stocked(mode: Mode, rounds: usize) -> Self {
        let world = Self::new(mode, 2, rounds);
        let full = world.magazine(Some(0));
        world.cpu_layer.add(0, full).unwrap();
        world.cpu_layer.add(1, world.magazine(None)).unwrap();
        assert!(world.cpu_layer.set_capacity(2));
        world
    }

    /// A magazine with a round, or an empty one.
    fn magazine(&self, round: Option<usize>) -> Magazine {
        let mut magazine = self.magazines.take_empty().unwrap();
        if let Some(round) = round {
            self.touch(round);
            magazine.push(round).unwrap();
        }
        magazine
    }

    fn touch(&self, round: usize) {
        // SAFETY: the round is ours; loom checks that.
        self.payload[round].with_mut(|p| unsafe { *p += 1 });
    }

    fn pop(&self) -> Taken {
        self.taken(self.cpu_layer.pop())
    }

    fn taken(&self, rounds: impl IntoIterator<Item = usize>) -> Taken {
        rounds.into_iter().inspect(|&r| self.touch(r)).collect()
    }

    /// Gives a round; what the CPU layer has no room for stays.
    fn push(&self, round: usize) -> Taken {
        self.touch(round);
        let room = self.cpu_layer.push(round);
        Some(round).filter(|_| !room).into_iter().collect()
    }

    /// Puts a magazine in the place of an empty one: what it gets for it, or its own that the CPU layer refuses.
    fn replace(&self, round: usize) -> Taken {
        self.left(self.cpu_layer.replace_empty(self.magazine(Some(round))))
    }

    fn left(&self, result: Result<Option<Magazine>, NotExchanged>) -> Taken {
        match result {
            Ok(old) => old.map_or_else(Taken::new, |m| self.taken(m.rounds().iter().copied())),
            Err(NotExchanged::NotNow(magazine)) => self.taken(magazine.rounds().iter().copied()),
            Err(NotExchanged::Disabled(magazine)) => {
                self.cpu_layer.heal();
                self.taken(magazine.rounds().iter().copied())
            }
        }
    }

    /// Empties the CPU layer: whether all could be had, and what.
    fn drain(&self) -> (bool, Taken) {
        let mut all = Taken::new();
        let done = self.cpu_layer.drain(
            || (),
            |m| all.extend(self.taken(m.rounds().iter().copied())),
        );
        (done, all)
    }

    fn close(&self) -> (bool, Taken) {
        let mut all = Taken::new();
        let done = self
            .cpu_layer
            .close(|m| all.extend(self.taken(m.rounds().iter().copied())));
        (done, all)
    }

    /// Checks, when no other thread is at work, that each round was taken once or lies in the CPU layer, and that no thread has
    /// seized the CPU layer.
    fn check(&self, taken: impl IntoIterator<Item = Taken>) {
        let mut all: Taken = taken.into_iter().flatten().collect();
        assert_eq!(self.cpu_layer.draining.load(Ordering::Relaxed), 0, "seized");
        if !self.cpu_layer.is_closed() {
            self.cpu_layer.heal();
            assert!(self.cpu_layer.is_live(), "stays disabled");
            let (done, rest) = self.drain();
            assert!(done);
            all.extend(rest);
        }
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..self.payload.len()), "{all:?}");
        assert_eq!(self.cpu_layer.came.load(Ordering::Relaxed), {
            let (pops, pushes) = self.cpu_layer.counts();
            pops as i64 - pushes as i64
        });
    }
}

fn per_cpu() -> Mode {
    Mode::PerCpu(Registration::of_a_model())
}

fn explore(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(test);
}

/// Runs a test in both modes.
fn each_mode(preemptions: usize, test: impl Fn(Mode) + Copy + Sync + Send + 'static) {
    for mode in [per_cpu(), Mode::Locked("test")] {
        explore(preemptions, move || test(mode));
    }
}

fn spawn<T: 'static>(
    world: &Shared<World>,
    cpu: usize,
    work: impl FnOnce(&World) -> T + 'static,
) -> thread::JoinHandle<T> {
    let world = world.clone();
    thread::spawn(move || {
        sections::run_on(cpu);
        work(&world)
    })
}

/// A drain beside `work`, which must end with each round in one place.
fn beside_a_drain(
    preemptions: usize,
    rounds: usize,
    work: impl Fn(&World) -> Taken + Copy + Sync + Send + 'static,
) {
    each_mode(preemptions, move |mode| {
        let world = Shared::new(World::stocked(mode, rounds));
        let other = spawn(&world, 0, work);
        sections::run_on(1);
        let (_, drained) = world.drain();
        let other = other.join().unwrap();
        assert!(world.cpu_layer.is_live(), "the drain is over");
        world.check([drained, other]);
    });
}

#[test]
fn cpu_layer_rounds_go_and_come_beside_a_drain() {
    beside_a_drain(3, 2, |world| {
        let mut mine = world.pop();
        mine.extend(world.push(1));
        mine
    });
}

#[test]
fn cpu_layer_a_thread_moves_beside_a_drain() {
    beside_a_drain(3, 2, |world| {
        let mine = world.pop();
        sections::run_on(1);
        [mine, world.replace(1), world.pop()].concat()
    });
}

#[test]
fn cpu_layer_magazines_are_exchanged_beside_a_drain() {
    beside_a_drain(3, 2, |world| [world.replace(1), world.pop()].concat());
}

/// A place that was emptied meanwhile has no room, whatever capacity its CPU sets.
#[test]
fn cpu_layer_room_is_made_beside_a_drain() {
    beside_a_drain(3, 2, |world| {
        let capacity = world.cpu_layer.set_capacity(1);
        let full = world.left(world.cpu_layer.replace_full(world.magazine(None)));
        assert!(capacity || full.is_empty(), "it was taken");
        [full, world.push(1)].concat()
    });
}

/// A round that one thread gave is another's on the same CPU.
#[test]
fn cpu_layer_two_threads_of_a_cpu_share_its_slot() {
    each_mode(3, |mode| {
        let world = Shared::new(World::stocked(mode, 3));
        let other = spawn(&world, 0, |world| [world.push(1), world.pop()].concat());
        let mine = [world.push(2), world.pop()].concat();
        let other = other.join().unwrap();
        world.check([mine, other]);
        assert!(world.cpu_layer.counts().1 <= 2, "no more than were given");
    });
}

#[test]
fn cpu_layer_of_two_who_drain_one_is_refused() {
    each_mode(3, |mode| {
        let world = Shared::new(World::stocked(mode, 1));
        let other = spawn(&world, 1, World::drain);
        let (mine, my_rounds) = world.drain();
        let (others, other_rounds) = other.join().unwrap();
        assert!(mine || others, "both refused");
        assert!(world.cpu_layer.is_live(), "stays disabled");
        world.check([my_rounds, other_rounds]);
    });
}

#[test]
fn cpu_layer_two_drain_while_rounds_come() {
    each_mode(2, |mode| {
        let world = Shared::new(World::stocked(mode, 2));
        let other = spawn(&world, 1, World::drain);
        let third = spawn(&world, 0, |world| world.replace(1));
        let (_, mine) = world.drain();
        let rounds = [mine, other.join().unwrap().1, third.join().unwrap()];
        assert!(world.cpu_layer.is_live(), "stays disabled");
        world.check(rounds);
    });
}

/// Two threads bring the first magazine: one of them makes the slots.
#[test]
fn cpu_layer_two_make_it_live() {
    each_mode(3, |mode| {
        let system = Arc::new(HeapSystem::default());
        let world = Shared::new(World::over(system.clone(), mode, 2, 2));
        let other = spawn(&world, 1, |world| world.replace(1));
        let mine = world.replace(0);
        let other = other.join().unwrap();
        assert!(world.cpu_layer.is_live(), "stays disabled");
        assert_eq!(system.reserved(), 1, "of two regions one stays");
        world.check([mine, other]);
        drop(world);
        assert_eq!(system.reserved(), 0);
    });
}

/// A drain of a CPU layer without slots may end before it sees them: then the CPU layer stays disabled until a thread heals it.
#[test]
fn cpu_layer_is_made_live_beside_a_drain() {
    each_mode(3, |mode| {
        let world = Shared::new(World::new(mode, 2, 2));
        let other = spawn(&world, 0, |world| world.replace(0));
        sections::run_on(1);
        let (_, drained) = world.drain();
        let other = other.join().unwrap();
        let more = world.replace(1);
        assert!(world.cpu_layer.is_live(), "stays disabled");
        world.check([drained, other, more]);
    });
}

#[test]
fn cpu_layer_heals_beside_a_drain() {
    each_mode(3, |mode| {
        let world = Shared::new(World::stocked(mode, 2));
        let other = spawn(&world, 0, |world| {
            world.cpu_layer.heal();
            world.push(1)
        });
        sections::run_on(1);
        let (_, drained) = world.drain();
        let other = other.join().unwrap();
        assert!(world.cpu_layer.is_live(), "stays disabled");
        world.check([drained, other]);
    });
}

/// The child of a fork in the middle of a drain: threads that it does not have disabled the CPU layer and hold a slot's lock.
#[test]
fn cpu_layer_of_a_forks_child_is_taken_over_once() {
    each_mode(2, |mode| {
        let world = World::stocked(mode, 3);
        let parents = fork::generation() + 1;
        world.cpu_layer.draining.store(parents, Ordering::Relaxed);
        world.cpu_layer.gate().store(disabled(), Ordering::Relaxed);
        // SAFETY: a live slot.
        let lock = unsafe { &(*world.cpu_layer.slot(0)).beside.lock };
        lock.store(parents, Ordering::Relaxed);
        let world = Shared::new(world);
        let other = spawn(&world, 0, |world| [world.replace(1), world.pop()].concat());
        let mine = world.replace(2);
        let (_, drained) = world.drain();
        let other = other.join().unwrap();
        assert!(world.cpu_layer.is_live(), "stays disabled");
        world.check([mine, drained, other]);
    });
}

/// Closes beside `work`: what is in the CPU layer comes out, and nothing is left there.
fn closes_beside(rounds: usize, work: impl Fn(&World) -> Taken + Copy + Sync + Send + 'static) {
    each_mode(3, move |mode| {
        let world = Shared::new(World::stocked(mode, rounds));
        let other = spawn(&world, 0, work);
        sections::run_on(1);
        let (all, mut closed) = world.close();
        let other = other.join().unwrap();
        assert!(!world.cpu_layer.is_live() && world.cpu_layer.is_closed());
        let refused = world.cpu_layer.replace_empty(world.magazine(None));
        assert!(matches!(refused, Err(NotExchanged::Disabled(_))));
        world.cpu_layer.heal();
        assert!(!world.cpu_layer.is_live(), "closed for good");
        if !all {
            // The other thread held a slot's lock: only in locked mode, since under loom the closing thread does not wait long.
            assert!(matches!(mode, Mode::Locked(_)));
            closed.extend(world.on_slots());
        }
        world.check([closed, other]);
    });
}

impl World {
    /// What lies in the slots of a CPU layer that no thread uses any more.
    fn on_slots(&self) -> Taken {
        let tops = (0..2).flat_map(|i| {
            // SAFETY: a live slot.
            unsafe { (*self.cpu_layer.slot(i)).body.clear() }
        });
        // SAFETY: just taken out of the slot that owned it.
        let magazines = tops.filter_map(|top| unsafe { Magazine::from_top(top) });
        magazines
            .flat_map(|m| self.taken(m.rounds().iter().copied()))
            .collect()
    }
}

#[test]
fn cpu_layer_closes_beside_a_drain() {
    closes_beside(1, |world| world.drain().1);
}

#[test]
fn cpu_layer_closes_beside_an_exchange() {
    closes_beside(2, |world| world.replace(1));
}

#[test]
fn cpu_layer_closes_beside_rounds() {
    closes_beside(2, |world| [world.pop(), world.push(1)].concat());
}

#[test]
fn cpu_layer_closes_beside_who_heals() {
    closes_beside(1, |world| {
        world.cpu_layer.heal();
        world.pop()
    });
}

/// A CPU that the machine hides: what was put there before it was closed is found.
#[test]
fn cpu_layer_a_hidden_cpu_turns_up_beside_a_close() {
    explore(3, || {
        let world = World::new(per_cpu(), 1, 2);
        world.cpu_layer.add(0, world.magazine(Some(0))).unwrap();
        let world = Shared::new(world);
        let other = spawn(&world, 1, |world| world.replace(1));
        let (all, closed) = world.close();
        assert!(all);
        world.check([closed, other.join().unwrap()]);
    });
}

/// Without the barrier a section under way may commit, so nothing is taken.
#[test]
fn cpu_layer_nothing_is_taken_without_the_barrier() {
    explore(3, || {
        let world = Shared::new(World::stocked(per_cpu(), 2));
        let other = spawn(&world, 1, |world| {
            sections::refuse_barrier();
            world.drain()
        });
        let mine = [world.pop(), world.push(1)].concat();
        let (done, drained) = other.join().unwrap();
        assert!(!done && drained.is_empty());
        assert!(world.cpu_layer.is_live(), "stays disabled");
        world.check([mine]);
    });
}
