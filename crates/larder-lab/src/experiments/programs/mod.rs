//! Real programs on the preloaded malloc, beside the system's and the peers' found on the machine.
//!
//! `work` has the programs; `process` runs one and checks its output; `report` has the results.

mod process;
mod report;
mod work;

use anyhow::Context;

use self::process::{CPU, FAULTS, Malloc, PEAK, Program, SECONDS, Shop};
use self::report::SYSTEM;
use self::work::{ALL, bench, find};
use crate::contestants::heaps::PRELOADED;
use crate::contestants::heaps::found::{LARDER, Library, contestants, found};
use crate::frame::{Declared, Planner, bench};
use crate::measure::{Contestant, Experiment, Plan, PlanRequest};
use crate::model::{Cell, Measures, Metric, Params, Skipped};

pub use process::OUTPUT;

const METRICS: &[Metric] = &[
    Metric::cost(
        SECONDS,
        "s",
        "wall time from the start of the program to its end",
    ),
    Metric::cost(
        CPU,
        "s",
        "user and system time of the program and of what it started",
    ),
    Metric::cost(
        PEAK,
        "B",
        "largest resident set of any of its processes, but no less than that of the lab's process that started it",
    ),
    Metric::cost(FAULTS, "", "page faults, minor and major"),
    Metric::count(
        OUTPUT,
        "",
        "52 bits of the SHA-256 of everything that it wrote",
    ),
];

/// The programs under which the quick form runs the mallocs of others, too: one with many small blocks, one with large ones. A
/// run of all experiments has neither.
const COMPARED: [&str; 2] = ["python-malloc", "python-text"];

/// Programs that cannot run here, whether or not there is a malloc to compare.
#[must_use]
pub fn absent() -> Vec<Skipped> {
    let skipped = |program: &Program| {
        let what = program.name.to_owned();
        program.missing().map(|why| Skipped { what, why })
    };
    ALL.iter().filter_map(skipped).collect()
}

/// The experiment `programs`.
pub const PROGRAMS: Declared = Declared {
    name: "programs",
    title: "Real programs",
    source: "what malloc-bench, mimalloc-bench and Hoard's authors took for real programs: interpreters, compilers, databases",
    question: "Is any program slower with larder's malloc preloaded than with the system's, and how do the other mallocs fare?",
    metrics: METRICS,
    contestants: mallocs,
    brief: Some(&["git", "perl", "python-objects", "sqlite"]),
    plan: |request, _| planned(request, found(), Program::missing),
    afresh: None,
    analyse: report::of,
};

/// The mallocs that are compared.
fn mallocs() -> Vec<Box<dyn Contestant>> {
    let system = bench(
        SYSTEM,
        "what the program has without anything preloaded: the C library's malloc, but for programs that bring their own",
        |params| run(params, &Malloc::default()),
    );
    let preloaded = |name| {
        let about = match name {
            LARDER => "liblarder_malloc.so, preloaded",
            PRELOADED => "the library that LARDER_PRELOAD names, loaded before the C library",
            _ => {
                "the library of this name that lies in the usual places, or that LARDER_PRELOAD names, preloaded"
            }
        };
        bench(name, about, |params| {
            run(params, &Malloc::preloaded(params.text("library")?))
        })
    };
    [system]
        .into_iter()
        .chain(contestants().map(preloaded))
        .collect()
}

fn run(params: &Params, malloc: &Malloc) -> anyhow::Result<Measures> {
    let name = params.text("program")?;
    let program = find(name).with_context(|| {
        let known: Vec<_> = ALL.iter().map(|program| program.name).collect();
        let known = known.join(", ");
        format!("program '{name}' is unknown; the programs are: {known}")
    })?;
    (program.run)(&Shop::open(params.count("scale")?)?, malloc)
}

