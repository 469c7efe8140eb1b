//! A heap of one owner.

use core::ffi::{c_char, c_void};
use core::ops::Deref;
use core::ptr::NonNull;

use larder::heap::{Heap, HeapStats};

use super::classes::larder_classes;
use super::front::{self, Enter, layout};
use crate::bulk;
use crate::busy::{Busy, Here};
use crate::call::{NO_ERROR, ask, free, make, on};
use crate::error::{Failed, larder_error, larder_status};
use crate::mark::opaque;
use crate::numbers::{self, numbers};
use crate::objects::family::larder_family;

/// Memory of any size for one owner that carries it along: an interpreter, a request, a shard. No lock, no atomic instruction, no
/// thread-local. It may move between threads, but only one may use it at a time.
pub struct larder_heap {
    _opaque: [u8; 0],
}

/// A heap, and whether a call is inside: its warning may use the heap, but must not end it.
#[derive(Debug)]
pub(crate) struct Carried {
    heap: Heap,
    busy: Busy,
}

impl From<Heap> for Carried {
    fn from(heap: Heap) -> Self {
        Self {
            heap,
            busy: Busy::default(),
        }
    }
}

impl Enter for Carried {
    type Front = Heap;
    #[inline(always)]
    fn enter(&self) -> impl Deref<Target = Heap> {
        Entered(&self.heap, self.busy.among())
    }
}

/// A heap that a call is inside of.
struct Entered<'a>(
    &'a Heap,
    #[expect(dead_code, reason = "counts the call out")] Here<'a>,
);

impl Deref for Entered<'_> {
    type Target = Heap;
    #[inline(always)]
    fn deref(&self) -> &Heap {
        self.0
    }
}

opaque!(larder_heap, Carried, b"ldrheap1", "heap", |heap| heap
    .busy
    .may_end());

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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { make(classes, out, error, |own| Ok(Heap::new(own).into())) }
}

/// Makes a heap with slabs of its own: its end is the end of all its objects, large ones included, and no object is visited. A large
/// object (more than 4 MiB, or aligned to more than a page) has at least two pages. `out` gets it, or NULL after a failure.
///
/// # Safety
/// `family` is NULL or a live family; `out` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_heap_new_private(
    family: *const larder_family,
    out: *mut *mut larder_heap,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { make(family, out, error, |own| Ok(Heap::private(own).into())) }
}

/// Ends a heap; NULL does nothing. Its objects stay valid as long as its classes; those of a private heap are gone. From the heap's
/// warning it is LARDER_BUSY.
///
/// # Safety
/// `heap` is NULL or a live heap, which no other thread uses, and which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_heap_free(heap: *mut larder_heap) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { free(heap) }
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(heap, error, |own| front::alloc(own, (bytes, 0), object)) }
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(heap, error, |own| front::alloc_zeroed(own, bytes, object)) }
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(heap, error, |own| front::alloc(own, (bytes, align), object)) }
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(heap, error, |own| front::realloc(own, object, bytes)) }
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(heap, NO_ERROR, |own| front::dealloc(&*own.enter(), object)) }
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(heap, NO_ERROR, |own| {
            front::dealloc_sized(own, object, (bytes, 0))
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(heap, NO_ERROR, |own| {
            front::dealloc_sized(own, object, (bytes, align))
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { ask(heap, 0, |own| front::usable_bytes(own, object)) }
}

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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(heap, error, |own| {
            let heap = &*own.enter();
            bulk::fill(
                ("objects", objects),
                n,
                |objects, got| -> Result<(), Failed> {
                    let layout = layout(bytes, 0)?;
                    for object in objects {
                        *object = heap.alloc(layout)?;
                        *got += 1;
                    }
                    Ok(())
                },
                |got| {
                    got.iter()
                        .for_each(|object| heap.dealloc_by_address(*object))
                },
            )
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(heap, error, |heap| {
            let (heap, objects) = (&*heap.enter(), bulk::pointers(("objects", objects), n)?);
            for object in objects
                .iter()
                .filter_map(|object| NonNull::new(object.cast()))
            {
                front::usable(heap.classes(), object)?;
            }
            objects
                .iter()
                .try_for_each(|object| front::dealloc(heap, *object))
        })
    }
}

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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(heap, NO_ERROR, |heap| {
            let bytes = if bytes == 0 { usize::MAX } else { bytes };
            heap.enter().set_limit(bytes);
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
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(heap, error, |heap| match warning {
            None => heap.enter().set_warning(usize::MAX, |_| {}),
            Some(warning) => {
                let user = User(user);
                let warn = move |stats: HeapStats| {
                    let stats = larder_heap_stats::from(stats);
                    // SAFETY: the program's function, called as the header says.
                    warning(&raw const stats, user.pointer());
                };
                heap.enter().set_warning(bytes, warn);
            }
        })
    }
}

/// Gives the free objects in the heap's magazines to its classes, where other heaps find them.
///
/// # Safety
/// `heap` is NULL or a live heap that no other thread uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_heap_trim(heap: *mut larder_heap) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(heap, NO_ERROR, |heap| heap.enter().trim()) }
}

/// Numbers of a heap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct larder_heap_stats {
    /// Bytes of this struct as the program knows it; set it before the call.
    pub size: usize,
    /// Bytes taken and not given back: objects in use, and free ones in the heap's magazines. What another heap gives back stays on
    /// this one's account.
    pub charged_bytes: u64,
    /// Bytes of these in large objects.
    pub large_bytes: u64,
    /// Bytes of free objects in the heap's magazines.
    pub stocked_bytes: u64,
    /// Most that may be taken; UINT64_MAX without a limit.
    pub limit_bytes: u64,
    /// Allocations that found the loaded magazine empty, and large ones.
    pub refills: u64,
}

numbers!(larder_heap_stats, |heap: HeapStats| stats = heap;
    charged_bytes, large_bytes, stocked_bytes,
    limit_bytes = numbers::limit(stats.limit_bytes),
    refills,
);

impl From<&Carried> for larder_heap_stats {
    fn from(heap: &Carried) -> Self {
        heap.enter().stats().into()
    }
}

/// Reads the numbers; as larder_pool_stats_read.
///
/// # Safety
/// `heap` is NULL or a live heap that no other thread uses meanwhile; `stats` is NULL or has as many writable bytes as its
/// first field says; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_heap_stats_read(
    heap: *const larder_heap,
    stats: *mut larder_heap_stats,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { numbers::read(heap, stats, error) }
}

/// Writes the numbers as one JSON object; as larder_pool_stats_json.
///
/// # Safety
/// `heap` is NULL or a live heap that no other thread uses meanwhile; `buffer` points to `bytes` writable bytes; `needed` and
/// `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_heap_stats_json(
    heap: *const larder_heap,
    buffer: *mut c_char,
    bytes: usize,
    needed: *mut usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { numbers::json::<_, larder_heap_stats>(heap, (buffer, bytes, needed), error) }
}
