//! malloc's functions: the [front](super::front)'s, with a mark for each block in use.
//!
//! A program that frees a block twice, or what is no block, is told so by the call that does it: the mark of the address is 0. The
//! mark is the block's class, too, so `free` reads it in place of the page's owner, and clears it. That and the writing of it in
//! `malloc` is all that a pair costs more. A mark lies apart from its block: what the program writes beyond a block does not change it.
//!
//! Large blocks have no marks; their pages have an owner, or none. A heap that is checked looks itself.
//!
//! `alloc_or` and `try_free` are what nearly every malloc and free needs, and nothing else: a block of the thread's own magazines.
//! malloc and free are called from outside, so their code is run as it stands. What these two leave to the whole functions
//! needs registers to be saved, errors to be reported and a stack frame, and all that stays out of these two.

use core::alloc::Layout;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::Ordering;

use super::checked::UNSAID;
use super::front::{self, Hands};
use super::state::{self, Global};
use super::{misuse, profiled, slot};
use crate::heap::class::{
    MAX_FIXED, TABLE_END, class_of_layout, computed_class, may_stay, small_class, tabled_class,
    tabled_class_of_aligned,
};
use crate::heap::{Call, GRAIN, Heap, Origin, SIZES};

/// At least `size` bytes at a multiple of `align`, a power of two; null when there are none, or no such alignment.
#[inline]
#[must_use]
pub fn alloc(size: usize, align: usize) -> *mut u8 {
    alloc_as(size, align, Origin::Malloc)
}

/// As [`alloc()`] with an alignment of 16, if the thread's magazines have a block of this size; else what `slow` answers, or
/// `heapless`, with the size's class, where the thread has no heap, or a profile counts what it allocates: see [`alloc_counted_or`].
#[inline(always)]
pub fn alloc_or(
    size: usize,
    heapless: impl FnOnce(usize, usize) -> *mut u8,
    slow: impl FnOnce(usize) -> *mut u8,
) -> *mut u8 {
    // Not through an `Option` of a pointer, in which the compiler would look for null.
    if let Some(class) = tabled_class(size) {
        let Some(heap) = slot::quick_heap() else {
            return heapless(size, class);
        };
        // SAFETY: the program's heap has marks.
        if let Some(round) = unsafe { heap.try_get_marked(class) } {
            return round as *mut u8;
        }
    }
    slow(size)
}

/// As [`alloc_or`] for a thread whose bytes a profile counts, if no sample is due; else what `slow` answers.
#[inline(always)]
pub fn alloc_counted_or(size: usize, class: usize, slow: impl FnOnce(usize) -> *mut u8) -> *mut u8 {
    // SAFETY: the program's heap has marks.
    front::counted_or(
        size,
        class,
        |heap, class| unsafe { heap.try_get_marked(class) },
        slow,
    )
}

/// At least `size` bytes at a multiple of `align`, if that is a power of two, a page at most, the size is one of the table's, and the
/// thread's magazines have such a block. `None` where the caller has to look further.
#[inline(always)]
#[must_use]
pub fn try_alloc_aligned(size: usize, align: usize) -> Option<NonNull<u8>> {
    let class = tabled_class_of_aligned(size, align)?;
    // SAFETY: the program's heap has marks.
    unsafe { slot::quick_heap()?.try_get_aligned_marked(class, align) }
}

/// A block that the thread has, where [`alloc_or`] found none: of the magazines of a class beyond the table, or the run of pages that the
/// heap keeps. They are a step away from `malloc`, whose own code is for most calls.
#[inline(always)]
#[must_use]
pub fn try_alloc_near(size: usize) -> Option<NonNull<u8>> {
    if size <= TABLE_END {
        return None;
    }
    let heap = slot::quick_heap()?;
    match computed_class(size) {
        // SAFETY: the program's heap has marks.
        Some(class) => NonNull::new(unsafe { heap.try_get_marked(class) }? as *mut u8),
        None => heap.try_get_kept(size, 1),
    }
}

/// As [`free`], if a block in use begins there and the thread's magazines have room for it. False where nothing was done.
///
/// # Safety
/// As for [`free`] where the result is true.
#[inline(always)]
#[must_use]
pub unsafe fn try_free(at: *mut u8) -> bool {
    // SAFETY: the caller's promise.
    slot::heap().is_some_and(|heap| unsafe { heap.try_put_marked(at) })
}

/// As [`alloc()`], for a caller whose blocks must come back by functions of its own family; only checks look.
#[inline]
#[must_use]
pub fn alloc_as(size: usize, align: usize, origin: Origin) -> *mut u8 {
    let slow = |size| alloc_slowly(size, align, origin);
    if align <= GRAIN && align.is_power_of_two() {
        return alloc_or(
            size,
            |size, class| alloc_counted_or(size, class, slow),
            slow,
        );
    }
    let near = || try_alloc_aligned_near(size, align);
    match try_alloc_aligned(size, align).or_else(near) {
        Some(object) => object.as_ptr(),
        None => slow(size),
    }
}

