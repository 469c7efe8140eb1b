//! What is timed: the mail's loop by several threads, bursts of it, and the same loop by one thread.
//!
//! The loop: allocate, write one int, free; each thread makes the same number of turns. A burst takes more blocks than the magazines of
//! a CPU or of a heap hold, and gives them back. So a thread comes to the depot a few times in each burst, and the kernel may deschedule
//! it there. With a lock, the other threads would sleep, which is counted, or spin, which is CPU time.

use std::ptr::NonNull;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use crate::contestants::heaps::{Heap, Heaps};
use crate::contestants::mapping::pin::{allowed_cpus, stay_on};
use crate::contestants::timing::{
    Spent, Stopwatch, keep, ns_per_op, resident_bytes, thread_cpu_ns,
};
use crate::model::{Measures, Params};

/// Turns of the mail's program: elapsed times are given for as many.
const MAIL_TURNS: f64 = 1e7;

/// Blocks of a burst: a magazine has at most 255.
pub(super) const BURST: usize = 1024;

/// Bytes of a block whose instructions are counted. The loops know it when they are compiled, as a program that allocates one
/// type does.
pub(super) const COUNTED: usize = 64;

/// The share of the turns that one thread makes before the clock starts.
pub(super) const WARM_SHARE: u64 = 8;

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

/// The mail's `doloop`, one copy for each allocator. False when there is no memory.
#[inline(never)]
fn cycles<H: Heap>(heap: &mut H, turns: u64, bytes: usize) -> bool {
    for _ in 0..turns {
        let Some(block) = heap.alloc(bytes) else {
            return false;
        };
        keep(heap);
        // SAFETY: the block is ours until it is freed, and no smaller than an int. The mail's slab aligns nothing. `keep` makes
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

/// A burst is taken and given back, `bursts` times; each block is written once. False when there is no memory.
#[inline(never)]
fn bursts<H: Heap>(heap: &mut H, bursts: u64, bytes: usize) -> bool {
    let mut blocks = [None; BURST];
    for _ in 0..bursts {
        for place in &mut blocks {
            *place = heap.alloc(bytes);
            // SAFETY: the block is ours until it is freed, and no smaller than an int.
            place.map(|block| unsafe { block.as_ptr().cast::<u32>().write_volatile(1) });
        }
        let mut whole = true;
        for place in &mut blocks {
            match place.take() {
                // SAFETY: it was allocated above, with this size, and is freed once.
                Some(block) => unsafe { heap.free(block, bytes) },
                None => whole = false,
            }
        }
        if !whole {
            return false;
        }
    }
    true
}

/// The measures, and the share of the blocks that took the path that is claimed, where it is counted.
///
/// # Errors
/// The claim is false.
pub(super) fn with_share<H: Heaps>(heaps: &H, measures: Measures) -> anyhow::Result<Measures> {
    Ok(match heaps.path_taken()? {
        Some(share) => measures.with("path_share", share),
        None => measures,
    })
}

/// The mail's loop: `threads` threads, each `turns` times, with blocks of `bytes` bytes, on the CPUs that `cpus` names.
///
/// # Errors
/// As [`timed`].
pub(super) fn threads<H: Heaps>(heaps: &H, params: &Params) -> anyhow::Result<Measures> {
    timed(heaps, params, 1, cycles)
}

/// The same with `turns` bursts.
///
/// # Errors
/// As [`timed`].
pub(super) fn depot<H: Heaps>(heaps: &H, params: &Params) -> anyhow::Result<Measures> {
    timed(heaps, params, BURST as u64, bursts)
}

/// One run. `work` makes the given number of turns, of `blocks` blocks each; false when there is no memory.
///
/// Each thread makes its first turn as soon as it runs, as in the mail's program, where the slab's order depends on
/// it; then all wait for each other, and the clock runs from the first that goes on to the last that ends.
///
/// # Errors
/// Missing factors, threads and memory that cannot be had, and a block that two threads had at a time.
fn timed<'h, H: Heaps>(
    heaps: &'h H,
    params: &Params,
    blocks: u64,
    work: impl Fn(&mut H::Local<'h>, u64, usize) -> bool + Copy + Send,
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
            let start = Instant::now();
            let watch = Stopwatch::start();
            let ok = work(&mut heap, turns, bytes);
            (heap, ok, (start, watch.stop()))
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
                // In the mail's order: the structure for the next thread, then the thread.
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
        let start = laps.iter().map(|(start, _)| *start).min();
        let ends = laps
            .iter()
            .map(|(start, spent)| *start + Duration::from_nanos(spent.wall_ns));
        let (start, end) = start.zip(ends.max()).context("no thread ran")?;
        let elapsed = (end - start).as_secs_f64().max(1e-9);
        let each = turns as f64 * blocks as f64;
        let all = each * threads as f64;
        let per_cycle = |of: fn(&Spent) -> u64| {
            let sum: u64 = laps.iter().map(|(_, spent)| of(spent)).sum();
            sum as f64 / all
        };
        let sleeps = 1e6 * per_cycle(|spent| spent.usage.sleeps);
        let preemptions = 1e6 * per_cycle(|spent| spent.usage.preemptions);
        let measures = Measures::new()
            .with("seconds", elapsed * MAIL_TURNS / each)
            .with("mcycles_per_s", all / elapsed / 1e6)
            .with("cpu_ns_per_cycle", per_cycle(|spent| spent.cpu_ns))
            .with("sleeps_per_million", sleeps)
            .with("preemptions_per_million", preemptions);
        with_share(heaps, measures)
    })
}

