//! Which cells run. All of them count; a count does not change from round to round, so there is one round.

use std::time::Duration;

use crate::measure::{Contestant, Depth, Group, Plan, PlanRequest};
use crate::model::{Cell, Params, Skipped};

use super::contestants::{OPT, loadfile};

/// Names of the groups.
pub(super) const DBENCH: &str = "dbench";
pub(super) const FIELD: &str = "field";
pub(super) const CORRELATED: &str = "correlated";
pub(super) const BUILD: &str = "build-and-grep";
pub(super) const LOADFILE: &str = "loadfile";

/// His two kernels.
pub(super) const VANILLA: &str = "linux-2.4.7";
pub(super) const PATCHED: &str = "linux-2.4.7-use-once";
/// His loads.
pub(super) const CLIENTS: [i64; 8] = [1, 2, 4, 8, 16, 32, 48, 64];
/// Loads of the whole field.
pub(super) const FIELD_CLIENTS: [i64; 3] = [4, 16, 64];
/// Loads of dbench's own loadfile.
pub(super) const LOADFILE_CLIENTS: [i64; 4] = [4, 16, 32, 64];
/// His three runs.
pub(super) const SEEDS: [i64; 3] = [1, 2, 3];
/// The cache. His machine had 128 MiB, at most 28,672 pages for files. A client of today's loadfile comes back to fewer pages
/// than one of his did: with all of them its data fit up to 16 clients and more, where his did not. The cache is scaled by one
/// half and a bit, so that data cease to fit between 8 and 16 clients, as in his table.
pub(super) const PAGES: i64 = 15_360;
/// Touches of a page at once.
pub(super) const TOUCHES: [i64; 4] = [1, 2, 4, 8];
/// Rules whose answer to several touches at once is shown.
pub(super) const TOUCHED: [&str; 9] = [
    VANILLA,
    PATCHED,
    "linux-2.4.8",
    "linux-2.4.16",
    "linux-two-list",
    "mglru",
    "lru",
    "s3-fifo",
    "clock2q+",
];

/// Turns of a client's loop.
pub(super) const fn turns(quick: bool) -> i64 {
    if quick { 6 } else { 30 }
}

fn compilations(quick: bool) -> i64 {
    if quick { 120 } else { 1_000 }
}

pub(super) fn dbench_cell(rule: &str, clients: i64, seed: i64, turns: i64) -> Cell {
    let params = Params::new()
        .with_text("load", "dbench")
        .with("clients", clients)
        .with("pages", PAGES)
        .with("seed", seed)
        .with("turns", turns);
    Cell::new(rule, params)
}

/// The same with the bare hit ratio, which OPT has, too.
pub(super) fn field_cell(rule: &str, clients: i64, seed: i64, turns: i64) -> Cell {
    let cell = dbench_cell(rule, clients, seed, turns);
    Cell::new(rule, cell.params.with_text("bare", "yes"))
}

pub(super) fn correlated_cell(rule: &str, touches: i64, requests: &str) -> Cell {
    let params = Params::new()
        .with_text("load", "correlated")
        .with("pages", 2_000)
        .with("uses", 60_000)
        .with("touches", touches)
        .with_text("requests", requests);
    Cell::new(rule, params)
}

/// The search goes through a tree larger than the cache.
pub(super) fn build_cell(rule: &str, grep: i64, quick: bool) -> Cell {
    let units = compilations(quick);
    let params = Params::new()
        .with_text("load", "build")
        .with("pages", if quick { 4_096 } else { 16_384 })
        .with("units", units)
        .with("grep", grep)
        .with_text("requests", "merged");
    Cell::new(rule, params)
}

/// Pages of the tree that is searched beside the build.
pub(super) const fn grep_pages(quick: bool) -> i64 {
    if quick { 60_000 } else { 600_000 }
}

pub(super) fn loadfile_cell(rule: &str, clients: i64, quick: bool) -> Cell {
    let params = Params::new()
        .with("records", if quick { 40_000 } else { 700_000 })
        .with_text("load", "loadfile")
        .with("clients", clients)
        .with("pages", PAGES)
        .with("seed", 1)
        .with_text("bare", "yes");
    Cell::new(rule, params)
}

/// All loads, in either form.
fn loadfile_cells(names: &[&str], quick: bool) -> Vec<Cell> {
    LOADFILE_CLIENTS
        .into_iter()
        .flat_map(|clients| names.iter().map(move |&name| (clients, name)))
        .filter(|(_, name)| !quick || TOUCHED.contains(name) || ["lirs", OPT].contains(name))
        .map(|(clients, name)| loadfile_cell(name, clients, quick))
        .collect()
}

