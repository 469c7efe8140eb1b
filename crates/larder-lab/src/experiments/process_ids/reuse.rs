//! How many allocations lie between the end of an id and its return.

use anyhow::{bail, ensure};
use larder::ids::{Rule, rule};

use crate::contestants::getpid::{
    Algo0, Bill, GetPid, Idr, PID_MAX, Packed, Plain, Random31, Tasks, algo_1_post, algo_2,
    larder_ids, pidmap,
};
use crate::frame::bench;
use crate::measure::Contestant;
use crate::model::{Measures, Params};

use super::timed::born;

/// The least distance that a rule promises when this many ids are free, where it promises one.
pub(super) type Promise = fn(f64) -> Option<f64>;

/// The rules, with what each promises in a sentence, and the least distance that the sentence promises for a number
/// of free ids where it promises one.
pub(super) const RULES: [(&str, &str, Promise); 15] = [
    (
        "algo-0",
        "none: the next id after the last that was free when last looked",
        |_| None,
    ),
    ("algo-1-post", "none: the lowest interval first", |_| None),
    (
        "algo-2",
        "none: as algo-0, and a freed id is passed over until the map is made anew",
        |_| None,
    ),
    ("bill", NEXT, |_| None),
    ("pidmap", NEXT, |_| None),
    ("idr", NEXT, |_| None),
    ("larder cyclic", NEXT, |_| None),
    ("larder lowest", "none: the lowest free id", |_| None),
    (
        "larder first-freed",
        "as many as are free: no rule can do better",
        Some,
    ),
    (
        "larder epochs of 2",
        "half of the free ones, but for two",
        |free| Some((free / 2.0 - 2.0).max(0.0)),
    ),
    (
        "larder epochs of 4",
        "three quarters of the free ones, but for two",
        |free| Some((free * 0.75 - 2.0).max(0.0)),
    ),
    ("larder last-freed", "none: at once", |_| None),
    ("larder any", "none: any free id", |_| None),
    ("larder random", "none: any free id", |_| None),
    (
        "larder rested",
        "48 allocations: the lowest free id that has rested",
        |_| Some(48.0),
    ),
];
const NEXT: &str = "none: the next free id after the last";

/// Whether a rule walks the list in every search.
pub(super) fn walks(rule: &str) -> bool {
    matches!(rule, "algo-0" | "algo-1-post" | "algo-2")
}

/// Buckets of the histogram: 0, then powers of two up to 2^16.
pub(super) const BUCKETS: usize = 18;

/// Name of the share of one bucket.
pub(super) fn bucket_name(bucket: usize) -> String {
    format!("share.{bucket:02}")
}

/// The bucket of a distance.
pub(super) fn bucket_of(distance: u32) -> usize {
    ((32 - distance.leading_zeros()) as usize).min(BUCKETS - 1)
}

/// The least distance of a bucket.
pub(super) fn bucket_floor(bucket: usize) -> f64 {
    if bucket == 0 {
        0.0
    } else {
        2f64.powi(bucket as i32 - 1)
    }
}

/// The contestant.
pub(super) fn contestant() -> Box<dyn Contestant> {
    bench(
        "reuse",
        "One random task ends and one begins, again and again: allocations between an id's end and its return",
        run,
    )
}

fn run(params: &Params) -> anyhow::Result<Measures> {
    let live = u32::try_from(params.count("live")?)?;
    ensure!(
        (1..PID_MAX).contains(&live),
        "live is {live}; it is from 1 to 32767"
    );
    let churns = params.count("churns")?;
    fn ours<R: Rule>(rule: R, live: u32, churns: usize) -> anyhow::Result<Measures> {
        churned(larder_ids(PID_MAX.into(), rule)?, live, churns)
    }
    match params.text("rule")? {
        "algo-0" => churned(Algo0::new(1, PID_MAX), live, churns),
        "algo-1-post" => churned(algo_1_post::<Plain>(), live, churns),
        "algo-2" => churned(algo_2::<Plain>(), live, churns),
        "bill" => churned(Bill::default(), live, churns),
        "pidmap" => churned(pidmap(), live, churns),
        "idr" => churned(Idr::default(), live, churns),
        "larder cyclic" => ours(rule::Cyclic, live, churns),
        "larder lowest" => ours(rule::Lowest, live, churns),
        "larder first-freed" => ours(rule::Fifo, live, churns),
        "larder epochs of 2" => ours(rule::Epochs::<2>, live, churns),
        "larder epochs of 4" => ours(rule::Epochs::<4>, live, churns),
        "larder last-freed" => ours(rule::Lifo, live, churns),
        "larder any" => ours(rule::Any, live, churns),
        "larder random" => ours(rule::Random::new([7; 32]), live, churns),
        "larder rested" => {
            let rule = rule::Rested::allocations(rule::Lowest, 48, rule::NearFull::Fail);
            ours(rule, live, churns)
        }
        other => bail!("rule is '{other}', which is none of those compared"),
    }
}

/// Fills to `live`, then one death and one birth `churns` times. The first half brings the space into its steady
/// state; distances are taken of the second.
fn churned(mut pids: impl GetPid, live: u32, churns: usize) -> anyhow::Result<Measures> {
    const NEVER: u32 = u32::MAX;
    let mut tasks = Tasks::<Packed>::new(live as usize);
    let mut ids: Vec<u32> = Vec::with_capacity(live as usize);
    let mut ended = vec![NEVER; PID_MAX as usize];
    let mut random = Random31::new(5);
    let mut distances = Vec::with_capacity(churns);
    for clock in 0..live + 2 * churns as u32 {
        let churning = clock >= live;
        if churning {
            let place = random.draw() as usize % ids.len();
            let pid = ids.swap_remove(place);
            tasks.remove(pid);
            pids.freed(pid);
            ended[pid as usize] = clock;
        }
        let pid = born(&mut pids, &mut tasks)?;
        ids.push(pid);
        let since = ended[pid as usize];
        if clock >= live + churns as u32 && since != NEVER {
            distances.push(clock - since);
        }
    }
    ensure!(
        !distances.is_empty(),
        "no id came back in {churns} allocations; give more churns"
    );
    distances.sort_unstable();
    let at = |share: f64| f64::from(distances[((distances.len() - 1) as f64 * share) as usize]);
    let mut shares = [0.0; BUCKETS];
    for distance in &distances {
        shares[bucket_of(*distance)] += 1.0 / distances.len() as f64;
    }
    let mut measures = Measures::new()
        .with("least", at(0.0))
        .with("p1", at(0.01))
        .with("median", at(0.5))
        .with("most", at(1.0));
    for (bucket, share) in shares.into_iter().enumerate() {
        measures = measures.with(&bucket_name(bucket), share);
    }
    Ok(measures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_powers_of_two() {
        assert_eq!(
            (bucket_of(0), bucket_of(1), bucket_of(2), bucket_of(3)),
            (0, 1, 2, 2)
        );
        assert_eq!(bucket_of(u32::MAX), BUCKETS - 1);
        assert_eq!(
            (bucket_floor(0), bucket_floor(1), bucket_floor(3)),
            (0.0, 1.0, 4.0)
        );
    }
}
