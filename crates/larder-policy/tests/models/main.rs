//! Every rule against a naive model of it, written from its definition with vectors and searches: the same events, and after each
//! of them the same victims, in the same order, leaving a ghost or not.

#![allow(clippy::unwrap_used)]

mod adaptive;
mod cacheus;
mod changing;
mod clocks;
mod counts;
mod drive;
mod experts;
mod ghosts;
mod mean;
mod mixed;
mod parked;
mod proportions;
mod queues;
mod recency;
mod restless;

use drive::{Naive, Op, drive, ops};
use proptest::prelude::*;

/// A test for each model.
macro_rules! models {
    ($($name:ident: $model:ty,)*) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
            $(#[test]
            fn $name(capacity in 1usize..24, ops in ops()) {
                drive::<$model>(capacity, &ops)?;
            })*
        }

        /// Rules that have a model, and what that finds of a load.
        const MODELS: &[(&str, fn(&[u32]) -> u64)] = &[$(
            (<$model as Naive>::RULE, mixed::hits_of_model::<$model>),
        )*];
    };
}

models! {
    fifo: queues::Fifo,
    lru: queues::Lru,
    clock: queues::Clock,
    gclock: queues::Gclock,
    sieve: queues::Sieve,
    two_q: ghosts::TwoQ,
    arc: ghosts::Arc,
    s3_fifo: ghosts::S3Fifo,
    s3_fifo_one_bit: ghosts::S3FifoOneBit,
    clock_2q_plus: ghosts::Clock2QPlus,
    car: clocks::Car,
    lru_2: counts::Lru2,
    mq: counts::Mq,
    lfu_da: counts::LfuDa,
    lirs: recency::Lirs,
    clock_pro: recency::ClockPro,
    w_tiny_lfu: experts::WindowTinyLfu<false>,
    w_tiny_lfu_climbing: experts::WindowTinyLfu<true>,
    hyperbolic: experts::Hyperbolic,
    lecar: experts::LeCaR,
    cacheus: cacheus::Cacheus,
    default_rule: adaptive::Adaptive,
}

#[test]
fn every_rule_has_a_model() {
    let without: Vec<&str> = larder_policy::rules()
        .iter()
        .map(|rule| rule.name)
        .filter(|name| !MODELS.iter().any(|model| model.0 == *name))
        .filter(|name| !ELSEWHERE.iter().any(|begin| name.starts_with(begin)))
        .collect();
    assert!(without.is_empty(), "no model for {without:?}");
}

/// How the names of rules begin whose models are in other files of tests.
const ELSEWHERE: &[&str] = &["linux-", "mglru"];

/// The cold hand of CLOCK-Pro goes over pages that are all pinned, and is where it was.
#[test]
fn a_round_over_pinned_pages_moves_no_hand() {
    let again = false;
    let used = |block| Op::Use { block, again };
    let ops = [
        used(0),
        Op::Resize(1),
        used(3),
        Op::Pin(3),
        used(0),
        Op::Resize(3),
        used(6),
        used(6),
        used(0),
        Op::Resize(1),
    ];
    drive::<recency::ClockPro>(2, &ops).unwrap();
}

/// A model is worth nothing if every rule fits it.
#[test]
#[should_panic(expected = "victims")]
fn a_rule_that_takes_another_victim_is_caught() {
    struct Wrong(queues::Fifo);
    impl Naive for Wrong {
        const RULE: &'static str = "lru";
        fn new(capacity: usize) -> Self {
            Self(Naive::new(capacity))
        }
        fn insert(&mut self, frame: u32, arrival: drive::Arrival) {
            self.0.insert(frame, arrival);
        }
        fn touch(&mut self, _: u32, _: u32) {}
        fn evict(&mut self, unpinned: &dyn Fn(u32) -> bool) -> Option<drive::Victim> {
            self.0.evict(unpinned)
        }
        fn remove(&mut self, frame: u32) {
            self.0.remove(frame);
        }
        fn resize(&mut self, _: usize) {}
    }
    let ops = [1, 2, 1, 3].map(|block| Op::Use {
        block,
        again: false,
    });
    if let Err(error) = drive::<Wrong>(2, &ops) {
        panic!("{error}");
    }
}
