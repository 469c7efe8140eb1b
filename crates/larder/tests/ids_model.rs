//! Every rule against a set of taken identifiers and a simple model of the rule, over ranges of every kind.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "ids_model/model.rs"]
mod model;
#[path = "ids_model/promises.rs"]
mod promises;

use larder::ids::{IdRange, Rule, rule};
use proptest::prelude::*;

use self::model::{Model, Op, Promise, ops};

fn ranges() -> Vec<IdRange> {
    let new = |first, last| IdRange::new(first, last).unwrap();
    vec![
        new(1, 1),
        new(0, 2),
        new(1, 64),
        new(60, 127),
        new(0, 255),
        new(300, 32767),
        new(0, 65535),
        new(65530, 65530 + 65536 + 4097),
        new(7, (1 << 20) + 7),
        new(0, (1 << 24) + 70_000),
        new(1, u64::from(u32::MAX)),
        new(1 << 40, (1 << 48) + 99),
        new(u64::MAX - 100, u64::MAX),
        IdRange::ALL,
    ]
}

fn check<R: Rule, P: Promise>(range: IdRange, rule: &R, promise: P, ops: &[Op]) {
    let mut model = Model::new(range, rule.clone(), promise);
    ops.iter().for_each(|op| model.step(op));
    model.finish(rule.clone());
}

/// One test per rule: random calls over a random one of the ranges.
macro_rules! rules {
    ($($name:ident: $rule:expr, $promise:expr;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $name(range in prop::sample::select(ranges()), ops in ops(150)) {
                    check(range, &$rule, $promise, &ops);
                }
            )*
        }
    };
}

rules! {
    the_lowest_is_next: rule::Lowest, promises::Lowest;
    the_one_after_the_latest_is_next: rule::Cyclic, promises::Cyclic::default();
    the_first_freed_is_next: rule::Fifo, promises::Fifo::default();
    the_last_freed_is_next: rule::Lifo, promises::Lifo::default();
    those_of_an_earlier_epoch_are_next: rule::Epochs::<2>, promises::Epochs::new(2);
    those_of_an_earlier_one_of_four_epochs_are_next: rule::Epochs::<4>, promises::Epochs::new(4);
    any_free_one_is_next: rule::Random::new([1; 32]), promises::Any;
}
