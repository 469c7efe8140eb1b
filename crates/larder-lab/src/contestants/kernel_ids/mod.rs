//! The kernel's own ids as contestants: processes, descriptors and ports, as far as this machine permits.
//!
//! Each contestant takes ids until a share of its space is in use, and then repeatedly gives one back and takes one. At the end it
//! gives all of them back and restores limits; processes and ports live in namespaces of their own.

mod descriptors;
mod ports;
mod processes;

use std::time::{Duration, Instant};

use crate::contestants::getpid::Random31;
use crate::contestants::timing::{ns_per_op, thread_cpu_ns};
use crate::measure::Contestant;
use crate::model::Measures;

/// Time for the pairs of a cell at most.
const TIME: Duration = Duration::from_millis(300);

/// Every one.
#[must_use]
pub fn all() -> Vec<Box<dyn Contestant>> {
    vec![
        descriptors::contestant(),
        ports::contestant(),
        processes::contestant(),
    ]
}

/// Gives random ones of those held back and takes as many, a batch at a time; at least ten batches where time is short.
fn pairs<T>(
    held: &mut Vec<T>,
    mut random: Random31,
    (batch, batches): (usize, u64),
    take: impl Fn() -> anyhow::Result<T>,
) -> anyhow::Result<Measures> {
    let begin = Instant::now();
    let (mut taking, mut giving, mut done) = (0, 0, 0);
    let mut dying = Vec::with_capacity(batch);
    while done < batches && (begin.elapsed() < TIME || done < 10) {
        for _ in 0..batch {
            dying.push(held.swap_remove(random.draw() as usize % held.len()));
        }
        let clock = thread_cpu_ns();
        dying.clear();
        giving += thread_cpu_ns() - clock;
        let clock = thread_cpu_ns();
        for _ in 0..batch {
            held.push(take()?);
        }
        taking += thread_cpu_ns() - clock;
        done += 1;
    }
    let pairs = batch as u64 * done;
    Ok(Measures::new()
        .with("us_per_alloc", ns_per_op(taking.max(1), pairs) / 1e3)
        .with("us_per_free", ns_per_op(giving, pairs) / 1e3)
        .with("allocations", pairs as f64))
}
