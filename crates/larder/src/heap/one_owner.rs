//! The explicit handle: a heap of one owner.

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

use super::account::{Account, HeapStats};
use super::call::{Checker, Origin};
use super::class::{
    CLASSES, GRAIN, LENT_BEYOND, MAX_FIXED, SIZES, class_of_layout, small_class_of_layout,
};
use super::classes::{Classes, Quiet};
use super::error::AllocError;
use super::resize::run_bytes;
use crate::magazine::{MAX_ROUNDS, OwnMagazine, Stock};
use crate::objects::{KEPT, Misuse, PLACE_BYTES, RawCache, View};

/// Bytes of free objects in the magazines of a class from which on they are collected: with fewer, hardly a slab becomes whole.
const LEAST: usize = 16 << 10;
/// Calls of a heap that found its magazines empty, between two collections. Sizes that are needed in turn, and all of them within
/// fewer calls, are a working set: memory grows until it has them all.
const CALLS: u64 = 32;
/// Exchanges of magazines since the last collection that show that a class needs what it has: to collect it would cost more of them.
const BUSY: u8 = 4;
/// Exchanges of a class without magazines, in a heap that is sparing: an object that is taken and put twice.
const SPARING: u8 = 4;
/// A request that takes less than all but this share of the run gets another. A long run has a fifth more than was asked for at most.
const KEPT_SHARE: usize = 4;
/// Exchanges without asking again, after the family lent nothing.
const REFUSED: u8 = 16;
/// One for each number that a page's owner may have as a class of these. Models have no kept numbers.
const PLACES: usize = if KEPT > CLASSES { KEPT } else { CLASSES + 1 };

/// A heap of one owner: magazines for every size class, made when they are needed. It moves between threads, and needs
/// no lock, no atomic instruction and no thread-local: what Michael Maraist sketched in 2001 as the allocator that an
/// interpreter carries in its own structure.
///
/// It is not `Sync`, so all methods take `&self`, and it is an [`Allocator`] by reference with the feature
/// `allocator-api2`.
///
/// [`Allocator`]: https://docs.rs/allocator-api2/latest/allocator_api2/alloc/trait.Allocator.html
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
// Heaps of two threads lie side by side: with a line in common each would wait for the other's writes. Processors fetch lines in pairs.
#[repr(C, align(128))]
pub struct Heap {
    /// First, and its classes too, so that a class's magazine is one sum away.
    inner: UnsafeCell<Inner>,
    classes: Classes,
    /// The owners of the pages of the classes' family, at hand.
    pub(super) view: View,
    /// Not `Sync`, whatever its fields are.
    one_owner: PhantomData<core::cell::Cell<()>>,
}

#[repr(C)]
struct Inner {
    /// By the number of the class's cache, from 1 on. The others never have an object and never room: they are for addresses that no
    /// class has.
    states: [ClassState; PLACES],
    kept: Kept,
    account: Account,
}

/// What the heap has of a class.
#[derive(Debug)]
#[repr(C)]
struct ClassState {
    magazine: OwnMagazine,
    /// Exchanges with the depot and the slabs since the last collection, saturating.
    exchanges: u8,
    /// Exchanges that are left before it has a magazine: its objects come from the CPU's stock, one by one, and go there; large ones from the
    /// depot.
    sparing: u8,
    /// The magazine was empty since it was full last.
    missed: bool,
    /// Rounds that the family lends to the magazine, see [`borrow`](Heap::borrow).
    lent: u16,
}

const _: () = assert!(size_of::<ClassState>() == PLACE_BYTES);

