//! malloc's functions over the heap of the program.
//!
//! `alloc_or` and `try_free` are what nearly every malloc and free needs, and nothing else: a block of the thread's own magazines.
//! malloc and free are called from outside, so their code is run as it stands. What these two leave to the whole functions
//! needs registers to be saved, errors to be reported and a stack frame, and all that stays out of these two.

use core::alloc::Layout;
use core::ptr::{NonNull, null_mut};
use core::time::Duration;

use super::checked::{self, UNSAID};
use super::state::{self, Global, Source};
use super::{bootstrap, profiled, slot};
use crate::heap::class::{computed_class, small_class};
use crate::heap::resize::with_headroom;
use crate::heap::{AllocError, CLASSES, Call, Checker, GRAIN, Origin, SIZES, class_of};

#[inline(always)]
fn or_null(result: Result<NonNull<u8>, AllocError>) -> *mut u8 {
    result.map_or(null_mut(), NonNull::as_ptr)
}

/// Makes the program's heap if it is not there. No thread has one of its own yet, and no memory is taken for blocks.
pub fn make() {
    let _ = state::global_or_make();
}

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
    if let Some(class) = small_class(size) {
        let Some(heap) = slot::quick_heap() else {
            return heapless(size, class);
        };
        if let Some(round) = heap.try_get_round(class) {
            return round as *mut u8;
        }
    }
    slow(size)
}

/// A block of the thread's magazines, for sizes whose class is computed: above 32 KiB, up to 1 MiB. They are a step away from `malloc`, whose
/// own code is for the smaller ones.
#[inline(always)]
#[must_use]
pub fn try_alloc_computed(size: usize) -> Option<NonNull<u8>> {
    slot::quick_heap()?.try_get(computed_class(size)?)
}

/// As [`alloc_or`] for a thread whose bytes a profile counts, if no sample is due; else what `slow` answers. 11 instructions more.
#[inline(always)]
pub fn alloc_counted_or(size: usize, class: usize, slow: impl FnOnce(usize) -> *mut u8) -> *mut u8 {
    if let Some((heap, left)) = slot::counted() {
        let rest = left.get().wrapping_sub_unsigned(size);
        if rest > 0
            && class < CLASSES
            && let Some(round) = heap.try_get_round(class)
        {
            left.set(rest);
            return round as *mut u8;
        }
    }
    slow(size)
}

/// As [`free`], if the thread's magazines have room for the block. False where nothing was done: for null,
/// for large blocks, and for addresses whose page holds no blocks.
///
/// # Safety
/// As for [`free`] where the result is true.
#[inline(always)]
#[must_use]
pub unsafe fn try_free(at: *mut u8) -> bool {
    // SAFETY: the caller's promise.
    slot::heap().is_some_and(|heap| unsafe { heap.try_put(at) })
}

/// As [`alloc()`], for a caller whose blocks must come back by functions of its own family; only checks look.
#[inline]
#[must_use]
pub fn alloc_as(size: usize, align: usize, origin: Origin) -> *mut u8 {
    match (slot::quick_heap(), small_class(size)) {
        (Some(heap), Some(class)) if align <= GRAIN && align.is_power_of_two() => {
            or_null(heap.get(class))
        }
        _ => alloc_odd(size, align, false, origin),
    }
}

/// As [`alloc()`], with all bytes zero.
#[inline]
#[must_use]
pub fn alloc_zeroed(size: usize, align: usize) -> *mut u8 {
    match (slot::quick_heap(), small_class(size)) {
        (Some(heap), Some(class)) if align <= GRAIN && align.is_power_of_two() => {
            or_null(heap.get_zeroed(class, size))
        }
        _ => alloc_odd(size, align, true, Origin::Malloc),
    }
}

/// Gives back what one of these functions gave. Null is nothing.
///
/// # Safety
/// These functions gave it, and it is not used afterwards. An address whose page holds none of their blocks is reported
/// on standard error, and the process ends: to go on would be worse. What lies within a block, or was freed before, is
/// noticed when it goes back to a slab, or by checks, if at all.
#[inline]
pub unsafe fn free(at: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { free_aligned_as(at, UNSAID, Call::Free) }
}

