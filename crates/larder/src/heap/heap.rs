//! The explicit handle: a heap of one owner.

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::account::{Account, HeapStats};
use super::class::{CLASSES, GRAIN, SIZES, class_of_layout, computed_class, small_class_of_layout};
use super::classes::Classes;
use super::error::AllocError;
use crate::magazine::Pair;
use crate::objects::{Family, Misuse, ObjectError, RawCache, View};

/// Fewest pages of a private heap's slabs: as many as slabs can have, since they all go at once.
const PRIVATE_SLAB_PAGES: usize = 64;

/// A heap of one owner: magazines for every size class, made when they are needed. It moves between threads, and needs
/// no lock, no atomic instruction and no thread-local: what Michael Maraist sketched in 2001 as the allocator that an
/// interpreter carries in its own structure.
///
/// It is not `Sync`, so all methods take `&self`, and it is an [`Allocator`](allocator_api2::alloc::Allocator) by
/// reference with the feature `allocator-api2`.
///
/// ```
/// use std::alloc::Layout;
/// use larder::{heap::{Classes, Heap}, objects::Family};
/// let classes = Classes::new(&Family::new()?);
/// let (a, b) = (Heap::new(&classes), Heap::new(&classes));
/// let layout = Layout::new::<[u64; 5]>();
/// let object = a.alloc(layout)?;
/// // SAFETY: taken above with this layout from a heap of the same classes, put once.
/// unsafe { b.dealloc(object, layout) };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Freed elsewhere
///
/// An object may be freed by another heap of the same [`Classes`], or by the classes themselves: it is then in that
/// heap's magazines and flows back with them through the depot.
///
/// # Dropping
///
/// A heap that is dropped gives its magazines to the depot, in constant time for each; live objects stay valid. A
/// [private](Self::private) heap takes all its objects with it, large ones included, without visiting one; where its
/// [`classes`](Self::classes) were cloned, they go with the last of these.
#[repr(C)]
pub struct Heap {
    /// First, and its pairs too, so that a class's is one sum away.
    inner: UnsafeCell<Inner>,
    classes: Classes,
    /// The owners of the pages of the classes' family, at hand.
    pub(super) view: View,
    /// [`Classes::first_number`], at hand.
    pub(super) first_number: usize,
    /// Not `Sync`, whatever its fields are.
    one_owner: PhantomData<core::cell::Cell<()>>,
}

#[repr(C)]
struct Inner {
    pairs: [Pair; CLASSES],
    /// Exchanges of magazines with the depot and the slabs since the last collection.
    exchanges: [u32; CLASSES],
    account: Account,
}

// SAFETY: magazines and counts that belong to the heap's owner; nothing in it knows a thread.
unsafe impl Send for Heap {}

impl Heap {
    /// A heap over classes that other heaps share. It takes no memory before it is used.
    ///
    /// [`Heap`] shows two of the same classes.
    #[must_use]
    pub fn new(classes: &Classes) -> Self {
        // What was before concerns no new heap.
        let mut account = Account::default();
        account.intervals = classes.family().intervals();
        account.collections = classes.growth().collections();
        Self {
            inner: UnsafeCell::new(Inner {
                pairs: [const { Pair::none() }; CLASSES],
                exchanges: [0; CLASSES],
                account,
            }),
            classes: classes.clone(),
            view: classes.family().view(),
            first_number: classes.first_number(),
            one_owner: PhantomData,
        }
    }

    /// A heap with slabs of its own: dropping it ends all its objects, large ones included, without visiting them: in
    /// constant time for a slab and for a large object, whose list lies in metadata. A large object has two pages at least.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::Heap, objects::Family};
    /// let family = Family::new()?;
    /// let heap = Heap::private(&family);
    /// for _ in 0..1000 {
    ///     heap.alloc(Layout::new::<[u64; 5]>())?;
    /// }
    /// drop(heap);                                     // and all of them are gone
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn private(family: &Family) -> Self {
        Self::new(&Classes::private(family, PRIVATE_SLAB_PAGES))
    }

    /// The classes that it is made of.
    #[must_use]
    pub fn classes(&self) -> &Classes {
        &self.classes
    }

