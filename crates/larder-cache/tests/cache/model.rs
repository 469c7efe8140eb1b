//! The cache against a model of a file, under every rule, with power cuts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::SeqCst;

use crate::common::{Faulty, after};
use larder_cache::{BlockCache, CacheError, FileId, TenantId};
use larder_policy::rules;
use proptest::prelude::*;

const FILES: [FileId; 2] = [FileId(1), FileId(2)];
/// Blocks of each file.
const BLOCKS: u64 = 24;

/// Which of the files, and which block of it.
type At = (usize, u64);
/// What each block may be after a power cut.
type May = BTreeMap<At, Vec<u8>>;

fn size() -> u64 {
    larder::os::page_size() as u64
}

#[derive(Debug, Clone)]
enum Step {
    Read(At),
    Write(At, u8),
    Overwrite(At, u8),
    /// So many blocks at once, or none.
    TryWrite(At, u64, u8),
    Sync(usize),
    SyncAll,
    WriteBack,
    Invalidate(usize),
    Truncate(At),
    Discard(usize),
    Resize(usize),
    Trim(usize),
    /// Of the second file's tenant: no blocks are no limit. With a rule or without one.
    Limit(usize, Option<usize>),
    SetPolicy(usize),
    FailWrites(bool),
    FailSyncs(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let block = (0_usize..2, 0..BLOCKS);
    prop_oneof![
        6 => block.clone().prop_map(Step::Read),
        4 => (block.clone(), any::<u8>()).prop_map(|(at, byte)| Step::Write(at, byte)),
        2 => (block.clone(), any::<u8>()).prop_map(|(at, byte)| Step::Overwrite(at, byte)),
        3 => (block.clone(), 1..7_u64, any::<u8>()).prop_map(|(at, blocks, byte)| Step::TryWrite(at, blocks, byte)),
        2 => (0_usize..2).prop_map(Step::Sync),
        1 => Just(Step::SyncAll),
        1 => Just(Step::WriteBack),
        1 => (0_usize..2).prop_map(Step::Invalidate),
        1 => block.prop_map(Step::Truncate),
        1 => (0_usize..2).prop_map(|file| Step::Truncate((file, 0))),
        1 => (0_usize..2).prop_map(Step::Discard),
        1 => (1_usize..24).prop_map(Step::Resize),
        1 => (0_usize..8).prop_map(Step::Trim),
        2 => (0_usize..8, proptest::option::of(0_usize..100)).prop_map(|(blocks, rule)| Step::Limit(blocks, rule)),
        1 => (0_usize..100).prop_map(Step::SetPolicy),
        1 => any::<bool>().prop_map(Step::FailWrites),
        1 => any::<bool>().prop_map(Step::FailSyncs),
    ]
}

/// What was done to two files, and what may therefore be on the disk.
#[derive(Default)]
struct Model {
    now: BTreeMap<At, u8>,
    /// What the block was at the last sync that succeeded, and all that it got since.
    may: May,
    /// All that it ever was: what the storage may have behind an end, and shows again when the file is longer.
    ever: May,
    behind: BTreeSet<At>,
    /// The first block behind the end.
    end: [Option<u64>; 2],
}

impl Model {
    fn wrote(&mut self, at: At, byte: u8) {
        self.now.insert(at, byte);
        let ever = self.ever.entry(at).or_insert_with(|| vec![0]);
        ever.push(byte);
        let was_behind = self.behind.remove(&at);
        let may = self.may.entry(at).or_insert_with(|| vec![0]);
        match was_behind {
            true => may.clone_from(ever),
            false => may.push(byte),
        }
        let end = &mut self.end[at.0];
        *end = end.map(|end| end.max(at.1 + 1));
    }

    fn synced(&mut self, file: usize) {
        let (now, may) = (&self.now, &mut self.may);
        for (at, may) in may.iter_mut().filter(|(at, _)| at.0 == file) {
            if !self.behind.contains(at) {
                *may = vec![now.get(at).copied().unwrap_or(0)];
            }
        }
    }

