//! Nothing that a sync promised is lost, no block is torn, none is another one's, and `Lost` is said when something is, and only
//! then: threads over a disk that fails, delays, tears and forgets, and one thread that knows all.

#[path = "growth.rs"]
mod growth;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use crate::common::Rng;
use crate::disk::{BLOCKS, Disk, FILES, Rates, fill, runs, version, word};
use larder_cache::{BlockCache, BlockRef, CacheError, CachedFile, FileId, TenantId};
use larder_policy::rules;

const THREADS: usize = 6;
/// More than all blocks, so that each one that leaves has a place among those that are remembered one by one.
const MOST: usize = 256;

const FAULTS: Rates = Rates {
    reads_fail: 10,
    writes_fail: 8,
    writes_are_short: 20,
    syncs_fail: 60,
    delays: 100,
};

/// What was done to a block.
#[derive(Default)]
struct Version {
    /// The latest that was ever made.
    latest: AtomicU64,
    /// What it is now, changed by the thread that has the block to write. Unless it is `known`, because it was invalidated or truncated, it is
    /// one of those up to the latest.
    now: AtomicU64,
    known: AtomicBool,
    /// What the disk has at least, even after a power cut.
    promised: AtomicU64,
    /// The latest one when it was truncated last: the disk may have it still, with zeroes behind the end.
    cut: AtomicU64,
    /// The file ended in it: it may have zeroes where it has no later version.
    ended: AtomicBool,
}

/// Invalidations, truncations and discards of a file: as long as one is under way, nothing is known of its blocks.
#[derive(Default)]
struct Forgets {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Forgets {
    /// How many there were, if none is under way.
    fn quiet(&self) -> Option<u64> {
        let ended = self.ended.load(SeqCst);
        (self.begun.load(SeqCst) == ended).then_some(ended)
    }
}

struct World {
    rule: &'static str,
    disk: Disk,
    cache: BlockCache,
    files: Vec<CachedFile>,
    blocks: Vec<Vec<Version>>,
    forgets: [Forgets; FILES],
    /// One thread takes all steps, and knows what an invalidated block is.
    alone: bool,
    /// Then this is what it knows of each file.
    is_lost: [AtomicBool; FILES],
    /// Held for reading by each step, for writing by a thread that begins a file anew.
    steps: RwLock<()>,
    /// Held for reading by a step that uses a file, for writing by a thread that discards it.
    uses: [RwLock<()>; FILES],
    taken: AtomicU64,
    syncs: AtomicU64,
    lost: AtomicU64,
    discards: AtomicU64,
    /// Reads of each file that were begun, and completions that were called.
    reads: [AtomicU64; FILES],
    completions: [AtomicU64; FILES],
    stop: AtomicBool,
}

/// What was known of a file at some time.
struct Known {
    /// How many times blocks of it had been forgotten, if none were being forgotten.
    quiet: Option<u64>,
    /// The version of each block that was known.
    blocks: Vec<Option<u64>>,
}

/// Whose files may have blocks for themselves.
fn tenant(file: usize) -> TenantId {
    TenantId(file as u32)
}

/// Ends the other threads when one panics.
struct StopOthers<'w>(&'w World);

impl Drop for StopOthers<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop.store(true, SeqCst);
        }
    }
}

impl World {
    fn new(rule: &'static str, frames: usize, seed: u64, alone: bool) -> Self {
        // One thread alone gives way to none.
        let delays = if alone { 0 } else { FAULTS.delays };
        let disk = Disk::new(Rates { delays, ..FAULTS }, seed);
        let rng = &mut Rng(seed);
        let cache = BlockCache::builder(disk.clone())
            .bytes(frames * larder::os::page_size())
            .most_bytes(MOST * larder::os::page_size())
            .policy(rule)
            .read_ahead(rng.below(3) * 2)
            .dirty_age(Duration::from_millis([0, 20][rng.below(2)]))
            .dirty_share([0.1, 0.5, 1.0][rng.below(3)])
            .build()
            .unwrap();
        // Of every other one the size is known, so that it grows in order.
        let files = (0..FILES).map(|id| match id % 2 {
            0 => cache.file_of(FileId(id as u64), tenant(id)).unwrap(),
            _ => cache.open_at_of(FileId(id as u64), 0, tenant(id)).unwrap(),
        });
        let block = |_| {
            let block = Version::default();
            block.known.store(true, SeqCst);
            block
        };
        Self {
            rule,
            disk,
            files: files.collect(),
            cache,
            blocks: (0..FILES)
                .map(|_| (0..BLOCKS).map(block).collect())
                .collect(),
            forgets: Default::default(),
            alone,
            is_lost: Default::default(),
            steps: RwLock::new(()),
            uses: Default::default(),
            taken: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            discards: AtomicU64::new(0),
            reads: Default::default(),
            completions: Default::default(),
            stop: AtomicBool::new(false),
        }
    }

