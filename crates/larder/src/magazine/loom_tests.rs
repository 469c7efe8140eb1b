//! The depot under loom's model checker: `RUSTFLAGS="--cfg loom" cargo test -p larder --lib --release loom`.
//!
//! The magazines themselves lie in memory that loom does not see; that the stacks hand them over is checked by payload
//! cells, one for each round, which only the owner of the magazine with that round may touch.

use loom::cell::UnsafeCell;
use loom::sync::Arc;

use super::depot::Depot;
use super::magazines::{Magazine, Magazines};
use crate::os::Linux;

struct World {
    depot: Depot,
    /// How often each round's owner touched it.
    payload: Vec<UnsafeCell<u32>>,
}

// SAFETY: the cells are the subject of the test: loom reports accesses that nothing orders.
unsafe impl Sync for World {}

impl World {
    fn new(rounds: usize) -> Arc<Self> {
        Arc::new(Self {
            depot: Depot::new(
                std::sync::Arc::new(Magazines::new(std::sync::Arc::new(Linux))),
                1,
                1,
            ),
            payload: (0..rounds).map(|_| UnsafeCell::new(0)).collect(),
        })
    }

    /// Puts a magazine with one round into the depot, after touching what the round stands for.
    fn give(&self, mut magazine: Magazine, round: usize) {
        self.touch(round);
        magazine.push(round).unwrap();
        self.depot.put(magazine);
    }

    /// Takes a full magazine if there is one: its round is ours now.
    fn take(&self) -> Option<(Magazine, usize)> {
        let mut magazine = self.depot.take_full()?;
        let round = magazine.pop().expect("a full magazine has a round");
        self.touch(round);
        Some((magazine, round))
    }

    fn touch(&self, round: usize) {
        // SAFETY: the round is ours; loom checks that.
        self.payload[round].with_mut(|p| unsafe { *p += 1 });
    }
}

fn explore(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(f);
}

/// One thread brings a magazine while another takes one and gives the empty one back.
#[test]
fn loom_a_magazine_is_handed_over_whole() {
    explore(6, || {
        let world = World::new(2);
        world.give(world.depot.take_empty().unwrap(), 0);
        let other = {
            let world = world.clone();
            loom::thread::spawn(move || {
                let (magazine, round) = world.take().expect("there is one from the start");
                world.depot.put(magazine);
                round
            })
        };
        world.give(world.depot.take_empty().unwrap(), 1);
        let first = other.join().unwrap();
        let (_, second) = world.take().expect("two were given and one was taken");
        assert_eq!(first + second, 1, "one of each");
        assert!(world.take().is_none());
    });
}

/// Two threads exchange: each takes a full magazine and brings it back full.
#[test]
fn loom_magazines_are_exchanged_and_none_is_lost() {
    explore(6, || {
        let world = World::new(2);
        for round in 0..2 {
            world.give(world.depot.take_empty().unwrap(), round);
        }
        let exchange = |world: &World| {
            if let Some((magazine, round)) = world.take() {
                world.give(magazine, round);
            }
        };
        let other = {
            let world = world.clone();
            loom::thread::spawn(move || exchange(&world))
        };
        exchange(&world);
        other.join().unwrap();
        let mut left: Vec<_> = std::iter::from_fn(|| world.take())
            .map(|(_, r)| r)
            .collect();
        left.sort_unstable();
        assert_eq!(left, [0, 1]);
        assert_eq!(world.depot.made(), 2);
        assert_eq!(world.depot.full(), 0);
    });
}

/// Owners that go leave their magazines in one place while others that come look there.
#[test]
fn loom_what_an_owner_leaves_goes_to_one_other() {
    explore(6, || {
        let world = World::new(3);
        let leave = |world: &World, round| {
            let mut magazine = world.depot.take_empty().unwrap();
            world.touch(round);
            magazine.push(round).unwrap();
            world.depot.leave(magazine);
        };
        leave(&world, 0);
        let come_and_go = move |world: &World, own| {
            let mut magazine = world.depot.take_for_owner()?;
            let round = magazine.pop().expect("what is left has a round");
            world.touch(round);
            leave(world, own);
            Some(round)
        };
        let other = {
            let world = world.clone();
            loom::thread::spawn(move || come_and_go(&world, 1))
        };
        let mine = come_and_go(&world, 2);
        let theirs = other.join().unwrap();
        world.depot.gather_left();
        let mut all: Vec<_> = std::iter::from_fn(|| world.take())
            .map(|(_, round)| round)
            .chain(mine)
            .chain(theirs)
            .collect();
        all.sort_unstable();
        let left = [true, theirs.is_some(), mine.is_some()];
        let expected: Vec<usize> = (0..3).filter(|&round| left[round]).collect();
        assert_eq!(all, expected, "each once");
    });
}
