//! Experiment `zero-fill`: the four timings and the open questions of "Zerofilling" (Nat!, August 2003).

mod analyse;
mod batch;
mod bill;
mod cells;
mod contestants;
mod first_touch;
mod formulas;
mod look;
mod model;
mod plan;
mod routines;
mod steps;
mod submission;
mod timings;
mod words;

pub use submission::{presets, submission_row};

use crate::measure::{Contestant, Experiment, Plan, PlanRequest};
use crate::model::{Analysis, Better, Metric, RunRecord};

/// The experiment.
pub struct ZeroFill;

const METRICS: &[Metric] = &[
    metric(
        cells::CPU,
        "ns",
        Better::Lower,
        "CPU time of the thread per operation (a block or a page)",
    ),
    metric(cells::WALL, "ns", Better::Lower, "wall time per operation"),
    metric(
        cells::TOTAL,
        "ns",
        Better::Lower,
        "CPU time of consumer and helper per page",
    ),
    metric(
        cells::HELPER,
        "ns",
        Better::Lower,
        "CPU time of the helper thread per page",
    ),
    metric(
        cells::BACK,
        "ns",
        Better::Lower,
        "CPU time of giving a page back",
    ),
    metric(
        cells::FAULTS,
        "faults",
        Better::Neither,
        "page faults per operation",
    ),
    metric(
        cells::HELD,
        "bytes",
        Better::Lower,
        "memory held between operations, or by the region",
    ),
    metric(
        "alloc1_cpu_ns",
        "ns",
        Better::Lower,
        "one page, not touched: the first of his four timings",
    ),
    metric(
        "alloc1_fault_cpu_ns",
        "ns",
        Better::Lower,
        "one page, touched",
    ),
    metric(
        "alloc2_cpu_ns",
        "ns",
        Better::Lower,
        "two pages, not touched",
    ),
    metric(
        "alloc2_fault_cpu_ns",
        "ns",
        Better::Lower,
        "two pages, touched",
    ),
    metric(
        "faults2_per_op",
        "faults",
        Better::Neither,
        "page faults per block of two touched pages",
    ),
    metric(
        "clear_cpu_ns",
        "ns",
        Better::Lower,
        "write fault on a file's page that must be zeroed",
    ),
    metric(
        "present_cpu_ns",
        "ns",
        Better::Lower,
        "write fault on a file's page that is zeroed",
    ),
    metric(
        "fault_cpu_ns",
        "ns",
        Better::Lower,
        "write fault on anonymous memory, same process",
    ),
    metric(
        "share",
        "",
        Better::Neither,
        "share of zeroing in that fault, 0 to 1",
    ),
    metric(
        "first_ns_per_op",
        "ns",
        Better::Lower,
        "wall time of the first 16 operations of the process",
    ),
    metric(
        "first_cpu_ns_per_op",
        "ns",
        Better::Lower,
        "CPU time of the first 16 operations of the process",
    ),
    metric(
        "again_ns_per_op",
        "ns",
        Better::Lower,
        "wall time of the second pass over the region",
    ),
    metric(
        "again_cpu_ns_per_op",
        "ns",
        Better::Lower,
        "CPU time of the second pass over the region",
    ),
    metric(
        "chunk_p10_ns_per_op",
        "ns",
        Better::Neither,
        "the fast end of the region's 2 MiB chunks",
    ),
    metric(
        "chunk_p90_ns_per_op",
        "ns",
        Better::Neither,
        "the slow end of the region's 2 MiB chunks",
    ),
    metric(
        "huge_bytes",
        "bytes",
        Better::Neither,
        "bytes that lie in huge pages",
    ),
    metric(
        "prezeroed_share",
        "",
        Better::Neither,
        "share of the pages that the pool had zeroed before, 0 to 1",
    ),
    metric(
        "tables_per_op",
        "tables",
        Better::Neither,
        "new page tables per operation",
    ),
    metric(
        "working_set_bytes",
        "bytes",
        Better::Neither,
        "bytes that are zeroed in turn",
    ),
    metric(
        "balloon_inflated_pages",
        "pages",
        Better::Neither,
        "pages taken by the balloon since boot",
    ),
    metric(
        "balloon_deflated_pages",
        "pages",
        Better::Neither,
        "pages given back by the balloon since boot",
    ),
    metric(
        "free_page_reporting_order",
        "order",
        Better::Neither,
        "smallest free block that the host is told of",
    ),
    metric("guest", "", Better::Neither, "1 in a virtual machine"),
];

const fn metric(
    name: &'static str,
    unit: &'static str,
    better: Better,
    about: &'static str,
) -> Metric {
    Metric {
        name,
        unit,
        better,
        about,
    }
}

impl Experiment for ZeroFill {
    fn name(&self) -> &'static str {
        "zero-fill"
    }

    fn title(&self) -> &'static str {
        "Zero-filling: what a page costs, and who should zero it"
    }

    fn source(&self) -> &'static str {
        "Nat! (Mulle kybernetiK), \"Zerofilling\" parts I to VI, August 2003"
    }

    fn question(&self) -> &'static str {
        "How much of getting a page is zero-filling, and does it pay to fault in batches, to map early or to zero ahead?"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn contestants(&self) -> Vec<Box<dyn Contestant>> {
        contestants::all()
    }

    fn brief(&self) -> Option<&'static [&'static str]> {
        Some(&[
            "steps",
            "timings",
            "zero-warm",
            "zero-cold",
            "bill-write-8",
            "bill-read-all",
        ])
    }

    fn plan(&self, request: &PlanRequest<'_>) -> Plan {
        plan::plan(request)
    }

    fn analyse(&self, run: &RunRecord) -> Analysis {
        analyse::analyse(run, self.title())
    }
}
