//! Every workload with every linked allocator, and with one that is broken.

use larder_lab::contestants::heaps::{Broken, Heaps, SystemMalloc};
use larder_lab::experiments::alloc_workloads::{ALL, ALLOC_WORKLOADS, About, run};
use larder_lab::measure::Experiment;
use larder_lab::model::Params;

fn params(workload: &About, threads: i64, ops: i64) -> Params {
    Params::new()
        .with_text("workload", workload.name)
        .with("threads", if workload.alone { 1 } else { threads })
        .with("ops", ops)
}

/// A few thousand operations; blocks of megabytes are dearer.
fn ops(workload: &About) -> i64 {
    if workload.name == "malloc-large" {
        60
    } else {
        4000
    }
}

#[test]
fn each_runs_with_each_allocator() {
    for contestant in ALLOC_WORKLOADS.contestants() {
        if contestant.name() == "preloaded" || contestant.available().is_err() {
            continue;
        }
        for workload in ALL {
            for threads in [1, 2, 5] {
                let params = params(workload, threads, ops(workload));
                let what = format!("{} with {}", workload.name, contestant.name());
                let ends = contestant.run(&params);
                let whole = ["heap-whole", "mimalloc-heap"].contains(&contestant.name());
                if whole && workload.name != "interpreters" {
                    let error = ends.expect_err("heaps that die whole").to_string();
                    assert!(error.contains("die whole"), "{what}: {error}");
                    continue;
                }
                let measures = ends.unwrap_or_else(|e| panic!("{what}: {e:#}"));
                assert!(
                    measures.get("ns_per_op").is_some_and(|ns| ns > 0.0),
                    "{what}"
                );
                assert!(measures.get("held_bytes").is_some(), "{what}");
                // The contestant that uses the CPUs' magazines says which share of its blocks came from there.
                let counted = contestant.name() == "classes" && workload.name != "malloc-large";
                let share = measures.get("path_share");
                assert_eq!(share.is_some(), counted, "{what}: {share:?}");
                assert!(
                    share.is_none_or(|s| s > 0.0 && s <= 1.0),
                    "{what}: {share:?}"
                );
            }
        }
    }
}

#[test]
fn each_gives_back_what_it_took_and_takes_what_it_says() {
    for workload in ALL {
        for threads in [1, 3] {
            let sound = Broken::new(SystemMalloc, 0);
            let asked = ops(workload);
            run(&sound, &params(workload, threads, asked))
                .unwrap_or_else(|e| panic!("{}: {e:#}", workload.name));
            assert_eq!(sound.out(), 0, "{} keeps blocks", workload.name);
            // Rounded up to whole tables, batches or lives, and what fills the slots at first.
            let calls = sound.calls() as i64;
            assert!(
                calls >= asked / 2,
                "{}: {calls} blocks for {asked} operations",
                workload.name
            );
            assert!(
                calls < 12 * asked,
                "{}: {calls} blocks for {asked} operations",
                workload.name
            );
        }
    }
}

/// The reason why the run is not scored.
fn refusal<H: Heaps>(heaps: &H, workload: &About, threads: i64) -> String {
    match run(heaps, &params(workload, threads, ops(workload))) {
        Ok(_) => panic!("{} did not see that a block had two owners", workload.name),
        Err(error) => format!("{error:#}"),
    }
}

#[test]
fn each_sees_that_a_block_has_two_owners() {
    for workload in ALL {
        for threads in [1, 2, 4] {
            let broken = Broken::new(SystemMalloc, 50);
            let why = refusal(&broken, workload, threads);
            assert!(broken.planted() > 0, "{}", workload.name);
            let named = [
                "handed out twice",
                "overwritten",
                "as its constructor left it",
            ];
            assert!(
                named.iter().any(|words| why.contains(words)),
                "{}: {why}",
                workload.name
            );
        }
    }
}

#[test]
fn what_cannot_be_asked_is_told() {
    let first = &ALL[0];
    let error = |params: &Params| {
        run(&SystemMalloc, params)
            .expect_err("cannot be asked")
            .to_string()
    };
    assert!(
        error(&Params::new().with_text("workload", "barnes")).contains("the workloads are larson")
    );
    assert!(error(&params(first, 0, 100)).contains("at least 1"));
    assert!(error(&params(first, 1, 0)).contains("at least 1"));
    assert!(error(&Params::new().with_text("workload", first.name)).contains("missing"));
    let alone = ALL.iter().find(|w| w.alone).expect("there is one");
    assert!(error(&params(alone, 1, 10).with("threads", 2)).contains("one thread"));
}

/// An allocator whose memory ends.
mod dry {
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use larder_lab::contestants::heaps::{Heap, Heaps, SystemMalloc};

    pub(crate) struct Shared {
        pub(crate) left: AtomicUsize,
    }

    pub(crate) struct Local<'a>(&'a Shared);

    impl Heap for Local<'_> {
        fn alloc(&mut self, bytes: usize) -> Option<NonNull<u8>> {
            let left = self
                .0
                .left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
            left.ok().and_then(|_| SystemMalloc.alloc(bytes))
        }

        unsafe fn free(&mut self, block: NonNull<u8>, bytes: usize) {
            // SAFETY: from `alloc`.
            unsafe { SystemMalloc.free(block, bytes) };
        }
    }

    impl Heaps for Shared {
        type Local<'a> = Local<'a>;

        fn local(&self) -> anyhow::Result<Local<'_>> {
            Ok(Local(self))
        }
    }
}

#[test]
fn an_allocator_without_memory_ends_the_run_and_nobody_waits() {
    for workload in ALL {
        for left in [0, 3, 40] {
            let shared = dry::Shared { left: left.into() };
            let why = refusal(&shared, workload, 4);
            assert!(why.contains("no block of"), "{}: {why}", workload.name);
        }
    }
}
