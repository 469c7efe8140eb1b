//! Generation tags: an identifier that is used again does not look the same.

mod fields;
mod handle;
mod widths;

pub use handle::Handle;
pub use widths::Widths;

use alloc::format;
use core::sync::atomic::{AtomicU64, Ordering};

use super::{Allocate, Id, IdError};
use fields::Fields;

/// What becomes of a slot when its generations are used up.
///
/// ```
/// use core::cell::RefCell;
/// use larder::ids::{Ids, OnWrap, Tagged, Widths, rule::Lowest};
///
/// // One bit of generation: a slot has two lives.
/// let one = || Ids::new(0u8..1, Lowest).map(RefCell::new);
/// let lives = |on_wrap| {
///     let tags = Tagged::with(one()?, Widths::new(8, 7)?, on_wrap, 0)?;
///     let mut raw = Vec::new();
///     for _ in 0..3 {
///         let Ok(handle) = tags.alloc() else { break };
///         raw.push(handle.raw());
///         tags.free(handle)?;
///     }
///     Ok::<_, larder::ids::IdError>(raw)
/// };
/// assert_eq!(lives(OnWrap::Retire)?, [0, 128]);
/// assert_eq!(lives(OnWrap::Reuse)?, [0, 128, 0], "the third is equal to the first");
/// # Ok::<(), larder::ids::IdError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnWrap {
    /// It is never used again, so that no two handles are ever equal. Costs one slot per 2^(generation bits) uses.
    #[default]
    Retire,
    /// It begins again at generation 0: a handle that was kept that long may be taken for a new one.
    Reuse,
}

/// Handles over identifiers: a stale or forged handle is an error, whatever the rule below does with the identifiers.
///
/// The handle is the identifier (index) with a generation above it; the generation counts how often the slot was
/// freed. NetBSD's pids and NVMe's tags are made so; that a slot is retired at the wrap is what those lack (slotmap
/// returns an equal key after 2^31 uses of a slot). Memory: the next power of two above the bits of a generation for
/// each index that was ever in use, in pieces of 1 KiB, beside what the identifiers take: a slot's generation must outlive
/// its handles, so nothing is given back before the table is dropped. Over a wide range take a rule that uses few different
/// indices ([`Lowest`](crate::ids::rule::Lowest), [`Lifo`](crate::ids::rule::Lifo)).
///
/// Works through `&self`; over [`IdSpace`](super::IdSpace) from many threads. A check reads two to six words and
/// writes nothing.
///
/// ```
/// # fn main() -> Result<(), larder::ids::IdError> {
/// use core::cell::RefCell;
/// use larder::ids::{Handle, IdError, Ids, Tagged, Widths, rule::Lowest};
///
/// let slots = RefCell::new(Ids::new(0u32..1000, Lowest)?);
/// let tags = Tagged::new(slots, Widths::W32)?;
/// let handle = tags.alloc()?;
/// assert_eq!(tags.check(handle), Ok(0));          // it stands for slot 0
/// tags.free(handle)?;
/// let again = tags.alloc()?;                      // slot 0 again, but another handle
/// assert_eq!((tags.check(again), again.raw()), (Ok(0), 1 << 20));
/// assert_eq!(tags.check(handle), Err(IdError::Stale { handle: 0 }));
/// assert!(tags.free(Handle::from_raw(12345)).is_err(), "no such handle was made");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Tagged<A> {
    ids: A,
    widths: Widths,
    on_wrap: OnWrap,
    /// The generation that a slot has at its first use.
    first: u64,
    /// For each slot twice the number of times it was freed, and 1 more while it is in use.
    table: Fields,
    retired: AtomicU64,
}

