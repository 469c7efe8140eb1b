//! The order of a round: random, and the same for the same seed.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::machine::fnv1a;

/// The order in which the `n` cells of a round run: place to cell index.
///
/// It depends on the seed, the group and the round alone, not on what ran before, so a group keeps its orders
/// when another group stops earlier. Each round has a stream of its own in ChaCha8.
#[must_use]
pub fn permutation(seed: u64, group: &str, round: u32, n: usize) -> Vec<usize> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ fnv1a(group.as_bytes()));
    rng.set_stream(u64::from(round));
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(&mut rng);
    order
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_order_is_a_permutation_and_repeats_with_its_seed() {
        for round in 0..50 {
            let order = permutation(7, "g", round, 9);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..9).collect::<Vec<_>>());
            assert_eq!(order, permutation(7, "g", round, 9));
        }
    }

    #[test]
    fn orders_differ_by_round_seed_and_group() {
        let orders: HashSet<Vec<usize>> = (0..40).map(|r| permutation(7, "g", r, 9)).collect();
        assert!(orders.len() > 35, "only {} different orders", orders.len());
        assert_ne!(permutation(7, "g", 0, 20), permutation(8, "g", 0, 20));
        assert_ne!(permutation(7, "g", 0, 20), permutation(7, "h", 0, 20));
    }

    #[test]
    fn every_cell_comes_to_every_place() {
        // 400 rounds of 4 cells: each place expects each cell 100 times; 60 is more than four deviations away.
        let mut count = [[0u32; 4]; 4];
        for round in 0..400 {
            for (place, cell) in permutation(3, "g", round, 4).into_iter().enumerate() {
                count[place][cell] += 1;
            }
        }
        for row in count {
            for n in row {
                assert!((60..=140).contains(&n), "{count:?}");
            }
        }
    }
}
