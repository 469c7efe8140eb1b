//! The names of groups, cells and metrics, for the plan that makes them and the analysis that finds them; and what more than
//! one part of the analysis computes of them.

use crate::contestants::mapping::bill::Use;
use crate::contestants::mapping::region::HUGE_KIB;
use crate::contestants::mapping::zeroing::BATCH;
use crate::frame::{At, Results, median_of, together};
use crate::model::Metric;
use crate::stats::Estimate;

/// The four timings of 2003, by every way.
pub(super) const TIMINGS: &str = "timings";
/// Blocks of 1 to 64 pages.
pub(super) const SIZES: &str = "sizes";
/// Blocks whose page tables are known.
pub(super) const TABLES: &str = "page-tables";
/// Steps of a fault beside whole blocks.
pub(super) const STEPS: &str = "steps";
/// Zeroing in place, warm.
pub(super) const ZERO_WARM: &str = "zero-warm";
/// Zeroing in place, cold.
pub(super) const ZERO_COLD: &str = "zero-cold";
/// The first touch of a large region.
pub(super) const FIRST_TOUCH: &str = "first-touch";

/// The metric by which everything here is judged: CPU time, because other programs' time is not in it.
pub(super) const CPU: &str = "cpu_ns_per_op";
pub(super) const WALL: &str = "ns_per_op";
/// Consumer and helper together.
pub(super) const TOTAL: &str = "total_cpu_ns_per_op";
pub(super) const HELPER: &str = "helper_cpu_ns_per_op";
pub(super) const BACK: &str = "give_back_ns_per_op";
/// The second pass over a large region.
pub(super) const AGAIN: &str = "again_cpu_ns_per_op";
pub(super) const FAULTS: &str = "faults_per_op";
pub(super) const HELD: &str = "held_bytes";

pub(super) const METRICS: &[Metric] = &[
    Metric::cost(CPU, "ns", "CPU time of an operation (a block or a page)"),
    Metric::cost(WALL, "ns", "wall time of an operation"),
    Metric::cost(TOTAL, "ns", "CPU time of consumer and helper per page"),
    Metric::cost(HELPER, "ns", "CPU time of the helper thread per page"),
    Metric::cost(BACK, "ns", "CPU time of giving a page back"),
    Metric::count(FAULTS, "", "page faults of an operation"),
    Metric::cost(HELD, "bytes", "memory held after the operations"),
    Metric::cost("alloc1_cpu_ns", "ns", "one page, not touched"),
    Metric::cost("alloc1_fault_cpu_ns", "ns", "one page, touched"),
    Metric::cost("alloc2_cpu_ns", "ns", "two pages, not touched"),
    Metric::cost("alloc2_fault_cpu_ns", "ns", "two pages, touched"),
    Metric::count("faults2_per_op", "", "page faults of two touched pages"),
    Metric::cost(
        "clear_cpu_ns",
        "ns",
        "write fault that zeroes a file's page",
    ),
    Metric::cost("present_cpu_ns", "ns", "write fault, a file's zeroed page"),
    Metric::cost("fault_cpu_ns", "ns", "write fault, anonymous memory"),
    Metric::count("share", "", "share of zeroing in that fault, 0 to 1"),
    Metric::cost("first_ns_per_op", "ns", "wall time, first 16 operations"),
    Metric::cost("first_cpu_ns_per_op", "ns", "CPU time, first 16 operations"),
    Metric::cost("again_ns_per_op", "ns", "wall time of the second pass"),
    Metric::cost(AGAIN, "ns", "CPU time of the second pass"),
    Metric::count("chunk_p10_ns_per_op", "ns", "a fast chunk of 2 MiB"),
    Metric::count("chunk_p90_ns_per_op", "ns", "a slow chunk of 2 MiB"),
    Metric::count("huge_bytes", "bytes", "bytes that lie in huge pages"),
    Metric::count("prezeroed_share", "", "share of pages zeroed before"),
    Metric::count("tables_per_op", "", "new page tables of an operation"),
    Metric::count("working_set_bytes", "bytes", "bytes zeroed in turn"),
    Metric::count("balloon_inflated_pages", "", "taken since boot"),
    Metric::count("balloon_deflated_pages", "", "returned since boot"),
    Metric::count("free_page_reporting_order", "", "of reported blocks"),
    Metric::count("guest", "", "1 in a virtual machine"),
];

/// The loop of 2003, the same populated within the call, and larder's pool.
pub(super) const MMAP: &str = "mmap";
pub(super) const POPULATE: &str = "mmap-populate";
pub(super) const POOL: &str = "pool-zeroed";

/// The ways to get a block.
pub(super) const WAYS: [&str; 10] = [
    MMAP,
    POPULATE,
    "dontneed",
    "dontneed-populate",
    "madv-free",
    "memfd",
    "mthp",
    "thp",
    POOL,
    "pool-dirty",
];
/// Those of them whose pages keep their contents.
pub(super) const UNZEROED: [&str; 2] = ["madv-free", "pool-dirty"];

