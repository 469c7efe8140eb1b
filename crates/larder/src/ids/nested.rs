//! Nested spaces: one thing has an identifier at each level, as a process has in each pid namespace it is seen from.

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::{Allocate, IdError};

/// Levels below the outermost; Linux allows as many pid namespaces.
pub const MAX_DEPTH: usize = 32;

/// A space of identifiers within another, or the outermost.
///
/// What is allocated here has an identifier here and at every level outside of it: all or none. Levels are counted
/// from the outermost, 0.
///
/// ```
/// # fn main() -> Result<(), larder::ids::IdError> {
/// use std::sync::Mutex;
/// use larder::ids::{Ids, Namespace, rule::Cyclic};
///
/// let pids = || Ids::new(1u32..32768, Cyclic).map(Mutex::new);
/// let host = Namespace::outermost(pids()?);
/// let shell = host.alloc()?;
///
/// let container = host.inner(pids()?)?;
/// let init = container.alloc()?;
/// assert_eq!(init.ids(), [2, 1]);             // 2 on the host, 1 inside
///
/// let restored = container.alloc_at(&[Some(77)])?;   // 77 inside, whatever comes outside
/// assert_eq!((restored.id(), restored.id_at(0)), (77, Some(3)));
/// drop(restored);                             // free at both levels
/// # drop((shell, init));
/// # Ok(())
/// # }
/// ```
pub struct Namespace<A: Allocate> {
    ids: A,
    outer: Option<Arc<Namespace<A>>>,
    level: usize,
}

