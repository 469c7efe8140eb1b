//! The contestants: a source of identifiers each, in every shape and by every rule that it knows.

use anyhow::bail;
use larder::ids::rule;

use crate::contestants::ids::shared::{
    Alone, LocalIds, Locked, Nothing, OurSpace, Sbitmap, SharedIds,
};
use crate::contestants::ids::{Eager, IdSource, OrderedSet, Ours, Pidmap, Ring, Stack, Tree};
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
                "cyclic" => alone::<Ours<rule::Cyclic>>(p),
                "lowest" => alone::<Ours<rule::Lowest>>(p),
                "first-freed" => alone::<Ours<rule::Fifo>>(p),
                "last-freed" => alone::<Ours<rule::Lifo>>(p),
                "epochs" => alone::<Ours<rule::Epochs>>(p),
                "random" => alone::<Ours<rule::Random>>(p),
                other => Err(distance::no_rule(other)),
            },
        ),
        bench(
            "ids-rested",
            "larder's Ids by the rule of the cell, for the distances of rests",
            distance::owned,
        ),
        bench(
            "id-space-ruled",
            "larder's IdSpace by the rule of the cell, used by one thread that goes from CPU to CPU, for the distances",
            distance::space,
        ),
        bench(
            "id-space",
            "larder's IdSpace, for many threads, by the cyclic rule",
            shared::<OurSpace<rule::Cyclic>>,
        ),
        bench(
            "id-space-any",
            "larder's IdSpace, for many threads, in no order",
            shared::<OurSpace<rule::Any>>,
        ),
        bench(
            "id-space-last",
            "larder's IdSpace, for many threads, the last freed first",
            shared::<OurSpace<rule::Lifo>>,
        ),
        bench(
            "pidmap",
            "Linux's pidmap of 2002 to 2017: a bitmap in pages with a count of free bits each; cyclic",
            alone::<Pidmap>,
        ),
        bench(
            "tree",
            "a plain hierarchical bitmap, 64 to 1, by the rule of the group",
            by_order::<Tree<true>, Tree<false>>,
        ),
        bench(
            "btree-set",
            "the standard library's BTreeSet of free identifiers, by the rule of the group",
            by_order::<OrderedSet<true>, OrderedSet<false>>,
        ),
        bench(
            "ring",
            "a bare ring of free identifiers of 32 bits: the first freed first, nothing checked",
            alone::<Ring>,
        ),
        bench(
            "stack",
            "a bare array of free identifiers of 32 bits: the last freed first, nothing checked",
            alone::<Stack>,
        ),
        bench(
            "eager-set",
            "a hash set of all free identifiers, filled when it is made, as cilium's pool of identities was",
            alone::<Eager>,
        ),
        bench(
            "sbitmap",
            "after Linux's sbitmap: words on cache lines of their own, hints per thread, deferred clear",
            shared::<Sbitmap>,
        ),
        bench(
            "mutex-pidmap",
            "pidmap under the standard library's mutex",
            shared::<Locked<Pidmap>>,
        ),
        bench(
            "mutex-ids",
            "larder's Ids under the standard library's mutex, cyclic",
            shared::<Locked<Ours<rule::Cyclic>>>,
        ),
        bench(
            "own-stacks",
            "a bare array for each thread, nothing shared: the floor",
            shared::<Alone>,
        ),
        bench(
            "empty-loop",
            "the loop alone: how far the machine itself scales",
            shared::<Nothing>,
        ),
    ];
    #[cfg(feature = "peers")]
    all.extend(crates());
    all
}

/// The crates of others.
#[cfg(feature = "peers")]
fn crates() -> Vec<Box<dyn Contestant>> {
    use crate::contestants::ids::shared::{Queue, ShardedSlab};
    use crate::contestants::ids::{
        Blaze, Hibit, Pool, RoaringFree, RoaringTaken, SlabIds, SlotMapIds,
    };
    vec![
        bench(
            "hibitset",
            "crate hibitset as a set of free identifiers, the lowest by its iterator",
            alone::<Hibit<0>>,
        ),
        bench(
            "hibitset-levels",
            "crate hibitset with a search of ours over its levels, by the rule of the group",
            by_order::<Hibit<2>, Hibit<1>>,
        ),
        bench(
            "roaring",
            "crate roaring as a set of free identifiers, by the rule of the group",
            by_order::<RoaringFree<true>, RoaringFree<false>>,
        ),
        bench(
            "roaring-taken",
            "crate roaring as a set of taken identifiers; the next free one is found by trying",
            alone::<RoaringTaken>,
        ),
        bench(
            "range-set-blaze",
            "crate range-set-blaze as a set of free identifiers, by the rule of the group",
            by_order::<Blaze<true>, Blaze<false>>,
        ),
        bench(
            "id-pool",
            "crate id-pool: a vector of free ranges, the lowest first",
            alone::<Pool>,
        ),
        bench(
            "slab",
            "crate slab, Slab<()> with a bound of ours: the last freed first",
            alone::<SlabIds>,
        ),
        bench(
            "slotmap",
            "crate slotmap, SlotMap<_, ()> with a bound of ours: the last freed first, with generations",
            alone::<SlotMapIds>,
        ),
        bench(
            "sharded-slab",
            "crate sharded-slab, Slab<()>; it grows",
            shared::<ShardedSlab>,
        ),
        bench(
            "array-queue",
            "crate crossbeam-queue, an ArrayQueue of free identifiers: the first freed first",
            shared::<Queue>,
        ),
    ]
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

/// One thread, by the rule that the factors name.
fn by_order<Cyclic: IdSource, Lowest: IdSource>(params: &Params) -> anyhow::Result<Measures> {
    match params.text("rule")? {
        "cyclic" => alone::<Cyclic>(params),
        "lowest" => alone::<Lowest>(params),
        other => Err(distance::no_rule(other)),
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
