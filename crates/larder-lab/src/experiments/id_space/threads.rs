//! Several threads, each of which frees and takes among the identifiers that it has.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
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
/// Missing factors, threads that cannot be started, and a source that hands out what is taken, refuses what is
/// taken, loses identifiers, or says 'full' again and again while some are free.
pub(super) fn run<S: SharedIds>(params: &Params) -> anyhow::Result<Measures> {
    let (threads, count) = (params.count("threads")?, params.count("count")?);
    let live = params.count("live")?;
    let time = Duration::from_millis(params.count("ms")? as u64);
    ensure!(
        threads > 0 && live >= threads && live <= count,
        "{live} live of {count} for {threads} threads were asked for; each thread needs at least one"
    );
    let source = &S::new(count as u64)?;
    let stage = &Stage {
        threads,
        count,
        live,
        turn: AtomicUsize::new(0),
        phases: [(); 2].map(|()| Phase {
            gate: Barrier::new(threads + 1),
            stop: AtomicBool::new(false),
        }),
        among: Barrier::new(threads),
        owners: (0..count).map(|_| AtomicU8::new(0)).collect(),
    };
    let [rate, pairs, cpu, full, lost] = std::thread::scope(|scope| {
        let work = |index| scope.spawn(move || work(source, stage, index));
        let workers: Vec<_> = (0..threads).map(work).collect();
        for (phase, time) in stage.phases.iter().zip([time / 4, time]) {
            phase.gate.wait();
            std::thread::sleep(time);
            phase.stop.store(true, Ordering::Relaxed);
        }
        let mut sums = [0.0; 5];
        for worker in workers {
            let done = worker.join().map_err(|_| anyhow!("a thread panicked"))??;
            sums.iter_mut()
                .zip(done)
                .for_each(|(sum, part)| *sum += part);
        }
        anyhow::Ok(sums)
    })?;
    Ok(Measures::new()
        .with("mops_per_s", rate / 1e6)
        .with("ns_per_pair", threads as f64 * 1e9 / rate.max(1.0))
        .with("mops_per_cpu_s", pairs / cpu.max(1e-9) / 1e6)
        .with("cpu_ns_per_pair", cpu * 1e9 / pairs.max(1.0))
        .with("false_full", full)
        .with("lost_ids", lost))
}

/// A stretch of pairs: the gate before it, where the main thread stands too, and the flag that ends it.
struct Phase {
    gate: Barrier,
    stop: AtomicBool,
}

/// What was asked for, and where the threads wait for each other.
struct Stage {
    threads: usize,
    count: usize,
    live: usize,
    /// Which thread may take a run while the space is filled.
    turn: AtomicUsize,
    /// Untimed, then timed.
    phases: [Phase; 2],
    /// The threads alone.
    among: Barrier,
    owners: Vec<AtomicU8>,
}

impl Stage {
    fn owner(&self, id: u64) -> anyhow::Result<&AtomicU8> {
        let owner = self.owners.get(usize::try_from(id)?);
        owner.with_context(|| format!("identifier {id} is beyond the range"))
    }

    /// Notes that `id` is taken.
    fn taken(&self, id: u64) -> anyhow::Result<()> {
        let before = self.owner(id)?.swap(1, Ordering::AcqRel);
        ensure!(
            before == 0,
            "identifier {id} was handed out although it is taken"
        );
        Ok(())
    }
}

