//! The contestants: an allocator each, in every workload.

use crate::contestants::heaps::{
    self, LarderClasses, LarderGlobal, LarderHeaps, LarderPrivate, Preloaded, SystemMalloc, per_cpu,
};
use crate::measure::Contestant;
use crate::model::{Measures, Params};

use super::work::run;

/// Every contestant, in the order of the tables.
pub(super) fn all() -> Vec<Box<dyn Contestant>> {
    let mut all: Vec<Box<dyn Contestant>> = vec![
        Box::new(Bench {
            name: "heap",
            about: "larder's explicit heap, one for each thread, over shared classes",
            run: |params| run(&LarderHeaps::new()?, params),
        }),
        Box::new(PerCpu),
        Box::new(Bench {
            name: "global",
            about: "larder as Rust's global allocator: sized and aligned",
            run: |params| run(&LarderGlobal, params),
        }),
        Box::new(Bench {
            name: "heap-whole",
            about: "a private heap of larder's for each interpreter, dropped whole",
            run: |params| run(&LarderPrivate::new()?, params),
        }),
        Box::new(Bench {
            name: "malloc",
            about: "malloc and free of the C library",
            run: |params| run(&SystemMalloc, params),
        }),
    ];
    #[cfg(feature = "peers")]
    {
        use crate::contestants::heaps::{Jemalloc, Mimalloc, MimallocHeaps, Rpmalloc};
        all.push(Box::new(Bench {
            name: "mimalloc",
            about: "mi_malloc and mi_free",
            run: |params| run(&Mimalloc, params),
        }));
        all.push(Box::new(Bench {
            name: "jemalloc",
            about: "jemalloc's malloc and sdallocx",
            run: |params| run(&Jemalloc, params),
        }));
        all.push(Box::new(Bench {
            name: "rpmalloc",
            about: "rpmalloc 1.4, each thread signed in",
            run: |params| run(&Rpmalloc, params),
        }));
        all.push(Box::new(Bench {
            name: "mimalloc-heap",
            about: "a heap of mimalloc's own for each interpreter, destroyed whole",
            run: |params| run(&MimallocHeaps, params),
        }));
    }
    #[cfg(feature = "peers-cpp")]
    all.push(Box::new(Bench {
        name: "snmalloc",
        about: "snmalloc through its Rust interface, sized and aligned",
        run: |params| run(&heaps::Snmalloc, params),
    }));
    all.push(Box::new(Named));
    all
}

struct Bench {
    name: &'static str,
    about: &'static str,
    run: fn(&Params) -> anyhow::Result<Measures>,
}

impl Contestant for Bench {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        (self.run)(params)
    }
}

/// The CPUs' stocks of every size class.
struct PerCpu;

impl Contestant for PerCpu {
    fn name(&self) -> &'static str {
        "classes"
    }

    fn about(&self) -> &'static str {
        "larder's size classes through the CPUs' magazines"
    }

    fn available(&self) -> Result<(), String> {
        per_cpu()
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        run(&LarderClasses::new()?, params)
    }
}

/// The malloc of a library that the user names.
struct Named;

impl Contestant for Named {
    fn name(&self) -> &'static str {
        "preloaded"
    }

    fn about(&self) -> &'static str {
        "malloc and free of the library that LARDER_PRELOAD names, loaded before the C library"
    }

    fn environment(&self, params: &Params) -> Vec<(&'static str, String)> {
        heaps::environment(params)
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        run(&Preloaded::new(params)?, params)
    }
}
