//! `operator new` and `operator delete` of C++, by their mangled names (x86-64 and aarch64: size_t is `m`).
//!
//! When there is no memory, the standard requires that the new-handler is called until it gives up, and then `std::bad_alloc`
//! is thrown. Both are in the C++ library, which is looked up only then, so programs in C need none. The exception passes
//! through the functions here, which are therefore `extern "C-unwind"` and have nothing to clean up.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::AtomicPtr;

use larder::internal::heap::{self, Call, Origin};

use crate::aligned::allocate_aligned;
use crate::c::{ALIGN, allocate};
use crate::replaced;

type Handler = Option<unsafe extern "C-unwind" fn()>;

/// A function of the C++ library, or NULL. A program in C may have opened a library that needs the C++ library, with
/// `RTLD_LOCAL`. Then no scope has the name, and the loader is asked for the C++ library itself.
fn look_up(scope: *mut c_void, name: *const c_char) -> *mut c_void {
    // A search in libc++ goes on in the library that libc++ needs, which has the handler.
    const LIBRARIES: [&CStr; 2] = [c"libstdc++.so.6", c"libc++.so.1"];
    const LOADED: c_int = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
    // SAFETY: a name that ends, in a scope that the loader defines.
    let found = unsafe { libc::dlsym(scope, name) };
    if !found.is_null() {
        return found;
    }
    let in_library = |library: &&CStr| {
        // SAFETY: names that end. The library is there already, and stays open: it may throw next.
        let found = unsafe {
            let library = libc::dlopen(library.as_ptr(), LOADED);
            if library.is_null() {
                return None;
            }
            libc::dlsym(library, name)
        };
        (!found.is_null()).then_some(found)
    };
    LIBRARIES
        .iter()
        .find_map(in_library)
        .unwrap_or(core::ptr::null_mut())
}

fn new_handler() -> Handler {
    let get = look_up(libc::RTLD_DEFAULT, c"_ZSt15get_new_handlerv".as_ptr());
    if get.is_null() {
        return None;
    }
    // SAFETY: std::get_new_handler() takes nothing and answers with a function that takes nothing, or NULL.
    let get = unsafe {
        core::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn() -> Handler>(get)
    };
    // SAFETY: as the standard declares it.
    unsafe { get() }
}

/// Calls the handler until it gives up or there is memory; throws.
///
/// # Safety
/// The callers up to C++ let an exception through and have nothing to clean up.
#[cold]
unsafe extern "C-unwind" fn make_room(size: usize, align: usize, origin: Origin) -> *mut c_void {
    loop {
        match new_handler() {
            // SAFETY: the program's own handler; what it throws passes through.
            Some(handler) => unsafe { handler() },
            // SAFETY: as the C++ library declares it.
            None => unsafe { throw_bad_alloc() },
        }
        let block = allocate_aligned(size, align, origin);
        if !block.is_null() {
            return block;
        }
    }
}

/// # Safety
/// As for [`make_room`].
unsafe extern "C-unwind" fn throw_bad_alloc() -> ! {
    let throw = look_up(libc::RTLD_DEFAULT, c"_ZSt17__throw_bad_allocv".as_ptr());
    if throw.is_null() {
        // A program that calls `new` and has no C++ library in which it could throw.
        // SAFETY: ends the process.
        unsafe { libc::abort() }
    }
    // SAFETY: std::__throw_bad_alloc() takes nothing and does not return.
    let throw =
        unsafe { core::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn() -> !>(throw) };
    // SAFETY: as the C++ library declares it.
    unsafe { throw() }
}

/// `new` that throws.
///
/// # Safety
/// As for [`make_room`].
#[inline]
unsafe extern "C-unwind" fn new(size: usize, align: usize, origin: Origin) -> *mut c_void {
    // SAFETY: what it throws passes through this function, which has nothing to clean up.
    let slowly = |size| unsafe { new_slowly(size, align, origin) };
    if align > ALIGN {
        return slowly(size);
    }
    // SAFETY: as above.
    let counted = |size, class| unsafe { new_counted(size, class, align, origin) };
    heap::alloc_or(
        size,
        |size, class| counted(size, class).cast(),
        |size| slowly(size).cast(),
    )
    .cast()
}

/// As `malloc_counted`.
///
/// # Safety
/// As for [`make_room`].
#[cold]
#[inline(never)]
unsafe extern "C-unwind" fn new_counted(
    size: usize,
    class: usize,
    align: usize,
    origin: Origin,
) -> *mut c_void {
    // SAFETY: what it throws passes through this function, which has nothing to clean up.
    let slowly = |size| unsafe { new_slowly(size, align, origin) };
    heap::alloc_counted_or(size, class, |size| slowly(size).cast()).cast()
}

