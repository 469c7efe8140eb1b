//! What a cache has done and holds.

use core::fmt;

/// Bytes of a cache's name at most.
const MOST: usize = 31;

/// A cache's name: up to 31 bytes, kept without a heap.
///
/// ```
/// use larder::objects::Name;
/// let name = Name::new("a name of more than thirty-one bytes");
/// assert_eq!(name.to_string(), "a name of more than thirty-one ");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name {
    len: u8,
    bytes: [u8; MOST],
}

impl Name {
    /// The first 31 bytes of `name`, or fewer where that would cut a character.
    ///
    /// ```
    /// use larder::objects::Name;
    /// assert_eq!(Name::new("inode").as_str(), "inode");
    /// ```
    #[must_use]
    pub fn new(name: &str) -> Self {
        let len = name.floor_char_boundary(MOST);
        let mut bytes = [0; MOST];
        bytes[..len].copy_from_slice(&name.as_bytes()[..len]);
        Self {
            len: len as u8,
            bytes,
        }
    }

    /// The name.
    ///
    /// ```
    /// # use larder::objects::Name;
    /// assert_eq!(Name::new("inode").as_str(), "inode");
    /// ```
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.len as usize]).unwrap_or_default()
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Numbers of a cache. Read without stopping any thread, so they belong to slightly different moments.
///
/// ```
/// use larder::objects::{Family, ObjectCache};
/// let cache = ObjectCache::new(&Family::new()?, || 0_u64)?;
/// let value = cache.get()?;
/// let stats = cache.stats();
/// assert_eq!(stats.objects_per_slab * stats.slabs, stats.in_slabs + stats.out);
/// assert_eq!((stats.size, stats.refused), (8, 0));
/// # drop(value);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// Its name.
    pub name: Name,
    /// Bytes of an object as it was asked for.
    pub size: usize,
    /// Bytes from one object to the next.
    pub stride: usize,
    /// Objects of a slab.
    pub objects_per_slab: usize,
    /// Slabs that exist.
    pub slabs: usize,
    /// Bytes of these slabs.
    pub held_bytes: usize,
    /// Most bytes of slabs; `usize::MAX` without a limit.
    pub limit_bytes: usize,
    /// Free objects in slabs.
    pub in_slabs: usize,
    /// Objects in users' hands or in stock: a magazine of a CPU, of a handle, or of the depot.
    pub out: usize,
    /// Gets served from a CPU's magazines, where the stock counts them. Handles count apart.
    pub hits: u64,
    /// Gets that found their CPU's magazines empty.
    pub misses: u64,
    /// Objects that a constructor made.
    pub constructed: u64,
    /// Constructed objects that ended with their slab, or whose value was moved out.
    pub destroyed: u64,
    /// Pointers that were put and did not belong here; they were not taken.
    pub refused: u64,
    /// Rounds that a magazine may hold now.
    pub magazine_rounds: usize,
    /// Magazines that exist.
    pub magazines: usize,
}
