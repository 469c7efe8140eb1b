//! How many instructions a hit in the block cache takes, and a miss, held against ceilings: counts do not depend on noise.
//!
//! Only a release build is worth counting; `cargo test --release -p larder-cache --test instructions -- --nocapture` prints
//! the numbers.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::io;
use std::process::Command;

use larder::pages::PagePool;
use larder_cache::{BlockCache, CacheHandle, CachedFile, FileId, Storage};

/// Instructions of a read of a resident block, with the end of its guard, the loop, and the telling of the default rule.
const HIT: f64 = 60.0;

/// Instructions of a read of a block that never was in memory while another one leaves, under the default rule and others: with the
/// loop, the end of the guard, and a storage that does nothing.
const MISSES_BY_RULE: [(&str, f64); 3] =
    [("adaptive", 2605.0), ("s3-fifo", 2480.0), ("lru", 1640.0)];

const BLOCKS: u64 = 32_768;
/// So many that most blocks have been used often before the reads that are counted.
const READS: u64 = 1_000_000;
const ROLE: &str = "LARDER_BLOCKS_READS";
const RULE: &str = "LARDER_BLOCKS_RULE";
/// So many that what is remembered of blocks that left has found its size before the misses that are counted.
const MISSES: u64 = 100_000;

struct Nothing;

impl Storage for Nothing {
    fn read(&self, _: FileId, _: u64, into: &mut [u8]) -> io::Result<usize> {
        Ok(into.len())
    }

    fn write(&self, _: FileId, _: u64, from: &[u8]) -> io::Result<usize> {
        Ok(from.len())
    }

    fn sync(&self, _: FileId) -> io::Result<()> {
        Ok(())
    }
}

#[inline(never)]
fn reads(handle: &mut CacheHandle, file: &CachedFile, n: u64) {
    let mut word = 1_u64;
    for _ in 0..n {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let block = handle.read(file, (word >> 32) % BLOCKS).unwrap();
        black_box(block.as_ptr());
    }
}

fn cache() -> BlockCache {
    let pool = PagePool::builder().populate(false).build().unwrap();
    let builder = BlockCache::builder(Nothing)
        .bytes(BLOCKS as usize * larder::os::page_size())
        .read_ahead(0)
        .pool(pool);
    match std::env::var(RULE) {
        Ok(rule) => builder.policy(&rule).build().unwrap(),
        Err(_) => builder.build().unwrap(),
    }
}

/// Reads of `n` blocks that are in memory.
fn hits(n: u64) {
    let cache = cache();
    let file = cache.file(FileId(1)).unwrap();
    let mut handle = cache.handle();
    for block in 0..BLOCKS {
        handle.read(&file, block).unwrap();
    }
    reads(&mut handle, &file, n);
    drop(handle);
    assert_eq!((cache.stats().hits, cache.stats().misses), (n, BLOCKS));
}

/// Blocks that are read at once.
const RUN: u64 = 32;

/// Reads of `n` blocks in memory, in runs: with one call or one by one.
fn runs(n: u64, at_once: bool) {
    let cache = cache();
    let file = cache.file(FileId(1)).unwrap();
    let mut handle = cache.handle();
    for block in 0..BLOCKS {
        handle.read(&file, block).unwrap();
    }
    let mut word = 1_u64;
    for _ in 0..n / RUN {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let from = (word >> 32) % (BLOCKS - RUN);
        run(&mut handle, &file, from, at_once);
    }
    drop(handle);
    assert_eq!(
        (cache.stats().hits, cache.stats().misses),
        (n / RUN * RUN, BLOCKS)
    );
}

/// Reads a run of blocks, and lets them go.
#[inline(never)]
fn run(handle: &mut CacheHandle, file: &CachedFile, from: u64, at_once: bool) {
    let mut blocks = Vec::with_capacity(RUN as usize);
    if at_once {
        handle
            .read_many(file, from..from + RUN, &mut blocks)
            .unwrap();
    } else {
        handle.request(|handle| {
            for index in from..from + RUN {
                blocks.push(handle.read(file, index).unwrap());
            }
        });
    }
    black_box(&blocks);
}

