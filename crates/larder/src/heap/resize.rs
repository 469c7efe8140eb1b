//! Making an object larger or smaller.
//!
//! To make one smaller never fails: where no memory is found to move to, it stays where it is, larger than its owner knows.
//!
//! An object that grows beyond the small sizes becomes a run of pages, whatever class its size has: a run grows where it is.
//! Larger objects are found by their addresses, so it does not matter which of both they are.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::class::{SIZES, class_of_layout, may_stay, small_class_of_layout};
use super::{AllocError, Classes, Heap};
use crate::objects::Misuse;

/// What an object is before its size changes.
#[derive(Clone, Copy)]
struct Had {
    /// Bytes that are its owner's.
    bytes: usize,
    /// The class that it goes back to; `None` for a run of pages.
    class: Option<usize>,
}

/// Where objects come from and go to.
trait Source {
    fn classes(&self) -> &Classes;
    fn take(&self, layout: Layout) -> Result<NonNull<u8>, AllocError>;
    /// A run of pages, where a shorter one serves, too.
    fn take_run(&self, layout: Layout) -> Result<NonNull<u8>, AllocError>;
    /// # Safety
    /// The object was given up, and goes back to this class.
    unsafe fn give(&self, object: NonNull<u8>, class: Option<usize>);
    /// Makes a run of pages larger or smaller where it is, if that can be done.
    /// # Safety
    /// The object is the caller's, and nothing beyond `bytes` is used afterwards.
    unsafe fn resize_large(&self, object: NonNull<u8>, bytes: usize) -> bool;
    /// An object of `has` bytes, a run of pages if `large`, counts as one of `bytes` from now on.
    fn outgrow(&self, has: usize, large: bool, bytes: usize);
}

impl Source for Heap {
    fn classes(&self) -> &Classes {
        self.classes()
    }
    fn take(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        self.alloc(layout)
    }
    fn take_run(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        self.try_alloc_run(layout)
    }
    unsafe fn give(&self, object: NonNull<u8>, class: Option<usize>) {
        match class {
            // SAFETY: the caller's promise.
            Some(class) => unsafe { self.put(object, class) },
            // SAFETY: as above.
            None => unsafe { self.dealloc_by_address(object) },
        }
    }
    unsafe fn resize_large(&self, object: NonNull<u8>, bytes: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.resize_run(object, bytes) }
    }
    fn outgrow(&self, has: usize, large: bool, bytes: usize) {
        self.account().outgrow(has, large, bytes);
    }
}

impl Source for Classes {
    fn classes(&self) -> &Classes {
        self
    }
    fn take(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        self.alloc(layout)
    }
    fn take_run(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        self.try_alloc_large(layout)
    }
    unsafe fn give(&self, object: NonNull<u8>, class: Option<usize>) {
        match class {
            // SAFETY: the caller's promise.
            Some(class) => unsafe { self.put(object, class) },
            // SAFETY: as above.
            None => unsafe { self.dealloc_by_address(object) },
        }
    }
    unsafe fn resize_large(&self, object: NonNull<u8>, bytes: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.family().resize_large(object, bytes) }.unwrap_or(false)
    }
    fn outgrow(&self, _: usize, _: bool, _: usize) {}
}

/// What a run of pages that moves to grow asks for: half as much again, so that one that grows in steps moves seldom. The pages
/// cost addresses until they are written.
pub(super) fn with_headroom(bytes: usize) -> usize {
    bytes.saturating_add(bytes / 2)
}

/// Runs of more bytes have one of four lengths between two powers of two, as jemalloc's: then a run begins where another began before it,
/// at pages that are backed, and one that grows a little stays as it is. What is over is not touched.
const MOST_EXACT: usize = 2 << 20;
const LENGTHS: usize = 4;

/// Bytes of a run of pages for so many.
pub(super) fn run_bytes(bytes: usize) -> usize {
    if bytes <= MOST_EXACT {
        return bytes;
    }
    // A quarter of the power of two below.
    let step = (bytes - 1)
        .checked_ilog2()
        .map_or(1, |log| (1 << log) / LENGTHS);
    bytes.checked_next_multiple_of(step).unwrap_or(bytes)
}

