//! Page buffers from clusters of tunable size (Walfield 2001), with today's suppliers beside them.
//!
//! `workload` is Walfield's loop, `parts` the life of a cluster in parts; `findings` and `tables` say what they showed.

mod findings;
mod goals;
mod groups;
mod parts;
mod tables;
mod workload;

use self::goals::POOL_SIZE;
use self::groups::{
    COST, GROWING, GROWTH, Main, OURS, PARTS, RELEASE, WHOLE, sizes_of_2001, total_group,
    totals_of_2001,
};
use self::parts::Life;
use self::workload::Job;
use crate::contestants::supply::{
    Cluster, ClusterWhole, PoolHandles, PoolPerCpu, Supply, SystemMalloc, Unbuffered,
};
#[cfg(feature = "peers")]
use crate::contestants::supply::{Jemalloc, Mimalloc};
use crate::frame::{Declared, Planner, Results, bench, cross};
use crate::measure::{Contestant, Plan, PlanRequest};
use crate::model::{Analysis, Cell, Cost, Measures, Metric, Params};

const METRICS: &[Metric] = &[
    Metric::cost(COST, "ns", "CPU time of a page's life"),
    Metric::cost("elapsed_s", "s", "wall time of the whole workload"),
    Metric::cost("setup_s", "s", "wall time of making the supplier"),
    Metric::cost("get_ns", "ns", "mapping and handing out, per page"),
    Metric::cost("touch_ns", "ns", "filling a page, its fault included"),
    Metric::cost("give_back_ns", "ns", "giving back to the kernel, per page"),
    Metric::cost("call_ns", "ns", "one call that gives pages back"),
    Metric::count("calls_per_page", "", "system calls of the supplier"),
    Metric::count("faults_per_page", "", "pages that became present"),
    Metric::count("mappings", "", "of the process, 100 pages being out"),
    Metric::cost("held_bytes", "B", "resident growth, every page back"),
];

/// The total of the quick form's sweep. Walfield's smallest is eight times as much; the cost of a page does not depend on it as
/// long as it is larger than the cluster.
const QUICK_TOTAL: i64 = 8192;

/// Cluster sizes of the quick form: the regions of Walfield's table, and 16 to 19, of which 17 and 18 stood out.
const QUICK_SIZES: [i64; 11] = [1, 8, 16, 17, 18, 19, 24, 64, 512, 4096, 8192];

/// Cluster sizes of the quick form at one of Walfield's totals, for the goals: the best of 2001 and a larger one.
const GOAL_SIZES: [i64; 2] = [24, 128];

/// Cluster sizes of the pool in the quick form.
const QUICK_POOL_SIZES: [i64; 2] = [POOL_SIZE, 4096];

/// Cluster sizes of a pool that grows: those that the library chooses among, and one on each side. The quick form leaves the
/// largest out.
const GROWTH_SIZES: [i64; 6] = [34, 64, 128, 256, 512, 1024];

/// Pages per give-back call, around the 33 single-page flushes that x86 kernels make before they flush everything.
/// The first is the reference.
const RELEASE_SIZES: [i64; 10] = [33, 8, 16, 24, 31, 32, 34, 35, 36, 48];

/// Seconds for which a group of the full form goes on past its fewest rounds where it is not precise.
const GROUP_SECONDS: f64 = 240.0;

/// The experiment `page-buffers`.
pub const PAGE_BUFFERS: Declared = Declared {
    name: "page-buffers",
    title: "Page buffers: which cluster size?",
    source: "Neal H. Walfield, Re: Allocating buffers in ext2fs, bug-hurd, 20 December 2001",
    question: "How many pages should one call to the kernel supply, and why do smaller and larger clusters cost more?",
    metrics: METRICS,
    contestants,
    brief: None,
    plan,
    afresh: None,
    analyse,
};

