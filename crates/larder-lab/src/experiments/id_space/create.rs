//! Making a space, and taking its first identifier.

use std::time::Instant;

use anyhow::{Context, ensure};

use crate::contestants::ids::shared::{LocalIds, SharedIds};
use crate::contestants::ids::{IdSource, Rng, Start};
use crate::contestants::timing::ns_per_op;
use crate::model::{Measures, Params};

const FULL: &str = "it is full from the beginning";

/// Makes `times` spaces of `count` identifiers and takes one from each if `first` is 1. They are given back outside of
/// the clock.
///
/// # Errors
/// Missing factors, and a space that cannot be made or is full at once.
pub(super) fn run<S: IdSource>(params: &Params) -> anyhow::Result<Measures> {
    let start = Start::random(params.count("count")? as u64, 0, &mut Rng::new(1))?;
    timed(params, |first| {
        let mut source = S::start(&start)?;
        let id = if first {
            source.alloc().context(FULL)?
        } else {
            0
        };
        Ok((source, id))
    })
}

/// As [`run`], for a source of several threads.
///
/// # Errors
/// As [`run`].
pub(super) fn run_shared<S: SharedIds>(params: &Params) -> anyhow::Result<Measures> {
    let count = params.count("count")? as u64;
    timed(params, |first| {
        let source = S::new(count)?;
        let id = if first {
            source.local(0, 1).alloc().context(FULL)?
        } else {
            0
        };
        Ok((source, id))
    })
}

fn timed<T>(
    params: &Params,
    mut make: impl FnMut(bool) -> anyhow::Result<(T, u64)>,
) -> anyhow::Result<Measures> {
    let times = params.count("times")?;
    ensure!(
        times > 0,
        "no spaces were asked for; give at least 1 in 'times'"
    );
    let first = params.int("first")? != 0;
    let mut made = Vec::with_capacity(times);
    // The first one pays for what the process has never done before, and is not timed.
    drop(make(first)?);
    let begin = Instant::now();
    for _ in 0..times {
        made.push(make(first)?);
    }
    let spent = begin.elapsed();
    // Whatever was made is used.
    std::hint::black_box(&mut made);
    Ok(Measures::new().with(
        "ns_per_space",
        ns_per_op(u64::try_from(spent.as_nanos())?, times as u64),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::ids::shared::Sbitmap;
    use crate::contestants::ids::{Eager, Pidmap};

    #[test]
    fn spaces_are_made() {
        let params = Params::new().with("count", 1000).with("times", 3);
        assert!(run::<Pidmap>(&params).is_err(), "with or without the first");
        for first in [0, 1] {
            let params = params.clone().with("first", first);
            for measures in [
                run::<Pidmap>(&params),
                run::<Eager>(&params),
                run_shared::<Sbitmap>(&params),
            ] {
                assert!(measures.expect("made").get("ns_per_space").expect("timed") > 0.0);
            }
        }
        assert!(run::<Pidmap>(&params.with("times", 0)).is_err());
    }
}
