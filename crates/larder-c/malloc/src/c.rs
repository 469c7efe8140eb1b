//! The functions of C that take no alignment.

use core::ffi::{c_int, c_void};

use larder::internal::heap::{self, Call, Origin};

use crate::errno;

/// The alignment of malloc's blocks: `alignof(max_align_t)`.
pub(crate) const ALIGN: usize = 16;

/// Largest block: the difference of two of its pointers must be a number.
pub(crate) const MOST: usize = isize::MAX as usize;

// The last call cannot unwind, so the compiler makes it a jump, and the function needs no stack frame.
#[unsafe(no_mangle)]
extern "C" fn malloc(size: usize) -> *mut c_void {
    let slowly = |size| malloc_slowly(size).cast();
    heap::alloc_or(
        size,
        |size, class| malloc_counted(size, class).cast(),
        slowly,
    )
    .cast()
}

/// Of a thread that has no heap, or whose bytes are counted for a profile.
#[cold]
#[inline(never)]
extern "C" fn malloc_counted(size: usize, class: usize) -> *mut c_void {
    heap::alloc_counted_or(size, class, |size| malloc_slowly(size).cast()).cast()
}

#[cold]
#[inline(never)]
extern "C" fn malloc_slowly(size: usize) -> *mut c_void {
    if let Some(block) = heap::try_alloc_near(size) {
        return block.as_ptr().cast();
    }
    let block = allocate(size, ALIGN, Origin::Malloc);
    if block.is_null() {
        return errno::no_memory();
    }
    block
}

/// A block, or NULL; errno is not set.
#[inline]
pub(crate) fn allocate(size: usize, align: usize, origin: Origin) -> *mut c_void {
    if size > MOST - align {
        return core::ptr::null_mut();
    }
    heap::alloc_as(size, align, origin).cast()
}

/// # Safety
/// `pointer` is NULL, or a block of this malloc that is not freed yet; it is not used afterwards.
#[unsafe(no_mangle)]
unsafe extern "C" fn free(pointer: *mut c_void) {
    // SAFETY: the program's promise: a block of this malloc, not freed yet.
    unsafe {
        if !heap::try_free(pointer.cast()) {
            free_slowly(pointer.cast());
        }
    }
}

/// # Safety
/// As for [`free`].
#[cold]
#[inline(never)]
unsafe extern "C" fn free_slowly(block: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { heap::free(block) };
}

#[unsafe(no_mangle)]
extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        Some(bytes) if bytes <= MOST - ALIGN => {
            let block = heap::alloc_zeroed(bytes, ALIGN);
            if block.is_null() {
                errno::no_memory()
            } else {
                block.cast()
            }
        }
        _ => errno::no_memory(),
    }
}

/// # Safety
/// `pointer` is NULL, or a block of this malloc that is not freed yet; it is not used afterwards unless the answer is NULL and
/// `size` is not 0.
#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(pointer: *mut c_void, size: usize) -> *mut c_void {
    if pointer.is_null() {
        return malloc(size);
    }
    if size == 0 {
        // As glibc does, where realloc(p, 0) frees p.
        // SAFETY: the program's promise.
        unsafe { free(pointer) };
        return core::ptr::null_mut();
    }
    if size > MOST - ALIGN {
        return errno::no_memory();
    }
    // SAFETY: the program's promise.
    let moved = unsafe { heap::realloc(pointer.cast(), size, ALIGN) };
    if moved.is_null() {
        return errno::no_memory();
    }
    moved.cast()
}

/// # Safety
/// As for [`realloc`].
#[unsafe(no_mangle)]
unsafe extern "C" fn reallocarray(pointer: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the program's promise.
        Some(bytes) => unsafe { realloc(pointer, bytes) },
        None => errno::no_memory(),
    }
}

/// C23: the size is that of the request.
///
/// # Safety
/// As for [`free`]; `size` is that of the last request for the block, which was one without an alignment.
#[unsafe(no_mangle)]
unsafe extern "C" fn free_sized(pointer: *mut c_void, size: usize) {
    if !pointer.is_null() {
        // SAFETY: the program's promise.
        unsafe { heap::free_sized_as(pointer.cast(), size, ALIGN, Call::FreeSized) };
    }
}

/// # Safety
/// `pointer` is NULL, or a block of this malloc that is not freed yet.
#[unsafe(no_mangle)]
unsafe extern "C" fn malloc_usable_size(pointer: *mut c_void) -> usize {
    if pointer.is_null() {
        return 0;
    }
    // SAFETY: the program's promise.
    unsafe { heap::usable_size(pointer.cast()) }
}

/// Gives back unused memory; 1 when there was some. The heap decides what it keeps in reserve, and `pad` is ignored.
#[unsafe(no_mangle)]
extern "C" fn malloc_trim(_pad: usize) -> c_int {
    c_int::from(larder::Larder::trim() > 0)
}
