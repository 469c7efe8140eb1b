//! Process ids (Franke 2002): the harness again, the algorithms of 2002 and of today, and the kernel itself.
//!
//! What is counted is in `counted`, what is timed in `timed`, `reuse` and `large`. The plan, the findings and
//! the tables have a file each.

mod counted;
mod findings;
mod large;
mod plan;
mod reuse;
mod tables;
mod timed;

use crate::contestants::kernel_ids;
use crate::frame::Declared;
use crate::measure::Contestant;
use crate::model::{Analysis, Metric};

/// The experiment `process-ids`.
pub const PROCESS_IDS: Declared = Declared {
    name: "process-ids",
    title: "Process ids by walk, by sweep and by map",
    source: "Hubertus Franke, Analysis for Linux-2.5 fix/improve get_pid(), linux-kernel, 9 August 2002",
    question: "From how many tasks on does a bitmap find a free pid sooner than a walk over the tasks, and can it reach 32 bits?",
    metrics: METRICS,
    contestants,
    brief: Some(&[
        plan::COUNTS,
        plan::NEAR,
        plan::PASSES,
        plan::REUSE,
        plan::LARGE,
    ]),
    plan: plan::plan,
    afresh: None,
    analyse: |results| Analysis {
        answers: findings::answers(results),
        findings: findings::all(results),
        goals: findings::goals(results),
        sections: tables::sections(results),
        ..Analysis::default()
    },
};

const METRICS: &[Metric] = &[
    Metric::cost("us_per_alloc", "us", "one allocation: Franke's G"),
    Metric::cost("us_per_free", "us", "telling a map of a free id"),
    Metric::cost("us_per_search", "us", "all allocations per search"),
    Metric::count("searches", "", "interval searches: Franke's S"),
    Metric::count("allocations", "", "timed allocations: Franke's T"),
    Metric::count("passes", "", "tasks looked at, per search and task"),
    Metric::count("task_lines", "", "cache lines of tasks per allocation"),
    Metric::count("capped", "", "1 where the time was up too early"),
    Metric::cost("ns_per_task", "ns", "a pass over the list, per task"),
    Metric::cost("ns_per_alloc", "ns", "an allocation, batches of 256"),
    Metric::cost("ns_per_free", "ns", "a free, batches of 256"),
    Metric::cost("bits_per_id", "", "memory held per id of the space"),
    Metric::count("least", "", "fewest allocations until reuse"),
    Metric::count("p1", "", "the same, of one return in a hundred"),
    Metric::count("median", "", "the same, of half of the returns"),
    Metric::count("most", "", "the greatest"),
];

fn contestants() -> Vec<Box<dyn Contestant>> {
    let mut all = timed::all();
    all.extend(timed::passes());
    all.extend(counted::contestants());
    all.push(reuse::contestant());
    all.extend(large::all());
    all.extend(kernel_ids::all());
    all
}

#[cfg(test)]
mod tests {
    use super::plan::{ALGORITHMS, LAST, NEAR, PACKED, SCATTERED, work_of_2002};
    use super::*;
    use crate::experiments::tests::plan_of;
    use crate::measure::Depth;
    use crate::model::Cell;
    use crate::published;

    #[test]
    fn one_amount_of_work_is_played_by_all_at_an_a() {
        let groups = [Depth::Quick, Depth::Full]
            .into_iter()
            .flat_map(|depth| plan_of(&PROCESS_IDS, depth).groups);
        for group in groups.filter(|g| [NEAR, SCATTERED, PACKED].contains(&g.name.as_str())) {
            let lists: Vec<&Cell> = group
                .cells
                .iter()
                .filter(|c| c.contestant == "algo-0")
                .collect();
            let played = |c: &Cell| lists.iter().any(|list| list.params == c.params);
            assert!(group.cells.iter().all(played), "{}", group.name);
        }
    }

    #[test]
    fn full_has_all_of_the_rows_of_2002_and_the_last_id() {
        let plan = plan_of(&PROCESS_IDS, Depth::Full);
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
    fn what_runs_by_default_takes_fifteen_seconds() {
        let brief = PROCESS_IDS.brief.unwrap();
        let mut groups = plan_of(&PROCESS_IDS, Depth::Quick).groups;
        groups.retain(|g| brief.contains(&g.name.as_str()));
        assert_eq!(groups.len(), brief.len());
        let seconds =
            |g: &crate::measure::Group| g.round_guess.as_secs_f64() * f64::from(g.max_rounds);
        let guess: f64 = groups.iter().map(seconds).sum();
        assert!(guess < 15.0, "{guess}");
    }
}