/// The ways to get a large region.
pub(super) const PLAIN_REGION: &str = "region-touch";
pub(super) const POOL_REGION: &str = "region-pool";
/// One cell for each size of huge pages below the largest.
pub(super) const SMALL_HUGE_REGION: &str = "region-mthp";
pub(super) const REGIONS: [&str; 8] = [
    PLAIN_REGION,
    "region-default",
    "region-populate",
    SMALL_HUGE_REGION,
    "region-thp",
    "region-thp-populate",
    POOL_REGION,
    "region-pool-small",
];

/// The cells of every way to get a large region.
pub(super) fn regions<'r, 'a>(results: &'r Results<'a>) -> impl Iterator<Item = At<'r, 'a>> {
    REGIONS
        .into_iter()
        .flat_map(|way| results.of(FIRST_TOUCH, way))
}

/// The way of a cell, with the size of its huge pages where it has several.
pub(super) fn called(at: &At<'_, '_>) -> String {
    match at.int(HUGE_KIB) {
        Some(kib) => format!("{} {kib} KiB", at.name()),
        None => at.name().to_owned(),
    }
}

/// The supplies of the consumer's bill.
pub(super) const WARM: &str = "bill-warm";
pub(super) const COLD: &str = "bill-cold";
pub(super) const BEFORE: &str = "bill-prezeroed-before";
pub(super) const SUPPLIES: [&str; 11] = [
    "bill-fault",
    "bill-populate",
    WARM,
    COLD,
    "bill-prezeroed-now",
    BEFORE,
    "bill-pool",
    "bill-pool-sparse",
    "bill-pool-dirty",
    "floor-warm",
    "floor-cold",
];

/// The groups of the bill: by what the consumer does with its page.
pub(super) const USES: [(&str, Use); 3] = [
    ("bill-write-8", Use::Write8),
    ("bill-write-all", Use::WriteAll),
    ("bill-read-all", Use::ReadAll),
];

/// The kernel's zeroing of a page, by difference.
pub(super) const ZEROING: &str = "step-zeroing";
/// The rows of the table of a fault's steps: contestant and metric.
pub(super) const STEPS_OF_A_FAULT: [(&str, &str); 9] = [
    ("step-syscall", CPU),
    ("step-uffd-zeropage", CPU),
    ("step-uffd-move", CPU),
    ("step-shared-around", CPU),
    ("step-read-fault", CPU),
    (ZEROING, "present_cpu_ns"),
    (ZEROING, "clear_cpu_ns"),
    ("step-write-fault", CPU),
    (ZEROING, CPU),
];

/// Block sizes in pages.
pub(super) const BLOCKS: [i64; 7] = [1, 2, 4, 8, 16, 32, 64];

/// The four loops of a way.
pub(super) fn four<'r, 'a>(results: &'r Results<'a>, way: &str) -> Option<At<'r, 'a>> {
    results.find(TIMINGS, way, &[])
}

/// A block of `pages` pages, touched or not.
pub(super) fn block<'r, 'a>(
    results: &'r Results<'a>,
    group: &'r str,
    way: &str,
    pages: i64,
    touch: i64,
) -> Option<At<'r, 'a>> {
    results.find(group, way, &[("pages", pages), ("touch", touch)])
}

/// A step on warm pages: a batch small enough for the caches.
pub(super) fn warm<'r, 'a>(results: &'r Results<'a>, step: &str) -> Option<At<'r, 'a>> {
    results.find(STEPS, step, &[("pages", BATCH as i64)])
}

/// A step on cold pages: a batch larger than the caches.
pub(super) fn cold<'r, 'a>(results: &'r Results<'a>, step: &'r str) -> Option<At<'r, 'a>> {
    let is_cold = |at: &At<'_, '_>| at.int("pages") > Some(BATCH as i64);
    results.of(STEPS, step).find(is_cold)
}

/// Zeroing in place by a routine.
pub(super) fn in_place<'r, 'a>(
    results: &'r Results<'a>,
    group: &'r str,
    routine: &str,
) -> Option<At<'r, 'a>> {
    let mut cells = results.of(group, "zero-in-place");
    cells.find(|at| at.text("routine") == Some(routine))
}

/// Zeroing routines by what they cost beside their time: a portable one nothing, wide stores may lower the clock of the
/// whole core.
pub(super) const BY_BURDEN: [&str; 5] = ["portable", "sse2", "stosb", "avx2", "avx512"];

/// A number of several metrics, computed in each round that has them all.
pub(super) fn over_rounds(
    of: &[(At<'_, '_>, &str)],
    compute: impl Fn(&[f64]) -> f64,
) -> Option<Estimate> {
    let columns: Vec<_> = of.iter().map(|(at, metric)| at.by_round(metric)).collect();
    median_of(&together(&columns, compute))
}

/// The kernel's zeroing of one warm page, nanoseconds.
pub(super) fn kernel_zeroing(results: &Results<'_>) -> Option<Estimate> {
    warm(results, ZEROING)?.estimate(CPU)
}

/// An estimate in another unit, by a factor above 0.
pub(super) fn scaled(e: &Estimate, by: f64) -> Estimate {
    Estimate {
        value: e.value * by,
        lo: e.lo * by,
        hi: e.hi * by,
        ..*e
    }
}