    #[track_caller]
    fn wrong(&self, file: usize, block: usize, what: &str) -> ! {
        let Version {
            latest,
            now,
            known,
            promised,
            ..
        } = &self.blocks[file][block];
        panic!(
            "{}, after {} steps, {} syncs, {} lost: block {block} of file {file}: {what}; {now:?} of {latest:?}, known {known:?}, promised {promised:?}",
            self.rule,
            self.taken.load(SeqCst),
            self.syncs.load(SeqCst),
            self.lost.load(SeqCst),
        )
    }

    /// What a thread that has the block sees is what was written last; unless that is not known, or a failed sync took it.
    fn look(&self, file: usize, block: usize, bytes: &[u8]) {
        let is = &self.blocks[file][block];
        let runs = runs(bytes);
        for &(_, found) in &runs {
            let Some(version) = version(file, block, found) else {
                self.wrong(
                    file,
                    block,
                    &format!("it has {found:#x}, which is another block's"),
                );
            };
            if version > is.latest.load(SeqCst) {
                self.wrong(
                    file,
                    block,
                    &format!("it has {version}, which was never written"),
                );
            }
        }
        // In this order: what was forgotten before is marked when it is over.
        let quiet = self.forgets[file].quiet().is_some();
        if !quiet || !is.known.load(SeqCst) || self.disk.is_taken(file, block) {
            return;
        }
        let now = word(file, block, is.now.load(SeqCst));
        if runs != [(0, now)] {
            self.wrong(file, block, &format!("it is {runs:x?}, not {now:#x}"));
        }
    }

    fn write(&self, file: usize, block: usize, bytes: &mut [u8]) {
        self.look(file, block, bytes);
        let is = &self.blocks[file][block];
        let next = is.latest.fetch_add(1, SeqCst) + 1;
        let (first, second) = bytes.split_at_mut(2048);
        fill(first, word(file, block, next));
        fill(second, word(file, block, next));
        is.now.store(next, SeqCst);
        is.known.store(true, SeqCst);
    }

    /// A power cut would leave at least what was promised, or zeroes if the file ended in the block since.
    fn cut_power(&self, file: usize, block: usize) {
        let is = &self.blocks[file][block];
        if let Some(block) = self.disk.returned(file) {
            self.wrong(file, block, "what was discarded was written");
        }
        let promised = is.promised.load(SeqCst);
        let durable = self.disk.durable(file, block);
        // In this order: a truncation that has changed the disk is noted when it is over.
        let quiet = self.forgets[file].quiet().is_some();
        let ended = is.ended.load(SeqCst) && promised <= is.cut.load(SeqCst);
        for (_, found) in durable {
            match version(file, block, found) {
                Some(there) if there >= promised => {}
                Some(0) if ended || !quiet => {}
                there => self.wrong(
                    file,
                    block,
                    &format!("the disk has {there:?}, not {promised}"),
                ),
            }
        }
    }

    /// One step of a thread. True if the file is lost.
    fn step(self: &Arc<Self>, rng: &mut Rng) -> Option<usize> {
        let _step = self.steps.read().unwrap();
        self.taken.fetch_add(1, SeqCst);
        let file = rng.below(FILES);
        let block = match rng.below(2) {
            0 => rng.below(BLOCKS),
            _ => rng.below(12),
        };
        // What is about all files goes on while one is discarded.
        let what = rng.below(1000);
        match what {
            0..5 => self.discard(file),
            840..850 => drop(self.cache.write_back()),
            850..860 => return self.sync_all(),
            880..900 => drop(self.cache.maintain()),
            900..910 => self.tune(rng),
            _ => return self.use_file(file, block, what / 10, rng),
        }
        None
    }

