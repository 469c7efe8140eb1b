//! Franke's delete and allocate: batches of random frees and as many allocations, timed apart.
//!
//! The timed loops are one copy per source, with no virtual call in them, and functions of their own (`inline(never)`), so
//! that their machine code can be read under their names. After every step the source's state is forced into memory
//! ([`keep`]): in a program other code runs between two calls.

use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::contestants::ids::{IdSource, Live, Rng, Start, heap};
use crate::contestants::timing::{keep, peek};
use crate::model::{Measures, Params};

/// Frees and allocations of a batch.
pub(super) const BATCH: usize = 256;

/// The slowest batches, one in this many, are not in the means: the kernel takes the CPU now and then.
const OUTLIERS: usize = 100;

/// Fewest batches, however long they take.
const LEAST: usize = 16;

/// Bytes that are read before each cold batch: more than the caches of today's servers hold per core.
const SWEEP: usize = 48 << 20;

/// Runs batches: `count` identifiers of which `live` are taken, `warm` batches that are not timed, then `turns`, or
/// fewer when `budget_ms` are over. With `cold` 1 the caches are swept before each.
///
/// What is freed is drawn, and what is handed out is checked, outside of the clock, in every batch.
///
/// # Errors
/// Missing factors, and a source that refuses, says 'full' too early, or hands out a taken identifier.
pub(super) fn run<S: IdSource>(params: &Params) -> anyhow::Result<Measures> {
    let (count, live) = (params.count("count")? as u64, params.count("live")? as u64);
    let (turns, warm) = (params.count("turns")?, params.count("warm")?);
    let budget = Duration::from_millis(params.count("budget_ms")? as u64);
    let sweep = (params.int("cold").unwrap_or(0) != 0).then(Sweep::new);
    ensure!(
        turns > 0,
        "no batches were asked for; give at least 1 in 'turns'"
    );
    // The same identifiers for every source.
    let mut rng = Rng::new(count ^ live);
    let start = Start::random(count, live, &mut rng)?;
    let mut shadow = Live::new::<S>(&start);
    let mut ids = vec![0; BATCH];
    // Nanoseconds of the frees and of the allocations of each batch.
    let mut spent: Vec<[f64; 2]> = Vec::with_capacity(turns);
    let tick = tick();
    let before = heap::in_use();
    let mut source = S::start(&start)?;
    let mut begin = Instant::now();
    for turn in 0..warm + turns {
        if turn == warm {
            begin = Instant::now();
        }
        shadow.draw(&mut rng, &mut ids)?;
        if let Some(sweep) = &sweep {
            sweep.run();
        }
        let t0 = Instant::now();
        let freed = free_all(&mut source, &ids);
        let t1 = Instant::now();
        let given = alloc_all(&mut source, &mut ids);
        let t2 = Instant::now();
        ensure!(freed, "it refused an identifier that was taken");
        ensure!(given, "it said 'full' although identifiers were free");
        shadow.give(&ids)?;
        if turn >= warm {
            spent.push([nanos(t1 - t0) - tick, nanos(t2 - t1) - tick]);
            if spent.len() >= LEAST && begin.elapsed() > budget {
                break;
            }
        }
    }
    // Before anything else is allocated.
    let held = match (before, heap::in_use()) {
        (Some(before), Some(after)) => Some(after.saturating_sub(before)),
        _ => source.bytes().map(|bytes| bytes as u64),
    };
    let mut measures = summary(&mut spent);
    if let Some(held) = held {
        measures = measures.with("held_bytes", held as f64);
    }
    // The heap rounds a large block up to pages, the same for every source.
    if let Some(bytes) = source.bytes().map(|bytes| bytes as u64).or(held) {
        measures = measures.with("bits_per_id", 8.0 * bytes as f64 / count as f64);
    }
    Ok(measures)
}

/// Frees all of these; false when the source refuses one.
#[inline(never)]
fn free_all<S: IdSource>(source: &mut S, ids: &[u64]) -> bool {
    let mut ok = true;
    for &id in ids {
        ok &= source.free(id);
        keep(source);
    }
    ok
}

/// Fills `out` with identifiers; false when there are not this many.
#[inline(never)]
fn alloc_all<S: IdSource>(source: &mut S, out: &mut [u64]) -> bool {
    for slot in out {
        let Some(id) = source.alloc() else {
            return false;
        };
        *slot = id;
        keep(source);
    }
    true
}

fn nanos(time: Duration) -> f64 {
    time.as_nanos() as f64
}

