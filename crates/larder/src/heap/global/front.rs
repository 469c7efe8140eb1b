//! malloc's functions over the heap of the program.

use core::alloc::Layout;
use core::ptr::{NonNull, null_mut};
use core::time::Duration;

use super::debugged::{self, UNSAID};
use super::state::{self, Global, Source};
use super::{bootstrap, misuse, slot};
use crate::heap::class::small_class;
use crate::heap::debug::{Call, Origin};
use crate::heap::resize::with_headroom;
use crate::heap::{AllocError, GRAIN, SIZES, class_of};

#[inline(always)]
fn or_null(result: Result<NonNull<u8>, AllocError>) -> *mut u8 {
    result.map_or(null_mut(), NonNull::as_ptr)
}

/// At least `size` bytes at a multiple of `align`, a power of two; null when there are none, or no such alignment.
///
/// ```
/// use larder::heap::global;
/// let at = global::alloc(100, 16);
/// assert!(!at.is_null());
/// // SAFETY: taken above, put once.
/// unsafe { global::free(at) };
/// assert!(global::alloc(usize::MAX, 1).is_null());
/// ```
#[inline]
#[must_use]
pub fn alloc(size: usize, align: usize) -> *mut u8 {
    alloc_as(size, align, Origin::Malloc)
}

/// As [`alloc()`], for a caller whose blocks must come back by functions of its own family; only the debug mode looks.
///
/// ```
/// use larder::heap::{debug::{Call, Origin}, global};
/// let at = global::alloc_as(100, 16, Origin::New);
/// // SAFETY: taken above, put once.
/// unsafe { global::free_as(at, Call::Delete) };
/// ```
#[inline]
#[must_use]
pub fn alloc_as(size: usize, align: usize, origin: Origin) -> *mut u8 {
    match (slot::heap(), small_class(size)) {
        (Some(heap), Some(class)) if align <= GRAIN && align.is_power_of_two() => {
            or_null(heap.get(class))
        }
        _ => alloc_odd(size, align, false, origin),
    }
}

