//! The crate sharded-slab: a slab for each thread, with frees from others.

use super::{LocalIds, SharedIds};

/// `Slab<()>` with its default settings. It is not bounded by `count`: it grows.
#[derive(Debug)]
pub struct ShardedSlab(sharded_slab::Slab<()>);

impl SharedIds for ShardedSlab {
    const ABOUT: &'static str = "crate sharded-slab, Slab<()>; it grows";

    type Local<'a> = &'a Self;

    fn new(_: u64) -> anyhow::Result<Self> {
        Ok(Self(sharded_slab::Slab::new()))
    }

    fn local(&self, _: usize, _: usize) -> &Self {
        self
    }

    const BOUNDED: bool = false;
}

impl LocalIds for &ShardedSlab {
    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        self.0.insert(()).map(|key| key as u64)
    }

    #[inline]
    fn free(&mut self, id: u64) -> bool {
        self.0.remove(id as usize)
    }
}
