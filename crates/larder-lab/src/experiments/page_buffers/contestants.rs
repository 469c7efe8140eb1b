//! The contestants: a supplier under Walfield's workload, or a part of a cluster's life.

use std::time::Instant;

use crate::contestants::supply::{
    Cluster, ClusterWhole, PoolHandles, PoolPerCpu, Supplier, Supply, SystemMalloc, Unbuffered,
    mappings, page_size,
};
use crate::contestants::timing::{Stopwatch, ns_per_op, resident_bytes};
use crate::measure::Contestant;
use crate::model::{Measures, Params};

use super::parts::{self, GiveBack};
use super::workload;

/// Every contestant, in the order of the tables.
pub(super) fn all() -> Vec<Box<dyn Contestant>> {
    let mut all: Vec<Box<dyn Contestant>> = vec![
        Box::new(Workload {
            name: "unbuffered",
            about: "Program 1 of Walfield 2001: mmap and munmap for every page",
            run: |_, job| measure(Unbuffered::new(), job),
        }),
        Box::new(Workload {
            name: "cluster",
            about: "Program 2 of Walfield 2001: pages of one preallocated mapping, each unmapped when it is freed",
            run: |params, job| measure(Cluster::new(params.count("pages")?)?, job),
        }),
        Box::new(Workload {
            name: "cluster-whole",
            about: "Program 2, but a cluster is unmapped in one call when its last page is freed, as GNU Mach's memory objects released it",
            run: |params, job| measure(ClusterWhole::new(params.count("pages")?, false)?, job),
        }),
        Box::new(Workload {
            name: "cluster-populate",
            about: "cluster-whole with MAP_POPULATE: the call that maps a cluster makes its pages present",
            run: |params, job| measure(ClusterWhole::new(params.count("pages")?, true)?, job),
        }),
        Box::new(Workload {
            name: "pool",
            about: "larder's page pool, per CPU, with clusters of so many pages",
            run: |params, job| {
                let pool = PoolPerCpu::new(Some(params.count("pages")?))?;
                measure(pool.local()?, job)
            },
        }),
        Box::new(Workload {
            name: "pool-handle",
            about: "larder's page pool through a handle, with clusters of so many pages",
            run: |params, job| {
                let pool = PoolHandles::new(Some(params.count("pages")?))?;
                measure(pool.local()?, job)
            },
        }),
        Box::new(Workload {
            name: "malloc",
            about: "posix_memalign and free of the C library",
            run: |_, job| measure(SystemMalloc::new(), job),
        }),
    ];
    #[cfg(feature = "peers")]
    {
        all.push(Box::new(Workload {
            name: "mimalloc",
            about: "mi_malloc_aligned and mi_free of one page",
            run: |_, job| measure(crate::contestants::supply::Mimalloc::new(), job),
        }));
        all.push(Box::new(Workload {
            name: "jemalloc",
            about: "mallocx of one aligned page and sdallocx",
            run: |_, job| measure(crate::contestants::supply::Jemalloc::new(), job),
        }));
    }
    all.push(Box::new(Part {
        name: "life-by-page",
        about: "A cluster's life in parts: get, touch, one munmap per page",
        run: |pages, total| parts::run(pages, total, false, GiveBack::Page),
    }));
    all.push(Box::new(Part {
        name: "life-whole",
        about: "A cluster's life in parts: get, touch, one munmap per cluster",
        run: |pages, total| parts::run(pages, total, false, GiveBack::Cluster),
    }));
    all.push(Box::new(Part {
        name: "life-populate",
        about: "A cluster's life in parts: MAP_POPULATE, touch, one munmap per cluster",
        run: |pages, total| parts::run(pages, total, true, GiveBack::Cluster),
    }));
    all.push(Box::new(Part {
        name: "release",
        about: "MADV_DONTNEED of present pages in one call",
        run: parts::release,
    }));
    all
}

/// A supplier under the workload.
struct Workload {
    name: &'static str,
    about: &'static str,
    run: fn(&Params, Job) -> anyhow::Result<Measures>,
}

/// How many pages to take, and what was there before the supplier.
#[derive(Clone, Copy)]
struct Job {
    total: u64,
    held: u64,
    start: Instant,
}

impl Contestant for Workload {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        let job = Job {
            total: u64::try_from(params.count("total")?)?,
            held: resident_bytes(),
            start: Instant::now(),
        };
        (self.run)(params, job)
    }
}

/// A part of a cluster's life; `total` is a number of pages or of calls.
struct Part {
    name: &'static str,
    about: &'static str,
    run: fn(usize, usize) -> anyhow::Result<Measures>,
}

impl Contestant for Part {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        (self.run)(params.count("pages")?, params.count("total")?)
    }
}

/// Runs the workload once and reports time, counts and what stays held when every page is back.
///
/// The timed part is the whole loop, the first page included, as in his programs: nothing is warmed up.
fn measure<S: Supplier>(mut supplier: S, job: Job) -> anyhow::Result<Measures> {
    let setup = job.start.elapsed().as_secs_f64();
    let page = page_size();
    let calls = supplier.system_calls();
    let watch = Stopwatch::start();
    workload::run(&mut supplier, job.total, page)?;
    let spent = watch.stop();
    let taken = workload::allocations_of(job.total);
    let held = resident_bytes().saturating_sub(job.held);
    let mut measures = Measures::new()
        .with("elapsed_s", spent.wall_ns as f64 / 1e9)
        .with("ns_per_page", ns_per_op(spent.cpu_ns, taken))
        .with(
            "faults_per_page",
            ns_per_op(spent.usage.minor_faults, taken),
        )
        .with("held_bytes", held as f64)
        .with("setup_s", setup);
    if let (Some(before), Some(after)) = (calls, supplier.system_calls()) {
        measures = measures.with("calls_per_page", ns_per_op(after - before, taken));
    }
    let mut maps = None;
    workload::look_inside(&mut supplier, page, || maps = mappings())?;
    if let Some(maps) = maps {
        measures = measures.with("mappings", maps as f64);
    }
    Ok(measures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = all().iter().map(|c| c.name()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn system_calls_per_page_are_those_of_the_programs() {
        let calls = |name: &str, params: &Params| {
            let all = all();
            let contestant = all.iter().find(|c| c.name() == name).expect("listed");
            let measures = contestant.run(params).expect("runs");
            assert!(measures.0.values().all(|value| value.is_finite()));
            measures.get("calls_per_page").expect("counted")
        };
        let total = Params::new().with("total", 1500);
        assert_eq!(calls("unbuffered", &total), 2.0);
        let sized = |pages| total.clone().with("pages", pages);
        assert_eq!(calls("cluster", &sized(1)), 2.0);
        assert_eq!(calls("cluster", &sized(15)), 1.0 + 1.0 / 15.0);
        assert_eq!(calls("cluster-whole", &sized(15)), 2.0 / 15.0);
        assert_eq!(calls("cluster-populate", &sized(15)), 2.0 / 15.0);
    }

    #[test]
    fn every_contestant_runs_and_refuses_missing_factors() {
        for contestant in all() {
            assert!(
                contestant.run(&Params::new()).is_err(),
                "{}",
                contestant.name()
            );
            let params = Params::new().with("total", 150).with("pages", 64);
            let measures = contestant.run(&params).expect("runs");
            assert!(measures.get("ns_per_page").expect("timed") > 0.0);
        }
    }
}
