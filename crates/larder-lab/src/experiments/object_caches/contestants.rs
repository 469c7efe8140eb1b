//! The contestants: the mail's allocators, larder's and today's, in every shape.

use larder::objects::{Family, RawCache};
use larder::os::rseq::Mode;

use super::loops::{COUNTED, WARM_SHARE};
use super::{constructed, destroy, held, loops};
use crate::contestants::heaps::{
    ALIGN, Heaps, LarderGlobal, LarderHeaps, LarderPrivate, ObjectCache, ObjectHandles, per_cpu,
};
use crate::contestants::parrot::{
    ExplicitHandles, GlobalLocked, Hashed, HashedMutex, LockedStack, Spacing, UnlockedStack,
};
use crate::experiments::allocators::{Work, classes, peers, preloaded};
use crate::frame::{Counted, bench, needing};
use crate::measure::Contestant;
use crate::model::{Measures, Params};

/// Name of the contestant that is larder's malloc, preloaded.
pub(super) const LARDER_PRELOADED: &str = "larder-preloaded";
/// Name of the contestant that counts instructions, and of its group.
pub(super) const INSTRUCTIONS: &str = "instructions";
/// Name of the contestant that is the loop without an allocator.
pub(super) const LOOP: &str = "loop";
/// Name of the cache behind locks.
pub(super) const LOCKED: &str = "object-cache-locked";

/// Every contestant, in the order of the tables.
pub(super) fn all() -> Vec<Box<dyn Contestant>> {
    [mail(), ours(), peers::<Shapes>(), counted()]
        .into_iter()
        .flatten()
        .collect()
}

/// The allocators of the mail.
fn mail() -> Vec<Box<dyn Contestant>> {
    /// How the slab spaces its pieces.
    fn slab(params: &Params) -> anyhow::Result<Spacing> {
        Spacing::of(params.text("slab")?)
    }
    vec![
        bench(
            "unlocked-stack",
            "the mail's lower bound: memory as a stack, without a lock, for one thread",
            |p| Shapes::run(&UnlockedStack::default(), p),
        ),
        bench("locked-stack", "the same behind a pthread mutex", |p| {
            Shapes::run(&LockedStack::default(), p)
        }),
        bench(
            "hashed-16",
            "the mail's arrays of magazines, indexed by thread times 16, without a lock",
            |p| Shapes::run(&Hashed::new(16, slab(p)?), p),
        ),
        bench(
            "hashed-2",
            "the same, indexed by thread times 2: eight threads' tops in a line",
            |p| Shapes::run(&Hashed::new(2, slab(p)?), p),
        ),
        bench(
            "hashed-mutex",
            "hashed-16 with a pthread mutex in each element",
            |p| Shapes::run(&HashedMutex::new(16, slab(p)?), p),
        ),
        bench(
            "explicit-handle",
            "the mail's interp_t: every call is given the magazine of its interpreter, no lock",
            |p| Shapes::run(&ExplicitHandles::new(slab(p)?)?, p),
        ),
        bench(
            "global-locked",
            "the mail's MyGlobalAlloc: one magazine for all threads behind a pthread mutex",
            |p| Shapes::run(&GlobalLocked::new(slab(p)?), p),
        ),
    ]
}

/// Larder's.
fn ours() -> Vec<Box<dyn Contestant>> {
    let cache = bench(
        "object-cache",
        "larder's object cache with its default settings, through the CPU's magazines",
        |p| match p.text("shape")? {
            "constructor" => {
                let (cache, bytes) = constructed::cache()?;
                constructed::kept(&ObjectCache::over(cache, bytes), p)
            }
            _ => Shapes::run(&ObjectCache::new(p.count("bytes")?)?, p),
        },
    );
    vec![
        needing(per_cpu, cache),
        bench(
            LOCKED,
            "the same object cache with a lock around each CPU's magazines: what it is without restartable sequences",
            |p| Shapes::run(&Locked::new(p.count("bytes")?)?, p),
        ),
        bench(
            "object-handle",
            "larder's object cache, through a handle of the thread's own",
            |p| match p.text("shape")? {
                "constructor" => {
                    let (cache, bytes) = constructed::cache()?;
                    constructed::kept(&ObjectHandles::over(cache, bytes), p)
                }
                _ => Shapes::run(&ObjectHandles::new(p.count("bytes")?)?, p),
            },
        ),
        bench(
            "heap",
            "larder's explicit heap, one for each thread, over shared classes",
            |p| {
                let heaps = match p.text("shape")? {
                    "held" => LarderHeaps::every(held::interval(p)?, p.text("calls")? == "no"),
                    _ => LarderHeaps::new(),
                };
                Shapes::run(&heaps?, p)
            },
        ),
        classes::<Shapes>(),
        bench(
            "global",
            "larder as Rust's global allocator: sized and aligned",
            |p| {
                if p.text("shape")? == "held" && p.text("calls")? == "no" {
                    larder::Larder::start_helper(held::interval(p)?)?;
                }
                Shapes::run(&LarderGlobal, p)
            },
        ),
        bench(
            "private-heap",
            "a private heap of larder's, which is dropped with all its objects",
            |p| Shapes::run(&LarderPrivate::new()?, p),
        ),
        bench(
            "private-freed",
            "the same, but every object is freed first",
            |p| Shapes::run(&destroy::OneByOne(LarderPrivate::new()?), p),
        ),
        bench(
            "cache-handles",
            "a handle of each of many object caches of larder's",
            destroy::run_handles,
        ),
        preloaded::<Shapes>(
            LARDER_PRELOADED,
            "malloc and free of liblarder_malloc.so, loaded before the C library",
        ),
    ]
}

