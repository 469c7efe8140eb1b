//! Reserve, then commit or abort: what is half built is not visible.

use core::fmt;
#[cfg(not(shuttle))]
use core::sync::atomic::{AtomicBool, Ordering};
#[cfg(shuttle)]
use shuttle::sync::atomic::{AtomicBool, Ordering};

use super::fields::Fields;
use super::{Allocate, IdError};

/// The identifier is committed.
const SEEN: u64 = 1;
/// It was committed after the repair pass began.
const YOUNG: u64 = 2;

/// Identifiers of which only the committed ones can be seen.
///
/// An identifier is [reserved](Self::reserve), what it names is built, and only then it is
/// [committed](Pending::commit). Until then no lookup finds it here, but no other caller gets it either. Linux
/// publishes a process so (`pid.c` stores a null pointer first and replaces it at the end). Memory: 2 bits for each
/// identifier that was ever reserved, in pieces of 1 KiB that stay until this is dropped, beside what the identifiers
/// take: over a wide range take a rule that uses few different ones.
///
/// ```
/// # fn main() -> Result<(), larder::ids::IdError> {
/// use core::cell::RefCell;
/// use larder::ids::{Ids, Published, rule::Lowest};
///
/// let ids = Published::new(RefCell::new(Ids::new(1u32..100, Lowest)?));
/// let pending = ids.reserve()?;
/// assert_eq!(pending.id(), 1);
/// assert!(!ids.is_allocated(1), "half built");
/// assert_eq!(ids.reserve()?.id(), 2, "and yet no other caller gets it");   // dropped, so given up again
/// pending.commit();
/// assert!(ids.is_allocated(1));
/// assert_eq!(ids.iter().collect::<Vec<_>>(), [1]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Published<A> {
    ids: A,
    marks: Fields,
    repairing: AtomicBool,
}

impl<A: Allocate> Published<A> {
    /// A view of `ids` in which nothing is visible yet. What is allocated there already (a reserved band) stays so.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, Published, rule::Lowest};
    /// let ids = Published::new(RefCell::new(Ids::rebuild(0u8..100, Lowest, [0, 1])?));
    /// assert_eq!(ids.iter().count(), 0, "what was there already is not visible");
    /// assert_eq!(ids.reserve()?.id(), 2, "and not free either");
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn new(ids: A) -> Self {
        let range = ids.range();
        Self {
            marks: Fields::new(range.last() - range.first(), 2),
            ids,
            repairing: AtomicBool::new(false),
        }
    }

