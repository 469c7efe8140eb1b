//! What the layers need of identifiers, whatever type keeps them.

use alloc::rc::Rc;
use alloc::sync::Arc;
use core::cell::{BorrowError, BorrowMutError, RefCell};

#[cfg(feature = "std")]
use super::IdSpace;
use super::{Id, IdError, IdRange, Ids, Rule};

/// Identifiers that can be allocated through a shared reference: what every layer stands on.
///
/// | implementation | for |
/// |---|---|
/// | `RefCell<Ids<R>>` | one owner: no lock, no atomic instruction |
/// | `IdSpace<R>` | many threads |
/// | `&A`, `Rc<A>`, `Arc<A>` | whatever `A` is |
///
/// ```
/// # fn main() -> Result<(), larder::ids::IdError> {
/// use core::cell::RefCell;
/// use larder::ids::{Allocate, Ids, rule::Lowest};
///
/// fn three<A: Allocate>(ids: &A) -> Result<[A::Id; 3], larder::ids::IdError> {
///     Ok([ids.alloc()?, ids.alloc()?, ids.alloc()?])
/// }
///
/// let ids = RefCell::new(Ids::new(10u32..20, Lowest)?);
/// assert_eq!(three(&ids)?, [10, 11, 12]);
/// assert_eq!(ids.next_free(10), Some(13));
///
/// ids.alloc_at(15)?;
/// ids.free(11)?;
/// assert!(ids.is_allocated(15) && !ids.is_allocated(11));
/// assert_eq!((ids.next_allocated(11), ids.allocated()), (Some(12), 3));
/// assert_eq!((ids.range().last(), ids.cursor(), ids.is_shared()), (19, None, false));
/// # Ok(())
/// # }
/// ```
pub trait Allocate {
    /// The integer of its identifiers.
    type Id: Id;

    /// Takes the identifier that the rule says is next.
    ///
    /// # Errors
    /// [`IdError::Full`], [`IdError::Resting`], [`IdError::OutOfMemory`], [`IdError::Borrowed`].
    fn alloc(&self) -> Result<Self::Id, IdError>;

    /// Takes this very identifier.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`], [`IdError::Taken`], [`IdError::OutOfMemory`], [`IdError::Borrowed`].
    fn alloc_at(&self, id: Self::Id) -> Result<(), IdError>;

    /// Gives an identifier back.
    ///
    /// # Errors
    /// [`IdError::OutOfRange`], [`IdError::NotAllocated`], [`IdError::OutOfMemory`], [`IdError::Borrowed`].
    fn free(&self, id: Self::Id) -> Result<(), IdError>;

    /// Whether the identifier is allocated; `false` outside of the range.
    fn is_allocated(&self, id: Self::Id) -> bool;

    /// The lowest allocated identifier that is not below `from`.
    fn next_allocated(&self, from: Self::Id) -> Option<Self::Id>;

    /// The range that identifiers are taken from.
    fn range(&self) -> IdRange;

    /// How many identifiers are allocated, reserved ones included.
    fn allocated(&self) -> u64;

    /// The lowest identifier of the range that is not allocated and not below `from`.
    ///
    /// Takes time in proportion to the identifiers it passes over, unless the implementation knows better.
    fn next_free(&self, from: Self::Id) -> Option<Self::Id> {
        let range = self.range();
        let ids = from.to_u64().max(range.first())..=range.last();
        ids.map(Self::Id::from_u64)
            .find(|&id| !self.is_allocated(id))
    }

    /// The identifier that was handed out last, where the rule goes on from there and that is cheap to say.
    fn cursor(&self) -> Option<Self::Id> {
        None
    }

    /// Whether several threads may be at work at once. Where they may not, the layers use no locked instruction.
    ///
    /// `true` is always right. A type that says `false` and is shared all the same gives wrong answers, and nothing
    /// worse.
    fn is_shared(&self) -> bool {
        true
    }
}

