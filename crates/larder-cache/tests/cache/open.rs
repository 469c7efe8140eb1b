//! Files that come and go, and on whose behalf.

use std::sync::{Arc, Mutex};

use crate::common::Faulty;
use larder_cache::{AccessKind, BlockCache, CacheError, FileId, TenantId};

fn cache(storage: &Faulty, blocks: usize) -> BlockCache {
    let bytes = blocks * larder::os::page_size();
    let builder = BlockCache::builder(storage.clone()).bytes(bytes);
    builder.policy("fifo").read_ahead(0).build().unwrap()
}

#[test]
fn a_file_is_forgotten_when_it_has_no_opener_and_no_block_in_memory() {
    let storage = Faulty::default();
    let cache = cache(&storage, 4);
    let one = cache.file(FileId(1)).unwrap();
    let again = one.clone();
    cache.handle().read(&one, 0).unwrap();
    drop(one);
    again.invalidate(0..1).unwrap();
    assert_eq!(cache.stats().files, 1, "it has an opener");
    cache.handle().read(&again, 0).unwrap();
    drop(again);
    assert_eq!(cache.stats().files, 1, "a block is in memory");
    let two = cache.file(FileId(2)).unwrap();
    for index in 0..8 {
        cache.handle().read(&two, index).unwrap();
    }
    assert_eq!(cache.stats().files, 1, "the block has left");
    // opening it while a block is in memory finds the block
    drop(two);
    let two = cache.file(FileId(2)).unwrap();
    let reads = storage.reads();
    cache.handle().read(&two, 7).unwrap();
    assert_eq!(storage.reads(), reads);
}

#[test]
fn a_handle_keeps_the_cache_and_the_end_of_the_last_owner_writes_what_is_dirty() {
    let storage = Faulty::default();
    let cache = cache(&storage, 4);
    let file = cache.file(FileId(1)).unwrap();
    let mut handle = cache.handle();
    drop(cache);
    handle.overwrite(&file, 0).unwrap().fill(7);
    drop(file);
    assert_eq!(storage.calls().len(), 0);
    drop(handle);
    assert_eq!(storage.stored(FileId(1), 0, 1), [7]);
}

#[test]
fn a_file_whose_blocks_may_be_lost_is_not_forgotten() {
    let storage = Faulty::default();
    let cache = cache(&storage, 2);
    let other = cache.file(FileId(2)).unwrap();
    let push_out = || (0..9).for_each(|at| drop(cache.handle().read(&other, at).unwrap()));
    let file = cache.file(FileId(1)).unwrap();
    cache.handle().overwrite(&file, 0).unwrap().fill(1);
    cache.write_back().unwrap();
    drop(file);
    push_out();
    assert_eq!(cache.stats().files, 2);
    let file = cache.file(FileId(1)).unwrap();
    Faulty::say(&storage.0.fail_syncs, true);
    assert!(matches!(file.sync(), Err(CacheError::Lost { .. })));
    Faulty::say(&storage.0.fail_syncs, false);
    drop(file);
    let file = cache.file(FileId(1)).unwrap();
    assert!(matches!(file.sync(), Err(CacheError::Lost { .. })));
    file.discard();
    drop(file);
    assert_eq!(cache.stats().files, 1);
}

/// More files than numbers rest: they are used again, and no block is taken for another file's.
#[test]
fn many_files_come_and_go() {
    let storage = Faulty::default();
    let cache = cache(&storage, 8);
    let mut handle = cache.handle();
    let mut bytes = Vec::new();
    for round in 0..6000_u64 {
        let file = cache.file(FileId(round)).unwrap();
        let block = handle.read(&file, round % 3).unwrap();
        assert!(block.iter().all(|&byte| byte == 0), "file {round}");
        drop(block);
        if round % 2 == 0 {
            handle
                .overwrite(&file, round % 3)
                .unwrap()
                .fill(round as u8 | 1);
            file.sync().unwrap();
        }
        assert!(cache.stats().files <= 9);
        bytes.push(cache.stats().misses);
    }
    assert_eq!(
        bytes.last(),
        Some(&6000),
        "each block was read once and no other one found"
    );
    let size = larder::os::page_size() as u64;
    for round in (0..6000).step_by(2) {
        let stored = storage.stored(FileId(round), round % 3 * size, 1);
        assert_eq!(stored, [round as u8 | 1], "file {round}");
    }
}

