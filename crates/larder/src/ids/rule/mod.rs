//! The rules by which freed identifiers come back.
//!
//! A [`Rule`] is a small value that names the rule and its parameters; its [`Order`] is the data structure that keeps it.
//!
//! | rule | next identifier | at least between free and reuse | bits per identifier |
//! |---|---|---|---|
//! | [`Lowest`] | the lowest free one | nothing | 1.02 |
//! | [`Cyclic`] | the next free one after the last one handed out | nothing | 1.02 |
//! | [`Fifo`] | the one that was freed first | as many allocations as were free | 1, and 32 (64) for each that waits |
//! | [`Epochs`] | one of those that were freed first | about half of those that were free, by bursts less | 2.03 |
//! | [`Lifo`] | the one that was freed last | nothing | 1, and 32 (64) for each that waits |
//! | [`Random`] | any free one | nothing | 1.01 |
//! | [`Any`] | whichever is cheapest to find | nothing | 1.02 |
//! | [`Rested`] | as another rule, but not before it has rested | what was asked for | the other rule's, and 129 for each that rests |

use core::fmt::Debug;

use super::IdError;

mod clock;
mod epochs;
mod fifo;
mod lifo;
mod line;
mod random;
mod rested;
mod shape;
mod stale;
mod word;

pub use self::clock::{Clock, Ticks};
pub use self::epochs::{Epochs, EpochsOrder};
pub use self::fifo::Fifo;
pub use self::lifo::Lifo;
pub use self::random::Random;
pub use self::rested::{NearFull, Rested, RestedOrder};
pub use self::shape::Shape;
pub use self::word::{Any, Cyclic, Lowest};

/// A rule by which identifiers are chosen.
///
/// ```
/// use larder::ids::{IdError, Ids, rule::{Lowest, Rule}};
///
/// /// As POSIX wants it of descriptors, under a name of one's own.
/// #[derive(Debug, Clone)]
/// struct Posix;
/// impl Rule for Posix {
///     type Order = <Lowest as Rule>::Order;
///     fn order(&self, last: u64) -> Result<Self::Order, IdError> {
///         Lowest.order(last)
///     }
/// }
/// assert_eq!(Ids::new(3u32..1024, Posix)?.alloc()?, 3);
/// # Ok::<(), larder::ids::IdError>(())
/// ```
pub trait Rule: Clone + Debug {
    /// The data structure that keeps the rule.
    type Order: Order;

    /// How far an `IdSpace` may give up the order, to spare threads the lock.
    const SHAPE: Shape = Shape::Exact;

    /// The rule's structure over the offsets `0..=last`, all of them free. Takes constant time.
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`], and [`IdError::Invalid`] for parameters that make no sense.
    fn order(&self, last: u64) -> Result<Self::Order, IdError>;
}

/// Offsets `0..=last`, each free or taken, and which free one is next.
///
/// Works on offsets alone; callers have checked that each lies within the range. A method that fails has changed
/// nothing.
///
/// ```
/// use larder::ids::rule::{Cyclic, Order, Rule};
/// let mut order = Cyclic.order(9)?;                                 // offsets 0 to 9
/// assert_eq!((order.take()?, order.take()?), (Some(0), Some(1)));
/// order.set_cursor(4)?;
/// let next = match order.take_quickly() {
///     Some(at) => Some(at),
///     None => order.take()?,
/// };
/// assert_eq!((next, order.cursor()), (Some(5), Some(5)));
/// let mut out = [0; 2];
/// assert_eq!((order.take_many(&mut out)?, out), (2, [6, 7]));
/// assert!(order.take_at(3)? && !order.take_at(3)?);
/// assert_eq!(order.take_run(2, 2, 0)?, Some(8), "two from an even one on");
/// assert_eq!(order.take_all(2, 3)?, Err(3));
/// assert_eq!((order.taken(), order.is_taken(2)), (8, false));
/// assert_eq!((order.next_taken(2), order.next_free(0)), (Some(3), Some(2)));
///
/// assert!(order.give_quickly(3) || order.give(3)?);
/// assert!(!order.give(3)?, "it is free");
/// order.take_back(3)?;
/// assert_eq!(order.give_all(5, 9)?, Ok(()));
/// assert!(order.bytes() > 0);
/// # Ok::<(), larder::ids::IdError>(())
/// ```
pub trait Order: Debug {
    /// Takes the offset that the rule says is next; `None` when all are taken.
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`], and [`IdError::Resting`] under a rule that lets offsets rest.
    fn take(&mut self) -> Result<Option<u64>, IdError>;

    /// Takes the next offset if that is a matter of a few instructions; `None` says nothing, [`take`](Order::take) does.
    /// Calls nothing that could fail, so that it can stand in the caller's loop.
    #[inline]
    fn take_quickly(&mut self) -> Option<u64> {
        None
    }

    /// Gives an offset back if that is a matter of a few instructions; `false` says nothing, [`give`](Order::give)
    /// does. Alone of all methods it must refuse an offset beyond the range, by what it looks at anyway.
    #[inline]
    fn give_quickly(&mut self, _at: u64) -> bool {
        false
    }

    /// Takes up to `out.len()` offsets in the order of the rule; says how many.
    ///
    /// # Errors
    /// As [`take`](Order::take), when not a single one was taken.
    fn take_many(&mut self, out: &mut [u64]) -> Result<usize, IdError> {
        for (done, slot) in out.iter_mut().enumerate() {
            match self.take() {
                Ok(Some(at)) => *slot = at,
                Ok(None) => return Ok(done),
                Err(_) if done > 0 => return Ok(done),
                Err(error) => return Err(error),
            }
        }
        Ok(out.len())
    }

    /// Takes this very offset; `false` when it is taken already.
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`], and [`IdError::Resting`] for one that rests under a rule that lets offsets rest.
    fn take_at(&mut self, at: u64) -> Result<bool, IdError> {
        let free = !self.is_taken(at);
        if free {
            self.take_span(at, at)?;
        }
        Ok(free)
    }

