//! The contestants: his allocators and today's, in every shape.

use crate::contestants::heaps::{
    self, Heaps, LarderClasses, LarderGlobal, LarderHeaps, LarderPrivate, ObjectCache,
    ObjectHandles, PRELOADED, Preloaded, SystemMalloc, per_cpu,
};
use crate::contestants::parrot::{
    ExplicitHandles, GlobalLocked, Hashed, HashedMutex, LockedStack, Spacing, UnlockedStack,
};
use crate::measure::Contestant;
use crate::model::{Measures, Params};

use super::ends::LARDER_PRELOADED;
use super::{constructed, depot, destroy, held, his_loop, instructions, kept, pair};

/// Every contestant, in the order of the tables.
pub(super) fn all() -> Vec<Box<dyn Contestant>> {
    let mut all: Vec<Box<dyn Contestant>> = vec![
        Box::new(Bench {
            name: "unlocked-stack",
            about: "his lower bound: memory as a stack, without a lock, for one thread",
            run: |params| run(|| Ok(UnlockedStack::default()), params),
            needs: nothing,
        }),
        Box::new(Bench {
            name: "locked-stack",
            about: "the same behind a pthread mutex",
            run: |params| run(|| Ok(LockedStack::default()), params),
            needs: nothing,
        }),
        Box::new(Bench {
            name: "hashed-16",
            about: "his arrays of magazines, indexed by thread times 16, without a lock",
            run: |params| run(|| Ok(Hashed::new(16, spacing(params)?)), params),
            needs: nothing,
        }),
        Box::new(Bench {
            name: "hashed-2",
            about: "the same, indexed by thread times 2: eight threads' tops in a line",
            run: |params| run(|| Ok(Hashed::new(2, spacing(params)?)), params),
            needs: nothing,
        }),
        Box::new(Bench {
            name: "hashed-mutex",
            about: "hashed-16 with a pthread mutex in each element",
            run: |params| run(|| Ok(HashedMutex::new(16, spacing(params)?)), params),
            needs: nothing,
        }),
        Box::new(Bench {
            name: "explicit-handle",
            about: "his interp_t: every call is given the magazine of its interpreter, no lock",
            run: |params| run(|| ExplicitHandles::new(spacing(params)?), params),
            needs: nothing,
        }),
        Box::new(Bench {
            name: "global-locked",
            about: "his MyGlobalAlloc: one magazine for all threads behind a pthread mutex",
            run: |params| run(|| Ok(GlobalLocked::new(spacing(params)?)), params),
            needs: nothing,
        }),
        Box::new(Bench {
            name: "object-cache",
            about: "larder's object cache with its default settings, through the CPU's magazines",
            run: |params| match params.text("shape")? {
                "constructor" => constructed::run(&mut kept::PerCpu::new()?, params),
                _ => run(|| ObjectCache::new(params.count("bytes")?), params),
            },
            needs: per_cpu,
        }),
        Box::new(Bench {
            name: "object-handle",
            about: "larder's object cache, through a handle of the thread's own",
            run: |params| match params.text("shape")? {
                "constructor" => constructed::run(&mut kept::Handle::new()?, params),
                _ => run(|| ObjectHandles::new(params.count("bytes")?), params),
            },
            needs: nothing,
        }),
        Box::new(Bench {
            name: "heap",
            about: "larder's explicit heap, one for each thread, over shared classes",
            run: |params| match params.text("shape")? {
                "held" => run(
                    || LarderHeaps::every(held::interval(params)?, params.text("calls")? == "no"),
                    params,
                ),
                _ => run(LarderHeaps::new, params),
            },
            needs: nothing,
        }),
        Box::new(Bench {
            name: "classes",
            about: "larder's size classes through the CPUs' magazines",
            run: |params| run(LarderClasses::new, params),
            needs: per_cpu,
        }),
        Box::new(Bench {
            name: "global",
            about: "larder as Rust's global allocator: sized and aligned",
            run: |params| {
                if params.text("shape")? == "held" && params.text("calls")? == "no" {
                    larder::heap::global::start_reaper(held::interval(params)?)?;
                }
                run(|| Ok(LarderGlobal), params)
            },
            needs: nothing,
        }),
        Box::new(Bench {
            name: "private-heap",
            about: "a private heap of larder's, which is dropped with all its objects",
            run: |params| run(LarderPrivate::new, params),
            needs: nothing,
        }),
        Box::new(Bench {
            name: "private-freed",
            about: "the same, but every object is freed first",
            run: |params| run(|| Ok(destroy::OneByOne(LarderPrivate::new()?)), params),
            needs: nothing,
        }),
        Box::new(Bench {
            name: "cache-handles",
            about: "a handle of each of many object caches of larder's",
            run: destroy::run_handles,
            needs: nothing,
        }),
        Box::new(Bench {
            name: "malloc",
            about: "malloc and free of the C library",
            run: |params| run(|| Ok(SystemMalloc), params),
            needs: nothing,
        }),
    ];
    #[cfg(feature = "peers")]
    {
        use crate::contestants::heaps::{Jemalloc, Mimalloc, MimallocHeaps, Rpmalloc};
        all.push(Box::new(Bench {
            name: "mimalloc-heap",
            about: "a heap of mimalloc's own, destroyed with all its objects",
            run: |params| run(|| Ok(MimallocHeaps), params),
            needs: nothing,
        }));
        all.push(Box::new(Bench {
            name: "mimalloc",
            about: "mi_malloc and mi_free",
            run: |params| run(|| Ok(Mimalloc), params),
            needs: nothing,
        }));
        all.push(Box::new(Bench {
            name: "jemalloc",
            about: "jemalloc's malloc and sdallocx",
            run: |params| run(|| Ok(Jemalloc), params),
            needs: nothing,
        }));
        all.push(Box::new(Bench {
            name: "rpmalloc",
            about: "rpmalloc 1.4, each thread signed in",
            run: |params| run(|| Ok(Rpmalloc), params),
            needs: nothing,
        }));
    }
    #[cfg(feature = "peers-cpp")]
    all.push(Box::new(Bench {
        name: "snmalloc",
        about: "snmalloc through its Rust interface, sized and aligned",
        run: |params| run(|| Ok(heaps::Snmalloc), params),
        needs: nothing,
    }));
    all.push(Box::new(Bench {
        name: instructions::LOOP,
        about: "a loop that touches one block and allocates nothing",
        run: instructions::nothing_of,
        needs: nothing,
    }));
    all.push(Box::new(Bench {
        name: instructions::INSTRUCTIONS,
        about: "instructions of a pair of the named allocator, counted by callgrind",
        run: instructions::run,
        needs: crate::measure::callgrind::available,
    }));
    all.push(Box::new(Named {
        name: PRELOADED,
        about: "malloc and free of the library that LARDER_PRELOAD names, loaded before the C library",
    }));
    all.push(Box::new(Named {
        name: LARDER_PRELOADED,
        about: "malloc and free of liblarder_malloc.so, loaded before the C library",
    }));
    all
}

