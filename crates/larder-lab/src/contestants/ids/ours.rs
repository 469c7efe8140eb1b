//! larder's own, for one owner.

use larder::ids::rule::{Cyclic, Epochs, Fifo, Lifo, Lowest, Random};
use larder::ids::{IdRange, Ids, Rule};

use super::{IdSource, Start};

/// A rule as it is compared: with its default parameters.
pub trait Made: Rule {
    /// The rule.
    fn made() -> Self;
}

macro_rules! made {
    ($($rule:ty),*) => {$(
        impl Made for $rule {
            fn made() -> Self {
                Self::default()
            }
        }
    )*};
}

made!(Cyclic, Epochs, Fifo, Lifo, Lowest);

impl Made for Random {
    /// The same sequence in every round.
    fn made() -> Self {
        Self::new([7; 32])
    }
}

impl<R: Made> IdSource for Ids<R> {
    fn start(start: &Start) -> anyhow::Result<Self> {
        let range = IdRange::new(0, start.count() - 1)?;
        let mut ids = Ids::new(range, R::made())?;
        if !start.mostly_free() {
            ids.reserve(range)?;
        }
        for &id in start.listed() {
            if start.mostly_free() {
                ids.alloc_at(u64::from(id))?;
            } else {
                Ids::free(&mut ids, u64::from(id))?;
            }
        }
        Ok(ids)
    }

    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        Ids::alloc(self).ok()
    }

    #[inline]
    fn free(&mut self, id: u64) -> bool {
        Ids::free(self, id).is_ok()
    }

    fn bytes(&self) -> Option<usize> {
        Some(Ids::bytes(self))
    }
}
