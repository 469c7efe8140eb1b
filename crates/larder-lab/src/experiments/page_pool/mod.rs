//! The page pool against the system's malloc, mimalloc and jemalloc as suppliers of pages.
//!
//! `loops` has what is timed; `shapes`, `handover` and `threads` are what is done with a supplier.

mod goals;
mod handover;
mod jobs;
mod loops;
mod ring;
mod shapes;
mod threads;

use self::jobs::*;
use crate::contestants::supply::{
    ArrayStacks, PoolHandles, PoolPerCpu, SamePages, Supply, SystemMalloc,
};
#[cfg(feature = "peers")]
use crate::contestants::supply::{Jemalloc, Mimalloc};
use crate::contestants::timing::resident_bytes;
use crate::frame::{
    At, Column, Counted, Declared, Planner, Results, bench, cost, cross, finding, lines, listing,
    median_of, over, section, shown, versus,
};
use crate::measure::{Contestant, Plan, PlanRequest};
use crate::model::{Analysis, Block, Cell, Finding, Measures, Metric, Params, Scale, Section};

// ns_per_page is CPU time of the thread, of all threads in `threads`, and wall time in `handover`.
const METRICS: &[Metric] = &[
    Metric::cost(COST, "ns", "a page there and back"),
    Metric::rate(RATE, "Mop/s", "pairs of all threads together"),
    Metric::cost(HELD, "B", "resident growth, every page back"),
    Metric::cost("growth_bytes", "B", "gained after a fifth of the time"),
    Metric::cost("growth_bytes_per_s", "B/s", "slope of resident memory"),
    Metric::count("faults_per_page", "", "pages that became present"),
    Metric::cost(INSTRUCTIONS, "", "of one warm get, write and put"),
];

/// Pages of the bare stack: as many as the deepest shape takes.
const STACK_PAGES: usize = 512;

/// Seconds of one long handover; with its twin and six rounds they are ten minutes.
const GROWTH_SECONDS: i64 = 50;

/// The experiment `page-pool`.
pub const PAGE_POOL: Declared = Declared {
    name: "page-pool",
    title: "The page pool against its peers",
    source: "Bonwick and Adams, Magazines and Vmem, USENIX 2001, for the method; the peers are measured in the same rounds",
    question: "What does a warm page cost from the pool and from today's allocators, and what do they hold for it?",
    metrics: METRICS,
    contestants,
    brief: Some(&["pair", "deep", "zeroed", HANDOVER, THREADED]),
    plan,
    afresh: None,
    analyse: |results| Analysis {
        costs: [
            ("page, warm", "pair", "array-stack"),
            ("page, 256 in use", "deep-256", "array-stack"),
            ("page, zeroed", "zeroed-64", "memset"),
            ("page, handed over", HANDOVER, ""),
        ]
        .into_iter()
        .filter_map(|(what, group, floor)| {
            // In the cheaper of the pool's two forms.
            let ours = results.best(group, &OURS, &[], COST);
            let floor = results.find(group, floor, &[]);
            cost(what, "ns", COST, ours, best_peer(results, group), floor)
        })
        .collect(),
        findings: JOBS
            .iter()
            .filter(|job| !job.question.is_empty())
            .filter_map(|job| {
                let pool = results.find(job.group, "pool", &[])?;
                let peer = best_peer(results, job.group)?;
                versus(job.question, "larder's pool", &pool, &peer, COST, "ns")
            })
            .chain(memory(results))
            .collect(),
        goals: goals::all(results),
        sections: sections(results),
        ..Analysis::default()
    },
};

/// Every contestant, in the order of the tables.
fn contestants() -> Vec<Box<dyn Contestant>> {
    let mut all = vec![
        bench(
            "empty-loop",
            "the loop and the write alone: one page again and again",
            |params| run(|| Ok(SamePages), params),
        ),
        bench(
            "array-stack",
            "a bare array of present pages, one thread's own: the floor of taking and putting back",
            |params| run(|| Ok(ArrayStacks { pages: STACK_PAGES }), params),
        ),
        bench(
            "memset",
            "warm pages filled with zeros by the C library's memset: the floor of zeroing",
            shapes::memset,
        ),
        bench(
            "pool",
            "larder's page pool with its default settings, through the CPU's magazines",
            |params| run(|| PoolPerCpu::new(None), params),
        ),
        bench(
            "pool-handle",
            "larder's page pool with its default settings, through a handle of the thread's own",
            |params| run(|| PoolHandles::new(None), params),
        ),
        bench(
            "malloc",
            "posix_memalign and free of the C library; zeroed by memset",
            |params| run(|| Ok(SystemMalloc::default()), params),
        ),
    ];
    #[cfg(feature = "peers")]
    all.extend([
        bench(
            "mimalloc",
            "mi_malloc_aligned, mi_zalloc_aligned and mi_free of one page",
            |params| run(|| Ok(Mimalloc::default()), params),
        ),
        bench(
            "jemalloc",
            "mallocx (aligned, zeroed) and sdallocx of one page",
            |params| run(|| Ok(Jemalloc::default()), params),
        ),
    ]);
    all.push(Box::new(Counted {
        about: "instructions of one warm get and put of the named supplier, counted by callgrind",
        experiment: "page-pool",
        factor: "supplier",
        pieces: 20_000,
        warm_share: shapes::WARM_SHARE,
        params: |pairs| {
            Params::new()
                .with_text("shape", "pair")
                .with("pages", pairs)
        },
    }));
    all
}

