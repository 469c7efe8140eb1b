//! Caches of objects and heaps, played against the models of the library's own tests.

use larder::os::rseq::mode;

#[path = "../../crates/larder/tests/objects/programs/bytes.rs"]
mod bytes;
#[path = "../../crates/larder/tests/objects/programs/heap.rs"]
mod heap;
#[path = "../../crates/larder/tests/objects/programs/objects.rs"]
#[allow(clippy::module_inception)]
mod objects;

/// Plays a program over caches; panics where they and the model disagree.
pub fn play_objects(program: &[u8]) {
    objects::play(program, mode());
}

/// Plays a program over heaps.
pub fn play_heap(program: &[u8]) {
    heap::play(program, mode());
}
