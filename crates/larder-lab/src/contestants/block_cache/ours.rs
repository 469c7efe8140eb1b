//! `larder_cache::BlockCache`.

use std::io;

use larder::pages::PagePool;
use larder_cache::{BlockCache, CacheHandle, CachedFile, FileId, Storage};

use super::{Blocks, Reader, SharedBlocks};

/// A disk that answers at once and moves no bytes, so that what is measured is the cache, and the pages' own memory is never
/// touched.
#[derive(Debug)]
struct Instant;

impl Storage for Instant {
    fn read(&self, _: FileId, _: u64, into: &mut [u8]) -> io::Result<usize> {
        Ok(into.len())
    }

    fn write(&self, _: FileId, _: u64, from: &[u8]) -> io::Result<usize> {
        Ok(from.len())
    }

    fn sync(&self, _: FileId) -> io::Result<()> {
        Ok(())
    }
}

/// The default rule over real pages. A get is a guard that pins the block, and its end.
pub struct Larder {
    cache: BlockCache,
    file: CachedFile,
}

impl Blocks for Larder {
    type Reader<'s> = OurReader<'s>;

    fn new(blocks: usize) -> anyhow::Result<Self> {
        let pool = PagePool::builder()
            .ignore_environment()
            .populate(false)
            .build()?;
        let cache = BlockCache::builder(Instant)
            .bytes(blocks * larder::os::page_size())
            .read_ahead(0)
            .pool(pool)
            .build()?;
        let file = cache.file(FileId(1))?;
        Ok(Self { cache, file })
    }

    fn reader(&mut self) -> OurReader<'_> {
        self.share()
    }

    fn len(&self) -> usize {
        self.cache.stats().resident
    }
}

impl Larder {
    /// Bytes of its tables, as it says itself.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.cache.stats().table_bytes
    }
}

impl SharedBlocks for Larder {
    fn share(&self) -> OurReader<'_> {
        OurReader {
            handle: self.cache.handle(),
            file: &self.file,
        }
    }
}

/// A handle and the file.
pub struct OurReader<'s> {
    handle: CacheHandle,
    file: &'s CachedFile,
}

impl Reader for OurReader<'_> {
    #[inline]
    fn get(&mut self, block: u64) -> Option<u64> {
        let guard = self.handle.read(self.file, block).ok()?;
        Some(guard.as_ptr().addr() as u64)
    }

    fn bring(&mut self, block: u64) -> bool {
        self.handle.read(self.file, block).is_ok()
    }

    fn load(&mut self, block: u64) -> bool {
        self.handle.read(self.file, block).is_ok()
    }
}
