//! An identifier that goes back by itself.

use core::fmt;

use super::{Allocate, Id, IdError};

/// An allocated identifier that is freed when this is dropped.
///
/// `A` is how the guard reaches its space: `&IdSpace`, `Arc<IdSpace>`, `Rc<RefCell<Ids>>` or whatever else can
/// [`Allocate`].
///
/// Over a [`RefCell`](core::cell::RefCell) it must not be dropped while the cell is borrowed: freeing then fails with
/// [`IdError::Borrowed`], a drop cannot return that error, and the identifier stays allocated for good.
/// [`free`](Self::free) returns it.
///
/// ```
/// # fn main() -> Result<(), larder::ids::IdError> {
/// use core::cell::RefCell;
/// use larder::ids::{Allocate, Guard, Ids, rule::Lowest};
///
/// let ids = RefCell::new(Ids::new(0u32..64, Lowest)?);
/// {
///     let id = Guard::new(&ids)?;
///     assert_eq!(id.id(), 0);
///     assert!(ids.is_allocated(0));
/// }
/// assert!(!ids.is_allocated(0));
///
/// let raw = Guard::new(&ids)?.into_raw();       // for foreign code: the guard does not free it now
/// let id = Guard::from_raw(&ids, raw)?;    // and back
/// # drop(id);
/// # Ok(())
/// # }
/// ```
pub struct Guard<A: Allocate> {
    ids: A,
    id: A::Id,
    /// Whether dropping frees it.
    armed: bool,
}

impl<A: Allocate> Guard<A> {
    /// Takes the next identifier of `ids`.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Allocate, Guard, Ids, rule::Lowest};
    /// # let ids = RefCell::new(Ids::new(0u32..64, Lowest)?);
    /// let id = Guard::new(&ids)?;
    /// assert!(ids.is_allocated(id.id()));
    /// drop(id);
    /// assert_eq!(ids.allocated(), 0);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Allocate::alloc`].
    pub fn new(ids: A) -> Result<Self, IdError> {
        let id = ids.alloc()?;
        Ok(Self::armed(ids, id))
    }

    /// Takes this very identifier of `ids`.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Guard, IdError, Ids, rule::Lowest};
    /// # let ids = RefCell::new(Ids::new(0u32..64, Lowest)?);
    /// let seven = Guard::at(&ids, 7)?;
    /// assert_eq!(Guard::at(&ids, 7).err(), Some(IdError::Taken { id: 7 }));
    /// # drop(seven);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Allocate::alloc_at`].
    pub fn at(ids: A, id: A::Id) -> Result<Self, IdError> {
        ids.alloc_at(id)?;
        Ok(Self::armed(ids, id))
    }

    /// Makes a guard of an identifier that is allocated and that no other code will free: the way back from
    /// [`into_raw`](Self::into_raw).
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Allocate, Guard, IdError, Ids, rule::Lowest};
    /// # let ids = RefCell::new(Ids::new(0u32..64, Lowest)?);
    /// let raw = Guard::new(&ids)?.into_raw();
    /// drop(Guard::from_raw(&ids, raw)?);
    /// assert_eq!(Guard::from_raw(&ids, raw).err(), Some(IdError::NotAllocated { id: raw.into() }));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::OutOfRange`], [`IdError::NotAllocated`]. That it has another owner cannot be seen here; use
    /// [`Tagged`](super::Tagged) handles where that must be refused.
    pub fn from_raw(ids: A, id: A::Id) -> Result<Self, IdError> {
        ids.range().offset(id.to_u64())?;
        if ids.is_allocated(id) {
            Ok(Self::armed(ids, id))
        } else {
            Err(IdError::NotAllocated { id: id.to_u64() })
        }
    }

    fn armed(ids: A, id: A::Id) -> Self {
        Self {
            ids,
            id,
            armed: true,
        }
    }

    /// The identifier.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Guard, Ids, rule::Lowest};
    /// # let ids = RefCell::new(Ids::new(0u32..64, Lowest)?);
    /// assert_eq!(Guard::at(&ids, 7)?.id(), 7);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    #[inline]
    pub fn id(&self) -> A::Id {
        self.id
    }

    /// Where it came from.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Allocate, Guard, Ids, rule::Lowest};
    /// # let ids = RefCell::new(Ids::new(0u32..64, Lowest)?);
    /// let id = Guard::new(&ids)?;
    /// assert!(id.space().is_allocated(id.id()));
    /// # drop(id);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn space(&self) -> &A {
        &self.ids
    }

    /// The bare number. It stays allocated until the caller frees it.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Allocate, Guard, Ids, rule::Lowest};
    /// # let ids = RefCell::new(Ids::new(0u32..64, Lowest)?);
    /// let raw: u32 = Guard::new(&ids)?.into_raw();
    /// assert!(ids.is_allocated(raw));
    /// ids.free(raw)?;
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn into_raw(mut self) -> A::Id {
        self.armed = false;
        self.id
    }

    /// Frees the identifier and says whether that worked, which dropping cannot.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Guard, IdError, Ids, rule::Lowest};
    /// # let ids = RefCell::new(Ids::new(0u32..64, Lowest)?);
    /// let id = Guard::new(&ids)?;
    /// ids.borrow_mut().free(0)?;                  // behind its back
    /// assert_eq!(id.free(), Err(IdError::NotAllocated { id: 0 }));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Allocate::free`]: other code has freed it already, there is no memory, or the cell below is borrowed.
    pub fn free(mut self) -> Result<(), IdError> {
        self.armed = false;
        self.ids.free(self.id)
    }
}

impl<A: Allocate> Drop for Guard<A> {
    fn drop(&mut self) {
        if self.armed {
            // An error means that other code freed it already, or that it stays taken, for want of memory or because
            // the cell below is borrowed. A drop cannot report it.
            let _ = self.ids.free(self.id);
        }
    }
}

impl<A: Allocate> fmt::Debug for Guard<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guard").field(&self.id).finish()
    }
}
