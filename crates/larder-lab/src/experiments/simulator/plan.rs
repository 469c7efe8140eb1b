//! Which cells run, quick and full.

use std::time::Duration;

use crate::measure::{Depth, Group, Plan, PlanRequest};
use crate::model::{Cell, Params, Skipped};

use super::SPEED;

/// Names of the groups.
pub(super) const DECODED: &str = "decoded";
pub(super) const ZST: &str = "zst";
pub(super) const SWEEP: &str = "sweep";

/// Names of the contestants.
pub(super) const OURS: &str = "larder";
pub(super) const PEER: &str = "libcachesim";

/// Rules that both have.
pub(super) const RULES: [&str; 4] = ["lru", "s3-fifo", "arc", "opt"];
/// The library's default, beside them.
const DEFAULT: &str = "adaptive";
/// Rules of the sweep.
pub(super) const SWEPT: [&str; 2] = ["lru", "s3-fifo"];
/// Threads of the sweep.
pub(super) const THREADS: [i64; 2] = [1, 2];

/// Different blocks; a cache has room for a tenth of them.
const BLOCKS: i64 = 100_000;

pub(super) fn plan(request: &PlanRequest<'_>, peer: Result<(), String>) -> Plan {
    let quick = request.depth == Depth::Quick;
    let requests = if quick { 400_000 } else { 10_000_000 };
    let rounds = if quick { (6, 6) } else { (10, 20) };
    let seed = i64::try_from(request.seed & 0xffff_ffff).unwrap_or(1);
    let cell = |contestant: &str, form: &str, rule: &str| {
        let params = Params::new()
            .with_text("form", form)
            .with_text("rule", rule)
            .with("blocks", BLOCKS)
            .with("requests", requests)
            .with("size", BLOCKS / 10)
            .with("seed", seed);
        Cell::new(contestant, params)
    };
    let mut plan = Plan::default();
    let mut add = |name: &str, reference: Cell, cells: Vec<Cell>, (quickly, fully)| {
        plan.groups.push(Group {
            name: name.to_owned(),
            reference,
            metric: SPEED,
            cells,
            min_rounds: rounds.0,
            max_rounds: rounds.1,
            target: 0.05,
            round_guess: Duration::from_secs_f64(if quick { quickly } else { fully }),
        });
    };
    // Larder's own cells are quick; each process of the peer starts Python first.
    let peers = if peer.is_ok() { 1.4 } else { 0.0 };
    for (form, guess) in [(DECODED, (0.4 + peers, 40.0)), (ZST, (0.6 + peers, 50.0))] {
        let mut cells = Vec::new();
        for rule in RULES {
            cells.push(cell(OURS, form, rule));
            if peer.is_ok() {
                cells.push(cell(PEER, form, rule));
            }
        }
        cells.push(cell(OURS, form, DEFAULT));
        add(form, cell(OURS, form, RULES[0]), cells, guess);
    }
    let swept = |rule: &str, threads| {
        let params = cell(OURS, SWEEP, rule).params;
        Cell::new(OURS, params.with("threads", threads))
    };
    let cells = SWEPT
        .iter()
        .flat_map(|rule| THREADS.map(|threads| swept(rule, threads)))
        .collect();
    add(SWEEP, swept(SWEPT[0], THREADS[0]), cells, (0.4, 15.0));
    if let Err(why) = peer {
        plan.skipped.push(Skipped {
            what: PEER.to_owned(),
            why,
        });
    }
    plan
}
