//! Dirty blocks that the cache writes by itself, so that they do not keep the cache.

use std::sync::atomic::Ordering;

use crate::common::{Call, Faulty, cache};
use larder_cache::{BlockCache, CachedFile, FileId, TenantId};

const FILE: FileId = FileId(1);

fn size() -> u64 {
    larder::os::page_size() as u64
}

#[test]
fn blocks_that_were_written_once_do_not_keep_the_cache() {
    let cache = BlockCache::builder(Faulty::default())
        .bytes(16 * size() as usize)
        .read_ahead(0)
        .build()
        .unwrap();
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    for index in 0..15 {
        handle.overwrite(&file, index).unwrap().fill(1);
    }
    for _ in 0..20 {
        for index in 100..112 {
            handle.read(&file, index).unwrap();
        }
    }
    handle.report();
    assert!(cache.stats().hits > 100, "{:?}", cache.stats());
}

#[test]
fn the_rule_has_written_what_would_have_left_and_not_what_is_changed_all_the_time() {
    let storage = Faulty::default();
    let cache = BlockCache::builder(storage.clone())
        .bytes(64 * size() as usize)
        .read_ahead(0)
        .build()
        .unwrap();
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    let (hot, cold) = (0..8, 100..112);
    // What comes while the cache fills has its turn later.
    for index in 2000..2064 {
        handle.read(&file, index).unwrap();
    }
    for index in hot.clone().chain(cold.clone()) {
        handle.overwrite(&file, index).unwrap().fill(1);
    }
    for round in 0..40 {
        for index in hot.clone() {
            handle.write(&file, index).unwrap()[0] = round;
        }
        for index in 0..10 {
            let index = 1000 + u64::from(round) * 10 + index;
            handle.read(&file, index).unwrap();
        }
    }
    let calls = storage.calls();
    let written = |blocks: &std::ops::Range<u64>| {
        let inside = |offset: u64| blocks.contains(&(offset / size()));
        let writes = calls.iter();
        writes
            .filter(|call| matches!(call, Call::Write(_, offset, _) if inside(*offset)))
            .count()
    };
    assert_eq!(
        (written(&cold), written(&hot)),
        (12, 0),
        "{:?}",
        cache.stats()
    );
}

/// Writes whole blocks, with which the file ends at the least.
fn overwrite(cache: &BlockCache, file: &CachedFile, blocks: std::ops::Range<u64>) {
    let mut handle = cache.handle();
    for index in blocks {
        let block = handle.overwrite_until(file, index, (index + 1) * size());
        block.unwrap().fill(1);
    }
}

#[test]
fn each_count_of_dirty_blocks_agrees_whatever_becomes_of_them() {
    let storage = Faulty::default();
    let cache = cache(&storage, 100);
    // One that shares its frames, and one that has some for itself.
    let tenants = [TenantId(1), TenantId(2)];
    let limit = 40 * size() as usize;
    cache.limit_tenant(tenants[1], limit, None).unwrap();
    let open = |tenant: TenantId| {
        let file = cache.open_at_of(FileId(tenant.0.into()), 0, tenant);
        file.unwrap()
    };
    let [one, two] = tenants.map(open);
    let agree = |dirty: [usize; 2]| {
        assert_eq!([&one, &two].map(|file| file.stats().dirty), dirty);
        let of_tenants = tenants.map(|tenant| cache.tenant_stats(tenant).dirty);
        assert_eq!(of_tenants, dirty);
        assert_eq!(cache.stats().dirty, dirty[0] + dirty[1]);
        assert_eq!(cache.check(), Ok(()));
    };
    agree([0, 0]);
    overwrite(&cache, &one, 0..8);
    overwrite(&cache, &two, 0..8);
    agree([8, 8]);
    // A block that is dirty already counts once.
    overwrite(&cache, &one, 0..4);
    agree([8, 8]);
    one.write_back().unwrap();
    agree([0, 8]);
    overwrite(&cache, &one, 0..8);
    one.truncate(5 * size()).unwrap();
    agree([5, 8]);
    two.invalidate(6..8).unwrap();
    agree([5, 6]);
    Faulty::say(&storage.0.fail_writes, true);
    assert!(two.write_back().is_err());
    agree([5, 6]);
    Faulty::say(&storage.0.fail_writes, false);
    two.write_back().unwrap();
    agree([5, 0]);
    assert!(two.sync().is_err(), "the failed write was not reported yet");
    two.sync().unwrap();
    // What a failed sync takes with it is dirty again.
    overwrite(&cache, &two, 0..2);
    two.write_back().unwrap();
    agree([5, 0]);
    storage.0.syncs_to_fail.store(1, Ordering::SeqCst);
    assert!(two.sync().is_err());
    agree([5, 2]);
    cache.unlimit_tenant(tenants[1]).unwrap();
    agree([5, 2]);
    one.discard();
    agree([0, 2]);
    cache.limit_tenant(tenants[1], limit, None).unwrap();
    agree([0, 2]);
    two.write_back().unwrap();
    agree([0, 0]);
}
