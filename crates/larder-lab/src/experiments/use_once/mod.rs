//! Lord's mail of July 2001 in simulation: 2.4.7 with and without the use-once patch under dbench, every other rule on the
//! same work, and what several touches at once do to them.
//!
//! Nothing here is timed: hits, reads and writes are exact counts, the same on every machine, and a throughput is a formula
//! over them (`disk`).

mod contestants;
mod disk;
mod findings;
mod machine;
mod plan;
mod rows;
mod tables;

use crate::measure::{Contestant, Experiment, Plan, PlanRequest, RunView};
use crate::model::{Analysis, Better, Metric, RunRecord};

/// The experiment `use-once`.
#[derive(Debug, Clone, Copy, Default)]
pub struct UseOnce;

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

const METRICS: &[Metric] = &[
    metric(
        "modelled_s",
        "s",
        Better::Lower,
        "seconds by the model's formula",
    ),
    metric(
        "modelled_mb_per_s",
        "MB/s",
        Better::Higher,
        "payload over those seconds",
    ),
    metric(
        "hit_percent",
        "%",
        Better::Higher,
        "uses that found their page, on the modelled machine",
    ),
    metric(
        "first_hit_percent",
        "%",
        Better::Higher,
        "the same, of the first client or the build alone",
    ),
    metric(
        "bare_hit_percent",
        "%",
        Better::Higher,
        "the same without readahead, dirty pages and time",
    ),
    metric("pages_read", "", Better::Lower, "pages read from the disk"),
    metric(
        "pages_written",
        "",
        Better::Lower,
        "pages written to the disk",
    ),
    metric("disk_commands", "", Better::Lower, "commands to the disk"),
];

impl Experiment for UseOnce {
    fn name(&self) -> &'static str {
        "use-once"
    }

    fn title(&self) -> &'static str {
        "Pages used once"
    }

    fn source(&self) -> &'static str {
        "Steve Lord, Re: [RFC] Optimization for use-once pages, linux-kernel, 25 July 2001"
    }

    fn question(&self) -> &'static str {
        "From which load on does it pay to promote a page at its second use, and does it ever cost?"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn contestants(&self) -> Vec<Box<dyn Contestant>> {
        contestants::all()
    }

    fn brief(&self) -> Option<&'static [&'static str]> {
        Some(&[plan::DBENCH, plan::FIELD, plan::CORRELATED, plan::BUILD])
    }

    fn plan(&self, request: &PlanRequest<'_>) -> Plan {
        plan::plan(request, &contestants::all())
    }

    fn analyse(&self, run: &RunRecord) -> Analysis {
        let view = RunView::new(run);
        Analysis {
            experiment: self.name().to_owned(),
            title: self.title().to_owned(),
            answers: findings::answers(&view),
            findings: findings::all(&view),
            sections: tables::sections(&view),
            warnings: vec![
                "Simulated: counts are exact for the workload, a throughput is a formula over them; neither is a measurement of this machine.".to_owned(),
            ],
            ..Analysis::default()
        }
    }
}

#[cfg(test)]
mod tests;