/// What two readings of the clock cost, in nanoseconds: the median of some.
fn tick() -> f64 {
    let mut gaps = [(); 101].map(|()| nanos(Instant::now().elapsed()));
    gaps.sort_unstable_by(f64::total_cmp);
    gaps[50]
}

/// Means per pair without the slowest hundredth of the batches, and the batch that only one in a hundred exceeds.
fn summary(spent: &mut [[f64; 2]]) -> Measures {
    let both = |[free, alloc]: &[f64; 2]| free + alloc;
    spent.sort_unstable_by(|a, b| both(a).total_cmp(&both(b)));
    let kept = &spent[..spent.len() - spent.len() / OUTLIERS];
    let mean = |of: &dyn Fn(&[f64; 2]) -> f64| {
        let total: f64 = kept.iter().map(of).sum();
        (total / (kept.len() * BATCH).max(1) as f64).max(0.0)
    };
    let slow = kept.last().map_or(0.0, |last| both(last) / BATCH as f64);
    Measures::new()
        .with("ns_per_pair", mean(&both))
        .with("ns_per_free", mean(&|[free, _]| *free))
        .with("ns_per_alloc", mean(&|[_, alloc]| *alloc))
        .with("p99_ns_per_pair", slow.max(0.0))
}

/// Memory whose reading throws everything else out of the caches.
struct Sweep(Vec<u8>);

impl Sweep {
    fn new() -> Self {
        Self(vec![1; SWEEP])
    }

    fn run(&self) {
        let mut sum = 0u64;
        for line in self.0.chunks_exact(64) {
            // SAFETY: a line has 64 bytes.
            sum = sum.wrapping_add(unsafe { peek(line.as_ptr()) });
        }
        keep(&sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::ids::{OrderedSet, Pidmap};

    fn params(count: i64, live: i64) -> Params {
        Params::new()
            .with("count", count)
            .with("live", live)
            .with("turns", 40)
            .with("warm", 5)
            .with("budget_ms", 1000)
    }

    #[test]
    fn a_run_reports_finite_measures() {
        for live in [256, 1000, 4000, 4096] {
            let measures = run::<Pidmap>(&params(4096, live)).expect("runs");
            assert!(measures.get("ns_per_pair").expect("timed") > 0.0);
            assert!(measures.0.values().all(|value| value.is_finite()));
        }
        assert!(run::<OrderedSet<true>>(&params(4096, 2048).with("cold", 1)).is_ok());
    }

    #[test]
    fn too_few_identifiers_and_no_batches_are_errors() {
        assert!(run::<Pidmap>(&params(4096, 255)).is_err());
        assert!(run::<Pidmap>(&params(4096, 4097)).is_err());
        assert!(run::<Pidmap>(&params(4096, 300).with("turns", 0)).is_err());
    }

    /// Hands out the same identifier again and again.
    struct Same;

    impl IdSource for Same {
        fn start(_: &Start) -> anyhow::Result<Self> {
            Ok(Self)
        }

        fn alloc(&mut self) -> Option<u64> {
            Some(0)
        }

        fn free(&mut self, _: u64) -> bool {
            true
        }
    }

    #[test]
    fn a_source_that_cheats_is_an_error_and_not_fast() {
        let error = run::<Same>(&params(4096, 300)).expect_err("duplicates");
        assert!(error.to_string().contains("it is taken"), "{error}");
    }

    #[test]
    fn the_slowest_hundredth_is_left_out() {
        let alloc = |i| if i < 2 { 1e9 } else { 512.0 };
        let mut spent: Vec<[f64; 2]> = (0..200).map(|i| [256.0, alloc(i)]).collect();
        let measures = summary(&mut spent);
        assert_eq!(measures.get("ns_per_pair"), Some(3.0));
        assert_eq!(measures.get("ns_per_alloc"), Some(2.0));
        assert_eq!(measures.get("p99_ns_per_pair"), Some(3.0));
        assert!(summary(&mut []).get("ns_per_pair") == Some(0.0));
    }

    #[test]
    fn each_loop_does_what_it_says() {
        let start = Start::random(1000, 500, &mut Rng::new(1)).expect("sensible");
        let mut map = Pidmap::start(&start).expect("starts");
        let mut out = vec![0; 500];
        assert!(alloc_all(&mut map, &mut out));
        assert!(!alloc_all(&mut map, &mut [0]), "full");
        assert!(free_all(&mut map, &out));
        assert!(!free_all(&mut map, &out[..1]), "freed twice");
    }
}