/// # Safety
/// As for [`make_room`].
#[cold]
#[inline(never)]
unsafe extern "C-unwind" fn new_slowly(size: usize, align: usize, origin: Origin) -> *mut c_void {
    let block = if align <= ALIGN {
        allocate(size, ALIGN, origin)
    } else {
        allocate_aligned(size, align, origin)
    };
    if block.is_null() {
        // SAFETY: as above.
        return unsafe { make_room(size, align, origin) };
    }
    block
}

/// `new` that throws nothing. A handler may throw, and only C++ can catch that: so with a handler the C++ library's own
/// operator does it, which calls the one above.
///
/// # Safety
/// `own` is the mangled name of the operator that was called and `tag` its last argument; `align` is 0 where it has none.
#[inline]
unsafe extern "C-unwind" fn new_nothrow(
    size: usize,
    align: usize,
    origin: Origin,
    own: *const c_char,
    tag: *const c_void,
) -> *mut c_void {
    let block = allocate_aligned(size, align.max(ALIGN), origin);
    if block.is_null() {
        // SAFETY: the arguments of the operator that is asked for by name.
        return unsafe { nothrow_slow(size, align, own, tag) };
    }
    block
}

/// # Safety
/// As for [`new_nothrow`].
#[cold]
unsafe extern "C-unwind" fn nothrow_slow(
    size: usize,
    align: usize,
    own: *const c_char,
    tag: *const c_void,
) -> *mut c_void {
    if new_handler().is_none() {
        return core::ptr::null_mut();
    }
    let next = look_up(libc::RTLD_NEXT, own);
    if next.is_null() {
        return core::ptr::null_mut();
    }
    if align == 0 {
        // SAFETY: `operator new(size_t, const std::nothrow_t &)`.
        let next = unsafe {
            core::mem::transmute::<
                *mut c_void,
                unsafe extern "C-unwind" fn(usize, *const c_void) -> *mut c_void,
            >(next)
        };
        // SAFETY: as declared.
        unsafe { next(size, tag) }
    } else {
        // SAFETY: `operator new(size_t, std::align_val_t, const std::nothrow_t &)`.
        let next = unsafe {
            core::mem::transmute::<
                *mut c_void,
                unsafe extern "C-unwind" fn(usize, usize, *const c_void) -> *mut c_void,
            >(next)
        };
        // SAFETY: as declared.
        unsafe { next(size, align, tag) }
    }
}

/// The exported functions of `new`. Each is unsafe to call as the C++ operator of its name is. Where the program has replaced
/// a plain form, all but the scalar ones are left to the C++ library, see [`replaced`].
macro_rules! operators {
    ($($name:literal => $origin:ident $form:ident ($size:ident $(, $more:ident: $type:ty)*) $body:expr;)+) => {
        $(const _: () = {
            #[unsafe(export_name = $name)]
            unsafe extern "C-unwind" fn operator($size: usize $(, $more: $type)*) -> *mut c_void {
                const OWN: &CStr = name(concat!($name, "\0"));
                operators!($form OWN ($size $(, $more: $type)*));
                // SAFETY: the caller is C++, which catches what is thrown; there is nothing to clean up here. The name is this
                // operator's.
                unsafe { $body(OWN, Origin::$origin) }
            }
        };)+
    };
    (plain $own:ident ($($any:tt)*)) => {};
    (derived $own:ident ($size:ident $(, $more:ident: $type:ty)*)) => {
        if replaced::any() {
            static LIBRARY: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
            let library = replaced::library(&LIBRARY, $own);
            if !library.is_null() {
                // SAFETY: the C++ library's operator of this very name.
                let library = unsafe {
                    core::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn(usize $(, $type)*) -> *mut c_void>(library)
                };
                // SAFETY: with the arguments that this one was called with.
                return unsafe { library($size $(, $more)*) };
            }
        }
    };
}

const fn name(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name has no zero byte in it"),
    }
}

