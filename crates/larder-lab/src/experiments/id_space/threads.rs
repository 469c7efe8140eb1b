//! Several threads, each of which frees and takes among the identifiers that it has.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use larder::os::thread_cpu_time;

use crate::contestants::ids::Rng;
use crate::contestants::ids::shared::{LocalIds, SharedIds};
use crate::contestants::timing::keep;
use crate::model::{Measures, Params};

/// Places drawn ahead of time, so that drawing is not timed.
const PICKS: usize = 1 << 12;

/// Identifiers that a thread takes in a row while the space is filled: those of the threads lie among each other.
const RUN: usize = 8;

/// Pairs of each thread that are made again with a table of owners beside.
const CHECKED: usize = 20_000;

/// `threads` threads take all `count` identifiers in turns, give random ones back until `live` are left, and then each
/// frees one of its own and takes another for `ms` milliseconds. Before that they run for a quarter of it untimed.
///
/// Afterwards, while all threads still have their way in: some pairs are made with a table of owners, what all have is
/// compared, and one thread takes what is left, which must be all that is free.
///
/// # Errors
/// Missing factors, threads that cannot be started, and a source that hands out what somebody has, refuses what is
/// taken, loses identifiers, or says 'full' again and again while some are free.
pub(super) fn run<S: SharedIds>(params: &Params) -> anyhow::Result<Measures> {
    let plan = Shape {
        threads: params.count("threads")?,
        count: params.count("count")?,
        live: params.count("live")?,
        time: Duration::from_millis(params.count("ms")? as u64),
    };
    ensure!(
        plan.threads > 0 && plan.live >= plan.threads && plan.live <= plan.count,
        "{} live of {} for {} threads were asked for; each thread needs at least one",
        plan.live,
        plan.count,
        plan.threads
    );
    let source = &S::new(plan.count as u64)?;
    let stage = &Stage::new(&plan);
    let plan = &plan;
    let done: Vec<Done> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..plan.threads)
            .map(|index| scope.spawn(move || work(source, plan, stage, index)))
            .collect();
        for (phase, time) in stage.phases.iter().zip([plan.time / 4, plan.time]) {
            phase.gate.wait();
            std::thread::sleep(time);
            phase.stop.store(true, Ordering::Relaxed);
        }
        workers
            .into_iter()
            .map(|worker| {
                worker
                    .join()
                    .map_err(|_| anyhow::anyhow!("a thread panicked"))?
            })
            .collect::<anyhow::Result<Vec<Done>>>()
    })?;
    let rate: f64 = done.iter().map(|d| d.pairs_per_s).sum();
    let pairs: f64 = done.iter().map(|d| d.pairs).sum();
    let cpu: f64 = done.iter().map(|d| d.cpu_s).sum();
    let full: u64 = done.iter().map(|d| d.full).sum();
    let lost = done.iter().map(|d| d.lost).max().unwrap_or(0);
    Ok(Measures::new()
        .with("mops_per_s", rate / 1e6)
        .with("ns_per_pair", plan.threads as f64 * 1e9 / rate.max(1.0))
        .with("mops_per_cpu_s", pairs / cpu.max(1e-9) / 1e6)
        .with("cpu_ns_per_pair", cpu * 1e9 / pairs.max(1.0))
        .with("false_full", full as f64)
        .with("lost_ids", lost as f64))
}

struct Shape {
    threads: usize,
    count: usize,
    live: usize,
    time: Duration,
}

/// A stretch of pairs: the gate before it, where the main thread stands too, and the flag that ends it.
struct Phase {
    gate: Barrier,
    stop: AtomicBool,
}

/// Where the threads wait for each other.
struct Stage {
    /// Whose turn it is to take a run while the space is filled.
    turn: AtomicUsize,
    /// Untimed, then timed.
    phases: [Phase; 2],
    /// The threads alone.
    among: Barrier,
    owners: Vec<AtomicU8>,
}

impl Stage {
    fn new(plan: &Shape) -> Self {
        Self {
            turn: AtomicUsize::new(0),
            phases: [(); 2].map(|()| Phase {
                gate: Barrier::new(plan.threads + 1),
                stop: AtomicBool::new(false),
            }),
            among: Barrier::new(plan.threads),
            owners: (0..plan.count).map(|_| AtomicU8::new(0)).collect(),
        }
    }

    fn owner(&self, id: u64) -> anyhow::Result<&AtomicU8> {
        self.owners
            .get(usize::try_from(id)?)
            .with_context(|| format!("identifier {id} is beyond the range"))
    }

    /// Notes that `id` is taken.
    fn taken(&self, id: u64) -> anyhow::Result<()> {
        let before = self.owner(id)?.swap(1, Ordering::AcqRel);
        ensure!(
            before == 0,
            "identifier {id} was handed out although somebody has it"
        );
        Ok(())
    }
}

struct Done {
    pairs_per_s: f64,
    pairs: f64,
    /// CPU time of the thread for them: what others took of the CPU is not in it.
    cpu_s: f64,
    /// How often the source said 'full' while identifiers were free.
    full: u64,
    /// Identifiers that nobody has and nobody gets.
    lost: u64,
}

