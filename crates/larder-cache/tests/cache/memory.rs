//! Bytes of the block cache's tables for each block that is in, by its own count, held against ceilings: so that none grows
//! unseen. `cargo test -p larder-cache --test cache memory -- --nocapture` prints them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use larder::pages::PagePool;
use larder_cache::{BlockCache, FileId, Storage};

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

/// Bytes a block when the cache is full and nothing has left, and when twice as many blocks have left as there are.
fn bytes_a_block(blocks: u64) -> [f64; 2] {
    let pool = PagePool::builder().populate(false).build().unwrap();
    let cache = BlockCache::builder(Nothing)
        .bytes(blocks as usize * larder::os::page_size())
        .read_ahead(0)
        .pool(pool)
        .build()
        .unwrap();
    let file = cache.file(FileId(1)).unwrap();
    let mut handle = cache.handle();
    let mut next = 0;
    [blocks, 3 * blocks].map(|until| {
        for block in next..until {
            handle.read(&file, block).unwrap();
        }
        next = until;
        let stats = cache.stats();
        assert_eq!(stats.resident as u64, blocks);
        stats.table_bytes as f64 / blocks as f64
    })
}

#[test]
fn a_block_costs_no_more_than_it_did() {
    for (blocks, full, turned_over) in [
        (1 << 15, 42.9, 48.0),
        (100_000, 45.1, 50.1),
        (1 << 17, 43.8, 48.8),
    ] {
        let now = bytes_a_block(blocks);
        println!("{blocks} blocks: {now:.1?} bytes a block");
        assert!(now[0] <= full && now[1] <= turned_over, "{blocks}: {now:?}");
        // The frame alone has 16.
        assert!(now[0] > 16.0 && now[1] > now[0]);
    }
}

/// The lists of dirty blocks and of those that are written and not synced have 12 and 24 bytes for each; a tree keeps them
/// half full at the least.
#[test]
fn lists_of_dirty_blocks_are_counted() {
    // Of LRU, whose memory is all there from the start: the default rule makes its miniatures later.
    let cache = BlockCache::builder(Nothing)
        .bytes(4096 * larder::os::page_size())
        .policy("lru")
        .build()
        .unwrap();
    let file = cache.file(FileId(1)).unwrap();
    let mut handle = cache.handle();
    let bytes = || cache.stats().table_bytes;
    let empty = bytes();
    let mut written = Vec::new();
    for index in 0..2000 {
        written.push(handle.overwrite(&file, index).unwrap());
    }
    drop(written);
    let dirty = bytes() - empty;
    assert_eq!(cache.stats().dirty, 2000);
    assert!((2000 * 12..2000 * 48).contains(&dirty), "{dirty}");
    cache.write_back().unwrap();
    let unsynced = bytes() - empty;
    assert!((2000 * 24..2000 * 72).contains(&unsynced), "{unsynced}");
    file.sync().unwrap();
    assert_eq!(bytes(), empty);
    let files: Vec<_> = (2..1002)
        .map(|id| cache.file(FileId(id)).unwrap())
        .collect();
    assert!(bytes() - empty > 1000 * 100, "{}", bytes() - empty);
    drop(files);
}

#[test]
fn a_sixteenth_leaves_when_programs_wait_for_memory() {
    let percent = Arc::new(AtomicU64::new(0));
    let reported = Arc::clone(&percent);
    let page = larder::os::page_size();
    let cache = BlockCache::builder(Nothing)
        .bytes(1000 * page)
        .read_ahead(0)
        .pressure(move || match reported.load(Ordering::SeqCst) {
            u64::MAX => None,
            percent => Some(percent as f64),
        })
        .build()
        .unwrap();
    let file = cache.file(FileId(1)).unwrap();
    for index in 0..800 {
        cache.handle().read(&file, index).unwrap();
    }
    // not from a tenth on, but above
    for (now, leave) in [(0, 0), (10, 0), (u64::MAX, 0), (11, 50), (100, 47), (9, 0)] {
        percent.store(now, Ordering::SeqCst);
        let before = cache.stats().resident;
        assert_eq!(cache.maintain().unwrap(), leave * page, "{now} percent");
        assert_eq!(cache.stats().resident, before - leave);
    }
    assert_eq!(cache.stats().capacity, 1000);
}

#[test]
fn pages_that_hold_no_block_are_given_back_before_blocks_leave() {
    let page = larder::os::page_size();
    let cache = BlockCache::builder(Nothing)
        .bytes(1000 * page)
        .read_ahead(0)
        .build()
        .unwrap();
    let file = cache.file(FileId(1)).unwrap();
    let mut handle = cache.handle();
    for index in 0..800 {
        handle.read(&file, index).unwrap();
    }
    file.invalidate(0..100).unwrap();
    for (pages, resident) in [(0, 700), (40, 700), (100, 660), (1, 659)] {
        assert_eq!(cache.trim(pages * page).unwrap(), pages * page);
        assert_eq!(cache.stats().resident, resident, "after {pages} more");
        assert_eq!(cache.check(), Ok(()));
    }
    // All but the one that is held, which are more than leave at once.
    let held = handle.read(&file, 799).unwrap();
    assert_eq!(cache.trim(usize::MAX).unwrap(), 658 * page);
    assert_eq!((cache.stats().resident, cache.trim(page).unwrap()), (1, 0));
    drop(held);
    assert_eq!(cache.trim(usize::MAX).unwrap(), page);
    assert_eq!((cache.stats().resident, cache.trim(page).unwrap()), (0, 0));
    // The frames without a page get one again.
    for index in 0..1000 {
        handle.read(&file, index).unwrap();
    }
    assert_eq!(cache.stats().resident, 1000);
    assert_eq!(cache.check(), Ok(()));
}
