//! How much a heap may take, and the call that warns.

use core::ffi::c_void;

use larder::heap::HeapStats;

use super::heap_stats::{filled, larder_heap_stats};
use super::one_owner::larder_heap;
use crate::error::{larder_error, larder_status};
use crate::guard::guard;
use crate::mark::shared;

/// Called when a heap takes more than the bytes set, on the thread that allocates. It may use the heap, but not end it. It must return:
/// no longjmp, no C++ exception.
pub type larder_warning_fn =
    Option<unsafe extern "C" fn(stats: *const larder_heap_stats, user: *mut c_void)>;

/// Bounds what the heap takes; 0 is no limit. Objects in use and free ones in its magazines count, by the sizes of their classes. The
/// bound is checked when a magazine is empty: objects that lie in a magazine already are still handed out.
///
/// # Safety
/// `heap` is NULL or a live heap that no other thread uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_heap_set_limit(
    heap: *mut larder_heap,
    bytes: usize,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(core::ptr::null_mut(), || {
            let heap = shared(heap)?.enter();
            heap.set_limit(if bytes == 0 { usize::MAX } else { bytes });
            Ok(())
        })
    }
}

/// A pointer of the program that moves between threads with its heap.
struct User(*mut c_void);

// SAFETY: the header says that the function may be called on whatever thread uses the heap, one at a time.
unsafe impl Send for User {}

impl User {
    /// A closure that names a field captures that field, which is not `Send`; one that calls this captures the whole.
    fn pointer(&self) -> *mut c_void {
        self.0
    }
}

/// Calls `warning` when the heap takes more than `bytes`, and not again until it has fallen below. NULL ends the calls. `user` must
/// live until then, or until the heap ends.
///
/// # Safety
/// `heap` is NULL or a live heap that no other thread uses meanwhile; `warning` does what its documentation asks for, with a
/// `user` that lives as long; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_heap_set_warning(
    heap: *mut larder_heap,
    bytes: usize,
    warning: larder_warning_fn,
    user: *mut c_void,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            let heap = shared(heap)?.enter();
            match warning {
                None => heap.set_warning(usize::MAX, |_| {}),
                Some(warning) => {
                    let user = User(user);
                    heap.set_warning(bytes, move |stats: HeapStats| {
                        let stats = filled(stats);
                        // SAFETY: the program's function, called as the header says.
                        warning(&raw const stats, user.pointer());
                    });
                }
            }
            Ok(())
        })
    }
}

/// Gives the free objects in the heap's magazines to its classes, where other heaps find them.
///
/// # Safety
/// `heap` is NULL or a live heap that no other thread uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_heap_trim(heap: *mut larder_heap) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(core::ptr::null_mut(), || {
            shared(heap)?.enter().trim();
            Ok(())
        })
    }
}
