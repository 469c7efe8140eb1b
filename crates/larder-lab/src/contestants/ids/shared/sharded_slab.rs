//! The crate sharded-slab: a slab for each thread, with frees from others.

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
