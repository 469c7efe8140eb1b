//! The order of the locks: each has a rank, and a thread takes them by ascending rank. Debug builds check that.
//!
//! docs/design.md has the table ("Locks and waits"); a test compares it with [`Rank`]. A breach is a line on standard error and
//! the end of the process, since a panic would allocate, and malloc's heap has these locks, too. Models of threads (loom,
//! shuttle) share one thread of the system, so they are not checked.

/// The kinds of locks, in the order in which a thread takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// The list of what is locked around a fork.
    ForkList,
    /// One sync of a file at a time.
    FileSync,
    /// The rule, the shadows and the dirty blocks of a block cache.
    BlockCache,
    /// The rows of pins of a cache's handles.
    PinRows,
    /// What threads sleep on that wait for a block's latch.
    LatchPark,
    /// The lists of a storage that comes with the library.
    Storage,
    /// The map of an identifier space and its waiting threads.
    IdLedger,
    /// The segments of an arena.
    Arena,
    /// The records of a debug heap.
    DebugHeap,
    /// The blocks between guard pages.
    Guards,
    /// The samples of a heap profile.
    HeapProfile,
    /// The thread that reaps a family of caches.
    Reaper,
    /// The caches of a family by number.
    CacheTable,
    /// The slabs of one cache.
    Slabs,
    /// The lists of large objects of a family.
    LargeList,
    /// The metadata blocks of a family.
    Metadata,
    /// The helper thread of a pool.
    PoolHelper,
    /// The account of a pool's pages.
    PoolPages,
}

/// What a lock guards says which rank the lock has.
pub trait Ranked {
    /// The rank.
    const RANK: Rank;
}

#[cfg(all(debug_assertions, not(any(loom, shuttle))))]
pub(crate) use checked::Place;
#[cfg(all(debug_assertions, not(any(loom, shuttle))))]
pub use checked::{calls, elsewhere, sleeps};
#[cfg(not(all(debug_assertions, not(any(loom, shuttle)))))]
pub(crate) use unchecked::Place;
#[cfg(not(all(debug_assertions, not(any(loom, shuttle)))))]
pub use unchecked::{calls, elsewhere, sleeps};

#[cfg(all(debug_assertions, not(any(loom, shuttle))))]
mod checked {
    use core::cell::Cell;

    use super::Rank;
    use crate::os::say::say;

    impl Rank {
        pub(super) const ALL: [Self; Self::PoolPages as usize + 1] = [
            Self::ForkList,
            Self::FileSync,
            Self::BlockCache,
            Self::PinRows,
            Self::LatchPark,
            Self::Storage,
            Self::IdLedger,
            Self::Arena,
            Self::DebugHeap,
            Self::Guards,
            Self::HeapProfile,
            Self::Reaper,
            Self::CacheTable,
            Self::Slabs,
            Self::LargeList,
            Self::Metadata,
            Self::PoolHelper,
            Self::PoolPages,
        ];

        /// Whether a thread may wait for something else than a lock while it holds this one.
        pub(super) const fn may_sleep(self) -> bool {
            matches!(self, Self::FileSync | Self::DebugHeap)
        }
    }

    /// How many locks of each rank the thread holds: many of one rank only around a fork.
    type Held = [u32; Rank::ALL.len()];

    thread_local! {
        // Constant and without a destructor: it is there from a thread's first allocation to its last.
        // A count each, so that a signal handler between a read and a write meets, and leaves, whole counts of all other ranks.
        static HELD: [Cell<u32>; Rank::ALL.len()] = const { [const { Cell::new(0) }; Rank::ALL.len()] };
    }

    fn change(rank: Rank, to: impl FnOnce(u32) -> u32) {
        HELD.with(|held| {
            let count = &held[rank as usize];
            count.set(to(count.get()));
        });
    }

    /// The last rank that is held and is as `is` says.
    fn last(is: impl Fn(Rank) -> bool) -> Option<Rank> {
        let mut ranks = Rank::ALL.into_iter().rev();
        HELD.with(|held| ranks.find(|&rank| held[rank as usize].get() > 0 && is(rank)))
    }

    #[cold]
    fn breach(does: core::fmt::Arguments<'_>, held: Rank) -> ! {
        say(format_args!(
            "locks: a thread that holds {held:?} {does}; docs/design.md has the order (Locks and waits)"
        ));
        std::process::abort();
    }

    /// A lock's place in the order.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Place(Rank);

    impl Place {
        pub(crate) const fn of(rank: Rank) -> Self {
            Self(rank)
        }

        /// The thread is about to take the lock, and may wait for it.
        pub(crate) fn before(self) {
            if let Some(held) = last(|rank| rank >= self.0) {
                breach(format_args!("takes {:?}", self.0), held);
            }
        }

        /// The thread has the lock.
        pub(crate) fn taken(self) {
            change(self.0, |n| n + 1);
        }

        /// The thread has released the lock.
        pub(crate) fn released(self) {
            change(self.0, |n| n.saturating_sub(1));
        }
    }

    /// The thread is about to wait for `what`, which is no lock.
    pub fn sleeps(what: &str) {
        if let Some(held) = last(|rank| !rank.may_sleep()) {
            breach(format_args!("waits for {what}"), held);
        }
    }

    /// The thread is about to call `what`, which is the user's: no lock from `from` on is held. Until the value is dropped, the
    /// thread counts as one that holds none, since the user's code may use other caches and spaces.
    pub fn calls(what: &str, from: Rank) -> Outside {
        if let Some(held) = last(|rank| rank >= from) {
            breach(format_args!("calls {what}"), held);
        }
        elsewhere()
    }

    /// The thread calls the user's code with a lock held; that code must not use the lock's owner. Until the value is dropped,
    /// the thread counts as one that holds none, since that code may use other caches.
    pub fn elsewhere() -> Outside {
        Outside(HELD.with(|held| core::array::from_fn(|rank| held[rank].replace(0))))
    }

    /// What the thread held when it called the user's code.
    #[must_use]
    pub struct Outside(Held);

    impl Drop for Outside {
        fn drop(&mut self) {
            HELD.with(|held| {
                for (count, former) in held.iter().zip(self.0) {
                    count.set(former);
                }
            });
        }
    }
}

#[cfg(not(all(debug_assertions, not(any(loom, shuttle)))))]
mod unchecked {
    use super::Rank;

    /// A lock's place in the order, which these builds do not check.
    #[derive(Debug, Clone, Copy)]
    #[cfg_attr(loom, derive(Default))]
    pub(crate) struct Place;

    impl Place {
        #[inline(always)]
        pub(crate) const fn of(_: Rank) -> Self {
            Self
        }
        #[inline(always)]
        pub(crate) fn before(self) {}
        #[inline(always)]
        pub(crate) fn taken(self) {}
        #[inline(always)]
        pub(crate) fn released(self) {}
    }

    /// The thread is about to wait for something that is no lock.
    #[inline(always)]
    pub fn sleeps(_: &str) {}

    /// The thread is about to call code of the user's.
    #[inline(always)]
    pub fn calls(_: &str, _: Rank) -> Outside {
        Outside
    }

    /// The thread calls code of the user's with a lock held.
    #[inline(always)]
    pub fn elsewhere() -> Outside {
        Outside
    }

    /// What the thread held when it called code of the user's.
    #[must_use]
    pub struct Outside;
}

#[cfg(all(test, debug_assertions, not(any(loom, shuttle))))]
mod tests;