/// The run of pages that was freed last, until the next request for one, the next growth of memory or the next interval. It is charged.
#[derive(Default)]
struct Kept {
    addr: usize,
    /// 0 is none.
    bytes: usize,
    /// Bytes of the largest one, which the family's heaps share out among them.
    most: usize,
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
                states: [const {
                    ClassState {
                        magazine: OwnMagazine::none(),
                        exchanges: 0,
                        sparing: 0,
                        missed: false,
                        lent: 0,
                    }
                }; PLACES],
                kept: Kept::default(),
                account,
            }),
            classes: classes.clone(),
            view: classes.family().view(),
            one_owner: PhantomData,
        }
    }

    /// One of many heaps that may rest: a class that is used once or twice leaves nothing in it.
    pub(super) fn sparing(classes: &Classes) -> Self {
        let this = Self::new(classes);
        for class in 0..CLASSES {
            this.state(class).sparing = SPARING;
        }
        this
    }

    /// Whether a class has no magazines yet, and gets none for this exchange.
    fn spares(&self, class: usize) -> bool {
        let left = &mut self.state(class).sparing;
        let spares = *left > 0;
        *left = left.saturating_sub(1);
        spares && self.magazine(class).is_none()
    }

    /// Rounds that the magazine of a class may hold: as many as any owner's, and those that are lent; of large objects only these.
    fn most(&self, class: usize, stock: &Stock) -> usize {
        let lent = usize::from(self.state(class).lent);
        match SIZES[class] > LENT_BEYOND {
            true => lent,
            false => lent + stock.owner_rounds(),
        }
    }

    /// When a large object is put and its class has no room in this heap: asks for some. After a refusal the next exchanges do without.
    fn borrow_first(&self, class: usize) {
        if SIZES[class] > LENT_BEYOND && self.state(class).lent == 0 && self.borrow(class, 1) == 0 {
            self.state(class).sparing = REFUSED;
        }
    }

    /// Asks the family for leave to hold so many rounds more of a class. Says how many it lends.
    #[cold]
    fn borrow(&self, class: usize, rounds: usize) -> usize {
        let lent = self.classes.family().lend(rounds, SIZES[class]);
        self.state(class).lent += lent as u16;
        lent
    }

    /// What the family lent for a class is its own again.
    fn take_back(&self, class: usize) {
        let lent = core::mem::take(&mut self.state(class).lent);
        if lent > 0 {
            self.classes
                .family()
                .take_back(usize::from(lent) * SIZES[class]);
        }
    }

    /// As [`most`](Self::most), before a full magazine goes to the depot in part: one that was empty since it was full last should have
    /// held more. So it doubles, if the family lends as many.
    fn grown(&self, class: usize, stock: &Stock) -> usize {
        let most = self.most(class, stock);
        let full = self.magazine(class).len() >= most.max(1);
        let more = most.min(MAX_ROUNDS.saturating_sub(most));
        let swings = full && core::mem::take(&mut self.state(class).missed);
        if !swings || more == 0 || SIZES[class] <= MAX_FIXED {
            return most;
        }
        let more = self.borrow(class, more);
        if more > 0 {
            // It is not quiet because it needs no exchanges from now on.
            self.state(class).exchanges = u8::MAX;
        }
        most + more
    }

    /// Gives a magazine of a class to the depot. One of small objects is left there for the thread's next heap; large ones count as free
    /// memory at once, and any heap finds them.
    fn give(&self, class: usize, mut magazine: OwnMagazine, stock: &Stock) {
        self.account().give(magazine.len() * SIZES[class]);
        match SIZES[class] > LENT_BEYOND {
            true => magazine.give_back(stock),
            false => magazine.give_up(stock),
        }
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
            None => match self.try_get_larger(layout) {
                Some(object) => Ok(object),
                None => self.alloc_large(layout, false),
            },
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
            Some(_) if self.classes.is_checked() => return self.alloc_large(layout, true),
            Some(class) if layout.align() <= GRAIN => {
                return self.get_zeroed(class, layout.size());
            }
            Some(_) => {}
        }
        let at = self.alloc(layout)?;
        // SAFETY: just taken, with at least this size.
        unsafe { self.classes.make_zero(at, layout.size()) };
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
                        || self.classes.is_checked()
                        || self.classes.family().has_outgrown(),
                    "{object:?} was put, which is no object of {} bytes of this heap",
                    SIZES[class]
                );
                // SAFETY: the caller's promise.
                unsafe { self.put_for(object, class, layout) }
            }
            None => {
                // SAFETY: as above.
                unsafe {
                    if !self.try_put_by_owner(object) {
                        self.dealloc_large(object, Some(layout));
                    }
                }
            }
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
    /// unsafe { heap.dealloc_by_address(object) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub unsafe fn dealloc_by_address(&self, object: NonNull<u8>) {
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
            .map(|class| self.magazine(class).len() * SIZES[class])
            .sum::<usize>();
        self.account().stats(stocked + self.kept_bytes())
    }

    /// Fills `out` with objects of `layout`, a magazine's worth at a time.
    ///
    /// # Errors
    /// See [`AllocError`]; then none was taken.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::{Classes, Heap}, objects::Family};
    /// let heap = Heap::new(&Classes::new(&Family::new()?));
    /// let layout = Layout::new::<[u64; 4]>();
    /// let mut objects = [std::ptr::NonNull::dangling(); 100];
    /// heap.alloc_many(layout, &mut objects)?;
    /// // SAFETY: taken above with this layout, each put once.
    /// unsafe { heap.dealloc_many(&objects, layout) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn alloc_many(&self, layout: Layout, out: &mut [NonNull<u8>]) -> Result<(), AllocError> {
        let class = class_of_layout(layout).filter(|_| layout.align() <= GRAIN);
        let mut taken = 0;
        while taken < out.len() {
            let rest = &mut out[taken..];
            if let Some(class) = class {
                // SAFETY: a pointer is as large and aligned as its address, and the rounds of a heap are addresses of objects,
                // which are not null.
                let rounds = unsafe { &mut *(&raw mut *rest as *mut [usize]) };
                let n = self.magazine(class).try_get_many(rounds);
                for place in &mut rest[..n] {
                    *place = object(place.as_ptr() as usize);
                }
                taken += n;
            }
            if let Some(place) = out.get_mut(taken) {
                match self.alloc(layout) {
                    Ok(object) => *place = object,
                    Err(error) => {
                        // SAFETY: taken above.
                        unsafe { self.dealloc_many(&out[..taken], layout) };
                        return Err(error);
                    }
                }
                taken += 1;
            }
        }
        Ok(())
    }

    /// Gives many objects back, a magazine's worth at a time.
    ///
    /// # Safety
    /// As for [`dealloc`](Self::dealloc), for each.
    pub unsafe fn dealloc_many(&self, objects: &[NonNull<u8>], layout: Layout) {
        let class = small_class_of_layout(layout);
        let mut rest = objects;
        while !rest.is_empty() {
            if let Some(class) = class {
                // SAFETY: a pointer is as large and aligned as its address, which is a round.
                let rounds = unsafe { &*(&raw const *rest as *const [usize]) };
                rest = &rest[self.magazine(class).try_put_many(rounds)..];
            }
            if let Some((&first, others)) = rest.split_first() {
                // SAFETY: the caller's promise.
                unsafe { self.dealloc(first, layout) };
                rest = others;
            }
        }
    }

    /// Bounds what the heap takes, in bytes: objects in use and free ones in its magazines, by the sizes of their
    /// classes. Checked when a magazine is empty, so up to a magazine's worth may be in use already.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::{Classes, Heap}, objects::Family};
    /// let heap = Heap::new(&Classes::new(&Family::new()?));
    /// let layout = Layout::new::<[u64; 4]>();
    /// heap.set_limit(1 << 20);
    /// assert!(heap.alloc(Layout::new::<[u8; 2 << 20]>()).is_err());
    /// assert!(heap.alloc(layout).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_limit(&self, bytes: usize) {
        self.account().limit = bytes;
    }

    /// Calls `f` when the heap takes memory beyond `bytes`; once until it has fallen below again.
    ///
    /// ```
    /// use std::{alloc::Layout, sync::atomic::{AtomicUsize, Ordering}};
    /// use larder::{heap::{Classes, Heap}, objects::Family};
    /// static TOLD: AtomicUsize = AtomicUsize::new(0);
    /// let heap = Heap::new(&Classes::new(&Family::new()?));
    /// heap.set_warning(1 << 20, |stats| TOLD.store(stats.charged_bytes, Ordering::Relaxed));
    /// heap.alloc(Layout::new::<[u8; 2 << 20]>())?;
    /// assert!(TOLD.load(Ordering::Relaxed) > 1 << 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_warning(&self, bytes: usize, f: impl Fn(HeapStats) + Send + 'static) {
        let former = self.account().set_warning(bytes, Box::new(f));
        drop(former);
    }

    /// Gives the free objects of its magazines to the depot.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::{Classes, Heap}, objects::Family};
    /// let heap = Heap::new(&Classes::new(&Family::new()?));
    /// let layout = Layout::new::<[u64; 4]>();
    /// let object = heap.alloc(layout)?;
    /// // SAFETY: taken above with this layout, put once.
    /// unsafe { heap.dealloc(object, layout) };
    /// heap.trim();
    /// assert_eq!(heap.stats().stocked_bytes, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn trim(&self) {
        self.keep_none();
        for class in 0..CLASSES {
            self.give_class(class, 0);
        }
    }

    /// What there is of a class. The borrow must end before anything else of this heap is called.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    fn state(&self, class: usize) -> &mut ClassState {
        // SAFETY: the heap is not `Sync`, so only this thread is here; no caller keeps the borrow over a call that could
        // come back to this heap.
        unsafe { &mut (*self.inner.get()).states[class + 1] }
    }

    /// The magazine of a class. The borrow ends as that of [`state`](Self::state).
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub(super) fn magazine(&self, class: usize) -> &mut OwnMagazine {
        &mut self.state(class).magazine
    }

    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub(super) fn account(&self) -> &mut Account {
        // SAFETY: as in `state`.
        unsafe { &mut (*self.inner.get()).account }
    }

    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    fn kept(&self) -> &mut Kept {
        // SAFETY: as in `state`.
        unsafe { &mut (*self.inner.get()).kept }
    }

    /// The run that is kept, for a large object of so many bytes, if it fits, and lies at a multiple of `align`, a power of two.
    #[inline(always)]
    pub(super) fn try_get_kept(&self, bytes: usize, align: usize) -> Option<NonNull<u8>> {
        let kept = self.kept();
        let fits = kept.bytes != 0
            && bytes <= kept.bytes
            && kept.bytes - bytes <= kept.bytes / KEPT_SHARE
            && kept.addr & (align - 1) == 0;
        if !fits {
            return None;
        }
        kept.bytes = 0;
        let addr = kept.addr;
        // SAFETY: the classes own the family, and the run is this heap's.
        unsafe { self.view.begin_large(addr) };
        Some(object(addr))
    }

    /// Keeps the run of a large object, if none is kept. False where nothing was done: it may be none.
    ///
    /// # Safety
    /// The object is given up, where this is true.
    #[inline(always)]
    pub(super) unsafe fn try_keep(&self, object: *mut u8) -> bool {
        let kept = self.kept();
        if kept.bytes != 0 {
            return false;
        }
        // SAFETY: the classes own the family; the caller's promise.
        let Some(bytes) = (unsafe { self.view.end_large(object as usize, kept.most) }) else {
            return false;
        };
        (kept.addr, kept.bytes) = (object as usize, bytes);
        true
    }

    /// Before a run of so many bytes is given back: from now on such runs may be kept, if the family's heaps keep little.
    fn let_keep(&self, bytes: usize) {
        let kept = self.kept();
        if bytes > kept.most && self.classes.lets_keep() {
            let most = bytes.next_power_of_two();
            if self.classes.family().let_keep(most - kept.most) {
                kept.most = most;
            }
        }
    }

    /// Keeps no run any more, so that other heaps may.
    fn keep_none(&self) {
        self.end_kept();
        let most = core::mem::take(&mut self.kept().most);
        self.classes.family().keep_less(most);
    }

    /// Bytes of the run that is kept.
    pub(super) fn kept_bytes(&self) -> usize {
        self.kept().bytes
    }

    /// Gives the run back that is kept; false where there is none.
    pub(super) fn end_kept(&self) -> bool {
        let kept = self.kept();
        let (addr, bytes) = (kept.addr, core::mem::take(&mut kept.bytes));
        if bytes > 0 {
            // SAFETY: the run is this heap's.
            unsafe { self.classes.family().put_run(addr, bytes) };
            self.account().give_large(bytes);
        }
        bytes > 0
    }

    /// Bytes that may still be taken, at least `size`. Where the limit forbids it, the heap gives back what lies free in it, if that helps.
    pub(super) fn room(&self, size: usize) -> Result<usize, AllocError> {
        let room = match self.account().room(size) {
            Err(_) if self.end_kept() => self.account().room(size),
            room => room,
        };
        if room.is_ok() {
            return room;
        }
        let stats = self.stats();
        let used = stats.charged_bytes.saturating_sub(stats.stocked_bytes);
        if stats.stocked_bytes == 0 || used.saturating_add(size) > stats.limit_bytes {
            return room;
        }
        self.trim();
        self.account().room(size)
    }

    /// As [`Classes::class_at`].
    #[inline(always)]
    pub(super) fn class_at(&self, object: NonNull<u8>) -> Option<usize> {
        // SAFETY: the classes own the family.
        let owner = unsafe { self.view.owner(object.as_ptr() as usize) };
        self.classes.class_of_owner(owner)
    }

    /// An object of a class, if the loaded magazine has one.
    #[inline(always)]
    pub(super) fn try_get(&self, class: usize) -> Option<NonNull<u8>> {
        self.try_get_round(class).map(object)
    }

    /// The address of an object of a class, if the loaded magazine has one.
    #[inline(always)]
    pub(super) fn try_get_round(&self, class: usize) -> Option<usize> {
        self.magazine(class).try_get()
    }

    /// The address of an object of a class, if the loaded magazine has one; marked as in use.
    ///
    /// # Safety
    /// The family has marks.
    #[inline(always)]
    pub(super) unsafe fn try_get_marked(&self, class: usize) -> Option<usize> {
        let round = self.try_get_round(class)?;
        // SAFETY: the classes own the family; the caller's promise.
        unsafe { self.view.set_mark(round) };
        Some(round)
    }

    /// An object of a class, if the loaded magazine has one at a multiple of `align`, a power of two; marked as in use.
    ///
    /// # Safety
    /// The family has marks.
    #[inline(always)]
    pub(super) unsafe fn try_get_aligned_marked(
        &self,
        class: usize,
        align: usize,
    ) -> Option<NonNull<u8>> {
        let object = self.try_get_aligned(class, align)?;
        // SAFETY: the caller's promise.
        unsafe { self.mark(object) };
        Some(object)
    }

    /// The same, unmarked.
    #[inline(always)]
    fn try_get_aligned(&self, class: usize, align: usize) -> Option<NonNull<u8>> {
        let object = self.try_get(class)?;
        if object.as_ptr() as usize & (align - 1) != 0 {
            self.bring_outgrown(object, class);
            return None;
        }
        Some(object)
    }

    /// Brings an object to the cache that owns it, which lay in a class's magazine.
    #[cold]
    #[inline(never)]
    fn bring_outgrown(&self, object: NonNull<u8>, class: usize) {
        self.classes.family().bring_outgrown(object);
        self.account().give(SIZES[class]);
    }

    /// An object of a class beyond the small ones, if the loaded magazine has one, or a larger one in the run that is kept. A call, which
    /// answers in a register: what all callers of [`alloc`](Self::alloc) have of these sizes is little, and what they wait for is less
    /// than a [`Result`].
    #[inline(never)]
    pub(super) fn try_get_larger(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.align() > crate::os::page_size() {
            return None;
        }
        match class_of_layout(layout) {
            Some(class) => self.try_get_aligned(class, layout.align()),
            None => self.try_get_kept(layout.size(), 1),
        }
    }

    /// Puts an object by its address alone: into the loaded magazine of its class, if that has room, or its run is kept.
    ///
    /// # Safety
    /// As for [`dealloc`](Self::dealloc) where this is true.
    #[inline(never)]
    pub(super) unsafe fn try_put_by_owner(&self, object: NonNull<u8>) -> bool {
        let at = object.as_ptr() as usize;
        // SAFETY: the classes own the family.
        let owner = usize::from(unsafe { self.view.owner(at) });
        if owner < KEPT {
            // SAFETY: as in `state`. No owner has no room; other caches than these, whose numbers are not kept for them, are looked up.
            return unsafe { (*self.inner.get()).states[owner].magazine.try_put(at) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.try_keep(object.as_ptr()) }
    }

    /// Marks an object of these classes as in use.
    ///
    /// # Safety
    /// The family has marks.
    #[inline(always)]
    pub(super) unsafe fn mark(&self, object: NonNull<u8>) {
        // SAFETY: as above.
        unsafe { self.view.set_mark(object.as_ptr() as usize) };
    }

    /// Puts the object that is marked as in use at an address into the loaded magazine, if there is one, and room.
    ///
    /// # Safety
    /// The object is given up, where this is true.
    #[inline(always)]
    pub(super) unsafe fn try_put_marked(&self, object: *mut u8) -> bool {
        // SAFETY: the classes own the family.
        let Some((mark, place)) = (unsafe { self.view.mark_at(object as usize) }) else {
            return false;
        };
        // SAFETY: as in `state`: the distance is that of one of so many places.
        let state = unsafe {
            &mut *(&raw mut (*self.inner.get()).states)
                .byte_add(place)
                .cast::<ClassState>()
        };
        let put = mark.load(Ordering::Relaxed) != 0 && state.magazine.try_put(object as usize);
        if put {
            mark.store(0, Ordering::Relaxed);
        }
        put
    }

    /// As [`try_put_marked`](Self::try_put_marked), for a block that must be of a class.
    ///
    /// # Safety
    /// As for [`try_put_marked`](Self::try_put_marked).
    #[inline(always)]
    pub(super) unsafe fn try_put_marked_as(&self, object: *mut u8, class: usize) -> bool {
        // SAFETY: the classes own the family.
        let Some((mark, place)) = (unsafe { self.view.mark_at(object as usize) }) else {
            return false;
        };
        let put = place == (class + 1) * PLACE_BYTES
            && mark.load(Ordering::Relaxed) != 0
            && self.magazine(class).try_put(object as usize);
        if put {
            mark.store(0, Ordering::Relaxed);
        }
        put
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
        match self.magazine(class).try_get() {
            Some(round) => Ok(object(round)),
            None => self.alloc_missed(class, layout),
        }
    }

    #[cold]
    #[inline(never)]
    fn alloc_missed(&self, class: usize, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        match self.classes.checker() {
            Some(checker) => self.alloc_checked(checker, layout, false),
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
            self.bring_outgrown(object, class);
        }
    }

    /// # Safety
    /// The object is of this class, of these classes, and given up.
    #[inline(always)]
    pub(super) unsafe fn put(&self, object: NonNull<u8>, class: usize) {
        if !self.magazine(class).try_put(object.as_ptr() as usize) {
            self.put_slow(object, class);
        }
    }

    /// # Safety
    /// As for [`put`](Self::put), and it has this layout.
    #[inline(always)]
    unsafe fn put_for(&self, object: NonNull<u8>, class: usize, layout: Layout) {
        if !self.magazine(class).try_put(object.as_ptr() as usize) {
            // SAFETY: the caller's promise.
            unsafe { self.put_missed(object, class, layout) };
        }
    }

    /// # Safety
    /// As for [`put_for`](Self::put_for).
    #[cold]
    #[inline(never)]
    unsafe fn put_missed(&self, object: NonNull<u8>, class: usize, layout: Layout) {
        match self.classes.checker() {
            // SAFETY: the caller's promise.
            Some(checker) => unsafe { self.free_checked(checker, object, Some(layout)) },
            None => self.put_slow(object, class),
        }
    }

    /// Works on the magazines of a class while the heap has none of it: what is called on the way may come back here.
    #[inline(always)]
    fn with_magazine<T>(
        &self,
        class: usize,
        cache: &RawCache,
        f: impl FnOnce(&mut OwnMagazine) -> T,
    ) -> T {
        let lent = self.state(class).lent;
        let mut magazine = core::mem::replace(self.magazine(class), OwnMagazine::none());
        let result = f(&mut magazine);
        let late = core::mem::replace(self.magazine(class), magazine);
        self.give(class, late, cache.stock());
        if self.state(class).lent < lent {
            // What was called has trimmed this heap.
            self.give_class(class, 0);
        }
        result
    }

    /// Counts an exchange of a class.
    fn exchanged(&self, class: usize) {
        let exchanges = &mut self.state(class).exchanges;
        *exchanges = exchanges.saturating_add(1);
    }

    #[cold]
    #[inline(never)]
    fn alloc_slow(&self, class: usize) -> Result<NonNull<u8>, AllocError> {
        self.refill(class, false).map(|(object, _)| object)
    }

    /// An object of `size` bytes, all zero. Where it is new, and the system has just given its pages, nothing is written: a
    /// program that asks for much and uses little of it pays for what it uses.
    #[inline]
    pub(super) fn get_zeroed(&self, class: usize, size: usize) -> Result<NonNull<u8>, AllocError> {
        let (at, zero) = match self.magazine(class).try_get() {
            Some(round) => (object(round), false),
            None => self.refill(class, true)?,
        };
        if !zero {
            // SAFETY: just taken, with at least this size.
            unsafe { self.classes.make_zero(at, size) };
        }
        Ok(at)
    }

    /// An object of a class whose loaded magazine is empty, and whether it is known to be zero, where that is asked.
    #[cold]
    #[inline(never)]
    fn refill(&self, class: usize, zeroed: bool) -> Result<(NonNull<u8>, bool), AllocError> {
        self.upkeep_if_due();
        let size = SIZES[class];
        let (object, zero, taken) = self.after_trim(size, || {
            let cache = self.classes.cache_or_make(class)?;
            let room = self.room(size)?;
            self.refill_from(class, &cache, zeroed, room)
        })?;
        self.account().take(taken * size);
        self.warn();
        Ok((object, zero))
    }

    /// The same from the class's cache, and how many objects came. They have at most `room` bytes.
    fn refill_from(
        &self,
        class: usize,
        cache: &RawCache,
        zeroed: bool,
        room: usize,
    ) -> Result<(NonNull<u8>, bool, usize), AllocError> {
        let (stock, size) = (cache.stock(), SIZES[class]);
        self.exchanged(class);
        self.state(class).missed = true;
        let spare = || self.spare(cache.slab_bytes());
        let mut most = self.most(class, stock);
        if size > LENT_BEYOND {
            most = most.min(room / size);
            if most == 0 {
                let (object, zero) = cache.get_behind(&spare)?;
                return Ok((object, zero, 1));
            }
        } else if room < most * size {
            // Not enough for a magazine's worth: one, from the CPU's stock.
            return Ok((cache.get()?, false, 1));
        }
        if let Some((round, taken)) = self.magazine(class).inherit(stock, most) {
            return Ok((object(round), false, taken));
        }
        if self.spares(class) && !zeroed {
            return Ok((cache.get()?, false, 1));
        }
        self.with_magazine(class, cache, |magazine| {
            let before = magazine.len();
            let (round, zero) = cache.get_into(magazine, most, &spare)?;
            let taken = (magazine.len() + 1).saturating_sub(before);
            Ok((object(round), zero, taken))
        })
    }

    /// What a function gives that takes so many bytes; where there is no memory, what it gives after this heap has given back all that
    /// lies free in it.
    fn after_trim<T>(
        &self,
        bytes: usize,
        f: impl Fn() -> Result<T, AllocError>,
    ) -> Result<T, AllocError> {
        match f() {
            Err(AllocError::Memory(_))
                if self.stats().stocked_bytes > 0 && self.pool_could_hold(bytes) =>
            {
                self.trim();
                f()
            }
            result => result,
        }
    }

    #[cold]
    #[inline(never)]
    fn put_slow(&self, object: NonNull<u8>, class: usize) {
        self.upkeep_if_due();
        let Some(cache) = self.classes.cache(class) else {
            // No object of the class was ever there: it is a larger one.
            self.classes.family().bring_outgrown(object);
            return;
        };
        let (round, stock) = (object.as_ptr() as usize, cache.stock());
        self.exchanged(class);
        let spares = self.spares(class);
        let large = SIZES[class] > LENT_BEYOND;
        if !spares {
            self.borrow_first(class);
        }
        let most = self.grown(class, stock);
        let given = if large && (most == 0 || spares) {
            cache.put_behind(round);
            1
        } else if spares {
            cache.put_one(round);
            1
        } else {
            self.with_magazine(class, &cache, |magazine| {
                cache.put_from(magazine, round, most)
            })
        };
        self.account().give(given * SIZES[class]);
    }

    #[cold]
    #[inline(never)]
    fn alloc_large(&self, layout: Layout, zeroed: bool) -> Result<NonNull<u8>, AllocError> {
        if let Some(checker) = self.classes.checker() {
            return self.alloc_checked(checker, layout, zeroed);
        }
        match class_of_layout(layout) {
            Some(class) if zeroed => return self.get_zeroed(class, layout.size()),
            Some(class) => return self.get(class),
            None => {}
        }
        self.room(layout.size())?;
        self.after_trim(layout.size(), || self.alloc_run(layout, zeroed))
    }

    /// A run of pages, whatever the layout's size. It is given back by its address.
    #[cold]
    pub(super) fn alloc_run(
        &self,
        layout: Layout,
        zeroed: bool,
    ) -> Result<NonNull<u8>, AllocError> {
        match zeroed {
            true => self.alloc_run_by(Classes::alloc_large_zeroed, layout, zeroed),
            false => self.alloc_run_by(Classes::alloc_large, layout, zeroed),
        }
    }

    /// As [`alloc_run`](Self::alloc_run), for a caller that a shorter run serves, too: other owners give up nothing for it.
    #[cold]
    pub(super) fn try_alloc_run(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        self.alloc_run_by(Classes::try_alloc_large, layout, false)
    }

    /// The run that is kept, or a longer one, unless it is to be zero; else one that `take` takes.
    #[cold]
    fn alloc_run_by(
        &self,
        take: fn(&Classes, Layout) -> Result<NonNull<u8>, AllocError>,
        layout: Layout,
        zeroed: bool,
    ) -> Result<NonNull<u8>, AllocError> {
        self.upkeep_if_due();
        let bytes = layout
            .size()
            .max(1)
            .next_multiple_of(crate::os::page_size());
        if !zeroed && let Some(object) = self.try_get_kept(bytes, layout.align()) {
            return Ok(object);
        }
        // It may be a part of what is taken now.
        self.end_kept();
        let room = self.account().room(bytes)?;
        let long = Some(run_bytes(bytes)).filter(|&long| !zeroed && bytes < long && long <= room);
        let long = long.and_then(|long| Layout::from_size_align(long, layout.align()).ok());
        self.spare_for_run(long.map_or(bytes, |long| long.size()), layout.align());
        let object = match long.and_then(|long| self.classes.try_alloc_large(long).ok()) {
            Some(object) => object,
            // For no more than this, memory is reclaimed.
            None => take(&self.classes, layout)?,
        };
        let bytes = self.classes.family().large_bytes(object).unwrap_or(bytes);
        self.account().take_large(bytes);
        self.warn();
        Ok(object)
    }

    /// # Safety
    /// As for [`dealloc_by_address`](Self::dealloc_by_address).
    #[cold]
    #[inline(never)]
    unsafe fn dealloc_large(&self, object: NonNull<u8>, layout: Option<Layout>) {
        if let Some(checker) = self.classes.checker() {
            // SAFETY: the caller's promise.
            return unsafe { self.free_checked(checker, object, layout) };
        }
        // What is not small is of its class or a run: it may have grown from one into the other.
        if let Some(class) = self.class_at(object) {
            // SAFETY: as above.
            return unsafe { self.put(object, class) };
        }
        // SAFETY: the caller's promise. What is no large object is reported to the family, and nothing else happens.
        if let Err(misuse) = unsafe { self.put_large(object) } {
            self.classes.family().tell(&misuse);
        }
    }

    /// # Safety
    /// As for [`dealloc_by_address`](Self::dealloc_by_address).
    pub(super) unsafe fn put_large(&self, object: NonNull<u8>) -> Result<(), Misuse> {
        let family = self.classes.family();
        let bytes = family.large_bytes(object)?;
        self.end_kept();
        self.let_keep(bytes);
        // SAFETY: the caller's promise.
        if unsafe { self.try_keep(object.as_ptr()) } {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { family.put_large(object)? };
        self.account().give_large(bytes);
        self.upkeep_if_due();
        Ok(())
    }

    /// Gives the magazines of a class to the depot when they have so many objects.
    pub(super) fn give_class(&self, class: usize, least: usize) {
        if self.magazine(class).len() >= least
            && let Some(cache) = self.classes().cache(class)
        {
            let magazine = core::mem::replace(self.magazine(class), OwnMagazine::none());
            self.give(class, magazine, cache.stock());
            self.take_back(class);
        }
    }

    /// After an interval of the family, all magazines of the heap go to the depot, as those of the CPUs do: the next
    /// intervals show which of them are needed. Only the heap's owner can do that, so it is done on the paths that are
    /// slow anyway: a heap that is not called keeps what it has.
    ///
    /// And when memory grew somewhere: then those of the classes of which they hold much, see the [`growth`](super::growth).
    ///
    /// Five loads and two comparisons where neither happened.
    #[inline]
    pub(super) fn upkeep_if_due(&self) {
        let now = self.classes().family().intervals();
        if self.account().intervals != now {
            self.account().intervals = now;
            self.trim();
        }
        let now = self.classes().growth().collections();
        if self.account().collections != now {
            self.account().collections = now;
            self.follow();
        }
    }

    /// Before memory grows by `bytes`: collects what lies free, if it is time for that, and of large objects whenever it grows by one.
    /// See the [`growth`](super::growth).
    #[cold]
    pub(super) fn spare(&self, bytes: usize) {
        self.collect_if_due();
        if bytes > LENT_BEYOND {
            self.spare_large(bytes);
        }
        let pool = self.classes().family().pool();
        pool.make_room(bytes.div_ceil(crate::os::page_size()));
    }

    fn collect_if_due(&self) {
        self.end_kept();
        let refills = self.account().refills;
        if refills.wrapping_sub(self.account().collected) >= CALLS {
            self.account().collected = refills;
            let quiet = self.take_quiet();
            self.classes()
                .collect_if_due(&quiet, self.stocked(&quiet), || self.give_much(&quiet));
        }
    }

    /// What lies free of quiet classes of large objects goes, unless there are pages for so many bytes.
    fn spare_large(&self, bytes: usize) {
        if self.has_pages(bytes) {
            return;
        }
        for class in (0..CLASSES)
            .rev()
            .take_while(|&class| SIZES[class] > LENT_BEYOND)
        {
            let magazine = self.magazine(class);
            let has = magazine.len();
            // None is one that is worked on, or needs nothing.
            if magazine.is_none() || self.state(class).exchanges >= BUSY {
                continue;
            }
            self.give_class(class, 0);
            // Else others may need what the depot has.
            if has > 0
                && let Some(cache) = self.classes.cache(class)
            {
                cache.collect();
            }
        }
    }

    /// As [`spare`](Self::spare), for a run of pages, if there is none. Where one may begin at few places only, free pages elsewhere say
    /// nothing, and those behind such a place are what the next such run needs.
    pub(super) fn spare_for_run(&self, bytes: usize, align: usize) {
        if align > crate::os::page_size() {
            self.collect_if_due();
        } else if !self.has_pages(bytes) {
            self.spare(bytes);
        }
    }

    /// Whether so many bytes fit the pool, were nothing else in it.
    fn pool_could_hold(&self, bytes: usize) -> bool {
        let pages = bytes.div_ceil(crate::os::page_size());
        self.classes().family().pool().could_hold(pages).is_ok()
    }

    fn has_pages(&self, bytes: usize) -> bool {
        let pages = bytes.div_ceil(crate::os::page_size());
        self.classes().family().pool().has_span(pages)
    }

    /// After a collection of another heap's: what this one has and does not need may serve the next one.
    pub(super) fn follow(&self) {
        self.end_kept();
        self.give_much(&self.take_quiet());
    }

    /// Which classes exchanged magazines seldom since the last call. Of those that the family lends rounds most of the exchanges count at the
    /// next call, too: they have few, of large objects since few are in use, and of others since their magazines have grown.
    fn take_quiet(&self) -> Quiet {
        core::array::from_fn(|class| {
            let state = self.state(class);
            let exchanges = state.exchanges;
            state.exchanges = match (SIZES[class] > LENT_BEYOND, state.lent > 0) {
                // Three of them stay, and one more shows that it is in use.
                (true, _) => exchanges - exchanges / 4,
                (false, true) => exchanges / 2,
                (false, false) => 0,
            };
            exchanges < BUSY
        })
    }

    /// Gives the magazines of quiet classes to the depot that hold much.
    fn give_much(&self, quiet: &Quiet) {
        for class in (0..CLASSES).filter(|&class| quiet[class]) {
            self.give_class(class, LEAST.div_ceil(SIZES[class]));
        }
    }

    /// Bytes of free objects of quiet classes.
    fn stocked(&self, quiet: &Quiet) -> usize {
        let classes = (0..CLASSES).filter(|&class| quiet[class]);
        classes
            .map(|class| self.magazine(class).len() * SIZES[class])
            .sum()
    }

    /// A block of checked classes, counted as so many bytes as were asked for.
    #[cold]
    pub(super) fn alloc_checked(
        &self,
        checker: &dyn Checker,
        layout: Layout,
        zeroed: bool,
    ) -> Result<NonNull<u8>, AllocError> {
        self.account().room(layout.size())?;
        let object = checker.alloc(layout, zeroed, Origin::Malloc)?;
        self.account().take(layout.size());
        self.warn();
        Ok(object)
    }

    /// # Safety
    /// As for [`dealloc`](Self::dealloc); misuse that can be found is reported.
    #[cold]
    pub(super) unsafe fn free_checked(
        &self,
        checker: &dyn Checker,
        at: NonNull<u8>,
        layout: Option<Layout>,
    ) {
        self.account().give(checker.live_size(at).unwrap_or(0));
        // SAFETY: the caller's promise.
        unsafe { checker.dealloc(at, layout) };
    }

    /// # Safety
    /// As for [`realloc`](Self::realloc); misuse that can be found is reported.
    #[cold]
    pub(super) unsafe fn realloc_checked(
        &self,
        checker: &dyn Checker,
        at: NonNull<u8>,
        old: Option<Layout>,
        new: Layout,
    ) -> Result<NonNull<u8>, AllocError> {
        let had = checker.live_size(at).unwrap_or(0);
        let old_size = old.map_or(had, |old| old.size());
        if new.size() > old_size {
            self.account().room(new.size() - old_size)?;
        }
        // SAFETY: the caller's promise.
        let to = unsafe { checker.resize(at, old, new) }?;
        self.account().give(had);
        self.account().take(new.size());
        self.warn();
        Ok(to)
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
        self.keep_none();
        for class in 0..CLASSES {
            self.give_class(class, 0);
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use core::alloc::Layout;
    use core::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::heap::{Classes, SIZES};
    use crate::objects::Family;

    /// Takes an object of each class from a heap of new classes and says the numbers of their caches, and how many may be put by their
    /// address alone.
    fn numbers(family: &Family) -> (Classes, Vec<usize>, usize) {
        let classes = Classes::plain(family, false);
        let heap = Heap::new(&classes);
        let (mut numbers, mut put) = (Vec::new(), 0);
        for (class, size) in SIZES.into_iter().enumerate() {
            let layout = Layout::from_size_align(size, 1).unwrap();
            // A heap has a magazine of large ones when it has put one.
            swing(&heap, layout, 1, 1);
            let object = heap.alloc(layout).unwrap();
            numbers.push(usize::from(family.owner_number(object.as_ptr())));
            // SAFETY: taken above from this heap, put once.
            unsafe {
                assert!(!heap.try_put_marked(object.as_ptr()), "it is not in use");
                heap.view.set_mark(object.as_ptr() as usize);
                assert!(!heap.try_put_marked(object.as_ptr().add(8)));
                if heap.try_put_marked(object.as_ptr()) {
                    put += 1;
                    assert!(!heap.try_put_marked(object.as_ptr()), "twice");
                    assert_eq!(heap.try_get(class), Some(object), "it lies in its class");
                }
                heap.dealloc(object, layout);
                // Other objects will begin here.
                let mark = heap.view.mark_at(object.as_ptr() as usize);
                mark.unwrap().0.store(0, Ordering::Relaxed);
            }
            // What is lent for large ones goes back.
            heap.trim();
        }
        (classes, numbers, put)
    }

    #[test]
    fn objects_of_the_first_classes_of_a_family_are_put_by_their_address() {
        let family = Family::builder().marks().build().unwrap();
        let by_class: Vec<_> = (1..=CLASSES).collect();
        let (first, own, put) = numbers(&family);
        assert_eq!((own, put), (by_class.clone(), CLASSES));
        let (_second, others, put) = numbers(&family);
        assert!(others.iter().all(|number| *number > CLASSES) && put == 0);
        drop(first);
        let (_third, again, put) = numbers(&family);
        assert_eq!((again, put), (by_class, CLASSES));
    }

    #[test]
    #[cfg_attr(miri, ignore = "an interpreter takes minutes for so many objects")]
    fn a_class_has_its_number_though_many_make_it_at_once() {
        const THREADS: usize = 4;
        let family = Family::new().unwrap();
        for _ in 0..50 {
            let classes = Classes::plain(&family, false);
            let begun = AtomicUsize::new(0);
            let take = || {
                let heap = Heap::new(&classes);
                for (class, size) in SIZES.iter().enumerate() {
                    let layout = Layout::from_size_align(*size, 1).unwrap();
                    // All at the same class.
                    begun.fetch_add(1, Ordering::Relaxed);
                    while begun.load(Ordering::Relaxed) < THREADS * (class + 1) {
                        std::thread::yield_now();
                    }
                    let object = heap.alloc(layout).unwrap();
                    let number = usize::from(family.owner_number(object.as_ptr()));
                    assert_eq!(number, class + 1);
                    // SAFETY: just taken.
                    unsafe { heap.dealloc(object, layout) };
                }
            };
            std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(take);
                }
            });
        }
    }

    /// What a heap holds after each class was used so often, one object at a time. All of it is charged, and nothing else.
    fn held_after(heap: &Heap, uses: u32) -> usize {
        for size in SIZES {
            let layout = Layout::from_size_align(size, 1).unwrap();
            for _ in 0..uses {
                let object = heap.alloc(layout).unwrap();
                // SAFETY: taken above from this heap, put once.
                unsafe { heap.dealloc(object, layout) };
            }
        }
        let stats = heap.stats();
        assert_eq!(stats.charged_bytes, stats.stocked_bytes);
        stats.stocked_bytes
    }

    #[test]
    fn a_limit_holds_where_an_earlier_heap_left_much() {
        let classes = Classes::new(&Family::new().unwrap());
        let layout = Layout::from_size_align(4096, 8).unwrap();
        let first = Heap::new(&classes);
        let mut objects = [NonNull::dangling(); 16];
        first.alloc_many(layout, &mut objects).unwrap();
        // SAFETY: taken above, each put once.
        unsafe { first.dealloc_many(&objects, layout) };
        assert_eq!(first.stats().stocked_bytes, 16 * 4096);
        drop(first);
        let second = Heap::new(&classes);
        second.set_limit(10 * 4096);
        let taken = (0..20).filter(|_| second.alloc(layout).is_ok()).count();
        assert_eq!((taken, second.stats().charged_bytes), (10, 10 * 4096));
    }

    #[test]
    fn a_limit_holds_where_the_depot_has_many_together() {
        let family = unhurried();
        let classes = Classes::plain(&family, false);
        let layout = Layout::from_size_align(256 << 10, 8).unwrap();
        let first = Heap::new(&classes);
        swing(&first, layout, 100, 6);
        let stocked = first.stats().stocked_bytes;
        assert!(stocked > 8 << 20, "{stocked}");
        drop(first);
        let second = Heap::new(&classes);
        second.set_limit(5 << 20);
        let taken = (0..40).filter(|_| second.alloc(layout).is_ok()).count();
        assert_eq!((taken, second.stats().charged_bytes), (20, 5 << 20));
        // And where the heap may hold more than is left.
        second.set_limit(usize::MAX);
        let third = Heap::new(&classes);
        for heap in [&third, &second] {
            swing(heap, mib(1), 12, 6);
        }
        third.trim();
        while second.stats().stocked_bytes > 0 {
            second.alloc(mib(1)).unwrap();
        }
        second.set_limit(second.stats().charged_bytes + (2 << 20));
        let taken = (0..9).filter(|_| second.alloc(mib(1)).is_ok()).count();
        assert_eq!(taken, 2);
    }

    #[test]
    fn a_sparing_heap_holds_nothing_of_a_class_that_it_hardly_uses() {
        let classes = Classes::plain(&Family::new().unwrap(), false);
        let each: usize = SIZES.iter().filter(|size| **size <= LENT_BEYOND).sum();
        // Both stay: a heap inherits what another one leaves.
        let (plain, sparing) = (Heap::new(&classes), Heap::sparing(&classes));
        assert!(held_after(&plain, 1) >= each);
        assert_eq!(held_after(&sparing, 2), 0);
        assert!(held_after(&sparing, 1) > 0);
    }

    /// Takes so many objects and puts them all, some times over. They are not written.
    fn swing(heap: &Heap, layout: Layout, n: usize, times: usize) {
        for _ in 0..times {
            let objects: Vec<_> = (0..n).map(|_| heap.alloc(layout).unwrap()).collect();
            for object in objects {
                // SAFETY: taken above with this layout, put once.
                unsafe { heap.dealloc(object, layout) };
            }
        }
    }

    fn mib(n: usize) -> Layout {
        Layout::from_size_align(n << 20, 8).unwrap()
    }

    fn unhurried() -> Family {
        let forever = core::time::Duration::MAX;
        Family::builder().interval(forever).build().unwrap()
    }

    /// Rounds of 1 KiB that a family would lend now.
    fn left(family: &Family) -> usize {
        let rounds = family.lend(usize::MAX >> 20, 1 << 10);
        family.take_back(rounds << 10);
        rounds
    }

    #[test]
    fn a_magazine_that_is_full_and_empty_in_turn_grows_by_what_the_family_lends() {
        let family = unhurried();
        let classes = Classes::plain(&family, false);
        let (heap, other) = (Heap::new(&classes), Heap::new(&classes));
        let stocked = |heap: &Heap| heap.stats().stocked_bytes >> 20;
        // Nothing is backed, and so a constant is lent.
        let before = left(&family);
        assert_eq!(before, 16 << 10, "half of 32 MiB");
        swing(&heap, mib(1), 8, 1);
        let first = stocked(&heap);
        assert!((1..=2).contains(&first), "{first}");
        swing(&heap, mib(1), 8, 4);
        let now = stocked(&heap);
        assert!(now > first && now <= 8, "{now} after {first}");
        assert!(left(&family) < before);
        // One that only takes, and one that only puts, exchange them all; it is no use to have more.
        for _ in 0..20 {
            let object = other.alloc(mib(2)).unwrap();
            // SAFETY: taken above, put once.
            unsafe { heap.dealloc(object, mib(2)) };
        }
        assert!(stocked(&heap) - now <= 4, "{}", stocked(&heap));
        // Small ones grow only where the depot is contended.
        let small = Layout::from_size_align(16 << 10, 8).unwrap();
        heap.trim();
        other.trim();
        family.trim();
        assert_eq!(left(&family), before, "all of it went back");
        swing(&heap, small, 20, 9);
        assert_eq!(left(&family), before + (20 * 16 / 4) / 2);
        swing(&heap, mib(1), 8, 4);
        drop(heap);
        family.trim();
        assert_eq!(left(&family), before, "with the heap, too");
    }

    #[test]
    fn heaps_hold_no_more_of_large_objects_than_is_lent() {
        let family = unhurried();
        let classes = Classes::plain(&family, false);
        let heaps: Vec<_> = (0..20).map(|_| Heap::new(&classes)).collect();
        let large = SIZES.iter().filter(|size| **size > LENT_BEYOND);
        for (heap, size) in heaps
            .iter()
            .flat_map(|heap| large.clone().map(move |size| (heap, size)))
        {
            swing(heap, Layout::from_size_align(*size, 1).unwrap(), 1, 1);
        }
        let stocked = heaps.iter().map(|heap| heap.stats().stocked_bytes >> 20);
        let stocked = stocked.sum::<usize>();
        let held = family.pool().stats().held_bytes >> 20;
        assert!(
            (16..=32 + held / 4).contains(&stocked),
            "{stocked} of {held}"
        );
        assert!(left(&family) < 4 << 10, "{}", left(&family));
    }

    #[test]
    fn where_nothing_is_lent_large_objects_stay_in_no_heap() {
        let family = Family::builder()
            .cached_bytes(1 << 19)
            .interval(core::time::Duration::MAX)
            .build()
            .unwrap();
        let classes = Classes::plain(&family, false);
        let heap = Heap::new(&classes);
        swing(&heap, mib(1), 8, 3);
        let stats = heap.stats();
        assert_eq!((stats.stocked_bytes, stats.charged_bytes), (0, 0));
        let out = || family.pool().stats().out_bytes;
        let before = out();
        for _ in 0..9 {
            let object = classes.alloc(mib(1)).unwrap();
            // SAFETY: taken above, put once.
            unsafe { classes.dealloc(object, mib(1)) };
        }
        assert_eq!(
            (classes.served().hits, out()),
            (0, before),
            "nor with a CPU"
        );
        // SAFETY: each is put once, with the layout that it has.
        unsafe {
            let object = classes.alloc(mib(1)).unwrap();
            let larger = classes.realloc(object, mib(1), mib(5)).unwrap();
            let next = classes.alloc(mib(1)).unwrap();
            assert_eq!(next, object, "nor after it has moved");
            classes.dealloc(next, mib(1));
            classes.dealloc(larger, mib(5));
        }
        let zeroed = heap.alloc_zeroed(mib(1)).unwrap();
        assert_eq!(heap.stats().charged_bytes, 1 << 20);
        // SAFETY: taken above, put once.
        unsafe { heap.dealloc(zeroed, mib(1)) };
        assert_eq!(heap.stats().charged_bytes, 0);
    }

    #[test]
    fn what_a_heap_holds_is_no_reason_to_refuse() {
        let pages = crate::pages::PagePool::builder().ignore_environment();
        let family = Family::builder()
            .interval(core::time::Duration::MAX)
            .pages(pages.limit_bytes(40 << 20))
            .build()
            .unwrap();
        let heap = Heap::new(&Classes::plain(&family, false));
        let class = Layout::from_size_align(200_000, 8).unwrap();
        for limit in [usize::MAX, 40 << 20] {
            heap.set_limit(limit);
            swing(&heap, class, 100, 6);
            swing(&heap, mib(2), 10, 4);
            assert!(heap.stats().stocked_bytes > 2 << 20, "{:?}", heap.stats());
            let run = heap.alloc(mib(38)).unwrap();
            // SAFETY: taken above, put once.
            unsafe { heap.dealloc(run, mib(38)) };
            assert!(heap.alloc(mib(41)).is_err());
        }
    }

    #[test]
    fn large_objects_that_lie_free_make_room_for_others() {
        let family = unhurried();
        let heap = Heap::new(&Classes::plain(&family, false));
        let held = || family.pool().stats().out_bytes >> 20;
        swing(&heap, mib(4), 1, 1);
        assert_eq!(held(), 4, "it is kept");
        let all: Vec<_> = (0..4).map(|_| heap.alloc(mib(1)).unwrap()).collect();
        assert_eq!(held(), 4, "its pages serve");
        for object in all {
            // SAFETY: taken above, put once.
            unsafe { heap.dealloc(object, mib(1)) };
        }
        let other = Heap::new(heap.classes());
        swing(&other, mib(3), 1, 1);
        let before = held();
        let run = other.alloc(mib(5)).unwrap();
        assert_eq!(held(), before - 3 + 5, "what it had serves a run, too");
        // SAFETY: as above.
        unsafe { other.dealloc(run, mib(5)) };
    }

    #[test]
    #[cfg_attr(miri, ignore = "an interpreter takes minutes for so many bytes")]
    fn the_run_that_was_freed_last_serves_the_next_request_that_it_fits() {
        let family = Family::builder()
            .interval(core::time::Duration::MAX)
            .build()
            .unwrap();
        let heap = Heap::new(&Classes::plain(&family, false));
        let layout = |bytes: usize| Layout::from_size_align(bytes, 8).unwrap();
        let (unit, out) = (4 << 20, || family.pool().stats().out_bytes);
        let run = heap.alloc(layout(8 * unit)).unwrap();
        // SAFETY: each is used with the layout that it has, and put once.
        unsafe {
            heap.dealloc(run, layout(8 * unit));
            assert_eq!(family.owner(run.as_ptr()), None, "it is no object");
            assert!(heap.put_large(run).is_err(), "put twice");
            assert_eq!(heap.stats().stocked_bytes, 8 * unit);
            heap.set_limit(8 * unit);
            assert_eq!(heap.alloc(layout(7 * unit)), Ok(run));
            assert_eq!(heap.stats().stocked_bytes, 0);
            heap.dealloc(run, layout(7 * unit));
            let other = heap.alloc(layout(5 * unit)).unwrap();
            assert_eq!(heap.stats().charged_bytes, 5 * unit, "the run went back");
            heap.set_limit(usize::MAX);
            let more = heap.alloc(layout(2 * unit)).unwrap();
            heap.dealloc(other, layout(5 * unit));
            heap.dealloc(more, layout(2 * unit));
            assert_eq!(out(), 2 * unit, "one is kept");
            heap.trim();
            let large = heap.alloc(layout(65 * unit)).unwrap();
            assert_eq!(heap.stats().large_bytes, 80 * unit, "of four lengths");
            heap.dealloc(large, layout(65 * unit));
            assert_eq!(heap.stats().stocked_bytes, 80 * unit, "of any size");
            assert_eq!(heap.alloc(layout(65 * unit)), Ok(large), "the same again");
            heap.dealloc(large, layout(65 * unit));
            heap.set_limit(70 * unit);
            heap.trim();
            let large = heap.alloc(layout(65 * unit)).unwrap();
            assert_eq!(
                heap.stats().large_bytes,
                65 * unit,
                "what there is room for"
            );
            heap.dealloc(large, layout(65 * unit));
            heap.set_limit(usize::MAX);
            heap.trim();
            let last = heap.alloc(layout(2 * unit)).unwrap();
            heap.dealloc(last, layout(2 * unit));
        }
        assert_eq!(out(), 2 * unit);
        drop(heap);
        assert_eq!((out(), family.large_held_bytes()), (0, 0));
        // All heaps of a family together keep no more than it does.
        let little = Family::builder().cached_bytes(8 * unit).build().unwrap();
        let classes = Classes::plain(&little, false);
        let heaps: Vec<_> = (0..4).map(|_| Heap::new(&classes)).collect();
        for heap in &heaps {
            let run = heap.alloc(layout(4 * unit)).unwrap();
            // SAFETY: as above.
            unsafe { heap.dealloc(run, layout(4 * unit)) };
        }
        let kept = || heaps.iter().map(|heap| heap.stats().stocked_bytes);
        assert_eq!(kept().sum::<usize>(), 8 * unit);
        heaps[0].trim();
        let run = heaps[3].alloc(layout(3 * unit)).unwrap();
        // SAFETY: as above.
        unsafe { heaps[3].dealloc(run, layout(3 * unit)) };
        assert_eq!(kept().sum::<usize>(), 7 * unit, "another may instead");
        for heap in &heaps {
            heap.trim();
        }
        let run = heaps[0].alloc(layout(9 * unit)).unwrap();
        // SAFETY: as above.
        unsafe { heaps[0].dealloc(run, layout(9 * unit)) };
        assert_eq!(kept().sum::<usize>(), 0, "one alone is too much");
        let nothing = Family::builder().cached_bytes(0).build().unwrap();
        let heap = Heap::new(&Classes::plain(&nothing, false));
        let run = heap.alloc(layout(2 * unit)).unwrap();
        // SAFETY: as above.
        unsafe { heap.dealloc(run, layout(2 * unit)) };
        assert_eq!(nothing.pool().stats().out_bytes, 0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "an interpreter takes minutes for so many bytes")]
    fn a_private_heap_leaves_others_the_room_to_keep_a_run() {
        let family = Family::builder()
            .cached_bytes(32 << 20)
            .interval(core::time::Duration::MAX)
            .build()
            .unwrap();
        let private = Heap::new(&Classes::plain(&family, true));
        let heap = Heap::new(&Classes::plain(&family, false));
        swing(&private, mib(32), 1, 1);
        assert_eq!(private.stats().stocked_bytes, 0, "its runs end with it");
        swing(&heap, mib(32), 1, 1);
        assert_eq!(heap.stats().stocked_bytes, 32 << 20);
    }

    #[test]
    #[cfg_attr(miri, ignore = "an interpreter takes minutes for so many bytes")]
    fn a_long_run_is_zero_whether_it_was_touched_or_not() {
        let heap = Heap::new(&Classes::plain(&Family::new().unwrap(), false));
        // A run, objects of a class, one aligned to more than all are.
        let layouts = [(16 << 20, 8), (3 << 20, 8), (300_000, 8), (1 << 20, 4096)];
        let layouts = layouts.map(|(size, align)| Layout::from_size_align(size, align).unwrap());
        let steps = |layout: Layout| [layout.size() - 1, 4096, 1].map(|step| (layout, step));
        for (layout, step) in layouts.into_iter().flat_map(steps) {
            // SAFETY: the object's own bytes; it is put once.
            unsafe {
                let run = heap.alloc(layout).unwrap();
                let bytes = core::slice::from_raw_parts_mut(run.as_ptr(), layout.size());
                bytes.iter_mut().step_by(step).for_each(|byte| *byte = 1);
                heap.dealloc(run, layout);
                let zeroed = heap.alloc_zeroed(layout).unwrap();
                assert_eq!(zeroed, run, "the same pages");
                let bytes = core::slice::from_raw_parts(zeroed.as_ptr(), layout.size());
                assert!(bytes.iter().all(|byte| *byte == 0), "every {step} bytes");
                heap.dealloc(zeroed, layout);
            }
        }
    }

    #[test]
    fn what_is_no_object_of_a_class_is_not_put() {
        let family = Family::builder().marks().build().unwrap();
        let heap = Heap::new(&Classes::plain(&family, false));
        let large = Layout::from_size_align(5 << 20, 1).unwrap();
        let run = heap.alloc(large).unwrap();
        let beside = 0_u64;
        // SAFETY: none is put.
        unsafe {
            assert!(!heap.try_put_marked(core::ptr::null_mut()));
            assert!(!heap.try_put_marked(run.as_ptr()));
            assert!(!heap.try_put_marked((&raw const beside).cast_mut().cast()));
            heap.dealloc(run, large);
        }
    }
}