impl<A: Allocate> Namespace<A> {
    /// The outermost space.
    ///
    /// ```
    /// # use std::sync::Mutex;
    /// # use larder::ids::{Ids, Namespace, rule::Cyclic};
    /// let host = Namespace::outermost(Mutex::new(Ids::new(1u32..32768, Cyclic)?));
    /// assert_eq!(host.level(), 0);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn outermost(ids: A) -> Arc<Self> {
        Arc::new(Self {
            ids,
            outer: None,
            level: 0,
        })
    }

    /// A space within this one.
    ///
    /// ```
    /// # use std::sync::Mutex;
    /// # use larder::ids::{Ids, Namespace, rule::Cyclic};
    /// # let pids = || Ids::new(1u32..32768, Cyclic).map(Mutex::new);
    /// let host = Namespace::outermost(pids()?);
    /// assert_eq!(host.inner(pids()?)?.level(), 1);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::Invalid`] deeper than [`MAX_DEPTH`].
    pub fn inner(self: &Arc<Self>, ids: A) -> Result<Arc<Self>, IdError> {
        if self.level >= MAX_DEPTH {
            return Err(IdError::Invalid {
                what: format!("a space at level {}", self.level + 1),
                advice: "nest at most 32 spaces into the outermost",
            });
        }
        Ok(Arc::new(Self {
            ids,
            outer: Some(Arc::clone(self)),
            level: self.level + 1,
        }))
    }

    /// How many spaces this one lies in.
    pub fn level(&self) -> usize {
        self.level
    }

    /// The identifiers of this level.
    ///
    /// ```
    /// # use std::sync::Mutex;
    /// # use larder::ids::{Allocate, Ids, Namespace, rule::Cyclic};
    /// # let host = Namespace::outermost(Mutex::new(Ids::new(1u32..32768, Cyclic)?));
    /// let task = host.alloc()?;
    /// assert_eq!(host.ids().allocated(), 1);
    /// # drop(task);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn ids(&self) -> &A {
        &self.ids
    }

    /// The space around this one.
    ///
    /// ```
    /// # use std::sync::{Arc, Mutex};
    /// # use larder::ids::{Ids, Namespace, rule::Cyclic};
    /// # let pids = || Ids::new(1u32..32768, Cyclic).map(Mutex::new);
    /// # let host = Namespace::outermost(pids()?);
    /// let container = host.inner(pids()?)?;
    /// assert!(container.outer().is_some_and(|outer| Arc::ptr_eq(outer, &host)));
    /// assert!(host.outer().is_none());
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn outer(&self) -> Option<&Arc<Self>> {
        self.outer.as_ref()
    }

    /// This space, the one around it, and so on.
    fn outwards(&self) -> impl Iterator<Item = &Self> {
        core::iter::successors(Some(self), |space| space.outer.as_deref())
    }

    /// Takes an identifier at each level; or at none.
    ///
    /// ```
    /// # use std::sync::Mutex;
    /// # use larder::ids::{Ids, Namespace, rule::Cyclic};
    /// # let pids = || Ids::new(1u32..32768, Cyclic).map(Mutex::new);
    /// # let host = Namespace::outermost(pids()?);
    /// let shell = host.alloc()?;
    /// let init = host.inner(pids()?)?.alloc()?;
    /// assert_eq!((shell.ids(), init.ids()), (&[1][..], &[2, 1][..]));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::Level`] names the level that had none and why.
    pub fn alloc(self: &Arc<Self>) -> Result<NestedId<A>, IdError> {
        self.alloc_at(&[])
    }

    /// Takes an identifier at each level, or at none: `wanted` says which, from this level outwards; at levels beyond
    /// its end, and where it has `None`, the rule decides. (`set_tid` of Linux' `clone3`, for restoring.)
    ///
    /// ```
    /// # use std::sync::Mutex;
    /// # use larder::ids::{Ids, Namespace, rule::Cyclic};
    /// # let pids = || Ids::new(1u32..32768, Cyclic).map(Mutex::new);
    /// # let container = Namespace::outermost(pids()?).inner(pids()?)?;
    /// let task = container.alloc_at(&[Some(77), Some(4711)])?;
    /// assert_eq!(task.ids(), [4711, 77]);
    /// assert!(container.alloc_at(&[None, Some(4711)]).is_err(), "and then none is taken inside");
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::Level`] names the level that failed and why; [`IdError::Invalid`] when `wanted` has more levels
    /// than there are.
    pub fn alloc_at(self: &Arc<Self>, wanted: &[Option<u64>]) -> Result<NestedId<A>, IdError> {
        if wanted.len() > self.level + 1 {
            return Err(IdError::Invalid {
                what: format!("a list of {} for {} levels", wanted.len(), self.level + 1),
                advice: "ask for one identifier a level, this level's first",
            });
        }
        let mut ids = Vec::new();
        ids.try_reserve_exact(self.level + 1)
            .map_err(|_| IdError::OutOfMemory)?;
        // From the first identifier on the drop of this is what rolls back.
        let mut taken = NestedId {
            space: Arc::clone(self),
            ids,
        };
        for (space, wish) in self
            .outwards()
            .zip(wanted.iter().chain(core::iter::repeat(&None)))
        {
            let id = match *wish {
                Some(id) => space.ids.alloc_at(id).map(|()| id),
                None => space.ids.alloc(),
            };
            taken
                .ids
                .push(id.map_err(|cause| at_level(space.level, cause))?);
        }
        taken.ids.reverse();
        Ok(taken)
    }

    /// Takes ownership of identifiers that are allocated, one for each level from the outermost: the way back from
    /// [`NestedId::into_raw`].
    ///
    /// # Errors
    /// [`IdError::Invalid`] for another number of levels; [`IdError::Level`] with [`IdError::OutOfRange`] or
    /// [`IdError::NotAllocated`] inside.
    ///
    /// ```
    /// use std::sync::Mutex;
    /// use larder::ids::{IdError, Ids, Namespace, rule::Cyclic};
    ///
    /// let pids = || Ids::new(1u32..32768, Cyclic).map(Mutex::new);
    /// let host = Namespace::outermost(pids()?);
    /// let container = host.inner(pids()?)?;
    /// let raw = container.alloc()?.into_raw();            // for a table of plain numbers: no drop frees them now
    /// assert_eq!(raw, [1, 1]);
    /// let task = container.adopt(raw)?;                   // and back
    /// drop(task);
    /// assert!(matches!(container.adopt(vec![1, 1]), Err(IdError::Level { .. })), "they are free");
    /// # Ok::<(), IdError>(())
    /// ```
    pub fn adopt(self: &Arc<Self>, ids: Vec<u64>) -> Result<NestedId<A>, IdError> {
        if ids.len() != self.level + 1 {
            return Err(IdError::Invalid {
                what: format!("a list of {} for {} levels", ids.len(), self.level + 1),
                advice: "give one identifier a level, the outermost first",
            });
        }
        for (space, &id) in self.outwards().zip(ids.iter().rev()) {
            let known = space.ids.range().offset(id).and_then(|_| {
                let yes = space.ids.is_allocated(id);
                yes.then_some(()).ok_or(IdError::NotAllocated { id })
            });
            known.map_err(|cause| at_level(space.level, cause))?;
        }
        Ok(NestedId {
            space: Arc::clone(self),
            ids,
        })
    }

    /// Frees identifiers from this level outwards; goes on after an error and says the first.
    fn give_back(&self, innermost_first: impl Iterator<Item = u64>) -> Result<(), IdError> {
        let mut result = Ok(());
        for (space, id) in self.outwards().zip(innermost_first) {
            let freed = space
                .ids
                .free(id)
                .map_err(|cause| at_level(space.level, cause));
            result = result.and(freed);
        }
        result
    }
}