/// As [`alloc()`], with all bytes zero.
///
/// ```
/// use larder::heap::global;
/// let at = global::alloc_zeroed(100, 16);
/// // SAFETY: taken above, put once.
/// unsafe {
///     assert_eq!(at.add(99).read(), 0);
///     global::free(at);
/// }
/// ```
#[inline]
#[must_use]
pub fn alloc_zeroed(size: usize, align: usize) -> *mut u8 {
    match (slot::heap(), small_class(size)) {
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
/// noticed when it goes back to a slab, or in debug mode, if at all.
///
/// ```
/// // SAFETY: null is nothing.
/// unsafe { larder::heap::global::free(std::ptr::null_mut()) };
/// ```
#[inline]
pub unsafe fn free(at: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { free_as(at, Call::Free) }
}

/// As [`free`], for a caller that says which function it is; only the debug mode looks.
///
/// # Safety
/// As for [`free`].
///
/// ```
/// use larder::heap::{debug::Call, global};
/// // SAFETY: null is nothing.
/// unsafe { global::free_as(std::ptr::null_mut(), Call::Free) };
/// ```
#[inline]
pub unsafe fn free_as(at: *mut u8, call: Call) {
    // SAFETY: the caller's promise.
    unsafe { free_aligned_as(at, UNSAID, call) }
}

/// As [`free_as`], for a caller that knows the alignment that was asked for.
///
/// # Safety
/// As for [`free`].
///
/// ```
/// use larder::heap::{debug::{Call, Origin}, global};
/// let at = global::alloc_as(100, 64, Origin::New);
/// // SAFETY: taken above with this alignment, put once.
/// unsafe { global::free_aligned_as(at, 64, Call::Delete) };
/// ```
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
///
/// ```
/// use larder::heap::global;
/// let at = global::alloc(100, 16);
/// // SAFETY: taken above with this size and alignment, put once.
/// unsafe { global::free_sized(at, 100, 16) };
/// ```
#[inline]
pub unsafe fn free_sized(at: *mut u8, size: usize, align: usize) {
    // SAFETY: the caller's promise.
    unsafe { free_sized_as(at, size, align, Call::Dealloc) }
}

/// As [`free_sized`], for a caller that says which function it is; only the debug mode looks.
///
/// # Safety
/// As for [`free_sized`].
///
/// ```
/// use larder::heap::{debug::{Call, Origin}, global};
/// let at = global::alloc_as(100, 16, Origin::NewArray);
/// // SAFETY: taken above with this size and alignment, put once.
/// unsafe { global::free_sized_as(at, 100, 16, Call::DeleteArray) };
/// ```
#[inline(always)]
pub unsafe fn free_sized_as(at: *mut u8, size: usize, align: usize, call: Call) {
    match (slot::heap(), small_class(size), NonNull::new(at)) {
        (Some(heap), Some(class), Some(object)) if align <= GRAIN => {
            // SAFETY: the caller's promise. What the bootstrap gave is as good as an object of the class.
            unsafe { heap.put(object, class) };
        }
        // SAFETY: as above.
        (None, _, Some(object)) => unsafe { free_without_heap(object, size, align, call) },
        // SAFETY: as above.
        _ => unsafe { free_aligned_as(at, align, call) },
    }
}

/// Makes a block larger or smaller; it may move. Null when there is no memory to make it larger; then the block stays as it
/// is. To make it smaller never fails.
///
/// # Safety
/// As for [`free`], unless the result is null.
///
/// ```
/// use larder::heap::global;
/// // SAFETY: each block is used once.
/// unsafe {
///     let at = global::realloc(global::alloc(10, 1), 100_000, 1);
///     assert!(global::usable_size(at) >= 100_000);
///     global::free(at);
/// }
/// ```
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
///
/// ```
/// use larder::heap::global;
/// let at = global::alloc(10, 8);
/// // SAFETY: each block is used once.
/// unsafe { global::free_sized(global::realloc_sized(at, 10, 20, 8), 20, 8) };
/// ```
#[inline]
#[must_use]
pub unsafe fn realloc_sized(at: *mut u8, old: usize, size: usize, align: usize) -> *mut u8 {
    match (slot::heap(), NonNull::new(at), small_class(old)) {
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

/// What a block is that is not debugged.
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
            keeps || unsafe { resize_run(object, size) }
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
            misuse::outgrow();
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
///
/// ```
/// use larder::heap::global;
/// let at = global::alloc(100, 1);
/// // SAFETY: taken above, put once.
/// unsafe {
///     assert_eq!(global::usable_size(at), 112);
///     global::free(at);
/// }
/// ```
#[must_use]
pub unsafe fn usable_size(at: *mut u8) -> usize {
    let Some(object) = NonNull::new(at) else {
        return 0;
    };
    block_at(object).map_or_else(|| debugged::size(object), |block| block.bytes)
}

/// The block that begins at an address; none for what is debugged or no block of this heap.
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
///
/// ```
/// larder::heap::global::trim();
/// ```
pub fn trim() -> usize {
    if let Some(heap) = slot::heap() {
        heap.trim();
    }
    state::global().map_or(0, |global| global.classes.family().trim())
}

/// Starts a thread that gives back, periodically, what was not used for an interval.
///
/// ```
/// larder::heap::global::start_reaper(std::time::Duration::from_secs(1))?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// When no thread can be started, or there is no heap.
pub fn start_reaper(interval: Duration) -> std::io::Result<()> {
    state::global_or_make()
        .ok_or(std::io::ErrorKind::OutOfMemory)?
        .classes
        .family()
        .start_helper(interval)
}

/// What is large, or aligned to more than usual, or asked for by a thread without a heap; or cannot be.
#[cold]
#[inline(never)]
fn alloc_odd(size: usize, align: usize, zeroed: bool, origin: Origin) -> *mut u8 {
    let Ok(layout) = Layout::from_size_align(size, align) else {
        return null_mut();
    };
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
        Source::Debug(debug) => debugged::alloc(debug, layout, zeroed, origin),
    })
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
    // The CPUs' stocks may have locks, which threads that free what others allocate would wait for all the time.
    if slot::has_freed_often()
        && let Source::Heap(heap) = global.source()
    {
        // SAFETY: as above.
        return unsafe { heap.put(object, class) };
    }
    // SAFETY: as above.
    unsafe { global.classes.free(object) };
}

/// What is no object of a size class: a large one, a debugged one, one of the bootstrap, or no block at all.
///
/// # Safety
/// As for [`free_without_heap`].
#[cold]
#[inline(never)]
unsafe fn free_odd(object: NonNull<u8>, size: usize, align: usize, call: Call) {
    if bootstrap::has(object) {
        return;
    }
    let put = |global: &Global| match slot::heap() {
        // SAFETY: the caller's promise.
        Some(heap) => unsafe { heap.put_large(object) }.is_ok(),
        // SAFETY: as above.
        None => unsafe {
            debugged::free(object, size, align, call)
                || global.classes.family().put_large(object).is_ok()
        },
    };
    if !state::global().is_some_and(put) {
        debugged::foreign(object, call);
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

/// What is no block of the ordinary heap: a debugged one, or no block at all.
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
    // SAFETY: the caller's promise.
    match unsafe { debugged::realloc(object, old, size, align, call) } {
        Some(at) => at,
        None => {
            debugged::foreign(object, call);
            null_mut()
        }
    }
}
