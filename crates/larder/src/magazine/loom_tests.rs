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
