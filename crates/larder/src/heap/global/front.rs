//! Blocks of the program's heap by size and address, with malloc's contract: what [`Larder`](super::Larder) is made of, and with
//! [marks](super::marked) malloc.

use core::alloc::Layout;
use core::ptr::{NonNull, null_mut};
use core::time::Duration;

use super::checked::{self, UNSAID};
use super::state::{self, Global, Source};
use super::{bootstrap, countdown, guarded, profiled, slot};
use crate::heap::class::{may_stay, small_class};
use crate::heap::resize::with_headroom;
use crate::heap::{AllocError, CLASSES, Call, Checker, GRAIN, Heap, Origin, SIZES, class_of};
use crate::os::say::say;

#[inline(always)]
fn or_null(result: Result<NonNull<u8>, AllocError>) -> *mut u8 {
    result.map_or(null_mut(), NonNull::as_ptr)
}

/// Makes the program's heap if it is not there. No thread has one of its own yet, and no memory is taken for blocks.
pub fn make() {
    let _ = state::global_or_make();
}

/// Walks a stack for the first time, if there are samples: the unwinder may load a library for that, which later waits for other
/// threads. Samples before have no stack. The initialisation of a library that is loaded with the program calls this. Where
/// `load_unwinder` fails, all samples have none, which is said in a line.
pub fn ready_stacks(load_unwinder: fn() -> bool) {
    if !countdown::is_on() {
        return;
    }
    if !checked::inside(load_unwinder) {
        say(format_args!(
            "libgcc_s.so.1 cannot be loaded; samples have no stacks"
        ));
        return;
    }
    profiled::ready();
    guarded::ready();
}

/// At least `size` bytes at a multiple of `align`, a power of two; null when there are none, or no such alignment.
#[inline]
#[must_use]
pub(super) fn alloc(size: usize, align: usize) -> *mut u8 {
    alloc_as(size, align, Origin::Malloc)
}

/// A block of a thread whose bytes a profile counts, by `take`, if no sample is due; else what `slow` answers. 11 instructions more
/// than without a profile.
#[inline(always)]
pub(super) fn counted_or(
    size: usize,
    class: usize,
    take: impl FnOnce(&Heap, usize) -> Option<usize>,
    slow: impl FnOnce(usize) -> *mut u8,
) -> *mut u8 {
    if let Some((heap, left)) = slot::counted() {
        let rest = left.get().wrapping_sub_unsigned(size);
        if rest > 0
            && class < CLASSES
            && let Some(round) = take(heap, class)
        {
            left.set(rest);
            return round as *mut u8;
        }
    }
    slow(size)
}

