//! The cache against a model of a file, under every rule, with power cuts.

#![allow(clippy::unwrap_used)]

mod blocks_common;

use std::collections::BTreeMap;

use blocks_common::{Faulty, after};
use larder::cache::policy::rules;
use larder::cache::{BlockCache, FileId};
use proptest::prelude::*;

const FILE: FileId = FileId(1);

fn size() -> u64 {
    larder::os::page_size() as u64
}

#[derive(Debug, Clone)]
enum Step {
    Read(u64),
    Write(u64, u8),
    Overwrite(u64, u8),
    Sync,
    WriteBack,
    Invalidate,
    Resize(usize),
    Relieve(usize),
    FailWrites(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let block = 0_u64..40;
    prop_oneof![
        6 => block.clone().prop_map(Step::Read),
        4 => (block.clone(), any::<u8>()).prop_map(|(at, byte)| Step::Write(at, byte)),
        2 => (block, any::<u8>()).prop_map(|(at, byte)| Step::Overwrite(at, byte)),
        1 => Just(Step::Sync),
        1 => Just(Step::WriteBack),
        1 => Just(Step::Invalidate),
        1 => (1_usize..24).prop_map(Step::Resize),
        1 => (0_usize..8).prop_map(Step::Relieve),
        1 => any::<bool>().prop_map(Step::FailWrites),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever is done: blocks read as they were written, there are never more than the size says, and when the power is cut
    /// at any point, with the last write torn, what was there at the last sync that succeeded is there.
    #[test]
    fn it_is_a_file_with_a_memory(
        steps in proptest::collection::vec(step(), 1..80),
        which in 0_usize..100,
        ahead in prop_oneof![Just(0_usize), Just(4)],
    ) {
        let storage = Faulty::default();
        let all = rules();
        let page = size() as usize;
        let cache = BlockCache::builder(storage.clone())
            .bytes(8 * page)
            .most_bytes(24 * page)
            .policy(all[which % all.len()].name)
            .read_ahead(ahead)
            .build()
            .unwrap();
        let file = cache.file(FILE).unwrap();
        let mut handle = cache.handle();
        let mut model: BTreeMap<u64, u8> = BTreeMap::new();
        // what each block may read as after a power cut: its value at the last sync, and all it got since
        let mut safe: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        let mut checks: Vec<(usize, BTreeMap<u64, Vec<u8>>)> = Vec::new();
        let mut capacity = 8;
        for step in steps {
            match step {
                Step::Read(at) => if let Ok(block) = handle.read(&file, at) {
                    let expected = model.get(&at).copied().unwrap_or(0);
                    prop_assert_eq!((block[0], block[page - 1]), (expected, expected));
                },
                Step::Write(at, byte) | Step::Overwrite(at, byte) => {
                    let block = if matches!(step, Step::Write(..)) {
                        handle.write(&file, at)
                    } else {
                        handle.overwrite(&file, at)
                    };
                    if let Ok(mut block) = block {
                        block.fill(byte);
                        model.insert(at, byte);
                        safe.entry(at).or_insert_with(|| vec![0]).push(byte);
                    }
                }
                Step::Sync => if file.sync().is_ok() {
                    for (at, may) in &mut safe {
                        *may = vec![model.get(at).copied().unwrap_or(0)];
                    }
                },
                Step::WriteBack => drop(cache.write_back()),
                Step::Invalidate => if file.sync().is_ok() {
                    for (at, may) in &mut safe {
                        *may = vec![model.get(at).copied().unwrap_or(0)];
                    }
                    file.invalidate(0..u64::MAX).unwrap();
                    prop_assert_eq!(cache.stats().resident, 0);
                },
                Step::Resize(frames) => {
                    let _ = cache.set_bytes(frames * page);
                    capacity = frames;
                }
                Step::Relieve(blocks) => drop(cache.relieve(blocks * page)),
                Step::FailWrites(fail) => Faulty::say(&storage.0.fail_writes, fail),
            }
            let stats = cache.stats();
            prop_assert_eq!(stats.capacity, capacity);
            let failing = storage.0.fail_writes.load(std::sync::atomic::Ordering::SeqCst);
            prop_assert!(stats.resident <= capacity || failing || stats.write_errors > 0);
            checks.push((storage.calls().len(), safe.clone()));
        }
        // Cut the power after each call; the model of that moment is the latest one before it.
        let calls = storage.calls();
        let mut known: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        let mut next = checks.iter().peekable();
        for n in 0..=calls.len() {
            while let Some((_, may)) = next.next_if(|(at, _)| *at < n) {
                known = may.clone();
            }
            let during = next.peek().map_or(&known, |(_, may)| may);
            let disk = after(&calls, n);
            for (at, may) in &known {
                let mut allowed = may.clone();
                allowed.extend(during.get(at).into_iter().flatten());
                for byte in [at * size(), at * size() + size() - 1] {
                    let there = disk.get(&(FILE, byte)).copied().unwrap_or(0);
                    prop_assert!(allowed.contains(&there), "block {at}: {there} after {n} calls, not {allowed:?}");
                }
            }
        }
    }
}
