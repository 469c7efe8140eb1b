//! Which cells run. All of them count; a count does not change from round to round, so there is one round.

use crate::frame::Planner;
use crate::measure::{Contestant, Plan, PlanRequest};
use crate::model::{Cell, Params};

use super::contestants::{OPT, loadfile};
use super::metrics::{BARE, READ, SECONDS};

/// Names of the groups.
pub(super) const DBENCH: &str = "dbench";
pub(super) const FIELD: &str = "field";
pub(super) const CORRELATED: &str = "correlated";
pub(super) const BUILD: &str = "build-and-grep";
pub(super) const LOADFILE: &str = "loadfile";

/// Lord's two kernels.
pub(in crate::experiments) const VANILLA: &str = "linux-2.4.7";
pub(in crate::experiments) const PATCHED: &str = "linux-2.4.7-use-once";
/// Lord's loads.
pub(in crate::experiments) const CLIENTS: [i64; 8] = [1, 2, 4, 8, 16, 32, 48, 64];
/// Loads of the whole field.
pub(super) const FIELD_CLIENTS: [i64; 3] = [4, 16, 64];
/// Loads of dbench's own load file.
pub(super) const LOADFILE_CLIENTS: [i64; 4] = [4, 16, 32, 64];
/// As many as Lord's runs.
pub(super) const SEEDS: [i64; 3] = [1, 2, 3];
/// The cache. Lord's machine had 128 MiB, at most 28,672 pages for files. A client of today's load file comes back to fewer
/// pages than one of 2001 did: with all of them its data fit up to 16 clients and more, where Lord's did not. The cache is scaled
/// by one half and a bit, so that data cease to fit between 8 and 16 clients, as in Lord's table.
pub(super) const PAGES: i64 = 15_360;
/// Touches of a page at once.
pub(super) const TOUCHES: [i64; 4] = [1, 2, 4, 8];
/// So many of them are those of kernels since.
pub(super) const KERNELS: usize = 6;
/// Rules whose answer to several touches at once is shown, those of kernels first.
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
    let params = Params::new()
        .with_text("load", "build")
        .with("pages", if quick { 4_096 } else { 16_384 })
        .with("units", if quick { 120 } else { 1_000 })
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

/// The load file of all clients. The quick form has the rules that are looked at apart.
fn loadfile_cells(names: &[&str], quick: bool) -> Vec<Cell> {
    let wanted = |name: &&&str| !quick || TOUCHED.contains(name) || ["lirs", OPT].contains(name);
    let each = |clients| {
        let names = names.iter().filter(wanted);
        names.map(move |name| loadfile_cell(name, clients, quick))
    };
    LOADFILE_CLIENTS.into_iter().flat_map(each).collect()
}

/// The plan.
pub(super) fn plan(request: &PlanRequest<'_>, contestants: &[Box<dyn Contestant>]) -> Plan {
    // Counts are the same in every round.
    let once = (1, 1, 0.05);
    let mut plan = Planner::new(request, contestants, once, once);
    let quick = plan.quick();
    // Turns of a client's loop.
    let turns = plan.either(6, 30);
    let names: Vec<&str> = contestants.iter().map(|c| c.name()).collect();
    let names = names.as_slice();

    let loads = |seed| CLIENTS.map(|clients| (seed, clients));
    let cells = SEEDS
        .into_iter()
        .flat_map(loads)
        .flat_map(|(seed, clients)| {
            [VANILLA, PATCHED].map(|rule| dbench_cell(rule, clients, seed, turns))
        });
    plan.group(DBENCH, SECONDS, VANILLA, plan.either(6.0, 40.0), cells);

    let loads = plan.either(&FIELD_CLIENTS[1..2], &FIELD_CLIENTS[..]);
    let seeds = plan.either(&SEEDS[..1], &SEEDS[..]);
    let loads = seeds
        .iter()
        .flat_map(|seed| loads.iter().map(|clients| (*seed, *clients)));
    let cells = loads.flat_map(|(seed, clients)| {
        let rules = names.iter();
        rules.map(move |name| field_cell(name, clients, seed, turns))
    });
    plan.group(FIELD, BARE, VANILLA, plan.either(1.0, 400.0), cells);

    let cells = TOUCHED.into_iter().flat_map(|rule| {
        let apart = TOUCHES.map(|touches| correlated_cell(rule, touches, "apart"));
        apart
            .into_iter()
            .chain([correlated_cell(rule, 4, "merged")])
    });
    plan.group(CORRELATED, READ, VANILLA, 1.0, cells);

    let few = |rule: &&&str| !quick || TOUCHED.contains(rule) || **rule == "fifo";
    let rules = names.iter().filter(|name| **name != OPT).filter(few);
    let cells = rules.flat_map(|rule| [grep_pages(quick), 0].map(|n| build_cell(rule, n, quick)));
    plan.group(BUILD, SECONDS, VANILLA, plan.either(1.0, 30.0), cells);

    if quick {
        plan.skip(
            "the whole field at 4 and 64 clients and with three seeds, long runs",
            "the quick form makes 6 turns of a client's loop, and the field with one seed; run with --full for 30 turns and three seeds",
        );
    }
    if loadfile().is_some() {
        let seconds = plan.either(8.0, 900.0);
        let cells = loadfile_cells(names, quick);
        plan.group(LOADFILE, SECONDS, VANILLA, seconds, cells);
    } else {
        plan.skip(
            "dbench's own load file",
            "client.txt is not here; install Debian's dbench, or name the file in LARDER_DBENCH",
        );
    }
    plan.finish()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::USE_ONCE;
    use super::*;
    use crate::experiments::tests::plan_of;
    use crate::measure::Depth;

    #[test]
    fn the_loads_kernels_and_three_runs_of_2001_are_planned() {
        let plan = plan_of(&USE_ONCE, Depth::Quick);
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
            let plan = plan_of(&USE_ONCE, depth);
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