/// One thread, one size: what a block costs, there and back. CPU time of the thread.
///
/// # Errors
/// Missing factors and no memory.
pub(super) fn pair<H: Heaps>(heaps: &H, params: &Params) -> anyhow::Result<Measures> {
    let bytes = params.count("bytes")?;
    ensure!(
        bytes >= 4,
        "blocks of {bytes} bytes were asked for; one that holds an int has 4"
    );
    let before = resident_bytes();
    let mut heap = heaps.local()?;
    let ns = alone(params, |turns| cycles(&mut heap, turns, bytes))?;
    drop(heap);
    let held = resident_bytes().saturating_sub(before) as f64;
    with_share(heaps, ns.with("held_bytes", held))
}

/// What is counted: pairs of a size that the compiler knows.
///
/// # Errors
/// As [`pair`].
pub(super) fn counted<H: Heaps>(heaps: &H, params: &Params) -> anyhow::Result<Measures> {
    let mut heap = heaps.local()?;
    alone(params, |turns| counted_pairs(&mut heap, turns))
}

#[inline(never)]
fn counted_pairs<H: Heap>(heap: &mut H, turns: u64) -> bool {
    for _ in 0..turns {
        let Some(block) = heap.alloc(COUNTED) else {
            return false;
        };
        keep(block.as_ptr());
        // SAFETY: ours, and not used afterwards.
        unsafe { heap.free(block, COUNTED) };
    }
    true
}

/// The loop without an allocator.
///
/// # Errors
/// Missing factors.
pub(super) fn empty(params: &Params) -> anyhow::Result<Measures> {
    let block = [0_u8; COUNTED];
    alone(params, |turns| empty_turns(block.as_ptr(), turns))
}

#[inline(never)]
fn empty_turns(at: *const u8, turns: u64) -> bool {
    for _ in 0..turns {
        keep(at);
    }
    true
}

/// CPU time of a turn, after an eighth of them to warm up.
fn alone(params: &Params, mut work: impl FnMut(u64) -> bool) -> anyhow::Result<Measures> {
    let turns = params.count("turns")? as u64;
    ensure!(turns > 0, "0 turns were asked for; at least 1 can be done");
    let warm = work(turns / WARM_SHARE);
    let start = thread_cpu_ns();
    let ok = work(turns);
    let spent = thread_cpu_ns() - start;
    ensure!(warm && ok, "no memory for a block");
    Ok(Measures::new().with("ns_per_pair", ns_per_op(spent, turns)))
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
        for spacing in [Spacing::Close, Spacing::Apart] {
            threads(&GlobalLocked::new(spacing), &params(10)).expect("global-locked");
            for multiplier in [2, 16] {
                threads(&Hashed::new(multiplier, spacing), &params(10)).expect("hashed");
                threads(&HashedMutex::new(multiplier, spacing), &params(10)).expect("hashed-mutex");
            }
            threads(&ExplicitHandles::new(spacing).expect("room"), &params(10)).expect("explicit");
        }
        let measures = threads(&SystemMalloc, &params(2)).expect("malloc");
        assert!(measures.get("seconds").is_some_and(|s| s > 0.0));
        assert!(measures.get("mcycles_per_s").is_some_and(|r| r > 0.0));
    }

    #[test]
    fn each_turn_is_one_block_and_every_block_comes_back() {
        let counting = Broken::new(SystemMalloc, 0);
        threads(&counting, &params(3)).expect("runs");
        // The first block, the turns, the check.
        assert_eq!(counting.calls(), 3 * (1 + 2000 + u64::from(CHECKED)));
        assert_eq!(counting.out(), 0);
    }

    #[test]
    fn a_stack_refuses_a_second_thread_and_nothing_hangs() {
        threads(&UnlockedStack::default(), &params(1)).expect("one thread");
        let error = threads(&UnlockedStack::default(), &params(2)).expect_err("two threads");
        assert!(error.to_string().contains("one thread"), "{error}");
        assert!(threads(&Hashed::new(2, Spacing::Close), &params(40)).is_err());
        assert!(threads(&SystemMalloc, &params(0)).is_err());
        assert!(threads(&SystemMalloc, &params(1).with_text("cpus", "all")).is_err());
    }

    #[test]
    fn a_shared_block_is_seen() {
        // Every second block has an owner already: the threads' blocks of the check, held over a yield, collide.
        let seen = (0..20).any(|_| threads(&Broken::new(SystemMalloc, 2), &params(4)).is_err());
        assert!(seen);
    }

    #[test]
    fn a_burst_takes_its_blocks_and_gives_each_back() {
        let counting = Broken::new(SystemMalloc, 0);
        let measures = depot(&counting, &params(2).with("turns", 3)).expect("runs");
        // The first burst, the turns, the check.
        assert_eq!(
            counting.calls(),
            2 * (4 * BURST as u64 + u64::from(CHECKED))
        );
        assert_eq!(counting.out(), 0);
        let ns = measures.get("cpu_ns_per_cycle");
        assert!(ns.is_some_and(|ns| ns > 0.0 && ns < 1e5));
    }
}