#[cold]
fn at_level(level: usize, cause: IdError) -> IdError {
    IdError::Level {
        level,
        cause: Box::new(cause),
    }
}

impl<A: Allocate> fmt::Debug for Namespace<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Namespace")
            .field("level", &self.level)
            .field("range", &self.ids.range())
            .field("allocated", &self.ids.allocated())
            .finish_non_exhaustive()
    }
}

/// One thing's identifiers, one at each level. Dropping it frees them all.
///
/// Over a [`RefCell`](core::cell::RefCell) it must not be dropped while the cell of a level is borrowed: freeing then
/// fails with [`IdError::Borrowed`], a drop cannot return that error, and the identifier of that level stays allocated
/// for good. [`free`](Self::free) returns it.
///
/// ```
/// # use std::sync::Mutex;
/// # use larder::ids::{Allocate, Ids, Namespace, rule::Cyclic};
/// # let pids = || Ids::new(1u32..32768, Cyclic).map(Mutex::new);
/// # let host = Namespace::outermost(pids()?);
/// let task = host.inner(pids()?)?.alloc()?;
/// assert_eq!(host.ids().allocated(), 1);
/// drop(task);
/// assert_eq!(host.ids().allocated(), 0);
/// # Ok::<(), larder::ids::IdError>(())
/// ```
pub struct NestedId<A: Allocate> {
    space: Arc<Namespace<A>>,
    /// The outermost first; while they are being taken, the innermost first and fewer than levels.
    ids: Vec<u64>,
}

impl<A: Allocate> NestedId<A> {
    /// The identifier at the level it was allocated at, the innermost.
    pub fn id(&self) -> u64 {
        self.ids.last().copied().unwrap_or_default()
    }

    /// The identifier as seen from a level; `None` deeper than it exists.
    ///
    /// ```
    /// # use std::sync::Mutex;
    /// # use larder::ids::{Ids, Namespace, rule::Cyclic};
    /// # let pids = || Ids::new(1u32..32768, Cyclic).map(Mutex::new);
    /// # let container = Namespace::outermost(pids()?).inner(pids()?)?;
    /// let task = container.alloc_at(&[Some(77), Some(4711)])?;
    /// assert_eq!((task.id(), task.id_at(1)), (77, Some(77)));
    /// assert_eq!((task.id_at(0), task.id_at(2)), (Some(4711), None));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn id_at(&self, level: usize) -> Option<u64> {
        self.ids.get(level).copied()
    }

    /// All identifiers, the outermost first.
    pub fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// The space it was allocated in.
    ///
    /// ```
    /// # use std::sync::{Arc, Mutex};
    /// # use larder::ids::{Ids, Namespace, rule::Cyclic};
    /// # let host = Namespace::outermost(Mutex::new(Ids::new(1u32..32768, Cyclic)?));
    /// assert!(Arc::ptr_eq(host.alloc()?.space(), &host));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn space(&self) -> &Arc<Namespace<A>> {
        &self.space
    }

    /// The bare numbers, the outermost first. They stay allocated until [adopted](Namespace::adopt).
    ///
    /// [`Namespace::adopt`] is the way back.
    pub fn into_raw(mut self) -> Vec<u64> {
        core::mem::take(&mut self.ids)
    }

    /// Frees the identifier of every level and says whether that worked, which dropping cannot.
    ///
    /// ```
    /// # use std::sync::Mutex;
    /// # use larder::ids::{Allocate, Ids, Namespace, rule::Cyclic};
    /// # let host = Namespace::outermost(Mutex::new(Ids::new(1u32..32768, Cyclic)?));
    /// let task = host.alloc()?;
    /// host.ids().free(1)?;                        // below it
    /// assert!(task.free().unwrap_err().to_string().starts_with("at level 0: identifier 1 is not allocated"));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// The first [`IdError::Level`]; the other levels are free all the same.
    pub fn free(mut self) -> Result<(), IdError> {
        let ids = core::mem::take(&mut self.ids);
        self.space.give_back(ids.into_iter().rev())
    }
}

impl<A: Allocate> Drop for NestedId<A> {
    fn drop(&mut self) {
        if self.ids.len() == self.space.level + 1 {
            // An error means that other code freed one already, that there is no memory, or that a cell is borrowed. A
            // drop cannot report it.
            let _ = self.space.give_back(self.ids.drain(..).rev());
        } else {
            // Half taken: the innermost first.
            let _ = self.space.give_back(self.ids.drain(..));
        }
    }
}

impl<A: Allocate> fmt::Debug for NestedId<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NestedId").field(&self.ids).finish()
    }
}
