//! Operators that the program has replaced.
//!
//! A program may replace `operator new(size_t)` and `operator delete(void *)` only: the standard lets the array, sized and nothrow
//! forms call these two. The forms of this library do not call them. So where the program has replaced a plain form, the other
//! forms go to the C++ library, which calls it.

use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

const UNKNOWN: u8 = 0;
const OURS: u8 = 1;
const REPLACED: u8 = 2;

static PLAIN: AtomicU8 = AtomicU8::new(UNKNOWN);

/// The plain forms, which the other forms call.
const NAMES: [&CStr; 8] = [
    c"_Znwm",
    c"_Znam",
    c"_ZdlPv",
    c"_ZdaPv",
    c"_ZnwmSt11align_val_t",
    c"_ZnamSt11align_val_t",
    c"_ZdlPvSt11align_val_t",
    c"_ZdaPvSt11align_val_t",
];

/// Whether the program has replaced a plain form. One load: the answer is known once the library is loaded, except in constructors
/// that run before its own.
#[inline]
pub(crate) fn any() -> bool {
    match PLAIN.load(Ordering::Relaxed) {
        OURS => false,
        REPLACED => true,
        _ => look(),
    }
}

/// Looks the forms up, which takes the loader's lock. So it is done before a constructor can wait for a thread that uses an
/// operator: a constructor of a library that `dlopen` loads holds that lock.
#[cold]
pub(crate) fn look() -> bool {
    let here = object_of(object_of as *const c_void);
    let replaced = NAMES.iter().any(|name| {
        // SAFETY: a name that ends, in a scope that the loader defines.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        !found.is_null() && object_of(found) != here
    });
    PLAIN.store(if replaced { REPLACED } else { OURS }, Ordering::Relaxed);
    replaced
}

/// The begin of the program or library that contains this address.
fn object_of(address: *const c_void) -> *mut c_void {
    // SAFETY: all zeroes is a value.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: any address may be asked for, and the answer is written to `info`.
    unsafe { libc::dladdr(address, &raw mut info) };
    info.dli_fbase
}

/// The C++ library's function of a name, which is looked up once, at its first use; NULL where there is none.
pub(crate) fn library(cached: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let known = cached.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    // SAFETY: a name that ends, in the objects after this one.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    cached.store(found, Ordering::Relaxed);
    found
}
