//! Caches that find a block by its number: larder's and today's crates.

#[cfg(feature = "peers")]
mod moka;
mod ours;
#[cfg(feature = "peers")]
mod quick;
#[cfg(feature = "peers")]
mod unshared;

#[cfg(feature = "peers")]
pub use moka::Moka;
pub use ours::Larder;
#[cfg(feature = "peers")]
pub use quick::{Quick, QuickArc};
#[cfg(feature = "peers")]
pub use unshared::{HashLink, QuickUnsync};

/// A cache of blocks. What it hands out differs: see the contestants.
pub trait Blocks: Sized {
    /// What gets from it.
    type Reader<'s>: Reader
    where
        Self: 's;

    /// An empty cache with room for `blocks` blocks.
    ///
    /// # Errors
    /// No memory, a size that it cannot have.
    fn new(blocks: usize) -> anyhow::Result<Self>;

    /// A thread's way in, the only one there is now.
    fn reader(&mut self) -> Self::Reader<'_>;

    /// Blocks that are in.
    fn len(&self) -> usize;

    /// Nothing is in.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// More room than blocks that is needed so that all of them stay, in percent: caches in shards fill them unevenly.
    const SLACK: usize = 0;
}

/// Caches that several threads use at once.
pub trait SharedBlocks: Blocks + Sync {
    /// One of several ways in.
    fn share(&self) -> Self::Reader<'_>;
}

/// Gets blocks.
pub trait Reader {
    /// Uses a block, and returns something of what was handed out; `None` if it is not there.
    fn get(&mut self, block: u64) -> Option<u64>;

    /// Brings a block that is not there; another one leaves when there is no room. False if that failed.
    fn bring(&mut self, block: u64) -> bool;

    /// Uses a block, which is brought if it is not there: by one call of the cache's, if it has one for that.
    fn load(&mut self, block: u64) -> bool {
        self.get(block).is_some() || self.bring(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds_what_it_was_given<B: Blocks>() {
        let mut cache = B::new(1000 + 10 * B::SLACK).expect("made");
        let mut reader = cache.reader();
        for block in 0..1000 {
            assert!(reader.bring(block));
        }
        for block in 0..1000 {
            assert!(reader.get(block).is_some(), "{block}");
        }
        drop(reader);
        assert_eq!(cache.len(), 1000);
        let mut reader = cache.reader();
        for block in 1000..10_000 {
            assert!(reader.load(block));
        }
        drop(reader);
        // Each shard rounds its part up.
        let most = (1000 + 10 * B::SLACK) * 101 / 100;
        assert!(cache.len() <= most, "{}", cache.len());
    }

    #[test]
    fn every_cache_holds_what_it_was_given_and_is_bounded() {
        holds_what_it_was_given::<Larder>();
        #[cfg(feature = "peers")]
        {
            holds_what_it_was_given::<Quick>();
            holds_what_it_was_given::<QuickArc>();
            holds_what_it_was_given::<QuickUnsync>();
            holds_what_it_was_given::<HashLink>();
            holds_what_it_was_given::<Moka>();
        }
    }
}
