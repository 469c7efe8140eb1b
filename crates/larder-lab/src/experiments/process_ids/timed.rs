//! The timed workload: Franke's rounds over a list of tasks, and single passes over it.

use std::time::Instant;

use anyhow::{bail, ensure};

use crate::contestants::getpid::harness::{Harness, Series};
use crate::contestants::getpid::{
    Adaptive, Algo0, Andrea, Bill, Bits, GetPid, Idr, Layout, Locked, Near, PID_MAX, Packed, Plain,
    Random31, Tasks, Window256, algo_1, algo_1_post, algo_2, algo_2_256_post, algo_2_post,
    compare_pass, larder_ids, mark_pass, pidmap,
};
use crate::contestants::timing::{ns_per_op, opaque, thread_cpu_ns};
use crate::frame::bench;
use crate::measure::Contestant;
use crate::model::{Measures, Params};

/// A cell ends after the round in which this many tasks were looked at since the last look at the clock.
const VISITS_PER_LOOK: u64 = 4_000_000;

/// The contestant that plays the rounds with an algorithm.
fn tried<G: GetPid>(
    name: &'static str,
    about: &'static str,
    make: impl Fn() -> anyhow::Result<G> + Sync + 'static,
) -> Box<dyn Contestant> {
    bench(name, about, move |params| {
        let job = Job::of(params)?;
        let seed = job.seed.wrapping_add(99);
        over_tasks(params, job.tasks, seed, Rounds(make()?, &job))
    })
}

/// The same of an algorithm that can always be made.
fn timed<G: GetPid + 'static>(
    name: &'static str,
    about: &'static str,
    make: fn() -> G,
) -> Box<dyn Contestant> {
    tried(name, about, move || Ok(make()))
}

/// The algorithms, in the order of the tables, and the crates of others under the same rounds.
pub(super) fn all() -> Vec<Box<dyn Contestant>> {
    // Only the crates of others are added.
    #[cfg_attr(not(feature = "peers"), allow(unused_mut))]
    let mut all: Vec<Box<dyn Contestant>> = vec![
        timed(
            "algo-0",
            "get_pid of Linux 2.4: a walk over all tasks, again from the start after each collision",
            || Algo0::new(1, 1),
        ),
        timed(
            "algo-1",
            "Franke 2002, as described: a cleared map, one walk that marks it, the next interval after last_pid",
            algo_1::<Plain>,
        ),
        timed(
            "algo-1-locked",
            "algo-1 with atomic bit sets",
            algo_1::<Locked>,
        ),
        timed(
            "algo-1-post",
            "algo-1 as it was measured: every search begins at the first id",
            algo_1_post::<Plain>,
        ),
        timed(
            "algo-2",
            "Franke 2002, as described: the map is kept, cleared and marked again only when nothing is found",
            algo_2::<Plain>,
        ),
        timed(
            "algo-2-locked",
            "algo-2 with atomic bit sets",
            algo_2::<Locked>,
        ),
        timed(
            "algo-2-post",
            "algo-2 as it was measured: with the mask of the posted code",
            algo_2_post::<Plain>,
        ),
        timed(
            "algo-2-256",
            "Franke 2002, as meant: a map of 2048 ids on the stack, intervals of at most 256 (reconstructed)",
            Window256::default,
        ),
        timed(
            "algo-2-256-post",
            "algo-2-256 as it was measured: the bound holds below id 1016 only",
            algo_2_256_post::<Plain>,
        ),
        timed(
            "adaptive",
            "algo-0 below the crossover, algo-2 above; the crossover from two passes timed at the start",
            Adaptive::calibrating,
        ),
        timed(
            "andrea",
            "Andrea Arcangeli's getpid, 2.4.19pre7aa2, as posted on 26 April 2002",
            Andrea::<Locked>::default,
        ),
        timed(
            "bill",
            "William Irwin's tower of bitmaps, posted on 7 August 2002, with its search mended",
            Bill::default,
        ),
        timed(
            "pidmap",
            "Linux 2.5.37 to 4.14 (Molnar, Irwin): a bitmap in pages, the next free bit",
            pidmap,
        ),
        timed(
            "idr",
            "Linux 4.15 and later: a radix tree of pointers, the next free id; simplified",
            Idr::default,
        ),
        tried("larder", "larder::ids::Ids under the rule Cyclic", || {
            larder_ids(PID_MAX.into(), larder::ids::rule::Cyclic)
        }),
    ];
    #[cfg(feature = "peers")]
    {
        use crate::contestants::getpid::Crate;
        use crate::contestants::ids::{
            Blaze, Hibit, IdSource, Pool, RoaringFree, SlabIds, SlotMapIds, shared::ShardedSlab,
        };
        fn peer<S: IdSource + 'static>(name: &'static str) -> Box<dyn Contestant> {
            tried(name, S::ABOUT, Crate::<S>::new)
        }
        all.extend([
            peer::<RoaringFree<true>>("crate-roaring"),
            peer::<Blaze<true>>("crate-range-set-blaze"),
            peer::<Hibit>("crate-hibitset"),
            peer::<Pool>("crate-id-pool"),
            peer::<SlabIds>("crate-slab"),
            peer::<SlotMapIds>("crate-slotmap"),
            peer::<ShardedSlab>("crate-sharded-slab"),
        ]);
    }
    all
}