/// One thread. Whatever goes wrong, it comes to every gate, so that nobody waits for it.
fn work<S: SharedIds>(
    source: &S,
    plan: &Shape,
    stage: &Stage,
    index: usize,
) -> anyhow::Result<Done> {
    let mut local = source.local(index, plan.threads);
    let mut thread = Thread {
        local: &mut local,
        plan,
        stage,
        index,
        rng: Rng::new(index as u64),
        own: Vec::with_capacity(plan.count),
    };
    let mut outcome = thread.fill();
    stage.among.wait();
    outcome = outcome.and_then(|()| thread.settle());
    let picks = thread.picks();
    let (mut pairs, mut full, mut seconds, mut cpu_s) = (0, 0, 1.0, 1.0);
    for phase in &stage.phases {
        phase.gate.wait();
        let (begin, cpu) = (Instant::now(), thread_cpu_time());
        outcome = outcome.and_then(|()| {
            (pairs, full) = churn(thread.local, &mut thread.own, &picks, &phase.stop)
                .context("it refused what was taken, or stayed full while some were free")?;
            Ok(())
        });
        seconds = begin.elapsed().as_secs_f64();
        cpu_s = thread_cpu_time().saturating_sub(cpu).as_secs_f64();
    }
    let mut lost = 0;
    if S::BOUNDED {
        outcome = outcome.and_then(|()| thread.note());
        stage.among.wait();
        outcome = outcome.and_then(|()| thread.checked());
        stage.among.wait();
        if index == 0 {
            outcome = outcome.and_then(|()| {
                lost = thread.exhaust()?;
                Ok(())
            });
        }
    }
    // Nobody leaves before the last identifier was looked for.
    stage.among.wait();
    outcome?;
    Ok(Done {
        pairs_per_s: pairs as f64 / seconds.max(1e-9),
        pairs: pairs as f64,
        cpu_s,
        full,
        lost,
    })
}

struct Thread<'a, L> {
    local: &'a mut L,
    plan: &'a Shape,
    stage: &'a Stage,
    index: usize,
    rng: Rng,
    own: Vec<u64>,
}

impl<L: LocalIds> Thread<'_, L> {
    /// This thread's part of `all`.
    fn share(&self, all: usize) -> usize {
        let threads = self.plan.threads;
        all / threads + usize::from(self.index < all % threads)
    }

    /// Takes this thread's share of all identifiers, a run in each of its turns.
    fn fill(&mut self) -> anyhow::Result<()> {
        let quota = self.share(self.plan.count);
        let turns = self.plan.count.div_ceil(self.plan.threads).div_ceil(RUN);
        let mut outcome = Ok(());
        for turn in 0..turns {
            let turn = turn * self.plan.threads + self.index;
            while self.stage.turn.load(Ordering::Acquire) != turn {
                std::thread::yield_now();
            }
            for _ in 0..RUN.min(quota - self.own.len()) {
                match self.local.alloc() {
                    Some(id) => self.own.push(id),
                    None => outcome = Err("it said 'full' although identifiers were free"),
                }
            }
            self.stage.turn.store(turn + 1, Ordering::Release);
        }
        outcome.map_err(anyhow::Error::msg)
    }

    /// Gives random ones back until this thread has its share of the live ones.
    fn settle(&mut self) -> anyhow::Result<()> {
        let share = self.share(self.plan.live);
        while self.own.len() > share {
            let place = self.rng.below(self.own.len() as u64) as usize;
            let id = self.own.swap_remove(place);
            ensure!(self.local.free(id), "it refused {id}, which was taken");
        }
        ensure!(self.own.len() == share, "a thread has too few identifiers");
        Ok(())
    }

    fn picks(&mut self) -> Vec<u32> {
        (0..PICKS)
            .map(|_| self.rng.below(self.own.len() as u64) as u32)
            .collect()
    }

    /// Notes what this thread has.
    fn note(&self) -> anyhow::Result<()> {
        self.own.iter().try_for_each(|&id| self.stage.taken(id))
    }

    /// Pairs with a table of owners.
    fn checked(&mut self) -> anyhow::Result<()> {
        for _ in 0..CHECKED {
            let place = self.rng.below(self.own.len() as u64) as usize;
            let Some(slot) = self.own.get_mut(place) else {
                break;
            };
            self.stage.owner(*slot)?.store(0, Ordering::Release);
            ensure!(self.local.free(*slot), "it refused {slot}, which was taken");
            let mut tries = 0;
            *slot = loop {
                if let Some(id) = self.local.alloc() {
                    break id;
                }
                tries += 1;
                ensure!(tries < 1_000_000, "it stayed full while some were free");
            };
            self.stage.taken(*slot)?;
        }
        Ok(())
    }

    /// Takes what is left and says how many are missing.
    fn exhaust(&mut self) -> anyhow::Result<u64> {
        let mut left = 0;
        while let Some(id) = self.local.alloc() {
            self.stage.taken(id)?;
            left += 1;
        }
        Ok((self.plan.count as u64).saturating_sub(self.plan.live as u64 + left))
    }
}

/// Pairs between two looks at the flag that ends them.
const STRETCH: usize = 256;