    /// Takes `count` free offsets in a row, the first of which is `phase` more than a multiple of `align`, and says
    /// which is the first; `None` when there are none. The lowest such run, whatever the rule.
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`].
    fn take_run(&mut self, count: u64, align: u64, phase: u64) -> Result<Option<u64>, IdError> {
        let found = find_run(
            self.last(),
            [count, align, phase],
            |from| self.next_free(from),
            |first, last| self.first_taken(first, last),
        );
        if let Some(first) = found {
            self.take_span(first, first + (count - 1))?;
        }
        Ok(found)
    }

    /// Takes all offsets from `first` to `last`; or none of them and names the first that is taken already.
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`], and [`IdError::Resting`] when one of them rests under a rule that lets offsets rest.
    fn take_all(&mut self, first: u64, last: u64) -> Result<Result<(), u64>, IdError> {
        if let Some(at) = self.first_taken(first, last) {
            return Ok(Err(at));
        }
        self.take_span(first, last).map(Ok)
    }

    /// Takes `first..=last`, all of which are free.
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`]; [`IdError::Full`] for the last of 2^64.
    fn take_span(&mut self, first: u64, last: u64) -> Result<(), IdError>;

    /// Gives an offset back; `false` when it is not taken.
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`]: the offset stays taken.
    fn give(&mut self, at: u64) -> Result<bool, IdError>;

    /// Undoes the latest [`give`](Order::give), which was of `at` and after which nothing was taken: it is taken
    /// again, and what is next is what was next before.
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`]: the offset stays free.
    fn take_back(&mut self, at: u64) -> Result<(), IdError> {
        self.take_at(at).map(|_| ())
    }

    /// Gives all offsets from `first` to `last` back, in this order; or none of them and names the first that is not
    /// taken.
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`]: all of them stay taken, unless there is no memory to take them again either.
    fn give_all(&mut self, first: u64, last: u64) -> Result<Result<(), u64>, IdError> {
        if let Some(at) = self.next_free(first).filter(|&at| at <= last) {
            return Ok(Err(at));
        }
        for at in first..=last {
            if let Err(error) = self.give(at) {
                for at in (first..at).rev() {
                    self.take_back(at)?;
                }
                return Err(error);
            }
        }
        Ok(Ok(()))
    }

    /// Whether the offset is taken.
    fn is_taken(&self, at: u64) -> bool;

    /// The largest offset.
    fn last(&self) -> u64;

    /// The first taken offset of `first..=last`.
    fn first_taken(&self, first: u64, last: u64) -> Option<u64>;

    /// The lowest taken offset that is not below `from`.
    fn next_taken(&self, from: u64) -> Option<u64> {
        self.first_taken(from, self.last())
    }

    /// The lowest offset not below `from` that is not taken, whether or not it rests.
    fn next_free(&self, from: u64) -> Option<u64>;

    /// The offset that was handed out last, under a rule that goes on from there.
    fn cursor(&self) -> Option<u64> {
        None
    }

    /// Goes on after `at`, under a rule that has a cursor.
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`].
    fn set_cursor(&mut self, _at: u64) -> Result<(), IdError> {
        Ok(())
    }

    /// How many offsets are taken. At most 2^64 - 1, also of 2^64.
    fn taken(&self) -> u64;

    /// Bytes of memory held, beyond the value itself.
    fn bytes(&self) -> usize;
}

/// The lowest run of `count` free offsets of `0..=last`, the first of which is `phase` more than a multiple of `align`.
/// Looks at every run of free offsets below it.
fn find_run(
    last: u64,
    [count, align, phase]: [u64; 3],
    next_free: impl Fn(u64) -> Option<u64>,
    first_taken: impl Fn(u64, u64) -> Option<u64>,
) -> Option<u64> {
    let mut from = phase;
    loop {
        let free = next_free(from)?;
        // `free` is at least `from`, and that is at least `phase`.
        let beyond = (free - phase) % align;
        let first = if beyond == 0 {
            free
        } else {
            free.checked_add(align - beyond)?
        };
        let end = first.checked_add(count - 1).filter(|&end| end <= last)?;
        match first_taken(first, end) {
            None => return Some(first),
            Some(at) => from = at.checked_add(1)?,
        }
    }
}
