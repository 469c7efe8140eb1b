//! The adaptive form: the list while few tasks live, the sweep above.

use super::bits::{Bits, Plain};
use super::sweep::{Sweep, mark_pass};
use super::{Algo0, Counts, GetPid, Layout, PID_MAX, Tasks, algo_2, compare_pass};

/// Passes over the list that a search of algo-0 takes on average, by number of tasks: looked-at tasks of its searches
/// divided by searches and tasks, in the harness's ten rounds. A property of the workload and not of the machine; a
/// test counts it again.
const PASSES: [(u32, f64); 9] = [
    (1000, 1.0),
    (8000, 1.29),
    (16_000, 1.57),
    (22_000, 1.86),
    (26_000, 2.26),
    (28_000, 2.66),
    (30_000, 3.57),
    (32_000, 7.7),
    (32_700, 76.0),
];

/// Passes per search of algo-0 at a number of tasks, between the counted ones by a straight line.
#[must_use]
pub fn passes_at(tasks: u32) -> f64 {
    let (first, last) = (PASSES[0], PASSES[PASSES.len() - 1]);
    if tasks <= first.0 {
        return first.1;
    }
    PASSES
        .windows(2)
        .find(|two| tasks <= two[1].0)
        .map_or(last.1, |two| {
            let share = f64::from(tasks - two[0].0) / f64::from(two[1].0 - two[0].0);
            two[0].1 + share * (two[1].1 - two[0].1)
        })
}

/// The number of tasks above which one marking pass costs less than a search of algo-0: where its passes per search
/// reach `k`, the cost of a marking pass over that of a comparing pass. 0 when marking always wins.
#[must_use]
pub fn crossover_for(k: f64) -> u32 {
    (0..PID_MAX)
        .step_by(50)
        .find(|tasks| passes_at(*tasks) >= k)
        .unwrap_or(PID_MAX)
}

/// The adaptive `get_pid` that Franke proposed: algo-0 up to a number of tasks, algo-2 beyond. The patch of 2002 says 21000;
/// here the number comes from the machine ([`calibrating`](Adaptive::calibrating)).
#[derive(Debug)]
pub struct Adaptive {
    list: Algo0,
    sweep: Sweep<Plain>,
    threshold: u32,
    calibrates: bool,
}

impl Adaptive {
    /// The sweep above `threshold` tasks.
    #[must_use]
    pub fn new(threshold: u32) -> Self {
        Self {
            list: Algo0::new(1, 1),
            sweep: algo_2(),
            threshold,
            calibrates: false,
        }
    }

    /// The threshold from two passes timed over the tasks of the start.
    #[must_use]
    pub fn calibrating() -> Self {
        Self {
            calibrates: true,
            ..Self::new(PID_MAX)
        }
    }

    /// The number of tasks above which it sweeps.
    #[must_use]
    pub fn threshold(&self) -> u32 {
        self.threshold
    }
}

/// The fastest of nine, in nanoseconds.
fn fastest(mut pass: impl FnMut()) -> f64 {
    let once = |_| {
        let begin = std::time::Instant::now();
        pass();
        begin.elapsed().as_nanos() as f64
    };
    (0..9).map(once).fold(f64::INFINITY, f64::min)
}

impl GetPid for Adaptive {
    fn after(mut self, last: u32, next_safe: u32) -> Self {
        self.list.set_cursor((last, next_safe));
        self.sweep.set_cursor((last, next_safe));
        self
    }

    fn get<L: Layout>(&mut self, tasks: &Tasks<L>) -> Option<u32> {
        if tasks.len() as u64 > u64::from(self.threshold) {
            let pid = self.sweep.get(tasks);
            self.list.set_cursor(self.sweep.cursor());
            pid
        } else {
            let pid = self.list.get(tasks);
            self.sweep.set_cursor(self.list.cursor());
            pid
        }
    }

    /// Each of the two passes is the fastest of nine.
    fn start<L: Layout>(&mut self, tasks: &Tasks<L>) -> anyhow::Result<()> {
        if self.calibrates {
            let mut map = Plain::new();
            let mark = fastest(|| mark_pass(tasks, std::hint::black_box(&mut map)));
            // No task has the id 0, so the pass goes to the end.
            let compare = fastest(|| {
                std::hint::black_box(compare_pass(tasks, std::hint::black_box(0)));
            });
            self.threshold = crossover_for(mark / compare.max(1.0));
        }
        Ok(())
    }

    fn counts(&self) -> Counts {
        let (a, b) = (self.list.counts(), self.sweep.counts());
        Counts {
            searches: a.searches + b.searches,
            visited: a.visited + b.visited,
        }
    }
}
