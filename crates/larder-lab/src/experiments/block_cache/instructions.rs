//! Instructions of one hit, counted by valgrind's callgrind.

use anyhow::Context;

use crate::measure::callgrind::{available, count, per_piece};
use crate::model::{Measures, Params};

use super::shapes::WARM_SHARE;

/// Gets of the shorter run; the longer one makes twice as many.
const GETS: u64 = 1_000_000;
/// Blocks of the cache, as in the group of hits that is timed.
const BLOCKS: i64 = 1 << 15;

// Otherwise the share of one is off by the remainder.
const _: () = assert!(GETS.is_multiple_of(WARM_SHARE));

/// Counts the instructions of one get of the contestant that the factor `cache` names: the difference of two runs
/// of the same program, one with twice as many, so that everything else (start, warm-up's constant part, exit) cancels.
///
/// The program runs itself under valgrind through its worker subcommand.
///
/// # Errors
/// Valgrind is missing, cannot run this program, or its output has no count.
pub(super) fn run(params: &Params) -> anyhow::Result<Measures> {
    available().map_err(anyhow::Error::msg)?;
    let program = std::env::current_exe().context("the program's own path cannot be found")?;
    let contestant = params.text("cache")?;
    let counted = |n: u64| {
        let params = Params::new()
            .with_text("shape", "hit")
            .with("blocks", BLOCKS)
            .with("turns", i64::try_from(n)?);
        count(&program, "block-cache", contestant, &params)
    };
    let (short, long) = (counted(GETS)?, counted(2 * GETS)?);
    let each = per_piece(short, long, GETS, WARM_SHARE);
    Ok(Measures::new().with("instructions", each))
}