/// Every contestant, in the order of the tables.
fn contestants() -> Vec<Box<dyn Contestant>> {
    let mut all = vec![
        bench(
            "unbuffered",
            "Program 1 of Walfield 2001: mmap and munmap for every page",
            |params| Job::new(params)?.measure(Unbuffered::default()),
        ),
        bench(
            "cluster",
            "Program 2 of Walfield 2001: pages of one preallocated mapping, each unmapped when it is freed",
            |params| Job::new(params)?.measure(Cluster::new(params.count("pages")?)?),
        ),
        bench(
            "cluster-whole",
            "Program 2, but a cluster is unmapped in one call when its last page is freed, as GNU Mach's memory objects released it",
            |params| whole(params, false),
        ),
        bench(
            "cluster-populate",
            "cluster-whole with MAP_POPULATE: the call that maps a cluster makes its pages present",
            |params| whole(params, true),
        ),
        bench(
            "pool",
            "larder's page pool, per CPU, with clusters of so many pages",
            |params| pool(params, PoolPerCpu::new),
        ),
        bench(
            "pool-handle",
            "larder's page pool through a handle, with clusters of so many pages",
            |params| pool(params, PoolHandles::new),
        ),
        bench(
            "malloc",
            "posix_memalign and free of the C library",
            |params| Job::new(params)?.measure(SystemMalloc::default()),
        ),
        bench(
            GROWING,
            "larder's page pool, per CPU: 4096 pages are taken, filled, put back and returned to the kernel",
            parts::growth,
        ),
        bench(
            "release",
            "MADV_DONTNEED of present pages in one call",
            parts::release,
        ),
    ];
    all.extend(
        LIVES.map(|(name, about, life)| bench(name, about, move |params| parts::run(life, params))),
    );
    #[cfg(feature = "peers")]
    all.extend([
        bench(
            "mimalloc",
            "mi_malloc_aligned and mi_free of one page",
            |params| Job::new(params)?.measure(Mimalloc::default()),
        ),
        bench(
            "jemalloc",
            "mallocx of one aligned page and sdallocx",
            |params| Job::new(params)?.measure(Jemalloc::default()),
        ),
    ]);
    all
}

fn plan(request: &PlanRequest<'_>, contestants: &[Box<dyn Contestant>]) -> Plan {
    let mut plan = Planner::new(request, contestants, (6, 8, 0.05), (6, 15, 0.02));
    let each = |names: &[&str], total: i64, sizes: &[i64]| {
        let params = |pages: &i64| Params::new().with("total", total).with("pages", *pages);
        cross(names, &sizes.iter().map(params).collect::<Vec<_>>())
    };
    let alone = |names: &[&str], total: i64| cross(names, &[Params::new().with("total", total)]);
    let walfields: Vec<i64> = sizes_of_2001().into_iter().filter(|k| *k > 0).collect();
    let totals = plan.either(vec![QUICK_TOTAL], totals_of_2001().into_iter().collect());
    let clusters = plan.either(QUICK_SIZES.to_vec(), walfields.clone());
    let pools = plan.either(QUICK_POOL_SIZES.to_vec(), walfields);
    for total in totals {
        let cells = [
            alone(&["unbuffered", "malloc", "mimalloc", "jemalloc"], total),
            each(&["cluster"], total, &clusters),
            each(&OURS, total, &pools),
        ];
        group(&mut plan, &total_group(total), "unbuffered", &cells);
    }
    // One of Walfield's totals in the quick form, too: the reference is the cheapest cell.
    if let (true, Some(total)) = (plan.quick(), totals_of_2001().first()) {
        let cells = [
            each(&OURS, *total, &[POOL_SIZE]),
            alone(&["unbuffered"], *total),
            each(&["cluster"], *total, &GOAL_SIZES),
        ];
        group(&mut plan, &total_group(*total), "pool", &cells);
    }
    let total = plan.either(QUICK_TOTAL, 65_536);
    // On both sides of the TLB flush ceiling and of the caches.
    let whole: &[i64] = plan.either(
        &[16, 64, 256, 512, 4096],
        &[1, 4, 16, 24, 32, 34, 48, 64, 96, 128, 256, 512, 1024, 4096],
    );
    let populated: &[i64] = plan.either(&[64, 512, 4096], &[1, 16, 34, 64, 128, 512, 1024, 4096]);
    let cells = [
        alone(&["unbuffered"], total),
        each(&["cluster-whole"], total, whole),
        each(&["cluster-populate"], total, populated),
    ];
    group(&mut plan, WHOLE, "unbuffered", &cells);
    let life: &[i64] = plan.either(&[64, 512, 8192, 1], &[64, 1, 16, 512, 2048, 8192]);
    let populated = plan.either(&life[..3], life);
    let cells = [
        each(&["life-whole"], total, life),
        each(&["life-populate"], total, populated),
        each(&["life-by-page"], total, plan.either(&life[1..2], life)),
    ];
    group(&mut plan, PARTS, "life-whole", &cells);
    let growth = plan.either(&GROWTH_SIZES[..5], &GROWTH_SIZES);
    let cells = each(&[GROWING], plan.either(4096, 65_536), growth);
    group(&mut plan, GROWTH, GROWING, &[cells]);
    let cells = each(&["release"], plan.either(150, 1000), &RELEASE_SIZES);
    group(&mut plan, RELEASE, "release", &[cells]);
    if plan.quick() {
        let why = "they take the better part of an hour; run with --full for all totals and sizes";
        plan.skip("Walfield's larger totals", why);
    }
    plan.finish()
}

