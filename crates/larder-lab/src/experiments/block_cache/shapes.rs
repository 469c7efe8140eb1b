//! What is timed: hits by one thread and by several, misses, and memory.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{anyhow, ensure};

use crate::contestants::block_cache::{Blocks, Reader, SharedBlocks};
use crate::contestants::timing::{ns_per_op, thread_cpu_ns};
use crate::model::{Measures, Params};

/// Gets before the clock starts, as a share of those that are timed; and, on the mean, of each block: by then a rule that counts a
/// block's uses up to some number has come to that.
pub(super) const WARM_SHARE: u64 = 4;
const WARM_EACH: u64 = 8;
/// Gets between two looks at the flag that ends a run of threads.
const STRIDE: u64 = 512;

/// Numbers of blocks, each as likely as the others (Knuth's MMIX generator, high half).
#[derive(Debug)]
struct Draw(u64);

impl Draw {
    #[inline]
    fn next(&mut self, blocks: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 32) * blocks) >> 32
    }
}

/// The loop that is timed, one copy for each cache, kept apart from its caller so that its machine code can be read. Returns the
/// number of hits.
#[inline(never)]
fn gets<R: Reader>(reader: &mut R, draw: &mut Draw, blocks: u64, turns: u64) -> u64 {
    let (mut hits, mut sum) = (0, 0_u64);
    for _ in 0..turns {
        if let Some(word) = reader.get(draw.next(blocks)) {
            sum = sum.wrapping_add(word);
            hits += 1;
        }
    }
    black_box(sum);
    hits
}

fn blocks_and_turns(params: &Params) -> anyhow::Result<(u64, u64)> {
    let (blocks, turns) = (
        params.count("blocks")? as u64,
        params.count("turns")? as u64,
    );
    ensure!(
        (1..1 << 32).contains(&blocks) && turns > 0,
        "{turns} gets of {blocks} blocks were asked for; both must be at least 1, and the blocks below 2^32"
    );
    Ok((blocks, turns))
}

/// A cache with `blocks` blocks, all of them in.
fn filled<B: Blocks>(blocks: u64) -> anyhow::Result<B> {
    let room = blocks as usize * (100 + B::SLACK) / 100;
    let mut cache = B::new(room)?;
    let mut reader = cache.reader();
    for block in 0..blocks {
        ensure!(reader.bring(block), "block {block} could not be brought");
    }
    drop(reader);
    let len = cache.len() as u64;
    ensure!(len == blocks, "{len} blocks stayed of {blocks} that came");
    Ok(cache)
}

/// Gets of resident blocks by one thread.
pub(super) fn hit<B: Blocks>(params: &Params) -> anyhow::Result<Measures> {
    let (blocks, turns) = blocks_and_turns(params)?;
    let mut cache = filled::<B>(blocks)?;
    let mut draw = Draw(1);
    let mut reader = cache.reader();
    let warm = turns / WARM_SHARE + blocks * WARM_EACH;
    let mut hits = gets(&mut reader, &mut draw, blocks, warm);
    let start = thread_cpu_ns();
    hits += gets(&mut reader, &mut draw, blocks, turns);
    let spent = thread_cpu_ns() - start;
    let all = warm + turns;
    ensure!(hits == all, "{hits} of {all} gets found their block");
    Ok(Measures::new().with("ns_per_hit", ns_per_op(spent, turns)))
}

/// The floor of [`hit`].
pub(super) fn empty(params: &Params) -> anyhow::Result<Measures> {
    struct Nothing;
    impl Reader for Nothing {
        #[inline]
        fn get(&mut self, block: u64) -> Option<u64> {
            Some(black_box(block))
        }
        fn bring(&mut self, _: u64) -> bool {
            true
        }
    }
    let (blocks, turns) = blocks_and_turns(params)?;
    let mut draw = Draw(1);
    gets(&mut Nothing, &mut draw, blocks, turns / WARM_SHARE);
    let start = thread_cpu_ns();
    gets(&mut Nothing, &mut draw, blocks, turns);
    let spent = thread_cpu_ns() - start;
    Ok(Measures::new().with("ns_per_hit", ns_per_op(spent, turns)))
}

/// Blocks that were never there come into a full cache.
pub(super) fn miss<B: Blocks>(params: &Params) -> anyhow::Result<Measures> {
    let (blocks, turns) = blocks_and_turns(params)?;
    let mut cache = B::new(blocks as usize)?;
    let mut reader = cache.reader();
    let mut ok = (0..blocks * 2).all(|block| reader.bring(block));
    let start = thread_cpu_ns();
    for block in 0..turns {
        let block = blocks * 2 + block;
        ok &= reader.load(block);
    }
    let spent = thread_cpu_ns() - start;
    drop(reader);
    ensure!(ok, "a block could not be brought");
    let len = cache.len() as u64;
    ensure!(len <= blocks, "{len} blocks are in a cache of {blocks}");
    Ok(Measures::new().with("ns_per_miss", ns_per_op(spent, turns)))
}

/// `threads` threads get resident blocks of one cache for `milliseconds`.
pub(super) fn threads<B: SharedBlocks>(params: &Params) -> anyhow::Result<Measures> {
    let threads = params.count("threads")?;
    let blocks = params.count("blocks")? as u64;
    let time = Duration::from_millis(params.count("milliseconds")? as u64);
    ensure!(
        threads > 0 && blocks > 0 && !time.is_zero(),
        "{} ms of {threads} threads over {blocks} blocks were asked for; each must be at least 1",
        time.as_millis()
    );
    let cache = &filled::<B>(blocks)?;
    let (ready, go) = (&Barrier::new(threads + 1), &Barrier::new(threads + 1));
    let stop = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads as u64)
            .map(|number| {
                scope.spawn(move || {
                    let mut reader = cache.share();
                    let mut draw = Draw(number + 1);
                    gets(&mut reader, &mut draw, blocks, blocks * WARM_EACH);
                    ready.wait();
                    go.wait();
                    let (mut hits, mut turns) = (0, 0);
                    while !stop.load(Ordering::Relaxed) {
                        hits += gets(&mut reader, &mut draw, blocks, STRIDE);
                        turns += STRIDE;
                    }
                    (hits, turns)
                })
            })
            .collect();
        ready.wait();
        let start = Instant::now();
        go.wait();
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        let wall = start.elapsed().as_secs_f64();
        let mut sum = 0;
        for thread in all {
            let (hits, turns) = thread.join().map_err(|_| anyhow!("a thread panicked"))?;
            ensure!(hits == turns, "{hits} of {turns} gets found their block");
            sum += turns;
        }
        Ok(Measures::new().with("mops_per_s", sum as f64 / wall.max(1e-9) / 1e6))
    })
}
