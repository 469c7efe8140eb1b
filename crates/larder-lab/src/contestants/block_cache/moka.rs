//! The crate moka: W-TinyLFU behind buffers.

use moka::sync::Cache;

use super::{Blocks, Reader, SharedBlocks};

/// `sync::Cache<u64, u32>`: a get copies the value; nothing is pinned.
pub struct Moka(Cache<u64, u32>);

impl Blocks for Moka {
    type Reader<'s> = &'s Cache<u64, u32>;

    fn new(blocks: usize) -> anyhow::Result<Self> {
        Ok(Self(Cache::new(blocks as u64)))
    }

    fn reader(&mut self) -> Self::Reader<'_> {
        &self.0
    }

    fn len(&self) -> usize {
        self.0.run_pending_tasks();
        usize::try_from(self.0.entry_count()).unwrap_or(usize::MAX)
    }
}

impl SharedBlocks for Moka {
    fn share(&self) -> Self::Reader<'_> {
        &self.0
    }
}

impl Reader for &Cache<u64, u32> {
    #[inline]
    fn get(&mut self, block: u64) -> Option<u64> {
        Cache::get(self, &block).map(u64::from)
    }

    fn bring(&mut self, block: u64) -> bool {
        Cache::insert(self, block, block as u32);
        true
    }

    fn load(&mut self, block: u64) -> bool {
        Cache::get_with(self, block, || block as u32);
        true
    }
}