fn plan(request: &PlanRequest<'_>, contestants: &[Box<dyn Contestant>]) -> Plan {
    let mut plan = Planner::new(request, contestants, (6, 10, 0.05), (15, 33, 0.02));
    let peer = plan.has("mimalloc");
    let reference = if peer { "mimalloc" } else { "malloc" };
    // malloc pays the kernel for nearly every page once many are out: the quick form leaves it to the pairs.
    let few_peers = &PEERS[usize::from(plan.quick() && peer)..];
    let suppliers = |peers: &[&'static str], floors: &[&'static str]| -> Vec<&'static str> {
        OURS.iter().chain(peers).chain(floors).copied().collect()
    };
    for job in JOBS {
        let mut params = Params::new()
            .with_text("shape", job.shape)
            .with("pages", plan.either(job.pages.0, job.pages.1));
        if matches!(job.shape, "deep" | "zeroed") {
            params = params.with("depth", job.depth);
        }
        let peers = [few_peers, &PEERS][usize::from(job.depth == 1)];
        let cells = cross(&suppliers(peers, job.floors), &[params]);
        plan.group(job.group, COST, reference, plan.either(0.2, 2.0), cells);
    }
    let milliseconds = plan.either(20, 300);
    let variants = THREADS.map(|n| {
        let params = Params::new().with_text("shape", THREADED);
        params.with("milliseconds", milliseconds).with("threads", n)
    });
    // The bare stack shows how far the machine itself scales.
    let cells = cross(&suppliers(few_peers, &["array-stack"]), &variants);
    plan.group(THREADED, COST, reference, plan.either(1.2, 9.0), cells);
    if plan.quick() {
        plan.skip(
            "memory over ten minutes",
            "the quick form looks at memory for a moment only; run with --full for ten minutes of handing pages over",
        );
    } else {
        let params = Params::new().with_text("shape", HANDOVER);
        let cell = Cell::new("pool", params.with("seconds", GROWTH_SECONDS));
        plan.group(GROWTH, COST, "pool", 2.0 * GROWTH_SECONDS as f64, [cell])
            .rounds((6, 6, 0.02));
    }
    let more: &[&str] = plan.either(&[], &["pool", "malloc", "mimalloc", "jemalloc"]);
    plan.instructions(
        "supplier",
        &[&["pool-handle", "array-stack"], more].concat(),
    );
    plan.finish()
}

/// Runs the shape that the factors name. Memory is read before the supply is made, so that what it needs for itself
/// is counted as held.
fn run<S: Supply>(
    make: impl FnOnce() -> anyhow::Result<S>,
    params: &Params,
) -> anyhow::Result<Measures> {
    let before = resident_bytes();
    let shape = params.text("shape")?;
    let supply = &make()?;
    match shape {
        "pair" | "deep" | "zeroed" => shapes::run(supply, shape, before, params),
        "handover" => handover::run(supply, before, params),
        "threads" => threads::run(supply, params),
        other => anyhow::bail!(
            "shape '{other}' is unknown; the shapes are pair, deep, zeroed, handover and threads"
        ),
    }
}

/// Whether memory grows with the threads.
fn memory(results: &Results<'_>) -> Option<Finding> {
    let added = |name: &str| median_of(&held_per_thread(results, name));
    let pool = added("pool")?;
    let answer = format!(
        "Each thread from the 9th to the 64th adds {:.0} [{:.0}, {:.0}] bytes to what larder's pool holds.",
        pool.value, pool.lo, pool.hi
    );
    let most = results
        .all(THREADED)
        .filter(|at| at.int("threads") == Some(MANY));
    let table = listing(
        "Memory that each thread from the 9th to the 64th adds",
        most,
        vec![
            Column::contestant("supplier"),
            Column::by("added", |at| shown(added(at.name()), "B")),
        ],
    );
    Some(
        finding(
            "Does each thread add to the memory that the pool holds?",
            "larder",
            answer,
        )
        .with(table),
    )
}

