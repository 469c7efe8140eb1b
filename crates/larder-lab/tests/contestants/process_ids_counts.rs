//! Franke's counts, to the last one, and that the shortcut decides as the walk does.

use larder_lab::contestants::getpid::harness::{
    Batch, Harness, POSTED, Row, Series, batches, play,
};
use larder_lab::contestants::getpid::{
    Algo0, Bound, GetPid, Mask, PID_MAX, Packed, Plain, Start, Tasks, algo_1, algo_2,
};
use larder_lab::published;

#[test]
fn franke_ran_five_batches() {
    let found: Vec<(u32, u32, usize)> = batches()
        .iter()
        .map(|b| (b.tasks[0], b.deletes, b.tasks.len()))
        .collect();
    assert_eq!(
        found,
        [
            (10, 10, 8),
            (100, 50, 17),
            (1000, 1000, 30),
            (32_000, 50, 15),
            (32_751, 1, 17)
        ]
    );
}

#[test]
fn every_count_of_both_tables_comes_out_as_printed() {
    let (mut same, mut all) = (0, 0);
    for (name, series) in POSTED {
        for batch in batches() {
            for row in play(series, &batch, 1) {
                let known = published::franke_getpid()
                    .iter()
                    .find(|r| r.tasks == row.tasks)
                    .unwrap();
                let bounded = published::franke_limit256()
                    .iter()
                    .find(|r| r.tasks == row.tasks)
                    .unwrap();
                assert_eq!(
                    row.allocations,
                    u64::from(known.allocations),
                    "T at {}",
                    row.tasks
                );
                let printed = match name {
                    "algo-0" => known.searches_algo0,
                    "algo-1" => known.searches_algo1,
                    "algo-2" => known.searches_algo2,
                    _ => bounded.searches_algo2_256,
                };
                all += 1;
                if row.searches == u64::from(printed) {
                    same += 1;
                } else {
                    println!(
                        "{name} at {}: {} for {printed} as printed",
                        row.tasks, row.searches
                    );
                }
            }
        }
    }
    assert_eq!((same, all), (4 * 87, 4 * 87));
}

/// The real algorithms over a real list, with the same deaths.
fn walked(mut pids: impl GetPid, tasks: u32, deletes: u32, rounds: u32) -> (Vec<u32>, u64) {
    let mut harness = Harness::new(Series::List, 3, true);
    harness.thin_to(tasks);
    let mut list = Tasks::<Packed>::new(PID_MAX as usize);
    for id in harness.in_list_order() {
        list.add(id);
    }
    let mut given = Vec::new();
    for _ in 0..rounds {
        let before: Vec<u32> = (1..PID_MAX).filter(|id| harness.lives(*id)).collect();
        let died = harness.kill(deletes);
        for id in before {
            if !harness.lives(id) {
                list.remove(id);
            }
        }
        for _ in 0..died {
            let id = pids.get(&list).expect("a free id");
            assert!(list.add(id));
            harness.add(id);
            given.push(id);
        }
    }
    (given, pids.counts().searches)
}

fn shadowed(series: Series, tasks: u32, deletes: u32, rounds: u32) -> (Vec<u32>, u64) {
    let mut harness = Harness::new(series, 3, true);
    harness.thin_to(tasks);
    let before = harness.searches();
    let mut given = Vec::new();
    for _ in 0..rounds {
        for _ in 0..harness.kill(deletes) {
            let id = harness.get().expect("a free id");
            harness.add(id);
            given.push(id);
        }
    }
    (given, harness.searches() - before)
}

#[test]
fn the_set_decides_as_the_walk_does() {
    for tasks in [500, 8000, 22_000, 30_000] {
        let shadow = shadowed(Series::List, tasks, 60, 3);
        assert_eq!(walked(Algo0::new(1, 1), tasks, 60, 3), shadow, "{tasks}");
        assert_eq!(walked(algo_1::<Plain>(), tasks, 60, 3), shadow, "{tasks}");
    }
    let text = Series::Sweep(Start::Last, true, Mask::Meant, Bound::None);
    for tasks in [500, 22_000] {
        // The shadow's map is full of stale marks from filling the space; the first search clears it.
        assert_eq!(
            walked(algo_2::<Plain>(), tasks, 60, 3),
            shadowed(text, tasks, 60, 3),
            "{tasks}"
        );
    }
}

#[test]
fn averages_over_seeds_agree_with_the_printed_within_five_percent() {
    let batch = Batch {
        tasks: vec![8000, 16_000, 22_000, 30_000],
        deletes: 1000,
    };
    for (name, series) in [POSTED[0], POSTED[2]] {
        let runs: Vec<Vec<Row>> = (2..6).map(|seed| play(series, &batch, seed)).collect();
        for (i, tasks) in batch.tasks.iter().enumerate() {
            let mean = runs.iter().map(|rows| rows[i].searches as f64).sum::<f64>() / 4.0;
            let known = published::franke_getpid()
                .iter()
                .find(|r| r.tasks == *tasks)
                .unwrap();
            let known = f64::from(if name == "algo-0" {
                known.searches_algo0
            } else {
                known.searches_algo2
            });
            assert!(
                (mean / known - 1.0).abs() < 0.05,
                "{name} at {tasks}: {mean} for {known}"
            );
        }
    }
}
