//! The crate quick_cache: S3-FIFO's relative, CLOCK-Pro like, with ghosts; one open-addressed table.

use std::sync::Arc;

use quick_cache::{sync, unsync};

use super::{Blocks, Reader, SharedBlocks};

/// `sync::Cache<u64, u32>`: a get copies the value under a shard's lock; nothing is pinned.
pub struct Quick(sync::Cache<u64, u32>);

impl Blocks for Quick {
    type Reader<'s> = &'s sync::Cache<u64, u32>;
    const SLACK: usize = 30;

    fn new(blocks: usize) -> anyhow::Result<Self> {
        Ok(Self(sync::Cache::new(blocks)))
    }

    fn reader(&mut self) -> Self::Reader<'_> {
        &self.0
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

impl SharedBlocks for Quick {
    fn share(&self) -> Self::Reader<'_> {
        &self.0
    }
}

impl Reader for &sync::Cache<u64, u32> {
    #[inline]
    fn get(&mut self, block: u64) -> Option<u64> {
        sync::Cache::get(self, &block).map(u64::from)
    }

    fn bring(&mut self, block: u64) -> bool {
        sync::Cache::insert(self, block, block as u32);
        true
    }
}

/// `sync::Cache<u64, Arc<u64>>`: what a program takes whose blocks must stay while it reads them.
pub struct QuickArc(sync::Cache<u64, Arc<u64>>);

impl Blocks for QuickArc {
    type Reader<'s> = &'s sync::Cache<u64, Arc<u64>>;
    const SLACK: usize = 30;

    fn new(blocks: usize) -> anyhow::Result<Self> {
        Ok(Self(sync::Cache::new(blocks)))
    }

    fn reader(&mut self) -> Self::Reader<'_> {
        &self.0
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

impl SharedBlocks for QuickArc {
    fn share(&self) -> Self::Reader<'_> {
        &self.0
    }
}

impl Reader for &sync::Cache<u64, Arc<u64>> {
    #[inline]
    fn get(&mut self, block: u64) -> Option<u64> {
        let pinned = sync::Cache::get(self, &block)?;
        Some(Arc::as_ptr(&pinned).addr() as u64)
    }

    fn bring(&mut self, block: u64) -> bool {
        sync::Cache::insert(self, block, Arc::new(block));
        true
    }
}

/// `unsync::Cache<u64, u32>`: for one thread, no lock, no atomic operation, nothing pinned.
pub struct QuickUnsync(unsync::Cache<u64, u32>);

impl Blocks for QuickUnsync {
    type Reader<'s> = &'s mut unsync::Cache<u64, u32>;

    fn new(blocks: usize) -> anyhow::Result<Self> {
        Ok(Self(unsync::Cache::new(blocks)))
    }

    fn reader(&mut self) -> Self::Reader<'_> {
        &mut self.0
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

impl Reader for &mut unsync::Cache<u64, u32> {
    #[inline]
    fn get(&mut self, block: u64) -> Option<u64> {
        unsync::Cache::get(self, &block).map(|&value| u64::from(value))
    }

    fn bring(&mut self, block: u64) -> bool {
        unsync::Cache::insert(self, block, block as u32);
        true
    }
}
