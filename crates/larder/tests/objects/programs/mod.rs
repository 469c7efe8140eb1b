//! Programs made of bytes over caches of objects and over heaps, each against its model: a short run of what the fuzz targets
//! `objects` and `heap` do for long.

mod bytes;
mod heap;
mod objects;

use crate::common::{Rng, modes};
use larder::os::rseq::Mode;

/// `LARDER_STRESS_SECONDS` makes more of them.
fn programs() -> usize {
    let seconds = std::env::var("LARDER_STRESS_SECONDS");
    80 * seconds.map_or(1, |s| s.parse().unwrap_or(1))
}

fn play_all(seed: u64, play: fn(&[u8], Mode)) {
    let mut rng = Rng(seed);
    for number in 0..programs() {
        let length = 20 + rng.below(2000);
        let mut program: Vec<u8> = (0..length).map(|_| rng.below(256) as u8).collect();
        // Half of them without refusals, which would end many programs early.
        program[0] = program[0] & !2 | (number % 2 * 2) as u8;
        for mode in modes() {
            play(&program, mode);
        }
    }
}

#[test]
fn heaps_are_their_model() {
    play_all(1, heap::play);
}

#[test]
fn caches_are_their_model() {
    play_all(2, objects::play);
}