fn sections(results: &Results<'_>) -> Vec<Section> {
    let costs = JOBS.iter().map(|job| {
        let peer = best_peer(results, job.group);
        let called = peer.map_or("best peer", |peer| peer.name());
        let floor = job.floor.map_or("", |(floor, ..)| floor);
        Block::Table(listing(
            format!("{} ({})", job.table, job.group),
            results.ranked(job.group, COST),
            vec![
                Column::contestant("supplier"),
                Column::metric("time", COST),
                Column::against(&format!("of {called}"), peer, COST),
                Column::over(&format!("of {floor}"), COST, |at| {
                    let floor = results.find(job.group, floor, &[]);
                    floor.filter(|floor| OURS.contains(&at.name()) && floor.cell != at.cell)
                }),
                Column::metric("held", HELD),
                Column::metric("gained after the first fifth", "growth_bytes"),
            ],
        ))
    });
    let peer = |at: &At<'_, '_>| fastest(results, at.int("threads")?);
    let rates = listing(
        "Pairs per second of all threads together; what idle threads hold, without their stacks",
        results.all(THREADED),
        vec![
            Column::contestant("supplier"),
            Column::factor("threads", "threads"),
            Column::metric("rate", RATE),
            Column::against_each("of the fastest peer", peer, RATE),
            Column::by("of one thread", |at| {
                let scale = at.int("threads").map(|n| scaling(results, at.name(), n));
                shown(scale.and_then(|by_round| median_of(&by_round)), "")
            }),
            Column::by("of that peer's scaling", |at| {
                let ratio = || {
                    let peer = peer(at).filter(|peer| peer.cell != at.cell)?;
                    scaling_of(results, at.name(), peer.name(), at.int("threads")?)
                };
                shown(ratio(), "x")
            }),
            Column::metric("held", HELD),
        ],
    );
    let suppliers = OURS.into_iter().chain(PEERS);
    let chart = lines(
        "Pairs per second by number of threads",
        ("threads", Scale::Log),
        ("million pairs per second", Scale::Log),
        suppliers.map(|name| over(name, results.of(THREADED, name), "threads", RATE)),
    );
    let counts = listing(
        "Instructions of one warm get, write and put",
        results.all(INSTRUCTIONS),
        vec![
            Column::factor("supplier", "supplier"),
            Column::middle(INSTRUCTIONS, INSTRUCTIONS),
        ],
    )
    .noted("Difference of two runs under callgrind, the loop included. Under valgrind the per-CPU path runs as its locked fallback.");
    vec![
        section("A page, there and back", costs),
        section("Many threads", [Block::Table(rates), Block::Chart(chart)]),
        section("Instructions", [Block::Table(counts)]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::tests::plan_of;
    use crate::measure::Depth;
    use crate::measure::Experiment;
    use std::time::Duration;

    #[test]
    fn an_unknown_shape_names_the_known_ones() {
        let supplied = PAGE_POOL.contestants().into_iter();
        for contestant in supplied.filter(|c| !["memset", INSTRUCTIONS].contains(&c.name())) {
            let params = Params::new().with_text("shape", "round").with("pages", 1);
            let error = contestant.run(&params).expect_err("no such shape");
            let error = error.to_string();
            assert!(error.contains("the shapes are"), "{error}");
        }
    }

    #[test]
    fn every_job_is_planned() {
        for depth in [Depth::Quick, Depth::Full] {
            let plan = plan_of(&PAGE_POOL, depth);
            for name in JOBS.map(|job| job.group).iter().chain(&[THREADED]) {
                assert!(plan.groups.iter().any(|g| g.name == *name), "{name}");
            }
        }
    }

    #[test]
    fn the_default_run_fits_and_holds_every_goal_but_the_long_one() {
        let brief = PAGE_POOL.brief().expect("counting instructions takes long");
        let plan = plan_of(&PAGE_POOL, Depth::Quick).groups.into_iter();
        let groups = plan.filter(|g| brief.iter().any(|name| g.name.contains(name)));
        let mut guess = Duration::ZERO;
        let mut names = Vec::new();
        for group in groups {
            assert!(group.min_rounds >= 6, "{}", group.name);
            guess += group.round_guess * group.min_rounds;
            names.push(group.name);
        }
        assert_eq!(names.len(), JOBS.len() + 1, "{names:?}");
        assert!(guess < Duration::from_secs(16), "{guess:?}");
    }
}
