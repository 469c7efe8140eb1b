//! What is timed: a range taken and given back while others are out, in two shapes.

use anyhow::{Context, bail, ensure};

use super::ranges::{LARGEST, Ranges};
use crate::contestants::ids::Rng;
use crate::contestants::timing::{ns_per_op, resident_bytes, thread_cpu_ns};
use crate::model::{Measures, Params};

/// CPU time of a range, there and back.
pub(super) const COST: &str = "ns_per_range";
/// Growth of resident memory by the arena and its ranges.
pub(super) const BOOKKEEPING: &str = "bookkeeping_bytes";

/// Places drawn ahead of time, so that drawing is not timed.
const PICKS: usize = 1 << 14;

/// Units for each range that is out: twice what the ranges are, so that half is free, in pieces.
const ROOM: u64 = 2 * (LARGEST + 1) / 2;

/// Units of an arena for this many ranges.
pub(super) fn units(live: usize) -> u64 {
    (live as u64 * ROOM).max(1 << 12) + PICKS as u64 * LARGEST
}

/// A range that is out.
#[derive(Debug, Clone, Copy)]
struct Out {
    start: u64,
    units: u64,
}

/// Fills the source with twice `live` ranges of 1 to 4 units, gives every second one back, in random order, and then times
/// `turns` turns. Shape `pair`: a range is taken and given back at once. Shape `churn`: a random one is given back, and
/// one of another size taken in its place. Before that a tenth as many turns go untimed.
///
/// # Errors
/// Missing factors, a source that runs out or refuses its own range, and one that hands out a range in use.
pub(super) fn run<R: Ranges>(
    source: &mut R,
    before: u64,
    params: &Params,
) -> anyhow::Result<Measures> {
    let live = params.count("live")?;
    let turns = params.count("turns")?;
    ensure!(
        live > 0 && turns > 0,
        "{turns} turns among {live} ranges were asked for"
    );
    let churn = match params.text("shape")? {
        "pair" => false,
        "churn" => true,
        other => bail!("shape '{other}' is unknown; the shapes are pair and churn"),
    };
    let mut rng = Rng::new(7);
    let mut out = fill(source, live, &mut rng)?;
    overlaps(&mut out.clone())?;
    let (segments, grown) = (source.segments(), resident_bytes().saturating_sub(before));
    let picks: Vec<(u32, u32)> = (0..PICKS)
        .map(|_| (rng.below(live as u64) as u32, 1 + rng.below(LARGEST) as u32))
        .collect();
    let turn = |source: &mut R, out: &mut Vec<Out>, count: usize| -> Option<()> {
        for i in 0..count {
            let (place, units) = picks[i % PICKS];
            let units = u64::from(units);
            if churn {
                let old = out[place as usize];
                if !source.give(old.start, old.units) {
                    return None;
                }
                let start = source.take(units)?;
                out[place as usize] = Out { start, units };
            } else {
                let start = source.take(units)?;
                if !source.give(start, units) {
                    return None;
                }
            }
        }
        Some(())
    };
    let broken = "the source ran out of ranges or refused one of its own";
    turn(source, &mut out, turns / 10 + 1).context(broken)?;
    let begin = thread_cpu_ns();
    let done = turn(source, &mut out, turns);
    let spent = thread_cpu_ns() - begin;
    done.context(broken)?;
    overlaps(&mut out)?;
    let measures = Measures::new()
        .with(COST, ns_per_op(spent, turns as u64))
        .with(BOOKKEEPING, grown.max(1) as f64);
    Ok(match segments {
        Some(segments) => measures.with("segments", segments as f64),
        None => measures,
    })
}

fn fill<R: Ranges>(source: &mut R, live: usize, rng: &mut Rng) -> anyhow::Result<Vec<Out>> {
    let mut out = Vec::with_capacity(2 * live);
    for i in 0..2 * live {
        let units = 1 + rng.below(LARGEST);
        let start = source
            .take(units)
            .with_context(|| format!("no room for range {i} of {}", 2 * live))?;
        out.push(Out { start, units });
    }
    // Every second one, wherever it lies: the last of a random order.
    for i in (1..out.len()).rev() {
        out.swap(i, rng.below(i as u64 + 1) as usize);
    }
    for gone in out.drain(live..) {
        ensure!(source.give(gone.start, gone.units), "a range was refused");
    }
    Ok(out)
}

/// An error if two ranges share a unit.
fn overlaps(out: &mut [Out]) -> anyhow::Result<()> {
    out.sort_unstable_by_key(|range| range.start);
    for pair in out.windows(2) {
        ensure!(
            pair[0].start + pair[0].units <= pair[1].start,
            "unit {} was handed out twice",
            pair[1].start
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out units in a row, and every n-th time what it handed out before.
    struct Row {
        next: u64,
        calls: u64,
        every: u64,
    }

    impl Ranges for Row {
        fn take(&mut self, units: u64) -> Option<u64> {
            self.calls += 1;
            if self.every > 0 && self.calls.is_multiple_of(self.every) {
                return Some(self.next.saturating_sub(1));
            }
            self.next += units;
            Some(self.next - units)
        }

        fn give(&mut self, _: u64, _: u64) -> bool {
            true
        }
    }

    fn params(shape: &str) -> Params {
        Params::new()
            .with_text("shape", shape)
            .with("live", 100)
            .with("turns", 1000)
    }

    fn row(every: u64) -> Row {
        Row {
            next: 0,
            calls: 0,
            every,
        }
    }

    #[test]
    fn both_shapes_run_and_others_are_refused() {
        for shape in ["pair", "churn"] {
            let measures = run(&mut row(0), 0, &params(shape)).expect("runs");
            assert!(measures.get(COST).is_some());
        }
        assert!(run(&mut row(0), 0, &params("deep")).is_err());
        assert!(run(&mut row(0), 0, &params("pair").with("live", 0)).is_err());
    }

    #[test]
    fn a_range_that_two_have_is_seen() {
        let error = run(&mut row(5), 0, &params("churn")).expect_err("twice");
        assert!(error.to_string().contains("handed out twice"), "{error}");
    }

    #[test]
    fn a_pair_is_one_range_there_and_back() {
        let mut source = row(0);
        run(&mut source, 0, &params("pair")).expect("runs");
        assert_eq!(source.calls, 200 + 101 + 1000);
    }
}
