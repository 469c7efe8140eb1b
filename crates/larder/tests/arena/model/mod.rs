//! Operation by operation against a naive model, under every policy, with and without caches and a source.

mod source;
mod wish;
mod world;

use self::world::{Step, World};
use crate::common::modes;
use proptest::prelude::*;

fn play(setup: [u8; 5], steps: &[Step]) {
    for mode in modes() {
        let mut world = World::new(setup, mode);
        // Without a span there is little to see, and with a small one it is often full.
        world.step((13, 0, if setup[3] & 4 == 0 { 300 } else { 40 }, 0));
        for &step in steps {
            world.step(step);
        }
        world.finish();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn an_arena_is_its_model(
        setup in any::<[u8; 5]>(),
        steps in prop::collection::vec(any::<Step>(), 0..120),
    ) {
        play(setup, &steps);
    }
}

/// Every combination of quantum, policy, caches, source, place and room gets a long run of its own.
#[test]
fn all_setups_are_played() {
    let mut rng = crate::common::Rng(7);
    for n in 0..4 * 3 * 2 * 2 * 3 * 2_u32 {
        let digit = |base: u32, below: u32| (n / below % base) as u8;
        let setup = [
            digit(4, 1),
            digit(3, 4),
            3 * digit(2, 12),
            digit(2, 24) + 4 * digit(2, 144),
            digit(3, 48),
        ];
        let steps: Vec<Step> = (0..150)
            .map(|_| {
                let mut number = || rng.below(1 << 16) as u16;
                ((number() >> 8) as u8, number(), number(), number())
            })
            .collect();
        play(setup, &steps);
    }
}
