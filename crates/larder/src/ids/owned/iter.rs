//! The identifiers that are allocated, one by one and in runs.

use super::Ids;
use crate::ids::rule::Order;
use crate::ids::{IdRange, Rule};

impl<R: Rule> Ids<R> {
    /// The allocated identifiers, ascending.
    ///
    /// ```
    /// use larder::ids::{Ids, rule::Lowest};
    ///
    /// let ids = Ids::rebuild(0u8..=255, Lowest, [9, 4])?;
    /// assert!(ids.iter().eq([4, 9]));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn iter(&self) -> Allocated<'_, R> {
        Allocated {
            ids: self,
            from: Some(self.range.first()),
        }
    }

    /// The allocated identifiers as ranges: ascending, and no two of them touch.
    ///
    /// ```
    /// use larder::ids::{IdRange, Ids, rule::Lowest};
    ///
    /// let ids = Ids::rebuild(0u8..=255, Lowest, [4, 5, 6, 9])?;
    /// assert!(ids.runs().eq([IdRange::new(4, 6)?, IdRange::new(9, 9)?]));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn runs(&self) -> Runs<'_, R> {
        Runs {
            ids: self,
            from: Some(self.range.first()),
        }
    }
}

impl<'a, R: Rule> IntoIterator for &'a Ids<R> {
    type Item = u64;
    type IntoIter = Allocated<'a, R>;

    fn into_iter(self) -> Allocated<'a, R> {
        self.iter()
    }
}

/// The allocated identifiers, ascending, from [`Ids::iter`].
#[derive(Debug)]
pub struct Allocated<'a, R: Rule> {
    ids: &'a Ids<R>,
    from: Option<u64>,
}

impl<R: Rule> Iterator for Allocated<'_, R> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let id = self.ids.next_allocated(self.from?);
        self.from = id.and_then(|id| id.checked_add(1));
        id
    }
}

/// The allocated identifiers as ranges, from [`Ids::runs`].
#[derive(Debug)]
pub struct Runs<'a, R: Rule> {
    ids: &'a Ids<R>,
    from: Option<u64>,
}

impl<R: Rule> Iterator for Runs<'_, R> {
    type Item = IdRange;

    fn next(&mut self) -> Option<IdRange> {
        let Ids { range, order, .. } = self.ids;
        let first = self.ids.next_allocated(self.from.take()?)?;
        let last = match order.next_free(first - range.first()) {
            Some(end) => {
                self.from = Some(range.first() + end);
                range.first() + end - 1
            }
            None => range.last(),
        };
        IdRange::new(first, last).ok()
    }
}