/// One whole pass over the list, comparing or marking: their ratio decides where the curves cross.
pub(super) fn passes() -> Vec<Box<dyn Contestant>> {
    let pass = |name, about, kind| {
        bench(name, about, move |params| {
            let tasks = tasks_of(params)?;
            over_tasks(params, tasks, 99, Pass(kind, tasks))
        })
    };
    vec![
        pass(
            "compare-pass",
            "one pass of algo-0 over all tasks: four ids compared and the interval narrowed",
            Kind::Compare,
        ),
        pass(
            "mark-pass",
            "one pass of a sweep over all tasks: four ids marked in the map by plain stores",
            Kind::Mark,
        ),
        pass(
            "mark-pass-locked",
            "the same by atomic instructions",
            Kind::MarkLocked,
        ),
    ]
}

/// What is done with a list, however its tasks lie in memory.
trait Work {
    fn run<L: Layout>(self, tasks: Tasks<L>) -> anyhow::Result<Measures>;
}

/// Makes an empty list for this many tasks where the factor `memory` says, and works on it.
fn over_tasks(params: &Params, most: u32, seed: u32, work: impl Work) -> anyhow::Result<Measures> {
    let room = most as usize;
    match params.text("memory")? {
        "near" => work.run(Tasks::<Near>::new(room)),
        "packed" => work.run(Tasks::<Packed>::new(room)),
        "scattered" => {
            let mut random = Random31::new(seed);
            work.run(Tasks::<Near>::scattered(room, || random.draw()))
        }
        other => bail!("memory is '{other}'; it is near, scattered or packed"),
    }
}

/// The factor `tasks`.
fn tasks_of(params: &Params) -> anyhow::Result<u32> {
    let tasks = u32::try_from(params.count("tasks")?)?;
    ensure!(
        (2..PID_MAX).contains(&tasks),
        "tasks is {tasks}; it is Franke's A, from 2 to {}",
        PID_MAX - 1
    );
    Ok(tasks)
}

/// What lives when the space was full and all but A - 1 tasks were deleted, in the order of the list.
fn age<L: Layout>(tasks: &mut Tasks<L>, most: u32, seed: u32) {
    let mut harness = Harness::new(Series::List, seed, true);
    harness.thin_to(most);
    for pid in harness.in_list_order() {
        tasks.add(pid);
    }
}

/// What is played: Franke's A, D and number of rounds, the start, and how long at most.
struct Job {
    tasks: u32,
    deletes: u32,
    rounds: u32,
    aged: bool,
    seed: u32,
    cap_ms: u128,
}

impl Job {
    fn of(params: &Params) -> anyhow::Result<Self> {
        let number =
            |name: &str| -> anyhow::Result<u32> { Ok(u32::try_from(params.count(name)?)?) };
        Ok(Self {
            tasks: tasks_of(params)?,
            deletes: number("deletes")?,
            rounds: number("rounds")?,
            aged: match params.text("start")? {
                "aged" => true,
                "fresh" => false,
                other => bail!("start is '{other}'; it is aged or fresh"),
            },
            seed: params.int("seed").map_or(Ok(1), u32::try_from)?,
            cap_ms: params.count("cap_ms").unwrap_or(10_000) as u128,
        })
    }

    /// Fills the list: fresh, or with what lives after the space was full. Returns the id handed out last, and the first
    /// after it that may be in use.
    fn prepare<L: Layout>(&self, tasks: &mut Tasks<L>) -> (u32, u32) {
        if self.aged {
            age(tasks, self.tasks, self.seed);
            // The failed allocation that ended the filling left the next one to search from the beginning.
            return (0, 1);
        }
        for pid in 1..self.tasks {
            tasks.add(pid);
        }
        (self.tasks - 1, PID_MAX)
    }
}

/// The rounds of a job, with the algorithm.
struct Rounds<'a, G>(G, &'a Job);

impl<G: GetPid> Work for Rounds<'_, G> {
    fn run<L: Layout>(self, tasks: Tasks<L>) -> anyhow::Result<Measures> {
        played(tasks, self.0, self.1)
    }
}

