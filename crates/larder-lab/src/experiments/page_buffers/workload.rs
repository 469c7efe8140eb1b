//! The loop of Walfield's two programs, the same for every supplier.

use std::ptr::NonNull;
use std::time::Instant;

use anyhow::Context;

use crate::contestants::supply::{Supplier, mappings, page_size};
use crate::contestants::timing::{Stopwatch, ns_per_op, resident_bytes};
use crate::model::{Measures, Params};

/// Pages that a turn of the loop holds at most.
const ALLOCS: usize = 100;

/// Pages that a turn of the loop takes: 100, and 50 again.
const PER_TURN: u64 = 150;

/// Pages that the workload really takes when `total` are asked for: the loop always finishes its turn of 150, so
/// 65536 become 65550.
pub(super) fn allocations_of(total: u64) -> u64 {
    total.div_ceil(PER_TURN) * PER_TURN
}

/// How many pages to take, and what was there before the supplier.
pub(super) struct Job {
    total: u64,
    held: u64,
    start: Instant,
}

impl Job {
    /// Before the supplier is made.
    ///
    /// # Errors
    /// A missing factor.
    pub(super) fn new(params: &Params) -> anyhow::Result<Self> {
        Ok(Self {
            total: params.count("total")? as u64,
            held: resident_bytes(),
            start: Instant::now(),
        })
    }

    /// Runs the workload once and reports time, counts and what stays held when every page is back.
    ///
    /// The timed part is the whole loop, the first page included, as in the programs of 2001: nothing is warmed up.
    ///
    /// # Errors
    /// The supplier has no page.
    pub(super) fn measure<S: Supplier>(&self, mut supplier: S) -> anyhow::Result<Measures> {
        let setup = self.start.elapsed().as_secs_f64();
        let page = page_size();
        let calls = supplier.system_calls();
        let watch = Stopwatch::start();
        run(&mut supplier, self.total, page)?;
        let spent = watch.stop();
        let taken = allocations_of(self.total);
        let held = resident_bytes().saturating_sub(self.held);
        let mut measures = Measures::new()
            .with("elapsed_s", spent.wall_ns as f64 / 1e9)
            .with("ns_per_page", ns_per_op(spent.cpu_ns, taken))
            .with(
                "faults_per_page",
                ns_per_op(spent.usage.minor_faults, taken),
            )
            .with("held_bytes", held as f64)
            .with("setup_s", setup);
        if let (Some(before), Some(after)) = (calls, supplier.system_calls()) {
            measures = measures.with("calls_per_page", ns_per_op(after - before, taken));
        }
        let (mut maps, mut allocs) = (None, [NonNull::dangling(); ALLOCS]);
        turn(&mut supplier, &mut allocs, page, || maps = mappings())?;
        Ok(match maps {
            Some(maps) => measures.with("mappings", maps as f64),
            None => measures,
        })
    }
}

/// Takes and touches 100 pages, puts 50 back, takes and touches 50, puts 100 back, until `total` pages were taken.
/// Touching fills the whole page with ones, as `memset (p, 1, vm_page_size)` does there.
///
/// `page` is the page size in bytes; it is an argument so that the fill stays a call to `memset` of a size known at
/// run time, as in those programs.
///
/// # Errors
/// The supplier has no page.
#[inline(never)]
fn run<S: Supplier>(supplier: &mut S, total: u64, page: usize) -> anyhow::Result<()> {
    let mut allocs = [NonNull::<u8>::dangling(); ALLOCS];
    let mut left = i64::try_from(total).context("more allocations than a loop counts")?;
    while left > 0 {
        turn(supplier, &mut allocs, page, || ())?;
        left -= PER_TURN as i64;
    }
    Ok(())
}

/// One turn. It calls `look` where 100 pages are out and 50 were put back before.
#[inline(always)]
fn turn<S: Supplier>(
    supplier: &mut S,
    allocs: &mut [NonNull<u8>; ALLOCS],
    page: usize,
    look: impl FnOnce(),
) -> anyhow::Result<()> {
    take(supplier, allocs, page)?;
    put(supplier, &allocs[..ALLOCS / 2]);
    take(supplier, &mut allocs[..ALLOCS / 2], page)?;
    look();
    put(supplier, allocs);
    Ok(())
}

#[inline(always)]
fn take<S: Supplier>(
    supplier: &mut S,
    allocs: &mut [NonNull<u8>],
    page: usize,
) -> anyhow::Result<()> {
    for slot in allocs {
        let taken = supplier.get().with_context(no_page)?;
        // SAFETY: a page of `page` bytes that is ours until it is put back.
        unsafe { taken.as_ptr().write_bytes(1, page) };
        *slot = taken;
    }
    Ok(())
}

#[inline(always)]
fn put<S: Supplier>(supplier: &mut S, allocs: &[NonNull<u8>]) {
    for &page in allocs {
        // SAFETY: taken by `take` and put back once; the slot is overwritten before it is used again.
        unsafe { supplier.put(page) };
    }
}

#[cold]
fn no_page() -> String {
    format!(
        "the supplier has no page: {}; close other programs or raise the limit (ulimit -v, vm.max_map_count)",
        std::io::Error::last_os_error()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::supply::{ArrayStack, Counting};

    fn counted(total: u64) -> crate::contestants::supply::Counts {
        let mut supplier = Counting::new(ArrayStack::new(ALLOCS).expect("pages"));
        run(&mut supplier, total, page_size()).expect("enough pages");
        supplier.counts()
    }

    #[test]
    fn takes_what_his_arithmetic_says() {
        for (total, takes) in [(0, 0), (1, 150), (150, 150), (151, 300), (65536, 65550)] {
            let counts = counted(total);
            assert_eq!(counts.gets, takes, "{total}");
            assert_eq!(counts.puts, takes, "{total}");
            assert_eq!(counts.gets, allocations_of(total));
            assert_eq!(counts.most_out, takes.min(100));
            assert_eq!(counts.zeroed, 0);
        }
    }

    #[test]
    fn fills_every_byte_of_every_page_that_it_takes() {
        let mut stack = ArrayStack::new(ALLOCS).expect("pages");
        run(&mut stack, 150, page_size()).expect("enough pages");
        for _ in 0..ALLOCS {
            let page = stack.get().expect("all pages are back");
            // SAFETY: a page of the stack.
            let bytes = unsafe { std::slice::from_raw_parts(page.as_ptr(), page_size()) };
            assert!(bytes.iter().all(|&byte| byte == 1));
        }
    }

    #[test]
    fn a_supplier_that_runs_dry_is_an_error_and_not_a_crash() {
        let mut stack = ArrayStack::new(99).expect("pages");
        let error = run(&mut stack, 150, page_size()).expect_err("99 pages do not suffice");
        assert!(error.to_string().contains("no page"), "{error}");
    }
}
