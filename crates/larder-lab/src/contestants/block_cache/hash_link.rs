//! The crate hashlink: LRU by a table whose entries are linked.

use hashlink::LruCache;

use super::{Blocks, Reader};

/// `LruCache<u64, u32>`: for one thread, nothing pinned.
pub struct HashLink(LruCache<u64, u32>);

impl Blocks for HashLink {
    type Reader<'s> = &'s mut LruCache<u64, u32>;

    fn new(blocks: usize) -> anyhow::Result<Self> {
        Ok(Self(LruCache::new(blocks)))
    }

    fn reader(&mut self) -> Self::Reader<'_> {
        &mut self.0
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

impl Reader for &mut LruCache<u64, u32> {
    #[inline]
    fn get(&mut self, block: u64) -> Option<u64> {
        LruCache::get(self, &block).map(|&value| u64::from(value))
    }

    fn bring(&mut self, block: u64) -> bool {
        LruCache::insert(self, block, block as u32);
        true
    }
}