    /// The storage is left as it is.
    fn truncated(&mut self, (file, end): At) {
        self.end[file] = Some(end);
        for index in end..BLOCKS {
            let at = (file, index);
            self.now.remove(&at);
            self.behind.insert(at);
            if let Some(ever) = self.ever.get(&at) {
                self.may.insert(at, ever.clone());
            }
        }
    }

    /// May the block be read as this?
    fn reads(&self, at: At, byte: u8) -> bool {
        let inside = self.end[at.0].is_none_or(|end| at.1 < end);
        match self.behind.contains(&at) && inside {
            true => byte == 0 || self.ever.get(&at).is_some_and(|ever| ever.contains(&byte)),
            false => byte == self.now.get(&at).copied().unwrap_or(0),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Whatever is done: blocks read as they were written, there are never more than the size says, of a tenant never more than its
    /// limit, and when the power is cut
    /// at any point, with the last write torn, what was there at the last sync that succeeded is there. A disk that fails to
    /// sync a file forgets what was written to it since the last time.
    #[test]
    fn it_is_a_file_with_a_memory(
        steps in proptest::collection::vec(step(), 1..100),
        which in 0_usize..100,
        ahead in prop_oneof![Just(0_usize), Just(4)],
        // With all of them dirty, all that a rule has may be parked.
        share in prop_oneof![Just(0.5), Just(1.0)],
    ) {
        let storage = Faulty::default();
        let all = rules();
        let page = size() as usize;
        let cache = BlockCache::builder(storage.clone())
            .bytes(8 * page)
            .most_bytes(24 * page)
            .policy(all[which % all.len()].name)
            .read_ahead(ahead)
            .dirty_share(share)
            .build()
            .unwrap();
        let tenants = [TenantId(0), TenantId(7)];
        let files = [0, 1].map(|at| cache.file_of(FILES[at], tenants[at]).unwrap());
        let name = |which: usize| all[which % all.len()].name;
        let mut limit = None;
        let mut handle = cache.handle();
        let mut model = Model::default();
        let mut checks: Vec<(usize, May)> = Vec::new();
        let mut capacity = 8;
        // Dirty blocks that could not be written when the cache was made smaller are too many until they are.
        let mut too_many = false;
        for step in steps {
            match step {
                Step::Read(at) => if let Ok(block) = handle.read(&files[at.0], at.1) {
                    prop_assert_eq!(block[0], block[page - 1]);
                    prop_assert!(model.reads(at, block[0]), "{:?} is {}", at, block[0]);
                },
                Step::Write(at, byte) | Step::Overwrite(at, byte) => {
                    let block = if matches!(step, Step::Write(..)) {
                        handle.write(&files[at.0], at.1)
                    } else {
                        handle.overwrite(&files[at.0], at.1)
                    };
                    if let Ok(mut block) = block {
                        block.fill(byte);
                        model.wrote(at, byte);
                    }
                }
                Step::TryWrite((file, first), blocks, byte) => {
                    let blocks = first..BLOCKS.min(first + blocks);
                    let bytes = vec![byte; (blocks.end - blocks.start) as usize * page];
                    let asked = || (storage.calls().len(), storage.0.tried.load(SeqCst));
                    let (before, dirty) = (asked(), cache.stats().dirty);
                    if handle.try_write_at(&files[file], first * size(), &bytes).unwrap() {
                        blocks.for_each(|index| model.wrote((file, index), byte));
                    } else {
                        prop_assert_eq!(cache.stats().dirty, dirty);
                    }
                    prop_assert_eq!(asked(), before);
                }
                Step::Sync(file) => if files[file].sync().is_ok() {
                    model.synced(file);
                },
                Step::SyncAll => if cache.sync().is_ok() {
                    model.synced(0);
                    model.synced(1);
                },
                Step::WriteBack => drop(cache.write_back()),
                Step::Invalidate(file) => if files[file].sync().is_ok() {
                    model.synced(file);
                    files[file].invalidate(0..u64::MAX).unwrap();
                    prop_assert_eq!(files[file].stats().resident, 0);
                },
                Step::Truncate(at) => {
                    files[at.0].truncate(at.1 * size()).unwrap();
                    model.truncated(at);
                }
                Step::Discard(file) => {
                    files[file].discard();
                    model.truncated((file, 0));
                    prop_assert_eq!(files[file].stats().resident, 0);
                }
                Step::Resize(frames) => match cache.set_bytes(frames * page) {
                    Err(CacheError::Limits { .. }) => prop_assert!(limit >= Some(frames)),
                    _ => capacity = frames,
                },
                Step::Limit(0, _) => {
                    let _ = cache.unlimit_tenant(tenants[1]);
                    limit = None;
                }
                Step::Limit(blocks, rule) => match cache.limit_tenant(tenants[1], blocks * page, rule.map(name)) {
                    Err(CacheError::Limits { .. }) => prop_assert!(blocks >= capacity),
                    _ => limit = Some(blocks),
                },
                Step::SetPolicy(rule) => {
                    cache.set_policy(name(rule)).unwrap();
                    prop_assert_eq!(cache.stats().policy, name(rule));
                }
                Step::Trim(blocks) => drop(cache.trim(blocks * page)),
                Step::FailWrites(fail) => Faulty::say(&storage.0.fail_writes, fail),
                Step::FailSyncs(fail) => Faulty::say(&storage.0.fail_syncs, fail),
            }
            prop_assert_eq!(cache.check(), Ok(()));
            let stats = cache.stats();
            prop_assert_eq!(stats.capacity, capacity);
            too_many |= storage.0.fail_writes.load(SeqCst);
            if too_many && stats.dirty == 0 {
                // Nothing is in the way any more.
                cache.set_bytes(capacity * page).unwrap();
                too_many = false;
            }
            let mut sums = [0; 4];
            for (at, tenant) in tenants.into_iter().enumerate() {
                let stats = cache.tenant_stats(tenant);
                let most = [capacity - limit.unwrap_or(0), limit.unwrap_or(capacity)][at];
                prop_assert!(stats.resident <= most || too_many, "{} of tenant {tenant:?}, which has {most}", stats.resident);
                let counts = [stats.resident as u64, stats.dirty as u64, stats.misses, stats.evictions];
                sums = core::array::from_fn(|at| sums[at] + counts[at]);
            }
            let stats = cache.stats();
            prop_assert_eq!(sums, [stats.resident as u64, stats.dirty as u64, stats.misses, stats.evictions]);
            prop_assert_eq!(cache.tenant_limit(tenants[1]).map(|(bytes, _)| bytes / page), limit);
            prop_assert!(stats.resident <= capacity || too_many);
            checks.push((storage.calls().len(), model.may.clone()));
        }
        // Cut the power after each call; the model of that moment is the latest one before it.
        let (calls, failed) = (storage.calls(), storage.failed());
        let mut known = May::new();
        let mut next = checks.iter().peekable();
        for n in 0..=calls.len() {
            while let Some((_, may)) = next.next_if(|(at, _)| *at < n) {
                known = may.clone();
            }
            let during = next.peek().map_or(&known, |(_, may)| may);
            // With all that was written and not synced, or without.
            for disk in after(&calls, &failed, n) {
                for (at, may) in &known {
                    let mut allowed = may.clone();
                    allowed.extend(during.get(at).into_iter().flatten());
                    for byte in [at.1 * size(), at.1 * size() + size() - 1] {
                        let there = disk.get(&(FILES[at.0], byte)).copied().unwrap_or(0);
                        prop_assert!(allowed.contains(&there), "block {at:?}: {there} after {n} calls, not {allowed:?}");
                    }
                }
            }
        }
    }
}
