//! The crate quick_cache for several threads: a relative of S3-FIFO and CLOCK-Pro, with ghosts; one open-addressed table.

use std::convert::Infallible;
use std::sync::Arc;

use quick_cache::sync;

use super::{Blocks, Reader, SharedBlocks};

/// What a block's number leads to.
pub trait Kept: Clone + Send + Sync {
    /// Of a block that comes.
    fn of(block: u64) -> Self;

    /// Something of it.
    fn word(&self) -> u64;
}

impl Kept for u32 {
    fn of(block: u64) -> Self {
        block as Self
    }

    #[inline]
    fn word(&self) -> u64 {
        u64::from(*self)
    }
}

impl Kept for Arc<u64> {
    fn of(block: u64) -> Self {
        Self::new(block)
    }

    #[inline]
    fn word(&self) -> u64 {
        Self::as_ptr(self).addr() as u64
    }
}

/// `sync::Cache<u64, V>`: a get copies the value under a shard's lock.
pub struct Shared<V>(sync::Cache<u64, V>);

/// A get copies a number; nothing is pinned.
pub type Quick = Shared<u32>;

/// What a program takes whose blocks must stay while it reads them.
pub type QuickArc = Shared<Arc<u64>>;

impl<V: Kept> Blocks for Shared<V> {
    type Reader<'s>
        = &'s sync::Cache<u64, V>
    where
        V: 's;
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

impl<V: Kept> SharedBlocks for Shared<V> {
    fn share(&self) -> Self::Reader<'_> {
        &self.0
    }
}

impl<V: Kept> Reader for &sync::Cache<u64, V> {
    #[inline]
    fn get(&mut self, block: u64) -> Option<u64> {
        Some(sync::Cache::get(self, &block)?.word())
    }

    fn bring(&mut self, block: u64) -> bool {
        sync::Cache::insert(self, block, V::of(block));
        true
    }

    fn load(&mut self, block: u64) -> bool {
        let load = || Ok::<_, Infallible>(V::of(block));
        sync::Cache::get_or_insert_with(self, &block, load).is_ok()
    }
}