/// Reads of `n` blocks that come for the first time, in runs.
fn new_runs(n: u64, at_once: bool) {
    let cache = cache();
    let file = cache.file(FileId(1)).unwrap();
    let mut handle = cache.handle();
    for from in (0..n).step_by(RUN as usize) {
        run(&mut handle, &file, from, at_once);
    }
    drop(handle);
    assert_eq!((cache.stats().hits, cache.stats().misses), (0, n));
}

/// Reads of `n` blocks, none of which comes twice.
fn misses(n: u64) {
    let cache = cache();
    let file = cache.file(FileId(1)).unwrap();
    let mut handle = cache.handle();
    for block in 0..n {
        let block = handle.read(&file, block).unwrap();
        black_box(block.as_ptr());
    }
    drop(handle);
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses), (0, n));
    assert_eq!(stats.evictions, n.saturating_sub(BLOCKS));
}

/// Instructions of one more call between `n` and twice as many, in programs that do nothing but `work`. None if they cannot be
/// counted. In such a program it works, and ends.
fn count(test: &str, n: u64, work: impl Fn(u64)) -> Option<f64> {
    count_under("adaptive", test, n, work)
}

/// [`count`], under this rule.
fn count_under(rule: &str, test: &str, n: u64, work: impl Fn(u64)) -> Option<f64> {
    if let Ok(n) = std::env::var(ROLE) {
        work(n.parse().unwrap());
        return None;
    }
    if cfg!(debug_assertions) {
        println!("a debug build is not counted; run it with --release");
        return None;
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("valgrind is not installed, so nothing was counted; `apt-get install valgrind`");
        return None;
    }
    let count = |n: u64| -> u64 {
        let out = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(ROLE, n.to_string())
            .env(RULE, rule)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{text}");
        text.lines()
            .find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
            .unwrap_or_else(|| panic!("no count in {text}"))
    };
    Some((count(2 * n) - count(n)) as f64 / n as f64)
}

#[test]
fn a_hit() {
    let Some(per_hit) = count("a_hit", READS, hits) else {
        return;
    };
    println!("a hit among {BLOCKS} blocks: {per_hit:.1} instructions (ceiling {HIT})");
    assert!(per_hit > 40.0, "the compiler removed the loop");
    assert!(per_hit <= HIT, "{per_hit:.1} instructions a hit");
}

#[test]
fn a_miss() {
    for (rule, ceiling) in MISSES_BY_RULE {
        let Some(per_miss) = count_under(rule, "a_miss", MISSES, misses) else {
            return;
        };
        println!(
            "a miss in a full cache of {BLOCKS} blocks under {rule}: {per_miss:.0} instructions (ceiling {ceiling})"
        );
        assert!(per_miss > 300.0, "no block left");
        assert!(per_miss <= ceiling, "{rule}: {per_miss:.0} instructions");
    }
}

/// A run that is read at once, by this test, and block by block, by another one, which does nothing else.
fn fewer_at_once(test: &str, other: &str, n: u64, work: fn(u64, bool)) {
    let at_once = count(test, n, |n| work(n, true));
    let Some((at_once, one_by_one)) = at_once.zip(count(other, n, |_| ())) else {
        return;
    };
    println!("{test}: {at_once:.0} instructions a block at once, {one_by_one:.0} one by one");
    assert!(at_once < one_by_one);
}

/// In a program that another test counts.
fn one_by_one(work: fn(u64, bool)) {
    if let Ok(n) = std::env::var(ROLE) {
        work(n.parse().unwrap(), false);
    }
}

#[test]
fn a_run_of_hits() {
    fewer_at_once("a_run_of_hits", "hits_one_by_one", READS, runs);
}

#[test]
fn hits_one_by_one() {
    one_by_one(runs);
}

#[test]
fn a_run_of_misses() {
    let n = MISSES / RUN * RUN;
    fewer_at_once("a_run_of_misses", "misses_one_by_one", n, new_runs);
}

#[test]
fn misses_one_by_one() {
    one_by_one(new_runs);
}
