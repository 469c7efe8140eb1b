//! Threads that hold several blocks each and take them in one order, while blocks leave all the time. Each thread gets on.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::common::{Rng, Stop};
use larder_cache::{BlockCache, BlockMut, BlockRef, CacheError, CachedFile, FileId, MemoryStorage};
use larder_policy::rules;

/// Guards that a thread holds at a time.
const GUARDS: usize = 4;
const THREADS: usize = 4;

/// Turns of each thread under each rule; `LARDER_ORDER_TURNS` says otherwise.
const TURNS: u64 = 1500;

/// A thread that took no turn for so long waits for ever.
const STUCK: Duration = Duration::from_secs(10);

enum Guard<'c> {
    Reads(BlockRef<'c>),
    Writes(BlockMut<'c>),
}

/// What the blocks of two files are asked for, and how far each thread has come.
struct Run {
    cache: BlockCache,
    files: [CachedFile; 2],
    blocks: u64,
    turns: [AtomicU64; THREADS],
    done: AtomicBool,
}

impl Run {
    fn new(rule: &str, frames: usize, blocks: u64) -> Self {
        let cache = BlockCache::builder(MemoryStorage::default())
            .bytes(frames * larder::os::page_size())
            .policy(rule)
            .read_ahead(0)
            .build()
            .unwrap();
        let files = [1, 2].map(|id| cache.file(FileId(id)).unwrap());
        Self {
            cache,
            files,
            blocks,
            turns: [const { AtomicU64::new(0) }; THREADS],
            done: AtomicBool::new(false),
        }
    }

    /// Takes up to [`GUARDS`] blocks in ascending order of file and block, and returns them in any order.
    fn turn(&self, thread: usize, rng: &mut Rng) {
        let mut handle = self.cache.handle();
        let mut guards: Vec<Guard<'_>> = Vec::new();
        let all = self.blocks * self.files.len() as u64;
        let mut at = rng.below(all as usize) as u64;
        for _ in 0..1 + rng.below(GUARDS) {
            let file = &self.files[(at / self.blocks) as usize];
            let index = at % self.blocks;
            let guard = match rng.below(4) {
                0 => handle.read(file, index).map(Guard::Reads),
                1 => handle.overwrite(file, index).map(Guard::Writes),
                _ => handle.write(file, index).map(Guard::Writes),
            };
            match guard {
                Ok(guard) => guards.push(guard),
                // Other threads have the frames just now: this one steps back, as the guide asks for.
                Err(CacheError::Pinned { .. }) => break,
                Err(error) => panic!("{error}"),
            }
            at += 1 + rng.below(2) as u64;
            if at >= all {
                break;
            }
        }
        while !guards.is_empty() {
            match guards.swap_remove(rng.below(guards.len())) {
                Guard::Reads(block) => assert_eq!(block[1], block[block.len() - 1]),
                Guard::Writes(mut block) => {
                    let byte = block[1].wrapping_add(1);
                    block[1..].fill(byte);
                }
            }
        }
        self.turns[thread].fetch_add(1, Ordering::Relaxed);
    }

    /// Where a block begins.
    fn somewhere(&self, rng: &mut Rng) -> u64 {
        (rng.below(self.blocks as usize) * self.cache.block_size()) as u64
    }

    /// What is not asked for a block by itself waits for blocks too: with none in hand.
    fn other(&self, rng: &mut Rng) {
        let file = &self.files[rng.below(2)];
        match rng.below(6) {
            0 => file.sync().unwrap(),
            1 => self.cache.write_back().unwrap(),
            2 => file.set_end(self.somewhere(rng)),
            3 => drop(self.cache.maintain().unwrap()),
            4 => match file.truncate(self.somewhere(rng) + 1) {
                Ok(()) | Err(CacheError::Held { .. } | CacheError::Pinned { .. }) => {}
                Err(error) => panic!("{error}"),
            },
            _ => match file.invalidate(0..self.blocks) {
                Ok(()) | Err(CacheError::Held { .. }) => {}
                Err(error) => panic!("{error}"),
            },
        }
    }

    /// Ends the process when a thread takes no turn any more: it could not be joined.
    fn watch(&self, rule: &str) {
        let (mut before, mut since) = ([0; THREADS], Instant::now());
        while !self.done.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
            let now = self
                .turns
                .each_ref()
                .map(|turns| turns.load(Ordering::Relaxed));
            if now != before {
                (before, since) = (now, Instant::now());
            } else if since.elapsed() > STUCK {
                eprintln!("{rule}: threads wait for each other for ever after {now:?} turns");
                std::process::abort();
            }
        }
    }

    fn go(&self, rule: &str, turns: u64, others: bool) {
        std::thread::scope(|threads| {
            threads.spawn(|| self.watch(rule));
            let workers: Vec<_> = (0..THREADS)
                .map(|thread| {
                    threads.spawn(move || {
                        let mut rng = Rng(thread as u64);
                        for turn in 0..turns {
                            self.turn(thread, &mut rng);
                            if others && turn % 16 == 0 {
                                self.other(&mut rng);
                            }
                        }
                    })
                })
                .collect();
            let _stop = Stop(&self.done);
            workers
                .into_iter()
                .for_each(|worker| worker.join().unwrap());
        });
        self.cache.check().unwrap();
    }
}

fn turns() -> u64 {
    let said = std::env::var("LARDER_ORDER_TURNS").ok();
    said.and_then(|n| n.parse().ok()).unwrap_or(TURNS)
}

/// Frames that are hardly more than what the threads hold, up to as many as there are blocks.
#[test]
fn threads_that_take_blocks_in_one_order_never_wait_for_each_other_for_ever() {
    for rule in rules() {
        for (frames, blocks) in [(3, 4), (THREADS * (GUARDS + 1), 24), (48, 24)] {
            Run::new(rule.name, frames, blocks).go(rule.name, turns(), false);
        }
    }
}

/// The same beside syncs, ends, truncations and invalidations.
#[test]
fn nor_do_they_beside_whatever_else_waits_for_blocks() {
    for rule in rules() {
        for (frames, blocks) in [(8, 6), (THREADS * (GUARDS + 1), 24)] {
            Run::new(rule.name, frames, blocks).go(rule.name, turns(), true);
        }
    }
}
