//! The random rule is uniform over what is free, however full the range is.

use larder::ids::{IdError, Ids, rule::Random};

/// Chi-square over what `ids` hands out when `free` of its identifiers are free, each handed out and freed again.
fn chi_square(ids: &mut Ids<Random>, free: &[u64], draws: u64) -> f64 {
    let mut counts = vec![0u64; free.len()];
    for _ in 0..draws {
        let id = ids.alloc().unwrap();
        counts[free.binary_search(&id).unwrap()] += 1;
        ids.free(id).unwrap();
    }
    let expect = draws as f64 / free.len() as f64;
    let square = |&count: &u64| (count as f64 - expect).powi(2) / expect;
    counts.iter().map(square).sum()
}

/// The seed is fixed, so the values are; beyond four standard deviations of the distribution something is wrong.
fn uniform(ids: &mut Ids<Random>, free: &[u64]) {
    let chi = chi_square(ids, free, 200 * free.len() as u64);
    let freedom = free.len() as f64 - 1.0;
    let bound = 4.0 * (2.0 * freedom).sqrt();
    assert!((chi - freedom).abs() < bound, "{chi} at {freedom}");
}

#[test]
fn the_system_gives_another_seed_each_time() {
    let seeds = [(); 3].map(|()| Random::from_system().unwrap());
    assert!(seeds[0] != seeds[1] && seeds[1] != seeds[2] && seeds[0] != seeds[2]);
    assert!(seeds.iter().all(|seed| *seed != Random::new([0; 32])));
    let firsts = seeds.map(|seed| Ids::new(0..=u64::MAX >> 1, seed).unwrap().alloc().unwrap());
    assert!(firsts[0] != firsts[1] || firsts[1] != firsts[2]);
}

#[test]
fn empty_half_full_and_nearly_full() {
    for step in [1, 2, 50] {
        let mut ids = Ids::new(1000u64..3000, Random::new([step as u8; 32])).unwrap();
        let free: Vec<u64> = (1000..3000).step_by(step).collect();
        for id in 1000..3000 {
            if free.binary_search(&id).is_err() {
                ids.alloc_at(id).unwrap();
            }
        }
        uniform(&mut ids, &free);
    }
}

#[test]
fn nearly_full_and_wide() {
    // A few free ones, spread over a wide range: trying does not find them, counting does.
    for last in [u64::from(u32::MAX), 1 << 48] {
        let mut ids = Ids::new(0..=last, Random::new([9; 32])).unwrap();
        ids.reserve(0..=last).unwrap();
        let mut free: Vec<u64> = (0..60).map(|n| n * n * (last / 3600)).collect();
        free.extend(5_000_000..5_000_040);
        free.sort_unstable();
        ids.free_many(&free).unwrap();
        uniform(&mut ids, &free);
        for _ in &free {
            ids.alloc().unwrap();
        }
        assert!(matches!(ids.alloc(), Err(IdError::Full { .. })));
    }
}

#[test]
fn the_seed_is_the_sequence_and_does_not_show() {
    let draw = |seed| {
        let mut ids = Ids::new(0u64..=u64::MAX, Random::new([seed; 32])).unwrap();
        [
            ids.alloc().unwrap(),
            ids.alloc().unwrap(),
            ids.alloc().unwrap(),
        ]
    };
    assert_eq!(draw(3), draw(3));
    assert_ne!(draw(3), draw(4));
    assert!(!format!("{:?}", Random::new([77; 32])).contains("77"));
}
