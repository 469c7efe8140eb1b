//! Lord's mail of July 2001 in simulation: 2.4.7 with and without the use-once patch under dbench, every other rule on the
//! same work, and what several touches at once do to them.
//!
//! Nothing here is timed: hits, reads and writes are exact counts, the same on every machine, and a throughput is a formula
//! over them (`larder_sim::machine`).

mod contestants;
mod findings;
mod metrics;
mod plan;
mod rows;
mod tables;

pub(super) use self::contestants::loadfile;
use self::metrics::METRICS;
pub(super) use self::plan::{CLIENTS, PATCHED, VANILLA};
pub(super) use self::rows::{lords_build, lords_change};
use crate::frame::{Declared, Results};
use crate::model::Analysis;

/// The experiment `use-once`.
pub const USE_ONCE: Declared = Declared {
    name: "use-once",
    title: "Pages used once",
    source: "Steve Lord, Re: [RFC] Optimization for use-once pages, linux-kernel, 25 July 2001",
    question: "From which load on does it pay to promote a page at its second use, and does it ever cost?",
    metrics: METRICS,
    contestants: contestants::all,
    brief: Some(&[plan::DBENCH, plan::FIELD, plan::CORRELATED, plan::BUILD]),
    plan: plan::plan,
    afresh: None,
    analyse,
};

fn analyse(results: &Results<'_>) -> Analysis {
    Analysis {
        answers: findings::answers(results),
        findings: findings::all(results),
        sections: tables::sections(results),
        warnings: vec![
            "Simulated: counts are exact for the workload, a throughput is a formula over them; neither is a measurement of this machine.".to_owned(),
        ],
        ..Analysis::default()
    }
}

#[cfg(test)]
mod tests;