    /// Takes the next identifier, invisibly.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, Published, rule::Lowest};
    /// # let ids = Published::new(RefCell::new(Ids::new(0u8..100, Lowest)?));
    /// let pending = ids.reserve()?;
    /// assert!(!ids.is_allocated(pending.id()));
    /// let id = pending.commit();
    /// assert!(ids.is_allocated(id));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Allocate::alloc`].
    pub fn reserve(&self) -> Result<Pending<'_, A>, IdError> {
        let id = self.ids.alloc()?;
        self.pend(id)
    }

    /// Takes this very identifier, invisibly.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{IdError, Ids, Published, rule::Lowest};
    /// # let ids = Published::new(RefCell::new(Ids::new(0u8..100, Lowest)?));
    /// let seven = ids.reserve_at(7)?;
    /// assert_eq!(ids.reserve_at(7).err(), Some(IdError::Taken { id: 7 }));
    /// # drop(seven);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Allocate::alloc_at`]; [`IdError::Taken`] for a pending one too.
    pub fn reserve_at(&self, id: u64) -> Result<Pending<'_, A>, IdError> {
        self.ids.alloc_at(id)?;
        self.pend(id)
    }

    fn pend(&self, id: u64) -> Result<Pending<'_, A>, IdError> {
        // Made here, so that a commit cannot fail.
        let pending = Pending { space: self, id };
        self.marks.make(self.offset(id))?;
        Ok(pending)
    }

    /// Frees a committed identifier.
    ///
    /// Where repair passes run beside, [`withdraw`](Self::withdraw) it before what it names leaves the list: a pass
    /// frees what is visible and not on the list, and to free it a second time may take it from its next owner.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{IdError, Ids, Published, rule::Lowest};
    /// # let ids = Published::new(RefCell::new(Ids::new(0u8..100, Lowest)?));
    /// let id = ids.reserve()?.commit();
    /// ids.free(id)?;
    /// assert_eq!(ids.free(id), Err(IdError::NotAllocated { id }));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::OutOfRange`]; [`IdError::NotAllocated`] for one that is free or pending; [`IdError::OutOfMemory`].
    pub fn free(&self, id: u64) -> Result<(), IdError> {
        self.withdraw(id)?.abort().inspect_err(|_| {
            // It is still taken below, so only this call changes the mark.
            let at = self.offset(id);
            self.marks
                .replace(at, 0, SEEN | YOUNG, self.ids.is_shared());
        })
    }

    /// Takes a committed identifier out of sight. It stays taken until the result is dropped, or comes back into sight
    /// when that is committed: the first half of tearing down what it names.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, Published, rule::Lowest};
    /// # let ids = Published::new(RefCell::new(Ids::new(0u8..100, Lowest)?));
    /// let id = ids.reserve()?.commit();
    /// let leaving = ids.withdraw(id)?;
    /// assert!(!ids.is_allocated(id), "no lookup finds it any more");
    /// assert_ne!(ids.reserve()?.id(), id, "and no caller gets it before its end");
    /// drop(leaving);
    /// assert_eq!(ids.reserve()?.id(), id);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::OutOfRange`]; [`IdError::NotAllocated`] for one that is free or pending.
    pub fn withdraw(&self, id: u64) -> Result<Pending<'_, A>, IdError> {
        let at = self.ids.range().offset(id)?;
        loop {
            let mark = self.marks.get(at);
            if mark & SEEN == 0 {
                return Err(IdError::NotAllocated { id });
            }
            if self.marks.replace(at, mark, 0, self.ids.is_shared()) {
                return Ok(Pending { space: self, id });
            }
            // Only a repair pass that has just begun changes the mark of a committed identifier.
        }
    }

    /// Whether the identifier is allocated and committed; `false` outside of the range.
    pub fn is_allocated(&self, id: u64) -> bool {
        let at = self.ids.range().offset(id);
        at.is_ok_and(|at| self.marks.get(at) & SEEN != 0)
    }

    /// The lowest committed identifier that is not below `from`.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, Published, rule::Lowest};
    /// # let ids = Published::new(RefCell::new(Ids::new(0u8..100, Lowest)?));
    /// let half_built = ids.reserve_at(7)?;
    /// ids.reserve_at(9)?.commit();
    /// assert_eq!(ids.next_allocated(5), Some(9));
    /// # drop(half_built);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn next_allocated(&self, from: u64) -> Option<u64> {
        let mut from = from;
        loop {
            let id = self.ids.next_allocated(from)?;
            if self.is_allocated(id) {
                return Some(id);
            }
            from = id.checked_add(1)?;
        }
    }

    /// The committed identifiers, ascending. Others may come and go meanwhile.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, Published, rule::Lowest};
    /// # let ids = Published::new(RefCell::new(Ids::new(0u8..100, Lowest)?));
    /// ids.reserve_at(9)?.commit();
    /// ids.reserve_at(4)?.commit();
    /// assert!(ids.iter().eq([4, 9]));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let mut from = Some(0);
        core::iter::from_fn(move || {
            let id = self.next_allocated(from?)?;
            from = id.checked_add(1);
            Some(id)
        })
    }

    /// Begins to compare the committed identifiers with a list of what really lives. Call this *before* the list is
    /// read.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, Published, rule::Lowest};
    /// # let ids = Published::new(RefCell::new(Ids::new(0u8..100, Lowest)?));
    /// let pass = ids.begin_repair()?;
    /// assert!(ids.begin_repair().is_err(), "one at a time");
    /// pass.finish([3, 4])?;
    /// assert!(ids.iter().eq([3, 4]));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::Busy`] while another pass is at work.
    pub fn begin_repair(&self) -> Result<Repair<'_, A>, IdError> {
        if self.repairing.swap(true, Ordering::AcqRel) {
            return Err(IdError::Busy {
                what: "a repair pass",
            });
        }
        self.marks.keep_everywhere(SEEN);
        Ok(Repair { space: self })
    }

    /// The identifiers below, where pending ones are allocated like others.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Allocate, Ids, Published, rule::Lowest};
    /// # let ids = Published::new(RefCell::new(Ids::new(0u8..100, Lowest)?));
    /// let pending = ids.reserve()?;
    /// assert!(ids.ids().is_allocated(pending.id()) && !ids.is_allocated(pending.id()));
    /// # drop(pending);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn ids(&self) -> &A {
        &self.ids
    }

    /// The place of an identifier that is known to lie within the range.
    fn offset(&self, id: u64) -> u64 {
        id - self.ids.range().first()
    }
}

