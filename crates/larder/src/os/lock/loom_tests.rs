//! The lock under every order of events, over loom's model of a futex:
//! `RUSTFLAGS="--cfg loom" cargo test -p larder --lib --target-dir target/loom lock::`.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use super::{Modelled, RawLock};

#[derive(Default)]
struct World {
    lock: RawLock<Modelled>,
    /// How often the threads that held the lock touched it.
    value: UnsafeCell<u32>,
}

// SAFETY: the cell is the subject of the test: loom reports accesses that nothing orders.
unsafe impl Sync for World {}

impl World {
    fn touch(&self) {
        // SAFETY: the lock is held; loom checks that.
        self.value.with_mut(|v| unsafe { *v += 1 });
    }

    fn add(&self) {
        self.lock.lock();
        self.touch();
        self.lock.unlock();
    }

    fn try_add(&self) -> u32 {
        if !self.lock.try_lock() {
            return 0;
        }
        self.touch();
        self.lock.unlock();
        1
    }
}

/// As many threads as there are pieces of work; each says how often it got in, and the sum is what the lock protected.
fn explore<const N: usize>(preemptions: usize, work: [fn(&World) -> u32; N]) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let world = Arc::new(World::default());
        let others: Vec<_> = work[1..]
            .iter()
            .map(|&work| {
                let world = world.clone();
                thread::spawn(move || work(&world))
            })
            .collect();
        let mine = work[0](&world);
        let all: u32 = others.into_iter().map(|other| other.join().unwrap()).sum();
        assert_eq!(world.try_add(), 1, "it is free");
        // SAFETY: all threads are done.
        world
            .value
            .with(|v| assert_eq!(unsafe { *v }, mine + all + 1));
    });
}

fn once(world: &World) -> u32 {
    world.add();
    1
}

fn twice(world: &World) -> u32 {
    once(world) + once(world)
}

#[test]
fn lock_two_take_turns() {
    explore(4, [twice, twice]);
}

/// Three threads: a thread that was woken may find others asleep, which it must wake in turn.
#[test]
fn lock_three_take_turns_and_none_sleeps_for_ever() {
    explore(3, [once, once, once]);
}

#[test]
fn lock_who_only_tries_gets_it_or_not() {
    explore(3, [once, once, World::try_add]);
}
