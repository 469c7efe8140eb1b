//! The crate sharded-slab: a slab for each thread, with frees from others.

use anyhow::ensure;

use super::super::{IdSource, Start};
use super::Common;

/// `Slab<()>` with its default settings. It is not bounded by `count`: it grows.
#[derive(Debug)]
pub struct ShardedSlab(sharded_slab::Slab<()>);

impl Common for ShardedSlab {
    const ABOUT: &'static str = "crate sharded-slab, Slab<()>; it grows";
    const BOUNDED: bool = false;

    fn make(_: u64) -> anyhow::Result<Self> {
        Ok(Self(sharded_slab::Slab::new()))
    }

    #[inline]
    fn get(&self) -> Option<u64> {
        self.0.insert(()).map(|key| key as u64)
    }

    #[inline]
    fn put(&self, id: u64) -> bool {
        self.0.remove(id as usize)
    }
}

/// Of one thread. The lower half of a key is its place while the slab has one shard.
impl IdSource for ShardedSlab {
    const ABOUT: &'static str = <Self as Common>::ABOUT;

    fn start(start: &Start) -> anyhow::Result<Self> {
        ensure!(start.taken() == 0, "it has no identifier before the first");
        Self::make(start.count())
    }

    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        self.get()
    }

    #[inline]
    fn free(&mut self, id: u64) -> bool {
        self.put(id)
    }
}
