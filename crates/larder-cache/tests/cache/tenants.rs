//! Tenants with frames for themselves. What else may happen to them is in the model.

use crate::common::{Faulty, Rng, cache};
use larder_cache::{
    BlockCache, CacheError, CacheHandle, CachedFile, FileId, MemoryStorage, TenantId,
};
use larder_policy::rules;

const TENANTS: [TenantId; 3] = [TenantId(0), TenantId(1), TenantId(2)];
/// Blocks of the cache that each has.
const FRAMES: [usize; 3] = [33, 8, 23];

fn page() -> usize {
    larder::os::page_size()
}

/// A cache with a file of each tenant, so that blocks have the same names in each cache.
fn with_files(frames: usize, policy: &str) -> (BlockCache, [CachedFile; 3]) {
    let builder = BlockCache::builder(MemoryStorage::default()).bytes(frames * page());
    let cache = builder.policy(policy).read_ahead(0).build().unwrap();
    let files = TENANTS.map(|tenant| cache.file_of(FileId(tenant.0.into()), tenant).unwrap());
    (cache, files)
}

/// A load with what comes back soon, what comes back in a loop, and what never does.
fn next(rng: &mut Rng, at: u64) -> u64 {
    match rng.below(4) {
        0 => rng.below(6) as u64,
        1 => 10 + at % 30,
        2 => 100 + rng.below(40) as u64,
        _ => 1000 + at,
    }
}

/// The same uses of a tenant, beside those of other tenants and alone, find and miss their block alike.
fn step(here: (&mut CacheHandle, &CachedFile), alone: (&mut CacheHandle, &CachedFile), index: u64) {
    for (handle, file) in [here, alone] {
        handle.read(file, index).unwrap();
        handle.report();
    }
}

#[test]
fn a_tenant_hits_where_a_cache_of_its_own_would_under_every_rule() {
    let all = rules();
    for at in 0..all.len() {
        let names = [at, at + 1, at + 7].map(|at| all[at % all.len()].name);
        let (cache, files) = with_files(FRAMES.iter().sum(), names[0]);
        for tenant in [1, 2] {
            let bytes = FRAMES[tenant] * page();
            let limited = cache.limit_tenant(TENANTS[tenant], bytes, Some(names[tenant]));
            limited.unwrap();
        }
        // The rule of the others was made for all frames.
        let made = [FRAMES.iter().sum(), FRAMES[1], FRAMES[2]];
        let alone = [0, 1, 2].map(|at| with_files(made[at], names[at]));
        alone[0].0.set_bytes(FRAMES[0] * page()).unwrap();
        let mut handle = cache.handle();
        let mut handles = [0, 1, 2].map(|at| alone[at].0.handle());
        let mut rng = Rng(at as u64);
        for turn in 0..6000 {
            let tenant = rng.below(3);
            let index = next(&mut rng, turn);
            let (other, file) = (&mut handles[tenant], &alone[tenant].1[tenant]);
            step((&mut handle, &files[tenant]), (other, file), index);
            let (here, there) = (files[tenant].stats(), file.stats());
            assert_eq!(here, there, "{} at {turn}", names[tenant]);
        }
        assert_eq!(cache.check(), Ok(()));
    }
}

#[test]
fn a_tenant_at_its_limit_waits_for_no_frame_of_others_and_takes_none() {
    let storage = Faulty::default();
    let cache = cache(&storage, 8);
    let tenant = TENANTS[1];
    cache.limit_tenant(tenant, 3 * page(), None).unwrap();
    let (mine, other) = (
        cache.file_of(FileId(1), tenant).unwrap(),
        cache.file(FileId(2)).unwrap(),
    );
    let mut handle = cache.handle();
    let held = [0, 1, 2].map(|index| handle.read(&mine, index).unwrap());
    let refused = handle.read(&mine, 3).err();
    assert!(matches!(refused, Some(CacheError::Pinned { frames: 3 })));
    for index in 0..50 {
        handle.overwrite(&other, index).unwrap();
    }
    assert_eq!((mine.stats().resident, other.stats().resident), (3, 5));
    // It gets fewer, and the others more, when the guards are gone.
    cache.limit_tenant(tenant, page(), None).unwrap();
    assert_eq!(mine.stats().resident, 3);
    for index in 0..50 {
        handle.read(&other, index).unwrap();
    }
    assert_eq!((mine.stats().resident, other.stats().resident), (3, 5));
    drop(held);
    handle.read(&mine, 3).unwrap();
    for index in 0..50 {
        handle.read(&other, index).unwrap();
    }
    assert_eq!((mine.stats().resident, other.stats().resident), (1, 7));
    assert_eq!(cache.check(), Ok(()));
}

