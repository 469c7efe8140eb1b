//! Limits per tenant: at most so many identifiers each.

use alloc::string::String;
use core::sync::atomic::AtomicU32;
#[cfg(not(shuttle))]
use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(shuttle)]
use shuttle::sync::atomic::{AtomicU64, Ordering};

use super::fields::Fields;
use super::{Allocate, IdError};

/// An owner that may have at most a number of identifiers: a container, a user, a session.
///
/// The limit holds over all [`Tenants`] that the tenant takes identifiers from.
///
/// ```
/// use core::cell::RefCell;
/// use larder::ids::{Ids, Tenant, Tenants, rule::Lowest};
/// let ann = Tenant::new("ann", 2)?;
/// let pids = Tenants::new(RefCell::new(Ids::new(1u32..32768, Lowest)?));
/// let ports = Tenants::new(RefCell::new(Ids::new(1024u16..=65535, Lowest)?));
/// (pids.alloc(&ann)?, ports.alloc(&ann)?);
/// assert!(pids.alloc(&ann).is_err(), "ann has two");
/// # Ok::<(), larder::ids::IdError>(())
/// ```
#[derive(Debug)]
pub struct Tenant {
    name: String,
    /// Told apart by this in the tables of owners; never 0, never used again.
    number: u32,
    limit: AtomicU64,
    used: AtomicU64,
}

impl Tenant {
    /// A tenant that holds nothing. The name is for messages and need not be unique.
    ///
    /// ```
    /// # use larder::ids::Tenant;
    /// let ann = Tenant::new("ann", 2)?;
    /// assert_eq!((ann.name(), ann.limit(), ann.used()), ("ann", 2, 0));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::Invalid`] for the 2^32th tenant of a process.
    pub fn new(name: impl Into<String>, limit: u64) -> Result<Self, IdError> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_add(1))
            .map_err(|_| IdError::Invalid {
                what: String::from("another tenant after four thousand million"),
                advice: "keep tenants instead of making new ones",
            })?;
        Ok(Self {
            name: name.into(),
            number,
            limit: AtomicU64::new(limit),
            used: AtomicU64::new(0),
        })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many identifiers the tenant may hold.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Sets another limit. Nothing is taken away: a tenant above it gets nothing until enough is given back.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, Tenant, Tenants, rule::Lowest};
    /// # let ids = Tenants::new(RefCell::new(Ids::new(0u32..100, Lowest)?));
    /// let ann = Tenant::new("ann", 0)?;
    /// assert!(ids.alloc(&ann).is_err());
    /// ann.set_limit(1);
    /// assert_eq!(ids.alloc(&ann)?, 0);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// How many identifiers the tenant holds; while other threads allocate, perhaps one more for each.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, Tenant, Tenants, rule::Lowest};
    /// # let ids = Tenants::new(RefCell::new(Ids::new(0u32..100, Lowest)?));
    /// let ann = Tenant::new("ann", 2)?;
    /// ids.alloc(&ann)?;
    /// assert_eq!(ann.used(), 1);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Counts one more, unless the limit is reached. One locked instruction.
    fn charge(&self) -> Result<(), IdError> {
        let limit = self.limit();
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                (used < limit).then_some(used + 1)
            })
            .map(drop)
            .map_err(|held| self.at_limit(held, limit))
    }

    fn discharge(&self) {
        self.used.fetch_sub(1, Ordering::Relaxed);
    }

    #[cold]
    fn at_limit(&self, held: u64, limit: u64) -> IdError {
        IdError::TenantLimit {
            tenant: self.name.clone(),
            held,
            limit,
        }
    }

    #[cold]
    fn foreign(&self, id: u64) -> IdError {
        IdError::Foreign {
            id,
            tenant: self.name.clone(),
        }
    }
}

/// Identifiers that tenants share, of which each holds at most its limit and frees only its own.
///
/// Counting is exact under threads: a tenant never holds more than its limit, and one below it that meets no other
/// allocation of its own is never refused. Memory: 32 bits for each identifier that
/// was ever in use, in pieces of 1 KiB that stay until this is dropped: take a rule that uses few different identifiers
/// ([`Lowest`](crate::ids::rule::Lowest), [`Lifo`](crate::ids::rule::Lifo)) over a wide range.
///
/// ```
/// # fn main() -> Result<(), larder::ids::IdError> {
/// use core::cell::RefCell;
/// use larder::ids::{Ids, Tenant, Tenants, rule::Lowest};
///
/// let ids = Tenants::new(RefCell::new(Ids::new(0u32..100, Lowest)?));
/// let (ann, bob) = (Tenant::new("ann", 2)?, Tenant::new("bob", 50)?);
/// let id = ids.alloc(&ann)?;
/// ids.alloc(&ann)?;
/// let error = ids.alloc(&ann).unwrap_err();
/// assert_eq!(error.to_string(), "ann holds 2 identifiers and may hold 2; free some, or raise the limit");
/// assert!(ids.free(&bob, id).is_err(), "ann's");
/// ids.free(&ann, id)?;
/// assert_eq!((ann.used(), bob.used()), (1, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Tenants<A> {
    ids: A,
    /// The owner's number for each identifier, 0 for none.
    owners: Fields,
}