/// As [`free`], for a caller that says which function it is, and the alignment that was asked for; only checks look.
///
/// # Safety
/// As for [`free`].
#[inline]
pub unsafe fn free_aligned_as(at: *mut u8, align: usize, call: Call) {
    let Some(object) = NonNull::new(at) else {
        return;
    };
    match slot::heap() {
        Some(heap) => match heap.class_at(object) {
            // SAFETY: the caller's promise.
            Some(class) => unsafe { heap.put(object, class) },
            // SAFETY: as above.
            None => unsafe { free_odd(object, UNSAID, align, call) },
        },
        // SAFETY: as above.
        None => unsafe { free_without_heap(object, UNSAID, align, call) },
    }
}

/// As [`free`], for a caller that knows what was asked for: the class need not be looked up.
///
/// # Safety
/// As for [`free`]; `size` and `align` are those of the request.
#[inline]
pub unsafe fn free_sized(at: *mut u8, size: usize, align: usize) {
    // SAFETY: the caller's promise.
    unsafe { free_sized_as(at, size, align, Call::Dealloc) }
}

/// As [`free_sized`], for a caller that says which function it is; only checks look.
///
/// # Safety
/// As for [`free_sized`].
#[inline(always)]
pub unsafe fn free_sized_as(at: *mut u8, size: usize, align: usize, call: Call) {
    match (slot::quick_heap(), small_class(size), NonNull::new(at)) {
        (Some(heap), Some(class), Some(object)) if align <= GRAIN => {
            // SAFETY: the caller's promise. What the bootstrap gave is as good as an object of the class.
            unsafe { heap.put(object, class) };
        }
        // SAFETY: as above. Where there is a profile, a block of this size may be a sampled one, and no object of the class.
        (None, _, Some(object)) => unsafe {
            if !try_free(at) {
                free_without_heap(object, size, align, call);
            }
        },
        // SAFETY: as above.
        _ => unsafe { free_aligned_as(at, align, call) },
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
    match block_at(object) {
        // SAFETY: the caller's promise.
        Some(block) => unsafe { resize(object, block, size, align) },
        // SAFETY: as above.
        None => unsafe { realloc_odd(object, UNSAID, size, align, Call::Realloc) },
    }
}

/// As [`realloc`], for a caller that knows what was asked for.
///
/// # Safety
/// As for [`free_sized`], unless the result is null; the alignment stays.
#[inline]
#[must_use]
pub unsafe fn realloc_sized(at: *mut u8, old: usize, size: usize, align: usize) -> *mut u8 {
    match (slot::quick_heap(), NonNull::new(at), small_class(old)) {
        // SAFETY: the caller's promise, so it is of the class.
        (Some(_), Some(object), Some(class)) if align <= GRAIN => unsafe {
            resize(object, Block::of(class), size, align)
        },
        // SAFETY: as above.
        (None, Some(object), _) => unsafe { realloc_without_heap(object, old, size, align) },
        // SAFETY: as above.
        _ => unsafe { realloc(at, size, align) },
    }
}

fn checker() -> Option<&'static dyn Checker> {
    state::global().and_then(Global::checker)
}

/// What a block is that is not checked.
struct Block {
    bytes: usize,
    /// `None` for large blocks, and for small ones that are aligned as large ones are.
    class: Option<usize>,
}

impl Block {
    fn of(class: usize) -> Self {
        Self {
            bytes: SIZES[class],
            class: Some(class),
        }
    }
}

