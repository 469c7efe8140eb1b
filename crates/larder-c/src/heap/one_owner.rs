//! A heap of one owner.

use core::ffi::c_void;
use core::ops::Deref;

use larder::heap::Heap;

use super::classes::larder_classes;
use super::front::{self, layout};
use crate::busy::{Busy, Here};
use crate::error::{Failed, larder_error, larder_status};
use crate::guard::{guard, value};
use crate::mark::{Opaque, end, give, shared};
use crate::objects::family::larder_family;
use crate::objects::large::answer;

/// Memory of any size for one owner that carries it along: an interpreter, a request, a shard. No lock, no atomic instruction, no
/// thread-local. It may move between threads, but only one may use it at a time.
#[derive(Debug)]
pub struct larder_heap {
    _opaque: [u8; 0],
}

/// A heap, and whether a call is inside: its warning may use the heap, but must not end it.
#[derive(Debug)]
pub(crate) struct Carried {
    heap: Heap,
    busy: Busy,
}

impl Carried {
    pub(crate) fn new(heap: Heap) -> Self {
        Self {
            heap,
            busy: Busy::default(),
        }
    }

    /// The heap, for the time of one call.
    #[inline]
    pub(super) fn enter(&self) -> Entered<'_> {
        Entered {
            heap: &self.heap,
            _here: self.busy.among(),
        }
    }
}

/// A heap that a call is inside of.
pub(super) struct Entered<'a> {
    heap: &'a Heap,
    _here: Here<'a>,
}

impl Deref for Entered<'_> {
    type Target = Heap;
    #[inline]
    fn deref(&self) -> &Heap {
        self.heap
    }
}

impl Opaque for larder_heap {
    type Inside = Carried;
    const MARK: u64 = 0x6c64_7268_6561_7031;
    const NAME: &'static str = "heap";

    fn may_end(inside: &Carried) -> Result<(), Failed> {
        inside.busy.alone().map(drop)
    }
}

/// Makes a heap over classes that others share. Objects may be given back through any heap of the same classes, or through these.
/// `out` gets it, or NULL after a failure.
///
/// # Safety
/// `classes` is NULL or live classes; `out` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_heap_new(
    classes: *const larder_classes,
    out: *mut *mut larder_heap,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            let classes = shared(classes)?;
            give(out, || Ok(Carried::new(Heap::new(classes))))
        })
    }
}

/// Makes a heap with slabs of its own: its end is the end of all its objects, large ones included, and no object is visited. A large
/// object (more than 1 MiB, or aligned to more than a page) has at least two pages. `out` gets it, or NULL after a failure.
///
/// # Safety
/// `family` is NULL or a live family; `out` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_heap_new_private(
    family: *const larder_family,
    out: *mut *mut larder_heap,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            let family = shared(family)?;
            give(out, || Ok(Carried::new(Heap::private(family))))
        })
    }
}

/// Ends a heap; NULL does nothing. Its objects stay valid as long as its classes; those of a private heap are gone. From the heap's
/// warning it is LARDER_BUSY.
///
/// # Safety
/// `heap` is NULL or a live heap, which no other thread uses, and which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_heap_free(heap: *mut larder_heap) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe { guard(core::ptr::null_mut(), || end(heap)) }
}

/// Takes `bytes` bytes, aligned to 16, with what a former owner left; 0 bytes are an object as well. `object` gets it, or NULL
/// after a failure.
///
/// # Safety
/// `heap` is NULL or a live heap that no other thread uses meanwhile; `object` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_heap_alloc(
    heap: *mut larder_heap,
    bytes: usize,
    object: *mut *mut c_void,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            let heap = &*shared(heap)?.enter();
            answer(object, || Ok(heap.alloc(layout(bytes, 0)?)?))
        })
    }
}

