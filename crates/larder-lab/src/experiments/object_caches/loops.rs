//! His loop: allocate, write one int, free; every thread as often as it was told.

use std::ptr::NonNull;
use std::sync::Barrier;
use std::time::Instant;

use anyhow::{Context, bail, ensure};

use crate::contestants::heaps::{Heap, Heaps};
use crate::contestants::mapping::pin::{allowed_cpus, stay_on};
use crate::contestants::timing::{keep, thread_cpu_ns};
use crate::model::{Measures, Params};

/// Turns of his program: elapsed times are given for as many.
pub(super) const HIS_TURNS: f64 = 1e7;

/// Turns of the check that follows the clock.
const CHECKED: u32 = 500;

/// Where the threads run.
#[derive(Debug, Clone)]
enum Place {
    /// Wherever the kernel likes.
    Any,
    /// All on the first, or in turn on the first and the last.
    Pinned(Vec<usize>),
}

impl Place {
    fn of(name: &str) -> anyhow::Result<Self> {
        let cpus = allowed_cpus();
        match (name, cpus.as_slice()) {
            ("any", _) => Ok(Self::Any),
            ("one", [first, ..]) => Ok(Self::Pinned(vec![*first])),
            ("two", [first, .., last]) => Ok(Self::Pinned(vec![*first, *last])),
            ("two", _) => bail!("this process may use one CPU only; give it two"),
            ("one", []) => bail!("the kernel does not say which CPUs this process may use"),
            (other, _) => bail!("cpus '{other}' is unknown; it is 'any', 'one' or 'two'"),
        }
    }

    fn enter(&self, thread: usize) {
        if let Self::Pinned(cpus) = self {
            stay_on(cpus[thread % cpus.len()]);
        }
    }
}

/// His `doloop`, one copy for each allocator. False when there is no memory.
#[inline(never)]
pub(super) fn cycles<H: Heap>(heap: &mut H, turns: u64, bytes: usize) -> bool {
    for _ in 0..turns {
        let Some(block) = heap.alloc(bytes) else {
            return false;
        };
        keep(heap);
        // SAFETY: the block is ours until it is freed, and no smaller than an int. His slab aligns nothing. `keep` makes
        // it one store; a volatile one of bytes would take a detour over the stack.
        unsafe {
            block.as_ptr().cast::<u32>().write_unaligned(1);
            keep(block.as_ptr());
            heap.free(block, bytes);
        }
        keep(heap);
    }
    true
}

/// The same with a number of the thread's own in each block, looked at again before the block is freed: a block that two
/// threads have at a time is seen.
fn checked<H: Heap>(heap: &mut H, thread: usize, bytes: usize) -> anyhow::Result<()> {
    for turn in 0..CHECKED {
        let block = heap.alloc(bytes).context("no memory in the check")?;
        let token = (thread as u32) << 24 | turn;
        let at: NonNull<[u8; 4]> = block.cast();
        // SAFETY: as in `cycles`.
        let found = unsafe {
            at.write_volatile(token.to_ne_bytes());
            if turn % 16 == 0 {
                std::thread::yield_now();
            }
            keep(block.as_ptr());
            let found = u32::from_ne_bytes(at.read_volatile());
            heap.free(block, bytes);
            found
        };
        ensure!(
            found == token,
            "a block of thread {thread} was given to another thread too: {found:#x} stands where {token:#x} was written"
        );
    }
    Ok(())
}

/// What one thread's turns took.
#[derive(Debug, Clone, Copy)]
struct Lap {
    start: Instant,
    end: Instant,
    cpu_ns: u64,
    sleeps: f64,
    preemptions: f64,
}

impl Lap {
    /// Times `work` on the calling thread.
    fn of<T>(work: impl FnOnce() -> T) -> (Self, T) {
        let (sleeps, preemptions) = switches();
        let cpu = thread_cpu_ns();
        let start = Instant::now();
        let done = work();
        let end = Instant::now();
        let cpu_ns = thread_cpu_ns() - cpu;
        let (sleeps_after, preemptions_after) = switches();
        let lap = Self {
            start,
            end,
            cpu_ns,
            sleeps: sleeps_after - sleeps,
            preemptions: preemptions_after - preemptions,
        };
        (lap, done)
    }
}

/// Times that the calling thread gave its CPU up, and times that it lost it.
fn switches() -> (f64, f64) {
    // SAFETY: rusage is plain integers, for which all zeroes is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live rusage; where the call fails the zeroes stay.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    (usage.ru_nvcsw as f64, usage.ru_nivcsw as f64)
}

/// What each thread does: `work` makes as many turns as it is told, with blocks of a size; false when there is no memory.
pub(super) struct Loop<H> {
    /// Blocks of a turn.
    pub(super) blocks: u64,
    pub(super) work: fn(&mut H, u64, usize) -> bool,
}

impl<H> Copy for Loop<H> {}

impl<H> Clone for Loop<H> {
    fn clone(&self) -> Self {
        *self
    }
}

/// One run of his loop: `threads` threads, each `turns` times, with blocks of `bytes` bytes, on the CPUs that `cpus` names.
///
/// # Errors
/// As [`timed`].
pub(super) fn run<H: Heaps>(heaps: &H, params: &Params) -> anyhow::Result<Measures> {
    let work = Loop {
        blocks: 1,
        work: cycles,
    };
    timed(heaps, params, work)
}