impl From<BorrowError> for IdError {
    fn from(_: BorrowError) -> Self {
        Self::Borrowed
    }
}

impl From<BorrowMutError> for IdError {
    fn from(_: BorrowMutError) -> Self {
        Self::Borrowed
    }
}

/// For one owner. A method that cannot fail panics while the cell is mutably borrowed elsewhere.
impl<R: Rule, T: Id> Allocate for RefCell<Ids<R, T>> {
    type Id = T;

    #[inline]
    fn alloc(&self) -> Result<Self::Id, IdError> {
        self.try_borrow_mut()?.alloc()
    }

    fn alloc_at(&self, id: Self::Id) -> Result<(), IdError> {
        self.try_borrow_mut()?.alloc_at(id)
    }

    #[inline]
    fn free(&self, id: Self::Id) -> Result<(), IdError> {
        self.try_borrow_mut()?.free(id)
    }

    fn is_allocated(&self, id: Self::Id) -> bool {
        self.borrow().is_allocated(id)
    }

    fn next_allocated(&self, from: Self::Id) -> Option<Self::Id> {
        self.borrow().next_allocated(from)
    }

    fn range(&self) -> IdRange {
        self.borrow().range()
    }

    fn allocated(&self) -> u64 {
        self.borrow().allocated()
    }

    fn next_free(&self, from: Self::Id) -> Option<Self::Id> {
        self.borrow().next_free(from)
    }

    fn cursor(&self) -> Option<Self::Id> {
        self.borrow().cursor()
    }

    #[inline]
    fn is_shared(&self) -> bool {
        false
    }
}

#[cfg(feature = "std")]
impl<R: Rule<Order: Send>, T: Id> Allocate for IdSpace<R, T> {
    type Id = T;

    #[inline]
    fn alloc(&self) -> Result<Self::Id, IdError> {
        Self::alloc(self)
    }

    fn alloc_at(&self, id: Self::Id) -> Result<(), IdError> {
        Self::alloc_at(self, id)
    }

    #[inline]
    fn free(&self, id: Self::Id) -> Result<(), IdError> {
        Self::free(self, id)
    }

    fn is_allocated(&self, id: Self::Id) -> bool {
        Self::is_allocated(self, id)
    }

    fn next_allocated(&self, from: Self::Id) -> Option<Self::Id> {
        Self::next_allocated(self, from)
    }

    fn range(&self) -> IdRange {
        Self::range(self)
    }

    fn allocated(&self) -> u64 {
        Self::allocated(self)
    }

    fn next_free(&self, from: Self::Id) -> Option<Self::Id> {
        Self::next_free(self, from)
    }
}

macro_rules! through {
    ($($pointer:ty),*) => {$(
        impl<A: Allocate + ?Sized> Allocate for $pointer {
            type Id = A::Id;

            #[inline]
            fn alloc(&self) -> Result<Self::Id, IdError> {
                (**self).alloc()
            }

            fn alloc_at(&self, id: Self::Id) -> Result<(), IdError> {
                (**self).alloc_at(id)
            }

            #[inline]
            fn free(&self, id: Self::Id) -> Result<(), IdError> {
                (**self).free(id)
            }

            fn is_allocated(&self, id: Self::Id) -> bool {
                (**self).is_allocated(id)
            }

            fn next_allocated(&self, from: Self::Id) -> Option<Self::Id> {
                (**self).next_allocated(from)
            }

            fn range(&self) -> IdRange {
                (**self).range()
            }

            fn allocated(&self) -> u64 {
                (**self).allocated()
            }

            fn next_free(&self, from: Self::Id) -> Option<Self::Id> {
                (**self).next_free(from)
            }

            fn cursor(&self) -> Option<Self::Id> {
                (**self).cursor()
            }

            #[inline]
            fn is_shared(&self) -> bool {
                (**self).is_shared()
            }
        }
    )*};
}

through!(&A, Rc<A>, Arc<A>);
