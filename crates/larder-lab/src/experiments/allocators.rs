//! Shared parts of the experiments about allocators: today's allocators as contestants, and the cells of preloaded ones.

use crate::contestants::heaps::{
    self, Heaps, LarderClasses, PRELOADED, Preloaded, SystemMalloc, per_cpu,
};
use crate::frame::words::short;
use crate::frame::{Results, bench, needing, within};
use crate::measure::Contestant;
use crate::model::{Cell, Measures, Params};

/// Today's allocators.
pub(super) const PEERS: [&str; 5] = ["malloc", "mimalloc", "jemalloc", "rpmalloc", "snmalloc"];

/// What an experiment does with an allocator.
pub(super) trait Work: 'static {
    /// Does it and measures it.
    fn run<H: Heaps>(heaps: &H, params: &Params) -> anyhow::Result<Measures>;
}

/// Today's allocators, and the malloc of a library that the user names.
pub(super) fn peers<W: Work>() -> Vec<Box<dyn Contestant>> {
    // Only the crates of others are added.
    #[cfg_attr(not(feature = "peers"), allow(unused_mut))]
    let mut all = vec![
        bench("malloc", "malloc and free of the C library", |p| {
            W::run(&SystemMalloc, p)
        }),
        preloaded::<W>(
            PRELOADED,
            "malloc and free of the library that LARDER_PRELOAD names, loaded before the C library",
        ),
    ];
    #[cfg(feature = "peers")]
    all.extend([
        bench(
            "mimalloc-heap",
            "a heap of mimalloc's own, destroyed with all its objects",
            |p| W::run(&heaps::MimallocHeaps, p),
        ),
        bench("mimalloc", "mi_malloc and mi_free", |p| {
            W::run(&heaps::Mimalloc, p)
        }),
        bench("jemalloc", "jemalloc's malloc and sdallocx", |p| {
            W::run(&heaps::Jemalloc, p)
        }),
        bench("rpmalloc", "rpmalloc 1.4, each thread signed in", |p| {
            W::run(&heaps::Rpmalloc, p)
        }),
    ]);
    #[cfg(feature = "peers-cpp")]
    all.push(bench(
        "snmalloc",
        "snmalloc through its Rust interface, sized and aligned",
        |p| W::run(&heaps::Snmalloc, p),
    ));
    all
}

/// A malloc in a process that was started with its library.
pub(super) fn preloaded<W: Work>(name: &'static str, about: &'static str) -> Box<dyn Contestant> {
    let run = |p: &Params| W::run(&Preloaded::new(p)?, p);
    within(heaps::environment, bench(name, about, run))
}

/// Larder's size classes, where restartable sequences are there.
pub(super) fn classes<W: Work>() -> Box<dyn Contestant> {
    let about = "larder's size classes through the CPUs' magazines";
    let run = |p: &Params| W::run(&LarderClasses::new()?, p);
    needing(per_cpu, bench("classes", about, run))
}

/// The same cell of the preloaded malloc, for each library.
pub(super) fn preloaded_cells(like: &Cell, libraries: &[String]) -> Vec<Cell> {
    let cell = |path: &String| {
        let params = like.params.clone().with_text("library", path);
        Cell::new(PRELOADED, params)
    };
    libraries.iter().map(cell).collect()
}

/// A warning for each cell whose blocks came from a CPU's magazines less often than its contestant's name says. A cell of which
/// no block came from there has failed.
pub(super) fn seldom_per_cpu(results: &Results<'_>) -> Vec<String> {
    let groups = results.view.groups().into_iter();
    let low = groups
        .flat_map(|group| results.all(group))
        .filter_map(|at| {
            let share = at.middle("path_share").filter(|share| *share < 0.5)?;
            let (name, group) = (at.name(), at.group);
            let share = short(100.0 * share);
            Some(format!(
                "{name} in group {group}: only {share} % of the blocks came from a CPU's magazines"
            ))
        });
    low.collect()
}