/// As [`alloc()`], for a caller whose blocks must come back by functions of its own family; only checks look.
#[inline]
#[must_use]
pub(super) fn alloc_as(size: usize, align: usize, origin: Origin) -> *mut u8 {
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
pub(super) fn alloc_zeroed(size: usize, align: usize) -> *mut u8 {
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
/// on standard error, and the process ends: to go on would be worse.
#[inline]
pub(super) unsafe fn free(at: *mut u8) {
    if let Some(object) = NonNull::new(at) {
        // SAFETY: the caller's promise.
        unsafe { free_found(object, UNSAID, UNSAID, Call::Free) }
    }
}

/// As [`free`]; where the heap is checked, it looks at what the caller says.
///
/// # Safety
/// As for [`free`]; size and alignment are those of the request, or [`UNSAID`].
#[inline]
pub(super) unsafe fn free_found(object: NonNull<u8>, size: usize, align: usize, call: Call) {
    match slot::heap() {
        Some(heap) => match heap.class_at(object) {
            // SAFETY: the caller's promise.
            Some(class) => unsafe { heap.put(object, class) },
            // SAFETY: as above.
            None => unsafe { free_odd(object, size, align, call) },
        },
        // SAFETY: as above.
        None => unsafe { free_without_heap(object, size, align, call) },
    }
}

/// As [`free`], for a caller that knows what was asked for: the class need not be looked up.
///
/// # Safety
/// As for [`free`]; `size` and `align` are those of the request.
#[inline(always)]
pub(super) unsafe fn free_sized(at: *mut u8, size: usize, align: usize) {
    match (slot::quick_heap(), small_class(size), NonNull::new(at)) {
        (Some(heap), Some(class), Some(object)) if align <= GRAIN => {
            // SAFETY: the caller's promise. What the bootstrap gave is as good as an object of the class.
            unsafe { heap.put(object, class) };
        }
        // SAFETY: as above.
        (Some(heap), None, Some(object)) if unsafe { heap.try_put_by_owner(object) } => {}
        // SAFETY: as above. Where there is a profile, a block of this size may be a sampled one, and no object of the class.
        (_, _, Some(object)) => unsafe { free_found(object, size, align, Call::Dealloc) },
        _ => {}
    }
}

/// How blocks that move when their sizes change are had and given back.
pub(super) trait Hands {
    fn alloc(size: usize, align: usize) -> *mut u8;
    /// # Safety
    /// As for [`free`].
    unsafe fn free(object: NonNull<u8>);
}

struct Bare;

impl Hands for Bare {
    fn alloc(size: usize, align: usize) -> *mut u8 {
        alloc(size, align)
    }
    unsafe fn free(object: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe { free(object.as_ptr()) }
    }
}

/// Makes a block larger or smaller; it may move. Null when there is no memory to make it larger; then the block stays as it
/// is. To make it smaller never fails.
///
/// # Safety
/// As for [`free`], unless the result is null.
#[must_use]
pub(super) unsafe fn realloc_by<H: Hands>(
    object: NonNull<u8>,
    size: usize,
    align: usize,
) -> *mut u8 {
    match block_at(object) {
        // SAFETY: the caller's promise.
        Some(block) => unsafe { resize::<H>(object, block, size, align) },
        // SAFETY: as above.
        None => unsafe { realloc_odd(object, UNSAID, size, align, Call::Realloc, H::alloc) },
    }
}

/// As [`realloc_by`], for a caller that knows what was asked for.
///
/// # Safety
/// As for [`free_sized`], unless the result is null; the alignment stays.
#[inline]
#[must_use]
pub(super) unsafe fn realloc_sized(at: *mut u8, old: usize, size: usize, align: usize) -> *mut u8 {
    match (slot::quick_heap(), NonNull::new(at), small_class(old)) {
        // SAFETY: the caller's promise, so it is of the class.
        (Some(_), Some(object), Some(class)) if align <= GRAIN => unsafe {
            resize::<Bare>(object, Block::of(class), size, align)
        },
        // SAFETY: as above.
        (_, Some(object), _) => unsafe { realloc_unknown(object, old, size, align) },
        (_, None, _) => alloc(size, align),
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
/// As for [`realloc_by`]; the object is this block.
unsafe fn resize<H: Hands>(
    object: NonNull<u8>,
    block: Block,
    size: usize,
    align: usize,
) -> *mut u8 {
    let Block { bytes: has, class } = block;
    // A block of a small size must be what a request of its size would give: a free by size looks no further. Others are
    // found by their addresses.
    let small = small_class(size);
    let stays = match (small, class) {
        (Some(new), Some(old)) => new == old,
        (None, Some(old)) => class_of(size) == Some(old) || may_stay(old, size),
        (None, None) => {
            // More than half is in use.
            let keeps = size <= has && size > has / 2;
            // SAFETY: the object is the caller's; the caller gives up what is beyond the new size.
            let stays = keeps || unsafe { resize_run(object, size) };
            if stays {
                profiled::resized(object, size);
            }
            stays
        }
        (Some(_), None) => false,
    };
    if stays && (object.as_ptr() as usize).is_multiple_of(align) {
        return object.as_ptr();
    }
    let mut to = null_mut();
    if small.is_none() && size > has {
        // A run of pages, whatever class the size has: it grows where it is.
        to = try_alloc_run(with_headroom(size), align);
        if let Some(run) = NonNull::new(to) {
            profiled::resized(run, size);
        }
    }
    if to.is_null() {
        to = H::alloc(size, align);
    }
    if to.is_null() {
        let smaller = size <= has && (object.as_ptr() as usize).is_multiple_of(align);
        if smaller {
            if small.is_some() {
                outgrow();
            }
            return object.as_ptr();
        }
        return to;
    }
    // SAFETY: both have at least this many bytes, and one of them is new.
    unsafe {
        to.copy_from_nonoverlapping(object.as_ptr(), has.min(size));
        H::free(object);
    }
    to
}

/// A run of pages, also for sizes that have a class, where a shorter one serves, too; null where there is none.
fn try_alloc_run(size: usize, align: usize) -> *mut u8 {
    let Ok(layout) = Layout::from_size_align(size, align) else {
        return null_mut();
    };
    match (slot::heap(), state::global()) {
        (Some(heap), _) => or_null(heap.try_alloc_run(layout)),
        (None, Some(global)) if global.checker().is_none() => {
            or_null(global.classes.try_alloc_large(layout))
        }
        _ => null_mut(),
    }
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
pub(super) unsafe fn usable_size(at: *mut u8) -> usize {
    let Some(object) = NonNull::new(at) else {
        return 0;
    };
    match (block_at(object), checker()) {
        (Some(block), _) => block.bytes,
        (None, Some(checker)) => checked::size(checker, object),
        (None, None) => guarded::size(object).unwrap_or(0),
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

/// Bytes of a block that was given out before there was a heap.
pub(super) fn bootstrap_size(object: NonNull<u8>) -> Option<usize> {
    bootstrap::size_of_block(object)
}

/// Gives everything back to the system that is not in use, but for what other threads have in their magazines. Returns
/// bytes of pages that went.
pub(super) fn trim() -> usize {
    if let Some(heap) = slot::heap().or(slot::hardened().map(|thread| &thread.heap)) {
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

/// As [`counted_or`], for callers that ask for more; null where it has none.
#[inline(always)]
fn alloc_counted_small(layout: Layout, zeroed: bool) -> *mut u8 {
    let size = layout.size();
    match small_class(size) {
        Some(class) if layout.align() <= GRAIN => {
            let block = counted_or(size, class, Heap::try_get_round, |_| null_mut());
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
    if let Some(heap) = slot::quick_heap() {
        if !zeroed && let Some(object) = heap.try_get_larger(layout) {
            return object.as_ptr();
        }
    } else {
        let block = alloc_counted_small(layout, zeroed);
        if !block.is_null() {
            return block;
        }
        if countdown::is_on()
            && let Some(object) = alloc_sampled(layout, zeroed)
        {
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

/// Counts the bytes of an allocation. A block of its own, if it is a sample and there is memory for one: between guard pages, or a run
/// of pages, so that no magazine takes it.
#[cold]
#[inline(never)]
fn alloc_sampled(layout: Layout, zeroed: bool) -> Option<NonNull<u8>> {
    let due = countdown::count(layout.size())?;
    let guarded = due
        .guards
        .then(|| guarded::alloc(layout, countdown::draw().is_multiple_of(2)))
        .flatten();
    if !due.profile {
        return guarded;
    }
    let run = || match slot::heap() {
        Some(heap) => heap.alloc_run(layout, zeroed).ok(),
        None => {
            let global = state::global()?;
            let run = match global.source() {
                Source::Heap(heap) => heap.alloc_run(layout, zeroed),
                Source::Cpus if zeroed => global.classes.alloc_large_zeroed(layout),
                Source::Cpus => global.classes.alloc_large(layout),
                Source::Checked(_) => return None,
            };
            run.ok()
        }
    };
    let object = guarded.or_else(run)?;
    profiled::add(object, layout.size());
    Some(object)
}

/// # Safety
/// As for [`free`]; size and alignment are those of the request, or [`UNSAID`].
#[cold]
#[inline(never)]
unsafe fn free_without_heap(object: NonNull<u8>, size: usize, align: usize, call: Call) {
    let global = state::global();
    let found = global.and_then(|global| Some((global, global.classes.class_at(object)?)));
    let Some((global, class)) = found else {
        // SAFETY: the caller's promise.
        return unsafe { free_odd(object, size, align, call) };
    };
    if let Some(thread) = slot::hardened() {
        // SAFETY: as above.
        return unsafe { thread.heap.put(object, class) };
    }
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
    if guarded::free(object, size, call) {
        return;
    }
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
unsafe fn realloc_unknown(object: NonNull<u8>, old: usize, size: usize, align: usize) -> *mut u8 {
    match block_at(object) {
        // SAFETY: the caller's promise.
        Some(block) => unsafe { resize::<Bare>(object, block, size, align) },
        // SAFETY: as above.
        None => unsafe { realloc_odd(object, old, size, align, Call::Dealloc, alloc) },
    }
}

/// What is no block of the ordinary heap: one between guard pages, a checked one, or no block at all.
///
/// # Safety
/// As for [`realloc_by`].
#[cold]
#[inline(never)]
unsafe fn realloc_odd(
    object: NonNull<u8>,
    old: usize,
    size: usize,
    align: usize,
    call: Call,
    alloc: fn(usize, usize) -> *mut u8,
) -> *mut u8 {
    // SAFETY: the caller's promise.
    if let Some(to) = unsafe { guarded::realloc(object, size, align, alloc) } {
        return to;
    }
    let done = checker()
        // SAFETY: the caller's promise.
        .and_then(|checker| unsafe { checked::realloc(checker, object, old, size, align, call) });
    done.unwrap_or_else(|| {
        checked::foreign(checker(), object, call);
        null_mut()
    })
}