#[test]
fn tenants_have_the_sums_of_their_files() {
    let storage = Faulty::default();
    let cache = cache(&storage, 4);
    let (mine, other) = (TenantId(1), TenantId(2));
    for id in 0..3 {
        let file = cache.file_of(FileId(id), mine).unwrap();
        let mut handle = cache.handle();
        for _ in 0..2 {
            handle.read(&file, 0).unwrap();
        }
        handle.overwrite(&file, 1).unwrap().fill(1);
        handle.report();
        file.sync().unwrap();
        assert_eq!(file.stats().written, 1);
    }
    let sum = cache.tenant_stats(mine);
    assert_eq!((sum.hits, sum.misses, sum.written), (3, 6, 3));
    assert_eq!((sum.evictions, sum.resident, sum.dirty), (2, 4, 0));
    assert_eq!(cache.tenant_stats(other), Default::default());
    // The first opener's tenant is the file's.
    let first = cache.file_of(FileId(9), other).unwrap();
    let second = cache.file_of(FileId(9), mine).unwrap();
    cache.handle().overwrite(&second, 0).unwrap().fill(1);
    assert_eq!(cache.tenant_stats(other).dirty, 1);
    assert_eq!(cache.tenant_stats(mine).misses, 6);
    drop((first, second));
    let (hits, stats) = (
        cache.stats().hits,
        [mine, other].map(|of| cache.tenant_stats(of)),
    );
    assert_eq!(stats.iter().map(|sum| sum.hits).sum::<u64>(), hits);
    assert_eq!(
        stats.iter().map(|sum| sum.misses).sum::<u64>(),
        cache.stats().misses
    );
    assert_eq!(
        stats.iter().map(|sum| sum.resident).sum::<usize>(),
        cache.stats().resident
    );
}

#[test]
fn a_forgotten_tenant_keeps_its_open_files() {
    let cache = cache(&Faulty::default(), 4);
    let tenant = TenantId(7);
    let gone = cache.file_of(FileId(1), tenant).unwrap();
    let open = cache.file_of(FileId(2), tenant).unwrap();
    let mut handle = cache.handle();
    handle.read(&open, 0).unwrap();
    handle.read(&gone, 0).unwrap();
    gone.invalidate(0..1).unwrap();
    drop(gone);
    assert_eq!(cache.forget_tenant(tenant).misses, 2);
    assert_eq!(cache.forget_tenant(tenant).misses, 1, "the open one's");
    open.invalidate(0..1).unwrap();
    drop(open);
    assert_eq!(cache.forget_tenant(tenant).misses, 1);
    assert_eq!(cache.forget_tenant(tenant), Default::default());
    let bytes = || cache.stats().table_bytes;
    // many tenants that come and are forgotten take no more than few
    let each = |id: u32| {
        let file = cache.file_of(FileId(3), TenantId(id)).unwrap();
        cache.handle().read(&file, 0).unwrap();
        file.invalidate(0..1).unwrap();
        drop(file);
        assert_eq!(cache.forget_tenant(TenantId(id)).misses, 1);
    };
    (0..2000).for_each(each);
    let before = bytes();
    (2000..20_000).for_each(each);
    assert_eq!(bytes(), before);
}

/// Uses that a handle reports when their file's number is another one's do not count for that one, nor does the
/// recorder get them as its uses.
#[test]
fn late_uses_are_not_those_of_the_file_that_has_the_number_now() {
    for (reads, recorded) in [(3, true), (3, false), (300, false)] {
        let cache = cache(&Faulty::default(), 4);
        let heard = Arc::new(Mutex::new(Vec::new()));
        if recorded {
            let log = Arc::clone(&heard);
            cache.record(Some(Box::new(move |access| {
                if !access.kind.is_state() {
                    log.lock().unwrap().push((access.file, access.kind));
                }
            })));
        }
        let mut late = cache.handle();
        let mut other = cache.handle();
        let file = cache.file(FileId(1)).unwrap();
        for _ in 0..reads {
            late.read(&file, 0).unwrap();
        }
        file.invalidate(0..1).unwrap();
        drop(file);
        for id in 0..1023 {
            drop(cache.file(FileId(10 + id)).unwrap());
        }
        let files: Vec<_> = (0..8)
            .map(|id| cache.file(FileId(5000 + id)).unwrap())
            .collect();
        for file in &files {
            other.overwrite(file, 0).unwrap().fill(1);
            other.read(file, 0).unwrap();
        }
        other.report();
        late.read(&files[0], 1).unwrap();
        late.report();
        let hits: Vec<u64> = files.iter().map(|file| file.stats().hits).collect();
        assert_eq!(hits, [1; 8]);
        assert_eq!(cache.stats().hits, reads - 1 + 8);
        if recorded {
            use AccessKind::{Read, Remove, Write};
            let heard: Vec<_> = heard.lock().unwrap().drain(..).collect();
            let first = [Read, Remove].map(|kind| (FileId(1), kind));
            let each = (5000..5008).flat_map(|id| [Write, Read].map(|kind| (FileId(id), kind)));
            let last = (FileId(5000), Read);
            assert_eq!(
                heard,
                first
                    .into_iter()
                    .chain(each)
                    .chain([last])
                    .collect::<Vec<_>>()
            );
        }
    }
}
