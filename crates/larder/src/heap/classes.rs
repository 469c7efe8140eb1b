//! One cache of objects per size class: what the heaps of one family share.

use core::alloc::Layout;
use core::mem::ManuallyDrop;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use core::time::Duration;
use std::sync::Arc;

use super::call::{Checker, Origin};
use super::class::{
    CLASSES, GRAIN, LENT_BEYOND, SIZES, TABLE_END, class_of_layout, small_class_of_layout,
};
use super::error::AllocError;
use super::growth::Growth;
use crate::objects::{Family, KEPT, LargeList, ObjectError, RawCache};
use crate::os::rseq::Mode;
use crate::os::{turns, wait_turn};

/// Caches with a smaller number are found in a table; those of the others by looking at each class.
const NUMBERS: usize = 256;
/// What [`Family::owner_number`] says of large objects.
const LARGE: u16 = u16::MAX;
/// No class of these.
const NO_CLASS: u8 = u8::MAX;
/// Number of the cache of the first class, where the classes have numbers of their own.
const FIRST_NUMBER: u16 = 1;
/// How often a thread looks whether the one that has the class's number has made the cache.
const PATIENCE: u32 = turns(Duration::from_millis(50));

const _: () = assert!(
    CLASSES < KEPT || cfg!(loom),
    "the first classes have numbers"
);

/// Whether each class is one of which a heap does not need what its magazines hold.
pub(super) type Quiet = [bool; CLASSES];

/// Size classes over a family of caches. Heaps that are made of the same classes may free each other's objects. Cloning
/// makes a second owner of the same classes.
///
/// It is itself a front that all threads may use at once, by the stocks of the CPUs.
///
/// # Examples
///
/// ```
/// use std::alloc::Layout;
/// use larder::{heap::Classes, objects::Family};
/// let family = Family::new()?;
/// let classes = Classes::new(&family);
/// assert!(classes.is_same(&classes.clone()));
/// let layout = Layout::new::<[u64; 5]>();
/// let object = classes.alloc(layout)?;
/// assert_eq!(classes.usable_size(object), Some(48));
/// // SAFETY: taken above with this layout, put once.
/// unsafe { classes.dealloc(object, layout) };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Classes {
    shared: Arc<Shared>,
}

/// Not in the cache line of its count, which changes whenever a heap comes or goes: every heap reads this.
#[derive(Debug)]
#[repr(align(64))]
struct Shared {
    family: Family,
    /// The cache of each class, from its first use on.
    caches: [AtomicPtr<()>; CLASSES],
    /// Class of the cache with this number.
    classes: [AtomicU8; NUMBERS],
    /// Whether the caches of these classes alone have the family's kept numbers, by class.
    numbered: bool,
    slab_pages: usize,
    /// Large objects that end with the classes; none where they stay.
    large: Option<LargeList>,
    /// Where all objects come from instead, if they are checked.
    checker: Option<Box<dyn Checker>>,
    /// When free objects are collected.
    growth: Growth,
}

impl Classes {
    /// Classes whatever the environment says, which may take their large objects with them.
    pub(super) fn plain(family: &Family, ends_large: bool) -> Self {
        Self::with(family, 1, ends_large, None)
    }

