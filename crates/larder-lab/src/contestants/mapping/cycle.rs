//! The loop of 2003: get some pages, touch each (or none), give them back, many times.
//!
//! A way to get a block is a function that prepares for blocks of a given number of pages. It returns a closure that gets one block,
//! writes 8 bytes to each of its pages if they are to be touched, and gives the block back.

use std::io;
use std::time::Duration;

use super::factors;
use super::tally::{Tally, per_op};
use crate::contestants::timing::{Spent, Stopwatch, ns_per_op, resident_bytes, warm_up};
use crate::model::{Measures, Params};

/// Time for which a loop runs before it counts.
const WARM_UP: Duration = Duration::from_millis(3);

/// Blocks that are timed before any warm-up: the first pass of this process.
const FIRST: u64 = 16;

/// Slices into which each of the four loops is cut, so that all four see the same machine.
const SLICES: u64 = 16;

/// Names of the four timings as measures, in the order of the table of 2003: CPU time per operation.
pub const FOUR: [&str; 4] = [
    "alloc1_cpu_ns",
    "alloc1_fault_cpu_ns",
    "alloc2_cpu_ns",
    "alloc2_fault_cpu_ns",
];

/// Times a way to get a block.
///
/// With the factors `pages`, `touch` (0 or 1) and `ops` it runs one loop. With `loops` = `four` and `ops` it runs all
/// four of 2003 in one process, as that program did, but in turns of short slices: the derived costs are differences of
/// the four, and a machine that changes its speed between two loops would be derived too.
pub(super) fn run<C: FnMut(bool) -> io::Result<()>>(
    open: impl Fn(usize) -> io::Result<C>,
    params: &Params,
) -> anyhow::Result<Measures> {
    let ops = factors::counted(params, "ops")? as u64;
    let before = resident_bytes();
    if let Ok(loops) = params.text("loops") {
        anyhow::ensure!(
            loops == "four",
            "factor 'loops' is '{loops}'; the only set of loops is 'four'"
        );
        return Ok(four(&mut open(1)?, &mut open(2)?, ops, before)?);
    }
    let touch = params.int("touch")? != 0;
    let mut block = open(factors::pages(params)?)?;
    let first = repeat(&mut block, touch, FIRST)?;
    warm_up(WARM_UP, 1, || block(touch))?;
    let spent = repeat(&mut block, touch, ops)?;
    Ok(first_and_held(per_op(&spent, ops), first, before))
}

/// The loop is compiled for both values of `touch`.
#[inline(always)]
fn repeat(
    block: &mut impl FnMut(bool) -> io::Result<()>,
    touch: bool,
    ops: u64,
) -> io::Result<Spent> {
    let watch = Stopwatch::start();
    if touch {
        for _ in 0..ops {
            block(true)?;
        }
    } else {
        for _ in 0..ops {
            block(false)?;
        }
    }
    Ok(watch.stop())
}

/// Adds what the first blocks took, and the memory that is held since.
fn first_and_held(measures: Measures, first: Spent, before: u64) -> Measures {
    let held = resident_bytes().saturating_sub(before);
    measures
        .with("first_ns_per_op", ns_per_op(first.wall_ns, FIRST))
        .with("first_cpu_ns_per_op", ns_per_op(first.cpu_ns, FIRST))
        .with("held_bytes", held as f64)
}

/// The four loops of 2003, in turns of slices.
fn four<C: FnMut(bool) -> io::Result<()>>(
    one: &mut C,
    two: &mut C,
    ops: u64,
    before: u64,
) -> io::Result<Measures> {
    let first = repeat(one, true, FIRST)?;
    warm_up(WARM_UP, 1, || {
        one(false)?;
        one(true)?;
        two(false)?;
        two(true)
    })?;
    let each = ops.div_ceil(SLICES);
    let mut tallies: [Tally; 4] = std::array::from_fn(|_| Tally::new(each as usize));
    for slice in 0..SLICES {
        // Each loop comes first, second, third and last equally often.
        for turn in 0..4 {
            let which = ((slice + turn) % 4) as usize;
            let spent = match which {
                0 => repeat(one, false, each)?,
                1 => repeat(one, true, each)?,
                2 => repeat(two, false, each)?,
                _ => repeat(two, true, each)?,
            };
            tallies[which].add(spent);
        }
    }
    let measures = tallies[1].measures();
    let measures = measures.with("faults2_per_op", tallies[3].faults());
    let each = FOUR.iter().zip(&tallies);
    let measures = each.fold(measures, |m, (name, tally)| m.with(name, tally.cpu_ns()));
    Ok(first_and_held(measures, first, before))
}
