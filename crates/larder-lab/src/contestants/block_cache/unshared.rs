//! Caches of one thread, which lend themselves: no lock, no atomic operation, nothing pinned.

use super::{Blocks, Reader};

/// Declares one: a name, and the crate's type from numbers to numbers.
macro_rules! unshared {
    ($(#[$about:meta])* $name:ident, $cache:ty) => {
        $(#[$about])*
        pub struct $name($cache);

        impl Blocks for $name {
            type Reader<'s> = &'s mut $cache;

            fn new(blocks: usize) -> anyhow::Result<Self> {
                Ok(Self(<$cache>::new(blocks)))
            }

            fn reader(&mut self) -> Self::Reader<'_> {
                &mut self.0
            }

            fn len(&self) -> usize {
                self.0.len()
            }
        }

        impl Reader for &mut $cache {
            #[inline]
            fn get(&mut self, block: u64) -> Option<u64> {
                <$cache>::get(self, &block).map(|&value| u64::from(value))
            }

            fn bring(&mut self, block: u64) -> bool {
                <$cache>::insert(self, block, block as u32);
                true
            }
        }
    };
}

unshared!(
    /// The crate hashlink: LRU by a table whose entries are linked.
    HashLink,
    hashlink::LruCache<u64, u32>
);

unshared!(
    /// The crate quick_cache for one thread.
    QuickUnsync,
    quick_cache::unsync::Cache<u64, u32>
);