impl<A: Allocate> Tagged<A> {
    /// Handles over the identifiers of `ids`, which must fit the index. Slots are retired at the wrap.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, Tagged, Widths, rule::Lowest};
    /// assert!(Tagged::new(RefCell::new(Ids::new(0u32..4096, Lowest)?), Widths::W16).is_ok());
    /// assert!(Tagged::new(RefCell::new(Ids::new(0u32..4097, Lowest)?), Widths::W16).is_err(), "12 bits of index");
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::Invalid`] when the largest identifier needs more bits than the index has. Identifiers that are
    /// allocated already (a reserved band) stay so and have no handle.
    pub fn new(ids: A, widths: Widths) -> Result<Self, IdError> {
        Self::with(ids, widths, OnWrap::Retire, 0)
    }

    /// As [`new`](Self::new), with a say on what happens at the wrap, and with the generation that every slot begins
    /// with: a program that starts again with another one than before refuses the handles of its former life.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, OnWrap, Tagged, Widths, rule::Lowest};
    /// let slots = || Ids::new(0u32..1000, Lowest).map(RefCell::new);
    /// let former = Tagged::with(slots()?, Widths::W32, OnWrap::Retire, 0)?.alloc()?;
    /// let now = Tagged::with(slots()?, Widths::W32, OnWrap::Retire, 1)?;
    /// now.alloc()?;
    /// assert!(!now.is_live(former), "the same slot, of the program's former life");
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Self::new), and [`IdError::Invalid`] for a generation that does not fit.
    pub fn with(ids: A, widths: Widths, on_wrap: OnWrap, first: u64) -> Result<Self, IdError> {
        let range = ids.range();
        if range.last() > widths.last_index() {
            return Err(IdError::Invalid {
                what: format!("an index of {} bits for {range}", widths.index()),
                advice: "give the index more bits, or a narrower range",
            });
        }
        if first > widths.last_generation() {
            return Err(IdError::Invalid {
                what: format!("generation {first} in {} bits", widths.generation()),
                advice: "begin with a smaller generation",
            });
        }
        Ok(Self {
            table: Fields::new(range.last() - range.first(), widths.generation() + 1),
            ids,
            widths,
            on_wrap,
            first,
            retired: AtomicU64::new(0),
        })
    }

    /// Takes a slot and makes a handle for it.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, Tagged, Widths, rule::Lowest};
    /// # let tags = Tagged::new(RefCell::new(Ids::new(0u32..1000, Lowest)?), Widths::W32)?;
    /// let handle = tags.alloc()?;
    /// assert_eq!(tags.check(handle), Ok(0));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::Full`], which does not count retired slots; [`IdError::Retired`] when nothing but those is left;
    /// [`IdError::Resting`], [`IdError::OutOfMemory`].
    pub fn alloc(&self) -> Result<Handle, IdError> {
        let index = self
            .ids
            .alloc()
            .map_err(|error| self.without_retired(error))?;
        self.born(index)
    }

    /// The identifiers below take retired slots for allocated ones, which could be freed.
    #[cold]
    fn without_retired(&self, error: IdError) -> IdError {
        match (error, self.retired()) {
            (IdError::Full { allocated }, retired @ 1..) => match allocated.saturating_sub(retired)
            {
                0 => IdError::Retired { retired },
                allocated => IdError::Full { allocated },
            },
            (error, _) => error,
        }
    }

    /// Takes this very slot.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, Tagged, Widths, rule::Lowest};
    /// # let tags = Tagged::new(RefCell::new(Ids::new(0u32..1000, Lowest)?), Widths::W32)?;
    /// let handle = tags.alloc_at(7)?;
    /// assert_eq!(tags.check(handle), Ok(7));
    /// assert!(tags.alloc_at(7).is_err());
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::OutOfRange`], [`IdError::Taken`] (also for a retired slot), [`IdError::OutOfMemory`].
    pub fn alloc_at(&self, index: A::Id) -> Result<Handle, IdError> {
        self.ids.alloc_at(index)?;
        self.born(index)
    }

    /// The handle of a slot that `ids` has just given to this call alone.
    fn born(&self, index: A::Id) -> Result<Handle, IdError> {
        let at = index.to_u64() - self.ids.range().first();
        if let Err(error) = self.table.make(at) {
            // It was taken a moment ago, so it can be freed. If even this fails, it stays taken, without an owner.
            let _ = self.ids.free(index);
            return Err(error);
        }
        let state = self.table.get(at);
        if state & 1 == 1
            || !self
                .table
                .replace(at, state, state | 1, self.ids.is_shared())
        {
            // The identifier was freed below, without its handle: the handle that lives keeps the slot.
            return Err(IdError::Taken { id: index.to_u64() });
        }
        Ok(self.handle(index, state >> 1))
    }

    /// The handle of the slot after it was freed `uses` times.
    #[inline]
    fn handle(&self, index: A::Id, uses: u64) -> Handle {
        let generation = self.first.wrapping_add(uses) & self.widths.last_generation();
        Handle::from_raw(self.widths.join(index.to_u64(), generation))
    }

    /// The slot, its place in the table and the state that the table has as long as the handle lives.
    #[inline]
    fn parse(&self, handle: Handle) -> Option<(A::Id, u64, u64)> {
        let (index, generation) = self.widths.split(handle.raw())?;
        let at = self.ids.range().offset(index).ok()?;
        let uses = generation.wrapping_sub(self.first) & self.widths.last_generation();
        Some((A::Id::from_u64(index), at, uses << 1 | 1))
    }

    /// The index of a handle that is alive.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{IdError, Ids, Tagged, Widths, rule::Lowest};
    /// # let tags = Tagged::new(RefCell::new(Ids::new(0u32..1000, Lowest)?), Widths::W32)?;
    /// let handle = tags.alloc_at(7)?;
    /// assert_eq!(tags.check(handle), Ok(7));
    /// tags.free(handle)?;
    /// assert_eq!(tags.check(handle), Err(IdError::Stale { handle: 7 }));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::Stale`] for any other handle: freed, never made, or of another table.
    #[inline]
    pub fn check(&self, handle: Handle) -> Result<A::Id, IdError> {
        match self.parse(handle) {
            Some((index, at, alive)) if self.table.get(at) == alive => Ok(index),
            _ => Err(stale(handle)),
        }
    }

    /// Whether a handle is alive.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Handle, Ids, Tagged, Widths, rule::Lowest};
    /// # let tags = Tagged::new(RefCell::new(Ids::new(0u32..1000, Lowest)?), Widths::W32)?;
    /// assert!(tags.is_live(tags.alloc()?));
    /// assert!(!tags.is_live(Handle::from_raw(12345)));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    #[inline]
    pub fn is_live(&self, handle: Handle) -> bool {
        self.check(handle).is_ok()
    }

    /// Ends the life of a handle and gives its slot back. Of many threads that free one handle, one succeeds.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, Tagged, Widths, rule::Lowest};
    /// # let tags = Tagged::new(RefCell::new(Ids::new(0u32..1000, Lowest)?), Widths::W32)?;
    /// let handle = tags.alloc()?;
    /// tags.free(handle)?;
    /// assert!(tags.free(handle).is_err());
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdError::Stale`], [`IdError::OutOfMemory`] (the handle stays alive).
    pub fn free(&self, handle: Handle) -> Result<(), IdError> {
        let Some((index, at, alive)) = self.parse(handle) else {
            return Err(stale(handle));
        };
        let shared = self.ids.is_shared();
        let (_, generation) = self.widths.split(handle.raw()).unwrap_or_default();
        let wraps = generation == self.widths.last_generation();
        let uses = ((alive >> 1) + 1) & self.widths.last_generation();
        let dead = if wraps && self.on_wrap == OnWrap::Retire {
            alive & !1
        } else {
            uses << 1
        };
        if !self.table.replace(at, alive, dead, shared) {
            return Err(stale(handle));
        }
        if wraps && self.on_wrap == OnWrap::Retire {
            // The identifier below stays taken for good, so this slot is not used again.
            self.retired.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        self.ids.free(index).inspect_err(|_| {
            // The slot is still taken below, so no other thread may write its state.
            self.table.replace(at, dead, alive, shared);
        })
    }

    /// The live handle with the lowest index that is not below `index`.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, Tagged, Widths, rule::Lowest};
    /// # let tags = Tagged::new(RefCell::new(Ids::new(0u32..1000, Lowest)?), Widths::W32)?;
    /// let handle = tags.alloc_at(7)?;
    /// assert_eq!((tags.next_live(5), tags.next_live(8)), (Some(handle), None));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn next_live(&self, index: A::Id) -> Option<Handle> {
        self.live_from(index.to_u64())
    }

    fn live_from(&self, index: u64) -> Option<Handle> {
        let range = self.ids.range();
        let mut from = index;
        while from <= range.last() {
            let index = self.ids.next_allocated(A::Id::from_u64(from))?;
            let at = index.to_u64();
            let state = self.table.get(at - range.first());
            if state & 1 == 1 {
                return Some(self.handle(index, state >> 1));
            }
            from = at.checked_add(1)?;
        }
        None
    }

    /// The live handles in the order of their indices. Others may come and go meanwhile.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, Tagged, Widths, rule::Lowest};
    /// # let tags = Tagged::new(RefCell::new(Ids::new(0u32..1000, Lowest)?), Widths::W32)?;
    /// let (nine, four) = (tags.alloc_at(9)?, tags.alloc_at(4)?);
    /// assert!(tags.iter().eq([four, nine]));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = Handle> + '_ {
        let mut from = Some(0);
        core::iter::from_fn(move || {
            let handle = self.live_from(from?)?;
            from = (handle.raw() & self.widths.last_index()).checked_add(1);
            Some(handle)
        })
    }

    /// How many slots were retired because their generations are used up.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{IdError, Ids, Tagged, Widths, rule::Lowest};
    /// let tags = Tagged::new(RefCell::new(Ids::new(0u8..1, Lowest)?), Widths::new(8, 7)?)?;
    /// for _ in 0..2 {
    ///     tags.free(tags.alloc()?)?;              // a slot has two lives, with one bit of generation
    /// }
    /// assert_eq!((tags.retired(), tags.alloc()), (1, Err(IdError::Retired { retired: 1 })));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn retired(&self) -> u64 {
        self.retired.load(Ordering::Relaxed)
    }

    /// How the handles are made up.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, Tagged, Widths, rule::Lowest};
    /// # let tags = Tagged::new(RefCell::new(Ids::new(0u32..1000, Lowest)?), Widths::W32)?;
    /// assert_eq!(tags.widths(), Widths::W32);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn widths(&self) -> Widths {
        self.widths
    }

    /// The identifiers below. To free one there is a mistake, after which its slot is not used again.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Allocate, Ids, Tagged, Widths, rule::Lowest};
    /// # let tags = Tagged::new(RefCell::new(Ids::new(0u32..1000, Lowest)?), Widths::W32)?;
    /// tags.alloc()?;
    /// assert_eq!(tags.ids().allocated(), 1);
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn ids(&self) -> &A {
        &self.ids
    }

    /// Bytes of the table of generations; the identifiers' own come on top.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Ids, Tagged, Widths, rule::Lowest};
    /// # let tags = Tagged::new(RefCell::new(Ids::new(0u32..1000, Lowest)?), Widths::W32)?;
    /// let before = tags.table_bytes();
    /// tags.alloc()?;
    /// assert!(tags.table_bytes() >= before + 1024, "a piece for the first slots");
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub fn table_bytes(&self) -> usize {
        self.table.bytes()
    }
}

#[cold]
fn stale(handle: Handle) -> IdError {
    IdError::Stale {
        handle: handle.raw(),
    }
}
