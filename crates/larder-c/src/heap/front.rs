//! The parts that heaps and classes share, over the pointers of C.
//!
//! Short functions are always inlined: each is the body of one or two C functions, and a `Result` with its error is large to
//! pass.

use core::ffi::c_void;
use core::ptr::NonNull;
use std::alloc::Layout;

use larder::heap::{AllocError, Classes, Heap};
use larder::internal::heap::{GRAIN, class_of_layout};
use larder::os::page_size;

use crate::error::{Failed, larder_status};
use crate::objects::large::alignment;

/// A source of memory of any size.
pub(super) trait Front {
    fn classes(&self) -> &Classes;
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>, AllocError>;
    /// # Safety
    /// The object is one of the classes', and is given up.
    unsafe fn free(&self, object: NonNull<u8>);
    /// # Safety
    /// As for `free`, and the object is of this layout's class.
    unsafe fn dealloc(&self, object: NonNull<u8>, layout: Layout);
    /// # Safety
    /// As for `free`, unless there is an error.
    unsafe fn resize(&self, object: NonNull<u8>, to: Layout) -> Result<NonNull<u8>, AllocError>;
}

impl Front for Heap {
    fn classes(&self) -> &Classes {
        self.classes()
    }
    #[inline(always)]
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        self.alloc(layout)
    }
    #[inline(always)]
    unsafe fn free(&self, object: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe { self.dealloc_by_address(object) }
    }
    #[inline(always)]
    unsafe fn dealloc(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { self.dealloc(object, layout) }
    }
    unsafe fn resize(&self, object: NonNull<u8>, to: Layout) -> Result<NonNull<u8>, AllocError> {
        // SAFETY: the caller's promise.
        unsafe { self.realloc_by_address(object, to) }
    }
}

impl Front for Classes {
    fn classes(&self) -> &Classes {
        self
    }
    #[inline(always)]
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        self.alloc(layout)
    }
    #[inline(always)]
    unsafe fn free(&self, object: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe { self.dealloc_by_address(object) }
    }
    #[inline(always)]
    unsafe fn dealloc(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { self.dealloc(object, layout) }
    }
    unsafe fn resize(&self, object: NonNull<u8>, to: Layout) -> Result<NonNull<u8>, AllocError> {
        // SAFETY: the caller's promise.
        unsafe { self.realloc_by_address(object, to) }
    }
}

/// A layout of C's; an alignment of 0 is that of every class.
#[inline(always)]
pub(super) fn layout(bytes: usize, align: usize) -> Result<Layout, Failed> {
    let align = alignment(align, GRAIN)?;
    Layout::from_size_align(bytes, align).map_err(|_| {
        Failed::number(
            larder_status::LARDER_EXHAUSTED,
            "heap:",
            bytes as u64,
            " bytes at that alignment were asked for, more than there are addresses",
        )
    })
}

/// Bytes that may be used of an object of these classes.
fn usable(classes: &Classes, object: NonNull<u8>) -> Result<usize, Failed> {
    classes.usable_size(object).ok_or_else(|| foreign(object))
}

#[cold]
fn foreign(object: NonNull<u8>) -> Failed {
    Failed::number(
        larder_status::LARDER_FOREIGN,
        "the address",
        object.as_ptr() as u64,
        " is no object of this heap's classes",
    )
}

/// As C's `malloc_usable_size`; NULL is no object.
pub(super) fn usable_bytes(front: &impl Front, object: *const c_void) -> Result<usize, Failed> {
    let object = NonNull::new(object.cast_mut().cast()).ok_or_else(|| Failed::null("object"))?;
    usable(front.classes(), object)
}

/// Gives an object back; NULL does nothing.
///
/// # Safety
/// An object of these classes belongs to the caller, which gives it up.
#[inline(always)]
pub(super) unsafe fn dealloc(front: &impl Front, object: *mut c_void) -> Result<(), Failed> {
    let Some(object) = NonNull::new(object.cast::<u8>()) else {
        return Ok(());
    };
    // Checked classes report the mistake themselves.
    if front.classes().class_at(object).is_none() && !front.classes().is_checked() {
        usable(front.classes(), object)?;
    }
    // SAFETY: an object of these classes, as was just seen; the caller gives it up.
    unsafe { front.free(object) };
    Ok(())
}

/// Gives back an object whose size the caller states; NULL does nothing.
///
/// # Safety
/// As for [`dealloc`].
#[inline(always)]
pub(super) unsafe fn dealloc_sized(
    front: &impl Front,
    object: *mut c_void,
    bytes: usize,
    align: usize,
) -> Result<(), Failed> {
    let Some(object) = NonNull::new(object.cast::<u8>()) else {
        return Ok(());
    };
    let layout = layout(bytes, align)?;
    let class = class_of_layout(layout);
    let checked = front.classes().is_checked();
    if !checked && (class.is_none() || front.classes().class_at(object) != class) {
        check_size(front.classes(), object, layout, class)?;
        // SAFETY: an object of these classes; the caller gives it up.
        unsafe { front.free(object) };
        return Ok(());
    }
    // SAFETY: an object of this layout's class; the caller gives it up.
    unsafe { front.dealloc(object, layout) };
    Ok(())
}

/// The error of an object that is given back with this layout; none where a large or a kept object is right.
#[cold]
fn check_size(
    classes: &Classes,
    object: NonNull<u8>,
    layout: Layout,
    class: Option<usize>,
) -> Result<(), Failed> {
    let has = usable(classes, object)?;
    let page = page_size();
    let whole = layout.size().max(1).checked_next_multiple_of(page);
    // A large object of a private heap has two pages at least.
    let fits = whole == Some(has) || (has == 2 * page && whole == Some(page));
    if class.is_none() && classes.class_at(object).is_none() && fits {
        return Ok(());
    }
    if layout.size() <= has && classes.has_outgrown() {
        return Ok(());
    }
    Err(Failed::number(
        larder_status::LARDER_SIZE,
        "an object of",
        has as u64,
        " bytes was given back with a size or alignment that it was not allocated with",
    ))
}

/// Makes `*object` larger or smaller; NULL in it begins a new one. On error it stays as it is. To make it smaller never fails.
///
/// # Safety
/// `object` is NULL or can be read and written; what is in it is an object in the caller's hands.
pub(super) unsafe fn realloc(
    front: &impl Front,
    object: *mut *mut c_void,
    bytes: usize,
) -> Result<(), Failed> {
    if object.is_null() {
        return Err(Failed::null("object"));
    }
    let layout = layout(bytes, 0)?;
    // SAFETY: the caller's promise.
    let Some(old) = NonNull::new(unsafe { object.read() }.cast::<u8>()) else {
        let new = front.alloc(layout)?;
        // SAFETY: as above.
        unsafe { object.write(new.as_ptr().cast()) };
        return Ok(());
    };
    // Checked classes report the mistake themselves.
    if !front.classes().is_checked() {
        usable(front.classes(), old)?;
    }
    // SAFETY: an object of these classes, as was just seen; the caller gives it up where it moves.
    unsafe {
        let new = front.resize(old, layout)?;
        object.write(new.as_ptr().cast());
    }
    Ok(())
}