#[test]
fn what_others_read_keeps_no_tenant_from_being_read_ahead_of() {
    let storage = Faulty::default();
    let builder = BlockCache::builder(storage.clone()).bytes(64 * page());
    let cache = builder.policy("fifo").build().unwrap();
    cache.limit_tenant(TENANTS[1], 8 * page(), None).unwrap();
    let mine = cache.file_of(FileId(1), TENANTS[1]).unwrap();
    let other = cache.file(FileId(2)).unwrap();
    let (reads, file) = (cache.clone(), mine.clone());
    // While 15 of the other's blocks are on their way.
    storage.0.on_read.set(move |_, _| {
        let mut handle = reads.handle();
        for index in 0..2 {
            handle.read(&file, index).unwrap();
        }
    });
    let mut blocks = Vec::new();
    let mut handle = cache.handle();
    handle.read_many(&other, 0..16, &mut blocks).unwrap();
    storage.0.on_read.clear();
    // A quarter of its part, rounded up.
    assert_eq!(mine.stats().read_ahead, 2);
    assert_eq!(cache.check(), Ok(()));
}

#[test]
fn room_for_a_tenant_is_made_by_writing_its_blocks() {
    let storage = Faulty::default();
    let cache = cache(&storage, 200);
    cache.limit_tenant(TENANTS[1], 10 * page(), None).unwrap();
    // Behind and before the tenant's in the order in which blocks are written.
    let others = [1, 3].map(|id| cache.file(FileId(id)).unwrap());
    let mine = cache.file_of(FileId(2), TENANTS[1]).unwrap();
    let mut handle = cache.handle();
    for index in 0..20 {
        for other in &others {
            handle.overwrite(other, index).unwrap();
        }
    }
    for index in 0..100 {
        handle.overwrite(&mine, index).unwrap();
        assert!(mine.stats().dirty <= 10);
    }
    assert!(others.iter().all(|other| other.stats().written == 0));
    assert!(mine.stats().written >= 90);
}

#[test]
fn limits_that_leave_the_others_nothing_are_refused() {
    let (cache, _files) = with_files(10, "lru");
    for (tenant, blocks) in [(1, 6), (2, 3)] {
        cache
            .limit_tenant(TENANTS[tenant], blocks * page(), None)
            .unwrap();
    }
    let refused = cache.limit_tenant(TENANTS[1], 7 * page(), None);
    assert!(matches!(
        refused,
        Err(CacheError::Limits {
            frames: 10,
            limited: 10
        })
    ));
    let refused = cache.limit_tenant(TENANTS[1], usize::MAX, None);
    assert!(matches!(refused, Err(CacheError::Limits { .. })));
    let refused = cache.limit_tenant(TENANTS[1], page() - 1, None);
    assert!(matches!(refused, Err(CacheError::Size { .. })));
    assert!(
        cache
            .limit_tenant(TENANTS[0], page(), Some("best"))
            .is_err()
    );
    assert!(matches!(
        cache.set_bytes(9 * page()),
        Err(CacheError::Size { .. } | CacheError::Limits { .. })
    ));
    let had = TENANTS.map(|tenant| cache.tenant_limit(tenant));
    assert_eq!(
        had,
        [None, Some((6 * page(), "lru")), Some((3 * page(), "lru"))]
    );
    cache.unlimit_tenant(TENANTS[1]).unwrap();
    cache
        .limit_tenant(TENANTS[2], 9 * page(), Some("arc"))
        .unwrap();
    assert_eq!(cache.tenant_limit(TENANTS[2]), Some((9 * page(), "arc")));
}

#[test]
fn of_more_blocks_than_leave_at_once_each_tenant_loses_its_share() {
    let (cache, files) = with_files(1000, "lru");
    cache.limit_tenant(TENANTS[1], 500 * page(), None).unwrap();
    let mut handle = cache.handle();
    let mut fill = || {
        for file in &files[..2] {
            for index in 0..500 {
                handle.read(file, index).unwrap();
            }
        }
    };
    let resident = || [&files[0], &files[1]].map(|file| file.stats().resident);
    fill();
    assert_eq!(cache.trim(600 * page()).unwrap(), 600 * page());
    assert_eq!(resident(), [200, 200]);
    fill();
    assert_eq!(resident(), [500, 500]);
    cache.limit_tenant(TENANTS[1], 100 * page(), None).unwrap();
    assert_eq!(resident(), [500, 100]);
    cache.set_bytes(300 * page()).unwrap();
    assert_eq!(resident(), [200, 100]);
    assert_eq!(cache.check(), Ok(()));
}
