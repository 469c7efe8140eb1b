//! Whether the blocks of a per-CPU contestant really took the per-CPU path.

use anyhow::ensure;
use larder::os::rseq::Mode;

/// Calls from which on one must have been served by the path. Fewer may all be the first of their kind.
const FEW: u64 = 64;

/// The share of the gets that took a restartable sequence; `None` where none could, because the blocks were too large for any
/// CPU's magazines.
///
/// # Errors
/// The stock is locked, or not a single get of many was served: what was measured is not what the contestant's name says.
pub(super) fn by_rseq(mode: Mode, hits: u64, misses: u64) -> anyhow::Result<Option<f64>> {
    if let Mode::Locked(why) = mode {
        anyhow::bail!(
            "the stock is locked ({why}): the per-CPU path that is claimed was not taken"
        );
    }
    let gets = hits.saturating_add(misses);
    ensure!(
        hits > 0 || gets < FEW,
        "none of {gets} blocks came from a CPU's magazines: the path that is claimed was not taken"
    );
    Ok((gets > 0).then(|| hits as f64 / gets as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder::os::rseq::mode;

    #[test]
    fn a_path_that_was_not_taken_is_an_error() {
        let locked = by_rseq(Mode::Locked("told so"), 1000, 1);
        let error = locked.expect_err("locked").to_string();
        assert!(error.contains("told so"), "{error}");
        let here = mode();
        if let Mode::PerCpu(_) = here {
            let error = by_rseq(here, 0, 1000).expect_err("all missed").to_string();
            assert!(error.contains("none of 1000 blocks"), "{error}");
            assert_eq!(by_rseq(here, 0, 0).expect("large ones"), None);
            assert_eq!(by_rseq(here, 0, 1).expect("the first"), Some(0.0));
            assert_eq!(by_rseq(here, 3, 1).expect("taken"), Some(0.75));
        }
    }
}