/// One thread: its pairs per second; pairs and the CPU time for them, without what others took of the CPU; how often the
/// source said 'full' while identifiers were free; and identifiers that no thread has or gets. Whatever goes wrong, the
/// thread comes to every gate, so that the others never wait for it.
fn work<S: SharedIds>(source: &S, stage: &Stage, index: usize) -> anyhow::Result<[f64; 5]> {
    let mut local = source.local(index, stage.threads);
    let mut thread = Thread {
        local: &mut local,
        stage,
        index,
        rng: Rng::new(index as u64),
        own: Vec::with_capacity(stage.count),
    };
    let mut outcome = thread.fill();
    stage.among.wait();
    outcome = outcome.and_then(|()| thread.settle());
    let places = thread.own.len() as u64;
    let picks: Vec<u32> = (0..PICKS)
        .map(|_| thread.rng.below(places) as u32)
        .collect();
    let mut done = [0.0; 5];
    for phase in &stage.phases {
        phase.gate.wait();
        let (begin, cpu) = (Instant::now(), thread_cpu_time());
        outcome = outcome.and_then(|()| {
            let (pairs, full) = churn(thread.local, &mut thread.own, &picks, &phase.stop)
                .context("it refused what was taken, or stayed full while some were free")?;
            let seconds = begin.elapsed().as_secs_f64();
            let cpu = thread_cpu_time().saturating_sub(cpu).as_secs_f64();
            let rate = pairs as f64 / seconds.max(1e-9);
            done = [rate, pairs as f64, cpu, full as f64, 0.0];
            Ok(())
        });
    }
    if S::BOUNDED {
        outcome = outcome.and_then(|()| thread.note());
        stage.among.wait();
        outcome = outcome.and_then(|()| thread.checked());
        stage.among.wait();
        if index == 0 {
            outcome = outcome.and_then(|()| {
                done[4] = thread.lost()?;
                Ok(())
            });
        }
    }
    // No thread leaves before the last identifier was looked for.
    stage.among.wait();
    outcome.map(|()| done)
}

struct Thread<'a, L> {
    local: &'a mut L,
    stage: &'a Stage,
    index: usize,
    rng: Rng,
    own: Vec<u64>,
}

impl<L: LocalIds> Thread<'_, L> {
    /// This thread's part of `all`.
    fn share(&self, all: usize) -> usize {
        let threads = self.stage.threads;
        all / threads + usize::from(self.index < all % threads)
    }

    /// A random place among its own.
    fn place(&mut self) -> usize {
        self.rng.below(self.own.len() as u64) as usize
    }

    /// Takes this thread's share of all identifiers, a run in each of its turns.
    fn fill(&mut self) -> anyhow::Result<()> {
        let (threads, quota) = (self.stage.threads, self.share(self.stage.count));
        let mut outcome = Ok(());
        for turn in 0..self.stage.count.div_ceil(threads).div_ceil(RUN) {
            let turn = turn * threads + self.index;
            while self.stage.turn.load(Ordering::Acquire) != turn {
                std::thread::yield_now();
            }
            for _ in 0..RUN.min(quota - self.own.len()) {
                match self.local.alloc() {
                    Some(id) => self.own.push(id),
                    None => outcome = Err(anyhow!("it said 'full' although identifiers were free")),
                }
            }
            self.stage.turn.store(turn + 1, Ordering::Release);
        }
        outcome
    }

    /// Gives random ones back until this thread has its share of the live ones.
    fn settle(&mut self) -> anyhow::Result<()> {
        let share = self.share(self.stage.live);
        while self.own.len() > share {
            let place = self.place();
            let id = self.own.swap_remove(place);
            ensure!(self.local.free(id), "it refused {id}, which was taken");
        }
        ensure!(self.own.len() == share, "a thread has too few identifiers");
        Ok(())
    }

    /// Notes what this thread has.
    fn note(&self) -> anyhow::Result<()> {
        self.own.iter().try_for_each(|&id| self.stage.taken(id))
    }

    /// Pairs with a table of owners.
    fn checked(&mut self) -> anyhow::Result<()> {
        for _ in 0..CHECKED {
            let place = self.place();
            let id = self.own[place];
            self.stage.owner(id)?.store(0, Ordering::Release);
            ensure!(self.local.free(id), "it refused {id}, which was taken");
            let fresh = (0..1_000_000).find_map(|_| self.local.alloc());
            self.own[place] = fresh.context("it stayed full while some were free")?;
            self.stage.taken(self.own[place])?;
        }
        Ok(())
    }

    /// Takes what is left and says how many are missing.
    fn lost(&mut self) -> anyhow::Result<f64> {
        let mut left = 0;
        while let Some(id) = self.local.alloc() {
            self.stage.taken(id)?;
            left += 1;
        }
        Ok(self.stage.count.saturating_sub(self.stage.live + left) as f64)
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
            // On a machine that is busy a thread may not run at all for some milliseconds.
            .with("ms", 50)
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

    /// Hands out the same identifier again and again, or loses every second one that it is given.
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
        assert!(format!("{twice:#}").contains("it is taken"), "{twice:#}");
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
                std::thread::sleep(Duration::from_millis(2));
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