/// Frees one of `own` and takes another for it, until `stop`. Which one is read from `picks`, a power of two of places
/// in `own`. Returns how many pairs were made and how often the source was wrongly full; gives up when it stays so.
#[inline(never)]
fn churn<L: LocalIds>(
    local: &mut L,
    own: &mut [u64],
    picks: &[u32],
    stop: &AtomicBool,
) -> Option<(u64, u64)> {
    let mask = picks.len().checked_sub(1)?;
    let mut pairs = 0;
    let mut full = 0;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..STRETCH {
            let slot = own.get_mut(*picks.get(pairs & mask)? as usize)?;
            if !local.free(*slot) {
                return None;
            }
            keep(local);
            *slot = loop {
                if let Some(id) = local.alloc() {
                    break id;
                }
                full += 1;
                if full > 1_000_000 {
                    return None;
                }
            };
            keep(local);
            pairs += 1;
        }
    }
    Some((pairs as u64, full))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::ids::Pidmap;
    use crate::contestants::ids::shared::{Alone, Locked, Nothing, Sbitmap};

    fn params(threads: i64, live: i64) -> Params {
        Params::new()
            .with("threads", threads)
            .with("count", 1001)
            .with("live", live)
            .with("ms", 2)
    }

    #[test]
    fn every_number_of_threads_works_and_nothing_is_lost() {
        for threads in [1, 2, 3] {
            for (name, measures) in [
                ("sbitmap", run::<Sbitmap>(&params(threads, 700))),
                ("pidmap", run::<Locked<Pidmap>>(&params(threads, 998))),
                ("nothing", run::<Nothing>(&params(threads, 3))),
                (
                    "alone",
                    run::<Alone>(&params(threads, 500).with("count", 1200)),
                ),
            ] {
                let measures = measures.unwrap_or_else(|e| panic!("{name}, {threads}: {e:#}"));
                for metric in ["mops_per_s", "mops_per_cpu_s", "cpu_ns_per_pair"] {
                    assert!(measures.get(metric).expect("timed") > 0.0, "{metric}");
                }
                assert_eq!(measures.get("lost_ids"), Some(0.0));
            }
        }
    }

    #[test]
    fn absurd_shapes_are_errors_and_do_not_hang() {
        assert!(run::<Sbitmap>(&params(0, 1)).is_err());
        assert!(run::<Sbitmap>(&params(4, 3)).is_err());
        assert!(run::<Sbitmap>(&params(2, 1002)).is_err());
    }

    /// Hands out the same identifier to everybody, or loses every second one that it is given.
    struct Broken {
        same: bool,
        inner: Locked<Pidmap>,
    }

    struct BrokenLocal<'a>(&'a Broken, u64);

    impl LocalIds for BrokenLocal<'_> {
        fn alloc(&mut self) -> Option<u64> {
            if self.0.same {
                Some(7)
            } else {
                (&self.0.inner).alloc()
            }
        }

        fn free(&mut self, id: u64) -> bool {
            self.1 += 1;
            self.0.same || self.1.is_multiple_of(64) || (&self.0.inner).free(id)
        }
    }

    struct Same(Broken);
    struct Loses(Broken);

    macro_rules! broken {
        ($name:ident, $same:expr) => {
            impl SharedIds for $name {
                type Local<'a> = BrokenLocal<'a>;

                fn new(count: u64) -> anyhow::Result<Self> {
                    let inner = Locked::new(count)?;
                    Ok(Self(Broken { same: $same, inner }))
                }

                fn local(&self, _: usize, _: usize) -> BrokenLocal<'_> {
                    BrokenLocal(&self.0, 0)
                }
            }
        };
    }

    broken!(Same, true);
    broken!(Loses, false);

    #[test]
    fn a_source_that_cheats_is_an_error_and_does_not_hang() {
        let twice = run::<Same>(&params(2, 500)).expect_err("duplicates");
        assert!(
            format!("{twice:#}").contains("somebody has it"),
            "{twice:#}"
        );
        let loses = run::<Loses>(&params(2, 500)).expect_err("runs dry");
        assert!(format!("{loses:#}").contains("full"), "{loses:#}");
    }

    #[test]
    fn churn_ends_when_told_and_keeps_what_it_owns() {
        let source = Locked::<Pidmap>::new(64).expect("made");
        let mut local = source.local(0, 1);
        let mut own: Vec<u64> = (0..8).filter_map(|_| local.alloc()).collect();
        let stop = AtomicBool::new(true);
        assert_eq!(churn(&mut local, &mut own, &[0, 1], &stop), Some((0, 0)));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(2));
                stop.store(true, Ordering::Relaxed);
            });
            stop.store(false, Ordering::Relaxed);
            let (pairs, full) = churn(&mut local, &mut own, &[3, 5], &stop).expect("works");
            assert!((pairs as usize).is_multiple_of(STRETCH) && full == 0);
        });
        own.sort_unstable();
        own.dedup();
        assert_eq!(own.len(), 8);
        assert_eq!(
            churn(&mut local, &mut own, &[], &AtomicBool::new(false)),
            None
        );
    }
}
