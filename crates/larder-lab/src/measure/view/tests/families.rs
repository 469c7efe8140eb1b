//! Families in simulation: seeded, so a failure is a change of the code and not bad luck.

use super::*;

/// Normal enough: the sum of twelve uniform numbers of a small generator.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// A run of contestants with these costs beside the reference and its twin, which cost 1.
fn simulated(noise: &mut Noise, costs: &[f64], rounds: u32, sd: f64) -> (RunRecord, Vec<Cell>) {
    let cells: Vec<Cell> = (0..costs.len())
        .map(|i| cell("own", 2 + i as i64))
        .collect();
    let base = cell("base", 1);
    let mut samples = Vec::new();
    for round in 0..rounds {
        let all = [(base.clone(), 1.0), (base.as_twin(), 1.0)];
        let own = cells.iter().cloned().zip(costs.iter().copied());
        for (cell, cost) in all.into_iter().chain(own) {
            samples.push((cell, round, 10.0 * cost * (sd * noise.normal()).exp()));
        }
    }
    (record(&samples), cells)
}

/// How many of the family are called faster, and how many slower.
fn called(run: &RunRecord, cells: &[Cell]) -> (usize, usize) {
    let base = cell("base", 1);
    let members: Vec<(&str, &Cell, &Cell)> = cells.iter().map(|c| ("g", c, &base)).collect();
    let all = RunView::new(run).family(&members, "ns", Better::Lower);
    let count = |word| all.iter().filter(|c| c.verdict == word).count();
    (count(Verdict::Faster), count(Verdict::Slower))
}

#[test]
fn of_equal_contestants_a_family_seldom_calls_one_different() {
    let mut noise = Noise(1);
    for (members, trials) in [(40, 400), (5, 1000)] {
        // Wide enough not to be the same within 5 %.
        let wrong = (0..trials)
            .filter(|_| {
                let (run, cells) = simulated(&mut noise, &vec![1.0; members], 6, 0.1);
                called(&run, &cells) != (0, 0)
            })
            .count();
        assert!(
            wrong * 20 < trials,
            "{wrong} of {trials}, {members} members"
        );
    }
}

#[test]
fn a_difference_of_a_fifth_is_found_in_six_rounds() {
    let mut noise = Noise(2);
    let trials = 200;
    // One of five findings, and each row of a table of 40.
    for (costs, least) in [(vec![1.0, 1.2, 1.0, 1.0, 1.0], 1), (vec![1.2; 40], 38)] {
        let found = (0..trials)
            .filter(|_| {
                let (run, cells) = simulated(&mut noise, &costs, 6, 0.02);
                let (faster, slower) = called(&run, &cells);
                faster == 0 && slower >= least
            })
            .count();
        assert!(
            found * 100 >= trials * 95,
            "{found} of {trials}: {}",
            costs.len()
        );
    }
}

#[test]
fn a_table_whose_mean_does_not_differ_stays_closed_and_same_stays() {
    let mut noise = Noise(3);
    // Half of the rows are better by as much as the others are worse.
    let mut costs = vec![1.25; 10];
    costs.extend([0.8; 10]);
    let (run, cells) = simulated(&mut noise, &costs, 10, 0.02);
    assert_eq!(called(&run, &cells), (0, 0));
    // The same rows as two questions of their own are open.
    assert_eq!(called(&run, &cells[..10]), (0, 10));
    assert_eq!(called(&run, &cells[10..]), (10, 0));
    let (run, cells) = simulated(&mut noise, &[1.0; 12], 10, 0.002);
    let base = cell("base", 1);
    let members: Vec<(&str, &Cell, &Cell)> = cells.iter().map(|c| ("g", c, &base)).collect();
    for c in RunView::new(&run).family(&members, "ns", Better::Lower) {
        assert_eq!(c.verdict, Verdict::Same { within: 0.05 });
    }
}