/// The plan.
pub(super) fn plan(request: &PlanRequest<'_>, contestants: &[Box<dyn Contestant>]) -> Plan {
    let quick = request.depth == Depth::Quick;
    let turns = turns(quick);
    let names: Vec<&str> = contestants.iter().map(|c| c.name()).collect();
    let rules = || names.iter().copied().filter(|name| *name != OPT);
    let mut plan = Plan::default();

    let mut cells = Vec::new();
    for seed in SEEDS {
        for clients in CLIENTS {
            cells.push(dbench_cell(VANILLA, clients, seed, turns));
            cells.push(dbench_cell(PATCHED, clients, seed, turns));
        }
    }
    let reference = dbench_cell(VANILLA, 64, 1, turns);
    plan.groups.push(group(
        DBENCH,
        reference,
        "modelled_s",
        cells,
        if quick { 6.0 } else { 40.0 },
    ));

    let loads: &[i64] = if quick {
        &FIELD_CLIENTS[1..2]
    } else {
        &FIELD_CLIENTS
    };
    let seeds = if quick { &SEEDS[..1] } else { &SEEDS[..] };
    let mut cells = Vec::new();
    for &seed in seeds {
        for &clients in loads {
            let field = names
                .iter()
                .map(|name| field_cell(name, clients, seed, turns));
            cells.extend(field);
        }
    }
    let reference = field_cell(VANILLA, 16, 1, turns);
    plan.groups.push(group(
        FIELD,
        reference,
        "bare_hit_percent",
        cells,
        if quick { 1.0 } else { 400.0 },
    ));

    let mut cells = Vec::new();
    for rule in TOUCHED.into_iter().filter(|rule| names.contains(rule)) {
        for touches in TOUCHES {
            cells.push(correlated_cell(rule, touches, "apart"));
        }
        cells.push(correlated_cell(rule, 4, "merged"));
    }
    let reference = correlated_cell(VANILLA, 1, "apart");
    plan.groups
        .push(group(CORRELATED, reference, "pages_read", cells, 1.0));

    let cells = rules()
        .filter(|rule| !quick || TOUCHED.contains(rule) || *rule == "fifo")
        .flat_map(|rule| [0, grep_pages(quick)].map(|grep| build_cell(rule, grep, quick)))
        .collect();
    let reference = build_cell(VANILLA, grep_pages(quick), quick);
    plan.groups.push(group(
        BUILD,
        reference,
        "modelled_s",
        cells,
        if quick { 1.0 } else { 30.0 },
    ));

    if quick {
        plan.skipped.push(Skipped {
            what: "the whole field at 4 and 64 clients and with three seeds, long runs".to_owned(),
            why: "the quick form makes 6 turns of a client's loop, and the field with one seed; run with --full for 30 turns and three seeds"
                .to_owned(),
        });
    }
    if loadfile().is_some() {
        let cells = loadfile_cells(&names, quick);
        let reference = loadfile_cell(VANILLA, 16, quick);
        let seconds = if quick { 8.0 } else { 900.0 };
        plan.groups
            .push(group(LOADFILE, reference, "modelled_s", cells, seconds));
    } else {
        plan.skipped.push(Skipped {
            what: "dbench's own loadfile".to_owned(),
            why:
                "client.txt is not here; install Debian's dbench, or name the file in LARDER_DBENCH"
                    .to_owned(),
        });
    }
    plan
}

fn group(
    name: &str,
    reference: Cell,
    metric: &'static str,
    cells: Vec<Cell>,
    seconds: f64,
) -> Group {
    Group {
        name: name.to_owned(),
        reference,
        metric,
        cells,
        min_rounds: 1,
        max_rounds: 1,
        target: 0.05,
        round_guess: Duration::from_secs_f64(seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::MachineRecord;

    fn plan_of(depth: Depth) -> Plan {
        let machine = MachineRecord::default();
        let request = PlanRequest {
            depth,
            machine: &machine,
            seed: 1,
        };
        plan(&request, &super::super::contestants::all())
    }

    #[test]
    fn groups_hold_their_reference_and_no_cell_twice_and_every_cell_a_contestant() {
        let contestants = super::super::contestants::all();
        for depth in [Depth::Quick, Depth::Full] {
            for group in plan_of(depth).groups {
                assert!(group.cells.contains(&group.reference), "{}", group.name);
                let mut cells = group.cells.clone();
                cells.sort();
                cells.dedup();
                assert_eq!(cells.len(), group.cells.len(), "{}", group.name);
                for cell in cells {
                    assert!(
                        contestants.iter().any(|c| c.name() == cell.contestant),
                        "{cell}"
                    );
                }
            }
        }
    }

    #[test]
    fn his_loads_his_kernels_and_his_three_runs_are_planned() {
        let plan = plan_of(Depth::Quick);
        let dbench = plan
            .groups
            .iter()
            .find(|group| group.name == DBENCH)
            .expect("planned");
        assert_eq!(dbench.cells.len(), 2 * 8 * 3);
        let guess: Duration = plan.groups.iter().map(|group| group.round_guess).sum();
        assert!(guess < Duration::from_secs(20), "{guess:?}");
    }

    #[test]
    fn the_full_form_has_every_rule_with_every_load_and_every_seed() {
        let rules = super::super::contestants::all().len();
        for (depth, loads, seeds) in [(Depth::Quick, 1, 1), (Depth::Full, 3, SEEDS.len())] {
            let plan = plan_of(depth);
            let field = plan.groups.iter().find(|group| group.name == FIELD);
            assert_eq!(field.expect("planned").cells.len(), rules * loads * seeds);
            let said = plan.skipped.iter().any(|left| left.what.contains("seeds"));
            assert_eq!(said, depth == Depth::Quick);
        }
        let cells = loadfile_cells(&["a", "b"], false);
        assert_eq!(cells.len(), 2 * LOADFILE_CLIENTS.len());
        for clients in LOADFILE_CLIENTS {
            assert!(cells.contains(&loadfile_cell("b", clients, false)));
        }
    }

    #[test]
    fn the_rules_that_are_named_exist() {
        let contestants = super::super::contestants::all();
        for rule in TOUCHED {
            assert!(contestants.iter().any(|c| c.name() == rule), "{rule}");
        }
    }
}