    /// A step that uses a block of a file. True if the file is lost.
    fn use_file(
        self: &Arc<Self>,
        file: usize,
        block: usize,
        what: usize,
        rng: &mut Rng,
    ) -> Option<usize> {
        let _used = self.uses[file].read().unwrap();
        let handle = &mut self.cache.handle();
        let on = &self.files[file];
        match what {
            0..4 => {
                let to = BLOCKS.min(block + 1 + rng.below(6));
                self.start_read(file, block..to);
                if let Ok(Some(bytes)) = handle.try_read(on, block as u64) {
                    self.look(file, block, &bytes);
                }
            }
            4..10 => {
                let to = BLOCKS.min(block + 1 + rng.below(12));
                let mut blocks = Vec::new();
                if handle
                    .read_many(on, block as u64..to as u64, &mut blocks)
                    .is_ok()
                {
                    assert_eq!(blocks.len(), to - block);
                }
                for (block, bytes) in (block..to).zip(&blocks) {
                    self.look(file, block, bytes);
                }
            }
            10..40 => {
                if let Ok(bytes) = handle.read(on, block as u64) {
                    self.look(file, block, &bytes);
                }
            }
            40..78 => {
                // Up to two at a time, in ascending order.
                let first = handle.write(on, block as u64);
                let next = block + 1;
                let second =
                    (next < BLOCKS && rng.below(4) == 0).then(|| handle.overwrite(on, next as u64));
                if let Some(Ok(mut bytes)) = second {
                    // Zeroes or what it held.
                    if runs(&bytes) != [(0, 0)] {
                        self.look(file, next, &bytes);
                    } else {
                        bytes.fill(0);
                    }
                    self.overwrite(file, next, &mut bytes);
                }
                if let Ok(mut bytes) = first {
                    self.write(file, block, &mut bytes);
                }
            }
            78..84 => return self.sync(file),
            86..88 => drop(on.write_back()),
            91..93 => {
                let to = BLOCKS.min(block + rng.below(12));
                // What was truncated and not written since may be behind the end, where it is not as below.
                let blocks = (block..to).zip(&self.blocks[file][block..to]);
                let known = blocks.filter(|(_, is)| self.alone && is.known.load(SeqCst));
                let known: Vec<_> = known.collect();
                self.forget(file, block..to, |on| on.invalidate(block as u64..to as u64));
                for (block, _) in known {
                    self.is_as_below(file, block);
                }
            }
            93..94 => {
                // Many end within a block. One thread alone must know whether a file is lost, and of such a block it does not.
                let words = rng.below(self.cache.block_size() / 8);
                let within = if self.alone { 0 } else { 8 * words };
                self.truncate(file, BLOCKS / 2 + rng.below(BLOCKS / 2), within);
            }
            94..95 => self.truncate(file, 0, 0),
            _ => self.cut_power(file, block),
        }
        None
    }

    /// Another size, another rule, or other limits of a tenant.
    fn tune(&self, rng: &mut Rng) {
        let all = rules();
        let name = all[rng.below(all.len())].name;
        let tenant = tenant(rng.below(FILES));
        let bytes = |frames| self.cache.block_size() * frames;
        let done = match rng.below(6) {
            0..2 => self.cache.set_bytes(bytes(8 + rng.below(56))),
            2 => self.cache.set_policy([name, self.rule][rng.below(2)]),
            3 => self.cache.unlimit_tenant(tenant),
            _ => {
                let name = (rng.below(2) == 0).then_some(name);
                let frames = 2 + rng.below(16);
                self.cache.limit_tenant(tenant, bytes(frames), name)
            }
        };
        match done {
            Ok(()) | Err(CacheError::Limits { .. } | CacheError::Write { .. }) => {}
            Err(error) => self.wrong(0, 0, &error.to_string()),
        }
    }