impl<A: Allocate> Tenants<A> {
    /// Shares `ids` out. What is allocated there already (a reserved band) has no owner.
    pub fn new(ids: A) -> Self {
        let range = ids.range();
        Self {
            owners: Fields::new(range.last() - range.first(), u32::BITS),
            ids,
        }
    }

    /// Takes the next identifier for a tenant.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{IdError, Ids, Tenant, Tenants, rule::Lowest};
    /// # let ids = Tenants::new(RefCell::new(Ids::new(0u32..100, Lowest)?));
    /// let ann = Tenant::new("ann", 1)?;
    /// assert_eq!(ids.alloc(&ann)?, 0);
    /// assert!(matches!(ids.alloc(&ann), Err(IdError::TenantLimit { limit: 1, .. })));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::TenantLimit`], and as [`Allocate::alloc`].
    pub fn alloc(&self, tenant: &Tenant) -> Result<u64, IdError> {
        self.take(tenant, || self.ids.alloc())
    }

    /// Takes this very identifier for a tenant.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, Tenant, Tenants, rule::Lowest};
    /// # let ids = Tenants::new(RefCell::new(Ids::new(0u32..100, Lowest)?));
    /// let ann = Tenant::new("ann", 2)?;
    /// ids.alloc_at(&ann, 7)?;
    /// assert!(ids.owns(&ann, 7));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::TenantLimit`], and as [`Allocate::alloc_at`].
    pub fn alloc_at(&self, tenant: &Tenant, id: u64) -> Result<(), IdError> {
        self.take(tenant, || self.ids.alloc_at(id).map(|()| id))
            .map(drop)
    }

    fn take(
        &self,
        tenant: &Tenant,
        alloc: impl FnOnce() -> Result<u64, IdError>,
    ) -> Result<u64, IdError> {
        tenant.charge()?;
        let taken = alloc().and_then(|id| self.enter(tenant, id).map(|()| id));
        taken.inspect_err(|_| tenant.discharge())
    }

    /// Writes down whose the identifier is, which was just allocated.
    fn enter(&self, tenant: &Tenant, id: u64) -> Result<(), IdError> {
        let at = id - self.ids.range().first();
        if let Err(error) = self.owners.make(at) {
            let _ = self.ids.free(id);
            return Err(error);
        }
        if self
            .owners
            .replace(at, 0, tenant.number.into(), self.ids.is_shared())
        {
            Ok(())
        } else {
            // It was freed below although it has an owner. The owner keeps it.
            Err(IdError::Taken { id })
        }
    }

    /// Frees an identifier of a tenant.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{IdError, Ids, Tenant, Tenants, rule::Lowest};
    /// # let ids = Tenants::new(RefCell::new(Ids::new(0u32..100, Lowest)?));
    /// let (ann, bob) = (Tenant::new("ann", 2)?, Tenant::new("bob", 2)?);
    /// let id = ids.alloc(&ann)?;
    /// assert!(matches!(ids.free(&bob, id), Err(IdError::Foreign { .. })));
    /// ids.free(&ann, id)?;
    /// assert_eq!(ann.used(), 0);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::OutOfRange`]; [`IdError::NotAllocated`]; [`IdError::Foreign`] for one of another tenant;
    /// [`IdError::OutOfMemory`].
    pub fn free(&self, tenant: &Tenant, id: u64) -> Result<(), IdError> {
        let at = self.ids.range().offset(id)?;
        let (me, shared) = (u64::from(tenant.number), self.ids.is_shared());
        if !self.owners.replace(at, me, 0, shared) {
            return Err(match self.owners.get(at) {
                0 => IdError::NotAllocated { id },
                _ => tenant.foreign(id),
            });
        }
        self.ids.free(id).inspect_err(|_| {
            // It is still taken below, so no other tenant can own it.
            self.owners.replace(at, 0, me, shared);
        })?;
        tenant.discharge();
        Ok(())
    }

    /// Frees all identifiers of a tenant, for one that has died; says how many.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Allocate, Ids, Tenant, Tenants, rule::Lowest};
    /// # let ids = Tenants::new(RefCell::new(Ids::new(0u32..100, Lowest)?));
    /// let (ann, bob) = (Tenant::new("ann", 2)?, Tenant::new("bob", 2)?);
    /// (ids.alloc(&ann)?, ids.alloc(&bob)?, ids.alloc(&ann)?);
    /// assert_eq!(ids.free_all(&ann)?, 2);
    /// assert_eq!((ann.used(), ids.ids().allocated()), (0, 1));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`]; those before it are free.
    pub fn free_all(&self, tenant: &Tenant) -> Result<u64, IdError> {
        let mut freed = 0;
        let mut from = Some(0);
        while let Some(id) = from.and_then(|from| self.ids.next_allocated(from)) {
            if self.owns(tenant, id) {
                match self.free(tenant, id) {
                    Ok(()) => freed += 1,
                    // Another thread was faster.
                    Err(IdError::NotAllocated { .. } | IdError::Foreign { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            from = id.checked_add(1);
        }
        Ok(freed)
    }

    /// Whether the identifier is the tenant's.
    pub fn owns(&self, tenant: &Tenant, id: u64) -> bool {
        let at = self.ids.range().offset(id);
        at.is_ok_and(|at| self.owners.get(at) == tenant.number.into())
    }

    /// The identifiers below. To free one there is a mistake, after which it is not handed out again.
    pub fn ids(&self) -> &A {
        &self.ids
    }
}
