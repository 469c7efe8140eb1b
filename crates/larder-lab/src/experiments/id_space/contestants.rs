//! The contestants: a source of identifiers each, in every shape and by every rule that it knows.

use anyhow::bail;
use larder::ids::{IdSpace, Ids, rule};

use crate::contestants::ids::shared::{Alone, LocalIds, Locked, Nothing, Sbitmap, SharedIds};
use crate::contestants::ids::{Eager, IdSource, OrderedSet, Pidmap, Ring, Stack, Tree};
use crate::frame::bench;
use crate::measure::Contestant;
use crate::model::{Measures, Params};

use super::{batches, create, distance, threads};

/// Every contestant, in the order of the tables.
pub(super) fn all() -> Vec<Box<dyn Contestant>> {
    // Only the crates of others are added.
    #[cfg_attr(not(feature = "peers"), allow(unused_mut))]
    let mut all: Vec<Box<dyn Contestant>> = vec![
        bench(
            "ids",
            "larder's Ids, for one owner, by the rule of the group",
            |p| match p.text("rule")? {
                "cyclic" => alone::<Ids<rule::Cyclic>>(p),
                "lowest" => alone::<Ids<rule::Lowest>>(p),
                "first-freed" => alone::<Ids<rule::Fifo>>(p),
                "last-freed" => alone::<Ids<rule::Lifo>>(p),
                "epochs" => alone::<Ids<rule::Epochs>>(p),
                "random" => alone::<Ids<rule::Random>>(p),
                other => Err(distance::no_rule(other)),
            },
        ),
        bench(
            "ids-rested",
            "larder's Ids by the rule of the cell, for the distances of rests",
            distance::ruled::<distance::Owned>,
        ),
        bench(
            "id-space-ruled",
            "larder's IdSpace by the rule of the cell, used by one thread that goes from CPU to CPU, for the distances",
            distance::ruled::<distance::Shared>,
        ),
        bench(
            "id-space",
            "larder's IdSpace, for many threads, by the cyclic rule",
            shared::<IdSpace<rule::Cyclic>>,
        ),
        bench(
            "id-space-any",
            "larder's IdSpace, for many threads, in no order",
            shared::<IdSpace<rule::Any>>,
        ),
        bench(
            "id-space-last",
            "larder's IdSpace, for many threads, the last freed first",
            shared::<IdSpace<rule::Lifo>>,
        ),
        one::<Pidmap>("pidmap"),
        either::<Tree<true>, Tree<false>>("tree"),
        either::<OrderedSet<true>, OrderedSet<false>>("btree-set"),
        one::<Ring>("ring"),
        one::<Stack>("stack"),
        one::<Eager>("eager-set"),
        many::<Sbitmap>("sbitmap"),
        many::<Locked<Pidmap>>("mutex-pidmap"),
        many::<Locked<Ids<rule::Cyclic>>>("mutex-ids"),
        many::<Alone>("own-stacks"),
        many::<Nothing>("empty-loop"),
    ];
    #[cfg(feature = "peers")]
    {
        use crate::contestants::ids::shared::{Queue, ShardedSlab};
        use crate::contestants::ids::{
            Blaze, Hibit, HibitLevels, Pool, RoaringFree, RoaringTaken, SlabIds, SlotMapIds,
        };
        all.extend([
            one::<Hibit>("hibitset"),
            either::<HibitLevels<true>, HibitLevels<false>>("hibitset-levels"),
            either::<RoaringFree<true>, RoaringFree<false>>("roaring"),
            one::<RoaringTaken>("roaring-taken"),
            either::<Blaze<true>, Blaze<false>>("range-set-blaze"),
            one::<Pool>("id-pool"),
            one::<SlabIds>("slab"),
            one::<SlotMapIds>("slotmap"),
            many::<ShardedSlab>("sharded-slab"),
            many::<Queue>("array-queue"),
        ]);
    }
    all
}

/// A source of one owner.
fn one<S: IdSource + 'static>(name: &'static str) -> Box<dyn Contestant> {
    bench(name, S::ABOUT, alone::<S>)
}

/// One that knows two rules.
fn either<Cyclic: IdSource, Lowest: IdSource>(name: &'static str) -> Box<dyn Contestant> {
    bench(name, Cyclic::ABOUT, |params| match params.text("rule")? {
        "cyclic" => alone::<Cyclic>(params),
        "lowest" => alone::<Lowest>(params),
        other => Err(distance::no_rule(other)),
    })
}

/// A source that threads share.
fn many<S: SharedIds + 'static>(name: &'static str) -> Box<dyn Contestant> {
    bench(name, S::ABOUT, shared::<S>)
}

/// One thread, in the shape that the factors name.
fn alone<S: IdSource>(params: &Params) -> anyhow::Result<Measures> {
    match params.text("shape")? {
        "batches" => batches::run::<S>(params),
        "create" => create::run(params, S::start, IdSource::alloc),
        "distance" => distance::run::<S>(params),
        other => {
            bail!("shape '{other}' is unknown here; the shapes are batches, create and distance")
        }
    }
}

/// Several threads, in the shape that the factors name.
fn shared<S: SharedIds>(params: &Params) -> anyhow::Result<Measures> {
    match params.text("shape")? {
        "threads" => threads::run::<S>(params),
        "create" => create::run(
            params,
            |start| S::new(start.count()),
            |source| source.local(0, 1).alloc(),
        ),
        other => bail!("shape '{other}' is unknown here; the shapes are threads and create"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_shapes_and_rules_are_errors() {
        for contestant in all() {
            let params = Params::new().with_text("shape", "round");
            let error = contestant.run(&params).expect_err("no such shape");
            let ruled = params.with_text("rule", "oldest");
            let other = contestant.run(&ruled).expect_err("no such rule");
            for text in [error.to_string(), other.to_string()] {
                assert!(
                    text.contains("the shapes are")
                        || text.contains("rule 'oldest'")
                        || text.contains("'rule' is missing"),
                    "{}: {text}",
                    contestant.name()
                );
            }
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = all().iter().map(|c| c.name()).collect();
        names.sort_unstable();
        let len = names.len();
        names.dedup();
        assert_eq!(names.len(), len);
    }
}