/// # Safety
/// As for [`realloc`]; the object is this block.
unsafe fn resize(object: NonNull<u8>, block: Block, size: usize, align: usize) -> *mut u8 {
    let Block { bytes: has, class } = block;
    // A block must be what a request of its size would give: a free by size looks no further.
    let stays = match (class_of(size), class) {
        (Some(new), Some(old)) => new == old,
        // Large ones are found by their address. More than half is in use.
        (None, None) => {
            let keeps = size <= has && size > has / 2;
            // SAFETY: the object is the caller's; the caller gives up what is beyond the new size.
            let resized = !keeps && unsafe { resize_run(object, size) };
            if resized {
                profiled::resized(object, size);
            }
            keeps || resized
        }
        _ => false,
    };
    if stays && (object.as_ptr() as usize).is_multiple_of(align) {
        return object.as_ptr();
    }
    let mut to = null_mut();
    if class.is_none() && size > has {
        to = alloc(with_headroom(size), align);
    }
    if to.is_null() {
        to = alloc(size, align);
    }
    if to.is_null() {
        let smaller = size <= has && (object.as_ptr() as usize).is_multiple_of(align);
        if smaller {
            outgrow();
            return object.as_ptr();
        }
        return to;
    }
    // SAFETY: both have at least this many bytes, and one of them is new.
    unsafe {
        to.copy_from_nonoverlapping(object.as_ptr(), has.min(size));
        free(object.as_ptr());
    }
    to
}

/// A block stays as large as it is though its owner believes it to be smaller. Freed by its size it comes to the objects
/// of that size, serves as one of them, and is found when it goes back to a slab. A block of the bootstrap has no slab.
fn outgrow() {
    if let Some(global) = state::global() {
        global.classes.outgrow();
    }
}

/// Makes a large block larger or smaller where it is; false when it stays as it was.
///
/// # Safety
/// It is the caller's, and nothing beyond `bytes` is used afterwards.
unsafe fn resize_run(object: NonNull<u8>, bytes: usize) -> bool {
    match (slot::heap(), state::global()) {
        // SAFETY: the caller's promise.
        (Some(heap), _) => unsafe { heap.resize_run(object, bytes) },
        (None, Some(global)) => {
            let family = global.classes.family();
            // SAFETY: as above.
            unsafe { family.resize_large(object, bytes) }.unwrap_or(false)
        }
        (None, None) => false,
    }
}

/// Bytes that may be used of a block: at least what was asked for. 0 for null and for what is not in use.
///
/// # Safety
/// None of these functions has got the block back yet.
#[must_use]
pub unsafe fn usable_size(at: *mut u8) -> usize {
    let Some(object) = NonNull::new(at) else {
        return 0;
    };
    match (block_at(object), checker()) {
        (Some(block), _) => block.bytes,
        (None, Some(checker)) => checked::size(checker, object),
        (None, None) => 0,
    }
}

/// The block that begins at an address; none for what is checked or no block of this heap.
fn block_at(object: NonNull<u8>) -> Option<Block> {
    if let Some(global) = state::global() {
        if let Some(class) = global.classes.class_at(object) {
            return Some(Block::of(class));
        }
        if let Some(bytes) = global.classes.usable_size(object) {
            return Some(Block { bytes, class: None });
        }
    }
    // What is not larger than the largest class is as large as its class.
    bootstrap::size_of_block(object).map(|bytes| Block {
        bytes,
        class: class_of(bytes),
    })
}

/// Gives everything back to the system that is not in use, but for what other threads have in their magazines. Returns
/// bytes of slabs that went.
pub(super) fn trim() -> usize {
    if let Some(heap) = slot::heap() {
        heap.trim();
    }
    state::global().map_or(0, |global| global.classes.family().trim())
}

/// Starts a thread that gives back, periodically, what was not used for an interval.
///
/// # Errors
/// When no thread can be started, or there is no heap.
pub(super) fn start_helper(interval: Duration) -> std::io::Result<()> {
    state::global_or_make()
        .ok_or(std::io::ErrorKind::OutOfMemory)?
        .classes
        .family()
        .start_helper(interval)
}

/// As [`alloc_counted_or`], for callers that ask for more; null where it has none.
#[inline(always)]
fn alloc_counted_small(layout: Layout, zeroed: bool) -> *mut u8 {
    let size = layout.size();
    match small_class(size) {
        Some(class) if layout.align() <= GRAIN => {
            let block = alloc_counted_or(size, class, |_| null_mut());
            if zeroed && !block.is_null() {
                // SAFETY: just taken, with at least this size.
                unsafe { block.write_bytes(0, size) };
            }
            block
        }
        _ => null_mut(),
    }
}

