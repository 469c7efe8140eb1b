//! Arenas played against the naive model of the library's own tests.

use arbitrary::Arbitrary;

use self::model::{Step, World};

#[path = "../../crates/larder/tests/arena/model/world.rs"]
mod model;
#[path = "../../crates/larder/tests/arena/model/source.rs"]
mod source;
#[path = "../../crates/larder/tests/arena/model/wish.rs"]
mod wish;

/// Most operations of one case, to keep it fast.
const MOST_STEPS: usize = 300;

/// An arena and what is done with it.
#[derive(Debug, Arbitrary)]
pub struct Case {
    setup: [u8; 5],
    steps: Vec<Step>,
}

/// Plays a case; panics where arena and model disagree.
pub fn play(case: Case) {
    let mut world = World::new(case.setup, larder::os::rseq::mode());
    for step in case.steps.into_iter().take(MOST_STEPS) {
        world.step(step);
    }
    world.finish();
}