fn played<G: GetPid, L: Layout>(
    mut tasks: Tasks<L>,
    pids: G,
    job: &Job,
) -> anyhow::Result<Measures> {
    let (last, next_safe) = job.prepare(&mut tasks);
    let live = tasks.len();
    let mut pids = pids.after(last, next_safe);
    pids.start(&tasks)?;
    let counted = pids.counts();
    let mut random = Random31::new(job.seed.wrapping_add(1000));
    let mut dead = Vec::with_capacity(job.deletes as usize);
    let (mut alloc_ns, mut free_ns, mut allocations) = (0u64, 0u64, 0u64);
    let reading = clock_cost();
    let start = Instant::now();
    let mut capped = false;
    for _ in 0..job.rounds {
        dead.clear();
        while dead.len() < job.deletes as usize && tasks.len() > 1 {
            let pid = random.draw() & (PID_MAX - 1);
            if tasks.remove(pid) {
                dead.push(pid);
            }
        }
        let clock = thread_cpu_ns();
        for pid in &dead {
            pids.freed(opaque(*pid));
        }
        free_ns += (thread_cpu_ns() - clock).saturating_sub(reading);
        let (spent, given, over) = refill(&mut pids, &mut tasks, dead.len(), start, job.cap_ms)?;
        alloc_ns += spent.saturating_sub(reading);
        allocations += given;
        if over {
            capped = true;
            break;
        }
    }
    let left = tasks.len();
    ensure!(
        capped || left == live,
        "{left} tasks live where {live} should"
    );
    let counts = pids.counts();
    let searches = counts.searches - counted.searches;
    let visited = counts.visited - counted.visited;
    let lines = ns_per_op(visited * L::LINES as u64, allocations);
    let us = |ns: u64| ns_per_op(ns, allocations) / 1e3;
    let mut measures = Measures::new()
        .with("us_per_alloc", us(alloc_ns.max(1)))
        .with("us_per_free", us(free_ns))
        .with("allocations", allocations as f64)
        .with("searches", searches as f64)
        .with("capped", f64::from(u8::from(capped)))
        .with("task_lines", lines);
    if searches > 0 {
        measures = measures
            .with("us_per_search", alloc_ns as f64 / 1e3 / searches as f64)
            .with("passes", visited as f64 / searches as f64 / live as f64);
    }
    Ok(measures)
}

/// A task with the next id, which no task may have.
#[inline(always)]
pub(super) fn born<G: GetPid, L: Layout>(
    pids: &mut G,
    tasks: &mut Tasks<L>,
) -> anyhow::Result<u32> {
    let Some(pid) = pids.get(tasks) else {
        bail!(
            "no id found although {} are free",
            PID_MAX as usize - 1 - tasks.len()
        );
    };
    ensure!(
        tasks.add(pid),
        "id {pid} was handed out although it is in use"
    );
    Ok(pid)
}

/// The timed part of a round: `most` allocations, each with its task added, as in Franke's harness. Returns nanoseconds,
/// allocations, and whether the time was up.
#[inline(never)]
fn refill<G: GetPid, L: Layout>(
    pids: &mut G,
    tasks: &mut Tasks<L>,
    most: usize,
    start: Instant,
    cap_ms: u128,
) -> anyhow::Result<(u64, u64, bool)> {
    let clock = thread_cpu_ns();
    let mut look_at = pids.counts().visited + VISITS_PER_LOOK;
    for given in 0..most as u64 {
        born(pids, tasks)?;
        let visited = pids.counts().visited;
        if visited >= look_at {
            look_at = visited + VISITS_PER_LOOK;
            if start.elapsed().as_millis() >= cap_ms {
                return Ok((thread_cpu_ns() - clock, given + 1, true));
            }
        }
    }
    let spent = thread_cpu_ns() - clock;
    Ok((spent, most as u64, start.elapsed().as_millis() >= cap_ms))
}

/// The three kinds of pass.
#[derive(Clone, Copy)]
enum Kind {
    Compare,
    Mark,
    MarkLocked,
}

/// A kind of pass over a list with one task less than this.
struct Pass(Kind, u32);

impl Work for Pass {
    /// Passes until a quarter of a million tasks were looked at, at least eight of them.
    fn run<L: Layout>(self, mut tasks: Tasks<L>) -> anyhow::Result<Measures> {
        age(&mut tasks, self.1, 1);
        let live = tasks.len() as u64;
        let passes = (250_000 / live.max(1)).max(8);
        let (mut plain, mut locked) = (Plain::new(), Locked::new());
        let mut pass = || match self.0 {
            // No task has the id 0, so the pass goes to the end.
            Kind::Compare => {
                opaque(compare_pass(&tasks, opaque(0)));
            }
            Kind::Mark => mark_pass(&tasks, opaque(&mut plain)),
            Kind::MarkLocked => mark_pass(&tasks, opaque(&mut locked)),
        };
        pass();
        let reading = clock_cost();
        let clock = thread_cpu_ns();
        for _ in 0..passes {
            pass();
        }
        let spent = (thread_cpu_ns() - clock).saturating_sub(reading);
        Ok(Measures::new().with("ns_per_task", ns_per_op(spent.max(1), passes * live)))
    }
}

/// What two readings of the clock cost, nanoseconds: the least of 32.
pub(super) fn clock_cost() -> u64 {
    (0..32)
        .map(|_| {
            let clock = thread_cpu_ns();
            thread_cpu_ns() - clock
        })
        .min()
        .unwrap_or(0)
}