/// What counts instructions, and what is taken off.
fn counted() -> Vec<Box<dyn Contestant>> {
    let pairs = Counted {
        about: "instructions of a pair of the named allocator, counted by callgrind",
        experiment: "object-caches",
        factor: "allocator",
        pieces: 100_000,
        warm_share: WARM_SHARE,
        params: |turns| {
            let params = Params::new().with_text("shape", "counted");
            params.with("bytes", COUNTED as i64).with("turns", turns)
        },
    };
    let nothing = "a loop that touches one block and allocates nothing";
    vec![bench(LOOP, nothing, loops::empty), Box::new(pairs)]
}

/// An object cache that locks each CPU's magazines.
struct Locked(ObjectCache);

impl Locked {
    fn new(bytes: usize) -> anyhow::Result<Self> {
        let family = Family::builder().mode(Mode::Locked("to compare")).build()?;
        let align = ALIGN.min(bytes.next_power_of_two());
        let cache = RawCache::new(&family, std::alloc::Layout::from_size_align(bytes, align)?)?;
        Ok(Self(ObjectCache::over(cache, bytes)))
    }
}

impl Heaps for Locked {
    type Local<'a> = <ObjectCache as Heaps>::Local<'a>;

    fn local(&self) -> anyhow::Result<Self::Local<'_>> {
        self.0.local()
    }
}

/// The shape that the factors name.
struct Shapes;

impl Work for Shapes {
    fn run<H: Heaps>(heaps: &H, params: &Params) -> anyhow::Result<Measures> {
        match params.text("shape")? {
            "loop" => loops::threads(heaps, params),
            "depot" => loops::depot(heaps, params),
            "pair" => loops::pair(heaps, params),
            "counted" => loops::counted(heaps, params),
            "constructor" => constructed::built(heaps, params),
            "destroy" => destroy::run(heaps, params),
            "held" => held::run(heaps, params),
            other => anyhow::bail!(
                "shape '{other}' is unknown; the shapes are loop, depot, pair, counted, constructor, destroy and held"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_contestant_runs_in_the_shapes_of_its_groups() {
        let params = Params::new()
            .with("turns", 100)
            .with("threads", 1)
            .with("bytes", 100)
            .with_text("cpus", "any")
            .with_text("slab", "his");
        let mut here = all();
        let ends = [
            "preloaded",
            "larder-preloaded",
            "cache-handles",
            "mimalloc-heap",
            LOOP,
            INSTRUCTIONS,
        ];
        here.retain(|c| !ends.contains(&c.name()) && c.available().is_ok());
        for contestant in &here {
            let measures = contestant
                .run(&params.clone().with_text("shape", "loop"))
                .unwrap_or_else(|e| panic!("{}: {e:#}", contestant.name()));
            assert!(measures.get("seconds").is_some());
            let error = contestant
                .run(&params.clone().with_text("shape", "round"))
                .expect_err("no such shape");
            assert!(error.to_string().contains("the shapes are"), "{error}");
        }
        let pairs = crate::experiments::allocators::PEERS
            .into_iter()
            .chain(super::super::plan::OURS);
        let pairs: Vec<_> = pairs.collect();
        for contestant in here.iter().filter(|c| pairs.contains(&c.name())) {
            let pair = contestant
                .run(&params.clone().with_text("shape", "pair"))
                .expect("pair");
            assert!(pair.get("ns_per_pair").is_some());
            let depot = contestant
                .run(&params.clone().with_text("shape", "depot").with("turns", 2))
                .expect("depot");
            assert!(depot.get("sleeps_per_million").is_some());
            let counted = contestant.run(&params.clone().with_text("shape", "counted"));
            assert!(counted.is_ok(), "{}: {counted:?}", contestant.name());
            let built = contestant
                .run(&params.clone().with_text("shape", "constructor"))
                .expect("constructor");
            assert!(built.get("constructor_ns").is_some_and(|ns| ns > 0.0));
            // What is named for the CPUs' magazines counts how many of its blocks came from there.
            let counted = ["object-cache", "classes"].contains(&contestant.name());
            for measures in [&pair, &built] {
                let share = measures.get("path_share");
                assert_eq!(share.is_some(), counted, "{}", contestant.name());
            }
        }
    }
}