/// How his slab spaces its pieces.
fn spacing(params: &Params) -> anyhow::Result<Spacing> {
    Spacing::of(params.text("slab")?)
}

struct Bench {
    name: &'static str,
    about: &'static str,
    run: fn(&Params) -> anyhow::Result<Measures>,
    needs: fn() -> Result<(), String>,
}

fn nothing() -> Result<(), String> {
    Ok(())
}

impl Contestant for Bench {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn available(&self) -> Result<(), String> {
        (self.needs)()
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        (self.run)(params)
    }
}

/// The malloc of a library that is loaded before the C library.
struct Named {
    name: &'static str,
    about: &'static str,
}

impl Contestant for Named {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn environment(&self, params: &Params) -> Vec<(&'static str, String)> {
        heaps::environment(params)
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        run(|| Preloaded::new(params), params)
    }
}

/// Runs the shape that the factors name.
fn run<H: Heaps>(
    make: impl FnOnce() -> anyhow::Result<H>,
    params: &Params,
) -> anyhow::Result<Measures> {
    let shape = params.text("shape")?;
    let heaps = &make()?;
    match shape {
        "loop" => his_loop::run(heaps, params),
        "depot" => depot::run(heaps, params),
        "pair" => pair::run(heaps, params),
        "counted" => instructions::pairs_of(heaps, params),
        "constructor" => constructed::run_built(heaps, params),
        "destroy" => destroy::run(heaps, params),
        "held" => held::run(heaps, params),
        other => anyhow::bail!(
            "shape '{other}' is unknown; the shapes are loop, depot, pair, counted, constructor, destroy and held"
        ),
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
            instructions::LOOP,
            instructions::INSTRUCTIONS,
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
        let pairs = super::super::plan::PEERS
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
            // Who is named for the CPUs' magazines says how many of its blocks came from there.
            let counted = ["object-cache", "classes"].contains(&contestant.name());
            for measures in [&pair, &built] {
                let share = measures.get("path_share");
                assert_eq!(share.is_some(), counted, "{}", contestant.name());
            }
        }
    }
}
