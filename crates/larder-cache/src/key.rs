//! The name of a block.

use core::ops::RangeInclusive;

/// A file, as the storage knows it: an inode number, a table of a database, a device.
///
/// ```
/// use larder_cache::FileId;
/// assert_ne!(FileId(1), FileId(2));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u64);

/// On whose behalf a file is open: a user, a database, a container. Statistics are summed by it.
///
/// ```
/// use larder_cache::TenantId;
/// assert_eq!(TenantId::default(), TenantId(0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct TenantId(pub u32);

/// Bits of a block's index in its file: 2^40 blocks of 4 KiB are 4 PiB.
const INDEX_BITS: u32 = 40;

/// Most files a cache numbers.
pub(crate) const MOST_FILES: u32 = (1 << (64 - INDEX_BITS)) - 1;

/// The largest index of a block.
pub(crate) const MOST_INDEX: u64 = (1 << INDEX_BITS) - 1;

/// File and index in one word, ordered by file and then by index: the order in which blocks are written back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key(pub(crate) u64);

impl Key {
    /// No block has it: its file number is never given.
    pub(crate) const NONE: Self = Self(u64::MAX);

    /// The index is at most [`MOST_INDEX`].
    pub(crate) fn new(file: u32, index: u64) -> Self {
        Self(u64::from(file) << INDEX_BITS | index)
    }

    /// [`new`](Self::new), of any index.
    pub(crate) fn new_checked(file: u32, index: u64) -> Option<Self> {
        (index <= MOST_INDEX).then(|| Self::new(file, index))
    }

    /// The first block of a file, in whose word an index fits.
    pub(crate) fn first(file: u32) -> Self {
        Self::new(file, 0)
    }

    /// All blocks of a file.
    pub(crate) fn all_of(file: u32) -> RangeInclusive<Self> {
        Self::first(file)..=Self::new(file, MOST_INDEX)
    }

    pub(crate) fn file(self) -> u32 {
        (self.0 >> INDEX_BITS) as u32
    }

    pub(crate) fn index(self) -> u64 {
        self.0 & MOST_INDEX
    }

    /// The key of a frame that holds nothing, with the next one of these: its file number is never given either.
    pub(crate) fn free(next: u32) -> Self {
        Self::new(MOST_FILES, u64::from(next))
    }

    /// Every bit depends on all bits of the key: both halves of a product of 128 bits (wyhash, Wang Yi 2019). 4 instructions.
    #[inline]
    pub(crate) fn hash(self) -> u64 {
        let product = u128::from(self.0) * 0xd6e8_feb8_6659_fd93;
        product as u64 ^ (product >> 64) as u64
    }
}