/// As larder_heap_alloc, with all bytes zero.
///
/// # Safety
/// `heap` is NULL or a live heap that no other thread uses meanwhile; `object` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_heap_alloc_zeroed(
    heap: *mut larder_heap,
    bytes: usize,
    object: *mut *mut c_void,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            let heap = &*shared(heap)?.enter();
            answer(object, || Ok(heap.alloc_zeroed(layout(bytes, 0)?)?))
        })
    }
}

/// As larder_heap_alloc, aligned to `align`, a power of two; 0 is 16.
///
/// # Safety
/// `heap` is NULL or a live heap that no other thread uses meanwhile; `object` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_heap_alloc_aligned(
    heap: *mut larder_heap,
    bytes: usize,
    align: usize,
    object: *mut *mut c_void,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            let heap = &*shared(heap)?.enter();
            answer(object, || Ok(heap.alloc(layout(bytes, align)?)?))
        })
    }
}

/// Makes `*object` larger or smaller. It may move, and is then aligned to 16, whatever it was before. NULL in `*object` begins a new
/// one. After a failure the object is where and what it was; to make it smaller never fails.
///
/// # Safety
/// `heap` is NULL or a live heap that no other thread uses meanwhile; `object` is NULL or can be read and written, and what is
/// in it is in the caller's hands; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_heap_realloc(
    heap: *mut larder_heap,
    object: *mut *mut c_void,
    bytes: usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need.
    unsafe {
        guard(error, || {
            let heap = &*shared(heap)?.enter();
            front::realloc(heap, object, bytes)
        })
    }
}

/// Gives an object back; NULL does nothing. It must come from this heap, from another heap of the same classes, or from these classes,
/// else it is LARDER_FOREIGN. An address inside an object, or an object that is given back twice, is not detected.
///
/// # Safety
/// `heap` is NULL or a live heap that no other thread uses meanwhile; what `object` points to, if it came from here, is in the
/// caller's hands and not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_heap_dealloc(
    heap: *mut larder_heap,
    object: *mut c_void,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need, and gives the object up.
    unsafe {
        guard(core::ptr::null_mut(), || {
            let heap = &*shared(heap)?.enter();
            front::dealloc(heap, object)
        })
    }
}

/// As larder_heap_dealloc, for an object that was allocated with `bytes` bytes and no alignment. LARDER_SIZE when it was not; then
/// nothing has changed.
///
/// # Safety
/// `heap` is NULL or a live heap that no other thread uses meanwhile; what `object` points to, if it came from here, is in the
/// caller's hands and not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_heap_dealloc_sized(
    heap: *mut larder_heap,
    object: *mut c_void,
    bytes: usize,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need, and gives the object up.
    unsafe {
        guard(core::ptr::null_mut(), || {
            let heap = &*shared(heap)?.enter();
            front::dealloc_sized(heap, object, bytes, 0)
        })
    }
}

/// As larder_heap_dealloc_sized, for an object that was allocated with an alignment.
///
/// # Safety
/// `heap` is NULL or a live heap that no other thread uses meanwhile; what `object` points to, if it came from here, is in the
/// caller's hands and not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_heap_dealloc_aligned(
    heap: *mut larder_heap,
    object: *mut c_void,
    bytes: usize,
    align: usize,
) -> larder_status {
    // SAFETY: the caller of the C function promises what these need, and gives the object up.
    unsafe {
        guard(core::ptr::null_mut(), || {
            let heap = &*shared(heap)?.enter();
            front::dealloc_sized(heap, object, bytes, align)
        })
    }
}

/// Bytes of an object that may be used, at least those requested; 0 for a pointer that is no object.
///
/// # Safety
/// `heap` is NULL or a live heap that no other thread uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_heap_usable_bytes(
    heap: *mut larder_heap,
    object: *const c_void,
) -> usize {
    value(0, || {
        // SAFETY: the caller of the C function promises what these need.
        unsafe {
            let heap = &*shared(heap)?.enter();
            front::usable_bytes(heap, object)
        }
    })
}
