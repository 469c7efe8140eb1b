//! The table under every order of events: `RUSTFLAGS="--cfg loom" cargo test -p larder --lib --target-dir target/loom table::`.
//!
//! Each number and each block has a cell that only its owner may touch: the thread that took the number; the thread
//! that visits the cache or ends it.

use loom::cell::UnsafeCell;
use loom::sync::Arc as Shared;
use loom::thread;

use super::*;
use crate::os::Linux;

/// Blocks of the tests; 0 is none.
const BLOCKS: usize = 3;

struct World {
    table: Table,
    /// The thread that has a number changes its cell.
    numbers: [UnsafeCell<u32>; 4],
    /// A thread that visits a block looks at its cell, and the thread that ends the block says so there.
    ended: [UnsafeCell<u32>; BLOCKS],
}

// SAFETY: the cells are the subject of the tests: loom reports accesses that nothing orders.
unsafe impl Sync for World {}

impl World {
    fn new() -> Self {
        Self {
            table: Table::new(Arc::new(Linux)).unwrap(),
            numbers: core::array::from_fn(|_| UnsafeCell::new(0)),
            ended: core::array::from_fn(|_| UnsafeCell::new(0)),
        }
    }

    /// A table with one cache, in block 1.
    fn with_a_cache() -> (Self, u16) {
        let world = Self::new();
        let number = world.take();
        world.table.fill(number, 1);
        (world, number)
    }

    fn take(&self) -> u16 {
        let number = self.table.take().expect("there are more");
        self.touch(number);
        number
    }

    fn give_back(&self, number: u16) {
        self.touch(number);
        self.table.give_back(number);
    }

    fn touch(&self, number: u16) {
        // SAFETY: the number is this thread's; loom checks that.
        self.numbers[number as usize].with_mut(|n| unsafe { *n += 1 });
    }

    fn end(&self, block: BlockNumber) {
        // SAFETY: no other thread knows the block any more; loom checks that.
        self.ended[block as usize].with_mut(|n| unsafe { *n += 1 });
    }

    /// Visits the first cache, and calls `within` there.
    fn visit(&self, within: impl FnOnce()) -> Option<u16> {
        self.table.visit(
            0,
            |block| {
                within();
                // SAFETY: no thread ends what is visited; loom checks that.
                self.ended[block as usize].with(|n| assert_eq!(unsafe { *n }, 0));
            },
            |block| self.end(block),
        )
    }

    /// Leaves a cache in `block`, and ends it if that is left to the caller.
    fn leave(&self, number: u16, block: BlockNumber) {
        if self.table.leave(number) {
            self.end(block);
        }
    }

    /// Called when no other thread is at work: no visitor is counted, and of these blocks each was ended once.
    fn check(&self, ended: &[usize]) {
        for n in 1..self.table.top.load(Ordering::Relaxed) {
            assert_eq!(get(&self.table.entry(n).visitors), 0);
        }
        for (block, cell) in self.ended.iter().enumerate() {
            // SAFETY: all threads are done.
            let times = cell.with(|n| unsafe { *n });
            assert_eq!(times, u32::from(ended.contains(&block)), "block {block}");
        }
    }
}

fn explore(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(test);
}

fn spawn<T: 'static>(
    world: &Shared<World>,
    work: impl FnOnce(&World) -> T + 'static,
) -> thread::JoinHandle<T> {
    let world = world.clone();
    thread::spawn(move || work(&world))
}

#[test]
fn table_no_number_has_two_owners() {
    explore(3, || {
        let world = Shared::new(World::new());
        let again = |world: &World| {
            let number = world.take();
            world.give_back(number);
            world.take()
        };
        let other = spawn(&world, again);
        let mine = again(&world);
        let others = other.join().unwrap();
        assert_ne!(mine, others);
        assert!(mine.max(others) <= 2, "the lowest that is free");
    });
}

/// A thread that leaves a cache from outside waits for the visitors.
#[test]
fn table_a_cache_is_left_beside_a_visit() {
    explore(3, || {
        let (world, number) = World::with_a_cache();
        let world = Shared::new(world);
        let other = spawn(&world, |world| world.visit(|| ()));
        world.leave(number, 1);
        other.join().unwrap();
        assert_eq!(world.visit(|| ()), None);
        world.check(&[1]);
    });
}

/// A thread that leaves a cache within a visit does not wait: the last of two visitors ends the cache.
#[test]
fn table_the_last_of_two_visitors_ends_what_one_left() {
    explore(3, || {
        let (world, number) = World::with_a_cache();
        let world = Shared::new(world);
        let other = spawn(&world, |world| world.visit(|| ()));
        world.visit(|| world.leave(number, 1));
        other.join().unwrap();
        world.check(&[1]);
    });
}

/// A visitor of one cache leaves another, which is visited meanwhile.
#[test]
fn table_a_visitor_of_another_leaves_a_cache() {
    explore(2, || {
        let (world, number) = World::with_a_cache();
        let other = world.take();
        world.table.fill(other, 2);
        let world = Shared::new(world);
        let visitor = spawn(&world, |world| world.visit(|| ()));
        world
            .table
            .visit(other, |_| world.leave(number, 1), |block| world.end(block));
        visitor.join().unwrap();
        world.check(&[1]);
    });
}

/// A number that was left and is taken again leads to its new cache only.
#[test]
fn table_a_number_is_used_again_beside_visits() {
    explore(3, || {
        let (world, number) = World::with_a_cache();
        let world = Shared::new(world);
        let other = spawn(&world, |world| {
            world.visit(|| ());
            world.visit(|| ());
        });
        world.leave(number, 1);
        world.give_back(number);
        let again = world.take();
        world.table.fill(again, 2);
        other.join().unwrap();
        assert_eq!(world.visit(|| ()), Some(again));
        world.leave(again, 2);
        world.check(&[1, 2]);
    });
}

/// What `filled` says to a thread that holds the lock stays so.
#[test]
fn table_who_holds_the_lock_knows_all_caches() {
    explore(3, || {
        let (world, number) = World::with_a_cache();
        let world = Shared::new(world);
        let other = spawn(&world, |world| world.visit(|| ()));
        let forker = spawn(&world, |world| {
            world.table.raw_lock().lock();
            let caches: Vec<_> = world.table.filled(1).collect();
            for &(_, block) in &caches {
                // SAFETY: a cache of the table, whose lock is held, has not ended.
                world.ended[block as usize].with(|n| assert_eq!(unsafe { *n }, 0));
            }
            assert!(caches.into_iter().eq(world.table.filled(1)));
            world.table.raw_lock().unlock();
        });
        world.leave(number, 1);
        other.join().unwrap();
        forker.join().unwrap();
        world.check(&[1]);
    });
}