/// As [`try_alloc_aligned`], of the classes beyond the table.
#[inline(always)]
fn try_alloc_aligned_near(size: usize, align: usize) -> Option<NonNull<u8>> {
    if size <= TABLE_END {
        return None;
    }
    let class = class_of_layout(Layout::from_size_align(size, align).ok()?)?;
    // SAFETY: the program's heap has marks.
    unsafe { slot::quick_heap()?.try_get_aligned_marked(class, align) }
}

#[cold]
#[inline(never)]
fn alloc_slowly(size: usize, align: usize, origin: Origin) -> *mut u8 {
    if let Some((global, hardening)) = state::hardened() {
        return hardening.alloc(global, size, align, false);
    }
    mark(front::alloc_as(size, align, origin))
}

/// As [`alloc()`], with all bytes zero.
#[inline]
#[must_use]
pub fn alloc_zeroed(size: usize, align: usize) -> *mut u8 {
    match (slot::quick_heap(), small_class(size)) {
        (Some(heap), Some(class)) if align <= GRAIN && align.is_power_of_two() => {
            let Ok(object) = heap.get_zeroed(class, size) else {
                return null_mut();
            };
            // SAFETY: the program's heap has marks.
            unsafe { heap.mark(object) };
            object.as_ptr()
        }
        _ => alloc_zeroed_slowly(size, align),
    }
}

#[cold]
#[inline(never)]
fn alloc_zeroed_slowly(size: usize, align: usize) -> *mut u8 {
    if slot::quick_heap().is_none()
        && align <= GRAIN
        && align.is_power_of_two()
        && let Some(class) = small_class(size)
    {
        let block = alloc_counted_or(size, class, |_| null_mut());
        if !block.is_null() {
            // SAFETY: just taken, with at least this size.
            unsafe { block.write_bytes(0, size) };
            return block;
        }
    }
    if let Some((global, hardening)) = state::hardened() {
        return hardening.alloc(global, size, align, true);
    }
    mark(front::alloc_zeroed(size, align))
}

/// Gives back what one of these functions gave. Null is nothing.
///
/// # Safety
/// These functions gave it, and it is not used afterwards. What is no block in use is reported on standard error, and the process
/// ends: to go on would be worse.
#[inline]
pub unsafe fn free(at: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        let keeps = |heap: &Heap| heap.try_keep(at);
        if !try_free(at) && !slot::quick_heap().is_some_and(keeps) {
            free_aligned_as(at, UNSAID, Call::Free);
        }
    }
}

/// As [`free`], for a caller that says which function it is, and the alignment that was asked for.
///
/// # Safety
/// As for [`free`].
#[inline]
pub unsafe fn free_aligned_as(at: *mut u8, align: usize, call: Call) {
    // SAFETY: the caller's promise.
    unsafe { free_sized_as(at, UNSAID, align, call) }
}

/// As [`free`], for a caller that says which function it is, and what was asked for. A size that is not the block's is a misuse:
/// the block would be one of another class from now on.
///
/// # Safety
/// As for [`free`]; `size` and `align` are those of the request.
#[inline(never)]
pub unsafe fn free_sized_as(at: *mut u8, size: usize, align: usize, call: Call) {
    if let Some(object) = NonNull::new(at) {
        if let Some((global, hardening)) = state::hardened() {
            // SAFETY: the caller's promise.
            return unsafe { hardening.free(global, object, size, call) };
        }
        if let Some((global, class)) = give_up(object, call) {
            let said = size == UNSAID || said(size, align) == Some(class) || may_stay(class, size);
            // Where memory ended, a block may have stayed larger than its owner knows.
            if !said && !global.classes.has_outgrown() {
                misuse::wrong_size(object, size, SIZES[class], call);
            }
        } else {
            check_large(object, size, align, call);
        }
        // SAFETY: the caller's promise.
        unsafe { front::free_found(object, size, align, call) };
    }
}

/// As [`free_sized_as`], if the thread's magazines have room for the block, whose size is of the block's class. False where nothing
/// was done.
///
/// # Safety
/// As for [`free_sized_as`] where the result is true.
#[inline(always)]
#[must_use]
pub unsafe fn try_free_sized(at: *mut u8, size: usize) -> bool {
    match (slot::quick_heap(), small_class(size)) {
        // SAFETY: the caller's promise.
        (Some(heap), Some(class)) => unsafe { heap.try_put_marked_as(at, class) },
        _ => false,
    }
}

