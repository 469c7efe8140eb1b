//! The timed workload: Franke's rounds over a list of tasks.

use std::time::Instant;

use anyhow::{bail, ensure};

use crate::contestants::getpid::{
    Adaptive, Algo0, Andrea, Bill, GetPid, Idr, Layout, Locked, Near, PID_MAX, Packed, Pidmap,
    Plain, Random31, Tasks, Window256, algo_1, algo_1_post, algo_2, algo_2_256_post, algo_2_post,
};
use crate::contestants::timing::{ns_per_op, opaque, thread_cpu_ns};
use crate::measure::Contestant;
use crate::model::{Measures, Params};

use super::harness::{Harness, Series};
use super::ours::Ours;

/// A cell ends after the round in which so many tasks were looked at since the last look at the clock.
const VISITS_PER_LOOK: u64 = 4_000_000;

/// The state in which the timed part begins: the id handed out last, and the first after it that may be in use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begin {
    last: u32,
    next_safe: u32,
}

/// Makes an algorithm for a list that it will see.
pub(super) trait Make {
    type Pids: GetPid;
    fn make<L: Layout>(tasks: &Tasks<L>, begin: Begin) -> anyhow::Result<Self::Pids>;
}

macro_rules! makes {
    ($($name:ident => $pids:ty, $make:expr;)*) => {$(
        struct $name;

        impl Make for $name {
            type Pids = $pids;

            fn make<L: Layout>(tasks: &Tasks<L>, begin: Begin) -> anyhow::Result<Self::Pids> {
                Ok(($make)(tasks, begin))
            }
        }
    )*};
}

makes! {
    MakeAlgo0 => Algo0, |_, b: Begin| Algo0::new(1, b.next_safe).after(b.last);
    MakeAlgo1 => crate::contestants::getpid::Sweep<Plain>, |_, b: Begin| algo_1().after(b.last, b.next_safe);
    MakeAlgo1Locked => crate::contestants::getpid::Sweep<Locked>, |_, b: Begin| algo_1().after(b.last, b.next_safe);
    MakeAlgo1Post => crate::contestants::getpid::Sweep<Plain>, |_, b: Begin| algo_1_post().after(b.last, b.next_safe);
    MakeAlgo2 => crate::contestants::getpid::Sweep<Plain>, |_, b: Begin| algo_2().after(b.last, b.next_safe);
    MakeAlgo2Locked => crate::contestants::getpid::Sweep<Locked>, |_, b: Begin| algo_2().after(b.last, b.next_safe);
    MakeAlgo2Post => crate::contestants::getpid::Sweep<Plain>, |_, b: Begin| algo_2_post().after(b.last, b.next_safe);
    MakeBounded => crate::contestants::getpid::Sweep<Plain>, |_, b: Begin| algo_2_256_post().after(b.last, b.next_safe);
    MakeWindow => Window256, |_, b: Begin| Window256::new().after(b.last, b.next_safe);
    MakeAdaptive => Adaptive, |tasks, b: Begin| Adaptive::calibrated(tasks).after(b.last, b.next_safe);
    MakeAndrea => Andrea<Locked>, |_, b: Begin| Andrea::new().after(b.last, b.next_safe);
    MakeBill => Bill, |_, b: Begin| Bill::new().after(b.last);
    MakePidmap => Pidmap, |_, b: Begin| Pidmap::new().after(u64::from(b.last));
    MakeIdr => Idr, |_, b: Begin| Idr::new().after(u64::from(b.last));
}

struct MakeOurs;

impl Make for MakeOurs {
    type Pids = Ours;

    fn make<L: Layout>(_: &Tasks<L>, begin: Begin) -> anyhow::Result<Ours> {
        Ours::after(begin.last)
    }
}

/// An algorithm under his workload.
struct Timed {
    name: &'static str,
    about: &'static str,
    run: fn(&Params) -> anyhow::Result<Measures>,
}

impl Contestant for Timed {
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

/// The contestant that plays his workload with what `M` makes.
pub(super) fn timed<M: Make + 'static>(
    name: &'static str,
    about: &'static str,
) -> Box<dyn Contestant> {
    Box::new(Timed {
        name,
        about,
        run: run::<M>,
    })
}

