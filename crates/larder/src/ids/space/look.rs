//! What can be seen of a space.

use super::{IdSpace, SharedRule};
use crate::ids::rule::Order;

impl<R: SharedRule> IdSpace<R> {
    /// Whether the identifier is allocated or reserved; false for one outside of the range.
    pub fn is_allocated(&self, id: u64) -> bool {
        let Ok(at) = self.range.offset(id) else {
            return false;
        };
        self.look(
            |front| front.states.is_allocated(at as usize),
            |ledger| ledger.order.is_taken(at),
        )
    }

    /// The lowest allocated identifier that is not below `from`.
    ///
    /// It was allocated at some moment of the call; so was each one that it passed by free.
    pub fn next_allocated(&self, from: u64) -> Option<u64> {
        let at = from.saturating_sub(self.range.first());
        if from > self.range.last() {
            return None;
        }
        let found = self.look(
            |front| {
                let found = front.states.next_allocated(usize::try_from(at).ok()?)?;
                Some(found as u64)
            },
            |ledger| ledger.order.next_taken(at),
        );
        found.map(|at| self.id(at))
    }

    /// The allocated identifiers, upwards. Others may take and free meanwhile: each one that is allocated all the time is
    /// met once, and none twice.
    pub fn iter(&self) -> SpaceIter<'_, R> {
        SpaceIter {
            space: self,
            from: Some(self.range.first()),
        }
    }

    /// How many identifiers are allocated, reserved ones included. Of one moment only if nobody takes or frees.
    ///
    /// Reads the byte of every identifier that was ever used.
    pub fn allocated(&self) -> u64 {
        self.look(
            |front| front.states.allocated(),
            |ledger| ledger.order.taken(),
        )
    }

    /// Bytes of memory held: the map, the cells in use, the magazines.
    pub fn bytes(&self) -> usize {
        let map = self.lock().order.bytes();
        size_of::<Self>() + map + self.front.get().map_or(0, |front| front.bytes())
    }
}

/// The allocated identifiers of a space, upwards. See [`IdSpace::iter`].
#[derive(Debug)]
pub struct SpaceIter<'a, R: SharedRule> {
    space: &'a IdSpace<R>,
    from: Option<u64>,
}

impl<R: SharedRule> Iterator for SpaceIter<'_, R> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let id = self.space.next_allocated(self.from?)?;
        self.from = id.checked_add(1);
        Some(id)
    }
}

impl<'a, R: SharedRule> IntoIterator for &'a IdSpace<R> {
    type Item = u64;
    type IntoIter = SpaceIter<'a, R>;

    fn into_iter(self) -> SpaceIter<'a, R> {
        self.iter()
    }
}
