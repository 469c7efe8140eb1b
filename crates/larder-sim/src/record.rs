//! Records, which every trace becomes: uses of blocks, in order.

/// What a request does with a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Kind {
    /// Reads it.
    #[default]
    Read = 0,
    /// Writes it (whole: nothing has to be read before).
    Write = 1,
    /// Brings it in without using it.
    Readahead = 2,
    /// Its contents are gone (unlink, truncate, discard): a cache forgets it, and nothing is counted.
    Remove = 3,
    /// The cache that was recorded had to keep it from here on, since it was changed. No use; nothing comes in.
    Dirty = 4,
    /// And only up to here: it was written.
    Clean = 5,
    /// A thread of the cache that was recorded held it while room was made for the next block that comes.
    Held = 6,
    /// For the rule of the cache that was recorded a second had passed. This is about no block: the record repeats one.
    Tick = 7,
}

impl Kind {
    /// All, by their numbers.
    pub(crate) const ALL: [Self; 8] = [
        Self::Read,
        Self::Write,
        Self::Readahead,
        Self::Remove,
        Self::Dirty,
        Self::Clean,
        Self::Held,
        Self::Tick,
    ];

    /// Its name in a CSV.
    ///
    /// ```
    /// assert_eq!(larder_sim::Kind::Readahead.name(), "readahead");
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Readahead => "readahead",
            Self::Remove => "remove",
            Self::Dirty => "dirty",
            Self::Clean => "clean",
            Self::Held => "held",
            Self::Tick => "tick",
        }
    }

    /// The block is read or written, which is counted.
    ///
    /// ```
    /// use larder_sim::Kind;
    /// assert!(Kind::Write.is_use() && !Kind::Readahead.is_use());
    /// ```
    #[must_use]
    pub const fn is_use(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }

    /// What the cache that was recorded did by itself: it says nothing of the uses.
    ///
    /// ```
    /// use larder_sim::Kind;
    /// assert!(Kind::Clean.is_state() && !Kind::Remove.is_state());
    /// ```
    #[must_use]
    pub const fn is_state(self) -> bool {
        self as u8 >= Self::Dirty as u8
    }
}

/// One use of one block. 32 bytes.
///
/// A request of the traced program (a read call, a disk command) that covers several blocks is as many records with one
/// request number. Rules that count several touches by one request once need no more.
///
/// ```
/// use larder_sim::{Kind, Record, block_of};
///
/// let block = block_of(3, 7).expect("a file number below 2^24, a page below 2^40");
/// let record = Record { block, request: 12, file: 3, ..Record::default() };
/// assert_eq!(record.kind, Kind::Read);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Record {
    /// Which block. Equal numbers are the same block; nothing else is known of them. Traces with files or several disks
    /// put the number together with [`block_of`].
    pub block: u64,
    /// When, in the unit of the trace (microseconds where the format has a clock, seconds in oracleGeneral), from any
    /// beginning. 0 where there is no clock.
    pub time: u64,
    /// Number of the request, counted from 0 in order of arrival; it wraps.
    pub request: u32,
    /// Bytes of the block that are used, or of the whole object in traces of objects. 0 if unknown.
    pub bytes: u32,
    /// Number of the file or disk, 0 where there is only one.
    pub file: u32,
    /// Client, process or tenant of the request, 0 where there is only one. 65,535 stands for all larger numbers, too.
    pub tenant: u16,
    /// What is done with it.
    pub kind: Kind,
}

/// The tenant's number that stands for all larger ones, too.
pub(crate) const LAST_TENANT: u16 = u16::MAX;

/// A tenant's number as a [`Record`] has it, whatever the format allows. The writers count the uses of [`LAST_TENANT`] as lost.
pub(crate) fn tenant_of(number: u64) -> u16 {
    u16::try_from(number).unwrap_or(LAST_TENANT)
}

/// Files that [`block_of`] can tell apart.
pub(crate) const MOST_FILES: u32 = 1 << 24;
/// Pages of one file that [`block_of`] can tell apart.
pub(crate) const MOST_PAGES: u64 = 1 << 40;

/// The number of a file's page as a block: the file above, the page in the lower 40 bits. None when either is too large.
///
/// ```
/// assert_eq!(larder_sim::block_of(1, 2), Some((1 << 40) | 2));
/// assert_eq!(larder_sim::block_of(1 << 24, 0), None);
/// ```
#[must_use]
pub const fn block_of(file: u32, page: u64) -> Option<u64> {
    if file < MOST_FILES && page < MOST_PAGES {
        Some(((file as u64) << 40) | page)
    } else {
        None
    }
}
