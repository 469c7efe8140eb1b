//! The parts that heaps and classes share, over the pointers of C.
//!
//! Short functions are always inlined: each is the body of one or two C functions, and a `Result` with its error is large to
//! pass. They are called in a closure of each C function, since `catch_unwind` is inlined where one function alone calls it.

use core::ffi::c_void;
use core::ops::Deref;
use core::ptr::NonNull;
use std::alloc::Layout;

use larder::heap::{AllocError, Classes, Heap};
use larder::internal::heap::{GRAIN, class_of_layout, may_stay, small_class_of_layout};
use larder::os::page_size;

use crate::call::empty;
use crate::error::{Failed, larder_status};
use crate::options::alignment;

/// A source of memory of any size.
pub(super) trait Front {
    fn classes(&self) -> &Classes;
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>, AllocError>;
    fn alloc_zeroed(&self, layout: Layout) -> Result<NonNull<u8>, AllocError>;
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

macro_rules! front {
    ($type:ident, |$itself:ident| $classes:expr) => {
        impl Front for $type {
            fn classes(&self) -> &Classes {
                let $itself = self;
                $classes
            }
            #[inline(always)]
            fn alloc(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
                self.alloc(layout)
            }
            #[inline(always)]
            fn alloc_zeroed(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
                self.alloc_zeroed(layout)
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
            unsafe fn resize(
                &self,
                object: NonNull<u8>,
                to: Layout,
            ) -> Result<NonNull<u8>, AllocError> {
                // SAFETY: the caller's promise.
                unsafe { self.realloc_by_address(object, to) }
            }
        }
    };
}

front!(Heap, |heap| heap.classes());
front!(Classes, |classes| classes);

/// What is behind a handle, which has such a source.
pub(super) trait Enter {
    type Front: Front;
    /// The source, for the time of one call.
    fn enter(&self) -> impl Deref<Target = Self::Front>;
}

/// Takes an object of a size and an alignment of C's.
///
/// # Safety
/// `object` is NULL or can be written.
#[inline(always)]
pub(super) unsafe fn alloc(
    own: &impl Enter,
    (bytes, align): (usize, usize),
    object: *mut *mut c_void,
) -> Result<(), Failed> {
    // SAFETY: the caller's promise.
    unsafe {
        empty::<NonNull<u8>>(("object", object))?;
        let new = own.enter().alloc(layout(bytes, align)?)?;
        object.write(new.as_ptr().cast());
    }
    Ok(())
}

/// As [`alloc`], zeroed.
///
/// # Safety
/// As for [`alloc`].
#[inline(always)]
pub(super) unsafe fn alloc_zeroed(
    own: &impl Enter,
    bytes: usize,
    object: *mut *mut c_void,
) -> Result<(), Failed> {
    // SAFETY: the caller's promise.
    unsafe {
        empty::<NonNull<u8>>(("object", object))?;
        let new = own.enter().alloc_zeroed(layout(bytes, 0)?)?;
        object.write(new.as_ptr().cast());
    }
    Ok(())
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
pub(super) fn usable(classes: &Classes, object: NonNull<u8>) -> Result<usize, Failed> {
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

/// As C's `malloc_usable_size`; 0 for a pointer that is no object.
pub(super) fn usable_bytes(own: &impl Enter, object: *const c_void) -> usize {
    let object = NonNull::new(object.cast_mut().cast());
    object.map_or(0, |object| {
        usable(own.enter().classes(), object).unwrap_or(0)
    })
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
    own: &impl Enter,
    object: *mut c_void,
    (bytes, align): (usize, usize),
) -> Result<(), Failed> {
    let Some(object) = NonNull::new(object.cast::<u8>()) else {
        return Ok(());
    };
    let (front, layout) = (own.enter(), layout(bytes, align)?);
    let class = class_of_layout(layout);
    let checked = front.classes().is_checked();
    if !checked && (class.is_none() || front.classes().class_at(object) != class) {
        check_size(front.classes(), object, layout)?;
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
fn check_size(classes: &Classes, object: NonNull<u8>, layout: Layout) -> Result<(), Failed> {
    let has = usable(classes, object)?;
    let size = layout.size();
    // A run that has grown keeps room to grow, and one that was made smaller stays if more than half is in use. A large object of
    // a private heap has two pages at least.
    let page = page_size();
    let whole = size.max(1).checked_next_multiple_of(page);
    let fits = (size <= has && size > has / 2)
        || whole == Some(has)
        || (has == 2 * page && whole == Some(page));
    let fits = match classes.class_at(object) {
        None => fits,
        Some(class) => may_stay(class, size),
    };
    if small_class_of_layout(layout).is_none() && fits {
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
    own: &impl Enter,
    object: *mut *mut c_void,
    bytes: usize,
) -> Result<(), Failed> {
    if object.is_null() {
        return Err(Failed::null("object"));
    }
    let (front, layout) = (own.enter(), layout(bytes, 0)?);
    // SAFETY: the caller's promise.
    let new = match NonNull::new(unsafe { object.read() }.cast::<u8>()) {
        None => front.alloc(layout)?,
        Some(old) => {
            // Checked classes report the mistake themselves.
            if !front.classes().is_checked() {
                usable(front.classes(), old)?;
            }
            // SAFETY: an object of these classes, as was just seen; the caller gives it up where it moves.
            unsafe { front.resize(old, layout)? }
        }
    };
    // SAFETY: as above.
    unsafe { object.write(new.as_ptr().cast()) };
    Ok(())
}
