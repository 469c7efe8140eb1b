//! Bytes of the block cache's tables for each block that is in, by its own count, held against ceilings: so that none grows
//! unseen. `cargo test -p larder --test blocks_memory -- --nocapture` prints them.

#![allow(clippy::unwrap_used)]

use std::io;

use larder::cache::{BlockCache, FileId, Storage};
use larder::pages::PagePool;

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
        (1 << 15, 38.2, 43.2),
        (100_000, 38.1, 43.1),
        (1 << 17, 37.0, 42.0),
    ] {
        let now = bytes_a_block(blocks);
        println!("{blocks} blocks: {now:.1?} bytes a block");
        assert!(now[0] <= full && now[1] <= turned_over, "{blocks}: {now:?}");
        // The frame alone has 16.
        assert!(now[0] > 16.0 && now[1] > now[0]);
    }
}