/// A group for each program that is here, a cell for each malloc. `missing` says why a program cannot run here.
fn planned(
    request: &PlanRequest<'_>,
    (libraries, skipped): (Vec<Library>, Vec<Skipped>),
    missing: fn(&Program) -> Option<String>,
) -> Plan {
    let contestants = PROGRAMS.contestants();
    let mut plan = Planner::new(request, &contestants, (6, 6, 0.01), (15, 33, 0.01));
    for Skipped { what, why } in skipped {
        plan.skip(what, why);
    }
    if libraries.is_empty() {
        // The system's malloc against itself says nothing.
        let why = "there is no malloc to compare with the system's";
        plan.skip("every program", why);
        return plan.finish();
    }
    let of_bench: &[Program] = match bench::folder() {
        Some(_) if !plan.quick() => &bench::ALL,
        Some(_) => {
            let why = "they take too long for the quick form; run with --full";
            plan.skip("programs of mimalloc-bench", why);
            &[]
        }
        None => {
            let why = format!("{} names no folder with them", bench::VARIABLE);
            plan.skip("programs of mimalloc-bench", why);
            &[]
        }
    };
    for program in ALL.iter().chain(of_bench) {
        let long = (plan.quick() && !program.quick)
            .then(|| "it takes too long for the quick form; run with --full".to_owned());
        if let Some(why) = missing(program).or(long) {
            plan.skip(program.name, why);
            continue;
        }
        // Each runs some tenths of a second in the full form.
        let scale = plan.either((program.scale / 3).max(1), program.scale);
        let params = Params::new()
            .with_text("program", program.name)
            .with("scale", scale);
        // Where larder's malloc is missing, its peers are what there is to see.
        let own = libraries.iter().filter(|l| l.contestant == LARDER).count();
        let is_alone = plan.quick() && own > 0 && !COMPARED.contains(&program.name);
        let wanted = |library: &&Library| !is_alone || library.contestant == LARDER;
        let of = |library: &Library| {
            let params = params.clone().with_text("library", &library.path);
            Cell::new(&library.contestant, params)
        };
        let mut cells = vec![Cell::new(SYSTEM, params.clone())];
        cells.extend(libraries.iter().filter(wanted).map(of));
        let each = plan.either(0.2, if program.quick { 0.6 } else { 2.5 });
        let seconds = each * (cells.len() + 1) as f64;
        plan.group(program.name, SECONDS, SYSTEM, seconds, cells);
    }
    if plan.quick() && libraries.iter().any(|l| l.contestant != LARDER) {
        let why =
            "the quick form has time for them under python-malloc and python-text; run with --full";
        plan.skip("other mallocs under most programs", why);
    }
    plan.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Depth;
    use crate::model::MachineRecord;

    #[test]
    fn an_unknown_program_is_an_error_that_names_the_known() {
        let params = Params::new().with_text("program", "edlin").with("scale", 1);
        let error = run(&params, &Malloc::default()).expect_err("unknown");
        let error = error.to_string();
        assert!(
            error.contains("edlin") && error.contains("python-objects"),
            "{error}"
        );
    }

    fn plan_of(depth: Depth, libraries: &[&str]) -> Plan {
        let machine = MachineRecord::default();
        let libraries = libraries.iter().map(|name| Library {
            contestant: (*name).to_owned(),
            path: format!("/lib/{name}.so"),
        });
        let request = PlanRequest {
            depth,
            machine: &machine,
            seed: 1,
        };
        let missing =
            |program: &Program| (program.name == "z3").then(|| "z3 is not installed".to_owned());
        planned(&request, (libraries.collect(), Vec::new()), missing)
    }

    #[test]
    fn each_program_is_a_group_with_every_malloc() {
        let plan = plan_of(Depth::Full, &["larder", "jemalloc"]);
        assert_eq!(plan.groups.len(), ALL.len() - 1);
        for group in &plan.groups {
            assert_eq!(group.cells.len(), 3);
            assert!(group.cells.contains(&group.reference));
            assert_eq!(group.reference.contestant, SYSTEM);
            assert!(group.reference.params.text("library").is_err());
        }
        let z3 = plan.skipped.iter().find(|s| s.what == "z3");
        assert!(z3.is_some_and(|s| s.why.contains("not installed")));
    }

    #[test]
    fn quick_leaves_the_long_ones_and_most_peers_out_and_says_so() {
        let plan = plan_of(Depth::Quick, &["larder", "jemalloc"]);
        assert!(plan.groups.iter().all(|g| g.name != "cc-sqlite"));
        let why = |what: &str| plan.skipped.iter().find(|s| s.what.starts_with(what));
        assert!(why("cc-sqlite").is_some_and(|s| s.why.contains("--full")));
        assert!(why("other mallocs").is_some_and(|s| s.why.contains("--full")));
        for group in &plan.groups {
            let all = COMPARED.contains(&group.name.as_str());
            assert_eq!(group.cells.len(), if all { 3 } else { 2 }, "{}", group.name);
        }
        let plan = plan_of(Depth::Quick, &["jemalloc"]);
        assert!(plan.groups.iter().all(|g| g.cells.len() == 2));
    }

    #[test]
    fn the_default_run_fits_into_its_share() {
        let brief = PROGRAMS.brief().expect("a choice");
        let groups = plan_of(Depth::Quick, &["larder"]).groups.into_iter();
        let groups = groups.filter(|g| brief.iter().any(|word| g.name.contains(word)));
        let seconds: f64 = groups
            .map(|g| g.round_guess.as_secs_f64() * f64::from(g.min_rounds))
            .sum();
        assert!((10.0..=15.5).contains(&seconds), "{seconds}");
    }

    #[test]
    fn without_a_malloc_to_compare_nothing_runs() {
        let plan = plan_of(Depth::Quick, &[]);
        assert!(plan.groups.is_empty());
        assert_eq!(plan.skipped.len(), 1);
    }

    #[test]
    fn names_differ() {
        let all = PROGRAMS.contestants();
        let mut names: Vec<_> = all.iter().map(|c| c.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }
}