fn analyse(results: &Results<'_>) -> Analysis {
    let mut warnings = Vec::new();
    if results
        .view
        .run()
        .machine
        .text("thp.enabled")
        .contains("[always]")
    {
        warnings.push(
            "Transparent huge pages are on for every mapping (thp.enabled is always): clusters of 512 pages and more may get huge pages, which 2001 did not have. Set it to madvise to see single pages."
                .to_owned(),
        );
    }

    let (mut findings, answers) = findings::all(results);
    if let Some(first) = findings.first_mut() {
        first.chart = Some(tables::shape(results));
    }
    Analysis {
        findings,
        goals: goals::all(results),
        sections: tables::sections(results),
        costs: from_the_kernel(results).into_iter().collect(),
        answers,
        recommendations: goals::recommendation(results).into_iter().collect(),
        warnings,
        ..Analysis::default()
    }
}

/// The contestants that time a cluster's life in parts.
const LIVES: [(&str, &str, Life); 3] = [
    (
        "life-by-page",
        "A cluster's life in parts: get, touch, one munmap per page",
        Life::ByPage,
    ),
    (
        "life-whole",
        "A cluster's life in parts: get, touch, one munmap per cluster",
        Life::Whole,
    ),
    (
        "life-populate",
        "A cluster's life in parts: MAP_POPULATE, touch, one munmap per cluster",
        Life::Populated,
    ),
];

fn whole(params: &Params, populate: bool) -> anyhow::Result<Measures> {
    Job::new(params)?.measure(ClusterWhole::new(params.count("pages")?, populate)?)
}

fn pool<S: Supply>(
    params: &Params,
    new: fn(Option<usize>) -> anyhow::Result<S>,
) -> anyhow::Result<Measures> {
    let job = Job::new(params)?;
    let pool = new(Some(params.count("pages")?))?;
    job.measure(pool.local()?)
}

/// A group with the time that its cells take. In full more rounds than the fewest are taken where they cost little.
fn group(plan: &mut Planner, name: &str, reference: &str, cells: &[Vec<Cell>]) {
    let cells = cells.concat();
    let twin = cells.iter().find(|cell| cell.contestant == reference);
    let seconds = cells.iter().chain(twin).map(seconds).sum();
    plan.group(name, COST, reference, seconds, cells);
    if !plan.quick() {
        let rounds = (GROUP_SECONDS / seconds).clamp(6.0, 15.0) as u32;
        plan.rounds((6, rounds, 0.02));
    }
}

/// What a cell takes in a virtual machine of 2026: for the progress bar, and for the share of the time of this experiment.
fn seconds(cell: &Cell) -> f64 {
    let factor = |name| cell.params.int(name).unwrap_or(1) as f64;
    let ns_per_page = match cell.contestant.as_str() {
        "unbuffered" | "life-by-page" => 7000.0,
        "cluster" => 5700.0,
        GROWING => 1500.0,
        "pool" | "pool-handle" | "mimalloc" | "jemalloc" => 200.0,
        // Per call.
        "release" => 700.0 * factor("pages"),
        // One call at each end of a cluster.
        _ => 2000.0 + 5000.0 / factor("pages"),
    };
    // The process starts and ends, too.
    0.008 + factor("total") * ns_per_page / 1e9
}