    /// As [`plain`](Self::plain), with slabs of at least so many pages, or with all objects from a checker.
    pub(super) fn with(
        family: &Family,
        slab_pages: usize,
        ends_large: bool,
        checker: Option<Box<dyn Checker>>,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                family: family.clone(),
                caches: [const { AtomicPtr::new(null_mut()) }; CLASSES],
                classes: [const { AtomicU8::new(NO_CLASS) }; NUMBERS],
                numbered: CLASSES <= KEPT && family.claim_numbers(),
                slab_pages,
                large: ends_large.then(LargeList::default),
                checker,
                growth: Growth::default(),
            }),
        }
    }

    /// When free objects are collected.
    pub(super) fn growth(&self) -> &Growth {
        &self.shared.growth
    }

    /// What all blocks come from, if they are checked.
    #[inline]
    pub(super) fn checker(&self) -> Option<&dyn Checker> {
        self.shared.checker.as_deref()
    }

    /// Whether every block is recorded and checked.
    #[must_use]
    pub fn is_checked(&self) -> bool {
        self.shared.checker.is_some()
    }

    /// Whether a heap may keep a run that it frees: none that a checker knows, nor one that ends with the classes.
    pub(super) fn lets_keep(&self) -> bool {
        !self.is_checked() && self.shared.large.is_none()
    }

    /// The family.
    ///
    /// See the [example](Self#examples).
    #[must_use]
    pub fn family(&self) -> &Family {
        &self.shared.family
    }

    /// Whether two values are the same classes.
    ///
    /// See the [example](Self#examples).
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Bytes of `layout` for this CPU's stock, or from a run of pages when it is large.
    ///
    /// See the [example](Self#examples).
    ///
    /// # Errors
    /// See [`AllocError`].
    #[inline]
    pub fn alloc(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        match small_class_of_layout(layout) {
            Some(class) if layout.align() > GRAIN => self.get_aligned(class, layout),
            Some(class) => self.get(class, layout),
            None => self.alloc_slow(layout),
        }
    }

    /// An object of a class.
    #[inline(always)]
    fn get(&self, class: usize, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        match self.cache(class).and_then(|cache| cache.quick_get()) {
            Some(object) => Ok(object),
            // Not the class, which is had again: one register less to keep.
            None => self.alloc_slow(layout),
        }
    }

    /// An object of a class that is aligned to more than all are. One that is larger than its class may not be so
    /// aligned; it goes back to the cache that owns it.
    #[inline]
    fn get_aligned(&self, class: usize, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        loop {
            let object = self.get(class, layout)?;
            if object.as_ptr() as usize & (layout.align() - 1) == 0 {
                return Ok(object);
            }
            self.family().bring_outgrown(object);
        }
    }

    /// As [`alloc`](Self::alloc), with all bytes zero.
    ///
    /// # Errors
    /// See [`AllocError`].
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::Classes, objects::Family};
    /// let classes = Classes::new(&Family::new()?);
    /// let layout = Layout::new::<[u64; 5]>();
    /// let object = classes.alloc_zeroed(layout)?;
    /// // SAFETY: taken above with this layout, put once.
    /// unsafe {
    ///     assert_eq!(object.cast::<[u64; 5]>().read(), [0; 5]);
    ///     classes.dealloc(object, layout);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alloc_zeroed(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        let (at, zero) = match class_of_layout(layout).filter(|_| !self.is_checked()) {
            None => return self.alloc_large_zeroed(layout),
            Some(class) if SIZES[class] > LENT_BEYOND => {
                self.cache_or_make(class)?.get_behind(&|| {})?
            }
            Some(_) => (self.alloc(layout)?, false),
        };
        if !zero {
            // SAFETY: just taken, with at least this size.
            unsafe { self.make_zero(at, layout.size()) };
        }
        Ok(at)
    }

    /// Makes the first bytes of an object of a class zero, which is not checked.
    ///
    /// # Safety
    /// It has so many bytes, and is the caller's.
    #[inline]
    pub(super) unsafe fn make_zero(&self, at: NonNull<u8>, bytes: usize) {
        // SAFETY: the caller's promise. The larger ones begin at a page and have whole pages.
        unsafe {
            match bytes > TABLE_END {
                true => self.family().make_zero(at, bytes),
                false => at.write_bytes(0, bytes),
            }
        }
    }

    /// Gives an object back to this CPU's stock.
    ///
    /// See the [example](Self#examples).
    ///
    /// # Safety
    /// It came with this layout from these classes or from a heap over them, and is not used afterwards.
    #[inline]
    pub unsafe fn dealloc(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise; what is refused is still the caller's.
        let given = small_class_of_layout(layout)
            .and_then(|class| self.cache(class))
            .is_some_and(|cache| unsafe { cache.quick_put(object) });
        if !given {
            // SAFETY: as above.
            unsafe { self.dealloc_slow(object, layout) }
        }
    }

    /// Gives an object back whose layout is not known: its class is found by its address. What is none of these
    /// classes' objects is reported to the family, and nothing else happens.
    ///
    /// # Safety
    /// As for [`dealloc`](Self::dealloc), without the layout.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::Classes, objects::Family};
    /// let classes = Classes::new(&Family::new()?);
    /// let object = classes.alloc(Layout::new::<[u64; 5]>())?;
    /// // SAFETY: taken above, put once; the layout is not needed.
    /// unsafe { classes.dealloc_by_address(object) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn dealloc_by_address(&self, object: NonNull<u8>) {
        match self.class_at(object) {
            // SAFETY: the caller's promise.
            Some(class) => unsafe { self.put(object, class) },
            // SAFETY: as above.
            None => unsafe { self.dealloc_large(object, None) },
        }
    }

    /// Gives an object of a class back.
    ///
    /// # Safety
    /// As for [`dealloc`](Self::dealloc).
    pub(super) unsafe fn put(&self, object: NonNull<u8>, class: usize) {
        match self.cache(class) {
            Some(cache) if SIZES[class] > LENT_BEYOND => {
                // Else its slab finds what is no object, as of all that come from magazines.
                if !cfg!(debug_assertions) || !cache.refuses(object) {
                    cache.put_behind(object.as_ptr() as usize);
                }
            }
            // SAFETY: the caller's promise.
            Some(cache) => unsafe { cache.put(object) },
            // SAFETY: as above.
            None => unsafe { self.dealloc_large(object, None) },
        }
    }

    /// The class of the object that begins at an address of these classes; `None` for large ones and foreign ones.
    ///
    /// See the [example](Self#examples).
    #[inline]
    #[must_use]
    pub fn class_at(&self, at: NonNull<u8>) -> Option<usize> {
        self.class_of_owner(self.shared.family.owner_number(at.as_ptr()))
    }

    /// The class of the cache with a number, if it is one of these classes.
    #[inline(always)]
    pub(super) fn class_of_owner(&self, number: u16) -> Option<usize> {
        let class = match self.shared.classes.get(usize::from(number)) {
            Some(class) => class.load(Ordering::Relaxed),
            None if number == LARGE => NO_CLASS,
            None => self.class_of_number(usize::from(number)),
        };
        (usize::from(class) < CLASSES).then_some(usize::from(class))
    }

    /// Says that an object stays larger than its owner will know, since no memory was found to make it smaller. From now on
    /// objects of this family that come to a class that they are not of are looked up by their address, and taken.
    pub(super) fn outgrow(&self) {
        self.shared.family.outgrow();
    }

    /// Whether there may be objects in the family that are larger than their owners know, since no memory was found to make them
    /// smaller.
    #[must_use]
    pub fn has_outgrown(&self) -> bool {
        self.shared.family.has_outgrown()
    }

    /// Bytes that may be used of the object that begins at an address; `None` when none of these classes does.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::Classes, objects::Family};
    /// let classes = Classes::new(&Family::new()?);
    /// let object = classes.alloc(Layout::new::<[u8; 100]>())?;
    /// assert_eq!(classes.usable_size(object), Some(112));
    /// // SAFETY: taken above, put once.
    /// unsafe { classes.dealloc_by_address(object) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn usable_size(&self, at: NonNull<u8>) -> Option<usize> {
        match self.class_at(at) {
            Some(class) => Some(SIZES[class]),
            None => match self.checker() {
                Some(checker) => checker.live_size(at),
                None => self.shared.family.large_bytes(at).ok(),
            },
        }
    }

    /// Where the object begins that an address lies in, in use or not, and its bytes.
    pub(super) fn object_around(&self, at: NonNull<u8>) -> Option<(usize, usize)> {
        let class = self.class_at(at)?;
        let start = self.cache(class)?.object_around(at.as_ptr() as usize)?;
        Some((start, SIZES[class]))
    }

    #[cold]
    #[inline(never)]
    fn class_of_number(&self, number: usize) -> u8 {
        let found = (0..CLASSES).find(|&class| {
            self.cache(class)
                .is_some_and(|cache| usize::from(cache.number().get()) == number)
        });
        found.map_or(NO_CLASS, |class| class as u8)
    }

    /// The cache of a class, if it is there. A view: these classes own it.
    #[inline]
    pub(super) fn cache(&self, class: usize) -> Option<ManuallyDrop<RawCache>> {
        let at = NonNull::new(self.shared.caches[class].load(Ordering::Acquire))?;
        // SAFETY: the pointer came from `into_ptr`, and the cache is dropped only with the classes.
        Some(ManuallyDrop::new(unsafe { RawCache::from_ptr(at) }))
    }

    /// The cache of a class, made if it is not there.
    pub(super) fn cache_or_make(
        &self,
        class: usize,
    ) -> Result<ManuallyDrop<RawCache>, ObjectError> {
        self.cache(class).map_or_else(|| self.make(class), Ok)
    }

    /// Makes the cache of a class. Of threads that come at once each makes one, and one is kept: that with the class's own number,
    /// by which objects are put quicker, unless its thread takes too long.
    #[cold]
    fn make(&self, class: usize) -> Result<ManuallyDrop<RawCache>, ObjectError> {
        // The largest power of two that divides the size: objects of a class are all as aligned as it is.
        let align = (1 << SIZES[class].trailing_zeros()).min(crate::os::page_size());
        let layout = Layout::from_size_align(SIZES[class], align)
            .unwrap_or_else(|_| unreachable!("a size class has a layout"));
        let mut options = RawCache::builder(layout).slab_pages(self.shared.slab_pages);
        if self.shared.numbered {
            options = options.number(FIRST_NUMBER + class as u16);
        }
        let cache = options.build(&self.shared.family)?;
        let number = usize::from(cache.number().get());
        if self.shared.numbered && number != usize::from(FIRST_NUMBER) + class {
            for turn in 0..PATIENCE {
                if let Some(kept) = self.cache(class) {
                    return Ok(kept);
                }
                wait_turn(turn);
            }
        }
        let entry = self.shared.classes.get(number);
        if let Some(entry) = entry {
            entry.store(class as u8, Ordering::Relaxed);
        }
        let at = cache.into_ptr();
        let place = &self.shared.caches[class];
        let first =
            place.compare_exchange(null_mut(), at.as_ptr(), Ordering::AcqRel, Ordering::Acquire);
        if first.is_err() {
            if let Some(entry) = entry {
                entry.store(NO_CLASS, Ordering::Relaxed);
            }
            // SAFETY: just taken apart, and known to no other code.
            drop(unsafe { RawCache::from_ptr(at) });
        }
        Ok(self
            .cache(class)
            .unwrap_or_else(|| unreachable!("a cache stays")))
    }

    #[cold]
    #[inline(never)]
    fn alloc_slow(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        match (self.checker(), class_of_layout(layout)) {
            (None, Some(class)) if SIZES[class] > LENT_BEYOND => {
                let (object, _) = self.cache_or_make(class)?.get_behind(&|| {})?;
                Ok(object)
            }
            (None, Some(class)) => Ok(self.cache_or_make(class)?.get()?),
            (None, None) => self.alloc_large(layout),
            (Some(checker), _) => checker.alloc(layout, false, Origin::Malloc),
        }
    }

    #[cold]
    pub(super) fn alloc_large(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        if let Some(checker) = self.checker() {
            return checker.alloc(layout, false, Origin::Malloc);
        }
        self.take_large(layout, Family::get_large)
    }

    /// As [`alloc_large`](Self::alloc_large) of classes that are not checked, for a caller that a shorter run serves, too: nothing is
    /// reclaimed for it.
    #[cold]
    pub(in crate::heap) fn try_alloc_large(
        &self,
        layout: Layout,
    ) -> Result<NonNull<u8>, AllocError> {
        self.take_large(layout, Family::try_get_large)
    }

    #[cold]
    pub(super) fn alloc_large_zeroed(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        if let Some(checker) = self.checker() {
            return checker.alloc(layout, true, Origin::Malloc);
        }
        self.take_large(layout, Family::get_large_zeroed)
    }

    /// A large object that `get` takes; it ends with the classes where these end theirs.
    fn take_large(
        &self,
        layout: Layout,
        get: impl FnOnce(&Family, usize, usize) -> Result<NonNull<u8>, ObjectError>,
    ) -> Result<NonNull<u8>, AllocError> {
        let (family, bytes) = (&self.shared.family, layout.size().max(1));
        Ok(match &self.shared.large {
            None => get(family, bytes, layout.align()),
            Some(list) => family.get_large_in(list, bytes, layout.align(), get),
        }?)
    }

    /// # Safety
    /// As for [`dealloc`](Self::dealloc).
    #[cold]
    #[inline(never)]
    unsafe fn dealloc_slow(&self, object: NonNull<u8>, layout: Layout) {
        // What is not small is of its class or a run: it may have grown from one into the other.
        let class = small_class_of_layout(layout).or_else(|| self.class_at(object));
        match class.filter(|_| !self.is_checked()) {
            // SAFETY: the caller's promise.
            Some(class) => unsafe { self.put(object, class) },
            // SAFETY: as above.
            None => unsafe { self.dealloc_large(object, Some(layout)) },
        }
    }

    /// # Safety
    /// As for [`dealloc`](Self::dealloc).
    #[cold]
    unsafe fn dealloc_large(&self, object: NonNull<u8>, layout: Option<Layout>) {
        if let Some(checker) = self.checker() {
            // SAFETY: the caller's promise.
            return unsafe { checker.dealloc(object, layout) };
        }
        // SAFETY: the caller's promise. What is no large object is reported to the family, and nothing else happens.
        if let Err(misuse) = unsafe { self.shared.family.put_large(object) } {
            self.shared.family.tell(&misuse);
        }
    }

    /// Collects what lies free of quiet classes, if memory has grown enough or the caller has much of it, which it gives by
    /// `own`.
    pub(super) fn collect_if_due(&self, quiet: &Quiet, stocked: usize, own: impl FnOnce()) {
        let (growth, held) = (&self.shared.growth, self.family().pool().held_bytes());
        if growth.begin_if_due(held, stocked) {
            own();
            let caches = (0..CLASSES)
                .filter(|&class| quiet[class])
                .filter_map(|class| self.cache(class));
            growth.collected(held, caches.map(|cache| cache.collect()).sum());
        }
    }

    /// What the CPUs' magazines of all classes have served. [Heaps](super::Heap) have magazines of their own, and large objects
    /// none: neither counts here. Takes time in proportion to the classes and the CPUs.
    ///
    /// ```
    /// use larder::{heap::Classes, objects::Family};
    /// let classes = Classes::new(&Family::new()?);
    /// let served = classes.served();
    /// assert_eq!((served.hits, served.misses), (0, 0));
    /// # Ok::<(), larder::pages::PoolError>(())
    /// ```
    #[must_use]
    pub fn served(&self) -> Served {
        let caches = (0..CLASSES).filter_map(|class| self.cache(class));
        caches.fold(
            Served {
                mode: self.family().mode(),
                hits: 0,
                misses: 0,
            },
            |sum, cache| {
                let (hits, misses) = cache.hits_and_misses();
                Served {
                    hits: sum.hits.saturating_add(hits),
                    misses: sum.misses.saturating_add(misses),
                    ..sum
                }
            },
        )
    }
}

