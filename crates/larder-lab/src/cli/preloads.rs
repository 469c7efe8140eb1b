//! Builds the libraries that a run preloads, where they are missing, before its clock starts.

use super::args::Measure;
use super::global::Global;
use super::output;
use crate::contestants::heaps::PRELOADED;
use crate::measure::Experiment;
use crate::preload::larder::MALLOC;
use crate::preload::snmalloc;

/// Contestants that are this project's malloc, preloaded.
const LARDER: [&str; 2] = ["larder", "larder-preloaded"];
/// Contestants that snmalloc is, preloaded.
const SNMALLOC: [&str; 2] = [snmalloc::NAME, PRELOADED];

/// Builds what these experiments preload and this machine lacks. What cannot be built is one line, and the run goes on.
pub(super) fn build(global: &Global, args: &Measure, chosen: &[Box<dyn Experiment>]) {
    if args.plan {
        return;
    }
    let wants = |names: &[&str]| {
        let named = |c: &String| names.contains(&c.as_str());
        preload(chosen, names) && (args.contestant.is_empty() || args.contestant.iter().any(named))
    };
    let tell = &mut |line: &str| output::hint(global, line);
    // A library that the user named is neither looked for nor built.
    let named = std::env::var_os("LARDER_MALLOC").is_some_and(|name| !name.is_empty());
    if !named && MALLOC.beside().is_none() && wants(&LARDER) {
        // Where there is nothing to build it from, the plan says so.
        if let Err(why) = MALLOC.build(tell) {
            tell(&why);
        }
    }
    if cfg!(not(feature = "peers-cpp"))
        && wants(&SNMALLOC)
        && let Err(why) = snmalloc::build(tell)
    {
        tell(&why);
    }
}

/// Whether one of the experiments compares preloaded mallocs and has one of these contestants.
fn preload(chosen: &[Box<dyn Experiment>], names: &[&str]) -> bool {
    chosen.iter().any(|e| {
        let contestants = e.contestants();
        let has = |names: &[&str]| contestants.iter().any(|c| names.contains(&c.name()));
        has(&[PRELOADED]) && has(names)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments;

    #[test]
    fn those_that_compare_mallocs_preload() {
        let users = |names: &[&str]| -> Vec<&str> {
            experiments::all()
                .iter()
                .map(|e| e.name())
                .filter(|name| preload(&Vec::from_iter(experiments::find(name)), names))
                .collect()
        };
        assert_eq!(
            users(&LARDER),
            [
                "object-caches",
                "alloc-sweep",
                "malloc-processes",
                "programs"
            ]
        );
        assert_eq!(
            users(&SNMALLOC),
            [
                "object-caches",
                "alloc-sweep",
                "alloc-workloads",
                "malloc-processes",
                "programs"
            ]
        );
    }
}