/// What is large, or aligned to more than usual, or asked for by a thread without a heap; or cannot be.
#[cold]
#[inline(never)]
fn alloc_odd(size: usize, align: usize, zeroed: bool, origin: Origin) -> *mut u8 {
    let Ok(layout) = Layout::from_size_align(size, align) else {
        return null_mut();
    };
    if slot::quick_heap().is_none() {
        let block = alloc_counted_small(layout, zeroed);
        if !block.is_null() {
            return block;
        }
        if let Some(object) = profiled::alloc(layout, zeroed) {
            return object.as_ptr();
        }
    }
    if let Some(heap) = slot::heap() {
        return or_null(if zeroed {
            heap.alloc_zeroed(layout)
        } else {
            heap.alloc(layout)
        });
    }
    let Some(global) = state::global_or_make() else {
        return bootstrap::alloc(layout, slot::stage() == slot::Stage::Making);
    };
    or_null(match global.source() {
        Source::Heap(heap) if zeroed => heap.alloc_zeroed(layout),
        Source::Heap(heap) => heap.alloc(layout),
        Source::Cpus if zeroed => global.classes.alloc_zeroed(layout),
        Source::Cpus => global.classes.alloc(layout),
        Source::Checked(checker) => checked::alloc(checker, layout, zeroed, origin),
    })
}

/// # Safety
/// As for [`free`]; size and alignment are those of the request, or [`UNSAID`].
#[cold]
#[inline(never)]
unsafe fn free_without_heap(object: NonNull<u8>, size: usize, align: usize, call: Call) {
    if slot::heap().is_some() {
        // A thread whose bytes are counted.
        // SAFETY: the caller's promise.
        return unsafe { free_aligned_as(object.as_ptr(), align, call) };
    }
    let global = state::global();
    let found = global.and_then(|global| Some((global, global.classes.class_at(object)?)));
    let Some((global, class)) = found else {
        // SAFETY: the caller's promise.
        return unsafe { free_odd(object, size, align, call) };
    };
    // The CPUs' stocks may have locks, which threads that free what others allocate would wait for all the time.
    if slot::has_freed_often()
        && let Source::Heap(heap) = global.source()
    {
        // SAFETY: as above.
        return unsafe { heap.put(object, class) };
    }
    // SAFETY: as above.
    unsafe { global.classes.dealloc_by_address(object) };
}

/// What is no object of a size class: a large one, a checked one, one of the bootstrap, or no block at all.
///
/// # Safety
/// As for [`free_without_heap`].
#[cold]
#[inline(never)]
unsafe fn free_odd(object: NonNull<u8>, size: usize, align: usize, call: Call) {
    if bootstrap::has(object) {
        return;
    }
    profiled::freed(object);
    let put = |global: &Global| match slot::heap() {
        // SAFETY: the caller's promise.
        Some(heap) => unsafe { heap.put_large(object) }.is_ok(),
        // SAFETY: as above.
        None => unsafe {
            global
                .checker()
                .is_some_and(|checker| checked::free(checker, object, size, align, call))
                || global.classes.family().put_large(object).is_ok()
        },
    };
    if !state::global().is_some_and(put) {
        checked::foreign(checker(), object, call);
    }
}

/// # Safety
/// As for [`realloc_sized`].
#[cold]
#[inline(never)]
unsafe fn realloc_without_heap(
    object: NonNull<u8>,
    old: usize,
    size: usize,
    align: usize,
) -> *mut u8 {
    match block_at(object) {
        // SAFETY: the caller's promise.
        Some(block) => unsafe { resize(object, block, size, align) },
        // SAFETY: as above.
        None => unsafe { realloc_odd(object, old, size, align, Call::Dealloc) },
    }
}

/// What is no block of the ordinary heap: a checked one, or no block at all.
///
/// # Safety
/// As for [`realloc`].
#[cold]
#[inline(never)]
unsafe fn realloc_odd(
    object: NonNull<u8>,
    old: usize,
    size: usize,
    align: usize,
    call: Call,
) -> *mut u8 {
    let done = checker()
        // SAFETY: the caller's promise.
        .and_then(|checker| unsafe { checked::realloc(checker, object, old, size, align, call) });
    done.unwrap_or_else(|| {
        checked::foreign(checker(), object, call);
        null_mut()
    })
}
