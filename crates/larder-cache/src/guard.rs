//! Blocks that a thread has alone, to write them.

use core::ops::{Deref, DerefMut};

use super::frames::Claimed;
use larder_policy::Frame;

/// A block to be written. While this is there, the block stays in memory and no other thread reads or writes it; it is
/// written back at some time after. If its holder panics, what was written until then stays.
///
/// ```
/// # use larder_cache::{BlockCache, FileId, MemoryStorage};
/// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
/// # let file = cache.file(FileId(1))?;
/// let mut handle = cache.handle();
/// handle.overwrite(&file, 1)?.fill(7);
/// assert_eq!(handle.read(&file, 1)?[9], 7);
/// # Ok::<(), larder_cache::CacheError>(())
/// ```
pub struct BlockMut<'c> {
    page: Claimed<'c>,
}

impl core::fmt::Debug for BlockMut<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("BlockMut").finish_non_exhaustive()
    }
}

impl<'c> BlockMut<'c> {
    /// The frame has a page: it holds a block, which is dirty.
    pub(super) fn new(page: Claimed<'c>) -> Self {
        debug_assert!(page.has_page());
        Self { page }
    }

    pub(super) fn frame(&self) -> Frame {
        self.page.frame()
    }
}

impl Deref for BlockMut<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.page
    }
}

impl DerefMut for BlockMut<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.page
    }
}
