//! Which cells run: a group for each program that is here, a cell for each malloc.

use std::time::Duration;

use super::Library;
use super::rows::SYSTEM;
use super::work::{ALL, Program};
use crate::measure::{Depth, Group, Plan, PlanRequest};
use crate::model::{Cell, Params, Skipped};

/// The cell of a program on a malloc.
fn cell(program: &Program, library: Option<&Library>) -> Cell {
    let params = Params::new()
        .with_text("program", program.name)
        .with("scale", program.scale);
    match library {
        None => Cell::new(SYSTEM, params),
        Some(library) => Cell::new(
            &library.contestant,
            params.with_text("library", &library.path),
        ),
    }
}

/// The plan. `missing` says why a program cannot run here.
pub(super) fn plan(
    request: &PlanRequest<'_>,
    (libraries, skipped): (Vec<Library>, Vec<Skipped>),
    missing: &dyn Fn(&Program) -> Option<String>,
) -> Plan {
    let quick = request.depth == Depth::Quick;
    let mut plan = Plan {
        groups: Vec::new(),
        skipped,
    };
    if libraries.is_empty() {
        // The system's malloc against itself says nothing.
        plan.skipped.push(Skipped {
            what: "every program".to_owned(),
            why: "there is no malloc to compare with the system's".to_owned(),
        });
        return plan;
    }
    for program in &ALL {
        let why = match missing(program) {
            None if quick && !program.quick => {
                Some("it takes too long for the quick form; run with --full".to_owned())
            }
            why => why,
        };
        if let Some(why) = why {
            plan.skipped.push(Skipped {
                what: program.name.to_owned(),
                why,
            });
            continue;
        }
        let mut cells = vec![cell(program, None)];
        cells.extend(libraries.iter().map(|library| cell(program, Some(library))));
        let each = if program.quick { 0.4 } else { 2.5 };
        let (min_rounds, max_rounds) = if quick { (6, 6) } else { (15, 33) };
        plan.groups.push(Group {
            name: program.name.to_owned(),
            reference: cell(program, None),
            metric: super::rows::SECONDS,
            round_guess: Duration::from_secs_f64(each * (cells.len() + 1) as f64),
            cells,
            min_rounds,
            max_rounds,
            target: 0.01,
        });
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::MachineRecord;

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
        plan(&request, (libraries.collect(), Vec::new()), &missing)
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
        assert!(
            plan.skipped
                .iter()
                .any(|s| s.what == "z3" && s.why.contains("not installed"))
        );
    }

    #[test]
    fn quick_leaves_the_long_ones_out_and_says_so() {
        let plan = plan_of(Depth::Quick, &["larder"]);
        assert!(plan.groups.iter().all(|g| g.name != "cc-sqlite"));
        assert!(
            plan.skipped
                .iter()
                .any(|s| s.what == "cc-sqlite" && s.why.contains("--full"))
        );
    }

    #[test]
    fn without_a_malloc_to_compare_nothing_runs() {
        let plan = plan_of(Depth::Quick, &[]);
        assert!(plan.groups.is_empty());
        assert_eq!(plan.skipped.len(), 1);
    }
}
