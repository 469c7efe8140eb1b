//! Blocks in somebody's hands.

use std::ops::{Deref, DerefMut};
use std::sync::{RwLockReadGuard, RwLockWriteGuard};

use crate::pages::PageBuf;

/// A block to be read. It stays in memory, and nobody writes it, while this is there.
///
/// ```
/// # use larder::cache::{BlockCache, FileId, MemoryStorage};
/// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
/// # let file = cache.file(FileId(1))?;
/// let mut handle = cache.handle();
/// let one = handle.read(&file, 1)?;
/// let two = handle.read(&file, 2)?;
/// assert_eq!(one[..], two[..]);
/// # Ok::<(), larder::cache::CacheError>(())
/// ```
#[derive(Debug)]
pub struct BlockRef<'c> {
    page: RwLockReadGuard<'c, Option<PageBuf>>,
}

impl<'c> BlockRef<'c> {
    /// The frame has a page: it holds a block.
    pub(super) fn new(page: RwLockReadGuard<'c, Option<PageBuf>>) -> Self {
        debug_assert!(page.is_some());
        Self { page }
    }
}

impl Deref for BlockRef<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.page.as_deref().unwrap_or(&[])
    }
}

/// A block to be written. It stays in memory, and nobody else reads or writes it, while this is there; it is written back at some
/// time after. If its holder panics, what was written until then stays.
///
/// ```
/// # use larder::cache::{BlockCache, FileId, MemoryStorage};
/// # let cache = BlockCache::builder(MemoryStorage::default()).build()?;
/// # let file = cache.file(FileId(1))?;
/// let mut handle = cache.handle();
/// handle.overwrite(&file, 1)?.fill(7);
/// assert_eq!(handle.read(&file, 1)?[9], 7);
/// # Ok::<(), larder::cache::CacheError>(())
/// ```
#[derive(Debug)]
pub struct BlockMut<'c> {
    page: RwLockWriteGuard<'c, Option<PageBuf>>,
}

impl<'c> BlockMut<'c> {
    /// The frame has a page: it holds a block, which is dirty.
    pub(super) fn new(page: RwLockWriteGuard<'c, Option<PageBuf>>) -> Self {
        debug_assert!(page.is_some());
        Self { page }
    }
}

impl Deref for BlockMut<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.page.as_deref().unwrap_or(&[])
    }
}

impl DerefMut for BlockMut<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.page.as_deref_mut().unwrap_or(&mut [])
    }
}