operators! {
    "_Znwm" => New plain (size) |_, origin| new(size, ALIGN, origin);
    "_Znam" => NewArray derived (size) |_, origin| new(size, ALIGN, origin);
    "_ZnwmSt11align_val_t" => New plain (size, align: usize) |_, origin| new(size, align, origin);
    "_ZnamSt11align_val_t" => NewArray derived (size, align: usize) |_, origin| new(size, align, origin);
    "_ZnwmRKSt9nothrow_t" => New derived (size, tag: *const c_void) |own: &CStr, origin| new_nothrow(size, 0, origin, own.as_ptr(), tag);
    "_ZnamRKSt9nothrow_t" => NewArray derived (size, tag: *const c_void) |own: &CStr, origin| new_nothrow(size, 0, origin, own.as_ptr(), tag);
    "_ZnwmSt11align_val_tRKSt9nothrow_t" => New derived (size, align: usize, tag: *const c_void) |own: &CStr, origin| new_nothrow(size, align, origin, own.as_ptr(), tag);
    "_ZnamSt11align_val_tRKSt9nothrow_t" => NewArray derived (size, align: usize, tag: *const c_void) |own: &CStr, origin| new_nothrow(size, align, origin, own.as_ptr(), tag);
}

/// `delete` of a block without a size.
///
/// # Safety
/// The block is of the matching `new`, with this alignment, and not deleted yet.
#[inline(always)]
unsafe fn delete(block: *mut c_void, align: usize, call: Call) {
    // SAFETY: the caller's promise.
    unsafe {
        if !heap::try_free(block.cast()) {
            heap::free_aligned_as(block.cast(), align, call);
        }
    }
}

/// `delete` of a block with a size.
///
/// # Safety
/// As for [`delete`], with this size.
#[inline]
unsafe fn delete_sized(block: *mut c_void, size: usize, call: Call) {
    // SAFETY: the caller's promise.
    unsafe {
        if !heap::try_free_sized(block.cast(), size) {
            heap::free_sized_as(block.cast(), size, ALIGN, call);
        }
    }
}

/// The exported functions of `delete`. Each needs a block of the matching `new`, with its size and alignment, or NULL. Where the
/// program has replaced a plain form, all but the scalar ones are left to the C++ library, see [`replaced`].
macro_rules! delete {
    ($($name:literal => $form:ident ($pointer:ident $(, $more:ident: $type:ty)*) $body:expr;)+) => {
        $(const _: () = {
            #[unsafe(export_name = $name)]
            unsafe extern "C-unwind" fn operator($pointer: *mut c_void $(, $more: $type)*) {
                if $pointer.is_null() {
                    return;
                }
                delete!($form $name ($pointer $(, $more: $type)*));
                // SAFETY: the program's promise: a block of the matching `new`, not deleted yet.
                unsafe { $body }
            }
        };)+
    };
    (plain $name:literal ($($any:tt)*)) => {};
    (derived $name:literal ($pointer:ident $(, $more:ident: $type:ty)*)) => {
        if replaced::any() {
            static LIBRARY: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
            let library = replaced::library(&LIBRARY, const { name(concat!($name, "\0")) });
            if !library.is_null() {
                // SAFETY: the C++ library's operator of this very name.
                let library = unsafe {
                    core::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn(*mut c_void $(, $type)*)>(library)
                };
                // SAFETY: with the arguments that this one was called with.
                return unsafe { library($pointer $(, $more)*) };
            }
        }
    };
}

delete! {
    "_ZdlPv" => plain (p) delete(p, ALIGN, Call::Delete);
    "_ZdaPv" => derived (p) delete(p, ALIGN, Call::DeleteArray);
    "_ZdlPvRKSt9nothrow_t" => derived (p, _tag: *const c_void) delete(p, ALIGN, Call::Delete);
    "_ZdaPvRKSt9nothrow_t" => derived (p, _tag: *const c_void) delete(p, ALIGN, Call::DeleteArray);
    "_ZdlPvm" => derived (p, size: usize) delete_sized(p, size, Call::Delete);
    "_ZdaPvm" => derived (p, size: usize) delete_sized(p, size, Call::DeleteArray);
    "_ZdlPvSt11align_val_t" => plain (p, align: usize) delete(p, align.max(ALIGN), Call::Delete);
    "_ZdaPvSt11align_val_t" => derived (p, align: usize) delete(p, align.max(ALIGN), Call::DeleteArray);
    "_ZdlPvSt11align_val_tRKSt9nothrow_t" => derived (p, align: usize, _tag: *const c_void) delete(p, align.max(ALIGN), Call::Delete);
    "_ZdaPvSt11align_val_tRKSt9nothrow_t" => derived (p, align: usize, _tag: *const c_void) delete(p, align.max(ALIGN), Call::DeleteArray);
    "_ZdlPvmSt11align_val_t" => derived (p, size: usize, align: usize) heap::free_sized_as(p.cast(), size, align.max(ALIGN), Call::Delete);
    "_ZdaPvmSt11align_val_t" => derived (p, size: usize, align: usize) heap::free_sized_as(p.cast(), size, align.max(ALIGN), Call::DeleteArray);
}
