//! The identifiers against their peers: what a pair of free and allocation costs at every occupancy, what is held for it,
//! how it scales, and how long an identifier rests.
//!
//! The timed loops are in `loops`; `batches`, `threads`, `create` and `distance` are what is done with a source; `ruled`
//! says what each rule states of the rest; `goals` says which ratio counts as reached.

mod batches;
mod contestants;
mod create;
mod distance;
mod goals;
mod loops;
mod plan;
mod promise;
mod report;
mod rows;
mod ruled;
mod tables;
mod thread_goals;
mod threads;

use crate::measure::{Contestant, Experiment, Plan, PlanRequest, RunView};
use crate::model::{Analysis, Better, Metric, RunRecord};

/// The experiment `id-space`.
#[derive(Debug, Clone, Copy, Default)]
pub struct IdSpaces;

const METRICS: &[Metric] = &[
    Metric {
        name: "ns_per_pair",
        unit: "ns",
        better: Better::Lower,
        about: "one free and one allocation, wall time; of each thread in threads",
    },
    Metric {
        name: "ns_per_free",
        unit: "ns",
        better: Better::Lower,
        about: "the free of such a pair",
    },
    Metric {
        name: "ns_per_alloc",
        unit: "ns",
        better: Better::Lower,
        about: "the allocation of such a pair",
    },
    Metric {
        name: "p99_ns_per_pair",
        unit: "ns",
        better: Better::Lower,
        about: "a pair of the batch that one in a hundred exceeds",
    },
    Metric {
        name: "held_bytes",
        unit: "B",
        better: Better::Lower,
        about: "what the C library's heap holds for the source, headers included",
    },
    Metric {
        name: "bits_per_id",
        unit: "",
        better: Better::Lower,
        about: "bits for each identifier of the range, by the source's own account; by the heap where it gives none",
    },
    Metric {
        name: "mops_per_s",
        unit: "Mop/s",
        better: Better::Higher,
        about: "pairs of all threads together, million per second",
    },
    Metric {
        name: "mops_per_cpu_s",
        unit: "Mop/s",
        better: Better::Higher,
        about: "pairs of all threads together, million for each second of CPU time that they used",
    },
    Metric {
        name: "cpu_ns_per_pair",
        unit: "ns",
        better: Better::Lower,
        about: "CPU time of a pair in threads",
    },
    Metric {
        name: "false_full",
        unit: "",
        better: Better::Lower,
        about: "times that 'full' was said although identifiers were free",
    },
    Metric {
        name: "lost_ids",
        unit: "",
        better: Better::Lower,
        about: "free identifiers that could not be had when all were asked for",
    },
    Metric {
        name: "ns_per_space",
        unit: "ns",
        better: Better::Lower,
        about: "making a space, and taking its first identifier where 'first' is 1",
    },
    Metric {
        name: "distance_min",
        unit: "",
        better: Better::Higher,
        about: "fewest allocations between a free and the same identifier's return",
    },
    Metric {
        name: "distance_p1",
        unit: "",
        better: Better::Higher,
        about: "the same, exceeded by 99 of 100",
    },
    Metric {
        name: "distance_median",
        unit: "",
        better: Better::Higher,
        about: "the same, the median",
    },
    Metric {
        name: "distance_stated",
        unit: "",
        better: Better::Neither,
        about: "fewest that the rule states, 0 is nothing; like the others in allocations, under a rule by a clock in its ticks",
    },
    Metric {
        name: "distance_max",
        unit: "",
        better: Better::Neither,
        about: "the same, the most",
    },
];

impl Experiment for IdSpaces {
    fn name(&self) -> &'static str {
        "id-space"
    }

    fn title(&self) -> &'static str {
        "Identifiers against their peers"
    }

    fn source(&self) -> &'static str {
        "Franke, linux-kernel 2002, for the workload of deleting and allocating again; the peers are measured in the same rounds"
    }

    fn question(&self) -> &'static str {
        "What does an identifier cost at every occupancy, what is held for it, and how long does it rest?"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn contestants(&self) -> Vec<Box<dyn Contestant>> {
        contestants::all()
    }

    fn brief(&self) -> Option<&'static [&'static str]> {
        Some(&["cyclic", "lowest", "bits", "create"])
    }

    fn plan(&self, request: &PlanRequest<'_>) -> Plan {
        let contestants = contestants::all();
        let names: Vec<_> = contestants.iter().map(|c| c.name()).collect();
        plan::plan(request, &names)
    }

    fn analyse(&self, run: &RunRecord) -> Analysis {
        let view = RunView::new(run);
        Analysis {
            experiment: self.name().to_owned(),
            title: self.title().to_owned(),
            findings: report::findings(&view),
            goals: goals::all(&view),
            sections: report::sections(&view),
            ..Analysis::default()
        }
    }
}
