//! Nat!'s loop: get some pages, touch each (or none), give them back, many times.

use std::io;
use std::marker::PhantomData;
use std::time::Duration;

use anyhow::Context;

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

/// Blocks that are timed before any warm-up: the first pass of this process.
const FIRST: u64 = 16;

/// The contestant of a [`Supply`]. Factors: `pages`, `touch` (0 or 1), `ops`.
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
        let pages = params.count("pages")?;
        let ops = params.count("ops")? as u64;
        anyhow::ensure!(
            (1..=1 << 20).contains(&pages),
            "factor 'pages' is {pages}; a block has 1 to 1048576 pages"
        );
        anyhow::ensure!(ops > 0, "factor 'ops' is 0; ask for at least one");
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

    // A tenth of the work or 5 ms, whichever is less, so that a quick cell stays quick.
    let mut left = ops / 10;
    warm_up(Duration::from_millis(5), 0, || {
        if left == 0 {
            // Enough: spin out the clock without a call, which costs nothing that is measured.
            return Ok(());
        }
        left -= 1;
        supply.cycle::<TOUCH>()
    })?;

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