    /// A thread of the cache looks at blocks.
    fn start_read(self: &Arc<Self>, file: usize, blocks: std::ops::Range<usize>) {
        self.reads[file].fetch_add(1, SeqCst);
        let world = Arc::clone(self);
        let range = blocks.start as u64..blocks.end as u64;
        let done = move |read: Result<Vec<BlockRef<'_>>, CacheError>| {
            let _stop = StopOthers(&world);
            for (block, bytes) in blocks.zip(read.iter().flatten()) {
                world.look(file, block, bytes);
            }
            // Whoever waits for completions finds no block held.
            drop(read);
            world.completions[file].fetch_add(1, SeqCst);
        };
        self.cache
            .handle()
            .start_read(&self.files[file], range, done);
        // One thread alone knows what there is as long as no other one reads.
        if self.alone {
            self.await_completions(file);
        }
    }

    /// Each read of a file that was begun ends, once. No other is begun meanwhile.
    fn await_completions(&self, file: usize) {
        let begun = self.reads[file].load(SeqCst);
        for _ in 0..2_000_000 {
            if self.completions[file].load(SeqCst) == begun {
                return;
            }
            assert!(!self.stop.load(SeqCst), "a completion failed");
            std::thread::sleep(Duration::from_micros(10));
        }
        self.wrong(file, 0, "a completion was not called, or twice");
    }

    /// An invalidated block is what the disk has, unless that is torn.
    fn is_as_below(&self, file: usize, block: usize) {
        let is = &self.blocks[file][block];
        // A write that failed may have torn it.
        let below = match self.disk.readable(file, block)[..] {
            [(_, found)] => version(file, block, found),
            _ => None,
        };
        let below = below.filter(|&there| there > is.cut.load(SeqCst));
        is.now.store(below.unwrap_or(0), SeqCst);
        is.known.store(below.is_some(), SeqCst);
    }

    /// After a sync that failed: is there a block that the cache cannot write for the disk to make it safe?
    fn look_for_lost(&self, file: usize) {
        let rates = self.disk.set_rates(Rates::default());
        self.cache.write_back().unwrap();
        let mut all = self.blocks[file].iter().enumerate();
        let lost = all.any(|(block, is)| {
            let now = word(file, block, is.now.load(SeqCst));
            is.known.load(SeqCst) && self.disk.would_be(file, block) != [(0, now)]
        });
        self.is_lost[file].fetch_or(lost, SeqCst);
        self.disk.set_rates(rates);
    }

    /// [`write`](Self::write) of a block of which nothing is to be seen.
    fn overwrite(&self, file: usize, block: usize, bytes: &mut [u8]) {
        let is = &self.blocks[file][block];
        let next = is.latest.fetch_add(1, SeqCst) + 1;
        fill(bytes, word(file, block, next));
        is.now.store(next, SeqCst);
        is.known.store(true, SeqCst);
    }

    /// The file ends with so many blocks, and so many bytes of the next one.
    fn truncate(&self, file: usize, blocks: usize, within: usize) {
        let size = self.cache.block_size();
        let all = &self.blocks[file][blocks..];
        self.forget(file, blocks..BLOCKS, |on| {
            on.truncate((blocks * size + within) as u64)?;
            for is in all {
                is.cut.store(is.latest.load(SeqCst), SeqCst);
            }
            all[0].ended.fetch_or(within > 0, SeqCst);
            Ok(())
        });
        if (blocks, within) == (0, 0) {
            // It begins anew.
            self.is_lost[file].store(false, SeqCst);
        }
    }

    /// A file goes away while other threads use the other ones, sync all, or write back. The next file of this number begins anew, and
    /// nothing that the former one had reaches the disk.
    fn discard(&self, file: usize) {
        let _unused = self.uses[file].write().unwrap();
        self.await_completions(file);
        self.forgets[file].begun.fetch_add(1, SeqCst);
        self.files[file].discard();
        self.erase(file);
        self.discards.fetch_add(1, SeqCst);
        self.forgets[file].ended.fetch_add(1, SeqCst);
    }

    /// The disk has nothing of a file that the cache forgot, and of which no thread has a block.
    fn erase(&self, file: usize) {
        let of = &self.blocks[file];
        let gone = of.iter().map(|is| is.latest.load(SeqCst)).collect();
        self.disk.erase(file, gone);
        for is in of {
            is.now.store(0, SeqCst);
            is.promised.store(0, SeqCst);
            is.known.store(true, SeqCst);
            is.ended.store(false, SeqCst);
        }
        self.is_lost[file].store(false, SeqCst);
    }

    /// If it cannot be done, all is as before.
    fn forget(
        &self,
        file: usize,
        blocks: std::ops::Range<usize>,
        forget: impl FnOnce(&CachedFile) -> Result<(), CacheError>,
    ) {
        self.forgets[file].begun.fetch_add(1, SeqCst);
        let done = match forget(&self.files[file]) {
            Ok(()) => true,
            Err(CacheError::Held { .. }) => false,
            // The block in which a file is to end must be read, for which another one may have to be written.
            Err(CacheError::Read { .. } | CacheError::Write { .. } | CacheError::Pinned { .. }) => {
                false
            }
            Err(error) => self.wrong(file, blocks.start, &error.to_string()),
        };
        if done {
            for is in &self.blocks[file][blocks] {
                is.known.store(false, SeqCst);
            }
        }
        self.forgets[file].ended.fetch_add(1, SeqCst);
    }

    /// What is known of a file's blocks.
    fn known(&self, file: usize) -> Known {
        let quiet = self.forgets[file].quiet();
        let known = |is: &Version| is.known.load(SeqCst).then(|| is.now.load(SeqCst));
        let blocks = self.blocks[file].iter().map(known).collect();
        Known { quiet, blocks }
    }

    /// What was known before a sync that succeeded is promised, unless something was forgotten meanwhile.
    fn promise(&self, file: usize, before: Known) {
        if self.is_lost[file].load(SeqCst) {
            self.wrong(file, 0, "the file is lost, and a sync does not say so");
        }
        let Known { quiet, blocks } = before;
        if quiet.is_some() && self.forgets[file].quiet() == quiet {
            for (is, version) in self.blocks[file].iter().zip(blocks) {
                is.promised.fetch_max(version.unwrap_or(0), SeqCst);
            }
        }
    }

    /// [`sync`](Self::sync), of all files with one call. A file that is lost.
    fn sync_all(&self) -> Option<usize> {
        let before: Vec<Known> = (0..FILES).map(|file| self.known(file)).collect();
        let error = match self.cache.sync() {
            Ok(()) => {
                self.syncs.fetch_add(1, SeqCst);
                for (file, before) in before.into_iter().enumerate() {
                    // A file that is discarded meanwhile has no promises left.
                    let _used = self.uses[file].read().unwrap();
                    self.promise(file, before);
                }
                return None;
            }
            Err(error) => error,
        };
        if self.alone {
            (0..FILES).for_each(|file| self.look_for_lost(file));
        }
        match error {
            CacheError::Lost { file } => Some(file.0 as usize),
            CacheError::Write { .. } | CacheError::Sync { .. } => None,
            error => self.wrong(0, 0, &error.to_string()),
        }
    }

    /// What was known before is promised when it succeeds. The file, if it is lost.
    fn sync(&self, file: usize) -> Option<usize> {
        let before = self.known(file);
        match self.files[file].sync() {
            Ok(()) => {
                self.syncs.fetch_add(1, SeqCst);
                self.promise(file, before);
                None
            }
            Err(
                error @ (CacheError::Lost { .. }
                | CacheError::Write { .. }
                | CacheError::Sync { .. }),
            ) => {
                if self.alone {
                    self.look_for_lost(file);
                }
                matches!(error, CacheError::Lost { .. }).then_some(file)
            }
            Err(error) => self.wrong(file, 0, &error.to_string()),
        }
    }

    /// A file that is lost is truncated to nothing, and so is what the disk has of it. No other thread takes a step.
    fn begin_anew(&self, file: usize) {
        let _alone = self.steps.write().unwrap();
        (0..FILES).for_each(|file| self.await_completions(file));
        if !matches!(self.files[file].sync(), Err(CacheError::Lost { .. })) {
            return;
        }
        self.lost.fetch_add(1, SeqCst);
        if self.alone && !self.is_lost[file].load(SeqCst) {
            self.wrong(file, 0, "the file is said to be lost, and nothing is");
        }
        self.files[file].truncate(0).unwrap();
        self.erase(file);
    }

    /// With a disk that works all is as it was written.
    fn end(&self) {
        (0..FILES).for_each(|file| self.await_completions(file));
        self.disk.set_rates(Rates::default());
        for file in 0..FILES {
            // The first one reports former failures.
            let ends = [0; 3].map(|_| self.sync(file));
            if ends[2].is_some() {
                self.begin_anew(file);
                continue;
            }
            for block in 0..BLOCKS {
                let is = &self.blocks[file][block];
                let known =
                    is.known.load(SeqCst) && is.promised.load(SeqCst) == is.now.load(SeqCst);
                if is.known.load(SeqCst) && !known {
                    self.wrong(file, block, "a good sync did not promise it");
                }
                self.cut_power(file, block);
                let bytes = self
                    .cache
                    .handle()
                    .read(&self.files[file], block as u64)
                    .map(|bytes| bytes.to_vec());
                self.look(file, block, &bytes.unwrap());
            }
        }
        for file in 0..FILES {
            let limit = self.cache.tenant_limit(tenant(file));
            let resident = self.cache.tenant_stats(tenant(file)).resident;
            if limit.is_some_and(|(bytes, _)| resident * self.cache.block_size() > bytes) {
                self.wrong(file, 0, &format!("{resident} blocks, of {limit:?}"));
            }
        }
        self.cache.check().unwrap();
    }

    fn go(self: &Arc<Self>, steps: u64, seed: u64) {
        let all = if self.alone { 1 } else { THREADS };
        std::thread::scope(|threads| {
            for thread in 0..all {
                threads.spawn(move || {
                    let _stop = StopOthers(self);
                    let mut rng = Rng(seed * 100 + thread as u64);
                    while self.taken.load(SeqCst) < steps && !self.stop.load(SeqCst) {
                        if let Some(lost) = self.step(&mut rng) {
                            self.begin_anew(lost);
                        }
                    }
                });
            }
        });
        self.end();
    }
}