impl Heap {
    /// Makes a run of pages larger or smaller where it is; false when it stays as it was.
    ///
    /// # Safety
    /// It is the caller's, and nothing beyond `bytes` is used afterwards.
    pub(super) unsafe fn resize_run(&self, object: NonNull<u8>, bytes: usize) -> bool {
        let family = self.classes().family();
        let Ok(has) = family.large_bytes(object) else {
            return false;
        };
        let mut long = run_bytes(bytes);
        if bytes > has {
            // It may lie behind this one.
            self.end_kept();
        } else {
            long = long.min(has);
        }
        let least = (long != bytes).then_some(bytes);
        // For more than there must be, nothing is given back.
        let room = |to: usize| match to == bytes {
            true => self.room(to.saturating_sub(has)),
            false => self.account().room(to.saturating_sub(has)),
        };
        let done = [Some(long), least].into_iter().flatten().any(|to| {
            room(to).is_ok()
                // SAFETY: the caller's promise.
                && unsafe { family.resize_large(object, to) }.unwrap_or(false)
        });
        let now = family.large_bytes(object).unwrap_or(has);
        if now > has {
            self.account().take_large(now - has);
            self.warn();
        } else {
            self.account().give_large(has - now);
        }
        done
    }

    /// Makes an object larger or smaller; it may move. On error it stays as it is. To make it smaller, and not more aligned,
    /// never fails: where there is no memory to move to, or the heap's limit forbids, the object stays as large as it is, and
    /// may be given back by its new layout all the same.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::{Classes, Heap}, objects::Family};
    /// let heap = Heap::new(&Classes::new(&Family::new()?));
    /// let (small, large) = (Layout::new::<[u8; 100]>(), Layout::new::<[u8; 50_000]>());
    /// let object = heap.alloc(small)?;
    /// // SAFETY: taken above; used by its new address, and put once by its new layout.
    /// unsafe {
    ///     object.write(7);
    ///     let object = heap.realloc(object, small, large)?;
    ///     assert_eq!(object.read(), 7);
    ///     heap.dealloc(object, large);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Safety
    /// As for [`dealloc`](Self::dealloc), unless there is an error.
    ///
    /// # Errors
    /// See [`AllocError`].
    pub unsafe fn realloc(
        &self,
        object: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<u8>, AllocError> {
        if let Some(checker) = self.classes().checker() {
            // SAFETY: the caller's promise.
            return unsafe { self.realloc_checked(checker, object, Some(old), new) };
        }
        // SAFETY: as above.
        unsafe { resize(self, object, had(self.classes(), object, old), new) }
    }

    /// As [`realloc`](Self::realloc), of an object whose layout is not known: as many bytes stay as it has.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::{Classes, Heap}, objects::Family};
    /// let heap = Heap::new(&Classes::new(&Family::new()?));
    /// let object = heap.alloc(Layout::new::<[u8; 100]>())?;
    /// // SAFETY: taken above; used by its new address, and put once.
    /// unsafe {
    ///     object.write(7);
    ///     let object = heap.realloc_by_address(object, Layout::new::<[u8; 50_000]>())?;
    ///     assert_eq!(object.read(), 7);
    ///     heap.dealloc_by_address(object);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Safety
    /// As for [`dealloc_by_address`](Self::dealloc_by_address), unless there is an error. An address that is none of these classes' objects is
    /// reported to the family, and is an error.
    ///
    /// # Errors
    /// See [`AllocError`].
    pub unsafe fn realloc_by_address(
        &self,
        object: NonNull<u8>,
        new: Layout,
    ) -> Result<NonNull<u8>, AllocError> {
        if let Some(checker) = self.classes().checker() {
            // SAFETY: the caller's promise.
            return unsafe { self.realloc_checked(checker, object, None, new) };
        }
        let had = found(self.classes(), object, new)?;
        // SAFETY: as above.
        unsafe { resize(self, object, had, new) }
    }
}

impl Classes {
    /// As [`Heap::realloc`], by this CPU's stock.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::Classes, objects::Family};
    /// let classes = Classes::new(&Family::new()?);
    /// let (old, new) = (Layout::new::<[u8; 100]>(), Layout::new::<[u8; 50_000]>());
    /// let object = classes.alloc(old)?;
    /// // SAFETY: taken above with this layout; put once, with the other.
    /// unsafe { classes.dealloc(classes.realloc(object, old, new)?, new) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Safety
    /// As for [`dealloc`](Self::dealloc), unless there is an error.
    ///
    /// # Errors
    /// See [`AllocError`].
    pub unsafe fn realloc(
        &self,
        object: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<u8>, AllocError> {
        if let Some(checker) = self.checker() {
            // SAFETY: the caller's promise.
            return unsafe { checker.resize(object, Some(old), new) };
        }
        // SAFETY: as above.
        unsafe { resize(self, object, had(self, object, old), new) }
    }

    /// As [`Heap::realloc_by_address`], by this CPU's stock.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::Classes, objects::Family};
    /// let classes = Classes::new(&Family::new()?);
    /// let object = classes.alloc(Layout::new::<[u8; 100]>())?;
    /// // SAFETY: taken above; used by its new address, and put once.
    /// unsafe {
    ///     object.write(7);
    ///     let object = classes.realloc_by_address(object, Layout::new::<[u8; 50_000]>())?;
    ///     assert_eq!(object.read(), 7);
    ///     classes.dealloc_by_address(object);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Safety
    /// As for [`dealloc_by_address`](Self::dealloc_by_address), unless there is an error. An address that is none of these classes' objects is
    /// reported to the family, and is an error.
    ///
    /// # Errors
    /// See [`AllocError`].
    pub unsafe fn realloc_by_address(
        &self,
        object: NonNull<u8>,
        new: Layout,
    ) -> Result<NonNull<u8>, AllocError> {
        if let Some(checker) = self.checker() {
            // SAFETY: the caller's promise.
            return unsafe { checker.resize(object, None, new) };
        }
        let had = found(self, object, new)?;
        // SAFETY: as above.
        unsafe { resize(self, object, had, new) }
    }
}

/// What an object of a layout is.
fn had(classes: &Classes, object: NonNull<u8>, layout: Layout) -> Had {
    Had {
        bytes: layout.size(),
        class: small_class_of_layout(layout).or_else(|| classes.class_at(object)),
    }
}

/// What the object is that begins at an address.
fn found(classes: &Classes, object: NonNull<u8>, new: Layout) -> Result<Had, AllocError> {
    let Some(bytes) = classes.usable_size(object) else {
        let addr = object.as_ptr() as usize;
        classes.family().tell(&Misuse::Foreign { addr });
        let size = new.size();
        return Err(AllocError::Foreign { addr, size });
    };
    Ok(Had {
        bytes,
        class: classes.class_at(object),
    })
}

/// # Safety
/// The object is what `had` says, and is given up unless there is an error.
unsafe fn resize(
    source: &impl Source,
    object: NonNull<u8>,
    had: Had,
    new: Layout,
) -> Result<NonNull<u8>, AllocError> {
    // One that is larger than its owner knows may be aligned to less than its class.
    let aligned = (object.as_ptr() as usize).is_multiple_of(new.align());
    let small = small_class_of_layout(new);
    let same = match (had.class, small) {
        (Some(a), Some(b)) => a == b,
        (Some(a), None) => class_of_layout(new) == Some(a) || may_stay(a, new.size()),
        (None, None) => {
            let has = source.classes().usable_size(object).unwrap_or(0);
            let keeps = new.size() <= has && new.size() > has / 2;
            // SAFETY: the object is the caller's; the caller gives up what is beyond the new size.
            aligned && (keeps || unsafe { source.resize_large(object, new.size()) })
        }
        (None, Some(_)) => false,
    };
    if same && aligned {
        return Ok(object);
    }
    let grows = small.is_none() && new.size() > had.bytes;
    let roomy = grows
        .then(|| Layout::from_size_align(with_headroom(new.size()), new.align()).ok())
        .flatten();
    let taken = roomy.and_then(|layout| source.take_run(layout).ok());
    let to = match taken.map_or_else(|| source.take(new), Ok) {
        Ok(to) => to,
        Err(_) if aligned && may_keep(source, object, had.bytes, new) => return Ok(object),
        Err(error) => return Err(error),
    };
    // SAFETY: both have at least this many bytes, and one of them is new; the caller gives the old one up.
    unsafe {
        to.copy_from_nonoverlapping(object, had.bytes.min(new.size()));
        source.give(object, had.class);
    }
    Ok(to)
}

/// Whether an object that no memory was found to make smaller may stay as it is.
#[cold]
fn may_keep(source: &impl Source, object: NonNull<u8>, bytes: usize, new: Layout) -> bool {
    if new.size() > bytes {
        return false;
    }
    // A larger one is found by its address.
    if let Some(class) = small_class_of_layout(new) {
        let classes = source.classes();
        let large = classes.class_at(object).is_none();
        classes.outgrow();
        let has = classes.usable_size(object).unwrap_or(0);
        source.outgrow(has, large, SIZES[class]);
    }
    true
}
