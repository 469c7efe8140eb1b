//! Instructions of one warm pair, counted by valgrind's callgrind.

use anyhow::Context;

use crate::measure::callgrind::{available, count, per_piece};
use crate::model::{Measures, Params};

use super::shapes::WARM_SHARE;

/// Pairs of the shorter run; the longer one makes twice as many.
const PAIRS: u64 = 20_000;

// Otherwise the share of one is off by the remainder.
const _: () = assert!(PAIRS.is_multiple_of(WARM_SHARE));

/// Counts the instructions of one pair of the contestant that the factor `supplier` names: the difference of two runs
/// of the same program, one with twice as many, so that everything else (start, warm-up's constant part, exit) cancels.
///
/// The program runs itself under valgrind through its worker subcommand. Valgrind has no restartable sequences, so
/// a per-CPU path runs as its fallback there; the per-handle path is the one that ships.
///
/// # Errors
/// Valgrind is missing, cannot run this program, or its output has no count.
pub(super) fn run(params: &Params) -> anyhow::Result<Measures> {
    available().map_err(anyhow::Error::msg)?;
    let program = std::env::current_exe().context("the program's own path cannot be found")?;
    let contestant = params.text("supplier")?;
    let counted = |n: u64| {
        let params = Params::new()
            .with_text("shape", "pair")
            .with("pages", i64::try_from(n)?);
        count(&program, "page-pool", contestant, &params)
    };
    let (short, long) = (counted(PAIRS)?, counted(2 * PAIRS)?);
    let each = per_piece(short, long, PAIRS, WARM_SHARE);
    Ok(Measures::new().with("instructions", each))
}
