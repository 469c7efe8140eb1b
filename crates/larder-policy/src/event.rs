//! The events that a rule receives.

/// Number of a place in memory that holds a block: dense, from 0 to the capacity.
///
/// ```
/// use larder_policy::{Arrival, Admission, Block, Frame, Lru, Policy};
/// let mut rule = Lru::fifo(8)?;
/// let frame: Frame = 7; // the last of eight
/// rule.insert(frame, Arrival::demand(Block(1), 0, Admission::default()));
/// assert_eq!(rule.len(), 1);
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
pub type Frame = u32;

/// The identity of a block, for rules that count how often a block was seen (sketches). Any 64-bit value that is the same each
/// time: the index of a block, or a hash of file and offset. Rules must hash it themselves.
///
/// ```
/// use larder_policy::Block;
/// assert_ne!(Block(1), Block(2));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Block(pub u64);

/// A word that the rule must be shown when an evicted block comes back. Opaque to the owner, which may forget it at any time; the top
/// bit is never set, so that an owner can keep a frame number and a shadow in one word.
///
/// ```
/// use larder_policy::Shadow;
/// assert_eq!(Shadow::new(7).get(), 7);
/// assert_eq!(Shadow::new(u64::MAX).get(), u64::MAX >> 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shadow(u64);

impl Shadow {
    /// A shadow of 63 bits; the top bit of `bits` is dropped.
    ///
    /// ```
    /// # use larder_policy::Shadow;
    /// assert_eq!(Shadow::new(1 << 63 | 7), Shadow::new(7));
    /// ```
    pub const fn new(bits: u64) -> Self {
        Self(bits & (u64::MAX >> 1))
    }

    /// The bits.
    ///
    /// ```
    /// # use larder_policy::Shadow;
    /// assert_eq!(Shadow::new(7).get(), 7);
    /// ```
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// What a rule decided at a miss ([`Policy::miss`](super::Policy::miss)), to be passed back at the insertion of the same block:
/// other misses may come in between.
///
/// ```
/// use larder_policy::Admission;
/// assert_eq!(Admission::default(), Admission(0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Admission(pub u64);

/// Why a block comes into memory.
///
/// ```
/// use larder_policy::{Admission, Arrival, Block, Clock, Policy, Reason, Touch};
/// let mut rule = Clock::new(2)?;
/// for (frame, reason) in [(0, Reason::Demand), (1, Reason::Readahead)] {
///     let arrival = Arrival { reason, ..Arrival::demand(Block(frame.into()), 0, Admission::default()) };
///     rule.insert(frame, arrival);
///     rule.touch(frame, Touch { request: 1 });
/// }
/// let mut gone = Vec::new();
/// rule.evict(&mut gone, 1);
/// assert_eq!(gone, [1]); // its touch was the first use, that of the other the second
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Reason {
    /// A request reads it now. The insertion counts as its first use.
    #[default]
    Demand,
    /// It is expected to be read. It counts as unused until its first touch.
    Readahead,
    /// A request writes it whole. The insertion counts as its first use.
    Write,
}

/// A block that comes into a frame.
///
/// ```
/// use larder_policy::{Admission, Arrival, Block, Reason};
/// let arrival = Arrival::demand(Block(3), 1, Admission::default());
/// assert_eq!(arrival.reason, Reason::Demand);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Which block.
    pub block: Block,
    /// Why it comes.
    pub reason: Reason,
    /// The number of the request that brings it, see [`Touch::request`].
    pub request: u32,
    /// What [`Policy::miss`](super::Policy::miss) said of it.
    pub admission: Admission,
}

impl Arrival {
    /// A block that a request reads.
    ///
    /// ```
    /// # use larder_policy::{Admission, Arrival, Block, Reason};
    /// let arrival = Arrival::demand(Block(3), 1, Admission(9));
    /// assert_eq!((arrival.block, arrival.request, arrival.admission), (Block(3), 1, Admission(9)));
    /// ```
    pub const fn demand(block: Block, request: u32, admission: Admission) -> Self {
        Self {
            block,
            reason: Reason::Demand,
            request,
            admission,
        }
    }
}

/// A use of a resident block.
///
/// ```
/// use larder_policy::Touch;
/// let touch = Touch { request: 1 };
/// assert_eq!(touch.request, 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touch {
    /// The number of the request (a read or write call) that uses it; it wraps. Several touches of one request are one use to
    /// rules that care: four reads of 1 KiB from one page are what misled the rules of 2001.
    pub request: u32,
}
