//! The functions that take an alignment.

use core::ffi::{c_int, c_void};

use larder::internal::heap::{self, Call, Origin};

use crate::c::{ALIGN, MOST, allocate};
use crate::errno;

/// Returns EINVAL or ENOMEM when it fails, and leaves errno and `*out` as they are.
///
/// # Safety
/// `out` points to room for a pointer.
#[unsafe(no_mangle)]
unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, alignment: usize, size: usize) -> c_int {
    if !alignment.is_power_of_two() || alignment < size_of::<*mut c_void>() {
        return libc::EINVAL;
    }
    let block = match heap::try_alloc_aligned(size, alignment) {
        Some(block) => block.as_ptr().cast(),
        None => allocate_aligned(size, alignment, Origin::Malloc),
    };
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the program gives room for a pointer.
    unsafe { out.write(block) };
    0
}

/// The size need not be a multiple of the alignment (as in C17, and always in glibc).
#[unsafe(no_mangle)]
extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    if let Some(block) = heap::try_alloc_aligned(size, alignment) {
        return block.as_ptr().cast();
    }
    if !alignment.is_power_of_two() {
        return errno::invalid();
    }
    memalign_slowly(alignment, size)
}

/// Rounds an alignment that is not a power of two up to one, as glibc does.
#[unsafe(no_mangle)]
extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    match heap::try_alloc_aligned(size, alignment) {
        Some(block) => block.as_ptr().cast(),
        None => memalign_slowly(alignment, size),
    }
}

#[cold]
#[inline(never)]
extern "C" fn memalign_slowly(alignment: usize, size: usize) -> *mut c_void {
    let Some(alignment) = alignment.checked_next_power_of_two() else {
        return errno::invalid();
    };
    let block = allocate_aligned(size, alignment, Origin::Malloc);
    if block.is_null() {
        return errno::no_memory();
    }
    block
}

#[unsafe(no_mangle)]
extern "C" fn valloc(size: usize) -> *mut c_void {
    memalign(larder::os::page_size(), size)
}

/// Whole pages, at least one.
#[unsafe(no_mangle)]
extern "C" fn pvalloc(size: usize) -> *mut c_void {
    let page = larder::os::page_size();
    match size.max(1).checked_next_multiple_of(page) {
        Some(bytes) => memalign(page, bytes),
        None => errno::no_memory(),
    }
}

/// C23: alignment and size are those of the request.
///
/// # Safety
/// `pointer` is NULL, or a block of `aligned_alloc` with this alignment and size that is not freed yet; it is not used afterwards.
#[unsafe(no_mangle)]
unsafe extern "C" fn free_aligned_sized(pointer: *mut c_void, alignment: usize, size: usize) {
    if !pointer.is_null() {
        // SAFETY: the program's promise.
        unsafe {
            heap::free_sized_as(
                pointer.cast(),
                size,
                alignment.max(ALIGN),
                Call::FreeAlignedSized,
            )
        };
    }
}

/// A block with an alignment that is a power of two, or NULL; errno is not set.
pub(crate) fn allocate_aligned(size: usize, alignment: usize, origin: Origin) -> *mut c_void {
    let alignment = alignment.max(ALIGN);
    if alignment > MOST {
        return core::ptr::null_mut();
    }
    allocate(size, alignment, origin)
}