    /// Bytes of `layout`, with whatever a former owner left.
    ///
    /// 6 instructions when the size is known at compile time and the loaded magazine has an object.
    ///
    /// # Errors
    /// See [`AllocError`].
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::{Classes, Heap}, objects::Family};
    /// let heap = Heap::new(&Classes::new(&Family::new()?));
    /// let layout = Layout::new::<[u64; 4]>();
    /// let object = heap.alloc(layout)?;
    /// // SAFETY: taken above with this layout, put once.
    /// unsafe { heap.dealloc(object, layout) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn alloc(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        match small_class_of_layout(layout) {
            Some(class) if layout.align() > GRAIN => self.get_aligned(class, layout),
            Some(class) => self.get_for(class, layout),
            None => self.alloc_large(layout, false),
        }
    }

    /// Bytes of `layout`, all zero.
    ///
    /// # Errors
    /// See [`AllocError`].
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::{Classes, Heap}, objects::Family};
    /// let heap = Heap::new(&Classes::new(&Family::new()?));
    /// let layout = Layout::new::<[u64; 4]>();
    /// let object = heap.alloc_zeroed(layout)?;
    /// // SAFETY: taken above with this layout, put once.
    /// unsafe {
    ///     assert_eq!(object.cast::<[u64; 4]>().read(), [0; 4]);
    ///     heap.dealloc(object, layout);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn alloc_zeroed(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        match small_class_of_layout(layout) {
            None => return self.alloc_large(layout, true),
            Some(class) if layout.align() <= GRAIN && self.classes.debug().is_none() => {
                return self.get_zeroed(class, layout.size());
            }
            Some(_) => {}
        }
        let at = self.alloc(layout)?;
        // SAFETY: just taken, with at least this size.
        unsafe { at.write_bytes(0, layout.size()) };
        Ok(at)
    }

    /// Gives an object back. 6 instructions when the loaded magazine has room.
    ///
    /// # Safety
    /// It came with this layout from this heap, another one of the same classes, or the classes, and is not used
    /// afterwards.
    #[inline]
    pub unsafe fn dealloc(&self, object: NonNull<u8>, layout: Layout) {
        match small_class_of_layout(layout) {
            Some(class) => {
                debug_assert!(
                    self.class_at(object) == Some(class)
                        || self.classes.debug().is_some()
                        || self.classes.family().has_outgrown(),
                    "{object:?} was put, which is no object of {} bytes of this heap",
                    SIZES[class]
                );
                // SAFETY: the caller's promise.
                unsafe { self.put_for(object, class, layout) }
            }
            // SAFETY: as above.
            None => unsafe { self.dealloc_large(object, Some(layout)) },
        }
    }

    /// Gives an object back whose layout is not known: its class is found by its address.
    ///
    /// # Safety
    /// As for [`dealloc`](Self::dealloc), without the layout. An address that is none of these classes' objects is
    /// reported to the family, and nothing else happens.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::{Classes, Heap}, objects::Family};
    /// let heap = Heap::new(&Classes::new(&Family::new()?));
    /// let layout = Layout::new::<[u64; 4]>();
    /// let object = heap.alloc(layout)?;
    /// // SAFETY: taken above, put once; the layout is not needed.
    /// unsafe { heap.free(object) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub unsafe fn free(&self, object: NonNull<u8>) {
        match self.class_at(object) {
            // SAFETY: the caller's promise.
            Some(class) => unsafe { self.put(object, class) },
            // SAFETY: as above.
            None => unsafe { self.dealloc_large(object, None) },
        }
    }

    /// What the heap has taken and done.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::{Classes, Heap}, objects::Family};
    /// let heap = Heap::new(&Classes::new(&Family::new()?));
    /// let layout = Layout::new::<[u64; 4]>();
    /// let object = heap.alloc(layout)?;
    /// assert!(heap.stats().charged_bytes >= 32);
    /// // SAFETY: taken above with this layout, put once.
    /// unsafe { heap.dealloc(object, layout) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> HeapStats {
        let stocked = (0..CLASSES)
            .map(|class| self.pair(class).len() * SIZES[class])
            .sum();
        self.account().stats(stocked)
    }

    /// The magazines of a class. The borrow must end before anything else of this heap is called.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub(super) fn pair(&self, class: usize) -> &mut Pair {
        // SAFETY: the heap is not `Sync`, so only this thread is here; no caller keeps the borrow over a call that could
        // come back to this heap.
        unsafe { &mut (*self.inner.get()).pairs[class] }
    }

    #[allow(clippy::mut_from_ref)]
    pub(super) fn exchanges(&self, class: usize) -> &mut u32 {
        // SAFETY: as in `pair`.
        unsafe { &mut (*self.inner.get()).exchanges[class] }
    }

    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub(super) fn account(&self) -> &mut Account {
        // SAFETY: as in `pair`.
        unsafe { &mut (*self.inner.get()).account }
    }

    /// As [`Classes::class_at`].
    #[inline(always)]
    pub(super) fn class_at(&self, object: NonNull<u8>) -> Option<usize> {
        // SAFETY: the classes own the family.
        let owner = unsafe { self.view.owner(object.as_ptr() as usize) };
        self.classes.class_of_owner(owner)
    }

    /// An object of a class.
    #[inline(always)]
    pub(super) fn get(&self, class: usize) -> Result<NonNull<u8>, AllocError> {
        match self.try_get(class) {
            Some(object) => Ok(object),
            None => self.alloc_slow(class),
        }
    }

    /// An object of a class for a layout.
    #[inline(always)]
    fn get_for(&self, class: usize, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        match self.pair(class).try_get() {
            Some(round) => Ok(object(round)),
            None => self.alloc_missed(class, layout),
        }
    }

    #[cold]
    #[inline(never)]
    fn alloc_missed(&self, class: usize, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        match self.classes.debug() {
            Some(debug) => self.alloc_checked(debug, layout, false),
            None => self.alloc_slow(class),
        }
    }

    /// An object of a class that is aligned to more than all are. One that is larger than its class may not be so
    /// aligned; it goes back to the cache that owns it.
    #[inline]
    fn get_aligned(&self, class: usize, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        loop {
            let object = self.get_for(class, layout)?;
            if object.as_ptr() as usize & (layout.align() - 1) == 0 {
                return Ok(object);
            }
            self.classes.family().bring_outgrown(object);
        }
    }

    /// # Safety
    /// The object is of this class, of these classes, and given up.
    #[inline(always)]
    pub(super) unsafe fn put(&self, object: NonNull<u8>, class: usize) {
        if !self.pair(class).try_put(object.as_ptr() as usize) {
            self.put_slow(object, class);
        }
    }

    /// # Safety
    /// As for [`put`](Self::put), and it has this layout.
    #[inline(always)]
    unsafe fn put_for(&self, object: NonNull<u8>, class: usize, layout: Layout) {
        if !self.pair(class).try_put(object.as_ptr() as usize) {
            // SAFETY: the caller's promise.
            unsafe { self.put_missed(object, class, layout) };
        }
    }

    /// # Safety
    /// As for [`put_for`](Self::put_for).
    #[cold]
    #[inline(never)]
    unsafe fn put_missed(&self, object: NonNull<u8>, class: usize, layout: Layout) {
        match self.classes.debug() {
            // SAFETY: the caller's promise.
            Some(debug) => unsafe { self.free_checked(debug, object, Some(layout)) },
            None => self.put_slow(object, class),
        }
    }

    /// Works on the magazines of a class while the heap has none of it: what is called on the way may come back here.
    fn with_pair<T>(&self, class: usize, cache: &RawCache, f: impl FnOnce(&mut Pair) -> T) -> T {
        *self.exchanges(class) += 1;
        let mut pair = core::mem::replace(self.pair(class), Pair::none());
        let result = f(&mut pair);
        let mut late = core::mem::replace(self.pair(class), pair);
        self.account().give(late.len() * SIZES[class]);
        late.give_up(cache.stock());
        result
    }

    #[cold]
    #[inline(never)]
    fn alloc_slow(&self, class: usize) -> Result<NonNull<u8>, AllocError> {
        self.refill(class).map(|(object, _)| object)
    }

    /// An object of `size` bytes, all zero. Where it is new, and the system has just given its pages, nothing is written: a
    /// program that asks for much and uses little of it pays for what it uses.
    #[inline]
    pub(super) fn get_zeroed(&self, class: usize, size: usize) -> Result<NonNull<u8>, AllocError> {
        let (at, zero) = match self.pair(class).try_get() {
            Some(round) => (object(round), false),
            None => self.refill(class)?,
        };
        if !zero {
            // SAFETY: just taken, with at least this size.
            unsafe { at.write_bytes(0, size) };
        }
        Ok(at)
    }

    /// An object of a class whose loaded magazine is empty, and whether it is known to be zero.
    #[cold]
    #[inline(never)]
    fn refill(&self, class: usize) -> Result<(NonNull<u8>, bool), AllocError> {
        self.upkeep_if_due();
        // What the heap holds already is charged.
        if let Some(round) = self.pair(class).turn() {
            return Ok((object(round), false));
        }
        let cache = self.classes.cache_or_make(class)?;
        let size = SIZES[class];
        let room = self.account().room(size)?;
        let mut zero = false;
        let (round, taken) = if room < cache.stock().rounds() * size {
            // Not enough for a magazine's worth: one, from the CPU's stock.
            (cache.get()?.as_ptr() as usize, 1)
        } else if let Some(inherited) = self.pair(class).inherit(cache.stock()) {
            *self.exchanges(class) += 1;
            inherited
        } else {
            self.with_pair(class, &cache, |pair| -> Result<_, ObjectError> {
                let before = pair.len();
                let round;
                (round, zero) = cache.get_into(pair, &|| self.spare(cache.slab_bytes()))?;
                Ok((round, (pair.len() + 1).saturating_sub(before)))
            })?
        };
        self.account().take(taken * size);
        self.warn();
        Ok((object(round), zero))
    }

    #[cold]
    #[inline(never)]
    fn put_slow(&self, object: NonNull<u8>, class: usize) {
        self.upkeep_if_due();
        if let Some(cache) = self.classes.cache(class) {
            let given = self.with_pair(class, &cache, |pair| {
                let before = pair.len();
                cache.put_from(pair, object.as_ptr() as usize);
                (before + 1).saturating_sub(pair.len())
            });
            self.account().give(given * SIZES[class]);
        } else {
            // No object of the class was ever there: it is a larger one.
            self.classes.family().bring_outgrown(object);
        }
    }

    #[cold]
    #[inline(never)]
    fn alloc_large(&self, layout: Layout, zeroed: bool) -> Result<NonNull<u8>, AllocError> {
        // A heap that is checked has nothing in its magazines.
        if !zeroed
            && layout.align() <= GRAIN
            && let Some(object) =
                computed_class(layout.size()).and_then(|class| self.try_get(class))
        {
            return Ok(object);
        }
        if let Some(debug) = self.classes.debug() {
            return self.alloc_checked(debug, layout, zeroed);
        }
        match class_of_layout(layout) {
            Some(class) if zeroed => return self.get_zeroed(class, layout.size()),
            Some(class) => return self.get(class),
            None => {}
        }
        self.upkeep_if_due();
        let bytes = layout
            .size()
            .max(1)
            .next_multiple_of(crate::os::page_size());
        self.account().room(bytes)?;
        self.spare_for_run(bytes);
        let object = if zeroed {
            self.classes.alloc_large_zeroed(layout)
        } else {
            self.classes.alloc_large(layout)
        }?;
        let bytes = self.classes.family().large_bytes(object).unwrap_or(bytes);
        self.account().take_large(bytes);
        self.warn();
        Ok(object)
    }

    /// # Safety
    /// As for [`free`](Self::free).
    #[cold]
    #[inline(never)]
    unsafe fn dealloc_large(&self, object: NonNull<u8>, layout: Option<Layout>) {
        if let Some(debug) = self.classes.debug() {
            // SAFETY: the caller's promise.
            return unsafe { self.free_checked(debug, object, layout) };
        }
        if let Some(class) = layout.and_then(class_of_layout) {
            // SAFETY: as above.
            return unsafe { self.put(object, class) };
        }
        // SAFETY: the caller's promise. What is no large object is reported to the family, and nothing else happens.
        if let Err(misuse) = unsafe { self.put_large(object) } {
            self.classes.family().tell(&misuse);
        }
    }

    /// # Safety
    /// As for [`free`](Self::free).
    pub(super) unsafe fn put_large(&self, object: NonNull<u8>) -> Result<(), Misuse> {
        let family = self.classes.family();
        let bytes = family.large_bytes(object)?;
        // SAFETY: the caller's promise.
        unsafe { family.put_large(object)? };
        self.account().give_large(bytes);
        Ok(())
    }

    /// Warns of too much memory, outside of all borrows: the function may use this heap's classes.
    pub(super) fn warn(&self) {
        if self.account().is_due() {
            let stats = self.stats();
            if let Some(f) = self.account().take_warning() {
                f(stats);
                let refused = self.account().keep_warning(f);
                drop(refused);
            }
        }
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        let pairs = &mut self.inner.get_mut().pairs;
        for (class, pair) in pairs.iter_mut().enumerate() {
            if let Some(cache) = self.classes.cache(class) {
                pair.give_up(cache.stock());
            }
        }
        // Not when a heap inherits, for each class: heaps that live shortly do nothing else.
        self.classes.family().upkeep_if_due();
    }
}

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heap")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

/// A round is the address of an object.
#[inline(always)]
pub(super) fn object(round: usize) -> NonNull<u8> {
    // SAFETY: rounds are addresses inside the pool's reservation, which are not null.
    unsafe { NonNull::new_unchecked(round as *mut u8) }
}