/// Steps of all runs together; `LARDER_DURABLE_STEPS` says otherwise.
fn steps() -> u64 {
    let said = std::env::var("LARDER_DURABLE_STEPS").ok();
    said.and_then(|n| n.parse().ok()).unwrap_or(200_000)
}

/// A rule, the frames of a cache, and where random numbers begin.
#[derive(Clone, Copy)]
struct Run {
    rule: &'static str,
    frames: usize,
    seed: u64,
}

/// Each rule with each size and each seed. There are so many seeds as `LARDER_DURABLE_SEEDS` says, or one, from
/// `LARDER_DURABLE_FIRST_SEED` or 0 on.
fn all_runs() -> Vec<Run> {
    let number = |name| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let first = number("LARDER_DURABLE_FIRST_SEED").unwrap_or(0);
    let seeds: u64 = number("LARDER_DURABLE_SEEDS").unwrap_or(1);
    let sizes = [8, 16, 33, 64];
    let of_a_seed = (rules().len() * sizes.len()) as u64;
    let of = |seed| {
        let rules = rules().iter();
        let all = rules.flat_map(move |rule| sizes.map(|frames| (rule.name, frames)));
        // No two runs have the same random numbers.
        let run = |((rule, frames), seed)| Run { rule, frames, seed };
        all.zip(seed * of_a_seed..).map(run)
    };
    (first..first + seeds).flat_map(of).collect()
}

#[test]
fn what_a_sync_promised_is_there_after_a_power_cut() {
    run_all(false);
}

#[test]
fn a_file_is_said_to_be_lost_only_when_it_is() {
    run_all(true);
}

fn run_all(alone: bool) {
    let runs = all_runs();
    let each = steps() / runs.len() as u64;
    let (mut syncs, mut lost, mut discards) = (0, 0, 0);
    for Run { rule, frames, seed } in runs {
        let world = Arc::new(World::new(rule, frames, seed, alone));
        world.go(each, seed);
        syncs += world.syncs.load(SeqCst);
        lost += world.lost.load(SeqCst);
        discards += world.discards.load(SeqCst);
    }
    println!("{syncs} syncs succeeded, {lost} times a file was lost, {discards} were discarded");
    assert!(
        syncs > 100 && lost > 0 && discards > 0,
        "{syncs} syncs, {lost} lost, {discards} discarded: nothing was tested"
    );
}