/// The algorithms, in the order of the tables.
pub(super) fn all() -> Vec<Box<dyn Contestant>> {
    vec![
        timed::<MakeAlgo0>(
            "algo-0",
            "get_pid of Linux 2.4: a walk over all tasks, again from the start after each collision",
        ),
        timed::<MakeAlgo1>(
            "algo-1",
            "Franke 2002, as described: a cleared map, one walk that marks it, the next interval after last_pid",
        ),
        timed::<MakeAlgo1Locked>("algo-1-locked", "algo-1 with atomic bit sets"),
        timed::<MakeAlgo1Post>(
            "algo-1-post",
            "algo-1 as it was measured: every search begins at the first id",
        ),
        timed::<MakeAlgo2>(
            "algo-2",
            "Franke 2002, as described: the map is kept, cleared and marked again only when nothing is found",
        ),
        timed::<MakeAlgo2Locked>("algo-2-locked", "algo-2 with atomic bit sets"),
        timed::<MakeAlgo2Post>(
            "algo-2-post",
            "algo-2 as it was measured: with the mask of the posted code",
        ),
        timed::<MakeWindow>(
            "algo-2-256",
            "Franke 2002, as meant: a map of 2048 ids on the stack, intervals of at most 256 (reconstructed)",
        ),
        timed::<MakeBounded>(
            "algo-2-256-post",
            "algo-2-256 as it was measured: the bound holds below id 1016 only",
        ),
        timed::<MakeAdaptive>(
            "adaptive",
            "algo-0 below the crossover, algo-2 above; the crossover from two passes timed at the start",
        ),
        timed::<MakeAndrea>(
            "andrea",
            "Andrea Arcangeli's getpid, 2.4.19pre7aa2, as posted on 26 April 2002",
        ),
        timed::<MakeBill>(
            "bill",
            "William Irwin's tower of bitmaps, posted on 7 August 2002, with its search mended",
        ),
        timed::<MakePidmap>(
            "pidmap",
            "Linux 2.5.37 to 4.14 (Molnar, Irwin): a bitmap in pages, the next free bit",
        ),
        timed::<MakeIdr>(
            "idr",
            "Linux 4.15 and later: a radix tree of pointers, the next free id; simplified",
        ),
        timed::<MakeOurs>("larder", "larder::ids::Ids under the rule Cyclic"),
    ]
}

/// What is played: Franke's A, D and number of rounds, where tasks lie, and how long at most.
struct Job {
    tasks: u32,
    deletes: u32,
    rounds: u32,
    aged: bool,
    seed: u32,
    cap_ms: u128,
}

fn run<M: Make>(params: &Params) -> anyhow::Result<Measures> {
    let number = |name: &str| -> anyhow::Result<u32> { Ok(u32::try_from(params.count(name)?)?) };
    let job = Job {
        tasks: number("tasks")?,
        deletes: number("deletes")?,
        rounds: number("rounds")?,
        aged: match params.text("start")? {
            "aged" => true,
            "fresh" => false,
            other => bail!("start is '{other}'; it is aged or fresh"),
        },
        seed: params.int("seed").map_or(Ok(1), u32::try_from)?,
        cap_ms: params.count("cap_ms").unwrap_or(10_000) as u128,
    };
    ensure!(
        (2..PID_MAX).contains(&job.tasks),
        "tasks is {}; it is Franke's A, from 2 to {}",
        job.tasks,
        PID_MAX - 1
    );
    match params.text("memory")? {
        "near" => played::<M, Near>(Tasks::new(job.tasks as usize), &job),
        "packed" => played::<M, Packed>(Tasks::new(job.tasks as usize), &job),
        "scattered" => {
            let mut random = Random31::new(job.seed.wrapping_add(99));
            played::<M, Near>(Tasks::scattered(job.tasks as usize, || random.draw()), &job)
        }
        other => bail!("memory is '{other}'; it is near, scattered or packed"),
    }
}

/// Fills the list as the harness does: fresh, or with what lives after the space was full.
fn prepared<L: Layout>(tasks: &mut Tasks<L>, job: &Job) -> Begin {
    if job.aged {
        let mut harness = Harness::new(Series::List, job.seed, true);
        harness.thin_to(job.tasks);
        for pid in harness.in_list_order() {
            tasks.add(pid);
        }
        // The failed allocation that ended the filling left the next one to search from the beginning.
        Begin {
            last: 0,
            next_safe: 1,
        }
    } else {
        for pid in 1..job.tasks {
            tasks.add(pid);
        }
        Begin {
            last: job.tasks - 1,
            next_safe: PID_MAX,
        }
    }
}

fn played<M: Make, L: Layout>(mut tasks: Tasks<L>, job: &Job) -> anyhow::Result<Measures> {
    let begin = prepared(&mut tasks, job);
    let live = tasks.len();
    let mut pids = M::make(&tasks, begin)?;
    tasks.walk(|task| {
        pids.taken(task.pid);
        true
    });
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
    ensure!(
        capped || tasks.len() == live,
        "{} tasks live where {live} should",
        tasks.len()
    );
    let counts = pids.counts();
    let searches = counts.searches - counted.searches;
    let visited = counts.visited - counted.visited;
    let mut measures = Measures::new()
        .with(
            "us_per_alloc",
            ns_per_op(alloc_ns.max(1), allocations) / 1e3,
        )
        .with("us_per_free", ns_per_op(free_ns, allocations) / 1e3)
        .with("allocations", allocations as f64)
        .with("searches", searches as f64)
        .with("capped", f64::from(u8::from(capped)))
        .with(
            "task_lines",
            ns_per_op(visited * L::LINES as u64, allocations),
        );
    if searches > 0 {
        measures = measures
            .with("us_per_search", alloc_ns as f64 / 1e3 / searches as f64)
            .with("passes", visited as f64 / searches as f64 / live as f64);
    }
    Ok(measures)
}

/// The timed part of a round: `most` allocations, each with its task added, as in his harness. Returns nanoseconds,
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