/// An identifier that is reserved and not visible. Dropping it aborts: the identifier is free again.
///
/// Over a [`RefCell`](core::cell::RefCell) it must not be dropped while the cell is borrowed: freeing then fails with
/// [`IdError::Borrowed`], a drop cannot return that error, and the identifier stays allocated for good.
/// [`abort`](Self::abort) returns it.
///
/// ```
/// # use core::cell::RefCell;
/// # use larder::ids::{Allocate, Ids, Published, rule::Lowest};
/// # let ids = Published::new(RefCell::new(Ids::new(0u8..100, Lowest)?));
/// let pending = ids.reserve()?;
/// drop(pending);                              // what it was to name could not be built
/// assert_eq!(ids.ids().allocated(), 0);
/// # Ok::<(), larder::ids::IdError>(())
/// ```
#[must_use = "dropping it gives the identifier back"]
pub struct Pending<'a, A: Allocate> {
    space: &'a Published<A>,
    id: u64,
}

impl<A: Allocate> Pending<'_, A> {
    /// The identifier.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Makes the identifier visible. A thread that finds it sees what was written before.
    pub fn commit(self) -> u64 {
        let (id, space) = (self.id, self.space);
        // While it is pending its mark is 0 and no other thread writes it.
        let at = space.offset(id);
        space
            .marks
            .replace(at, 0, SEEN | YOUNG, space.ids.is_shared());
        core::mem::forget(self);
        id
    }

    /// Gives the identifier back and says whether that worked, which dropping cannot.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{IdError, Ids, Published, rule::Lowest};
    /// # let ids = Published::new(RefCell::new(Ids::new(0u8..100, Lowest)?));
    /// let pending = ids.reserve()?;
    /// let borrowed = ids.ids().borrow_mut();
    /// assert_eq!(pending.abort(), Err(IdError::Borrowed), "a drop could not say so");
    /// # drop(borrowed);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`], [`IdError::Borrowed`]: it stays taken.
    pub fn abort(self) -> Result<(), IdError> {
        let result = self.space.ids.free(self.id);
        core::mem::forget(self);
        result
    }
}

impl<A: Allocate> Drop for Pending<'_, A> {
    fn drop(&mut self) {
        // An error leaves it taken, for want of memory or because the cell below is borrowed. A drop cannot report it.
        let _ = self.space.ids.free(self.id);
    }
}

impl<A: Allocate> fmt::Debug for Pending<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pending").field(&self.id).finish()
    }
}

