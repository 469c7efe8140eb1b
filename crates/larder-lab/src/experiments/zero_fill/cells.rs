//! The names of groups and cells, said once, for the plan that makes them and the analysis that finds them.

use crate::model::{Cell, Params};

/// His four timings, by every way.
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

/// The group of the consumer's bill for one use.
pub(super) fn bill_group(usage: &str) -> String {
    format!("bill-{usage}")
}

/// The metric by which everything here is judged: CPU time, because other programs' time is not in it.
pub(super) const CPU: &str = "cpu_ns_per_op";
/// Wall time per operation.
pub(super) const WALL: &str = "ns_per_op";
/// Consumer and helper together.
pub(super) const TOTAL: &str = "total_cpu_ns_per_op";
/// What a helper thread spent.
pub(super) const HELPER: &str = "helper_cpu_ns_per_op";
/// Giving back.
pub(super) const BACK: &str = "give_back_ns_per_op";
/// Faults per operation.
pub(super) const FAULTS: &str = "faults_per_op";
/// Memory held.
pub(super) const HELD: &str = "held_bytes";

/// His way.
pub(super) const MMAP: &str = "mmap";
/// His way, populated within the call.
pub(super) const POPULATE: &str = "mmap-populate";

/// Block sizes of the better model, in pages.
pub(super) const BLOCKS: [i64; 7] = [1, 2, 4, 8, 16, 32, 64];

/// A block got, touched or not, and given back, `ops` times.
pub(super) fn block(way: &str, pages: i64, touch: i64, ops: i64) -> Cell {
    let params = Params::new()
        .with("pages", pages)
        .with("touch", touch)
        .with("ops", ops);
    Cell::new(way, params)
}

/// His four loops in one process.
pub(super) fn four(way: &str, ops: i64) -> Cell {
    let params = Params::new().with_text("loops", "four").with("ops", ops);
    Cell::new(way, params)
}

/// A block placed so that it needs `tables` new page tables.
pub(super) fn placed(pages: i64, tables: i64, ops: i64) -> Cell {
    let params = Params::new()
        .with("pages", pages)
        .with("tables", tables)
        .with("ops", ops);
    Cell::new("mmap-placed", params)
}

/// A step on batches of `pages` pages.
pub(super) fn step(name: &str, pages: i64, batches: i64) -> Cell {
    let params = Params::new().with("pages", pages).with("batches", batches);
    Cell::new(name, params)
}

/// Zeroing in place.
pub(super) fn zeroing(routine: &str, set: &str, passes: i64) -> Cell {
    let params = Params::new()
        .with_text("routine", routine)
        .with_text("set", set)
        .with("passes", passes);
    Cell::new("zero-in-place", params)
}

/// A supply with a use.
pub(super) fn bill(source: &str, usage: &str, batches: i64) -> Cell {
    let params = Params::new()
        .with_text("use", usage)
        .with_text("routine", "fastest")
        .with("batches", batches);
    Cell::new(source, params)
}

/// A large region.
pub(super) fn region(name: &str, mib: i64) -> Cell {
    Cell::new(name, Params::new().with("mib", mib))
}
