//! How many allocations lie between a free and the next time that the same identifier is handed out.

use anyhow::{Context, bail, ensure};

use crate::contestants::ids::{IdSource, Live, Rng, Start};
use crate::model::{Measures, Params};

/// Frees `batch` random identifiers and allocates as many, again and again, and notes how long each had rested.
///
/// Identifiers that are freed before as many allocations as there were free ones at the start are not looked at: the
/// start is a burst of frees, or of allocations, and what is promised for their alternation begins behind it.
///
/// # Errors
/// Missing factors, and a source that hands out what somebody has or says 'full' too early.
pub(super) fn run<S: IdSource>(params: &Params) -> anyhow::Result<Measures> {
    let (count, live) = (params.count("count")? as u64, params.count("live")? as u64);
    let (batch, allocs) = (params.count("batch")?, params.count("allocs")? as u64);
    ensure!(
        batch > 0 && allocs > 0,
        "batches of {batch} and {allocs} allocations were asked for; both must be at least 1"
    );
    let mut rng = Rng::new(count ^ live);
    let start = Start::random(count, live, &mut rng)?;
    let mut shadow = Live::new::<S>(&start);
    let mut source = S::start(&start)?;
    // Allocations made when the identifier was freed; those that were free at the start count for nothing.
    let mut freed_at: Vec<Option<u64>> = vec![None; usize::try_from(count)?];
    let mut seen = Vec::new();
    let mut ids = vec![0; batch];
    let mut made = 0;
    let warm = (count - live).min(allocs / 2);
    while made < allocs {
        shadow.draw(&mut rng, &mut ids)?;
        for &id in &ids {
            ensure!(source.free(id), "it refused {id}, which was taken");
            *slot(&mut freed_at, id)? = (made >= warm).then_some(made);
        }
        for out in &mut ids {
            let Some(id) = source.alloc() else {
                bail!("it said 'full' although identifiers were free");
            };
            *out = id;
            if let Some(at) = slot(&mut freed_at, id)?.take() {
                seen.push(made - at);
            }
            made += 1;
        }
        shadow.give(&ids)?;
    }
    ensure!(
        !seen.is_empty(),
        "no identifier came back in {allocs} allocations; give more in 'allocs'"
    );
    seen.sort_unstable();
    let at = |part: usize| seen[(seen.len() - 1) * part / 100] as f64;
    Ok(Measures::new()
        .with("distance_min", at(0))
        .with("distance_p1", at(1))
        .with("distance_median", at(50))
        .with("distance_max", at(100)))
}

fn slot(of: &mut [Option<u64>], id: u64) -> anyhow::Result<&mut Option<u64>> {
    let place = id & u64::from(u32::MAX);
    of.get_mut(place as usize)
        .with_context(|| format!("identifier {place} is beyond the range"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::ids::{OrderedSet, Ring, Stack};

    fn of<S: IdSource>(live: i64, batch: i64) -> Measures {
        let params = Params::new()
            .with("count", 1000)
            .with("live", live)
            .with("batch", batch)
            .with("allocs", 10_000);
        run::<S>(&params).expect("runs")
    }

    #[test]
    fn a_ring_rests_for_all_that_were_free_and_a_stack_not_at_all() {
        let ring = of::<Ring>(300, 1);
        assert_eq!(ring.get("distance_min"), Some(700.0));
        assert_eq!(ring.get("distance_max"), Some(700.0));
        let stack = of::<Stack>(300, 1);
        assert_eq!(stack.get("distance_max"), Some(0.0));
        // The last of a batch comes first.
        assert_eq!(of::<Stack>(300, 10).get("distance_max"), Some(9.0));
        let cyclic = of::<OrderedSet<true>>(300, 1);
        assert!(cyclic.get("distance_median").expect("seen") > 100.0);
    }

    #[test]
    fn nothing_to_see_is_an_error() {
        let params = Params::new()
            .with("count", 1000)
            .with("live", 10)
            .with("batch", 1)
            .with("allocs", 10);
        assert!(run::<Ring>(&params).is_err());
        assert!(run::<Ring>(&params.with("batch", 0)).is_err());
    }
}
