//! Nat!'s loop: get some pages, touch each (or none), give them back, many times.

use std::io;
use std::marker::PhantomData;
use std::time::Duration;

use anyhow::Context;

use super::tally::Tally;
use crate::contestants::timing::{Stopwatch, ns_per_op, resident_bytes, warm_up};
use crate::measure::Contestant;
use crate::model::{Measures, Params};

/// A way to get a block of pages and to give it back.
pub trait Supply: Sized {
    /// Name on the table.
    const NAME: &'static str;
    /// What it does, in one sentence.
    const ABOUT: &'static str;

    /// Whether it works here.
    ///
    /// # Errors
    /// One sentence that says what is missing.
    fn available() -> Result<(), String> {
        Ok(())
    }

    /// Prepares to supply blocks of `pages` pages.
    ///
    /// # Errors
    /// A refusal of the kernel, in words.
    fn open(pages: usize) -> io::Result<Self>;

    /// Gets one block, writes 8 bytes to each of its pages if `TOUCH`, gives it back.
    ///
    /// # Errors
    /// A refusal of the kernel, in words.
    fn cycle<const TOUCH: bool>(&mut self) -> io::Result<()>;
}

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

/// The contestant of a [`Supply`].
///
/// With the factors `pages`, `touch` (0 or 1) and `ops` it runs one loop. With `loops` = `four` and `ops` it runs all
/// four of 2003 in one process, as that program did, but in turns of short slices: the derived costs are differences of
/// the four, and a machine that changes its speed between two loops would be derived too.
pub struct Cycle<S>(PhantomData<fn() -> S>);

impl<S: Supply> Cycle<S> {
    /// The contestant.
    #[must_use]
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<S: Supply> Default for Cycle<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Supply + 'static> Contestant for Cycle<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn about(&self) -> &'static str {
        S::ABOUT
    }

    fn available(&self) -> Result<(), String> {
        S::available()
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        let ops = params.count("ops")? as u64;
        anyhow::ensure!(ops > 0, "factor 'ops' is 0; ask for at least one");
        if let Ok(loops) = params.text("loops") {
            anyhow::ensure!(
                loops == "four",
                "factor 'loops' is '{loops}'; the only set of loops is 'four'"
            );
            return four::<S>(ops).with_context(|| format!("{} with {params}", S::NAME));
        }
        let pages = params.count("pages")?;
        anyhow::ensure!(
            (1..=1 << 20).contains(&pages),
            "factor 'pages' is {pages}; a block has 1 to 1048576 pages"
        );
        let measured = if params.int("touch")? == 0 {
            run::<S, false>(pages, ops)
        } else {
            run::<S, true>(pages, ops)
        };
        measured.with_context(|| format!("{} with {params}", S::NAME))
    }
}

fn run<S: Supply, const TOUCH: bool>(pages: usize, ops: u64) -> io::Result<Measures> {
    let before = resident_bytes();
    let mut supply = S::open(pages)?;

    let watch = Stopwatch::start();
    repeat::<S, TOUCH>(&mut supply, FIRST)?;
    let first = watch.stop();

    warm_up(WARM_UP, 1, || supply.cycle::<TOUCH>())?;

    let watch = Stopwatch::start();
    repeat::<S, TOUCH>(&mut supply, ops)?;
    let spent = watch.stop();

    let held = resident_bytes().saturating_sub(before);
    drop(supply);
    Ok(Measures::new()
        .with("ns_per_op", ns_per_op(spent.wall_ns, ops))
        .with("cpu_ns_per_op", ns_per_op(spent.cpu_ns, ops))
        .with("first_ns_per_op", ns_per_op(first.wall_ns, FIRST))
        .with("first_cpu_ns_per_op", ns_per_op(first.cpu_ns, FIRST))
        .with(
            "faults_per_op",
            spent.usage.minor_faults as f64 / ops as f64,
        )
        .with("held_bytes", held as f64))
}

#[inline(always)]
fn repeat<S: Supply, const TOUCH: bool>(supply: &mut S, ops: u64) -> io::Result<()> {
    for _ in 0..ops {
        supply.cycle::<TOUCH>()?;
    }
    Ok(())
}

/// His four loops, in turns of slices.
fn four<S: Supply>(ops: u64) -> io::Result<Measures> {
    let before = resident_bytes();
    let (mut one, mut two) = (S::open(1)?, S::open(2)?);

    let watch = Stopwatch::start();
    repeat::<S, true>(&mut one, FIRST)?;
    let first = watch.stop();
    warm_up(WARM_UP, 1, || {
        one.cycle::<false>()?;
        one.cycle::<true>()?;
        two.cycle::<false>()?;
        two.cycle::<true>()
    })?;

    let each = ops.div_ceil(SLICES);
    let mut tallies: [Tally; 4] = std::array::from_fn(|_| Tally::new(each as usize));
    for slice in 0..SLICES {
        // Each loop comes first, second, third and last equally often.
        for turn in 0..4 {
            let which = ((slice + turn) % 4) as usize;
            let watch = Stopwatch::start();
            match which {
                0 => repeat::<S, false>(&mut one, each)?,
                1 => repeat::<S, true>(&mut one, each)?,
                2 => repeat::<S, false>(&mut two, each)?,
                _ => repeat::<S, true>(&mut two, each)?,
            }
            tallies[which].add(watch.stop());
        }
    }
    let held = resident_bytes().saturating_sub(before);
    drop((one, two));
    let mut measures = tallies[1]
        .measures()
        .with("first_ns_per_op", ns_per_op(first.wall_ns, FIRST))
        .with("first_cpu_ns_per_op", ns_per_op(first.cpu_ns, FIRST))
        .with("faults2_per_op", tallies[3].faults())
        .with("held_bytes", held as f64);
    for (name, tally) in FOUR.iter().zip(&tallies) {
        measures = measures.with(name, tally.cpu_ns());
    }
    Ok(measures)
}