/// What the CPUs' magazines of size classes have served: a measurement of them can tell whether the objects came by the
/// path that it means to measure. Read without stopping any thread, so the numbers are of slightly different moments.
///
/// ```
/// use std::alloc::Layout;
/// use larder::{heap::Classes, objects::Family};
/// let classes = Classes::new(&Family::new()?);
/// classes.alloc(Layout::new::<u64>())?;
/// let served = classes.served();
/// assert_eq!(served.misses, 1, "nothing was ready");
/// println!("{} objects came from magazines that are {}", served.hits, served.mode);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Served {
    /// How the CPUs' magazines are reached: by restartable sequences, or under locks.
    pub mode: Mode,
    /// Objects that came from a CPU's magazines.
    pub hits: u64,
    /// Objects that were asked for when a CPU's magazines were empty.
    pub misses: u64,
}

impl Served {
    /// Share of the objects that came from a CPU's magazines by a restartable sequence, 0 to 1; `None` where the CPUs'
    /// magazines were asked for none.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::Classes, objects::Family};
    /// let classes = Classes::new(&Family::new()?);
    /// assert_eq!(classes.served().rseq_share(), None);
    /// let layout = Layout::new::<[u64; 5]>();
    /// for _ in 0..100 {
    ///     let object = classes.alloc(layout)?;
    ///     // SAFETY: taken above with this layout, put once.
    ///     unsafe { classes.dealloc(object, layout) };
    /// }
    /// println!("{:?} of them by restartable sequences", classes.served().rseq_share());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn rseq_share(&self) -> Option<f64> {
        let gets = self.hits.saturating_add(self.misses);
        let by_rseq = match self.mode {
            Mode::PerCpu(_) => self.hits,
            Mode::Locked(_) => 0,
        };
        (gets > 0).then(|| by_rseq as f64 / gets as f64)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(checker) = &self.checker {
            checker.finish();
        }
        // What serves as an object of a class and is a run of pages would stay when its cache goes.
        let bring_home = self.family.has_outgrown();
        for cache in &mut self.caches {
            if let Some(at) = NonNull::new(*cache.get_mut()) {
                // SAFETY: the pointer came from `into_ptr`, and this was its owner.
                let cache = unsafe { RawCache::from_ptr(at) };
                if bring_home {
                    cache.trim();
                }
                drop(cache);
            }
        }
        if self.numbered {
            self.family.leave_numbers();
        }
        if let Some(list) = &mut self.large {
            self.family.end_large(list);
        }
    }
}