/// One run of a loop.
///
/// Each thread makes its first turn as soon as it runs, as in his program, where the slab's order depends on
/// it; then all wait for each other, and the clock runs from the first that goes on to the last that ends.
///
/// # Errors
/// Missing factors, threads and memory that cannot be had, and a block that two threads had at a time.
pub(super) fn timed<'h, H: Heaps>(
    heaps: &'h H,
    params: &Params,
    Loop { blocks, work }: Loop<H::Local<'h>>,
) -> anyhow::Result<Measures> {
    let threads = params.count("threads")?;
    let turns = params.count("turns")? as u64;
    let bytes = params.count("bytes")?;
    let place = Place::of(params.text("cpus")?)?;
    ensure!(
        threads > 0 && threads < 256 && turns > 0 && bytes >= 4,
        "{threads} threads with {turns} turns of {bytes} bytes were asked for; at most 255 threads, at least 1 turn \
         and 4 bytes can be done"
    );
    let gates = [(); 3].map(|()| Barrier::new(threads + 1));
    let [ready, go, done] = &gates;
    let place = &place;
    let worker = move |thread: usize, prepared: anyhow::Result<()>| {
        place.enter(thread);
        let local = prepared.and_then(|()| heaps.local()).and_then(|mut heap| {
            ensure!(work(&mut heap, 1, bytes), "no memory for the first turn");
            Ok(heap)
        });
        ready.wait();
        go.wait();
        let timed = local.map(|mut heap| {
            let (lap, ok) = Lap::of(|| work(&mut heap, turns, bytes));
            (heap, ok, lap)
        });
        done.wait();
        let (mut heap, ok, lap) = timed?;
        ensure!(ok, "thread {thread} ran out of memory");
        checked(&mut heap, thread, bytes)?;
        Ok(lap)
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|thread| {
                // In his order: the structure for the next thread, then the thread.
                let prepared = heaps.before_thread();
                scope.spawn(move || worker(thread, prepared))
            })
            .collect();
        ready.wait();
        go.wait();
        done.wait();
        let mut laps = Vec::new();
        for handle in handles {
            let lap = handle
                .join()
                .map_err(|_| anyhow::anyhow!("a thread panicked"))??;
            laps.push(lap);
        }
        let start = laps.iter().map(|lap| lap.start).min();
        let end = laps.iter().map(|lap| lap.end).max();
        let (start, end) = start.zip(end).context("no thread ran")?;
        let share = heaps.path_taken()?;
        let elapsed = (end - start).as_secs_f64().max(1e-9);
        let each = turns as f64 * blocks as f64;
        let all = each * threads as f64;
        let sum = |of: fn(&Lap) -> f64| laps.iter().map(of).sum::<f64>();
        let measures = Measures::new()
            .with("seconds", elapsed * HIS_TURNS / each)
            .with("mcycles_per_s", all / elapsed / 1e6)
            .with("cpu_ns_per_cycle", sum(|lap| lap.cpu_ns as f64) / all)
            .with("sleeps_per_million", sum(|lap| lap.sleeps) / all * 1e6)
            .with(
                "preemptions_per_million",
                sum(|lap| lap.preemptions) / all * 1e6,
            );
        Ok(match share {
            Some(share) => measures.with("path_share", share),
            None => measures,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::heaps::{Broken, SystemMalloc};
    use crate::contestants::parrot::{
        ExplicitHandles, GlobalLocked, Hashed, HashedMutex, Spacing, UnlockedStack,
    };

    fn params(threads: i64) -> Params {
        Params::new()
            .with("threads", threads)
            .with("turns", 2000)
            .with("bytes", 8)
            .with_text("cpus", "any")
    }

    #[test]
    fn every_variant_runs_with_ten_threads() {
        for spacing in [Spacing::His, Spacing::Apart] {
            run(&GlobalLocked::new(spacing), &params(10)).expect("global-locked");
            for multiplier in [2, 16] {
                run(&Hashed::new(multiplier, spacing), &params(10)).expect("hashed");
                run(&HashedMutex::new(multiplier, spacing), &params(10)).expect("hashed-mutex");
            }
            run(&ExplicitHandles::new(spacing).expect("room"), &params(10)).expect("explicit");
        }
        let measures = run(&SystemMalloc, &params(2)).expect("malloc");
        assert!(measures.get("seconds").is_some_and(|s| s > 0.0));
        assert!(measures.get("mcycles_per_s").is_some_and(|r| r > 0.0));
    }

    #[test]
    fn each_turn_is_one_block_and_every_block_comes_back() {
        let counting = Broken::new(SystemMalloc, 0);
        run(&counting, &params(3)).expect("runs");
        // The first block, the turns, the check.
        assert_eq!(counting.calls(), 3 * (1 + 2000 + u64::from(CHECKED)));
        assert_eq!(counting.out(), 0);
    }

    #[test]
    fn a_stack_refuses_a_second_thread_and_nobody_hangs() {
        run(&UnlockedStack::default(), &params(1)).expect("one thread");
        let error = run(&UnlockedStack::default(), &params(2)).expect_err("two threads");
        assert!(error.to_string().contains("one thread"), "{error}");
        assert!(run(&Hashed::new(2, Spacing::His), &params(40)).is_err());
        assert!(run(&SystemMalloc, &params(0)).is_err());
        assert!(run(&SystemMalloc, &params(1).with_text("cpus", "all")).is_err());
    }

    #[test]
    fn a_shared_block_is_seen() {
        // Every second block is somebody's already: the threads' blocks of the check, held over a yield, collide.
        let seen = (0..20).any(|_| run(&Broken::new(SystemMalloc, 2), &params(4)).is_err());
        assert!(seen);
    }
}
