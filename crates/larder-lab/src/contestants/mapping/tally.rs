//! Times of many batches of one kind, and their medians.

use crate::contestants::timing::{Spent, Stopwatch, ns_per_op};
use crate::model::Measures;

/// What work took that cannot fail.
pub(super) fn timed(work: impl FnOnce()) -> Spent {
    let watch = Stopwatch::start();
    work();
    watch.stop()
}

/// The usual measures of one stretch of this many operations.
pub(super) fn per_op(spent: &Spent, ops: u64) -> Measures {
    let faults = spent.usage.minor_faults as f64 / ops as f64;
    Measures::new()
        .with("ns_per_op", ns_per_op(spent.wall_ns, ops))
        .with("cpu_ns_per_op", ns_per_op(spent.cpu_ns, ops))
        .with("faults_per_op", faults)
}

/// Collects what batches of `ops` operations took.
///
/// The median of the batches is what is reported: a batch that was interrupted counts as one batch and
/// not as its length. The cost of reading the clocks is measured and taken off.
#[derive(Debug)]
pub(super) struct Tally {
    ops: u64,
    wall: Vec<u64>,
    cpu: Vec<u64>,
    faults: u64,
    empty: (u64, u64),
}

/// Upper median of the values, 0 of none; sorts them.
fn median(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

impl Tally {
    /// For batches of `ops` operations each.
    pub(super) fn new(ops: usize) -> Self {
        let mut wall = Vec::with_capacity(101);
        let mut cpu = Vec::with_capacity(101);
        for _ in 0..101 {
            let spent = Stopwatch::start().stop();
            wall.push(spent.wall_ns);
            cpu.push(spent.cpu_ns);
        }
        Self {
            ops: ops as u64,
            wall: Vec::with_capacity(4096),
            cpu: Vec::with_capacity(4096),
            faults: 0,
            empty: (median(&mut wall), median(&mut cpu)),
        }
    }

    /// Adds one batch.
    pub(super) fn add(&mut self, spent: Spent) {
        self.wall.push(spent.wall_ns.saturating_sub(self.empty.0));
        self.cpu.push(spent.cpu_ns.saturating_sub(self.empty.1));
        self.faults += spent.usage.minor_faults;
    }

    /// Median wall nanoseconds per operation.
    pub(super) fn wall_ns(&self) -> f64 {
        self.per_op(&self.wall)
    }

    /// Median thread CPU nanoseconds per operation.
    pub(super) fn cpu_ns(&self) -> f64 {
        self.per_op(&self.cpu)
    }

    /// Faults per operation, over all batches.
    pub(super) fn faults(&self) -> f64 {
        let ops = self.ops * self.wall.len() as u64;
        if ops == 0 {
            0.0
        } else {
            self.faults as f64 / ops as f64
        }
    }

    fn per_op(&self, values: &[u64]) -> f64 {
        if self.ops == 0 {
            return 0.0;
        }
        median(&mut values.to_vec()) as f64 / self.ops as f64
    }

    /// The usual measures: `ns_per_op`, `cpu_ns_per_op`, `faults_per_op`.
    pub(super) fn measures(&self) -> Measures {
        Measures::new()
            .with("ns_per_op", self.wall_ns())
            .with("cpu_ns_per_op", self.cpu_ns())
            .with("faults_per_op", self.faults())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::timing::Usage;

    #[test]
    fn an_interrupted_batch_does_not_move_the_median() {
        let mut tally = Tally::new(10);
        tally.empty = (5, 5);
        for wall in [105, 105, 1_000_005, 105, 105] {
            tally.add(Spent {
                wall_ns: wall,
                cpu_ns: 55,
                usage: Usage {
                    minor_faults: 20,
                    ..Usage::default()
                },
            });
        }
        assert_eq!(tally.wall_ns(), 10.0);
        assert_eq!(tally.cpu_ns(), 5.0);
        assert_eq!(tally.faults(), 2.0);
    }

    #[test]
    fn nothing_counted_is_zero_not_a_division() {
        let tally = Tally::new(0);
        assert_eq!(tally.measures().get("ns_per_op"), Some(0.0));
        assert_eq!(Tally::new(4).faults(), 0.0);
    }
}