/// What a page costs without larder: one mmap and one munmap for each.
fn from_the_kernel(results: &Results<'_>) -> Option<Cost> {
    let ns = Main::of(results)?.unbuffered?.middle(COST)?;
    Some(Cost {
        what: "page, from the kernel".to_owned(),
        unit: "ns".to_owned(),
        peer: Some(("mmap".to_owned(), ns)),
        ..Cost::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::tests::plan_of;
    use crate::measure::Experiment;
    use crate::measure::{Depth, Group};

    /// Minutes of a plan by its own guess: with the fewest and with the most rounds.
    fn minutes(plan: &Plan) -> (f64, f64) {
        let of = |rounds: fn(&Group) -> u32| {
            let groups = plan.groups.iter();
            groups
                .map(|g| g.round_guess.as_secs_f64() * f64::from(rounds(g)))
                .sum::<f64>()
                / 60.0
        };
        (of(|g| g.min_rounds), of(|g| g.max_rounds))
    }

    #[test]
    fn full_has_the_table_of_2001_and_ends_within_the_hour() {
        let plan = plan_of(&PAGE_BUFFERS, Depth::Full);
        for total in [65_536, 131_072, 262_144, 524_288, 1_048_576] {
            let name = total_group(total);
            let group = plan
                .groups
                .iter()
                .find(|g| g.name == name)
                .expect("a group each");
            let sizes = group
                .cells
                .iter()
                .filter(|c| c.contestant == "cluster")
                .count();
            assert_eq!((sizes, group.min_rounds), (37, 6));
        }
        assert!(plan.groups.iter().all(|group| group.min_rounds >= 6));
        let (_, most) = minutes(&plan);
        assert!((40.0..60.0).contains(&most), "{most} minutes");
    }

    #[test]
    fn quick_has_a_total_of_2001_and_the_sizes_of_the_findings_and_fits() {
        let plan = plan_of(&PAGE_BUFFERS, Depth::Quick);
        let group = |total| {
            let name = total_group(total);
            plan.groups
                .iter()
                .find(|g| g.name == name)
                .expect("planned")
        };
        let has = |total, name: &str, pages| {
            let cells = &group(total).cells;
            cells
                .iter()
                .any(|c| c.contestant == name && c.params.int("pages").ok() == Some(pages))
        };
        for pages in [16, 17, 18, 19, 64, 4096] {
            assert!(has(QUICK_TOTAL, "cluster", pages), "{pages}");
        }
        assert!(has(65_536, "pool", POOL_SIZE) && has(65_536, "cluster", 24));
        assert!(
            QUICK_SIZES
                .iter()
                .all(|pages| sizes_of_2001().contains(pages))
        );
        assert!(plan.groups.iter().all(|group| group.min_rounds >= 6));
        let (fewest, _) = minutes(&plan);
        assert!(fewest < 0.3, "{fewest} minutes");
    }

    #[test]
    fn system_calls_per_page_are_those_of_the_programs() {
        let calls = |name: &str, params: &Params| {
            let all = PAGE_BUFFERS.contestants();
            let contestant = all.iter().find(|c| c.name() == name).expect("listed");
            let measures = contestant.run(params).expect("runs");
            assert!(measures.0.values().all(|value| value.is_finite()));
            measures.get("calls_per_page").expect("counted")
        };
        let total = Params::new().with("total", 1500);
        assert_eq!(calls("unbuffered", &total), 2.0);
        let sized = |pages| total.clone().with("pages", pages);
        assert_eq!(calls("cluster", &sized(1)), 2.0);
        assert_eq!(calls("cluster", &sized(15)), 1.0 + 1.0 / 15.0);
        assert_eq!(calls("cluster-whole", &sized(15)), 2.0 / 15.0);
        assert_eq!(calls("cluster-populate", &sized(15)), 2.0 / 15.0);
    }

    #[test]
    fn every_contestant_runs_and_refuses_missing_factors() {
        for contestant in PAGE_BUFFERS.contestants() {
            assert!(
                contestant.run(&Params::new()).is_err(),
                "{}",
                contestant.name()
            );
            let params = Params::new().with("total", 150).with("pages", 64);
            let measures = contestant.run(&params).expect("runs");
            assert!(measures.get(COST).expect("timed") > 0.0);
        }
    }
}