/// A repair pass: identifiers that are unused are freed, those that were forgotten are taken.
///
/// The pass of Kubernetes' service addresses freed identifiers that were allocated but not yet written to the list it
/// compared with, and two services got one address. Here a pending identifier is never touched, and neither is one
/// that was committed after the pass began, because the list may be older than it.
///
/// ```
/// # fn main() -> Result<(), larder::ids::IdError> {
/// use core::cell::RefCell;
/// use larder::ids::{Ids, Published, Repaired, rule::Lowest};
///
/// let ids = Published::new(RefCell::new(Ids::new(0u32..100, Lowest)?));
/// ids.reserve()?.commit();                   // 0, whose service has since gone: a leak
/// let half_built = ids.reserve()?;           // 1
/// let pass = ids.begin_repair()?;
/// let list = [7];                            // read from the store: only 7, which the map has lost
/// let fresh = ids.reserve()?.commit();       // 2, written to the store after the list was read
/// assert_eq!(pass.finish(list)?, Repaired { freed: 1, taken: 1 });
/// half_built.commit();
/// assert_eq!(ids.iter().collect::<Vec<_>>(), [1, fresh, 7]);
/// # Ok(())
/// # }
/// ```
#[must_use = "a pass that is not finished changes nothing"]
#[derive(Debug)]
pub struct Repair<'a, A> {
    space: &'a Published<A>,
}

/// What a repair pass has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Repaired {
    /// Committed identifiers that were not on the list.
    pub freed: u64,
    /// Identifiers of the list that were free; they are committed now.
    pub taken: u64,
}

impl<A: Allocate> Repair<'_, A> {
    /// Frees what was committed before the pass began and is not on the list, and takes what is on the list and free
    /// (also what was freed after the list was read; the next pass frees it again). The list is in ascending order; what
    /// stands on it twice counts once.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`] for an identifier outside of the range and [`IdError::Invalid`] for one that is out of
    /// order: up to there, what is on the list was taken, and what is between was freed. [`IdError::OutOfMemory`]
    /// likewise.
    pub fn finish(self, live: impl IntoIterator<Item = u64>) -> Result<Repaired, IdError> {
        let space = self.space;
        let mut done = Repaired::default();
        // The lowest identifier that was not looked at; `None` at the end of all numbers.
        let mut from = Some(space.ids.range().first());
        for id in live {
            space.ids.range().offset(id)?;
            let Some(begin) = from.filter(|&begin| begin <= id) else {
                if from == id.checked_add(1) {
                    continue;
                }
                return Err(IdError::Invalid {
                    what: alloc::format!("identifier {id} after a larger one"),
                    advice: "give the list of live identifiers in ascending order",
                });
            };
            if id > begin {
                done.freed += space.sweep(begin, id - 1)?;
            }
            match space.reserve_at(id) {
                Ok(pending) => {
                    pending.commit();
                    done.taken += 1;
                }
                // Committed or pending: as it should be.
                Err(IdError::Taken { .. }) => {}
                Err(error) => return Err(error),
            }
            from = id.checked_add(1);
        }
        if let Some(begin) = from {
            done.freed += space.sweep(begin, u64::MAX)?;
        }
        Ok(done)
    }
}

impl<A: Allocate> Published<A> {
    /// Frees the identifiers from `first` to `last` that are committed and not young; says how many.
    fn sweep(&self, first: u64, last: u64) -> Result<u64, IdError> {
        let mut freed = 0;
        let mut from = Some(first);
        while let Some(id) = from.and_then(|from| self.ids.next_allocated(from)) {
            if id > last {
                break;
            }
            // The mark says both at once, so one that was freed and committed anew in between is let alone.
            let (at, shared) = (self.offset(id), self.ids.is_shared());
            if self.marks.replace(at, SEEN, 0, shared) {
                self.ids.free(id).inspect_err(|_| {
                    // It is still taken below, so only this call changes the mark.
                    self.marks.replace(at, 0, SEEN, shared);
                })?;
                freed += 1;
            }
            from = id.checked_add(1);
        }
        Ok(freed)
    }
}

impl<A> Drop for Repair<'_, A> {
    fn drop(&mut self) {
        self.space.repairing.store(false, Ordering::Release);
    }
}