/// Makes a block larger or smaller; it may move. Null when there is no memory to make it larger; then the block stays as it
/// is. To make it smaller never fails.
///
/// # Safety
/// As for [`free`], unless the result is null.
#[must_use]
pub unsafe fn realloc(at: *mut u8, size: usize, align: usize) -> *mut u8 {
    let Some(object) = NonNull::new(at) else {
        return alloc(size, align);
    };
    if let Some((global, _)) = small(object)
        && mark_at(global, object) == 0
    {
        misuse::not_in_use(global, object, Call::Realloc);
    }
    if let Some((global, hardening)) = state::hardened() {
        // SAFETY: the caller's promise.
        return unsafe { hardening.realloc(global, object, size, align) };
    }
    // SAFETY: the caller's promise.
    unsafe { front::realloc_by::<Marked>(object, size, align) }
}

/// Bytes that may be used of a block: at least what was asked for. 0 for null and for what is not in use.
///
/// # Safety
/// None of these functions has got the block back yet.
#[must_use]
pub unsafe fn usable_size(at: *mut u8) -> usize {
    // Redis, SQLite and others ask for each block that they take and give back.
    if let Some(object) = NonNull::new(at)
        && let Some((global, class)) = small(object)
        && global.hardening.is_none()
    {
        return SIZES[class];
    }
    // SAFETY: the caller's promise.
    unsafe { size_of_others(at) }
}

/// The same, for what is in no page of objects, and in hardened mode.
///
/// # Safety
/// As for [`usable_size`].
#[cold]
unsafe fn size_of_others(at: *mut u8) -> usize {
    match (state::hardened(), NonNull::new(at)) {
        (Some((global, hardening)), Some(object)) => hardening.size(global, object),
        // SAFETY: the caller's promise.
        _ => unsafe { front::usable_size(at) },
    }
}

/// Blocks that move when their sizes change are marked as others are.
struct Marked;

impl Hands for Marked {
    fn alloc(size: usize, align: usize) -> *mut u8 {
        alloc(size, align)
    }
    unsafe fn free(object: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe { free_aligned_as(object.as_ptr(), UNSAID, Call::Realloc) }
    }
}

/// The heap, and the class of the page's objects, if an address lies in such a page.
#[inline]
fn small(object: NonNull<u8>) -> Option<(&'static Global, usize)> {
    let global = state::global()?;
    Some((global, global.classes.class_at(object)?))
}

/// The mark of an address in a page of objects.
pub(super) fn mark_at(global: &Global, object: NonNull<u8>) -> u8 {
    let view = global.classes.family().view();
    // SAFETY: the heap stays.
    let mark = unsafe { view.mark_at(object.as_ptr() as usize) };
    mark.map_or(0, |(mark, _)| mark.load(Ordering::Relaxed))
}

/// Marks a block that the program gets, if it is one that has a mark.
fn mark(at: *mut u8) -> *mut u8 {
    if let Some(object) = NonNull::new(at)
        && let Some((global, _)) = small(object)
    {
        set(global, object);
    }
    at
}

/// Marks an object of a class of the program's heap.
pub(super) fn set(global: &Global, object: NonNull<u8>) {
    let view = global.classes.family().view();
    // SAFETY: the heap stays.
    unsafe { view.set_mark(object.as_ptr() as usize) };
}

/// Clears the mark of a block that is to be freed, if it is one that has a mark; its class. Does not return if it is not in use.
pub(super) fn give_up(object: NonNull<u8>, call: Call) -> Option<(&'static Global, usize)> {
    let (global, class) = small(object)?;
    let view = global.classes.family().view();
    // SAFETY: the heap stays.
    let mark = unsafe { view.mark_at(object.as_ptr() as usize) };
    // The page has objects, so its marks may be written. Of two threads that free the same block, one finds 0.
    let was = mark.map_or(0, |(mark, _)| mark.swap(0, Ordering::Relaxed));
    if was == 0 {
        misuse::not_in_use(global, object, call);
    }
    Some((global, class))
}

/// Does not return if a run of pages is not of the size that is said. It may be larger, to grow in place, and of a size that has a
/// class of its own: then it grew to it. A profile's samples are such runs, too.
fn check_large(object: NonNull<u8>, size: usize, align: usize, call: Call) {
    if size != UNSAID
        && profiled::profile().is_none()
        && let Some(global) = state::global()
        && let Ok(bytes) = global.classes.family().large_bytes(object)
        && (size > bytes || said(size, align).is_some_and(|class| SIZES[class] <= MAX_FIXED))
        && !global.classes.has_outgrown()
    {
        misuse::wrong_size(object, size, bytes, call);
    }
}

/// The class of a request.
fn said(size: usize, align: usize) -> Option<usize> {
    class_of_layout(Layout::from_size_align(size, align).ok()?)
}
