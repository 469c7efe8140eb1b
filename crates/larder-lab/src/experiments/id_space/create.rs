//! Making a space, and taking its first identifier.

use std::time::Instant;

use anyhow::{Context, ensure};

use crate::contestants::ids::{Rng, Start};
use crate::contestants::timing::ns_per_op;
use crate::model::{Measures, Params};

/// Makes `times` spaces of `count` identifiers and takes one from each if `first` is 1. They are given back outside of
/// the clock.
///
/// # Errors
/// Missing factors, and a space that cannot be made or is full at once.
pub(super) fn run<T>(
    params: &Params,
    make: impl Fn(&Start) -> anyhow::Result<T>,
    take: impl Fn(&mut T) -> Option<u64>,
) -> anyhow::Result<Measures> {
    let start = Start::random(params.count("count")? as u64, 0, &mut Rng::new(1))?;
    let times = params.count("times")?;
    ensure!(
        times > 0,
        "no spaces were asked for; give at least 1 in 'times'"
    );
    let first = params.int("first")? != 0;
    let one = || -> anyhow::Result<(T, u64)> {
        let mut source = make(&start)?;
        let id = if first {
            take(&mut source).context("it is full from the beginning")?
        } else {
            0
        };
        Ok((source, id))
    };
    let mut made = Vec::with_capacity(times);
    // The first one pays for what the process has never done before, and is not timed.
    drop(one()?);
    let begin = Instant::now();
    for _ in 0..times {
        made.push(one()?);
    }
    let spent = u64::try_from(begin.elapsed().as_nanos())?;
    // Whatever was made is used.
    std::hint::black_box(&mut made);
    Ok(Measures::new().with("ns_per_space", ns_per_op(spent, times as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::ids::shared::{LocalIds, Sbitmap, SharedIds};
    use crate::contestants::ids::{Eager, IdSource, Pidmap};

    #[test]
    fn spaces_are_made() {
        fn alone<S: IdSource>(params: &Params) -> anyhow::Result<Measures> {
            run(params, S::start, IdSource::alloc)
        }
        let params = Params::new().with("count", 1000).with("times", 3);
        assert!(
            alone::<Pidmap>(&params).is_err(),
            "with or without the first"
        );
        for first in [0, 1] {
            let params = params.clone().with("first", first);
            for measures in [
                alone::<Pidmap>(&params),
                alone::<Eager>(&params),
                run(
                    &params,
                    |start| Sbitmap::new(start.count()),
                    |source| source.local(0, 1).alloc(),
                ),
            ] {
                assert!(measures.expect("made").get("ns_per_space").expect("timed") > 0.0);
            }
        }
        assert!(alone::<Pidmap>(&params.with("times", 0)).is_err());
    }
}
