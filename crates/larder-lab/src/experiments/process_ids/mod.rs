//! Process ids (Franke 2002): the harness again, the algorithms of 2002 and of today, and the kernel itself.
//!
//! What is counted is in `counts`, what is timed in `timed`, `reuse` and `large`. The plan, the findings and
//! the tables have a file each.

mod counted;
mod counts;
mod findings;
mod large;
mod plan;
mod reuse;
mod tables;
mod timed;

use crate::contestants::kernel_ids::{Descriptors, Ports, Processes};
use crate::frame;
use crate::measure::{Contestant, Experiment, Plan, PlanRequest};
use crate::model::{Analysis, Metric, RunRecord};

/// The experiment `process-ids`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessIds;

const METRICS: &[Metric] = &[
    Metric::cost(
        "us_per_alloc",
        "us",
        "CPU time of one allocation with its task added: Franke's G",
    ),
    Metric::cost(
        "us_per_free",
        "us",
        "CPU time of telling a map that an id is free",
    ),
    Metric::cost(
        "us_per_search",
        "us",
        "CPU time of all allocations per search",
    ),
    Metric::count("searches", "", "interval searches: Franke's S"),
    Metric::count("allocations", "", "allocations that were timed: Franke's T"),
    Metric::count("passes", "", "tasks looked at per search and task"),
    Metric::count(
        "task_lines",
        "",
        "cache lines of tasks that an allocation touches",
    ),
    Metric::count(
        "capped",
        "",
        "1 where the time was up before all allocations were made",
    ),
    Metric::cost(
        "ns_per_task",
        "ns",
        "CPU time of a pass over the list, per task",
    ),
    Metric::cost(
        "ns_per_alloc",
        "ns",
        "CPU time of one allocation, batches of 256",
    ),
    Metric::cost("ns_per_free", "ns", "CPU time of one free, batches of 256"),
    Metric::cost("bits_per_id", "", "memory held, per id of the space"),
    Metric::count(
        "least",
        "",
        "least number of allocations between an id's end and its return",
    ),
    Metric::count("p1", "", "the same, of one return in a hundred"),
    Metric::count("median", "", "the same, of half of the returns"),
    Metric::count("most", "", "the greatest"),
];

impl Experiment for ProcessIds {
    fn name(&self) -> &'static str {
        "process-ids"
    }

    fn title(&self) -> &'static str {
        "Process ids by walk, by sweep and by map"
    }

    fn source(&self) -> &'static str {
        "Hubertus Franke, Analysis for Linux-2.5 fix/improve get_pid(), linux-kernel, 9 August 2002"
    }

    fn question(&self) -> &'static str {
        "From how many tasks on does a bitmap find a free pid sooner than a walk over the tasks, and can it reach 32 bits?"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn contestants(&self) -> Vec<Box<dyn Contestant>> {
        let mut all = timed::all();
        #[cfg(feature = "peers")]
        all.extend(timed::crates());
        all.extend(timed::passes());
        all.extend(counts::contestants());
        all.push(reuse::contestant());
        all.extend(large::all());
        all.push(Box::new(Descriptors));
        all.push(Box::new(Ports));
        all.push(Box::new(Processes));
        all
    }

    fn brief(&self) -> Option<&'static [&'static str]> {
        Some(&[
            plan::COUNTS,
            plan::NEAR,
            plan::PASSES,
            plan::REUSE,
            plan::LARGE,
        ])
    }

    fn plan(&self, request: &PlanRequest<'_>) -> Plan {
        plan::plan(request, &self.contestants())
    }

    fn analyse(&self, run: &RunRecord) -> Analysis {
        frame::analysis(self, run, |results| Analysis {
            answers: findings::answers(results),
            findings: findings::all(results),
            goals: findings::goals(results),
            sections: tables::sections(results),
            ..Analysis::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::plan::{ALGORITHMS, LAST, NEAR, PACKED, SCATTERED, work_of_2002};
    use super::*;
    use crate::measure::Depth;
    use crate::model::{Cell, MachineRecord};
    use crate::published;

    fn plan_of(depth: Depth) -> Plan {
        ProcessIds.plan(&PlanRequest {
            depth,
            machine: &MachineRecord::default(),
            seed: 1,
        })
    }

    #[test]
    fn cells_are_unique_and_one_amount_of_work_is_played_by_all_at_an_a() {
        for depth in [Depth::Quick, Depth::Full] {
            for group in plan_of(depth).groups {
                assert!(group.cells.contains(&group.reference), "{}", group.name);
                let mut cells = group.cells.clone();
                cells.sort();
                cells.dedup();
                assert_eq!(cells.len(), group.cells.len(), "{}", group.name);
                let list = |c: &&Cell| c.contestant == "algo-0";
                let lists: Vec<&Cell> = cells.iter().filter(list).collect();
                if [NEAR, SCATTERED, PACKED].contains(&group.name.as_str()) {
                    let played = |c: &Cell| lists.iter().any(|list| list.params == c.params);
                    assert!(cells.iter().all(played), "{}", group.name);
                }
            }
        }
    }

    #[test]
    fn full_has_all_of_the_rows_of_2002_and_the_last_id() {
        let plan = plan_of(Depth::Full);
        let of = |group: &str, name: &str| {
            let group = plan.groups.iter().find(|g| g.name == group).unwrap();
            group.cells.iter().filter(|c| c.contestant == name).count()
        };
        assert!(ALGORITHMS.iter().all(|name| of(NEAR, name) == 87));
        assert_eq!((of(LAST, "algo-0"), of(PACKED, "algo-2-locked")), (1, 12));
        let left_out = |s: &crate::model::Skipped| s.why.contains("walks every task");
        assert!(plan.skipped.iter().any(left_out));
        for row in published::franke_getpid() {
            let (deletes, rounds) = work_of_2002(i64::from(row.tasks));
            assert_eq!(deletes, i64::from(row.deletes), "{}", row.tasks);
            assert!((1..=10).contains(&rounds));
        }
        assert_eq!(
            (work_of_2002(1000), work_of_2002(30_000)),
            ((1000, 10), (1000, 1))
        );
    }

    #[test]
    fn what_runs_by_default_takes_thirteen_seconds() {
        let brief = ProcessIds.brief().unwrap();
        let groups = plan_of(Depth::Quick).groups;
        let of = |name: &&str| groups.iter().find(|g| g.name == *name).unwrap();
        let guess: f64 = brief
            .iter()
            .map(of)
            .map(|g| g.round_guess.as_secs_f64() * f64::from(g.max_rounds))
            .sum();
        assert!(guess < 13.0, "{guess}");
    }
}
