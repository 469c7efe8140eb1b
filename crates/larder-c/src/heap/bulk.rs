//! Many objects of one size at once.

use core::ffi::c_void;
use core::ptr::NonNull;

use super::front::{self, layout};
use super::one_owner::larder_heap;
use crate::error::{Failed, larder_error, larder_status};
use crate::guard::guard;
use crate::mark::shared;

/// Fills `objects[0]` to `objects[n - 1]` with objects of `bytes` bytes: all of them, or NULL and an error.
///
/// # Safety
/// `heap` is NULL or a live heap that no other thread uses meanwhile; `objects` has room for `n` pointers; `error` is NULL or
/// can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_heap_alloc_many(
    heap: *mut larder_heap,
    bytes: usize,
    objects: *mut *mut c_void,
    n: usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need: room for n pointers.
    unsafe {
        guard(error, || {
            let heap = &*shared(heap)?.enter();
            if n == 0 {
                return Ok(());
            }
            if objects.is_null() {
                return Err(Failed::null("objects"));
            }
            core::ptr::write_bytes(objects, 0, n);
            let layout = layout(bytes, 0)?;
            for i in 0..n {
                match heap.alloc(layout) {
                    Ok(object) => objects.add(i).write(object.as_ptr().cast()),
                    Err(failed) => {
                        for j in 0..i {
                            // SAFETY: written above; no caller has seen it yet.
                            heap.dealloc(NonNull::new_unchecked((*objects.add(j)).cast()), layout);
                        }
                        core::ptr::write_bytes(objects, 0, n);
                        return Err(failed.into());
                    }
                }
            }
            Ok(())
        })
    }
}

/// Gives `objects[0]` to `objects[n - 1]` back, of any sizes; NULL among them does nothing. If one is no object of this heap's
/// classes, none is given back, and there is an error.
///
/// # Safety
/// `heap` is NULL or a live heap that no other thread uses meanwhile; `objects` has `n` pointers, of what is in the caller's
/// hands and not used afterwards; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_heap_dealloc_many(
    heap: *mut larder_heap,
    objects: *const *mut c_void,
    n: usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need: n pointers to read, of objects that are given up.
    unsafe {
        guard(error, || {
            let heap = &*shared(heap)?.enter();
            if n == 0 {
                return Ok(());
            }
            if objects.is_null() {
                return Err(Failed::null("objects"));
            }
            for i in 0..n {
                let object = *objects.add(i);
                if !object.is_null() {
                    front::usable_bytes(heap, object)?;
                }
            }
            for i in 0..n {
                front::dealloc(heap, *objects.add(i))?;
            }
            Ok(())
        })
    }
}
